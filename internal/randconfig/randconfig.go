// Package randconfig makes small random configurations with the commands to run on
// them, so that two programs can be compared step by step.
//
// Main type: Case, which Make draws. The one rule: a seed always gives the same case.
package randconfig

import (
	"fmt"
	"math/rand"
	"strings"
)

// A Case is a folder of configuration and the commands to run there, one after another.
type Case struct {
	Files map[string]string
	Steps [][]string
}

// Make draws the case of a seed: resources in chains, counted and keyed ones, modules of
// which outputs or the whole are read, conditions that fail for some values of the
// variable, then applies, refresh-only runs, targets and exclusions, and a destroy.
func Make(seed int64) Case {
	g := &generator{r: rand.New(rand.NewSource(seed))}
	c := Case{Files: map[string]string{}}
	c.Files["m/main.tf"] = g.module()
	c.Files["main.tf"] = g.root()
	c.Steps = g.steps()
	return c
}

type generator struct {
	r      *rand.Rand
	values []string // expressions that give something, in the root module
	names  []string // addresses for targets
}

func (g *generator) one(of ...string) string { return of[g.r.Intn(len(of))] }

func (g *generator) chance(n int) bool { return g.r.Intn(n) == 0 }

// value is a reference to something that was made before, or a constant.
func (g *generator) value() string {
	if len(g.values) == 0 || g.chance(4) {
		return g.one(`"x"`, "var.v", "1", `"${var.v}-y"`)
	}
	return g.values[g.r.Intn(len(g.values))]
}

// module is a called module: it has an output of what it is given, and one of what it makes.
func (g *generator) module() string {
	var b strings.Builder
	b.WriteString("variable \"a\" { default = null }\n")
	fmt.Fprintf(&b, "resource \"terraform_data\" \"x\" {\n  input = %s\n%s}\n", g.one("var.a", `"in"`), g.one("", "  count = 2\n"))
	if g.chance(2) {
		b.WriteString("resource \"terraform_data\" \"y\" { input = terraform_data.x }\n")
	}
	b.WriteString("output \"given\" { value = var.a }\noutput \"made\" { value = terraform_data.x }\n")
	if g.chance(3) {
		b.WriteString("output \"held\" {\n  value = \"h\"\n  depends_on = [terraform_data.x]\n}\n")
	}
	return b.String()
}

func (g *generator) root() string {
	var b strings.Builder
	b.WriteString("variable \"v\" { default = 1 }\nvariable \"n\" {\n  type    = number\n  default = 2\n}\n")
	for i := range 3 + g.r.Intn(5) {
		switch g.r.Intn(6) {
		case 0, 1:
			g.plain(&b, i)
		case 2:
			g.repeated(&b, i)
		case 3, 4:
			g.call(&b, i)
		default:
			fmt.Fprintf(&b, "locals {\n  l%d = [%s, %s]\n}\n", i, g.value(), g.value())
			g.values = append(g.values, fmt.Sprintf("local.l%d", i), fmt.Sprintf("local.l%d[0]", i))
		}
	}
	for i := range 2 + g.r.Intn(3) {
		fmt.Fprintf(&b, "output \"o%d\" { value = %s }\n", i, g.value())
	}
	if g.chance(4) {
		fmt.Fprintf(&b, "check \"c\" {\n  assert {\n    condition     = var.v != \"3\"\n    error_message = \"three\"\n  }\n}\n")
	}
	return b.String()
}

func (g *generator) plain(b *strings.Builder, i int) {
	name := fmt.Sprintf("terraform_data.r%d", i)
	fmt.Fprintf(b, "resource \"terraform_data\" \"r%d\" {\n  input = %s\n", i, g.value())
	if g.chance(3) {
		fmt.Fprintf(b, "  triggers_replace = %s\n", g.one("var.v", g.value()))
	}
	var life string
	if g.chance(4) {
		life += "    create_before_destroy = true\n"
	}
	if g.chance(4) {
		life += fmt.Sprintf("    %s {\n      condition     = %s\n      error_message = \"refused\"\n    }\n", "postcondition", g.one(`jsonencode(self.output) != jsonencode("3")`, `var.v != "3"`))
	}
	if len(g.names) > 0 && g.chance(6) {
		if other := g.names[g.r.Intn(len(g.names))]; strings.HasPrefix(other, "terraform_data.r") {
			life += fmt.Sprintf("    replace_triggered_by = [%s]\n", other)
		}
	}
	if life != "" {
		fmt.Fprintf(b, "  lifecycle {\n%s  }\n", life)
	}
	if len(g.names) > 0 && g.chance(5) {
		fmt.Fprintf(b, "  depends_on = [%s]\n", g.names[g.r.Intn(len(g.names))])
	}
	b.WriteString("}\n")
	g.names = append(g.names, name)
	g.values = append(g.values, name+".input", name+".output", name+".output")
}

func (g *generator) repeated(b *strings.Builder, i int) {
	name := fmt.Sprintf("terraform_data.n%d", i)
	if g.chance(2) {
		fmt.Fprintf(b, "resource \"terraform_data\" \"n%d\" {\n  count = %s\n  input = %s\n}\n", i, g.one("2", "var.n", "0"), g.value())
		g.values = append(g.values, name+"[*].output", "length("+name+")")
	} else {
		fmt.Fprintf(b, "resource \"terraform_data\" \"n%d\" {\n  for_each = toset(var.n == 2 ? [\"a\", \"b\"] : [\"b\"])\n  input = each.key\n}\n", i)
		g.values = append(g.values, "{ for k, x in "+name+" : k => x.output }", name+`["b"].output`)
	}
	g.names = append(g.names, name)
}

func (g *generator) call(b *strings.Builder, i int) {
	name := fmt.Sprintf("module.m%d", i)
	repeat := g.one("", "", "  count = var.n\n", "  for_each = toset([\"a\", \"b\"])\n", "  count = 0\n")
	fmt.Fprintf(b, "module \"m%d\" {\n  source = \"./m\"\n%s  a = %s\n", i, repeat, g.value())
	if len(g.names) > 0 && g.chance(5) {
		fmt.Fprintf(b, "  depends_on = [%s]\n", g.names[g.r.Intn(len(g.names))])
	}
	b.WriteString("}\n")
	g.names = append(g.names, name)
	switch {
	case repeat == "":
		g.values = append(g.values, name+".given", name+".made", name)
	case strings.Contains(repeat, "count"):
		g.values = append(g.values, name+"[*].given", name)
	default:
		g.values = append(g.values, "{ for k, x in "+name+" : k => x.given }", name+`["a"].made`, name)
	}
}

func (g *generator) steps() [][]string {
	apply := func(args ...string) []string { return append([]string{"apply", "-auto-approve"}, args...) }
	out := [][]string{apply()}
	for range 3 + g.r.Intn(3) {
		given := []string{"-var=v=" + g.one("1", "2", "3"), "-var=n=" + g.one("2", "2", "1")}
		switch g.r.Intn(6) {
		case 0:
			given = append(given, "-refresh-only")
		case 1:
			given = append(given, g.limit())
		case 2:
			out = append(out, append([]string{"plan", "-detailed-exitcode"}, given...))
			continue
		}
		out = append(out, apply(given...))
	}
	last := []string{"destroy", "-auto-approve"}
	if g.chance(3) {
		out = append(out, append(last, g.limit()))
	}
	return append(out, last)
}

func (g *generator) limit() string {
	if len(g.names) == 0 {
		return "-refresh=false"
	}
	return g.one("-target=", "-exclude=") + g.names[g.r.Intn(len(g.names))]
}
