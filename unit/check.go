package unit

import (
	"slices"

	"github.com/terrace-iac/terrace/unit/syntax"

	version "github.com/hashicorp/go-version"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// TerragruntVersions and OpenTofuVersions are the versions whose language Terrace implements. A
// version constraint of a unit must allow one of them. The first one is the version whose behavior
// Terrace has where versions differ.
var (
	TerragruntVersions = []string{"1.1.3", "1.1.4", "1.1.5", "1.2.0"}
	OpenTofuVersions   = []string{"1.12.6", "1.13.1"} // config.LanguageVersion and config.NewestVersion
)

// Check computes everything that the unit declares, including unused local values, and
// returns all messages, as `hcl validate` reports them. It fetches no outputs.
func (u *Unit) Check(t *demand.Task) diag.List {
	c := u.on(t, false)
	c.add(u.e.file().Diags)
	u.everything(c)
	c.add(u.checkBlocks(t))
	for _, part := range []func(*demand.Task) diag.List{
		func(t *demand.Task) diag.List { _, ds := u.Catalog(t); return ds },
		u.CheckRunner,
		u.Warnings,
	} {
		c.add(part(t))
	}
	return c.ds
}

// checkBlocks reports errors in the effective blocks. It checks them against the table of
// blocks and decodes them.
func (u *Unit) checkBlocks(t *demand.Task) diag.List {
	c := u.on(t, false)
	for _, b := range syntax.Language().Unit.Blocks {
		if b.Apart || b.OnDemand { // the code that reads the block checks it
			continue
		}
		one := c.sub(u.e, false)
		one.checkSchema(u.field(one, b.Name), b)
		c.merge(one)
	}
	for _, part := range []func(*demand.Task) diag.List{
		func(t *demand.Task) diag.List { _, ds := u.static(t).Terraform(t); return ds },
		func(t *demand.Task) diag.List { _, ds := u.static(t).RemoteState(t); return ds },
		func(t *demand.Task) diag.List { _, ds := u.static(t).Generate(t); return ds },
		func(t *demand.Task) diag.List { _, ds := u.Exclude(t); return ds },
		func(t *demand.Task) diag.List { _, ds := u.static(t).Errors(t); return ds },
		func(t *demand.Task) diag.List { _, ds := u.Features(t); return ds },
		func(t *demand.Task) diag.List { _, ds := u.Dependencies(t, u.wanted); return ds },
	} {
		c.add(part(t))
	}
	return c.ds
}

// checkSchema reports arguments of a block, and of its nested blocks, that are missing
// after merging, have the wrong type, or are not in the table.
func (c *evaluator) checkSchema(n node, b *syntax.BlockSpec) {
	body := func(_ string, d *decoder) {
		for i := range b.Args {
			d.Arg(b.Args[i].Name)
		}
		for _, sub := range b.Blocks {
			c.checkSchema(d.n.child(c, sub.Name), sub)
		}
	}
	if b.Label == syntax.OneLabel {
		c.each(n, b, body)
	} else if d := c.one(n, b); d != nil {
		body("", d)
	}
}

// CheckSelf reports a dependency on the unit itself if an expression in use reads it (rule
// 16 of the import specification).
func (u *Unit) CheckSelf(t *demand.Task) diag.List {
	c := u.on(t, false)
	w := &edgeList{u: u, used: map[string]bool{}}
	u.blockEdges(c, w)
	if !slices.ContainsFunc(w.edges, func(e Edge) bool { return e.ID == u.ID }) {
		return nil
	}
	_, ds := u.Dependencies(t, u.wanted)
	return slices.DeleteFunc(slices.Clone(ds), func(m *diag.Message) bool { return m.Code != selfDependency })
}

// static returns the unit with all outputs unknown, as it is before any unit runs.
func (u *Unit) static(*demand.Task) *Unit {
	s := *u
	s.noOutputs = true
	return &s
}

// CheckRunner checks the unit's version constraints against the versions that Terrace
// implements. It warns about an engine block, which has no effect.
func (u *Unit) CheckRunner(t *demand.Task) diag.List {
	s, ds := u.static(t).Scalars(t)
	if ds.HasErrors() {
		return ds
	}
	check := func(s *Setting, what string, have []string) {
		if s == nil || !syntax.IsString(s.Value) || s.Value.AsString() == "" {
			return
		}
		want, err := version.NewConstraint(s.Value.AsString())
		if err != nil {
			ds = append(ds, codeErr(s.At, diag.CodeUnitVersionConstraint, "Invalid version constraint", "%s is not a version constraint.", s.Quoted())...)
			return
		}
		if !slices.ContainsFunc(have, func(v string) bool { return want.Check(version.Must(version.NewVersion(v))) }) {
			ds = append(ds, codeErr(s.At, diag.CodeUnitVersion, "Unsupported version", "This unit needs %s %s, and this program implements the versions %s to %s.", what, s.Shown(), have[0], have[len(have)-1])...)
		}
	}
	check(s.TerragruntVersionConstraint, "Terragrunt", TerragruntVersions)
	check(s.TerraformVersionConstraint, "OpenTofu", OpenTofuVersions)
	_, more := u.static(t).Engine(t)
	return append(ds, more...)
}

// CheckInputs compares the inputs with the variables of the module. required has the
// declared variables: true for those without a default. A required variable without an
// input is an error. An input that the module does not declare is an error if strict is
// set. Otherwise it is a warning if the unit's own file sets the input.
func (u *Unit) CheckInputs(t *demand.Task, required map[string]bool, strict bool) diag.List {
	c := u.on(t, false)
	in := u.inputs(c, func(string) bool { return true })
	if c.ds.HasErrors() { // the set of inputs is not known
		return c.ds.Sort()
	}
	given := map[string]bool{}
	for _, s := range in {
		given[s.Name] = true
		if _, declared := required[s.Name]; declared || s.Name == "" {
			continue
		}
		switch {
		case strict || u.mod != nil && u.Own(s):
			c.add(codeErr(s.At, diag.CodeUnitUndeclaredInput, "Undeclared input", "The module declares no variable %q.%s", s.Name, suggestion(s.Name, required)))
		case u.Own(s):
			w := diag.Warnf(diag.CodeUnitUndeclaredInput, s.At, "Undeclared input", "The module declares no variable %q, so this input has no effect.%s", s.Name, suggestion(s.Name, required))
			c.add(w)
		}
	}
	if given[""] {
		given = u.givenWithOutputs(t, required)
	}
	for name, must := range required {
		if must && !given[name] && !given[""] {
			c.add(codeErr(&u.e.file().Root.At, diag.CodeUnitMissingInput, "Missing input", "The module needs a value for the variable %q, and the inputs give none. Add it to the inputs, or give the variable a default.", name))
		}
	}
	return c.ds.Sort()
}

// givenWithOutputs returns the declared inputs whose presence depends on outputs, as in
// inputs = dependency.vpc.outputs. The result includes "" if further inputs cannot be
// determined even with outputs.
func (u *Unit) givenWithOutputs(t *demand.Task, declared map[string]bool) map[string]bool {
	out := map[string]bool{}
	in, ds := u.Inputs(t, func(name string) bool { return declared[name] })
	out[""] = ds.HasErrors()
	for _, s := range in {
		out[s.Name] = true
	}
	return out
}

func suggestion(name string, declared map[string]bool) string {
	var names []string
	for n := range declared {
		names = append(names, n)
	}
	if near := syntax.Nearest(name, names); near != "" {
		return " Did you mean " + syntax.Quote(near) + "?"
	}
	return ""
}

// Warnings reports legal but suspicious configuration of merged dependencies (rule 15 of
// the import specification).
func (u *Unit) Warnings(t *demand.Task) diag.List {
	c := u.on(t, false)
	h := c.imports(u.e.env())
	if c.stuck() || u.mod != nil {
		return nil
	}
	type given struct {
		target DependencyID
		at     *source.Range
		by     *imported
	}
	first := map[string]given{}
	for _, i := range h.imports {
		if i.mode == noMerge {
			continue
		}
		deps := rebase(c.merged(i.e), i.e.file().Dir).member("dependency")
		if deps == nil {
			continue
		}
		labels, _ := deps.keys(c)
		for _, l := range labels {
			one := c.sub(u.e, false)
			d, ok := one.dependency(i.e, l, deps.child(c, l)).(*depNode)
			if !ok {
				continue
			}
			target, ok := d.target(one)
			if !ok {
				continue
			}
			_, at := d.where()
			if f, again := first[l]; again && f.target != target {
				w := diag.Warnf(diag.CodeUnitTwoTargets, at, "Dependency with two targets", "The imports %q and %q give the dependency %q different targets, %s and %s. The later one is in force here, and each file's own expressions keep their own.", f.by.name, i.name, l, f.target, target)
				c.add(w.Note(f.at, "the other target"))
			}
			first[l] = given{target, at, i}
		}
	}
	u.overriddenTargets(c, func(label string) (DependencyID, *source.Range, bool) {
		f, ok := first[label]
		return f.target, f.at, ok
	})
	return c.ds
}

// overriddenTargets warns if inherited inputs still read a dependency whose path this file
// overrides.
func (u *Unit) overriddenTargets(c *evaluator, merged func(label string) (DependencyID, *source.Range, bool)) {
	for _, b := range u.e.file().Root.Of("dependency") {
		was, at, ok := merged(b.Label)
		if !ok || b.Attr("config_path") == nil {
			continue
		}
		one := c.sub(u.e, false)
		d, ok := one.dependency(u.e, b.Label, &blockNode{u.e, b}).(*depNode)
		if !ok {
			continue
		}
		now, ok := d.target(one)
		if !ok || now == was {
			continue
		}
		if key := u.inheritedUse(c, was, b.Label); key != "" {
			w := diag.Warnf(diag.CodeUnitOverrideNoFeedback, &b.At, "Overridden dependency is still read", "This dependency points to %s, but the inherited input %q goes on reading the outputs of %s: what a file imports does not change with who imports it. Set the input here too.", now, key, was)
			c.add(w.Note(at, "the imported dependency"))
		}
	}
}

// inheritedUse returns the first inherited input that reads a target through a dependency
// of another file, or "".
func (u *Unit) inheritedUse(c *evaluator, was DependencyID, label string) string {
	n := u.field(c, "inputs")
	if n == nil {
		return ""
	}
	o := n.open(c)
	names, _ := o.keys(c)
	for _, k := range names {
		in := o.child(c, k)
		if e, _ := in.where(); e == u.e {
			continue
		}
		one := c.sub(u.e, false)
		in.value(one)
		if one.facts == nil {
			continue
		}
		for _, d := range one.facts.deps {
			if d.target == was && d.label == label && d.via.wholeFile() != u.e {
				return k
			}
		}
	}
	return ""
}

// Known reports whether a value is set and contains no unknown values.
func Known(v cty.Value) bool { return v != cty.NilVal && v.IsWhollyKnown() }
