package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/lang/outliner"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/plan/accepted"
	"github.com/terrace-iac/terrace/internal/plan/apply"
	"github.com/terrace-iac/terrace/internal/plan/imports"
	"github.com/terrace-iac/terrace/internal/plan/planner"
	"github.com/terrace-iac/terrace/internal/plan/relevantattrs"
	"github.com/terrace-iac/terrace/internal/plan/validate"
	"github.com/terrace-iac/terrace/internal/provider/manager"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// An Engine works on the configuration of one directory. The caller must close it.
type Engine struct {
	o    Options
	dir  string // absolute
	tree *module.Tree
	// compiled is the preprocessed tree, which the evaluations without state of all engines with
	// this tree share. nil means that no other engine uses the tree.
	compiled *eval.Compiled
	outlined *outliner.Shared // like compiled, for outlines
	plain    bool             // no expression calls a function that depends on the engine
	pool     *manager.Pool

	requiring sync.Once
	required  map[addr.Provider][]config.Constraint // set by requiring

	stores atomic.Bool // a state has an object with the store block of terraform_data

	tables   sync.Mutex
	planFns  map[string]function.Function
	planTime time.Time
}

// Open loads the root module and every module that it calls. It evaluates module sources and
// versions only. The engine is usable only if there are no errors.
func Open(ctx context.Context, o Options) (*Engine, diag.List) {
	e := &Engine{o: o}
	if err := e.defaults(); err != nil {
		return nil, diag.Errorf(diag.CodeFilesRead, nil, "Failed to find the working directory", "The directory %q cannot be used: %s.", o.Dir, err)
	}
	if e.o.Processes != nil {
		e.pool = e.o.Processes.host.New(sources{e}, e.o.Turn)
	} else {
		e.pool = manager.New(sources{e})
	}
	manifest, ds := e.manifest()
	if ds.HasErrors() {
		return nil, ds
	}
	if r := &e.o.Root; r.Dir == "" && r.Key != "" {
		at, ok := manifest[r.Key]
		if !ok {
			return nil, append(ds, module.NotInstalled()...)
		}
		r.Dir = at.Dir
	}
	built := o.Sources.build(ctx, e.rootDir(), e.moduleOptions(ctx, manifest, o.Value))
	e.tree, e.compiled, e.outlined, e.plain = built.tree, built.compiled, built.outlined, built.plain
	return e, append(ds, built.ds...)
}

func (e *Engine) defaults() error {
	abs, err := filepath.Abs(e.o.Dir)
	if err != nil {
		return err
	}
	e.dir = abs
	if e.o.DataDir == "" {
		e.o.DataDir = ".terraform"
	}
	if e.o.Workspace == "" {
		e.o.Workspace = "default"
	}
	if e.o.LaunchDir == "" {
		e.o.LaunchDir = abs
	}
	if e.o.Set == nil {
		e.o.Set = &source.Set{}
	}
	if e.o.Now == nil {
		e.o.Now = systemClock
	}
	return nil
}

// rootDir returns the directory of the root module relative to the engine's directory.
func (e *Engine) rootDir() string { return cmp.Or(e.o.Root.Dir, ".") }

// Close stops every provider that the engine started.
func (e *Engine) Close() { e.pool.Close() }

// Root returns the configuration of the root module.
func (e *Engine) Root() *config.Module { return e.tree.Root.Config }

// Tree returns the tree of modules.
func (e *Engine) Tree() *config.Tree { return e.tree }

// Dir returns the absolute path of the engine's directory.
func (e *Engine) Dir() string { return e.dir }

func (e *Engine) moduleOptions(ctx context.Context, manifest map[string]module.Installed, value ValueFunc) module.Options {
	var files config.FS = folder{dir: e.dir, overlay: e.o.Overlay}
	var loads *module.Loads
	var parses *config.Parses
	if s := e.o.Sources; s != nil {
		files, loads, parses = s.FS, &s.loads, s.Parses
	}
	return module.Options{
		Config:    config.Options{FS: files, Set: e.o.Set, Parses: parses},
		Loads:     loads,
		Manifest:  manifest,
		Workspace: e.o.Workspace,
		Canonical: fetch.Canonical,
		Links:     func(dir string) string { return module.ResolveLinks(e.o.Readlink, e.dir, dir) },
		KeyPrefix: e.o.Root.Key,
		Change:    e.o.Root.Change,
		Functions: func() map[string]function.Function { return e.functions(time.Time{}, true) },
		Variables: func(v *config.Variable) cty.Value {
			if value == nil {
				return cty.NilVal
			}
			in, ok := value(ctx, v)
			if !ok {
				return cty.NilVal
			}
			got, ds := inputValue(v, in)
			if ds.HasErrors() {
				return cty.NilVal
			}
			return got.Value
		},
	}
}

