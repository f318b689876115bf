package unit

import (
	"slices"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// RenderHCL is the effective configuration as a unit file.
func (u *Unit) RenderHCL(t *demand.Task) ([]byte, diag.List) {
	c := u.on(t, true)
	w := &hclRenderer{c: c, u: u, n: u.whole(), spec: syntax.Language().Unit, left: maxParts}
	f := hclwrite.NewEmptyFile()
	body := f.Body()
	if hasLocals(u.e) {
		w.object(body.AppendNewBlock("locals", nil).Body(), u.shown(c, "locals", w.n.child(c, "locals")))
	}
	for _, name := range [...]string{"terraform", "remote_state", "dependencies", "dependency", "generate", "feature", "engine", "exclude", "errors"} {
		w.blocks(body, name)
	}
	fields := u.fields(c)
	for _, name := range [...]string{"terraform_binary", "terraform_version_constraint", "terragrunt_version_constraint", "download_dir",
		"prevent_destroy", "iam_role", "iam_assume_role_duration", "iam_assume_role_session_name", "iam_web_identity_token"} {
		if fields.members[name] != nil {
			w.Attr(body, name, w.n.child(c, name).value(c))
		}
	}
	if fields.members["inputs"] != nil {
		w.Attr(body, "inputs", u.shown(c, "inputs", w.n.child(c, "inputs")))
	}
	c.add(u.checkBlocks(t))
	return hclwrite.Format(f.Bytes()), c.ds
}

type hclRenderer struct {
	c    *evaluator
	u    *Unit
	n    *configNode
	spec *syntax.BlockSpec
	left int // how many values more may be written
}

// blocks writes the blocks of one type.
func (w *hclRenderer) blocks(body *hclwrite.Body, name string) {
	n := w.u.fields(w.c).members[name]
	if n == nil {
		return
	}
	spec := w.spec.Block(name)
	shown := w.n.child(w.c, name)
	if spec.Label != syntax.OneLabel {
		w.Block(body, spec, "", shown)
		return
	}
	w.labelled(body, spec, shown)
}

func (w *hclRenderer) labelled(body *hclwrite.Body, spec *syntax.BlockSpec, n node) {
	o := n.open(w.c)
	labels, _ := o.keys(w.c)
	if spec.Name == "generate" || spec.Name == "feature" {
		labels = slices.Sorted(slices.Values(labels))
	}
	for _, l := range labels {
		w.Block(body, spec, l, o.child(w.c, l))
	}
}

// Block writes one block: the arguments that are set to something else than
// they are anyway, then what is in it.
func (w *hclRenderer) Block(body *hclwrite.Body, spec *syntax.BlockSpec, label string, n node) {
	var labels []string
	if spec.Label == syntax.OneLabel {
		labels = []string{label}
	}
	in := body.AppendNewBlock(spec.Name, labels).Body()
	s, ok := n.(*shape)
	if !ok {
		return
	}
	for _, a := range renderOrder(spec) {
		if s.raw.child(w.c, a) == nil && a != "if_disabled" {
			continue
		}
		v := blank(s.child(w.c, a).value(w.c))
		if a != "default" && v.IsKnown() && v.IsNull() {
			continue
		}
		w.Attr(in, a, v)
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
				w.Block(in, sub, l, s.of.shaped(o.child(w.c, l), sub, l))
			}
			continue
		}
		w.Block(in, sub, "", s.of.shaped(raw, sub, ""))
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

func (w *hclRenderer) object(body *hclwrite.Body, v cty.Value) {
	names, _ := valueKeys(v)
	slices.Sort(names)
	for _, k := range names {
		w.Attr(body, k, valueNode{v: v}.child(nil, k).(valueNode).v)
	}
}

func (w *hclRenderer) Attr(body *hclwrite.Body, name string, v cty.Value) {
	if w.c.ds.HasErrors() {
		return // nobody is shown the text, and what is wrong with it may be its size
	}
	if !w.c.fits(w.u, v, &w.left) {
		return
	}
	body.SetAttributeValue(name, showable(v))
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
