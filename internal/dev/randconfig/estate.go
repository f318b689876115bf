package randconfig

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
)

// An Estate is a directory of units with a change to it. A file of the second version
// replaces the file of the same name.
type Estate struct {
	Files  map[string]string
	Units  []string // names of directories; a unit depends on earlier ones only
	Change map[string]string
	// Secret reports whether a unit reads a sensitive output of another unit.
	Secret bool
}

// MakeEstate generates the estate of a seed. Some units include a root file. Units have
// dependencies (some disabled, without outputs, or with mock outputs for some commands), inputs
// of every kind for variables of every type, outputs (also null, sensitive, nested and sets),
// local values, features, generated files, exclude blocks and hooks. Some hooks fail.
func MakeEstate(seed int64) Estate {
	g := &estateGenerator{generator: generator{r: rand.New(rand.NewSource(seed))}}
	e := Estate{Files: map[string]string{}, Change: map[string]string{}}
	e.Files["root.hcl"] = rootFile("r1")
	e.Files["common.hcl"] = "locals {\n  zone = \"z1\"\n  list = [\"c\", \"c\", \"d\"]\n}\n"
	n := 2 + g.r.Intn(3)
	for i := range n {
		name := fmt.Sprintf("u%d", i)
		e.Units = append(e.Units, name)
		files := g.unit(name, e.Units[:i])
		for file, text := range files {
			e.Files[name+"/"+file] = text
		}
	}
	g.change(&e)
	e.Secret = g.secret
	return e
}

func rootFile(region string) string {
	return `locals {
  region = "` + region + `"
  tags   = { region = "` + region + `", team = "t" }
}
remote_state {
  backend = "local"
  config = { path = "${get_terragrunt_dir()}/terraform.tfstate" }
  generate = {
    path      = "backend.tf"
    if_exists = "overwrite"
  }
}
inputs = {
  inherited = { tags = local.tags, names = ["root"] }
}
`
}

type estateGenerator struct {
	generator
	secret bool
}

// change generates the second version: with a changed root file, a changed file that units
// read, or a changed word in a unit.
func (g *estateGenerator) change(e *Estate) {
	if g.chance(3) {
		e.Change["root.hcl"] = rootFile("r2")
	}
	if g.chance(3) {
		e.Change["common.hcl"] = "locals {\n  zone = \"z2\"\n  list = [\"d\"]\n}\n"
	}
	for _, u := range e.Units {
		if g.chance(2) {
			file := u + "/terragrunt.hcl"
			e.Change[file] = strings.NewReplacer(`word = "w1"`, `word = "w2"`, "gone = true", "gone = false", "gone = false", "gone = true").Replace(e.Files[file])
		}
	}
}

// estateVariable is a variable of a module, with expressions for it.
type estateVariable struct {
	typ   string // "" for none
	exprs []string
	refs  []string // expressions with %s for a dependency
}

var estateVariables = []estateVariable{
	{"string", []string{`"s"`, "local.word", `"${local.word}-x"`, "upper(local.word)", "1", "1.50", "true", "null", `jsonencode({ b = [1, "x"], a = null })`, "feature.f.value", "local.common.locals.zone", `"%%{ of ${local.word} }"`},
		[]string{"%s.outputs.text", `try(%s.outputs.none, "fallback")`, `"${%s.outputs.text}+${local.word}"`, "%s.outputs.secret", "%s.outputs.made", "jsonencode(%s.outputs.obj)", "%s.outputs.obj.deep[0].k", `join(",", keys(%s.outputs))`}},
	{"number", []string{"1", "0.1", "1 / 3", "10000000000000000000001", "pow(2, 40)", `"7"`, "null"},
		[]string{"length(%s.outputs.set)", "%s.outputs.count", "length(keys(%s.outputs))"}},
	{"bool", []string{"true", `"false"`, `local.word == "w1"`}, []string{"%s.outputs.count > 2", "contains(keys(%s.outputs), \"none\")", "can(%s.outputs.none)"}},
	{"list(string)", []string{`["b", "a"]`, `distinct(["a", "a"])`, "[]", "toset([\"b\", \"a\"])", "[1, true]", "local.common.locals.list", `[null, "x"]`},
		[]string{"%s.outputs.set", "keys(%s.outputs)", "[%s.outputs.text]", "[for k, v in %s.outputs.map : v]"}},
	{"set(string)", []string{`["b", "a", "a"]`, "toset([])", "[]"}, []string{"%s.outputs.set", "[%s.outputs.text, \"x\"]"}},
	{"map(string)", []string{"{}", "{ a = 1, b = true }", "tomap({ a = \"x\" })", "{ a = null }"}, []string{"%s.outputs.map", "merge(%s.outputs.map, { z = local.word })"}},
	{"map(any)", []string{"{}", "{ a = [\"x\"], b = [\"x\", \"y\"] }", "tomap({ a = toset([1]) })"}, []string{"%s.outputs.map", "{ s = %s.outputs.set }"}},
	{"list(any)", []string{"[]", `[1, "a"]`, "[{ a = 1 }, { a = 2 }]", "chunklist([1, 2, 3], 2)"}, []string{"%s.outputs.set", "[%s.outputs.obj]"}},
	{"object({ a = string, b = optional(list(string), [\"d\"]), c = optional(map(number)) })",
		[]string{"{ a = 1 }", "{ a = \"x\", b = null }", "{ a = \"x\", b = [\"y\"], c = {}, more = 1 }", "merge({ a = \"m\" }, { c = { n = \"3\" } })"}, []string{"{ a = %s.outputs.text, b = %s.outputs.set }"}},
	{"any", []string{"{}", "[]", "[1, \"a\", true, null]", `distinct(["a", "a"])`, `toset(["b", "a"])`, "tomap({ a = 1 })", "{ a = { b = [{ c = null }] }, \"x y\" = 1.5 }", "null", "1", "1 / 3", "true", "chunklist([\"a\", \"b\", \"c\"], 2)", "setproduct([\"a\"], [\"b\", \"c\"])", "flatten([[], [[1]]])", "concat([], [])", "tolist([])", "zipmap([\"a\"], [[1]])", "{ for k in [\"a\", \"b\"] : k => upper(k) }", "local.common.locals", `[0.1, 123456789012345678901234567890, 1e3, -0]`, `["<&>", "é", "q\"q", "$${x}", "\n"]`},
		[]string{"%s.outputs.obj", "%s.outputs", "%s.outputs.set", "%s.outputs.map", "merge(%s.outputs.map, { z = [1] })", "{ for k, v in %s.outputs : k => v if k != \"secret\" }", "%s.outputs.any", "[%s.outputs.any, %s.outputs.set]", "keys(%s.outputs)", "[try(%s.outputs.none, [])]", "[lookup(%s.outputs, \"none\", [])]", "values(%s.outputs.map)"}},
	{"", []string{`"s"`, "local.word", "1", "0.5", "true", `["a", 1]`, `{ b = 1, a = ["<"] }`, `toset(["b", "a"])`, "[]"}, []string{"%s.outputs.text", "%s.outputs.obj", "%s.outputs.count", "%s.outputs.set"}},
}