// manifest reads the list of installed modules.
func (e *Engine) manifest() (map[string]module.Installed, diag.List) {
	path := filepath.Join(e.o.DataDir, "modules", "modules.json")
	raw, err := folder{e.dir, e.o.Overlay, e.o.ReadFile}.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var file struct {
		Modules []struct{ Key, Source, Version, Dir string }
	}
	if err == nil {
		err = json.Unmarshal(raw, &file)
	}
	if err != nil {
		return nil, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read module manifest", "The list of installed modules, %s, cannot be read: %s. Run \"terrace init\" to write it anew.", path, err)
	}
	out := make(map[string]module.Installed, len(file.Modules))
	for _, m := range file.Modules {
		out[m.Key] = module.Installed{Source: m.Source, Version: m.Version, Dir: m.Dir}
	}
	return out, nil
}

// Schema returns the schema of a provider. It starts the provider if necessary.
func (e *Engine) Schema(ctx context.Context, a addr.Provider) (*schema.Provider, diag.List) {
	return e.pool.Schema(ctx, a)
}

// Static evaluates an expression of the root module before planning. The result may be unknown
// and may have marks. value returns the values of variables that the expression refers to,
// directly or through locals. nil means that no variable has a value.
func (e *Engine) Static(ctx context.Context, value ValueFunc, x hcl.Expression) (cty.Value, diag.List) {
	return module.StaticValue(e.tree.Root, x, e.moduleOptions(ctx, nil, value))
}

// Requirements returns the providers that the configuration requires, each with all its version
// constraints. The caller may change the map, but not the constraints.
func (e *Engine) Requirements() map[addr.Provider][]config.Constraint {
	e.requiring.Do(func() { e.required = e.requirements() })
	return maps.Clone(e.required)
}

// requirements walks over all resources of the module tree.
func (e *Engine) requirements() map[addr.Provider][]config.Constraint {
	out := map[addr.Provider][]config.Constraint{}
	seen := map[*config.Module]bool{}
	e.tree.Walk(func(n *module.Node) {
		if seen[n.Config] {
			return
		}
		seen[n.Config] = true
		for src, cs := range module.Requirements(n.Config) {
			out[src] = append(out[src], cs...)
		}
	})
	for src, cs := range out {
		slices.SortFunc(cs, module.ByPlace)
		out[src] = slices.Clip(cs) // a caller that appends gets a slice of its own
	}
	return out
}

// Validate checks every rule that needs neither state nor values of variables.
func (e *Engine) Validate(ctx context.Context) diag.List {
	return validate.Run(ctx, e.validation())
}

// ValidateBySchemas is like Validate, but providers are only used for their schemas: they check
// no configuration.
func (e *Engine) ValidateBySchemas(ctx context.Context) diag.List {
	in := e.validation()
	in.SchemasOnly = true
	return validate.Run(ctx, in)
}

// ValidateOffline is like ValidateBySchemas, but starts no provider and needs no installed modules:
// a provider whose schema is not available is skipped, and so is a module that is not installed.
// opened contains the messages of Open. If they contain other errors, the rest is not checked.
func (e *Engine) ValidateOffline(ctx context.Context, opened diag.List) diag.List {
	ds := slices.DeleteFunc(slices.Clone(opened), module.NeedsInstall)
	if ds.HasErrors() || e.tree == nil {
		return ds
	}
	in := e.validation()
	in.SchemasOnly = true
	without := map[addr.Provider]bool{}
	for a := range e.Requirements() {
		if _, missing := e.pool.Schema(ctx, a); missing.HasErrors() {
			without[a] = true
		}
	}
	in.Without = func(a addr.Provider) bool { return without[a] }
	return append(ds, validate.Run(ctx, in)...)
}

// ValidateUnknown is like Validate, but all values of objects are unknown, even if the
// configuration sets them. It finds the errors that OpenTofu 1.12.6 reports without a state.
func (e *Engine) ValidateUnknown(ctx context.Context) diag.List {
	in := e.validation()
	in.Unknown = true
	return validate.Run(ctx, in)
}

func (e *Engine) validation() validate.Input {
	return validate.Input{Tree: e.tree, Providers: e.pool, Functions: e.functions(time.Time{}, true), Provisioners: e.o.Provisioners, Cwd: e.o.LaunchDir, Also: imports.Validate}
}

