package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/sys"
	estates "github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/modules"
	"github.com/terrace-iac/terrace/internal/estate/run"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/migrate"
	"github.com/zclconf/go-cty/cty"
)

// An opening contains everything with which unit and stack files are read for one result.
type opening struct {
	reading  *reading
	redactor *diag.Redactor
	dir      *workdir.Directory
	overlay  *stacks.Overlay // documents that do not exist on disk, and what stacks generate
	options  estates.Options
	ok       bool // false if the settings of the user cannot be read
}

// opening prepares the reading of the unit files below a directory.
func (s *Session) opening(root string) *opening {
	op := &opening{reading: newReading(s.Files, root), redactor: &diag.Redactor{}, overlay: &stacks.Overlay{}}
	op.dir = s.directory(root, op.reading)
	op.dir.View = nil
	plugins := s.plugins
	if plugins == nil {
		return op
	}
	op.ok = true
	plugins = plugins.In(op.dir)
	for _, b := range s.Files.Open() {
		if _, err := os.Stat(b.Path); err != nil {
			op.reading.note(b.Path)
			op.overlay.Replace(b.Path, b.Text.Bytes)
		}
	}
	op.options = estates.Options{
		Discovery: discovery.Settings{Root: root, Whole: true, Overlay: op.overlay},
		Request:   unit.Request{Command: "plan", Args: []string{"plan"}},
		Machine:   unit.Machine{Environ: op.dir.Env, Run: s.trust.runner(op.reading), Now: op.dir.Now, Home: op.dir.HomeOrError},
		Who:       s.who, Checking: true, Tolerant: true, UnknownValues: true, Redactor: op.redactor,
		Sources: workcopy.Sources{Fetch: modules.Fetched(op.dir, plugins.Config)},
		Host:    estates.Host{Plugins: plugins, Backends: op.dir.Backends(), Texts: op.dir.Set},
	}
	return op
}

// A Unit is the result of reading the units of one file.
type Unit struct {
	Path  string
	Diags diag.List // with absolute paths

	s        *Session
	reading  *reading
	redactor *diag.Redactor
	overlay  *stacks.Overlay
	options  estates.Options
	estate   *estates.Estate
	units    []*discovery.Unit // several for an environment file; none if the file cannot be read
	env      unit.Env
	using    gate // held while the unit is evaluated
	ruled    *Rulings
	// instances is as in Module.
	instances map[string][]string
}

// Unit returns the result for a unit file with the files as they are now. It is nil if ctx ended. The
// file may be one that a stack file generates; see Session.Stack.
func (s *Session) Unit(ctx context.Context, path string) *Unit {
	return s.units.get(ctx, s, path, s.read)
}

func (u *Unit) read() *reading { return u.reading }

func (u *Unit) close() {}

// UnitFile returns the path of the unit file in a directory, which may not exist.
func (s *Session) UnitFile(dir string) string { return s.Files.UnitFile(dir) }

// UnitFile returns the path of the unit file in a directory, which may not exist. As for commands, a
// file in JSON syntax comes first.
func (f *Files) UnitFile(dir string) string {
	if path := filepath.Join(dir, unit.DefaultJSONName); f.Exists(path) {
		return path
	}
	return filepath.Join(dir, unit.DefaultName)
}

// IsUnit reports whether a file contains units, and not parts that units read.
func (s *Session) IsUnit(path string) bool {
	if index.IsDefault(path) {
		return true
	}
	return hasUnits(s.Index.File(path))
}

// hasUnits reports whether a file declares units as an environment file does.
func hasUnits(f *index.File) bool {
	return f.Kind == index.Unit && slices.ContainsFunc(f.Names, func(o index.Occurrence) bool {
		return o.Role == index.Declares && strings.HasPrefix(o.Addr, "module.")
	})
}

