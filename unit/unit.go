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

// A Unit is one unit file, or one module of an environment file. Its parts are computed on
// demand. A Unit may be used concurrently, by goroutines with a task each.
type Unit struct {
	// ID identifies the unit. It is the unit's directory, or the file if that does not have
	// the default name. In an environment file, it consists of the directory, the file's
	// stem (unless it is terragrunt), and the module's name and key.
	ID   string
	Dir  string // the absolute directory of the file
	Path string // the absolute path of the file
	// Module is the name of the module block in an environment file, "" for an ordinary
	// unit. Key is its for_each key, "" without for_each.
	Module string
	Key    string

	l   *Loader
	e   *evaluation   // the leaf
	mod *syntax.Block // nil for an ordinary unit
	// noOutputs means that everything is computed without outputs.
	noOutputs bool
	within    *evaluation            // the evaluation of the whole file
	wanted    func(name string) bool // the inputs that the module declares; nil: all
	reveal    bool                   // whether rendering writes sensitive values
	tracking  *evaluator             // notes what differs in the other version; nil: nobody asks
}

// Revealing returns the same unit with Render methods that write sensitive values.
// Otherwise they write hiddenText instead.
func (u *Unit) Revealing() *Unit {
	n := *u
	n.reveal = true
	return &n
}

// Using returns the same unit for a module that declares only some inputs. Other inputs are
// not in use. nil means that all are.
func (u *Unit) Using(wanted func(name string) bool) *Unit {
	n := *u
	n.wanted = wanted
	return &n
}

// Load reads the unit file at path, or in the directory path. It returns one unit, or one
// for each module of an environment file. It reads imports and includes, but computes no
// values.
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

// Part reads a unit as far as possible if errors in its file, or in imported or included
// files, prevent Load from reading it. It is for callers that only list units and their
// dependencies. Part returns nil if nothing can be read, and for environment files. It
// reports no errors, since Load does. Tasks of l may be used with the unit.
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

// In returns the same unit for another loader: the one that loaded the unit, or one from
// its WithOutputs.
func (u *Unit) In(l *Loader) *Unit {
	n := *u
	n.l = l
	return &n
}

// Forget discards the values that were computed for the unit alone. They are computed again
// on demand. This saves memory in large estates. Of the values that depend on outputs, only those of
// the unit's own loader are discarded; see In.
func (u *Unit) Forget() {
	u.e.cells.drop()
	u.e.fullCells.drop()
	u.e.cache.mu.Lock()
	defer u.e.cache.mu.Unlock()
	u.l.forget(u.e, u.e.cache.placed)
	u.e.cache.overlays, u.e.cache.placed, u.e.cache.importedBy, u.e.cache.instances, u.e.cache.targets = nil, nil, nil, nil, nil
}

// ForgetFile also discards the parsed file of the unit. It keeps the text and parses it
// again on demand.
func (u *Unit) ForgetFile() {
	u.Forget()
	u.e.cache.mu.Lock()
	defer u.e.cache.mu.Unlock()
	if u.mod == nil { // the modules of an environment file share the file
		u.e.forgetFile()
	}
}

// Unit reads the only unit at a path. For an environment file, module selects the unit, for
// example vpc or svc["a"]. If module is "", the result is an error that lists the modules.
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