// Plan compares the configuration with a state, which may be nil, and returns the necessary
// changes. With errors the plan is marked as errored and cannot be applied.
func (e *Engine) Plan(ctx context.Context, prev *state.State, o PlanOptions) (*plan.Plan, diag.List) {
	e.ExpectStates(prev)
	vars, ds := e.inputs(o.Variables)
	if e.o.Provisioners != nil {
		ds = append(ds, module.CheckProvisioners(e.tree, func(typ string) bool { return e.o.Provisioners.Schema(typ) != nil })...)
	}
	if o.Time.IsZero() {
		o.Time = e.o.Now().UTC()
	}
	planning, cancel := context.WithCancel(ctx)
	defer cancel()
	defer onStop(o.Stop, cancel)()
	in := e.evaluation(vars, o.Time, true, deferring(o.Options))
	var valid validate.Validated
	if !ds.HasErrors() {
		in.Compiled = &eval.Compiled{Keep: o.Mode != plan.Destroy}
		var more diag.List
		o.Options, more = planner.MatchPatterns(e.tree, prev, o.Options)
		ds = append(ds, more...)
		valid, more = e.validateBeforePlan(planning, in, prev, &o)
		ds = append(ds, planner.Halted(planning, more)...)
	}
	if ds.HasErrors() {
		return &plan.Plan{Mode: o.Mode, PrevRun: prev, Prior: prev, Errored: true, Refused: true, Workspace: e.o.Workspace}, ds
	}
	p, more := planner.Make(planning, planner.Input{
		Options: o.Options, Readings: o.Readings, IgnorePreventDestroy: o.IgnorePreventDestroy, Eval: in, Providers: e.providers(), Validated: valid.Has, State: prev,
		KeepHosts: e.getenv("OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION") == "0",
	})
	ds = append(ds, more...)
	accepted.Apply(p, o.Accept)
	if len(p.Drift) > 0 { // relevant attributes select which drift is shown
		p.Relevant = relevantattrs.Attributes(p, e.tree, typeSchemas{ctx, e}, nil)
	}
	if o.GenerateTo != "" && !ds.HasErrors() {
		ds = append(ds, WriteGenerated(p, folder{dir: e.dir}.path(o.GenerateTo))...)
	}
	return p, ds
}

// validateBeforePlan reports errors that the configuration and the values of variables show,
// before any provider is called to read or plan.
func (e *Engine) validateBeforePlan(ctx context.Context, in eval.Options, prev *state.State, o *PlanOptions) (validate.Validated, diag.List) {
	var ds diag.List
	destroy := o.Mode == plan.Destroy
	if !destroy {
		ds = eval.CheckRoot(ctx, e.tree.Root.Config, in.Variables, in.Functions).Errors()
	}
	valid, more := validate.BeforePlan(ctx, validate.Input{
		Tree: e.tree, Providers: e.pool, Functions: in.Functions, Provisioners: e.o.Provisioners, Cwd: e.o.LaunchDir, Compiled: in.Compiled,
		Wants: planner.Selects(in, o.Targets, o.Excludes), Uses: configurationsOf(prev),
	}, destroy)
	return valid, append(ds, more...).Once() // both steps check the rules of variables
}

// configurationsOf returns a test whether an object in s uses a provider configuration.
func configurationsOf(s *state.State) func(addr.ProviderConfig) bool {
	used := map[addr.ProviderConfig]bool{}
	if s != nil {
		for _, r := range s.Resources {
			for _, i := range r.Instances {
				used[r.Config(i)] = true
			}
		}
	}
	return func(a addr.ProviderConfig) bool { return used[a] }
}

// deferring returns the kind of unknown values for which a plan defers objects.
func deferring(o plan.Options) eval.Deferring {
	switch {
	case o.Defer:
		return eval.DeferUnknown
	case o.DeferInputs:
		return eval.DeferInputs
	}
	return eval.DeferNothing
}

// evaluation returns the options for evaluating the configuration. now is the result of
// plantimestamp().
func (e *Engine) evaluation(vars map[string]eval.Input, now time.Time, planning bool, deferring eval.Deferring) eval.Options {
	return eval.Options{
		Tree: e.tree, Variables: vars, Workspace: e.o.Workspace, RootDir: e.rootDir(), Cwd: e.o.LaunchDir,
		Functions: e.functions(now, planning), Deferring: deferring,
	}
}

// providers returns the options for calling the running providers.
func (e *Engine) providers() resourceclient.Options {
	return resourceclient.Options{Providers: e.pool, Observe: e.o.Observe, Parallelism: e.o.Parallelism}
}

// WriteGenerated writes the configuration that a plan generated for imported objects to a file,
// which must not exist. If the plan generated none, it writes nothing.
func WriteGenerated(p *plan.Plan, path string) diag.List {
	var text strings.Builder
	for _, c := range p.Changes {
		if c.Import == nil || c.Import.GeneratedConfig == "" {
			continue
		}
		if text.Len() == 0 {
			text.WriteString("# __generated__ by Terrace\n# Please review these resources and move them into your main configuration files.\n")
		}
		fmt.Fprintf(&text, "\n# __generated__ by Terrace from %s\n%s", importedFrom(c.Import), c.Import.GeneratedConfig)
	}
	if text.Len() == 0 {
		return nil
	}
	if err := atomicfile.Create(path, []byte(text.String()), 0o644); err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write generated configuration", "The configuration for imported objects could not be written: %s. Name a file that does not exist yet in a directory that can be written.", err)
	}
	return nil
}

