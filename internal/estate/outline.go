package estate

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/overlay"
	"github.com/terrace-iac/terrace/internal/lang/outliner"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// Outlines computes the outlines of the units of an estate, without state and providers. Known
// outputs pass from unit to unit. An unknown output has an identity, which its readers inherit. Its
// methods may be called concurrently.
type Outlines struct {
	e        *Estate
	loader   *unit.Loader
	o        OutlineOptions
	units    parallel.Cache[string, *UnitOutline]
	modules  parallel.Cache[string, diag.List] // errors of evaluations
	whole    parallel.Cache[string, bool]      // units whose outlines are complete
	schemas  parallel.Cache[string, func(addr.Provider) *schema.Provider]
	contents parallel.Cache[*workcopy.Parsed, content]
	dirs     func() map[string]bool // the directories of all units
}

// OutlineOptions configures Outlines. Show is required.
type OutlineOptions struct {
	// Rename converts strings before they are compared; see engine.OutlineOptions.
	Rename func(string) string
	// Show returns the name of a file as it is shown.
	Show func(path string) string
	// Schemas returns the schemas of providers; see engine.OutlineOptions. nil means that only the
	// schema of the built-in provider is available.
	Schemas ProviderSchemas
	// Twin returns the unit in the other revision. nil means that there is none. Both have the
	// schemas of the twin's working directory.
	Twin func(u *discovery.Unit) (*Outlines, *discovery.Unit)
	// Equal returns the outline of a unit in another revision if the unit is equal there, so that
	// its outputs are the same. ok is false if it may differ. nil means that no unit is equal.
	Equal func(ctx context.Context, u *discovery.Unit) (other *UnitOutline, ok bool)
	// UnitFilesOnly means that the revision of Before differs in no file that can be a part of a module or
	// can contain values of its variables.
	UnitFilesOnly bool
	// Before returns the unit in the revision that Options.Changed describes. nil means that there is
	// none.
	Before func(u *discovery.Unit) (*Outlines, *discovery.Unit)
}

// Outlines returns the outlines of the estate's units.
func (e *Estate) Outlines(o OutlineOptions) *Outlines {
	x := &Outlines{e: e, o: o}
	x.dirs = sync.OnceValue(func() map[string]bool {
		dirs := make(map[string]bool, len(e.Found.Units))
		for _, u := range e.Found.Units {
			dirs[u.Dir] = true
		}
		return dirs
	})
	x.loader = e.loader.WithOutputs(x.outputs)
	if o.Before != nil {
		x.loader.CompareOutputs(x.outputsDiffer)
	}
	return x
}

// outputsDiffer reports whether the outputs of a target may differ from those in the revision of Before.
func (x *Outlines) outputsDiffer(ctx context.Context, target string) bool {
	u := x.e.Found.ByID(target)
	if u == nil || u.Broken != nil {
		return true
	}
	other, twin := x.o.Before(u)
	if twin == nil || twin.Broken != nil {
		return true
	}
	if other.o.Equal != nil {
		if _, ok := other.o.Equal(ctx, twin); ok {
			return false
		}
	}
	now, ds := x.Outputs(ctx, u)
	old, more := other.Outputs(ctx, twin)
	return ds.HasErrors() || more.HasErrors() || now.outputs == cty.NilVal || old.outputs == cty.NilVal || !now.outputs.RawEquals(old.outputs)
}

// Text returns the text of a unit's file. ok is false if it cannot be read, or if the file has
// several units.
func (e *Estate) Text(u *discovery.Unit) (text string, ok bool) {
	if u.Broken != nil || u.Unit == nil || u.Module != "" {
		return "", false
	}
	b, err := e.o.Host.Files().Whole(u.Path)
	return string(b), err == nil
}

// A UnitOutline is the outline of one unit and its module.
type UnitOutline struct {
	*engine.Outlined                          // nil before Outlines.Of, and after Release
	Show             func(file string) string // returns the name of a file of the unit or its module as it is shown
	// Own contains the objects of the unit itself, without the inputs that Outlines.Late returns. Outlined
	// contains all.
	Own []*outline.Object
	// Content is the fingerprint of everything except the unit's inputs that determines the values
	// in its module. It is zero if it is not certain what determines them.
	Content outline.Print
	// Sensitive means that the module has sensitive variables.
	Sensitive bool

	x      *Outlines
	u      *discovery.Unit
	given  map[string]engine.InputValue // values of variables that do not come from the unit
	engine *engine.Engine
	again  func(moved func(addr.Instance) addr.Instance) (*engine.Outlined, diag.List)
	// Of the module: the warnings of opening it, and its files; nil after Release.
	warnings  diag.List
	module    *workcopy.Module
	unknown   outline.Print // identifies all outputs if the module is not on this machine
	outputs   cty.Value
	wrongLate diag.List                                      // the errors of Outlines.Late
	wrong     diag.List                                      // the errors of the unit itself
	failedIn  func() (*source.Set, func(file string) string) // the result of FailedIn; nil means unit files
	traced    *traced                                        // what is the same in the revision of Options.Changed; nil after Release
	late      []outline.Part

	mu       sync.Mutex
	released bool
}

// interrupted returns the error of a comparison that was canceled.
func interrupted() diag.List {
	return diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The comparison was interrupted.")
}