// unit generates the files of a unit that may depend on others.
func (g *estateGenerator) unit(name string, others []string) map[string]string {
	var u, m strings.Builder
	include := !g.chance(4)
	fmt.Fprintf(&u, "locals {\n  word = \"w1\"\n  gone = %s\n  common = read_terragrunt_config(\"${get_terragrunt_dir()}/../common.hcl\")\n}\nfeature \"f\" {\n  default = \"feat\"\n}\n", g.one("true", "false"))
	if include {
		fmt.Fprintf(&u, "include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n%s}\n", g.one("", "", "  expose = true\n", "  merge_strategy = \"deep\"\n"))
	} else {
		u.WriteString("remote_state {\n  backend = \"local\"\n  config = { path = \"${get_terragrunt_dir()}/terraform.tfstate\" }\n  generate = {\n    path      = \"backend.tf\"\n    if_exists = \"overwrite\"\n  }\n}\n")
	}
	usable := g.dependencies(&u, others)
	g.blocks(&u, name)

	// Every module gets the word and the switch.
	inputs := []string{"  word = local.word", "  gone = local.gone", "  undeclared = [1]"}
	m.WriteString("variable \"word\" { type = string }\nvariable \"gone\" { type = bool }\n")
	var vars []string
	if include && g.chance(2) {
		m.WriteString("variable \"inherited\" { type = any }\n")
		vars = append(vars, "inherited")
		if g.chance(2) {
			inputs = append(inputs, "  inherited = { names = [\"own\"], more = null }")
		}
	}
	for i := range 2 + g.r.Intn(4) {
		v := estateVariables[g.r.Intn(len(estateVariables))]
		x := g.one(v.exprs...)
		if len(usable) > 0 && !g.chance(3) {
			x = g.one(v.refs...)
			g.secret = g.secret || strings.Contains(x, "secret") || strings.HasSuffix(x, "%s.outputs")
			x = strings.ReplaceAll(x, "%s", g.one(usable...))
		}
		in := fmt.Sprintf("v%d", i)
		inputs = append(inputs, "  "+in+" = "+x)
		if typ := v.typ; typ == "" {
			fmt.Fprintf(&m, "variable %q {}\n", in)
		} else {
			fmt.Fprintf(&m, "variable %q { type = %s }\n", in, typ)
		}
		vars = append(vars, in)
	}
	fmt.Fprintf(&u, "inputs = {\n%s\n}\n", strings.Join(inputs, "\n"))
	g.outputs(&m, name, vars)
	return map[string]string{"terragrunt.hcl": u.String(), "main.tf": m.String()}
}

