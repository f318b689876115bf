package unit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// A Unit is one unit file, or one module of an environment file, ready to be
// asked for its parts. Nothing of it is computed before it is asked for. A Unit
// may be used concurrently, each goroutine with its own task.
type Unit struct {
	// ID tells the unit from all others: its folder; its file, if that is not
	// called as unit files usually are; in an environment file the folder, the
	// file's stem unless it is terragrunt, and the module's name and key.
	ID   string
	Dir  string // the folder of the file, absolute
	Path string // the file
	// Module and Key name the module block of an environment file. Module is ""
	// for an ordinary unit, Key where the module has no for_each.
	Module string
	Key    string

	l   *Loader
	e   *evaluation   // the leaf
	mod *syntax.Block // nil for an ordinary unit
	// noOutputs makes everything be computed without outputs.
	noOutputs bool
	within    *evaluation            // the evaluation of its file as a whole
	wanted    func(name string) bool // which inputs its module takes; nil: all
	reveal    bool                   // whether rendering writes sensitive values
}

// Revealing is the same unit, whose Render methods write sensitive values as they are. They
// write a text in their place otherwise.
func (u *Unit) Revealing() *Unit {
	n := *u
	n.reveal = true
	return &n
}

// Using is the same unit, whose module takes some inputs alone: the others are not in
// use. nil means that it takes all.
func (u *Unit) Using(wanted func(name string) bool) *Unit {
	n := *u
	n.wanted = wanted
	return &n
}

// Load reads the unit of a folder or file: one for an ordinary unit, one for
// each module of an environment file. The unit's imports and includes are read;
// their values and its own are not computed.
func (l *Loader) Load(t *demand.Task, path string) ([]*Unit, diag.List) {
	path, ds := l.locate(path)
	if ds.HasErrors() {
		return nil, ds
	}
	f := l.unshared(path, syntax.Language().Unit)
	if f.Root == nil {
		return nil, f.Diags
	}
	e := newEvaluation(l, f, leafRole, f.Dir)
	if len(f.Root.Of("module")) > 0 {
		units, ds := l.environment(t, e)
		return units, slices.Concat(f.Diags, ds)
	}
	e.leaf = e
	l.evaluated.Add(1)
	u := &Unit{ID: string(l.target(f.Dir, path)), Dir: f.Dir, Path: path, l: l, e: e}
	u.within = e
	e.id = u.ID
	l.env.Redactor.Publish(u.Dir)
	c := l.on(t, e, false)
	c.imports(e)
	c.add(f.Diags)
	return []*Unit{u}, c.ds
}

// Part reads what can be read of a unit if mistakes in its file, or in the files that it
// imports and includes, keep Load from reading it. It is for callers that only list units
// and their dependencies. Part returns nil if nothing can be read, and for environment
// files. Load reports the mistakes. Tasks of l may be used with the unit.
func (l *Loader) Part(path string) *Unit {
	path, ds := l.locate(path)
	if ds.HasErrors() {
		return nil
	}
	l = l.common.partial()
	f := l.unshared(path, syntax.Language().Unit)
	if f.Root == nil || len(f.Root.Of("module")) > 0 {
		return nil
	}
	e := newEvaluation(l, f, leafRole, f.Dir)
	e.leaf = e
	u := &Unit{ID: string(l.target(f.Dir, path)), Dir: f.Dir, Path: path, l: l, e: e}
	u.within = e
	e.id = u.ID
	return u
}

// In is the same unit, to be computed with another loader: with the one that it
// came from, or with one that WithOutputs made of that.
func (u *Unit) In(l *Loader) *Unit {
	n := *u
	n.l = l
	return &n
}

// Forget lets go of what was computed for the unit alone. It is computed again when
// it is asked for, so this is for estates with so many units that memory counts.
func (u *Unit) Forget() {
	u.e.cells.drop()
	u.e.fullCells.drop()
	u.e.cache.mu.Lock()
	defer u.e.cache.mu.Unlock()
	u.e.cache.overlays, u.e.cache.placed, u.e.cache.importedBy = nil, nil, nil
}

// ForgetFile lets go of what was read in the unit's own file, too, but for its text, of
// which that is read again when it is asked for.
func (u *Unit) ForgetFile() {
	u.Forget()
	u.e.cache.mu.Lock()
	defer u.e.cache.mu.Unlock()
	if u.mod == nil { // the modules of an environment file have one file
		u.e.forgetFile()
	}
}

