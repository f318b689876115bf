package randconfig

import (
	"fmt"
	"math/rand"
	"strings"
)

// MakeWide generates the case of a seed with more features than Make: sensitive and
// ephemeral variables, for_each over maps of objects and sets, modules nested three levels
// deep, provider configurations with aliases that are passed to a module, checks with data
// sources, in the root module and in a module that is referenced as a whole, state commands
// between the steps, and plans of configurations with an error, usually in a part that is
// not evaluated.
func MakeWide(seed int64) Case {
	c := Make(seed)
	w := &widener{generator{r: rand.New(rand.NewSource(^seed))}}
	extra := w.extra(c.Files)
	add := func(files map[string]string) {
		if main, ok := files["main.tf"]; ok {
			files["main.tf"] = main + extra
		}
	}
	add(c.Files)
	main := c.Files["main.tf"]
	seen := map[string]string{}
	for i, s := range c.Steps {
		if text, ok := s.Files["main.tf"]; ok {
			if seen[text] == "" {
				seen[text] = text + extra
			}
			c.Steps[i].Files = map[string]string{"main.tf": seen[text]}
		}
	}
	var steps []Step
	for i, s := range c.Steps {
		if text, ok := s.Files["main.tf"]; ok {
			main = text
		}
		if saved := i > 0 && s.Args[len(s.Args)-1] == "p"; i > 0 && i < len(c.Steps)-1 && !saved {
			steps = append(steps, w.between(main, &s)...)
		}
		steps = append(steps, s)
	}
	c.Steps = steps
	return c
}

type widener struct{ generator }

// extra returns the text to add to the root module, and adds its modules to files.
func (w *widener) extra(files map[string]string) string {
	var b strings.Builder
	if w.chance(2) {
		b.WriteString("variable \"hidden\" {\n  default   = \"h\"\n  sensitive = true\n}\nresource \"terraform_data\" \"hidden\" { input = { a = var.hidden, b = var.v } }\noutput \"hidden\" {\n  value     = terraform_data.hidden.output\n  sensitive = true\n}\n")
		w.plains = append(w.plains, "terraform_data.hidden")
	}
	if w.chance(2) {
		fmt.Fprintf(&b, "locals {\n  objects = var.n == 2 ? { a = { x = 1, tags = [\"t\"] }, b = { x = 2, tags = [] } } : { a = { x = %s, tags = [] } }\n}\nresource \"terraform_data\" \"each\" {\n  for_each = local.objects\n  input    = each.value\n}\noutput \"each\" { value = { for k, x in terraform_data.each : k => x.output.x } }\n", w.one("1", "3"))
		w.plains = append(w.plains, `terraform_data.each["a"]`)
	}
	if w.chance(2) {
		files["deep/b/c/main.tf"] = "variable \"a\" {}\nresource \"terraform_data\" \"c\" {\n  input = var.a\n}\noutput \"c\" { value = terraform_data.c }\n"
		files["deep/b/main.tf"] = "variable \"a\" {}\nmodule \"c\" {\n  source = \"./c\"\n" + w.one("", "  count  = 2\n") + "  a      = var.a\n}\noutput \"c\" { value = module.c }\n"
		files["deep/main.tf"] = "variable \"a\" {}\nmodule \"b\" {\n  source = \"./b\"\n" + w.one("", "  for_each = toset([\"p\", \"q\"])\n") + "  a      = var.a\n}\noutput \"b\" { value = module.b }\n"
		fmt.Fprintf(&b, "module \"deep\" {\n  source = \"./deep\"\n%s  a      = var.v\n}\nresource \"terraform_data\" \"deep\" { input = module.deep }\noutput \"deep\" { value = module.deep%s }\n", w.one("", "  count  = var.n\n"), w.one("", "[*]"))
		w.plains = append(w.plains, "terraform_data.deep")
	}
	if w.chance(3) {
		files["aliased/main.tf"] = "terraform {\n  required_providers {\n    terraform = {\n      source                = \"terraform.io/builtin/terraform\"\n      configuration_aliases = [terraform.other]\n    }\n  }\n}\nresource \"terraform_data\" \"x\" {\n  provider = terraform.other\n  input    = \"x\"\n}\noutput \"x\" { value = terraform_data.x.output }\n"
		b.WriteString("terraform {\n  required_providers {\n    terraform = { source = \"terraform.io/builtin/terraform\" }\n  }\n}\nprovider \"terraform\" {\n  alias = \"second\"\n}\nmodule \"aliased\" {\n  source    = \"./aliased\"\n  providers = { terraform.other = terraform.second }\n}\noutput \"aliased\" { value = module.aliased.x }\n")
	}
	if w.chance(3) {
		files["passing/main.tf"] = "variable \"e\" { ephemeral = true }\noutput \"e\" {\n  value     = var.e\n  ephemeral = true\n}\noutput \"known\" { value = ephemeralasnull(var.e) == null }\n"
		b.WriteString("variable \"passing\" {\n  default   = \"e\"\n  ephemeral = true\n}\nmodule \"passing\" {\n  source = \"./passing\"\n  e      = var.passing\n}\noutput \"passing\" { value = module.passing.known }\n")
	}
	if w.chance(3) {
		b.WriteString("check \"reads\" {\n  data \"terraform_remote_state\" \"other\" {\n    backend = \"local\"\n    config  = { path = \"other.tfstate\" }\n  }\n  assert {\n    condition     = data.terraform_remote_state.other.outputs.a != \"one\" || var.v != \"3\"\n    error_message = \"reads\"\n  }\n}\n")
	}
	if w.chance(3) {
		b.WriteString("resource \"terraform_data\" \"bound\" {\n  input      = var.v\n  depends_on = [terraform_data.bound]\n}\nmoved {\n  from = terraform_data.bound_was\n  to   = terraform_data.bound\n}\n")
		w.plains = append(w.plains, "terraform_data.bound")
	}
	if w.chance(3) {
		files["checked/main.tf"] = "variable \"a\" {}\nresource \"terraform_data\" \"x\" { input = var.a }\ncheck \"inside\" {\n  data \"terraform_remote_state\" \"inside\" {\n    backend = \"local\"\n    config  = { path = \"other.tfstate\" }\n  }\n  assert {\n    condition     = " +
			w.one("data.terraform_remote_state.inside.outputs.a != jsonencode(terraform_data.x.output)", "data.terraform_remote_state.inside.outputs.a == \"one\"") + "\n    error_message = \"inside\"\n  }\n}\noutput \"x\" { value = terraform_data.x.output }\n"
		fmt.Fprintf(&b, "module \"checked\" {\n  source = \"./checked\"\n%s  a      = var.v\n}\n%s", w.one("", "  count  = var.n\n"),
			w.one("output \"checked\" { value = module.checked }\n", "locals {\n  checked = module.checked\n}\n", "resource \"terraform_data\" \"after\" {\n  input      = \"after\"\n  depends_on = [module.checked]\n}\n"))
	}
	return b.String()
}

