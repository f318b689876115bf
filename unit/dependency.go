package unit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Target is what a dependency points at: the ID of a unit (its folder, or its
// file if that has another name than usual, or folder and module name in an
// environment file), or a folder with a stack file.
type Target string

// depsNode is the dependency blocks that are in force for a file.
type depsNode struct {
	e   *ev
	raw node // nil if there are none
}

func (c *calc) dependencies(e *ev) node {
	b := e.base()
	return &depsNode{e: b, raw: c.conf(b).members["dependency"]}
}

func (n *depsNode) open(*calc) node             { return n }
func (n *depsNode) value(c *calc) cty.Value     { return objectOf(c, n) }
func (n *depsNode) where() (*ev, *source.Range) { return n.e, nil }
func (n *depsNode) listed()                     {}

func (n *depsNode) keys(c *calc) ([]string, bool) {
	if n.raw == nil {
		return nil, true
	}
	names, _ := n.raw.keys(c)
	return names, true
}

func (n *depsNode) child(c *calc, key string) node {
	if n.raw == nil {
		return nil
	}
	if in := n.raw.child(c, key); in != nil {
		return &depNode{scope: n.e, label: key, raw: in}
	}
	return nil
}

func (n *depsNode) lacks(key string) string {
	text := fmt.Sprintf("There is no dependency named %q in this file.", key)
	for _, b := range n.e.f.root.of("import") {
		return text + fmt.Sprintf(" A dependency of a file that is imported without merging is import.%s.dependency.%s.", b.label, key)
	}
	return text
}

// depNode is one dependency.
type depNode struct {
	scope *ev
	label string
	raw   node
}

func (n *depNode) open(*calc) node             { return n }
func (n *depNode) value(c *calc) cty.Value     { return objectOf(c, n) }
func (n *depNode) where() (*ev, *source.Range) { return n.raw.where() }

func (n *depNode) keys(c *calc) ([]string, bool) {
	var names []string
	if n.flag(c, "enabled", true) {
		names = append(names, "inputs")
	}
	if n.child(c, "outputs") != nil {
		names = append(names, "outputs")
	}
	return names, true
}

func (n *depNode) lacks(key string) string {
	if key == "outputs" {
		return fmt.Sprintf("The dependency %q has no outputs, because it is disabled or skips them, and has no mock_outputs.", n.label)
	}
	return ""
}

func (n *depNode) child(c *calc, key string) node {
	switch key {
	case "inputs":
		return &noInputs{n}
	case "outputs":
		return n.outputs(c)
	}
	spec := languageTable().unit.block("dependency")
	if a := spec.arg(key); a != nil {
		if in := n.raw.child(c, key); in != nil {
			return typed(in, a)
		}
	}
	return nil
}

// noInputs is dependency.X.inputs, which can no longer be read.
type noInputs struct{ d *depNode }

func (n *noInputs) open(c *calc) node           { return n }
func (n *noInputs) keys(*calc) ([]string, bool) { return nil, true }
func (n *noInputs) where() (*ev, *source.Range) { return n.d.where() }
func (n *noInputs) child(*calc, string) node    { return nil }
func (n *noInputs) value(*calc) cty.Value       { return cty.NullVal(cty.DynamicPseudoType) }

func (n *noInputs) lacks(string) string {
	return "Reading inputs from dependencies is no longer supported. To take values from a dependency, read its outputs."
}

// flag is a boolean argument of the block.
func (n *depNode) flag(c *calc, name string, unset bool) bool {
	v := n.arg(c, name)
	if v == cty.NilVal || !known(v) {
		return unset
	}
	return v.True()
}

// arg is an argument of the block, converted, without marks; NilVal if unset.
func (n *depNode) arg(c *calc, name string) cty.Value {
	in := n.raw.child(c, name)
	if in == nil {
		return cty.NilVal
	}
	was := c.needsOut
	c.needsOut = false
	v := typed(in, languageTable().unit.block("dependency").arg(name)).value(c)
	v, _ = v.Unmark()
	if c.needsOut && !v.IsWhollyKnown() && name != "mock_outputs" && !c.stuck() {
		_, at := in.where()
		c.errorf(at, "unit/unknown-dependency", "Unknown dependency argument",
			"%q of a dependency must be known before any unit runs, so it cannot be made of the outputs of another.", name)
	}
	c.needsOut = c.needsOut || was
	if c.stuck() {
		return cty.NilVal
	}
	return v
}

// target finds what the dependency points at. ok is false after an error.
func (n *depNode) target(c *calc) (t Target, ok bool) {
	v := n.arg(c, "config_path")
	if c.stuck() {
		return "", false
	}
	_, at := n.where()
	if v == cty.NilVal {
		c.errorf(at, "unit/missing-argument", "Missing required argument", "The dependency %q has no \"config_path\", which says where the unit is.", n.label)
		return "", false
	}
	if !known(v) {
		c.errorf(at, "unit/unknown-dependency", "Unknown dependency path", "The \"config_path\" of the dependency %q must be known and cannot be null.", n.label)
		return "", false
	}
	return c.l.target(n.folder(), v.AsString()), true
}

// folder is where a relative config_path counts from.
func (n *depNode) folder() string {
	if e, _ := n.raw.where(); e != nil {
		return e.dir
	}
	return n.scope.dir
}

// target is the ID of the unit that a path means.
func (l *Loader) target(dir, path string) Target {
	full := absPath(dir, path)
	if base := filepath.Base(full); base == DefaultName || base == DefaultJSONName || base == l.env.configName() {
		full = filepath.Dir(full)
	}
	return Target(full)
}

// outputs is what the dependency gives, or nil if it gives nothing.
func (n *depNode) outputs(c *calc) node {
	e, at := n.raw.where()
	enabled := n.flag(c, "enabled", true)
	skip := n.flag(c, "skip_outputs", false)
	if c.stuck() {
		return valueNode{cty.DynamicVal, e, at}
	}
	if !enabled || skip {
		if mocks := n.raw.child(c, "mock_outputs"); mocks != nil {
			return mocks
		}
		return nil
	}
	return &outputsNode{d: n}
}

// outputsNode is the outputs of a dependency: unknown until a run needs them.
type outputsNode struct{ d *depNode }

func (n *outputsNode) where() (*ev, *source.Range)    { return n.d.where() }
func (n *outputsNode) child(c *calc, key string) node { return n.open(c).child(c, key) }
func (n *outputsNode) keys(c *calc) ([]string, bool)  { return n.open(c).keys(c) }

func (n *outputsNode) open(c *calc) node {
	e, at := n.where()
	v := valueNode{n.value(c), e, at}
	if _, ok := v.keys(c); !ok || c.stuck() {
		return v
	}
	return &outputsView{v, fmt.Sprintf("The dependency %q", n.d.label)}
}

// outputsView is outputs that are there.
type outputsView struct {
	valueNode
	who string
}

func (n *outputsView) open(*calc) node { return n }

func (n *outputsView) lacks(key string) string {
	return fmt.Sprintf("%s has no output named %q. If its module has one, it was probably not applied since that was added.", n.who, key)
}

func (n *outputsNode) value(c *calc) cty.Value {
	target, ok := n.d.target(c)
	if !ok {
		return cty.DynamicVal
	}
	e, at := n.where()
	c.met = c.met.withDep(&depUse{target: target, at: at, label: n.d.label, via: e})
	c.mustExist(target, at)
	if !c.full || c.failed {
		c.needsOut = true
		return cty.DynamicVal
	}
	v, has, ds := c.l.outputsOf(c.t, target, *at)
	c.add(ds)
	if c.failed {
		return cty.DynamicVal
	}
	return n.d.withMocks(c, v, has)
}

func (f *facts) withDep(d *depUse) *facts {
	if f != nil && slices.ContainsFunc(f.deps, func(h *depUse) bool { return *h == *d }) {
		return f
	}
	return f.with(&facts{deps: []*depUse{d}})
}

// withMocks puts mock outputs in the place of those that do not exist.
func (n *depNode) withMocks(c *calc, v cty.Value, has bool) cty.Value {
	mocks := n.arg(c, "mock_outputs")
	allowed := n.mocksAllowed(c)
	if c.stuck() {
		return cty.DynamicVal
	}
	_, at := n.where()
	if has {
		if mocks == cty.NilVal || !allowed {
			return v
		}
		return n.mixMocks(c, v, mocks)
	}
	if mocks != cty.NilVal && (allowed || c.l.env.Tolerant) {
		target, _ := n.target(c)
		c.add(c.l.mockWarning(target, n.label, at))
		return mocks
	}
	if c.l.env.Tolerant {
		return cty.DynamicVal
	}
	why := "It was probably not applied yet; apply it first, or give the dependency mock_outputs for commands that can do without."
	if mocks != cty.NilVal {
		why = fmt.Sprintf("Its mock_outputs are not allowed for the command %q.", c.l.env.Command)
	}
	target, _ := n.target(c)
	return c.errorf(at, "unit/no-outputs", "Dependency without outputs", "The dependency %q (%s) has no outputs. %s", n.label, target, why)
}

func (n *depNode) mocksAllowed(c *calc) bool {
	v := n.arg(c, "mock_outputs_allowed_terraform_commands")
	if v == cty.NilVal || !known(v) || v.LengthInt() == 0 {
		return true
	}
	return slices.ContainsFunc(v.AsValueSlice(), func(w cty.Value) bool { return isString(w) && w.AsString() == c.l.env.Command })
}

// mixMocks fills real outputs up with mocks where the block asks for that.
func (n *depNode) mixMocks(c *calc, v, mocks cty.Value) cty.Value {
	strategy := "no_merge"
	if s := n.arg(c, "mock_outputs_merge_strategy_with_state"); s != cty.NilVal && known(s) {
		strategy = s.AsString()
	} else if n.flag(c, "mock_outputs_merge_with_state", false) {
		strategy = "shallow"
	}
	if c.stuck() || !v.IsKnown() {
		return v
	}
	switch strategy {
	case "no_merge":
		return v
	case "shallow", "deep_map_only":
		return fill(mocks, v, strategy != "shallow")
	}
	_, at := n.where()
	return c.errorf(at, "unit/mock-strategy", "Unknown mock strategy", "%q is no way of merging mock outputs. The ways are no_merge, shallow and deep_map_only.", strategy)
}

// fill takes what v lacks from mocks.
func fill(mocks, v cty.Value, recursive bool) cty.Value {
	bare, marks := v.Unmark()
	names, ok := valueKeys(bare)
	mockNames, mok := valueKeys(mocks)
	if !ok || !mok {
		return v
	}
	vals := make(map[string]cty.Value, len(names))
	for _, k := range mockNames {
		vals[k] = valueNode{v: mocks}.child(nil, k).(valueNode).v
	}
	for _, k := range names {
		real := valueNode{v: bare}.child(nil, k).(valueNode).v
		if mock, both := vals[k]; both && recursive {
			real = fill(mock, real, true)
		}
		vals[k] = real
	}
	return cty.ObjectVal(vals).WithMarks(marks)
}

// outputCell holds the outputs of one target.
type outputCell struct {
	demand.Cell[*outputResult]
	target Target
	at     source.Range
}

type outputResult struct {
	v   cty.Value
	has bool
	ds  diag.List
}

func (k *outputCell) Describe() (string, *source.Range) {
	return "the outputs of " + string(k.target), &k.at
}

// outputsOf fetches the outputs of a target, at most once.
func (l *Loader) outputsOf(t *demand.Task, target Target, at source.Range) (cty.Value, bool, diag.List) {
	if l.env.Outputs == nil {
		return cty.DynamicVal, false, nil
	}
	l.mu.Lock()
	k := l.outputs[string(target)]
	if k == nil {
		k = &outputCell{target: target, at: at}
		circle := diag.Errorf(&at, "Circular dependency", "The outputs of %s are needed to compute the outputs of %s.", target, target)
		circle[0].Code = "unit/dependency-cycle"
		k.Init(k, &outputResult{v: cty.DynamicVal, ds: circle}, func(t *demand.Task) (*outputResult, diag.List) {
			v, has, ds := l.env.Outputs(t, string(target), at)
			if v == cty.NilVal {
				v = cty.DynamicVal
			}
			return &outputResult{value.WithoutDeprecations(v), has, ds}, nil
		})
		l.outputs[string(target)] = k
	}
	l.mu.Unlock()
	r, _ := k.Get(t, &at)
	return r.v, r.has, r.ds
}

// mockWarning is the one warning about the mocks of a dependency block.
func (l *Loader) mockWarning(target Target, label string, at *source.Range) diag.List {
	return l.warns.Do(at.String()+"\x00"+string(target), func() diag.List {
		ds := diag.Warnf(at, "Mock outputs are used", "The dependency %q (%s) has no outputs, so its mock_outputs are used.", label, target)
		ds[0].Code = "unit/mocks-used"
		return ds
	})
}

// features are the feature flags that are in force for a file.
type featuresNode struct {
	e   *ev
	raw node
}

// features gives an included file its own flags alone, as Terragrunt does; the
// file that includes it sees those of both.
func (c *calc) features(e *ev) node {
	if e.role == includeRole {
		return &featuresNode{e, ownFields(e).members["feature"]}
	}
	b := e.base()
	return &featuresNode{b, c.conf(b).members["feature"]}
}

func (n *featuresNode) open(*calc) node             { return n }
func (n *featuresNode) value(c *calc) cty.Value     { return objectOf(c, n) }
func (n *featuresNode) where() (*ev, *source.Range) { return n.e, nil }
func (n *featuresNode) listed()                     {}
func (n *featuresNode) lacks(key string) string {
	return fmt.Sprintf("There is no feature flag named %q in this file.", key)
}

func (n *featuresNode) keys(c *calc) ([]string, bool) {
	if n.raw == nil {
		return nil, true
	}
	names, _ := n.raw.keys(c)
	return names, true
}

func (n *featuresNode) child(c *calc, key string) node {
	if n.raw == nil {
		return nil
	}
	in := n.raw.child(c, key)
	if in == nil {
		return nil
	}
	g := newGroup(in.where())
	g.put("value", c.feature(key, in))
	return g
}

// feature is the value of a flag: from the command line, else its default.
func (c *calc) feature(label string, raw node) node {
	def := raw.child(c, "default")
	e, at := raw.where()
	text, given := c.l.env.Features[label]
	if def == nil {
		if given {
			return valueNode{cty.StringVal(text), e, at}
		}
		c.errorf(at, "unit/missing-argument", "Missing required argument", "The feature flag %q has no \"default\".", label)
		return valueNode{cty.DynamicVal, e, at}
	}
	if !given {
		return def
	}
	return &converted{def, func(c *calc, v cty.Value) cty.Value {
		if v.Type() != cty.Bool {
			return cty.StringVal(text)
		}
		b, err := strconv.ParseBool(strings.TrimSpace(text))
		if err != nil {
			return c.errorf(at, "unit/feature-value", "Invalid feature value", "The default of the feature flag %q is true or false, so the value given for it must be too, not %q.", label, text)
		}
		return cty.BoolVal(b)
	}}
}
