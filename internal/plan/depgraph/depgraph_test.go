package depgraph_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/plan/depgraph"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
)

// graph returns the edges of a configuration's graph, without the prefix of the names.
func graph(t *testing.T, text string) string {
	t.Helper()
	var edges []string
	dot := depgraph.Make(depgraph.Input{Type: depgraph.Plan, Tree: plantest.Tree(t, text)}).DOT(false)
	for line := range strings.Lines(dot) {
		if strings.Contains(line, " -> ") {
			edges = append(edges, strings.ReplaceAll(strings.TrimSpace(line), "[root] ", ""))
		}
	}
	return strings.Join(edges, "\n")
}

// An edge that a longer path implies is left out, and edges are sorted.
func TestRedundant(t *testing.T) {
	want := `"local.a (expand)" -> "local.b (expand)"
"local.b (expand)" -> "local.c (expand)"
"root" -> "local.a (expand)"`
	if d := cmp.Diff(want, graph(t, "locals {\n  a = [local.b, local.c]\n  b = local.c\n  c = 1\n}\n")); d != "" {
		t.Error(d)
	}
}

// The graph of a cycle contains each of its edges, in every call. Each node of a cycle is part of
// one that Cycles returns, and no other node is.
func TestCycles(t *testing.T) {
	const text = "locals {\n  a = [local.b, local.c]\n  b = local.c\n  c = local.a\n  x = local.y\n  y = local.x\n  z = local.x\n}\n"
	want := `"local.a (expand)" -> "local.b (expand)"
"local.a (expand)" -> "local.c (expand)"
"local.b (expand)" -> "local.c (expand)"
"local.c (expand)" -> "local.a (expand)"
"local.x (expand)" -> "local.y (expand)"
"local.y (expand)" -> "local.x (expand)"
"local.z (expand)" -> "local.x (expand)"
"root" -> "local.z (expand)"`
	for range 20 { // the order of a map must not matter
		if d := cmp.Diff(want, graph(t, text)); d != "" {
			t.Fatal(d)
		}
	}
	got := depgraph.Make(depgraph.Input{Type: depgraph.Plan, Tree: plantest.Tree(t, text)}).Cycles()
	if d := cmp.Diff([][]string{{"local.a (expand)", "local.c (expand)"}, {"local.b (expand)", "local.c (expand)", "local.a (expand)"}, {"local.x (expand)", "local.y (expand)"}}, got); d != "" {
		t.Error(d)
	}
}

// A resource depends on its provider, and the end of the provider on the resource. A module begins
// before its contents and ends after them.
func TestModule(t *testing.T) {
	want := `"module.m (close)" -> "module.m.output.o (expand)"
"module.m.output.o (expand)" -> "module.m.x_thing.a (expand)"
"module.m.x_thing.a (expand)" -> "module.m (expand)"
"module.m.x_thing.a (expand)" -> "provider[\"registry.opentofu.org/hashicorp/x\"]"
"provider[\"registry.opentofu.org/hashicorp/x\"] (close)" -> "module.m.x_thing.a (expand)"
"root" -> "module.m (close)"
"root" -> "provider[\"registry.opentofu.org/hashicorp/x\"] (close)"`
	got := graph(t, `
module "m" { source = "./m" }
-- m/main.tf --
resource "x_thing" "a" {}
output "o" { value = x_thing.a.id }
`)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// SVG writes well-formed XML, also of an empty configuration and for a title with markup.
func TestSVG(t *testing.T) {
	for _, text := range []string{"", "resource \"x_thing\" \"a\" {}\n"} {
		var b bytes.Buffer
		if err := depgraph.Make(depgraph.Input{Type: depgraph.Plan, Tree: plantest.Tree(t, text)}).SVG(&b, `<"&'>`); err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(b.String(), "x_thing.a"); has != (text != "") {
			t.Errorf("%q: the resource is drawn: %v", text, has)
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}