// importedFrom returns the ID of an import, or its identity if it has no ID.
func importedFrom(i *plan.Import) string {
	if i.ID == "" && i.Identity != cty.NilVal {
		identity, _ := i.Identity.UnmarkDeep()
		if text, err := ctyjson.Marshal(identity, identity.Type()); err == nil {
			return "the identity " + string(text)
		}
	}
	return strconv.Quote(i.ID)
}

// Apply carries out a plan that was made by this engine, or by one on the same configuration.
// The result contains the known state, also with errors. Apply refuses a plan that is errored
// or whose deferred objects wait for unknown variables, before anything is changed.
func (e *Engine) Apply(ctx context.Context, p *plan.Plan, o ApplyOptions) (ApplyResult, diag.List) {
	if p.Errored {
		return ApplyResult{State: p.Prior}, diag.Errorf(diag.CodeCLIPlanErrors, nil, "Plan has errors", "The plan was not made to its end, since there were errors. Plan again.")
	}
	e.ExpectStates(p.PrevRun, p.Prior)
	deferring := eval.DeferNothing
	for _, d := range p.Deferred {
		if len(d.Variables) > 0 {
			return ApplyResult{State: p.Prior}, diag.Errorf(diag.CodeCLIPlanErrors, nil, "Plan is not complete", "The plan defers %s, and can only be shown. Plan again when what it waits for is known.", d.Addr)
		}
		deferring = eval.DeferUnknown
	}
	given := map[string]InputValue{}
	for name, v := range p.Variables {
		given[name] = InputValue{Value: v}
	}
	maps.Copy(given, o.Variables)
	vars, ds := e.inputs(given)
	if ds.HasErrors() {
		return ApplyResult{State: p.Prior}, ds
	}
	in := apply.Input{
		Plan: p, Eval: e.evaluation(vars, p.Timestamp, false, deferring), Providers: e.providers(),
		Stop: o.Stop, Now: e.o.Now, Every: o.Every, ShowSensitive: o.ShowSensitive,
	}
	if o.State != nil {
		created := 0
		for i := range p.Changes {
			if p.Changes[i].Op == plan.Create {
				created++
			}
		}
		if ds = append(ds, o.State.Start(ctx, len(p.Changes), created)...); ds.HasErrors() {
			return ApplyResult{State: p.Prior}, ds
		}
		in.State = o.State
	}
	if e.o.Provisioners != nil {
		in.Provisioners = e.o.Provisioners
	}
	defer onStop(o.Stop, func() { e.pool.Stop(ctx) })()
	res, more := apply.Run(ctx, in)
	ds = append(ds, more...)
	out := ApplyResult{State: res.State, Counts: res.Counts, Stopped: res.Stopped, Started: true, Providers: res.Providers}
	if o.State != nil {
		ds = append(ds, o.State.Write(ctx, res.State)...)
		ds = append(ds, o.State.End(res.State)...)
	}
	return out, ds
}

// onStop calls f when stop is closed. The returned function ends the watch and waits for f.
func onStop(stop <-chan struct{}, f func()) (end func()) {
	if stop == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { // owned by Plan or Apply, which ends it and waits for it
		defer wg.Done()
		select {
		case <-stop:
			f()
		case <-done:
		}
	}()
	return func() {
		close(done)
		wg.Wait()
	}
}

// inputs converts given values to values of the root variables. It skips undeclared variables.
func (e *Engine) inputs(given map[string]InputValue) (map[string]eval.Input, diag.List) {
	out := make(map[string]eval.Input, len(given))
	var ds diag.List
	for _, name := range slices.Sorted(maps.Keys(given)) {
		v := e.tree.Root.Config.Variables[name]
		if v == nil {
			continue
		}
		in, more := inputValue(v, given[name])
		ds = append(ds, more...)
		out[name] = in
	}
	return out, ds
}

// Incomplete returns the warnings to show after the apply of a plan that did not cover
// everything.
func Incomplete(p *plan.Plan) diag.List {
	if len(p.Targets) == 0 && len(p.Excludes) == 0 {
		return nil
	}
	return diag.Warnf(diag.CodeCLIAppliedWithTargets, nil, "Applied changes may be incomplete", "The plan was created with the -target or the -exclude option in effect, so some changes requested in the configuration may have been ignored and the output values may not be fully updated. Run the following command to verify that no other changes are pending:\n    terrace plan\n\n"+
		"Note that the -target and -exclude options are not suitable for routine use, and are provided only for exceptional situations such as recovering from errors or mistakes, or when Terrace specifically suggests to use it as part of an error message.")
}
