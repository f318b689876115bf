package origin

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// # Redaction by value
//
// The way to a value decides whether it is secret. However, other ways may lead to the same value: a
// local value that is also passed to a sensitive variable of a called module, or a hook with a part of
// it. Therefore, everything that is shown is compared with the values of all sensitive variables, and
// with the items on the way whose names suggest a secret, if there is no schema. Values of variables and
// outputs that are not sensitive are not redacted, because every plan shows them.

// redaction contains the secret texts to remove from values and lines.
type redaction struct {
	in    *reader
	fed   *feeds
	named secrets // items on the way whose names suggest a secret
	all   *secrets
	open  map[string]bool // texts in variables and outputs that are not sensitive; nil until the first use
}

// variables calls f with the value of each variable of all module instances that are known. It evaluates
// only the variables for which only returns true.
func (r *reader) variables(only func(sensitive bool) bool, f func(v cty.Value)) {
	if r.e.Eval == nil {
		return
	}
	var walk func(m *eval.Module)
	walk = func(m *eval.Module) {
		for name, v := range m.Node.Config.Variables {
			if only(v.Sensitive) {
				if val, ok := m.Variable(r.t, name); ok {
					f(val)
				}
			}
		}
		for _, call := range m.Calls() {
			if ch, ok := call.Children(r.t); ok {
				for _, child := range ch.All {
					walk(child)
				}
			}
		}
	}
	walk(r.e.Eval.Root)
}

// sensitive returns the texts in the values of all sensitive variables.
func (d *redaction) sensitive() *secrets {
	if d.all == nil {
		d.all = &secrets{}
		d.in.variables(func(sensitive bool) bool { return sensitive }, d.all.addGiven)
		d.all.others = nil // numbers and bools match too many other values
	}
	return d.all
}

// found returns the secret texts that were found on the way and on the ways of sensitive variables.
func (d *redaction) found() []string {
	texts := slices.Clone(d.named.texts)
	if fed := d.fed.texts; fed != nil {
		for _, t := range fed.texts {
			if len(t) >= shortest {
				texts = append(texts, t)
			}
		}
	}
	return texts
}

// addGiven adds the value of a variable. If the value is JSON text, it also adds the decoded value: a
// unit passes an object to a variable without a type as JSON.
func (s *secrets) addGiven(v cty.Value) {
	s.add(v, true)
	if v, _ = v.Unmark(); !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return
	}
	text := []byte(v.AsString())
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return
	}
	ty, err := ctyjson.ImpliedType(text)
	if err != nil {
		return
	}
	if v, err := ctyjson.Unmarshal(text, ty); err == nil {
		s.add(v, true)
	}
}

// isOpenText reports whether a text is the value, or a part of the value, of a variable or root output
// that is not sensitive.
func (d *redaction) isOpenText(text string) bool {
	if d.open == nil {
		open := &secrets{}
		d.in.variables(func(sensitive bool) bool { return !sensitive }, func(v cty.Value) {
			if !value.ContainsSecret(v) {
				open.addGiven(v)
			}
		})
		if d.in.e.Eval != nil {
			root := d.in.e.Eval.Root
			for name, o := range root.Node.Config.Outputs {
				if v, ok := root.Output(d.in.t, name); ok && !o.Sensitive && !value.ContainsSecret(v) {
					open.add(v, true)
				}
			}
		}
		d.open = make(map[string]bool, len(open.texts))
		for _, t := range open.texts {
			d.open[t] = true
		}
	}
	return d.open[text]
}

// ofValue marks the parts of a value that are or contain a secret text.
func (d *redaction) ofValue(v cty.Value) cty.Value {
	if v == cty.NilVal {
		return v
	}
	all, named := d.sensitive(), &secrets{texts: d.found()}
	if len(all.texts)+len(named.texts) == 0 {
		return v
	}
	out, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if named.repeats(v) || all.repeats(v) && !d.isOpenText(unmark(v).AsString()) {
			return v.Mark(value.Sensitive), nil
		}
		return v, nil
	})
	if err != nil { // cannot happen: the function returns no errors
		return v
	}
	return out
}

// ofLines removes secret texts from all lines of an explanation.
func (d *redaction) ofLines(steps trail) {
	texts := d.found()
	for _, t := range d.sensitive().texts {
		if !d.isOpenText(t) {
			texts = append(texts, t)
		}
	}
	texts = slices.DeleteFunc(texts, func(t string) bool { return len(t) < shortest })
	if len(texts) == 0 {
		return
	}
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	line := func(s string) string {
		for _, t := range texts {
			s = withoutWord(s, t)
		}
		return s
	}
	steps.eachPlace(func(p *SourceLine) { p.Source, p.Part = line(p.Source), line(p.Part) })
}

// withoutWord replaces a text in a line by a placeholder, except where the text is a part of a longer
// word.
func withoutWord(line, text string) string {
	letter := func(i int) bool {
		if i < 0 || i >= len(line) {
			return false
		}
		c := line[i]
		return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
	}
	from := 0
	for {
		i := strings.Index(line[from:], text)
		if i < 0 {
			return line
		}
		at, end := from+i, from+i+len(text)
		if letter(at-1) && letter(at) || letter(end-1) && letter(end) {
			from = end
			continue
		}
		line = line[:at] + value.SecretText + line[end:]
		from = at + len(value.SecretText)
	}
}

// namedItems marks the items in a value whose names suggest a secret. Such items may come from decoded
// files, so that no expression on the way contains them.
func namedItems(v cty.Value) cty.Value {
	if v == cty.NilVal {
		return v
	}
	out, err := cty.Transform(v, func(p cty.Path, v cty.Value) (cty.Value, error) {
		if n := len(p); n > 0 && !v.IsNull() && secretStep(p[n-1]) {
			return v.Mark(value.Sensitive), nil
		}
		return v, nil
	})
	if err != nil { // cannot happen: the function returns no errors
		return v
	}
	return out
}

// secretStep reports whether the name in a step suggests a secret.
func secretStep(s cty.PathStep) bool {
	switch s := s.(type) {
	case cty.GetAttrStep:
		return SecretName(s.Name)
	case cty.IndexStep:
		key, _ := s.Key.Unmark()
		return key.IsKnown() && !key.IsNull() && key.Type() == cty.String && SecretName(key.AsString())
	}
	return false
}

// named records the values of items in an expression whose names suggest a secret. The requested part is
// secret if its own name suggests it.
func (r *replay) named(c cursor) {
	if n := len(c.path); n > 0 {
		e := evidence{guard: guard{byName: true}, argument: c.path[n-1:]}
		r.weigh(e)
		r.valueSecret = r.valueSecret || e.secret()
	}
	node, ok := unwrap(c.x).(hclsyntax.Node)
	if !ok {
		return
	}
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		obj, ok := n.(*hclsyntax.ObjectConsExpr)
		if !ok {
			return nil
		}
		for _, it := range obj.Items {
			key, diags := it.KeyExpr.Value(nil)
			if diags.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String || !SecretName(key.AsString()) {
				continue
			}
			if v, ds := r.in.eval(c.f, it.ValueExpr); !ds.HasErrors() { // fails if it contains variables of a for expression
				r.redact.named.add(v, true)
			}
		}
		return nil
	})
}