// Unit reads the only unit of a folder or file. An environment file is an error
// that lists its modules, unless module names one of them, as in vpc or
// svc["a"].
func (l *Loader) Unit(t *demand.Task, path, module string) (*Unit, diag.List) {
	units, ds := l.Load(t, path)
	if len(units) == 0 {
		if !ds.HasErrors() {
			ds = append(ds, diag.Errorf(diag.CodeCLINoUnit, nil, "No unit", "All modules of the environment file %s are disabled.", path)...)
		}
		return nil, ds
	}
	var names []string
	for _, u := range units {
		if u.Module == "" && module == "" || u.Module != "" && u.matches(module) {
			return u, ds
		}
		names = append(names, u.moduleName())
	}
	if units[0].Module == "" {
		return nil, append(ds, codeErr(nil, diag.CodeUnitNoModule, "No such module", "%s is an ordinary unit without module blocks, so there is no module %q in it.", units[0].Path, module)...)
	}
	what := "Name one of them with --module, or use run --all for all"
	if module != "" {
		what = fmt.Sprintf("There is no module %q among them", module)
	}
	return nil, append(ds, codeErr(nil, diag.CodeUnitEnvironment, "Several units in one file", "%s holds several units, one for each module: %s. %s.", units[0].Path, strings.Join(names, ", "), what)...)
}

func codeErr(at *source.Range, code, summary, format string, args ...any) diag.List {
	return diag.Errorf(code, at, summary, format, args...)
}

// locate finds the file that a path means.
func (l *Loader) locate(path string) (string, diag.List) {
	if !filepath.IsAbs(path) {
		if l.env.WorkingDir == "" {
			return "", codeErr(nil, diag.CodeUnitRelativePath, "Relative path", "The path %q is relative, and no folder is known that it could count from.", path)
		}
		path = filepath.Join(l.env.WorkingDir, path)
	}
	path = filepath.Clean(path)
	if l.disk.IsDir(path) {
		name := l.unitFile(path)
		if name == "" {
			return "", codeErr(nil, diag.CodeUnitNoUnitFile, "No unit file", "There is no %s in %s.", l.env.configName(), path)
		}
		return name, nil
	}
	if !l.disk.Exists(path) {
		return "", codeErr(nil, diag.CodeUnitNoUnitFile, "No unit file", "There is no file %s.", path)
	}
	return path, nil
}

// place is the path that the leaf is known by.
func (e *evaluation) place() string {
	if e.id != "" && e.of.mod != nil {
		return e.id
	}
	return e.dir
}

// A Setting is one part of a unit with where it comes from.
type Setting struct {
	Name  string
	Value cty.Value
	At    *source.Range // of the definition, or of the value where it has none of its own
	Layer *source.Layer // the role of its file: base, or import with the block that brought it in
	Under *Setting      // what it replaced or was merged over; nil at the bottom. Its Value is not computed.
	Waits []Wait        // for an input: the outputs that it reads and that are not known yet

	shown string // the text for messages of a value that was handed in; "" for others
}

// Own reports whether the setting stands in the unit's own file.
func (u *Unit) Own(s *Setting) bool { return s.At != nil && s.At.Filename == u.Path }

// Quoted is the text of a setting for messages, in quotation marks. In the place of a value
// from the environment or from a program it names the expression.
func (s *Setting) Quoted() string {
	if s != nil && s.shown != "" {
		return s.shown
	}
	return strconv.Quote(s.Text())
}

// Shown is Quoted without quotation marks.
func (s *Setting) Shown() string {
	if s != nil && s.shown != "" {
		return s.shown
	}
	return s.Text()
}