// mistakes are usually in parts that are not evaluated.
var mistakes = []string{
	"output \"bad\" { value = true ? 1 : var.nope }\n",
	"output \"bad\" { value = try(terraform_data.nope.id, 1) }\n",
	"output \"bad\" { value = [for x in [] : local.nope] }\n",
	"resource \"terraform_data\" \"bad\" {\n  count = 0\n  input = module.nope.x\n}\n",
	"resource \"terraform_data\" \"bad\" {\n  input = upper(var.nope)\n  lifecycle { enabled = false }\n}\n",
	"module \"bad\" {\n  source = \"./m\"\n  count  = 0\n  a      = var.nope\n}\n",
	"module \"bad\" {\n  source = \"./m\"\n  nope   = 1\n}\n",
	"resource \"terraform_data\" \"bad\" { input = terraform_data.bad.id }\n",
	"resource \"terraform_data\" \"bad\" { inputs = 1 }\n",
	"output \"bad\" { value = each.key }\n",
	"locals {\n  bad = local.bad\n}\n",
	"check \"bad\" {\n  assert {\n    condition     = var.nope\n    error_message = \"bad\"\n  }\n}\n",
	"resource \"terraform_data\" \"bad\" {\n  lifecycle { replace_triggered_by = [terraform_data.nope] }\n}\n",
}

// between returns additional steps before a step, if any.
func (w *widener) between(main string, next *Step) []Step {
	var out []Step
	switch w.r.Intn(6) {
	case 0: // an error, which the following step removes
		args := append([]string{"plan"}, strings.Fields(w.one("", "-refresh-only", "-destroy", "-refresh=false", w.target()))...)
		out = append(out, Step{Files: map[string]string{"main.tf": main + mistakes[w.r.Intn(len(mistakes))]}, Args: args})
		if next.Files == nil {
			next.Files = map[string]string{"main.tf": main}
		}
	case 1:
		if len(w.plains) > 0 {
			out = append(out, Step{Args: append(strings.Fields(w.one("taint", "untaint", "state rm")), w.plains[w.r.Intn(len(w.plains))])})
		}
	}
	return out
}

func (w *widener) target() string {
	if len(w.plains) == 0 {
		return ""
	}
	return w.one("-target=", "-exclude=") + w.plains[w.r.Intn(len(w.plains))]
}
