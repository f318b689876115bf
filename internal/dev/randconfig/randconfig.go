// Package randconfig generates small random configurations with commands to run on them, to
// compare two programs step by step.
//
// Main type: Case, which Make returns. The one rule: a seed always gives the same case.
package randconfig

import (
	"fmt"
	"math/rand"
	"strings"
)

// A Case is a directory of configuration and a sequence of commands.
type Case struct {
	Files map[string]string
	Steps []Step
}

// A Step is one command.
type Step struct {
	Files map[string]string // files to write before the command
	Args  []string
}

// Make generates the case of a seed: resources in chains, with count and for_each; data
// sources; nested modules, whose outputs are read one by one or as a whole; conditions and
// provisioners that fail for some values of the variables; and as commands applies, saved
// plans, refresh-only runs, targets and exclusions, replacements, tainting and removing
// objects, a second version with moved, removed and import blocks, and a destroy.
func Make(seed int64) Case {
	g := &generator{r: rand.New(rand.NewSource(seed))}
	c := Case{Files: map[string]string{"other.tfstate": otherState}}
	c.Files["m/inner/main.tf"] = g.module("")
	c.Files["m/main.tf"] = g.module("inner")
	c.Files["main.tf"] = g.root()
	g.second = g.next(c.Files["main.tf"])
	c.Steps = g.steps()
	return c
}

// otherState is the state that data sources read.
const otherState = `{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"other","outputs":{"a":{"value":"one","type":"string"},"b":{"value":["x","y"],"type":["list","string"]}},"resources":[],"check_results":null}
`

type generator struct {
	r      *rand.Rand
	values []string // expressions with a value, in the root module
	names  []string // addresses for targets
	plains []string // addresses of single resources
	second string   // the second version of the root module
}

func (g *generator) one(of ...string) string { return of[g.r.Intn(len(of))] }

func (g *generator) chance(n int) bool { return g.r.Intn(n) == 0 }

// value returns a reference to an earlier object, or a constant.
func (g *generator) value() string {
	if len(g.values) == 0 || g.chance(4) {
		return g.one(`"x"`, "var.v", "1", `"${var.v}-y"`)
	}
	return g.values[g.r.Intn(len(g.values))]
}

// module returns the text of a called module, with one output of its input and one of its
// resource. It may call another module.
func (g *generator) module(calls string) string {
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
	if calls != "" && g.chance(3) {
		fmt.Fprintf(&b, "module \"i\" {\n  source = \"./%s\"\n%s  a = %s\n}\noutput \"deep\" { value = %s }\n", calls,
			g.one("", "  count = 1\n"), g.one("var.a", "terraform_data.x", "terraform_data.x[*].output"), g.one("module.i", "module.i[*]"))
	}
	return b.String()
}

func (g *generator) root() string {
	var b strings.Builder
	b.WriteString("variable \"v\" {\n  default = 1\n")
	if g.chance(6) {
		b.WriteString("  validation {\n    condition     = var.v != \"3\"\n    error_message = \"not three\"\n  }\n")
	}
	b.WriteString("}\nvariable \"n\" {\n  type    = number\n  default = 2\n}\n")
	for i := range 3 + g.r.Intn(5) {
		switch g.r.Intn(8) {
		case 0, 1:
			g.plain(&b, i)
		case 2:
			g.repeated(&b, i)
		case 3, 4:
			g.call(&b, i)
		case 5:
			g.data(&b, i)
		case 6:
			g.enabled(&b, i)
		default:
			fmt.Fprintf(&b, "locals {\n  l%d = [%s, %s]\n}\n", i, g.value(), g.value())
			g.values = append(g.values, fmt.Sprintf("local.l%d", i), fmt.Sprintf("local.l%d[0]", i))
		}
	}
	for i := range 2 + g.r.Intn(3) {
		fmt.Fprintf(&b, "output \"o%d\" {\n  value = %s\n", i, g.value())
		if g.chance(6) {
			b.WriteString("  precondition {\n    condition     = var.v != \"3\"\n    error_message = \"no output\"\n  }\n")
		}
		b.WriteString("}\n")
	}
	if g.chance(4) {
		fmt.Fprintf(&b, "check \"c\" {\n  assert {\n    condition     = %s\n    error_message = \"three\"\n  }\n}\n",
			g.one(`var.v != "3"`, `jsonencode([`+g.value()+`, var.v]) != "[\"x\",\"3\"]"`))
	}
	return b.String()
}