// Text is the text of a setting, "" if it is nil or not known, or no text.
func (s *Setting) Text() string {
	if s == nil || !Known(s.Value) {
		return ""
	}
	v, _ := s.Value.Unmark()
	if v.IsNull() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// on starts a computation for the unit.
func (u *Unit) on(t *demand.Task, full bool) *evaluator { return u.l.on(t, u.e, full && !u.noOutputs) }

// fields is the unit's effective configuration.
func (u *Unit) fields(c *evaluator) *group {
	if u.mod != nil {
		return u.moduleFields(c)
	}
	return c.merged(u.e)
}

// field is one name of it, or nil.
func (u *Unit) field(c *evaluator, name string) node { return u.fields(c).members[name] }

// Inputs computes the inputs, in alphabetical order, with the outputs of the
// dependencies that they need. wanted tells which ones to compute: the variables
// that the module declares; nil means all. Where the inputs as a whole depend on
// something unknown there is one setting with no name and an unknown value.
func (u *Unit) Inputs(t *demand.Task, wanted func(name string) bool) ([]*Setting, diag.List) {
	c := u.on(t, true)
	out := u.inputs(c, wanted)
	return out, c.ds
}

func (u *Unit) inputs(c *evaluator, wanted func(name string) bool) []*Setting {
	var out []*Setting
	u.eachInput(c, wanted, func(name string, n node, v cty.Value, about *facts) {
		s := u.setting(c, name, n, v)
		s.Waits = about.waiting()
		out = append(out, s)
	})
	return out
}

// touchInputs computes the inputs for what they meet alone.
func (u *Unit) touchInputs(c *evaluator, wanted func(name string) bool) {
	u.eachInput(c, wanted, func(string, node, cty.Value, *facts) {})
}

// eachInput computes the inputs by name, with the facts about each of them; the name
// is empty where they depend on something unknown as a whole.
func (u *Unit) eachInput(c *evaluator, wanted func(name string) bool, f func(name string, n node, v cty.Value, about *facts)) {
	n := u.field(c, "inputs")
	if n == nil || c.stuck() {
		return
	}
	o := n.open(c)
	names, ok := o.keys(c)
	if !ok {
		switch {
		case c.stuck() || isNull(c, o):
		case unknownNode(c, o):
			f("", n, cty.DynamicVal, c.facts)
		default:
			c.notAMap("inputs", o)
		}
		return
	}
	if c.facts != nil && len(c.facts.handed) > 0 {
		c.redactKeys(o)
	}
	names = slices.Sorted(slices.Values(names))
	for _, k := range names {
		if wanted != nil && !wanted(k) {
			continue
		}
		in := o.child(c, k)
		if in == nil {
			continue
		}
		if c.facts != nil {
			for _, h := range c.facts.handed {
				h.redactName(c, k)
			}
		}
		one := c.sub(u.e, c.full) // one failed input does not take the others with it
		v := in.value(one)
		c.merge(one)
		f(k, in, v, one.facts)
	}
}

// merge takes over the facts of another computation.
func (c *evaluator) merge(o *evaluator) {
	c.failed = c.failed || o.failed
	c.needsOut = c.needsOut || o.needsOut
	c.needsLeaf = c.needsLeaf || o.needsLeaf
	c.add(o.ds)
	c.facts = c.facts.with(o.facts)
}

// setting tells where a node comes from.
func (u *Unit) setting(c *evaluator, name string, n node, v cty.Value) *Setting {
	e, at := n.where()
	s := &Setting{Name: name, Value: v, At: at, Layer: u.layerOf(c, e)}
	if low := below(c, n); low != nil {
		s.Under = u.setting(c, name, low, cty.NilVal)
	}
	return s
}

// below is what a node was put over.
func below(c *evaluator, n node) node {
	switch n := n.(type) {
	case *joined:
		return n.lower
	case *mapped:
		return below(c, n.n)
	case *converted:
		return below(c, n.n)
	}
	return nil
}

var baseLayer = &source.Layer{Kind: source.Base}

func (u *Unit) layerOf(c *evaluator, e *evaluation) *source.Layer {
	if e == nil || e == u.e {
		return baseLayer
	}
	if l := u.layers(c)[e]; l != nil {
		return l
	}
	switch e.role {
	case importRole:
		return &source.Layer{Kind: source.Import}
	case stackRole:
		return &source.Layer{Kind: source.Import, Name: "stack file"}
	case readRole:
		return &source.Layer{Kind: source.Import, Name: "read_terragrunt_config"}
	case includeRole:
		return &source.Layer{Kind: source.Import, Name: "include"}
	case valuesRole:
		return &source.Layer{Kind: source.Import, Name: "values file"}
	}
	return baseLayer
}

// layers finds, for each file that is merged in, the block that brought it in.
func (u *Unit) layers(c *evaluator) map[*evaluation]*source.Layer {
	e := u.within
	e.cache.mu.Lock()
	have := e.cache.importedBy
	e.cache.mu.Unlock()
	if have != nil {
		return have
	}
	have = map[*evaluation]*source.Layer{}
	var visit func(e *evaluation)
	visit = func(e *evaluation) {
		h := c.fileImports(e)
		for _, i := range h.imports {
			if have[i.e] == nil {
				at := i.at
				have[i.e] = &source.Layer{Kind: source.Import, Via: &at}
				visit(i.e)
			}
		}
		for _, i := range h.includes {
			at := i.at
			have[i.e] = &source.Layer{Kind: source.Import, Via: &at, Name: "include"}
		}
		if h.auto != nil {
			have[h.auto] = &source.Layer{Kind: source.Generated}
		}
	}
	visit(e)
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.cache.importedBy = have
	return have
}

// Imported lists the files that the unit's evaluation takes in, by how.
type Imported struct {
	Label string // of the block
	Path  string
	At    source.Range
	// Include is true for include blocks. Merge is no_merge, shallow or deep.
	Include bool
	Merge   string
}

// Imports lists the import and include blocks of the unit's own file.
func (u *Unit) Imports(t *demand.Task) ([]Imported, diag.List) {
	c := u.on(t, false)
	h := c.fileImports(u.e.env())
	var out []Imported
	for _, i := range h.imports {
		out = append(out, Imported{Label: i.name, Path: i.e.file().Path, At: i.at, Merge: i.mode.String()})
	}
	for _, i := range h.includes {
		out = append(out, Imported{Label: i.label, Path: i.e.file().Path, At: i.at, Include: true, Merge: i.mode.String()})
	}
	return out, c.ds
}

func (m mode) String() string {
	switch m {
	case shallow:
		return "shallow"
	case deep:
		return "deep"
	}
	return "no_merge"
}