// locate returns the file at a path.
func (l *Loader) locate(path string) (string, diag.List) {
	if !filepath.IsAbs(path) {
		if l.env.WorkingDir == "" {
			return "", codeErr(nil, diag.CodeUnitRelativePath, "Relative path", "The path %q is relative, and no directory is known that it could count from.", path)
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

// place returns the path by which functions identify the leaf.
func (e *evaluation) place() string {
	if e.id != "" && e.of.mod != nil {
		return e.id
	}
	return e.dir
}

// A Setting is one part of a unit with its origin.
type Setting struct {
	Name     string
	Value    cty.Value
	At       *source.Range // the definition, or the value if it has no definition of its own
	Layer    *source.Layer // the role of its file: base, or import with the block that brought it in
	Replaced *Setting      // the setting that this one replaced or was merged with; nil for the lowest. Its Value is not computed.
	Waits    []Wait        // for an input: the unknown outputs that it reads
	// Same means, for an input of a unit of Tracked, that its value is certainly the same in the other
	// version of the files if the set of inputs is.
	Same bool

	shown string // the text for messages if the value was handed in, otherwise ""
}

// Own reports whether the setting is in the unit's own file.
func (u *Unit) Own(s *Setting) bool { return s.At != nil && s.At.Filename == u.Path }

// Quoted returns the text of a setting for messages, in quotation marks. For a value from
// the environment or from a program it returns the expression.
func (s *Setting) Quoted() string {
	if s != nil && s.shown != "" {
		return s.shown
	}
	return strconv.Quote(s.Text())
}

// Shown is like Quoted, without quotation marks.
func (s *Setting) Shown() string {
	if s != nil && s.shown != "" {
		return s.shown
	}
	return s.Text()
}

// Text returns the string value of a setting. It returns "" if the setting is nil, unknown
// or not a string.
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
func (u *Unit) on(t *demand.Task, full bool) *evaluator {
	c := u.l.on(t, u.e, full && !u.noOutputs)
	c.parent = u.tracking
	return c
}

// fields returns the unit's effective configuration.
func (u *Unit) fields(c *evaluator) *group {
	if u.mod != nil {
		return u.moduleFields(c)
	}
	return c.merged(u.e)
}

// field returns one part of the effective configuration, or nil.
func (u *Unit) field(c *evaluator, name string) node { return u.fields(c).member(name) }

// Inputs computes the inputs, in alphabetical order, with the outputs of the dependencies
// that they need. wanted reports whether an input is computed, that is, declared by the
// module; nil means all. If the set of inputs depends on something unknown, the result
// contains one setting without a name and with an unknown value.
func (u *Unit) Inputs(t *demand.Task, wanted func(name string) bool) ([]*Setting, diag.List) {
	c := u.on(t, true)
	out := u.inputs(c, wanted)
	return out, c.ds
}

// InputNames returns the names of the inputs without computing their values. ok is false if the set of names is
// unknown or cannot be computed. No outputs are fetched.
func (u *Unit) InputNames(t *demand.Task) (names []string, ok bool) {
	c := u.on(t, false)
	n := u.field(c, "inputs")
	if n == nil || c.stuck() {
		return nil, !c.stuck()
	}
	names, ok = n.open(c).keys(c)
	return names, ok && !c.stuck()
}

func (u *Unit) inputs(c *evaluator, wanted func(name string) bool) []*Setting {
	var out []*Setting
	u.eachInput(c, wanted, func(name string, n node, v cty.Value, of *evaluator) {
		s := u.setting(c, name, n, v)
		s.Waits, s.Same = of.facts.waiting(), !of.differs
		out = append(out, s)
	})
	return out
}

// touchInputs computes the inputs to record their facts.
func (u *Unit) touchInputs(c *evaluator, wanted func(name string) bool) {
	u.eachInput(c, wanted, func(_ string, _ node, _ cty.Value, of *evaluator) {
		if of.differs {
			c.note()
		}
	})
}

// eachInput computes the inputs and calls f with the name and value of each, and with its
// computation. The name is "" if the set of inputs is unknown. c does not note which inputs
// differ in the other version of the files; f can do so.
func (u *Unit) eachInput(c *evaluator, wanted func(name string) bool, f func(name string, n node, v cty.Value, of *evaluator)) {
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
			f("", n, cty.DynamicVal, c)
		default:
			c.notAMap("inputs", o)
		}
		return
	}
	if c.facts != nil && len(c.facts.handed) > 0 {
		c.redactKeys(o)
	}
	names = slices.Sorted(slices.Values(names))
	one := c.sub(u.e, c.full) // of one input after the other
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
		*one = evaluator{t: c.t, l: c.l, leaf: u.e, full: c.full} // an error in one input does not affect the others
		v := in.value(one)
		c.merge(one)
		f(k, in, v, one)
	}
}

// merge adds the facts and messages of another computation.
func (c *evaluator) merge(o *evaluator) {
	c.failed = c.failed || o.failed
	c.needsOut = c.needsOut || o.needsOut
	c.needsLeaf = c.needsLeaf || o.needsLeaf
	c.add(o.ds)
	c.facts = c.facts.with(o.facts)
}

// setting returns the setting of a node.
func (u *Unit) setting(c *evaluator, name string, n node, v cty.Value) *Setting {
	e, at := n.where()
	s := &Setting{Name: name, Value: v, At: at, Layer: u.layerOf(c, e)}
	if low := below(c, n); low != nil {
		s.Replaced = u.setting(c, name, low, cty.NilVal)
	}
	return s
}

// below returns the node that a node replaced or was merged with.
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
	if e = e.wholeFile(); e == nil || e == u.e {
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

// layers returns, for each merged file, the block that imports or includes it.
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
		if e.role == stackRole {
			return // its include blocks add blocks and merge nothing
		}
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

// Imported is an import or include block of a unit.
type Imported struct {
	Label string // of the block
	Path  string
	At    source.Range
	// Include is true for include blocks. Merge is no_merge, shallow or deep.
	Include bool
	Merge   string
}

// Imports returns the import and include blocks of the unit's own file.
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
