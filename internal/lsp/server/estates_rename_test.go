package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/lsp/server"
)

var renames = flag.Int("renames", 24, "number of renames of TestRenamesInEstates")

// randomEstate writes an estate of units that share files and modules.
func randomEstate(t *testing.T, r *rand.Rand) string {
	t.Helper()
	var b strings.Builder
	file := func(name, format string, args ...any) { fmt.Fprintf(&b, "-- "+name+" --\n"+format+"\n", args...) }
	file("root.hcl", `locals {
  region = "eu"
  common = yamldecode(file("common.yaml"))
  team   = local.common.team.name
}
inputs = {
  region = local.region
  team   = local.team
}`)
	file("common.yaml", "team:\n  name: core\n  mail: core@example.com\nsizes:\n  small: 1")
	modules := 2 + r.IntN(2)
	for m := range modules {
		dir := fmt.Sprintf("modules/m%d", m)
		file(dir+"/variables.tf", "variable \"region\" {\n  type = string\n}\nvariable \"team\" {\n  type = string\n}\nvariable \"size\" {\n  type    = number\n  default = %d\n}\nvariable \"up\" {\n  type    = string\n  default = \"none\"\n}", r.IntN(9))
		file(dir+"/main.tf", `locals {
  name = "${var.team}-${var.region}"
  tags = { name = local.name, up = var.up }
}
resource "terraform_data" "web" {
  input = local.tags
}
resource "terraform_data" "each" {
  for_each = toset(["a", "b"])
  input    = "${each.key} ${terraform_data.web.input.name} ${var.size}"
}
module "inner" {
  source = "../inner"
  text   = local.name
  number = var.size
}
output "id" {
  value = "${module.inner.joined} ${var.size}"
}
output "all" {
  value = [for k, v in terraform_data.each : v.input]
}`)
		if r.IntN(2) == 0 {
			file(dir+"/web_override.tf", "resource \"terraform_data\" \"web\" {\n  input = { name = \"over-${var.team}\", up = var.up }\n}")
		}
	}
	file("modules/inner/main.tf", "variable \"text\" {}\nvariable \"number\" {}\nlocals {\n  part = upper(var.text)\n}\nresource \"terraform_data\" \"inner\" {\n  input = local.part\n}\noutput \"joined\" {\n  value = \"${local.part}-${var.number}\"\n}")
	units := 4 + r.IntN(4)
	for u := range units {
		text := fmt.Sprintf("include \"root\" {\n  path   = find_in_parent_folders(\"root.hcl\")\n  expose = true\n}\nterraform {\n  source = \"../../modules/m%d\"\n}\nlocals {\n  zone = \"${include.root.locals.region}-%d\"\n}\n", r.IntN(modules), u)
		inputs := "inputs = {\n  size = length(local.zone)\n"
		if u > 0 {
			text += fmt.Sprintf("dependency \"up\" {\n  config_path  = \"../u%d\"\n  mock_outputs = {\n    id  = \"mock\"\n    all = []\n  }\n}\n", r.IntN(u))
			inputs += "  up   = dependency.up.outputs.id\n"
		}
		file(fmt.Sprintf("live/u%d/terragrunt.hcl", u), "%s", text+inputs+"}")
	}
	// A unit and modules in JSON syntax, a unit that merges its source, a stack, a values file and tests.
	file("modules/json/main.tf.json", `{
  "variable": {"size": {"type": "number", "default": 2}, "region": {}, "team": {}},
  "locals": {"label": "x-${var.size}-${upper(\"a\")}-${var.region}", "tags": {"team": "${var.team}"}},
  "resource": {"terraform_data": {"web": {"input": "${local.label}"}, "other": {"input": "${local.tags.team}", "depends_on": ["terraform_data.web"]}}},
  "module": {"inner": {"source": "../inner", "text": "${local.label}", "number": "${var.size}"}}
}`)
	file("modules/json/outputs.tf", "output \"id\" {\n  value = \"${module.inner.joined} ${terraform_data.web.input}\"\n}")
	file("modules/json/web_override.tf.json", `{"resource": {"terraform_data": {"web": {"input": "over ${local.label}"}}}}`)
	file("modules/json/tests/a.tftest.json", `{"variables": {"size": 3, "region": "x", "team": "y"}, "run": {"one": {"command": "plan", "assert": {"condition": "${output.id != var.region && module.inner.joined != local.label}", "error_message": "no"}}}}`)
	file("modules/m0/tests/b.tftest.hcl", "variables {\n  region = \"x\"\n  team   = \"y\"\n}\nrun \"one\" {\n  command = plan\n}\nrun \"two\" {\n  module {\n    source = \"../inner\"\n  }\n  variables {\n    text   = run.one.id\n    number = 1\n  }\n  assert {\n    condition     = output.joined != \"\"\n    error_message = \"no\"\n  }\n}")
	file("live/json/terragrunt.hcl.json", `{
  "locals": {"zone": "${include.root.locals.region}-json"},
  "include": {"root": {"path": "${find_in_parent_folders(\"root.hcl\")}", "expose": true}},
  "dependency": {"up": {"config_path": "../u0", "mock_outputs": {"id": "mock", "all": []}}},
  "terraform": {"source": "../../modules/json"},
  "inputs": {"size": "${length(local.zone)}", "team": "${dependency.up.outputs.id}"}
}`)
	file("common/source.hcl", "terraform {\n  source = \"../modules/m0\"\n}\ninputs = {\n  up = \"common\"\n}")
	file("live/merged/terragrunt.hcl", "import \"common\" {\n  config_path = \"../../common/source.hcl\"\n  merge       = true\n}\ninputs = {\n  region = \"eu\"\n  team   = \"merged\"\n  size   = 3\n}")
	file("catalog/app/terragrunt.hcl", "locals {\n  wide = try(\"${values.env}-${values.size}\", \"none\")\n}\nterraform {\n  source = \"${dirname(find_in_parent_folders(\"root.hcl\"))}/modules/m0\"\n}\ninputs = {\n  region = local.wide\n  team   = try(values.env, \"none\")\n}")
	file("stacks/terragrunt.stack.hcl", "locals {\n  env = \"prod\"\n  all = { size = 4 }\n}\nunit \"app\" {\n  source = \"../catalog/app\"\n  path   = \"app\"\n  values = {\n    env  = local.env\n    size = local.all.size\n  }\n}")
	file("hand/terragrunt.values.hcl", "name = \"by hand\"\nsize = 3")
	file("hand/terragrunt.hcl", "locals {\n  mine = values.name\n}\nterraform {\n  source = \"../modules/m0\"\n}\ninputs = {\n  region = local.mine\n  team   = values.name\n  size   = values.size\n}")
	// An environment file, and units that read its outputs and those of dependencies of other files.
	file("envs/prod.hcl", "locals {\n  env = jsondecode(file(\"${get_terragrunt_dir()}/prod.json\"))\n}\nmodule \"first\" {\n  source = \"../modules/m0\"\n  region = local.env.region\n  team   = \"prod\"\n}\nmodule \"second\" {\n  source = \"../modules/json\"\n  region = local.env.region\n  team   = module.first.outputs.id\n  inputs = {\n    size = 1\n  }\n}")
	file("envs/prod.json", `{"region": "us", "unused": {"key": 1}}`)
	file("common/lib.hcl", "dependency \"up\" {\n  config_path  = \"../live/u0\"\n  mock_outputs = {\n    id = \"mock\"\n  }\n}\ninputs = {\n  region = path_relative_to_import()\n}")
	file("live/lib/terragrunt.hcl", "import \"lib\" {\n  config_path = \"../../common/lib.hcl\"\n  merge       = true\n}\nimport \"prod\" {\n  config_path = \"../../envs/prod.hcl\"\n}\nlocals {\n  read = read_terragrunt_config(\"../../common/lib.hcl\")\n  from = path_relative_from_import(\"lib\")\n}\nterraform {\n  source = \"../../modules/m1\"\n  extra_arguments \"size\" {\n    commands           = [\"plan\"]\n    required_var_files = [\"${get_terragrunt_dir()}/size.tfvars\"]\n  }\n}\ninputs = {\n  team = \"${dependency.up.outputs.id} ${import.prod.module.first.outputs.id} ${local.read.inputs.region} ${local.from}\"\n}")
	file("live/lib/size.tfvars", "size = 7")
	file("live/two/terragrunt.hcl", "include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\nlocals {\n  lib = read_terragrunt_config(\"../../common/lib.hcl\")\n}\nterraform {\n  source = \"../../modules/m1\"\n}\ninputs = {\n  up   = local.lib.dependency.up.outputs.id\n  size = length(path_relative_to_include(\"root\"))\n}")
	// Units and modules that use all names of another file at once.
	file("common/region.hcl", "locals {\n  region = \"eu\"\n  team   = \"all\"\n  size   = 2\n}\ninputs = {\n  up = \"region\"\n}")
	file("live/all/terragrunt.hcl", "locals {\n  vars  = read_terragrunt_config(\"../../common/region.hcl\")\n  extra = local.vars.locals.size > 1 ? { size = 5 } : {}\n}\nterraform {\n  source = \"../../modules/m0\"\n}\ndependency \"up\" {\n  config_path  = \"../u0\"\n  mock_outputs = {\n    id = \"mock\"\n  }\n}\ninputs = merge(local.vars.locals, local.extra, { up = jsonencode(dependency.up.outputs) })")
	file("live/call/terragrunt.hcl", "terraform {\n  source = \"../../modules/m0\"\n}\ninputs = {\n  region = read_terragrunt_config(\"../../common/region.hcl\").locals.region\n  team   = read_terragrunt_config(\"../../common/region.hcl\").inputs.up\n}")
	file("whole/main.tf", "module \"inner\" {\n  source = \"../modules/inner\"\n  text   = \"t\"\n  number = 1\n}\nmodule \"other\" {\n  source   = \"../modules/other\"\n  for_each = toset([\"a\"])\n  text     = each.key\n  number   = 2\n}\noutput \"all\" {\n  value = [for k, v in module.other : v.joined]\n}\noutput \"one\" {\n  value      = module.inner.joined\n  depends_on = [module.other]\n}")
	// A root module whose override file replaces the source of a call, with a key that another expression reads.
	file("plain/main.tf", "variable \"wide\" {\n  default = 1\n}\nlocals {\n  data = yamldecode(file(\"${path.module}/data.yaml\"))\n}\nmodule \"inner\" {\n  source = \"../modules/other\"\n  text   = local.data.base.text\n  number = var.wide\n}\noutput \"all\" {\n  value = \"${module.inner.joined} ${local.data.plain.size} ${yamldecode(file(\"${path.module}/more.yaml\")).size}\"\n}")
	file("plain/call_override.tf", "module \"inner\" {\n  source = \"../modules/inner\"\n}")
	file("plain/data.yaml", "base:\n  text: a\nplain:\n  size: 1\n  more: 2")
	file("plain/more.yaml", "size: 1\nother: 2")
	file("plain/big.auto.tfvars", "wide = 3")
	file("modules/other/main.tf", "variable \"text\" {}\nvariable \"number\" {}\noutput \"joined\" {\n  value = \"other ${var.text} ${var.number}\"\n}")
	// Files with paths relative to the units that include them: the module, the dependency and the account of each area.
	file("area/root.hcl", "terraform {\n  source = \"../modules/app\"\n}\ndependency \"base\" {\n  config_path  = \"../base\"\n  mock_outputs = {\n    id = \"mock\"\n  }\n}\nlocals {\n  account = read_terragrunt_config(find_in_parent_folders(\"account.hcl\"))\n}\ninputs = {\n  up    = dependency.base.outputs.id\n  place = local.account.locals.place\n}")
	file("area/same.hcl", "terraform {\n  source = \"../../../modules/m1\"\n}\ndependency \"base\" {\n  config_path  = \"../base\"\n  mock_outputs = {\n    id = \"mock\"\n  }\n}\ninputs = {\n  up     = dependency.base.outputs.id\n  region = \"same\"\n}")
	for i, area := range []string{"eu", "us"} {
		dir := "area/" + area
		file(dir+"/account.hcl", "locals {\n  place = \"%s\"\n}", area)
		file(dir+"/modules/app/main.tf", "variable \"up\" {}\nvariable \"place\" {}\nvariable \"own\" {\n  default = %d\n}\nmodule \"inner\" {\n  source = \"../../../../modules/alias\"\n  text   = \"${var.up} ${var.own}\"\n  number = 1\n}\noutput \"id\" {\n  value = \"${module.inner.joined} ${var.place}\"\n}", i)
		file(dir+"/base/terragrunt.hcl", "terraform {\n  source = \"../../../modules/m%d\"\n}\ninputs = {\n  region = \"%s\"\n  team   = \"base\"\n}", i, area)
		file(dir+"/one/terragrunt.hcl", "include \"root\" {\n  path   = find_in_parent_folders(\"root.hcl\")\n  expose = true\n}\ninputs = {\n  own = \"${dependency.base.outputs.id} ${include.root.locals.account.locals.place}\"\n}")
		file(dir+"/two/terragrunt.hcl", "include \"same\" {\n  path = find_in_parent_folders(\"same.hcl\")\n}\ndependencies {\n  paths = [\"../one\"]\n}\ninputs = {\n  team = \"two\"\n}")
	}
	dir := server.Unpack(t, b.String())
	_ = os.Symlink("inner", filepath.Join(dir, "modules/alias"))
	return dir
}

