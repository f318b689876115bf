package lint

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
)

// eachReference finds the same references as Variables, and eachTemplate the templates of VisitAll.
func TestEach(t *testing.T) {
	for _, text := range []string{
		`1`, `"a"`, `"${a.b}"`, `"x${a.b}y${c}"`, `a.b["c"].d[0]`, `a[b.c]`, `a[*].b`, `a.*.b`, `(a.b)`, `-a`, `!a && b.c`, `a ? b : c.d`,
		`f(a, [b.c, { d = e, "f${g}" = h, (i) = j, (k.l) = m, n.o = p, 1 = q, null = r }])`, `f(a...)`,
		`[for x in a.b : x.y + c if d]`, `{ for k, v in a : k => v... }`, `"%{ for x in a }${x}${b}%{ endfor }"`, `"%{ if a }b%{ else }${c}%{ endif }"`,
		"<<EOT\n${a.b}\nEOT\n", `provider::x::f(a)`, `f(a).b[c]`, `[for x in [for y in a : y.b] : [x, y]]`, `{ (f(a)) = b, "c" = "d" }`, `{ a = { (b) = { c = [d] } } }`,
	} {
		x, diags := hclsyntax.ParseExpression([]byte(text), "x.tf", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatalf("%s: %s", text, diags)
		}
		var got, want []string
		add := func(to *[]string, ref hcl.Traversal) {
			*to = append(*to, fmt.Sprint(addr.Text(ref), ref.SourceRange()))
		}
		eachReference(x, func(ref hcl.Traversal) { add(&got, ref) })
		for _, ref := range x.Variables() {
			add(&want, ref)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
		var templates, all []hcl.Range
		eachTemplate(x, func(x *hclsyntax.TemplateExpr) { templates = append(templates, x.SrcRange) })
		_ = hclsyntax.VisitAll(x, func(n hclsyntax.Node) hcl.Diagnostics {
			if x, ok := n.(*hclsyntax.TemplateExpr); ok {
				all = append(all, x.SrcRange)
			}
			return nil
		})
		if !slices.Equal(templates, all) {
			t.Errorf("%s: templates %v, want %v", text, templates, all)
		}
	}
}

// A name is secret by its last words.
func TestSecretName(t *testing.T) {
	for name, want := range map[string]bool{
		"": false, "password": true, "db_PassWord": true, "dbpassword": false, "password_": false, "key": false, "api_key": true, "x_api_key": true,
		"apikey": true, "xapikey": false, "name": false, "_passwd": true,
	} {
		if got := secretName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