// condition returns a precondition or postcondition block that may fail.
func (g *generator) condition(self bool) string {
	kind, text := g.one("precondition", "postcondition"), `var.v != "3"`
	if self && kind == "postcondition" && g.chance(2) {
		text = `jsonencode(self.output) != jsonencode("3")`
	}
	return fmt.Sprintf("    %s {\n      condition     = %s\n      error_message = \"refused\"\n    }\n", kind, text)
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
	if g.chance(8) {
		life += fmt.Sprintf("    ignore_changes = %s\n", g.one("[input]", "all", "[triggers_replace]"))
	}
	if g.chance(4) {
		life += g.condition(true)
	}
	if len(g.plains) > 0 && g.chance(6) {
		life += fmt.Sprintf("    replace_triggered_by = [%s%s]\n", g.plains[g.r.Intn(len(g.plains))], g.one("", "", ".input", ".output"))
	}
	if life != "" {
		fmt.Fprintf(b, "  lifecycle {\n%s  }\n", life)
	}
	g.dependsOn(b)
	if g.chance(8) {
		fmt.Fprintf(b, "  provisioner \"local-exec\" {\n    command = \"test %s != %s\"\n%s  }\n", "${var.v}", g.one("2", "3"), g.one("", "    on_failure = continue\n"))
	}
	b.WriteString("}\n")
	g.names, g.plains = append(g.names, name), append(g.plains, name)
	g.values = append(g.values, name+".input", name+".output", name+".output")
}