// Unit returns the outline of a unit without its module. The errors are those of the unit file and of the
// expressions in it. Errors of excluded units are no errors of the comparison, since nothing runs them.
func (x *Outlines) Unit(ctx context.Context, u *discovery.Unit) (*UnitOutline, diag.List) {
	if u.Broken != nil {
		return &UnitOutline{}, u.Broken
	}
	out, err := x.units.Do(ctx, u.ID, func() (*UnitOutline, bool) { return x.unit(ctx, u), true })
	if err != nil || ctx.Err() != nil {
		return &UnitOutline{}, interrupted()
	}
	return out, out.wrong
}

// Of returns the outline of a unit with its module.
func (x *Outlines) Of(ctx context.Context, u *discovery.Unit) (*UnitOutline, diag.List) {
	out, ds := x.Outputs(ctx, u)
	if !ds.HasErrors() {
		x.whole.Pure(u.ID, func() bool {
			var more diag.List
			if out.late, more = x.Late(ctx, u); u.Excluded == "" {
				out.wrongLate = more
			}
			return out.collect()
		})
		ds = slices.Concat(ds, out.wrongLate)
	}
	return out, ds
}

// FailedIn returns the set that contains the files to which errors from Of refer, and a function that returns the
// path of a file in this set. The set is nil if they refer to unit files.
func (o *UnitOutline) FailedIn() (files *source.Set, path func(file string) string) {
	if o.failedIn == nil {
		return nil, nil
	}
	return o.failedIn()
}

// fail records that the errors refer to the files of a module.
func (o *UnitOutline) fail(m *workcopy.Module) {
	o.failedIn = func() (*source.Set, func(string) string) {
		if m.Dir == nil {
			return nil, nil
		}
		return m.Dir.Parsed.Set, pathIn(m)
	}
}

// pathIn returns the function that returns the path of a file of a module.
func pathIn(m *workcopy.Module) func(file string) string {
	return func(file string) string {
		if !filepath.IsAbs(file) {
			file, _ = m.Dir.Origin(file)
		}
		return file
	}
}

// Late returns the parts of the inputs that the outline from Unit does not contain: the values that the module
// does not declare, if they may read outputs to which the unit has no edge. They are no dependencies, so that
// such units may read each other's outputs. Unit and Outputs, which readers of the unit's outputs call, must not
// compute them: the units would wait for each other. The result is nil for nearly all units.
func (x *Outlines) Late(ctx context.Context, u *discovery.Unit) ([]outline.Part, diag.List) {
	c := x.outliner(ctx, u)
	first := c.firstInputs()
	if first == nil {
		return nil, nil
	}
	settings, ds := c.in.Inputs(c.t, func(name string) bool { return !first(name) })
	c.add("inputs", nil, ds, func(o *outline.Object) {
		for _, s := range settings {
			if s.Name != "" { // Unit has the part for the unknown names
				o.Parts = c.input(o.Parts, s)
			}
		}
	})
	return c.out[0].Parts, c.wrong
}

// firstInputs returns a function that reports whether Unit computes an input, and not Late. nil means that Unit
// computes all.
func (c *unitOutliner) firstInputs() func(name string) bool {
	if c.u.Module == "" {
		if imports, ds := c.in.Imports(c.t); len(imports) == 0 && !ds.HasErrors() {
			return nil // the blocks of its own and of included files are edges
		}
	}
	m := c.x.e.module(c.t.Context(), c.u)
	if m.Root == nil || !m.Whole { // discovery also takes all inputs as declared
		return nil
	}
	declared := func(name string) bool { return m.Root.Variables[name] != nil }
	if names, ok := c.in.InputNames(c.t); ok && !slices.ContainsFunc(names, func(name string) bool { return !declared(name) }) {
		return nil // all edges are those of declared inputs
	}
	edges, ds := c.in.Dependencies(c.t, nil)
	if !ds.HasErrors() && !slices.ContainsFunc(edges, func(d unit.Edge) bool {
		return !slices.Contains(c.u.External, d.ID) && !slices.ContainsFunc(c.u.Needs, func(n *discovery.Unit) bool { return n.ID == d.ID })
	}) {
		return nil
	}
	return declared
}

// Outputs returns the outline of a unit with its outputs, for the units that read them.
func (x *Outlines) Outputs(ctx context.Context, u *discovery.Unit) (*UnitOutline, diag.List) {
	out, ds := x.Unit(ctx, u)
	if ds.HasErrors() {
		return out, ds
	}
	ds, err := x.modules.Do(ctx, u.ID, func() (diag.List, bool) { return out.evaluate(ctx), true })
	if err != nil || ctx.Err() != nil {
		return out, interrupted()
	}
	return out, ds
}

// Move computes the outline again with the addresses to which another revision moves instances.
func (o *UnitOutline) Move(head *UnitOutline) diag.List {
	if head.engine == nil || o.again == nil {
		return nil
	}
	moves := head.engine.MovedFrom(head.Outlined, o.Outlined)
	if len(moves) == 0 {
		return nil
	}
	again, ds := o.again(func(a addr.Instance) addr.Instance {
		if to, ok := moves[a]; ok {
			return to
		}
		return a
	})
	if !ds.HasErrors() {
		o.Outlined = again
		o.Objects = append(o.Objects, o.withLate()...)
	}
	return ds
}

// HasLate reports whether Late returned inputs for the unit. It is false before Outlines.Of.
func (o *UnitOutline) HasLate() bool { return len(o.late) > 0 }

// withLate returns Own with the inputs that Late returned.
func (o *UnitOutline) withLate() []*outline.Object {
	if len(o.late) == 0 {
		return o.Own
	}
	out := slices.Clone(o.Own)
	for i, x := range out {
		if x.Addr == "inputs" {
			all := *x
			all.Parts = slices.Concat(x.Parts, o.late)
			sortParts(all.Parts)
			out[i] = &all
		}
	}
	return out
}