// read opens a unit and checks it.
func (s *Session) read(ctx context.Context, path string, _ *Unit) *Unit {
	u, ds := s.openUnit(ctx, path)
	if len(u.units) > 0 {
		ds = append(ds, u.estate.Check(ctx, false)...)
		for _, one := range u.units {
			ds = append(ds, one.Check(u.estate.Task(ctx))...)
		}
	}
	unknown := s.lacksValues(path)
	for _, m := range ds.Rename(u.overlay.Source).Once() {
		switch m.Code {
		case diag.CodeUnitMocksUsed, diag.CodeEstateNoExec:
		case diag.CodeUnitUnknown, diag.CodeUnitUnknownDependency:
			if !unknown {
				u.Diags = append(u.Diags, m)
			}
		default:
			u.Diags = append(u.Diags, m)
		}
	}
	return u
}

// lacksValues reports whether a unit file uses values that no file gives it, so that they are unknown.
func (s *Session) lacksValues(path string) bool {
	dir := filepath.Dir(path)
	return s.generator(dir) == "" && !s.Files.Exists(filepath.Join(dir, unit.ValuesName)) &&
		slices.ContainsFunc(s.Index.File(path).Names, func(o index.Occurrence) bool { return o.Via == "values" })
}

// Values explains the values at addresses in a file as one unit sees them. The unit is not kept afterwards.
// An explanation is nil if the unit has errors or ctx ended.
func (s *Session) Values(ctx context.Context, path, file string, addresses []string) []*explanation.Explanation {
	out := make([]*explanation.Explanation, len(addresses))
	release, ok := s.take(ctx)
	defer release()
	if !ok {
		return out
	}
	u, _ := s.openUnit(ctx, path)
	for i, address := range addresses {
		if x, ds := u.Explain(ctx, file, address, ""); !ds.HasErrors() {
			out[i] = x
		}
	}
	return out
}

// ModuleValues is Values for the root module in a directory.
func (s *Session) ModuleValues(ctx context.Context, dir string, addresses []string) []*explanation.Explanation {
	out := make([]*explanation.Explanation, len(addresses))
	release, ok := s.take(ctx)
	defer release()
	if !ok {
		return out
	}
	m := s.load(ctx, dir, nil)
	defer m.close()
	for i, address := range addresses {
		if x, ds := m.Explain(ctx, address); !ds.HasErrors() {
			out[i] = x
		}
	}
	return out
}

// openUnit opens a unit without checking it.
func (s *Session) openUnit(ctx context.Context, path string) (*Unit, diag.List) {
	root := filepath.Dir(path)
	op := s.opening(root)
	u := &Unit{Path: path, s: s, using: newGate(), reading: op.reading, redactor: op.redactor, overlay: op.overlay, options: op.options}
	if !op.ok {
		return u, nil
	}
	if stack := s.generator(root); stack != "" {
		s.generate(ctx, op, stack)
	}
	u.env = op.options.UnitEnv(root)
	u.env.Machine.Run = sys.SkipPrograms               // a conversion is tried with texts that nobody has saved
	for _, name := range s.Index.File(path).Searched { // a file that appears in a parent directory changes the unit
		for at := filepath.Dir(root); ; at = filepath.Dir(at) {
			u.reading.note(filepath.Join(at, name))
			if s.Files.Exists(filepath.Join(at, name)) || filepath.Dir(at) == at {
				break
			}
		}
	}
	u.reading.note(filepath.Join(root, unit.ValuesName)) // also if there is none yet
	op.publish(filepath.Join(root, unit.ValuesName))
	var ds diag.List
	u.estate, u.units, ds = estates.OpenFile(ctx, op.options, path)
	return u, ds
}

// WithImports returns the text of the unit file with import blocks in place of its includes, and its text
// before. changes is false if the result would mean something else, or if other files had to change too.
func (u *Unit) WithImports(ctx context.Context) (before, after []byte, changes bool) {
	if !u.using.enter(ctx) {
		return nil, nil, false
	}
	defer u.using.leave()
	if len(u.units) == 0 {
		return nil, nil, false
	}
	plan, err := migrate.Imports(ctx, u.env, []string{u.Path}, nil)
	if err != nil || len(plan.Changes) != 1 || plan.Changes[0].Path != u.Path {
		return nil, nil, false
	}
	return plan.Changes[0].Before, plan.Changes[0].After, true
}