func (g *generator) dependsOn(b *strings.Builder) {
	if len(g.names) > 0 && g.chance(5) {
		fmt.Fprintf(b, "  depends_on = [%s]\n", g.names[g.r.Intn(len(g.names))])
	}
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

// enabled writes a resource or a call that exists for one value of the variable.
func (g *generator) enabled(b *strings.Builder, i int) {
	text := g.one("var.n == 2", "var.n == 2", "false")
	if g.chance(2) {
		fmt.Fprintf(b, "resource \"terraform_data\" \"e%d\" {\n  input = %s\n  lifecycle {\n    enabled = %s\n  }\n}\n", i, g.value(), text)
		g.names = append(g.names, fmt.Sprintf("terraform_data.e%d", i))
		g.values = append(g.values, fmt.Sprintf("terraform_data.e%d", i), fmt.Sprintf("try(terraform_data.e%d.output, null)", i))
		return
	}
	fmt.Fprintf(b, "module \"e%d\" {\n  source = \"./m\"\n  a = %s\n  lifecycle {\n    enabled = %s\n  }\n}\n", i, g.value(), text)
	g.names = append(g.names, fmt.Sprintf("module.e%d", i))
	g.values = append(g.values, fmt.Sprintf("module.e%d", i), fmt.Sprintf("try(module.e%d.given, null)", i))
}

// data writes a data source whose arguments are known, or depend on a created object.
func (g *generator) data(b *strings.Builder, i int) {
	name := fmt.Sprintf("data.terraform_remote_state.d%d", i)
	fmt.Fprintf(b, "data \"terraform_remote_state\" \"d%d\" {\n  backend = \"local\"\n  config  = { path = \"other.tfstate\" }\n", i)
	repeat := g.one("", "", "  count = var.n\n")
	b.WriteString(repeat)
	if g.chance(2) {
		fmt.Fprintf(b, "  defaults = { c = %s }\n", g.value())
	}
	if g.chance(5) {
		fmt.Fprintf(b, "  lifecycle {\n%s  }\n", g.condition(false))
	}
	g.dependsOn(b)
	b.WriteString("}\n")
	g.names = append(g.names, name)
	if repeat != "" {
		g.values = append(g.values, name+"[*].outputs.a", name+"[0].outputs.b")
		return
	}
	g.values = append(g.values, name+".outputs.a", name+".outputs.b", name+".outputs")
}

func (g *generator) call(b *strings.Builder, i int) {
	name := fmt.Sprintf("module.m%d", i)
	repeat := g.one("", "", "  count = var.n\n", "  for_each = toset([\"a\", \"b\"])\n", "  count = 0\n")
	fmt.Fprintf(b, "module \"m%d\" {\n  source = \"./m\"\n%s  a = %s\n", i, repeat, g.value())
	g.dependsOn(b)
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

// next returns the second version of the root module: one resource is renamed, one that is
// not referenced is removed, and one is imported.
func (g *generator) next(text string) string {
	if len(g.plains) > 0 && g.chance(2) {
		from := g.plains[g.r.Intn(len(g.plains))]
		label := strings.TrimPrefix(from, "terraform_data.")
		if !strings.Contains(text, from+"]") { // an address in depends_on or replace_triggered_by must remain an address
			text = strings.ReplaceAll(text, from+".", "terraform_data.was_"+label+".")
			text = strings.ReplaceAll(text, "\"terraform_data\" \""+label+"\"", "\"terraform_data\" \"was_"+label+"\"")
			text += fmt.Sprintf("moved {\n  from = %s\n  to   = terraform_data.was_%s\n}\n", from, label)
		}
	}
	if len(g.plains) > 0 && g.chance(2) {
		if cut, name, ok := g.cut(text); ok {
			text = cut
			if g.chance(2) {
				text += fmt.Sprintf("removed {\n  from = %s\n%s}\n", name, g.one("", "  lifecycle {\n    destroy = true\n  }\n", "  lifecycle {\n    destroy = false\n  }\n"))
			}
		}
	}
	if g.chance(3) {
		text += fmt.Sprintf("import {\n  to = terraform_data.imp\n  id = \"some-id\"\n}\nresource \"terraform_data\" \"imp\" {\n%s}\noutput \"imported\" { value = terraform_data.imp.id }\n", g.one("", "  input = \"new\"\n"))
	}
	return text
}

// cut removes a single resource that is not referenced.
func (g *generator) cut(text string) (_, name string, ok bool) {
	for _, name := range g.plains {
		head := "resource \"terraform_data\" \"" + strings.TrimPrefix(name, "terraform_data.") + "\" {\n"
		before, rest, found := strings.Cut(text, head)
		_, after, ended := strings.Cut(rest, "\n}\n")
		if found && ended && !strings.Contains(before+after, name) {
			return before + after, name, true
		}
	}
	return text, "", false
}

func (g *generator) steps() []Step {
	apply := func(args ...string) []string { return append([]string{"apply", "-auto-approve"}, args...) }
	out := []Step{{Args: apply()}}
	for i := range 3 + g.r.Intn(4) {
		given := []string{"-var=v=" + g.one("1", "2", "3"), "-var=n=" + g.one("2", "2", "1")}
		var files map[string]string
		if i > 0 && g.chance(4) {
			files = map[string]string{"main.tf": g.second}
		}
		add := func(args []string) { out, files = append(out, Step{Files: files, Args: args}), nil }
		if g.chance(6) && len(g.plains) > 0 {
			add(append(strings.Fields(g.one("taint", "taint", "state rm")), g.plains[g.r.Intn(len(g.plains))]))
		}
		switch g.r.Intn(9) {
		case 0:
			given = append(given, "-refresh-only")
		case 1:
			given = append(given, g.limit())
		case 2:
			if len(g.plains) > 0 {
				given = append(given, "-replace="+g.plains[g.r.Intn(len(g.plains))])
			}
		case 3:
			add(append([]string{"plan", "-detailed-exitcode"}, given...))
			continue
		case 4, 5:
			if g.chance(3) {
				given = append(given, g.one("-refresh-only", "-destroy", g.limit(), "-refresh=false"))
			}
			add(append([]string{"plan", "-out=p"}, given...))
			add([]string{"show", "-json", "p"})
			add([]string{"apply", "p"})
			continue
		}
		add(apply(given...))
	}
	last := []string{"destroy", "-auto-approve"}
	if g.chance(3) {
		out = append(out, Step{Args: append(last, g.limit())})
	}
	return append(out, Step{Args: last})
}

func (g *generator) limit() string {
	if len(g.names) == 0 {
		return "-refresh=false"
	}
	return g.one("-target=", "-exclude=") + g.names[g.r.Intn(len(g.names))]
}