// dependencies writes dependency blocks, and returns those with outputs that can be read.
func (g *estateGenerator) dependencies(u *strings.Builder, others []string) (usable []string) {
	const mocks = `  mock_outputs = {
    text = "mock", none = "mock", secret = "mock", made = "mock", count = 1, set = ["mock"], any = ["mock"]
    map = { mock = "m" }, obj = { v = "mock", deep = [{ k = "mock" }] }
  }
`
	for _, o := range others {
		if g.chance(3) {
			continue
		}
		if g.chance(8) {
			fmt.Fprintf(u, "dependencies {\n  paths = [\"../%s\"]\n}\n", o)
			return usable
		}
		var extra string
		if g.chance(2) {
			extra = mocks + g.one("", "", "  mock_outputs_allowed_terraform_commands = [\"plan\", \"validate\"]\n", "  mock_outputs_allowed_terraform_commands = [\"destroy\", \"plan\"]\n") +
				g.one("", "", "  mock_outputs_merge_strategy_with_state = \"shallow\"\n", "  mock_outputs_merge_strategy_with_state = \"deep_map_only\"\n", "  mock_outputs_merge_strategy_with_state = \"no_merge\"\n")
			extra += g.one("", "", "", "", "  skip_outputs = true\n", "  enabled = false\n")
		}
		fmt.Fprintf(u, "dependency %q {\n  config_path = \"../%s\"\n%s}\n", o, o, extra)
		usable = append(usable, "dependency."+o)
	}
	return usable
}

// blocks writes the blocks other than inputs and dependencies.
func (g *estateGenerator) blocks(u *strings.Builder, name string) {
	if g.chance(2) {
		fmt.Fprintf(u, "generate \"more\" {\n  path = \"more.tf\"\n  if_exists = \"overwrite\"\n  contents = <<-EOT\n    output \"more\" { value = \"${local.word} of %s\" }\n  EOT\n%s}\n", name, g.one("", "", "  disable = true\n", "  disable_signature = true\n"))
	}
	if g.chance(5) {
		fmt.Fprintf(u, "exclude {\n  if = %s\n  actions = [%s]\n  exclude_dependencies = %s\n}\n", g.one("true", "true", "false", "feature.f.value == \"feat\""), g.one(`"all"`, `"apply"`, `"plan"`, `"destroy"`, `"all_except_output"`, `"plan", "apply"`), g.one("true", "false", "false"))
	}
	if g.chance(12) {
		u.WriteString("prevent_destroy = true\n")
	}
	if !g.chance(3) {
		return
	}
	log := func(what string) string {
		return fmt.Sprintf("[\"sh\", \"-c\", \"echo %s $TG_CTX_COMMAND >> ${get_terragrunt_dir()}/hooks.log\"]", what)
	}
	fmt.Fprintf(u, "terraform {\n  before_hook \"b\" {\n    commands = [\"apply\", \"plan\", \"destroy\"]\n    execute = %s\n  }\n", log("before"))
	if g.chance(6) {
		fmt.Fprintf(u, "  before_hook \"fails\" {\n    commands = [%s]\n    execute = [\"sh\", \"-c\", \"exit 3\"]\n  }\n", g.one(`"apply"`, `"plan"`, `"destroy"`))
	}
	fmt.Fprintf(u, "  before_hook \"c\" {\n    commands = [\"apply\", \"destroy\"]\n    execute = %s\n    run_on_error = %s\n  }\n", log("second"), g.one("true", "false"))
	fmt.Fprintf(u, "  after_hook \"a\" {\n    commands = [\"apply\", \"plan\", \"destroy\"]\n    execute = %s\n    run_on_error = %s\n  }\n", log("after"), g.one("true", "false"))
	fmt.Fprintf(u, "  error_hook \"e\" {\n    commands = [\"apply\", \"plan\"]\n    execute = %s\n    on_errors = [\".*\"]\n  }\n}\n", log("error"))
}

// outputs writes the resources and outputs of a module.
func (g *estateGenerator) outputs(m *strings.Builder, name string, vars []string) {
	for _, v := range vars {
		fmt.Fprintf(m, "resource \"terraform_data\" %q { input = var.%s }\n", v, v)
		if g.chance(2) {
			fmt.Fprintf(m, "output \"from_%s\" { value = %s }\n", v, g.one("var."+v, "[var."+v+"]", "terraform_data."+v+".output"))
		}
	}
	fmt.Fprintf(m, "resource \"terraform_data\" \"word\" { input = \"%s ${var.word}\" }\n", name)
	part := g.one(vars...)
	for _, o := range []string{
		`"text" { value = var.word }`,
		`"none" { value = var.gone ? null : "some" }`,
		"\"secret\" {\n  value     = \"secret-${var.word}\"\n  sensitive = true\n}",
		`"made" { value = terraform_data.word.output }`,
		`"count" { value = 3 }`,
		`"set" { value = toset(["s", var.word]) }`,
		`"map" { value = tomap({ m = var.word }) }`,
		`"any" { value = ` + g.one("[var."+part+"]", "{ x = var."+part+" }", "distinct([var.word, var.word])", "tolist([])", "[[], {}]") + ` }`,
		`"obj" { value = { v = ` + g.one("var."+part, "terraform_data."+part+".output", "1 / 3") + `, deep = [{ k = var.word, n = null }] } }`,
	} {
		if slices.Contains([]string{"any", "obj"}, strings.Split(o, `"`)[1]) && g.chance(10) {
			continue // readers of this output get nothing
		}
		fmt.Fprintf(m, "output %s\n", o)
	}
}