// Warnings returns the warnings about the module, the set that contains its files, and a function that returns the
// path of a file in this set. It must be called after Outlines.Of and before Release.
func (o *UnitOutline) Warnings() (ds diag.List, files *source.Set, path func(file string) string) {
	if o.Outlined == nil || o.module == nil || o.module.Dir == nil {
		return nil, nil, nil
	}
	ds = append(slices.Clone(o.warnings), o.Outlined.Warnings()...)
	return ds, o.module.Dir.Parsed.Set, pathIn(o.module)
}

// Release frees everything except the outputs, which other units may read.
func (o *UnitOutline) Release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.released = true
	o.free()
}

func (o *UnitOutline) free() {
	if o.engine != nil {
		o.engine.Close()
	}
	if o.u != nil && (o.outputs != cty.NilVal || len(o.u.NeededBy) == 0) { // nothing evaluates the unit again
		for _, l := range []*unit.Loader{o.x.loader, o.x.e.loader, o.x.e.static} {
			o.u.In(l).ForgetFile()
		}
		o.x.e.dirs.Forget(o.u.ID)
	}
	o.Outlined, o.engine, o.again, o.Show, o.Own, o.given, o.traced, o.late = nil, nil, nil, nil, nil, nil, nil, nil
	o.warnings, o.module = nil, nil
}

// Forget discards the outline of a unit, with its outputs. Both are computed again on demand.
func (x *Outlines) Forget(u *discovery.Unit) {
	x.units.Forget(u.ID)
	x.modules.Forget(u.ID)
	x.whole.Forget(u.ID)
	x.schemas.Forget(u.ID)
	x.loader.ForgetOutputs(u.ID)
}

// collect adds the objects of the module. It reports whether there are some.
func (o *UnitOutline) collect() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Outlined == nil {
		return false
	}
	o.Collect()
	o.Objects = append(o.Objects, o.withLate()...)
	return true
}

// outputs implements unit.OutputsFunc.
func (x *Outlines) outputs(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
	u := x.e.Found.ByID(target)
	if u == nil && !stacks.Is(x.loader, target) {
		if u, _ = x.e.reader.Outside(t, target, at); u != nil && x.e.circular(t, x.loader, u) {
			u = nil
		}
	}
	if u == nil {
		name := x.e.Found.Name(target)
		return cty.DynamicVal.Mark(outliner.Identity{Name: "the outputs of " + name}), true, nil
	}
	o, ok := (*UnitOutline)(nil), false
	if x.o.Equal != nil {
		o, ok = x.o.Equal(t.Context(), u)
	}
	var ds diag.List
	if !ok {
		o, ds = x.Outputs(t.Context(), u)
	}
	v := o.outputs
	if v == cty.NilVal || ds.HasErrors() { // it has errors, or the comparison was interrupted
		v = cty.DynamicVal.Mark(outliner.Identity{Name: "the outputs of " + u.Called(), Print: x.failed(t, u, ds), Failed: ds.HasErrors()})
	}
	return v, true, nil
}