// difference is a part of the JSON output of affected.
type difference struct {
	Units []struct {
		Name    string
		Objects []struct {
			Address, Action string
			Was             string `json:"previous_address"`
			Changes         []struct {
				Path, Action  string
				Before, After json.RawMessage
			}
		}
	}
}

// effective returns the differences that affected finds between two directories, without those that are
// only the new name: an object that moved, and an input, output or argument with the same value under the
// new name. A value that only an apply knows may change if its definition differs, which affected compares by
// the text; these are left out too.
func effective(t *testing.T, base, head, was, now string) (out []string) {
	t.Helper()
	system, err := sys.Real()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	system.Dir, system.Env, system.Args = head, []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, []string{"terrace", "affected", "-json", base, head}
	system.Stdout, system.Stderr, system.Stdin = &stdout, &stderr, strings.NewReader("")
	if code := cli.Main(context.Background(), system); code != 0 {
		return []string{fmt.Sprintf("affected exits with %d: %s", code, stderr.String())}
	}
	var d difference
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	old := regexp.MustCompile(`\b` + regexp.QuoteMeta(was) + `\b`)
	for _, u := range d.Units {
		// left contains what was removed, by its address and path with the new name.
		left := map[string][]string{}
		var added [][2]string
		for _, o := range u.Objects {
			if len(o.Changes) == 0 && (o.Action == "moved" || o.Action == "may_change") {
				continue
			}
			if len(o.Changes) == 0 {
				key := u.Name + " " + old.ReplaceAllString(o.Address, now)
				if strings.HasPrefix(o.Action, "remove") {
					left[key] = append(left[key], "")
				} else {
					added = append(added, [2]string{key, o.Action})
				}
			}
			for _, x := range o.Changes {
				key := u.Name + " " + old.ReplaceAllString(o.Address+" "+x.Path, now)
				if x.Action == "may_change" || x.Path == "depends_on" { // a value that only an apply knows, or a list of names
					continue
				}
				before, after := old.ReplaceAllString(string(x.Before), now), string(x.After)
				if before == after && before != "" {
					continue
				}
				if strings.HasPrefix(x.Action, "remove") {
					left[key] = append(left[key], before)
				} else {
					added = append(added, [2]string{key, after})
				}
			}
		}
		for _, a := range added {
			if i := slices.Index(left[a[0]], a[1]); i >= 0 {
				left[a[0]] = slices.Delete(left[a[0]], i, i+1)
			} else if i := slices.Index(left[a[0]], ""); i >= 0 {
				left[a[0]] = slices.Delete(left[a[0]], i, i+1)
			} else {
				out = append(out, "added "+a[0]+" "+a[1])
			}
		}
		for key, all := range left {
			for _, v := range all {
				out = append(out, "removed "+key+" "+v)
			}
		}
	}
	return out
}

// After each of many random renames in random estates, affected finds no effective difference.
func TestRenamesInEstates(t *testing.T) {
	want := *renames
	if testing.Short() {
		want = 4
	}
	counts := map[string]int{}
	done := 0
	for seed := uint64(1); done < want; seed++ {
		r := rand.New(rand.NewPCG(seed, 35))
		dir := randomEstate(t, r)
		rename := server.Renaming(t, dir)
		for range 12 {
			if done == want {
				break
			}
			base := t.TempDir()
			if err := os.CopyFS(base, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			was, now, kind, err := rename(r)
			if err != nil {
				reason := "refused: " + regexp.MustCompile(`[^ ]*[/."][^ ]*|\d+`).ReplaceAllString(err.Error(), "…")
				if counts[reason]++; counts[reason] <= 3 {
					t.Logf("seed %d: rename of %s %s: %v", seed, kind, was, err)
				}
				continue
			}
			done++
			counts[kind]++
			if all := effective(t, base, dir, was, now); len(all) > 0 {
				t.Fatalf("seed %d: after the rename of %s %s to %s, affected finds\n%s", seed, kind, was, now, strings.Join(all, "\n"))
			}
			if err := os.RemoveAll(base); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%4d %s", counts[k], k)
	}
}
