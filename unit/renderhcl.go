package unit

import (
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// RenderHCL is the effective configuration as a unit file.
func (u *Unit) RenderHCL(t *demand.Task) ([]byte, diag.List) {
	c := u.on(t, true)
	w := &hclRenderer{c: c, u: u, n: u.whole(), spec: syntax.Language().Unit, left: maxParts}
	if hasLocals(u.e) {
		w.text.block("locals", nil, func() { w.object(u.shown(c, "locals", w.n.child(c, "locals"))) })
	}
	for _, name := range [...]string{"terraform", "remote_state", "dependencies", "dependency", "generate", "feature", "engine", "exclude", "errors"} {
		w.blocks(name)
	}
	fields := u.fields(c)
	for _, name := range [...]string{"terraform_binary", "terraform_version_constraint", "terragrunt_version_constraint", "download_dir",
		"prevent_destroy", "iam_role", "iam_assume_role_duration", "iam_assume_role_session_name", "iam_web_identity_token"} {
		if fields.members[name] != nil {
			w.attr(name, w.n.child(c, name).value(c))
		}
	}
	if fields.members["inputs"] != nil {
		w.attr("inputs", u.shown(c, "inputs", w.n.child(c, "inputs")))
	}
	c.add(u.checkBlocks(t))
	if c.ds.HasErrors() {
		return nil, c.ds // nobody is shown the text
	}
	return w.text.formatted(), c.ds
}

type hclRenderer struct {
	c    *evaluator
	u    *Unit
	n    *configNode
	spec *syntax.BlockSpec
	left int // how many values more may be written
	text configText
}

// blocks writes the blocks of one type.
func (w *hclRenderer) blocks(name string) {
	n := w.u.fields(w.c).members[name]
	if n == nil {
		return
	}
	spec := w.spec.Block(name)
	shown := w.n.child(w.c, name)
	if spec.Label != syntax.OneLabel {
		w.block(spec, "", shown)
		return
	}
	w.labelled(spec, shown)
}

func (w *hclRenderer) labelled(spec *syntax.BlockSpec, n node) {
	o := n.open(w.c)
	labels, _ := o.keys(w.c)
	if spec.Name == "generate" || spec.Name == "feature" {
		labels = slices.Sorted(slices.Values(labels))
	}
	for _, l := range labels {
		w.block(spec, l, o.child(w.c, l))
	}
}

// block writes one block: the arguments that are set to something else than
// they are anyway, then what is in it.
func (w *hclRenderer) block(spec *syntax.BlockSpec, label string, n node) {
	var labels []string
	if spec.Label == syntax.OneLabel {
		labels = []string{label}
	}
	w.text.block(spec.Name, labels, func() {
		if s, ok := n.(*shape); ok {
			w.body(spec, s)
		}
	})
}

// body writes the arguments and nested blocks of a block.
func (w *hclRenderer) body(spec *syntax.BlockSpec, s *shape) {
	for _, a := range renderOrder(spec) {
		if s.raw.child(w.c, a) == nil && a != "if_disabled" {
			continue
		}
		v := blank(s.child(w.c, a).value(w.c))
		if a != "default" && v.IsKnown() && v.IsNull() {
			continue
		}
		w.attr(a, v)
	}
	for _, sub := range spec.Blocks {
		raw := s.raw.child(w.c, sub.Name)
		if raw == nil {
			continue
		}
		if sub.Label == syntax.OneLabel {
			o := raw.open(w.c)
			names, _ := o.keys(w.c)
			for _, l := range names {
				w.block(sub, l, s.of.shaped(o.child(w.c, l), sub, l))
			}
			continue
		}
		w.block(sub, "", s.of.shaped(raw, sub, ""))
	}
}

// renderOrder is the order in which the arguments of a block are written.
func renderOrder(spec *syntax.BlockSpec) []string {
	first := map[string][]string{
		"generate":     {"path", "if_exists", "if_disabled", "comment_prefix", "contents"},
		"remote_state": {"backend", "disable_init", "disable_dependency_optimization", "generate", "config"},
		"exclude":      {"actions", "exclude_dependencies", "if", "no_run"},
		"retry":        {"max_attempts", "sleep_interval_sec", "retryable_errors"},
		"before_hook":  {"if", "run_on_error", "suppress_stdout", "commands", "execute", "working_dir"},
		"after_hook":   {"if", "run_on_error", "suppress_stdout", "commands", "execute", "working_dir"},
		"error_hook":   {"commands", "execute", "on_errors", "suppress_stdout", "working_dir"},
	}[spec.Name]
	out := slices.Clone(first)
	for i := range spec.Args {
		if !slices.Contains(out, spec.Args[i].Name) {
			out = append(out, spec.Args[i].Name)
		}
	}
	return out
}

func (w *hclRenderer) object(v cty.Value) {
	names, _ := valueKeys(v)
	slices.Sort(names)
	for _, k := range names {
		w.attr(k, valueNode{v: v}.child(nil, k).(valueNode).v)
	}
}

func (w *hclRenderer) attr(name string, v cty.Value) {
	if w.c.ds.HasErrors() {
		return // nobody is shown the text, and what is wrong with it may be its size
	}
	if !w.c.fits(w.u, v, &w.left) {
		return
	}
	w.text.attribute(name, showable(w.u.revealed(v)))
}

// showable replaces what cannot be written: unknown values by null, secret ones
// by a text that says so.
func showable(v cty.Value) cty.Value {
	if v.IsMarked() {
		if value.Secret(v) {
			return cty.StringVal(hiddenText)
		}
		v, _ = v.Unmark()
	}
	ty := v.Type()
	switch {
	case !v.IsKnown() || syntax.HugeNumber(v):
		return cty.NullVal(cty.DynamicPseudoType)
	case v.IsNull():
		return v
	case ty.IsObjectType() || ty.IsMapType():
		m := v.AsValueMap()
		for k, in := range m {
			m[k] = showable(in)
		}
		return cty.ObjectVal(m)
	case ty.IsTupleType() || ty.IsListType() || ty.IsSetType():
		var out []cty.Value
		for _, in := range v.AsValueSlice() {
			out = append(out, showable(in))
		}
		return cty.TupleVal(out)
	}
	return v
}