// failed returns the fingerprint of the outputs of a unit with errors. It is the same in both revisions only if the
// errors, the files that the unit reads, and the outputs on which it depends are the same.
func (x *Outlines) failed(t *demand.Task, u *discovery.Unit, ds diag.List) outline.Print {
	c := x.outliner(t.Context(), u)
	o := &outline.Object{Addr: "errors"}
	add := func(name string, print outline.Print) {
		o.Parts = append(o.Parts, outline.Part{Path: name, Print: print})
	}
	paths := map[string]bool{u.Path: true}
	for _, m := range ds.Errors() {
		add(m.Code, c.p.Text("error", m.Summary+"\x00"+m.Detail))
		if m.At != nil && filepath.IsAbs(m.At.Filename) {
			paths[m.At.Filename] = true
		}
	}
	if u.Broken == nil {
		all, _ := c.in.Files(c.t)
		for _, path := range all {
			paths[path] = true
		}
		if m := x.e.module(t.Context(), u); m.Dir != nil && m.Dir.Files != nil {
			_ = x.e.o.Host.Files().WalkDir(m.Dir.Files.Package, func(path string, d fs.DirEntry, err error) error {
				switch {
				case err != nil:
					return nil // the module cannot read it either
				case d.IsDir() && copytree.Private(d.Name()):
					return fs.SkipDir
				case d.Type().IsRegular() && overlay.IsConfig(d.Name()):
					paths[path] = true
				}
				return nil
			})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		add(sys.RelativeTo(u.Dir, path), c.p.Text("file", string(x.read(path))))
	}
	for _, n := range u.Needs {
		v, _, _ := x.outputs(t, n.ID, source.Range{})
		add(n.Name, c.p.Value(v))
	}
	sortParts(o.Parts)
	return c.p.Parts([]*outline.Object{o})
}

// read returns the text of a file, or nil if it cannot be read.
func (x *Outlines) read(path string) []byte {
	files := x.e.o.Host.Files()
	if u := x.e.o.Discovery.Overlay; u != nil {
		b, _ := u.ReadFile(files, path)
		return b
	}
	b, _ := files.Whole(path)
	return b
}

// unit computes the outline of a unit without its module.
func (x *Outlines) unit(ctx context.Context, u *discovery.Unit) *UnitOutline {
	out := &UnitOutline{x: x, u: u}
	c := x.outliner(ctx, u)
	c.traced = &traced{all: map[string]tracedBlock{}}
	now := x.same(ctx, u)
	if now != nil {
		c.now = now.traced
	}
	shared := now != nil && now.traced.module != nil && now.x.o.UnitFilesOnly
	if shared {
		x.e.dirs.Adopt(u.ID, now.traced.module)
	}
	c.first = c.firstInputs()
	c.blocks()
	out.traced = c.traced
	m := x.e.module(ctx, u)
	if c.traced.same("terraform", "remote_state", "generate", "settings") {
		c.traced.module = m
	}
	if m.Root == nil {
		d := c.unknown("module", "the module is not on this machine")
		if print, ok := c.absent(); ok {
			d.Parts[0].Print = print
		}
		c.out = append(c.out, d)
		out.unknown = c.p.Parts(c.out) // outputs also depend on the inputs
	} else if !m.Whole {
		c.out = append(c.out, c.unknown("module", "files that a hook or an unknown value writes are not known before a run"))
	} else { // so that it may change if it is unknown in the other revision
		c.out = append(c.out, &outline.Object{Kind: outline.Unit, Addr: "module", At: c.at(nil), Parts: []outline.Part{{Path: " content", Print: c.p.Text("module", "known"), Fixed: true, At: c.at(nil)}}})
	}
	out.Own = c.out
	if u.Excluded == "" {
		out.wrong = slices.Concat(u.Invalid.Errors(), c.wrong, m.Diags.Errors(), c.missing(m)).Once()
	}
	switch {
	case m.Dir == nil || m.Root == nil:
	case shared && now.traced.alone:
		c.alone = true
	default:
		var ds diag.List
		out.given, ds = x.e.runner.Given(c.t, u, m.Dir, m.Root.Variables)
		c.alone = len(out.given) == 0 && !ds.HasErrors()
	}
	c.traced.alone = c.alone && (m.Dir.Terraform == nil || len(m.Dir.Terraform.ExtraArguments) == 0)
	out.Content, out.Sensitive = c.content(ctx, m)
	return out
}

// same returns the outline of a unit in the other revision, with what is the same in both. It returns
// nil if that is not known.
func (x *Outlines) same(ctx context.Context, u *discovery.Unit) *UnitOutline {
	if x.o.Twin == nil {
		return nil
	}
	other, twin := x.o.Twin(u)
	if twin == nil || twin.ID != u.ID || other.o.Before == nil || other.e.o.Changed == nil || x.e.o.Discovery.Overlay.Generated() || other.e.o.Discovery.Overlay.Generated() {
		return nil
	}
	now, ds := other.Unit(ctx, twin)
	if ds.HasErrors() || now.traced == nil {
		return nil
	}
	return now
}

// outliner returns the collector of a unit's objects.
func (x *Outlines) outliner(ctx context.Context, u *discovery.Unit) *unitOutliner {
	t, in := x.loader.Task(ctx), u.In(x.loader)
	return &unitOutliner{x: x, u: u, in: in, t: t, p: outliner.NewUnitPrinter(in.OriginOfSet(t), x.text, x.o.Rename)}
}

// evaluate opens the module and sets the outputs.
func (o *UnitOutline) evaluate(ctx context.Context) diag.List {
	x, u := o.x, o.u
	t, in := x.loader.Task(ctx), u.In(x.loader)
	if m := x.e.module(ctx, u); unreadable(m) && u.Excluded == "" {
		ds, set := m.Dir.RootErrors()
		if o.failedIn = func() (*source.Set, func(string) string) { return set, func(file string) string { return file } }; ds.HasErrors() {
			return ds
		}
	}
	m, e, explain, ds := x.e.openAlone(ctx, t, u, in, x.o.Show, o.given)
	o.mu.Lock()
	defer o.mu.Unlock()
	if e == nil {
		o.fail(m)
		return ds
	}
	if ds.HasErrors() && u.Excluded == "" {
		e.Close()
		return ds.Errors()
	}
	ds = ds.Warnings()
	if o.released { // only the outputs are read
		defer o.free()
	}
	o.engine, o.warnings, o.module = e, ds, m
	o.Show = func(file string) string {
		name, _ := explain.Show(file)
		return name
	}
	given := map[string]*outline.Part{}
	for _, x := range o.Own {
		for i := range x.Parts {
			if x.Addr == "inputs" {
				given[x.Parts[i].Path] = &x.Parts[i]
			}
		}
	}
	schemas := x.schemasOf(ctx, u, e)
	o.again = func(moved func(addr.Instance) addr.Instance) (*engine.Outlined, diag.List) {
		return e.Outline(ctx, engine.OutlineOptions{Explain: explain, Rename: x.o.Rename, Moved: moved, Schema: schemas, Inputs: given, Later: moved == nil})
	}
	if o.Outlined, ds = o.again(nil); ds.HasErrors() {
		o.fail(m)
		return ds
	}
	if m.Root == nil {
		o.outputs = cty.DynamicVal.Mark(outliner.Identity{Name: "the outputs of " + u.Called(), Print: o.unknown})
		return nil
	}
	o.outputs = outputsOf(o.Outlined, u, m.Root)
	return nil
}

// unreadable reports whether a module is on this machine and has errors that no hook can mend.
func unreadable(m *workcopy.Module) bool { return m.Root == nil && m.Dir != nil && m.Whole }

// missing returns an error if the source of the module does not exist on this machine, unless hooks may create it.
func (c *unitOutliner) missing(m *workcopy.Module) diag.List {
	if m.Root != nil || m.Dir != nil {
		return nil
	}
	tf, ds := c.in.Terraform(c.t)
	if ds.HasErrors() || tf == nil || len(tf.Before)+len(tf.After) > 0 {
		return nil
	}
	return c.x.e.dirs.CheckSource(c.t.Context(), c.u.Unit, tf).Errors()
}

// schemasOf returns the function that returns the schemas of the providers of a unit, or nil. e is the
// engine of its module, or of that of the unit in the other revision.
func (x *Outlines) schemasOf(ctx context.Context, u *discovery.Unit, e *engine.Engine) func(addr.Provider) *schema.Provider {
	if x.o.Twin != nil {
		if other, twin := x.o.Twin(u); twin != nil && twin.Broken == nil {
			return other.schemasOf(ctx, twin, e)
		}
	}
	if x.o.Schemas == nil {
		return nil
	}
	return x.schemas.Local(u.ID, func() (func(addr.Provider) *schema.Provider, bool) {
		m := x.e.module(ctx, u)
		if m.Dir == nil {
			return nil, ctx.Err() == nil
		}
		return x.o.Schemas(ctx, m.Dir.Path, e.Requirements()), ctx.Err() == nil
	})
}

// content is the fingerprint of the files of a module and of the modules that it calls.
type content struct {
	outline.Print
	sensitive bool // the module has sensitive variables
}

// content returns UnitOutline.Content and UnitOutline.Sensitive.
func (c *unitOutliner) content(ctx context.Context, m *workcopy.Module) (print outline.Print, sensitive bool) {
	if unreadable(m) {
		return print, false
	}
	if m.Root == nil { // there is no object of a module
		return c.p.Text("module", ""), false
	}
	if !m.Whole || m.Diags.HasErrors() {
		return print, false
	}
	if !c.alone {
		return print, false
	}
	of := c.x.contents.Local(m.Dir.Parsed, func() (content, bool) { return c.ofFiles(ctx, m), ctx.Err() == nil })
	return of.Print, of.sensitive
}

// ofFiles returns the fingerprint of the files of a module. It is zero if the values in the module
// depend on anything else than on these files and on the values of its variables.
func (c *unitOutliner) ofFiles(ctx context.Context, m *workcopy.Module) (out content) {
	e, _ := engine.Open(ctx, engine.Options{
		Dir: m.Dir.Path, Set: m.Dir.Parsed.Set, Sources: &m.Dir.Parsed.Sources, Now: c.x.e.o.Machine.Now, ReadFile: c.x.e.o.Host.Files().Whole,
	})
	if e == nil {
		return out
	}
	defer e.Close()
	tree := e.Tree()
	if tree == nil || !tree.Constant {
		return out
	}
	text := m.Dir.Files.Package + "\x00" + m.Dir.Files.Sub
	for _, f := range tree.Files() {
		if f.Bytes == nil || readsFiles().Match(f.Bytes) {
			return out
		}
		text += "\x00" + f.Path + "\x00" + strconv.Itoa(len(f.Bytes)) + "\x00" + string(f.Bytes)
	}
	for _, v := range m.Root.Variables {
		out.sensitive = out.sensitive || v.Sensitive
	}
	out.Print = c.p.Text("module", text)
	return out
}

// readsFiles matches the names of functions whose results depend on files.
var readsFiles = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(file[a-z0-9]*|template[a-z]*)\s*\(`) })

// openAlone opens the module of a unit for an evaluation without state and without providers, with
// the values that the unit gives. The engine is nil if there are errors; otherwise the caller must
// close it. If the module is not on this machine, the engine has no configuration and m.Root is nil.
// show returns the name of a file as it is shown. other contains the values of variables that do not
// come from the unit. With an engine, the errors are those of the inputs; the module then has none.
func (e *Estate) openAlone(ctx context.Context, t *demand.Task, u *discovery.Unit, in *unit.Unit, show func(path string) string, other map[string]engine.InputValue) (m *workcopy.Module, _ *engine.Engine, explain engine.ExplainOptions, _ diag.List) {
	m = e.module(ctx, u)
	o := engine.Options{Dir: u.Dir, Set: &source.Set{}, Sources: &engine.Sources{FS: nothing{}}, Now: e.o.Machine.Now, ReadFile: e.o.Host.Files().Whole}
	if files := e.o.Host.Files(); files.Fixed() {
		o.Stat, o.ReadDir, o.Readlink = files.Stat, files.ReadDir, files.Readlink
	}
	if m.Dir != nil && m.Root != nil {
		o.Dir, o.Set, o.Sources, o.Files, o.FilesOnDisk = m.Dir.Path, m.Dir.Parsed.Set, &m.Dir.Parsed.Sources, m.Dir.Files, !m.Whole
	}
	o.ReadState = func(context.Context, engine.ReadStateRequest) (*state.State, diag.List) { return nil, nil } // no state is read
	values := map[string]engine.InputValue{}
	var wrong diag.List
	if m.Root != nil {
		given, waits, ds := inputs.Of(t, in, m.Root.Variables)
		if wrong = ds.Errors(); len(wrong) > 0 {
			given = map[string]engine.InputValue{}
		}
		inputs.Override(given, waits, other)
		for name, v := range given {
			if v.Text == nil {
				v.Value = outliner.WithoutIdentities(v.Value)
			}
			values[name] = v
		}
	}
	o.Value = engine.Given(values)
	opened, ds := engine.Open(ctx, o)
	if opened == nil || opened.Tree() == nil {
		return m, nil, explain, ds.Errors()
	}
	explain = engine.ExplainOptions{Variables: values, Unit: in.Origin(t), UnitSet: e.loader.Sources(), Show: shown(m, show)}
	return m, opened, explain, append(wrong, ds.Warnings()...)
}

// module returns the module of a unit, as it is known without outputs.
func (e *Estate) module(ctx context.Context, u *discovery.Unit) *workcopy.Module {
	return e.dirs.Module(e.static.Task(ctx), u.In(e.static))
}

// shown returns the function that returns the name of a file of a module as it is shown, and its layer.
func shown(m *workcopy.Module, show func(path string) string) func(file string) (name, layer string) {
	return func(file string) (name, layer string) {
		if !filepath.IsAbs(file) && m.Dir != nil {
			file, layer = m.Dir.Origin(file)
		}
		return show(file), layer
	}
}

// given returns the values of variables of a unit's module that do not come from the unit.
func (e *Estate) given(ctx context.Context, t *demand.Task, u *discovery.Unit) map[string]engine.InputValue {
	m := e.module(ctx, u)
	if m.Dir == nil || m.Root == nil {
		return nil
	}
	other, _ := e.runner.Given(t, u, m.Dir, m.Root.Variables)
	return other
}

// text returns the text of a range in a unit file.
func (x *Outlines) text(at source.Range) []byte {
	if f := x.loader.Sources().File(at.Filename); f != nil && at.End.Byte <= len(f.Bytes) && at.Start.Byte <= at.End.Byte {
		return f.Bytes[at.Start.Byte:at.End.Byte]
	}
	return nil
}

// nothing is the file system of a unit whose module is not on this machine.
type nothing struct{}

func (nothing) ReadDir(string) ([]fs.DirEntry, error) { return nil, nil }

func (nothing) ReadFile(string) ([]byte, error) { return nil, fs.ErrNotExist }

// A unitOutliner collects the objects of a unit.
type unitOutliner struct {
	x   *Outlines
	u   *discovery.Unit
	in  *unit.Unit
	t   *demand.Task
	p   *outliner.UnitPrinter
	out []*outline.Object
	// alone means that all values of the module's variables come from the unit.
	alone  bool
	first  func(name string) bool // reports whether an input is added; nil means all; see Outlines.Late
	now    *traced                // what is the same in the other revision; may be nil
	traced *traced                // of this unit
	// Of the block that is added: what differs in the other revision, and whether it has errors or its value
	// depends on the text of files.
	tracking *unit.Tracking
	failed   bool
	wrong    diag.List // the errors of all blocks
}

// # Blocks that are the same in both revisions
//
// The outline of a unit in the new revision records which of its blocks are certainly the same in the
// old revision; see unit.Env.Changed. The outline in the old revision takes them over. Positions in
// them are those of the new revision, which is of no consequence: positions are only shown for what
// differs.

// A traced contains the blocks of a unit, by name.
type traced struct {
	all    map[string]tracedBlock
	inputs map[string][]outline.Part // parts of the inputs that are the same if the set of inputs is
	module *workcopy.Module          // nil if its files may be others
	alone  bool                      // variables have no values from files, and there are no extra arguments
}

// A tracedBlock contains the objects of a block. same means that they are the same in the old revision.
type tracedBlock struct {
	objects []*outline.Object
	same    bool
}

func (x *traced) same(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !x.all[name].same })
}

// block adds the objects of a block, with add. The unit of add must be used for the values.
func (c *unitOutliner) block(name string, add func(in *unit.Unit)) {
	if c.now != nil && (name != "inputs" || c.first == nil) {
		if b := c.now.all[name]; b.same {
			c.out = append(c.out, b.objects...)
			c.traced.all[name] = b
			return
		}
	}
	in, tracking := c.in.Tracked()
	from := len(c.out)
	c.tracking, c.failed = tracking, false
	add(in)
	c.traced.all[name] = tracedBlock{slices.Clone(c.out[from:]), tracking.Same() && !c.failed}
}

// outputsOf returns the outputs of a unit as its readers see them.
func outputsOf(o *engine.Outlined, u *discovery.Unit, root *config.Module) cty.Value {
	all := map[string]cty.Value{}
	for name, d := range root.Outputs {
		if d.Ephemeral {
			continue
		}
		v := o.Output(name, u.Called(), u.ID)
		if bare, _ := v.Unmark(); bare.IsKnown() && bare.IsNull() {
			continue // state does not keep null outputs
		}
		v = hidden(v, d.Sensitive)
		all[name] = v
	}
	return cty.ObjectVal(all)
}

// hidden replaces the mark of sensitive values by the one for values of other units.
func hidden(v cty.Value, sensitive bool) cty.Value {
	if !value.AnyMark(v, func(m any) bool { _, ok := m.(outliner.Identity); return !ok }) {
		if sensitive {
			return v.Mark(value.Hidden)
		}
		return v
	}
	bare, paths := v.UnmarkDeepWithPaths()
	for i := range paths {
		kept := cty.ValueMarks{}
		for m := range paths[i].Marks {
			switch m {
			case value.Sensitive:
				kept[value.Hidden] = struct{}{}
			case value.Ephemeral:
			default:
				if _, ok := m.(outliner.Identity); ok {
					kept[m] = struct{}{}
				}
			}
		}
		paths[i].Marks = kept
	}
	v = bare.MarkWithPaths(paths)
	if sensitive {
		v = v.Mark(value.Hidden)
	}
	return v
}

// unknown returns an object whose value is unknown. It is the same value as long as no file changes
// that the unit reads, and none in the directory of its module.
func (c *unitOutliner) unknown(name, why string) *outline.Object {
	return &outline.Object{Kind: outline.Unit, Addr: name, Parts: []outline.Part{{Path: " content", Print: c.files(), Unknown: true, Fixed: true, Why: []string{why}, At: c.at(nil)}}}
}

// absent returns the fingerprint of a module that is not on this machine: its source, the files in the directory of
// the unit, which are copied into it, and the generated files. ok is false if the source is not known. It must be
// called after blocks.
func (c *unitOutliner) absent() (print outline.Print, ok bool) {
	var all []*outline.Object
	for _, o := range c.out {
		switch {
		case o.Addr == "terraform":
			ok = slices.ContainsFunc(o.Parts, func(p outline.Part) bool { return p.Path == ".source" && !p.Unknown })
			all = append(all, o)
		case strings.HasPrefix(o.Addr, "generate."):
			all = append(all, o)
		}
	}
	if !ok {
		return print, false
	}
	files := c.x.e.o.Host.Files()
	copied := &outline.Object{Addr: "files"}
	err := files.WalkDir(c.u.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == c.u.Dir:
			return nil
		case strings.HasPrefix(d.Name(), "."), d.IsDir() && c.x.dirs()[path]:
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.Type().IsRegular() && filepath.Ext(path) != ".hcl": // those are files of units
			b, err := files.Whole(path)
			copied.Parts = append(copied.Parts, outline.Part{Path: sys.RelativeTo(c.u.Dir, path), Print: c.p.Text("file", string(b))})
			return err
		}
		return nil
	})
	return c.p.Parts(append(all, copied)), err == nil
}

// at returns a range, or the beginning of the unit's file.
func (c *unitOutliner) at(r *source.Range) source.Range {
	if r != nil {
		return *r
	}
	return source.Range{Filename: c.u.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
}

// files returns the fingerprint of all files that the unit reads.
func (c *unitOutliner) files() outline.Print {
	c.failed = true
	all, _ := c.in.Files(c.t)
	text := ""
	for _, path := range append([]string{c.u.Path}, slices.Sorted(slices.Values(all))...) {
		b := c.x.read(path)
		text += path + "\x00" + strconv.Itoa(len(b)) + "\x00" + string(b)
	}
	return c.p.Text("files", text)
}

// add adds an object with the parts of a block. If the block has errors, its value is unknown.
func (c *unitOutliner) add(name string, at *source.Range, ds diag.List, parts func(o *outline.Object)) {
	c.failed = c.failed || len(ds) > 0
	if errs := ds.Errors(); len(errs) > 0 {
		c.wrong = append(c.wrong, errs...)
		o := c.unknown(name, "it cannot be evaluated: "+errs[0].Summary)
		c.out = append(c.out, o)
		return
	}
	o := &outline.Object{Kind: outline.Unit, Addr: name, At: c.at(at)}
	parts(o)
	sortParts(o.Parts)
	if len(o.Parts) > 0 || name == "inputs" { // so that the first and the last input are parts that differ
		c.out = append(c.out, o)
	}
}

// sortParts sorts parts by path.
func sortParts(all []outline.Part) {
	slices.SortStableFunc(all, func(a, b outline.Part) int { return strings.Compare(a.Path, b.Path) })
}

// input adds the parts of an input. The keys of the value of a sensitive variable are secret, too.
func (c *unitOutliner) input(to []outline.Part, s *unit.Setting) []outline.Part {
	v := s.Value
	if ty := v.Type(); ty.IsMapType() || ty.IsObjectType() {
		m := c.x.e.module(c.t.Context(), c.u)
		if m.Root != nil && m.Root.Variables[s.Name] != nil && m.Root.Variables[s.Name].Sensitive {
			v = v.Mark(value.Sensitive)
		}
	}
	return c.p.Split(to, hcl.Traversal{hcl.TraverseRoot{Name: "inputs"}, hcl.TraverseAttr{Name: s.Name}}, v, "."+s.Name, c.at(s.At))
}

// fixed adds a part that is plain data.
func (c *unitOutliner) fixed(o *outline.Object, name string, at *source.Range, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		return
	}
	o.Parts = append(o.Parts, outline.Part{Path: " " + name, Print: c.p.Text("data", string(b)), Fixed: true, At: c.at(at)})
}

// blocks adds the objects of the unit.
func (c *unitOutliner) blocks() {
	c.block("inputs", c.inputs)
	c.block("terraform", func(in *unit.Unit) {
		tf, ds := in.Terraform(c.t)
		c.add("terraform", nil, ds, func(o *outline.Object) {
			if tf != nil {
				c.terraform(o, tf)
			}
		})
	})
	c.block("remote_state", func(in *unit.Unit) {
		rs, ds := in.RemoteState(c.t)
		c.add("remote_state", nil, ds, func(o *outline.Object) {
			if rs != nil {
				c.remoteState(o, rs)
			}
		})
	})
	c.block("generate", c.generate)
	c.block("dependencies", func(in *unit.Unit) {
		edges, ds := in.Dependencies(c.t, nil)
		c.add("dependencies", nil, ds, func(o *outline.Object) {
			seen := map[string]bool{}
			for _, d := range edges {
				if name := c.x.e.Found.Name(d.ID); !seen[name] {
					seen[name] = true
					c.fixed(o, name, d.At, "dependency")
				}
			}
		})
	})
	c.block("exclude", func(in *unit.Unit) {
		ex, ds := in.Exclude(c.t)
		c.add("exclude", nil, ds, func(o *outline.Object) {
			if ex != nil {
				n := *ex
				n.At = nil
				o.At = c.at(ex.At)
				c.fixed(o, "block", ex.At, n)
			}
		})
	})
	c.block("errors", func(in *unit.Unit) {
		errs, ds := in.Errors(c.t)
		c.add("errors", nil, ds, func(o *outline.Object) {
			if errs == nil {
				return
			}
			o.At = c.at(errs.At)
			c.fixed(o, "retry", errs.At, errs.Retry)
			for _, i := range errs.Ignore {
				i.Signals = cty.NilVal
				c.fixed(o, "ignore."+i.Name, errs.At, []any{i.Name, i.IgnorableErrors, i.Message})
			}
		})
	})
	c.block("settings", c.settings)
}

// inputs adds the inputs. Those that are the same in the other revision are taken from there if the set
// of inputs is the same, too.
func (c *unitOutliner) inputs(in *unit.Unit) {
	same := map[string][]outline.Part{}
	wanted := c.first
	if c.first == nil && c.now != nil && c.now.inputs != nil {
		same = c.now.inputs
		wanted = func(name string) bool { _, ok := same[name]; return !ok }
	}
	settings, ds := in.Inputs(c.t, wanted)
	all := true
	c.add("inputs", nil, ds, func(o *outline.Object) {
		for _, parts := range same {
			o.Parts = append(o.Parts, parts...)
		}
		for _, s := range settings {
			if s.Name == "" {
				o.Parts = append(o.Parts, outline.Part{Path: " names", Print: c.files(), Unknown: true, Fixed: true, At: c.at(s.At)})
				continue
			}
			from := len(o.Parts)
			o.Parts = c.input(o.Parts, s)
			if wanted == nil && s.Same {
				same[s.Name] = slices.Clone(o.Parts[from:])
			} else {
				all = false
			}
		}
	})
	if c.first == nil && c.tracking.Same() && !c.failed {
		c.traced.inputs = same
	}
	c.failed = c.failed || !all || c.first != nil // then the block does not contain all inputs
}

// remoteState adds the parts of the remote_state block.
func (c *unitOutliner) remoteState(o *outline.Object, rs *unit.RemoteState) {
	o.At = c.at(rs.At)
	c.fixed(o, "backend", rs.At, []any{rs.Backend, rs.Generate, rs.DisableInit, rs.DisableDependencyOptimization})
	for name, v := range map[string]cty.Value{"config": rs.Config, "encryption": rs.Encryption} {
		if v != cty.NilVal {
			from := len(o.Parts)
			o.Parts = c.p.Split(o.Parts, hcl.Traversal{hcl.TraverseRoot{Name: "remote_state"}, hcl.TraverseAttr{Name: name}}, v, "."+name, c.at(rs.At))
			for i := from; i < len(o.Parts); i++ {
				o.Parts[i].Secret = true
			}
		}
	}
}

// generate adds the generate blocks.
func (c *unitOutliner) generate(in *unit.Unit) {
	all, ds := in.Generate(c.t)
	c.add("generate", nil, ds, func(*outline.Object) {})
	for _, g := range all {
		c.add("generate."+g.Name, g.At, nil, func(o *outline.Object) {
			n := g
			n.At, n.Contents = nil, cty.NilVal
			c.fixed(o, "settings", g.At, []any{n.Path, n.IfExists, n.IfDisabled, n.CommentPrefix, n.DisableSignature, n.Disable, n.Format})
			if g.Contents != cty.NilVal {
				o.Parts = append(o.Parts, outline.Part{Path: " contents", Print: c.p.Value(g.Contents), Unknown: !g.Contents.IsWhollyKnown(), Secret: g.HandedIn, Fixed: true, At: c.at(g.At)})
			}
		})
	}
}

// settings adds the arguments that are not in a block.
func (c *unitOutliner) settings(in *unit.Unit) {
	sc, ds := in.Scalars(c.t)
	c.add("settings", nil, ds, func(o *outline.Object) {
		for name, s := range map[string]*unit.Setting{
			"download_dir": sc.DownloadDir, "prevent_destroy": sc.PreventDestroy, "iam_role": sc.IAMRole, "terraform_binary": sc.TerraformBinary,
			"terraform_version_constraint": sc.TerraformVersionConstraint, "terragrunt_version_constraint": sc.TerragruntVersionConstraint,
			"iam_assume_role_session_name": sc.IAMAssumeRoleSessionName, "iam_assume_role_duration": sc.IAMAssumeRoleDuration,
		} {
			if s != nil {
				o.Parts = append(o.Parts, outline.Part{Path: " " + name, Print: c.p.Value(s.Value), Unknown: !s.Value.IsWhollyKnown(), Fixed: true, At: c.at(s.At)})
			}
		}
	})
}

// terraform adds the parts of the terraform block.
func (c *unitOutliner) terraform(o *outline.Object, tf *unit.Terraform) {
	o.At = c.at(tf.At)
	if tf.Source != nil {
		o.Parts = append(o.Parts, outline.Part{Path: ".source", Print: c.p.Value(tf.Source.Value), Unknown: !tf.Source.Value.IsWhollyKnown(), At: c.at(tf.Source.At)})
	}
	c.fixed(o, "settings", tf.At, []any{tf.Version, tf.IncludeInCopy, tf.ExcludeFromCopy, tf.CopyLockFile, tf.Mutable})
	for _, x := range tf.ExtraArguments {
		at := x.At
		x.At = nil
		c.fixed(o, "extra_arguments."+x.Name, at, x)
	}
	for kind, hooks := range map[string][]unit.Hook{"before_hook": tf.Before, "after_hook": tf.After, "error_hook": tf.Errors} {
		for i, h := range hooks {
			at := h.At
			h.At = nil
			c.fixed(o, kind+"["+strconv.Itoa(i)+"] "+h.Name, at, h)
		}
	}
}