// Explain explains the value at an address in the unit, or in its module. file is the file in which the
// address is written; "" means the unit's own file. module is the module of an environment file; ""
// means its first one. Outputs of other units are their mock outputs, or unknown.
func (u *Unit) Explain(ctx context.Context, file, address, module string) (*explanation.Explanation, diag.List) {
	if !u.using.enter(ctx) {
		return nil, canceled()
	}
	defer u.using.leave()
	one := u.of(module)
	if one == nil {
		return nil, u.Diags
	}
	outputs := estates.UnknownOutputs
	if strings.HasPrefix(address, "dependency.") {
		outputs = estates.MockOutputs
	}
	v := u.estate.Evaluate(one, outputs)
	if own := filepath.Dir(u.Path); file != "" { // a stack generates the file from that of its source
		if rel, err := filepath.Rel(u.overlay.Locate(own), file); err == nil && filepath.IsLocal(rel) {
			file = filepath.Join(own, rel)
		}
	}
	v.In(file)
	set := &source.Set{}
	shown := func(file string) string { return sys.RelativeTo(filepath.Dir(u.Path), u.overlay.Source(file)) }
	inUnit := func(file string) (string, string) { return shown(file), "" }
	x, ds := v.Explain(ctx, set, address, inUnit, func(s *run.Site) (*explanation.Explanation, diag.List) {
		return v.ExplainInModule(ctx, s, set, address, shown, false)
	})
	u.tidy(x)
	return x, ds
}

// ModuleDir returns the directory of the module of the unit, or of the first unit of an environment file. It is ""
// if the source is not local, or not known.
func (u *Unit) ModuleDir(ctx context.Context) string {
	if !u.using.enter(ctx) {
		return ""
	}
	defer u.using.leave()
	one := u.of("")
	if one == nil {
		return ""
	}
	tf, ds := one.Terraform(u.estate.Task(ctx))
	if ds.HasErrors() {
		return ""
	}
	dir := u.overlay.Source(filepath.Dir(u.Path))
	if tf == nil || tf.Source == nil {
		return dir
	}
	v := tf.Source.Value
	if !v.IsKnown() || v.IsNull() || v.IsMarked() || v.Type() != cty.String || !unit.LocalSource(v.AsString()) {
		return ""
	}
	path, _, _ := strings.Cut(v.AsString(), "?")
	root, sub := unit.SplitSource(path)
	if !filepath.IsAbs(root) {
		root = filepath.Join(filepath.Dir(u.Path), root)
	}
	return filepath.Join(root, sub)
}

// Instances is Module.Instances for the module of the unit, or of the first unit of an environment file.
func (u *Unit) Instances(ctx context.Context, calls string) []string {
	if !u.using.enter(ctx) {
		return nil
	}
	defer u.using.leave()
	if known, ok := u.instances[calls]; ok {
		return known
	}
	one := u.of("")
	if one == nil {
		return nil
	}
	out := textsOf(u.estate.Evaluate(one, estates.UnknownOutputs).ModuleInstances(ctx, callNames(calls), maxInstances))
	if ctx.Err() != nil {
		return nil
	}
	if u.instances == nil {
		u.instances = map[string][]string{}
	}
	u.instances[calls] = out
	return out
}

// of returns the unit of a module of an environment file, or the first unit, or nil.
func (u *Unit) of(module string) *discovery.Unit {
	for _, one := range u.units {
		if module == "" || one.Module == module || one.Module == "" {
			return one
		}
	}
	return nil
}

// tidy removes the values of the environment from the texts of an explanation. It does not claim that
// an output does not exist, since no state was read.
func (u *Unit) tidy(x *explanation.Explanation) {
	if x == nil {
		return
	}
	for _, s := range x.Steps {
		s.Text = u.redactor.Text(s.Text)
		if s.Kind == explanation.Dependency {
			s.Text = strings.Replace(s.Text, ", which has none yet", ", whose state is not read here", 1)
		}
	}
}

// Render returns the effective unit as a unit file. module is as in Explain.
func (u *Unit) Render(ctx context.Context, module string) (string, error) {
	if !u.using.enter(ctx) {
		return "", ctx.Err()
	}
	defer u.using.leave()
	one := u.of(module)
	if one == nil {
		return "", u.Diags.Err()
	}
	text, ds := one.RenderHCL(u.estate.Task(ctx))
	return u.redactor.Text(string(text)), ds.Err()
}
