package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// A rename edits every place that uses the name, or is refused with a reason.
func TestRenameIsComplete(t *testing.T) {
	const root = "-- root.hcl --\nlocals {\n  region = \"eu\"\n}\ninputs = {\n  region = local.region\n  where  = path_relative_to_include(\"root\")\n}\n"
	const module = "-- modules/app/main.tf --\nvariable \"name\" {\n  default = \"\"\n}\noutput \"id\" {\n  value = var.name\n}\n"
	for _, c := range []struct {
		name, files, file, at, to string
		refused                   string   // part of the reason, or "" if the name is renamed
		want                      []string // "FILE: text" that the files contain afterwards
	}{
		{
			name:  "an argument of a module in an environment file",
			files: module + "-- prod.hcl --\nmodule \"app\" {\n  source = \"./modules/app\"\n  name   = \"x\"\n}\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title",
			want: []string{"prod.hcl: title   = \"x\"", "modules/app/main.tf: value = var.title"},
		},
		{
			name:  "the name of a module of an environment file",
			files: module + "-- prod.hcl --\nmodule \"app\" {\n  source = \"./modules/app\"\n}\nmodule \"web\" {\n  source = \"./modules/app\"\n  name   = module.app.outputs.id\n}\n",
			file:  "prod.hcl", at: "module \"", to: "other", refused: "state",
		},
		{
			name:  "an output of an environment file that another file imports",
			files: module + "-- prod.hcl --\nmodule \"app\" {\n  source = \"./modules/app\"\n}\n-- web/terragrunt.hcl --\nimport \"prod\" {\n  config_path = \"../prod.hcl\"\n}\nterraform {\n  source = \"../modules/app\"\n}\ninputs = {\n  name = import.prod.module.app.outputs.id\n}\n",
			file:  "modules/app/main.tf", at: "output \"", to: "number",
			want: []string{"web/terragrunt.hcl: import.prod.module.app.outputs.number"},
		},
		{
			name:  "an output behind the dependency of an imported file",
			files: module + "-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\n-- lib.hcl --\ndependency \"app\" {\n  config_path = \"app\"\n}\n-- web/terragrunt.hcl --\nimport \"lib\" {\n  config_path = \"../lib.hcl\"\n}\nterraform {\n  source = \"../modules/app\"\n}\ninputs = {\n  name = import.lib.dependency.app.outputs.id\n}\n",
			file:  "modules/app/main.tf", at: "output \"", to: "number",
			want: []string{"web/terragrunt.hcl: import.lib.dependency.app.outputs.number"},
		},
		{
			name:  "a dependency of an imported file",
			files: module + "-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\n-- lib.hcl --\ndependency \"app\" {\n  config_path = \"app\"\n}\n-- web/terragrunt.hcl --\nimport \"lib\" {\n  config_path = \"../lib.hcl\"\n}\nlocals {\n  common = read_terragrunt_config(\"../lib.hcl\")\n  id     = local.common.dependency.app.outputs.id\n}\ninputs = {\n  name = import.lib.dependency.app.outputs.id\n}\n",
			file:  "lib.hcl", at: "dependency \"", to: "other",
			want: []string{"web/terragrunt.hcl: import.lib.dependency.other.outputs.id", "web/terragrunt.hcl: local.common.dependency.other.outputs.id"},
		},
		{
			name:  "a dependency of a merged file, to a name that the unit has",
			files: module + "-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\n-- lib.hcl --\ndependency \"app\" {\n  config_path = \"app\"\n}\n-- web/terragrunt.hcl --\nimport \"lib\" {\n  config_path = \"../lib.hcl\"\n  merge       = true\n}\ndependency \"other\" {\n  config_path = \"../app\"\n}\n",
			file:  "lib.hcl", at: "dependency \"", to: "other", refused: "dependency.other",
		},
		{
			name:  "the label of an include in a function",
			files: root + "-- app/terragrunt.hcl --\ninclude \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\ninputs = {\n  a = path_relative_to_include(\"root\")\n  b = get_parent_terragrunt_dir(\"root\")\n  c = path_relative_from_include(\"root\")\n}\n",
			file:  "app/terragrunt.hcl", at: "include \"", to: "top", refused: "root.hcl, line 6, names include.root in a function",
		},
		{
			name:  "the label of an include in a function of the unit alone",
			files: "-- root.hcl --\ninputs = {}\n-- app/terragrunt.hcl --\ninclude \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\ninputs = {\n  a = path_relative_to_include(\"root\")\n  b = get_parent_terragrunt_dir(\"root\")\n  c = path_relative_from_include(\"root\")\n}\n",
			file:  "app/terragrunt.hcl", at: "include \"", to: "top",
			want: []string{"app/terragrunt.hcl: path_relative_to_include(\"top\")", "app/terragrunt.hcl: get_parent_terragrunt_dir(\"top\")", "app/terragrunt.hcl: path_relative_from_include(\"top\")"},
		},
		{
			name:  "the label of an include in a function, in JSON syntax",
			files: "-- root.hcl --\ninputs = {}\n-- app/terragrunt.hcl.json --\n{\n  \"include\": {\"root\": {\"path\": \"${find_in_parent_folders(\\\"root.hcl\\\")}\"}},\n  \"inputs\": {\"a\": \"é ${path_relative_to_include(\\\"root\\\")}\"}\n}\n",
			file:  "app/terragrunt.hcl.json", at: "\"include\": {\"", to: "top",
			want: []string{"app/terragrunt.hcl.json: ${path_relative_to_include(\\\"top\\\")}", "app/terragrunt.hcl.json: \"include\": {\"top\":"},
		},
		{
			name:  "the name of an import in a function",
			files: "-- root.hcl --\ninputs = {}\n-- app/terragrunt.hcl --\nimport \"root\" {\n  config_path = \"../root.hcl\"\n}\ninputs = {\n  a = path_relative_to_import(\"root\")\n}\n",
			file:  "app/terragrunt.hcl", at: "import \"", to: "top",
			want: []string{"app/terragrunt.hcl: path_relative_to_import(\"top\")"},
		},
		{
			name:  "a key that an expression reads",
			files: "-- main.tf --\nlocals {\n  data = yamldecode(file(\"${path.module}/data.yaml\"))\n  size = local.data.size\n}\noutput \"again\" {\n  value = yamldecode(file(\"${path.module}/data.yaml\")).size\n}\n-- data.yaml --\nsize: 1\n",
			file:  "data.yaml", at: "", to: "number", refused: "also reads",
		},
		{
			name:  "a key that a unit reads as a whole",
			files: "-- live/common.yaml --\nsize: 1\n-- live/app/terragrunt.hcl --\nlocals {\n  data = yamldecode(file(find_in_parent_folders(\"common.yaml\")))\n  size = local.data.size\n}\n-- live/web/terragrunt.hcl --\ninputs = yamldecode(file(find_in_parent_folders(\"common.yaml\")))\n",
			file:  "live/common.yaml", at: "", to: "number", refused: "also reads",
		},
		{
			name:  "a key that a template reads",
			files: "-- main.tf --\nlocals {\n  data = yamldecode(file(\"${path.module}/data.yaml\"))\n  size = local.data.size\n  raw  = templatefile(\"${path.module}/data.yaml\", {})\n}\n-- data.yaml --\nsize: 1\n",
			file:  "data.yaml", at: "", to: "number", refused: "also reads",
		},
		{
			name:  "a key of a file with a path that is not constant",
			files: "-- main.tf --\nlocals {\n  data = yamldecode(file(\"${path.module}/data.yaml\"))\n  size = local.data.size\n  all  = { for f in fileset(path.module, \"*.yaml\") : f => yamldecode(file(\"${path.module}/${f}\")).size }\n}\n-- data.yaml --\nsize: 1\n",
			file:  "data.yaml", at: "", to: "number", refused: "not known",
		},
		{
			name:  "a key below an anchor",
			files: "-- main.tf --\nlocals {\n  data = yamldecode(file(\"${path.module}/data.yaml\"))\n  size = local.data.base.size\n  prod = local.data.prod.size\n}\n-- data.yaml --\nbase: &base\n  size: 1\nprod:\n  <<: *base\n  other: 2\n",
			file:  "data.yaml", at: "base: &base\n  ", to: "number", refused: "alias",
		},
		{
			name:  "a key next to a longer one that is used as a whole",
			files: "-- main.tf --\nlocals {\n  data = yamldecode(file(\"${path.module}/data.yaml\"))\n  size = local.data.sizes.small\n  all  = local.data.size\n}\n-- data.yaml --\nsizes:\n  small: 1\nsize: 2\n",
			file:  "data.yaml", at: "sizes:\n  ", to: "little",
			want: []string{"main.tf: local.data.sizes.little", "data.yaml: little: 1"},
		},
		{
			name:  "an argument of a call whose source an override file sets",
			files: "-- main.tf --\nmodule \"m\" {\n  source = \"./a\"\n  size   = 1\n}\noutput \"o\" {\n  value = module.m.out\n}\n-- x_override.tf --\nmodule \"m\" {\n  source = \"./b\"\n}\n-- a/main.tf --\nvariable \"size\" {}\noutput \"out\" {\n  value = var.size\n}\n-- b/main.tf --\nvariable \"size\" {}\noutput \"out\" {\n  value = var.size\n}\n",
			file:  "b/main.tf", at: "variable \"", to: "number",
			want: []string{"main.tf: number   = 1"},
		},
		{
			name:  "an argument of a call whose source an override file replaces",
			files: "-- main.tf --\nmodule \"m\" {\n  source = \"./a\"\n  size   = 1\n}\noutput \"o\" {\n  value = module.m.out\n}\n-- x_override.tf --\nmodule \"m\" {\n  source = \"./b\"\n}\n-- a/main.tf --\nvariable \"size\" {}\noutput \"out\" {\n  value = var.size\n}\n-- b/main.tf --\nvariable \"size\" {}\noutput \"out\" {\n  value = var.size\n}\n",
			file:  "a/main.tf", at: "variable \"", to: "number",
			want: []string{"main.tf: size   = 1"},
		},
		{
			name:  "a variable that a caller with a syntax error sets",
			files: "-- main.tf --\nlocals {\n  x = [\n}\nmodule \"m\" {\n  source = \"./m\"\n  size   = 1\n}\n-- m/main.tf --\nvariable \"size\" {}\n",
			file:  "m/main.tf", at: "variable \"", to: "number", refused: "syntax error",
		},
		{
			name:  "a variable that the variable file of a unit sets",
			files: module + "-- live/app/terragrunt.hcl --\nterraform {\n  source = \"../../modules/app\"\n  extra_arguments \"vars\" {\n    commands           = [\"plan\"]\n    required_var_files = [\"../common.tfvars\"]\n  }\n}\n-- live/common.tfvars --\nname = \"x\"\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title",
			want: []string{"live/common.tfvars: title = \"x\""},
		},
		{
			name:  "a variable that a generate block uses",
			files: module + "-- root.hcl --\ngenerate \"provider\" {\n  path      = \"provider.tf\"\n  if_exists = \"overwrite\"\n  contents  = <<EOT\nprovider \"x\" {\n  name = var.name\n}\nEOT\n}\n-- app/terragrunt.hcl --\ninclude \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\nterraform {\n  source = \"../modules/app\"\n}\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title", refused: "root.hcl, line 6, names var.name in a text",
		},
		{
			name:  "a variable with the name of one that a generate block of other modules uses",
			files: module + "-- modules/own/main.tf --\nvariable \"name\" {}\n-- root.hcl --\ngenerate \"provider\" {\n  path      = \"provider.tf\"\n  if_exists = \"overwrite\"\n  contents  = <<EOT\nprovider \"x\" {\n  name = var.name\n}\nEOT\n}\n-- app/terragrunt.hcl --\ninclude \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\nterraform {\n  source = \"../modules/app\"\n}\n",
			file:  "modules/own/main.tf", at: "variable \"", to: "title",
			want: []string{"modules/own/main.tf: variable \"title\""},
		},
		{
			name:  "a variable that a rule about units names",
			files: module + "-- all.rules.hcl --\nrule \"name\" {\n  unit = \"*\"\n  enforce {\n    condition     = attrs.name == \"x\"\n    error_message = \"no\"\n  }\n}\n-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\ninputs = {\n  name = \"x\"\n}\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title", refused: "all.rules.hcl, line 4, names var.name in a text",
		},
		{
			name:  "a variable with the name of an argument in a rule about resources",
			files: module + "-- all.rules.hcl --\nrule \"name\" {\n  resource = \"*\"\n  enforce {\n    condition     = attrs.name == \"x\"\n    error_message = \"no\"\n  }\n}\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title",
			want: []string{"modules/app/main.tf: var.title"},
		},
		{
			name:  "a resource with an exception from a rule",
			files: "-- main.tf --\nresource \"terraform_data\" \"web\" {}\n-- all.rules.hcl --\nexception \"small\" {\n  address = \"terraform_data.web\"\n  reason  = \"x\"\n}\n",
			file:  "main.tf", at: "resource \"terraform_data\" \"", to: "site", refused: "all.rules.hcl, line 2, names terraform_data.web in a text",
		},
		{
			name:  "an output that a test of the estate names",
			files: module + "-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\n-- all.estatetest.hcl --\nrun \"all\" {\n  assert {\n    condition     = unit[\"app\"].outputs.id == \"x\"\n    error_message = \"no\"\n  }\n}\n",
			file:  "modules/app/main.tf", at: "output \"", to: "number", refused: "all.estatetest.hcl, line 3, names output.id in a text",
		},
		{
			name:  "a variable that the environment of a unit sets",
			files: module + "-- live/app/terragrunt.hcl --\nterraform {\n  source = \"../../modules/app\"\n  extra_arguments \"vars\" {\n    commands = [\"plan\"]\n    env_vars = {\n      TF_VAR_name = \"x\"\n      \"TF_VAR_name\" = \"y\"\n    }\n  }\n}\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title",
			want: []string{"live/app/terragrunt.hcl: TF_VAR_title = \"x\"", "live/app/terragrunt.hcl: \"TF_VAR_title\" = \"y\""},
		},
		{
			name:  "a variable that the automatic variable file of a unit sets",
			files: module + "-- live/app/terragrunt.hcl --\nterraform {\n  source = \"../../modules/app\"\n}\n-- live/app/terraform.tfvars --\nname = \"x\"\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title",
			want: []string{"live/app/terraform.tfvars: title = \"x\""},
		},
		{
			name:  "a variable that a variable file in another directory sets",
			files: "-- main.tf --\nvariable \"size\" {}\n-- envs/prod.tfvars --\nsize = 1\n",
			file:  "main.tf", at: "variable \"", to: "number", refused: "envs/prod.tfvars",
		},
		{
			name:  "a list block of a query",
			files: "-- main.tf --\nvariable \"size\" {}\n-- q.tfquery.hcl --\nlist \"terraform_data\" \"all\" {\n  provider = terraform\n}\n",
			file:  "q.tfquery.hcl", at: "list \"terraform_data\" \"", to: "every",
			want: []string{"q.tfquery.hcl: list \"terraform_data\" \"every\" {\n  provider = terraform\n}\n$"},
		},
		{
			name:  "an input that a parent file sets for units of one module",
			files: module + "-- terragrunt.hcl --\ninputs = {\n  name = \"x\"\n}\n-- app/terragrunt.hcl --\ninclude \"root\" {\n  path = find_in_parent_folders()\n}\nterraform {\n  source = \"../modules/app\"\n}\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title",
			want: []string{"terragrunt.hcl: title = \"x\""},
		},
		{
			name:  "an input that a parent file sets for units of several modules",
			files: module + "-- modules/web/main.tf --\nvariable \"name\" {}\n-- terragrunt.hcl --\ninputs = {\n  name = \"x\"\n}\n-- app/terragrunt.hcl --\ninclude \"root\" {\n  path = find_in_parent_folders()\n}\nterraform {\n  source = \"../modules/app\"\n}\n-- web/terragrunt.hcl --\ninclude \"root\" {\n  path = find_in_parent_folders()\n}\nterraform {\n  source = \"../modules/web\"\n}\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title", refused: "terragrunt.hcl, line 2, sets var.name for units of several modules",
		},
		{
			name:  "a variable with the name of an input of other modules",
			files: module + "-- modules/web/main.tf --\nvariable \"name\" {}\n-- modules/own/main.tf --\nvariable \"name\" {}\n-- terragrunt.hcl --\ninputs = {\n  name = \"x\"\n}\n-- app/terragrunt.hcl --\ninclude \"root\" {\n  path = find_in_parent_folders()\n}\nterraform {\n  source = \"../modules/app\"\n}\n-- web/terragrunt.hcl --\ninclude \"root\" {\n  path = find_in_parent_folders()\n}\nterraform {\n  source = \"../modules/web\"\n}\n",
			file:  "modules/own/main.tf", at: "variable \"", to: "title",
			want: []string{"modules/own/main.tf: variable \"title\""},
		},
		{
			name:  "a dependency of a merged file, which the unit uses",
			files: module + "-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\n-- lib.hcl --\ndependency \"app\" {\n  config_path = \"app\"\n}\n-- web/terragrunt.hcl --\nimport \"lib\" {\n  config_path = \"../lib.hcl\"\n  merge       = true\n}\ninputs = {\n  name = dependency.app.outputs.id\n}\n",
			file:  "lib.hcl", at: "dependency \"", to: "other",
			want: []string{"web/terragrunt.hcl: dependency.other.outputs.id", "lib.hcl: dependency \"other\""},
		},
		{
			name:  "a dependency of a merged file, from its use",
			files: module + "-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\n-- lib.hcl --\ndependency \"app\" {\n  config_path = \"app\"\n}\n-- web/terragrunt.hcl --\nimport \"lib\" {\n  config_path = \"../lib.hcl\"\n  merge       = true\n}\ninputs = {\n  name = dependency.app.outputs.id\n}\n",
			file:  "web/terragrunt.hcl", at: "name = dependency.", to: "other",
			want: []string{"web/terragrunt.hcl: dependency.other.outputs.id", "lib.hcl: dependency \"other\""},
		},
		{
			name:  "the key of an object in a local value",
			files: "-- main.tf --\nlocals {\n  all = { size = 1 }\n  one = local.all.size\n}\n",
			file:  "main.tf", at: "one = local.all.", to: "other", refused: "the key size cannot be renamed: no file",
		},
		{
			name:  "a variable whose input comes from the local values of another file",
			files: module + "-- region.hcl --\nlocals {\n  name = \"x\"\n}\n-- app/terragrunt.hcl --\nlocals {\n  region = read_terragrunt_config(\"../region.hcl\")\n}\nterraform {\n  source = \"../modules/app\"\n}\ninputs = merge(local.region.locals, {})\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title", refused: "app/terragrunt.hcl, line 7, may set var.name",
		},
		{
			name:  "a variable that objects of other names do not set",
			files: module + "-- region.hcl --\nlocals {\n  other = \"x\"\n}\n-- app/terragrunt.hcl --\nlocals {\n  region = read_terragrunt_config(\"../region.hcl\")\n}\nterraform {\n  source = \"../modules/app\"\n}\ninputs = merge(local.region.locals, {\n  name = \"x\"\n})\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title",
			want: []string{"app/terragrunt.hcl: title = \"x\""},
		},
		{
			name:  "a variable with the name of an input that no unit merges",
			files: module + "-- region.hcl --\ninputs = {\n  name = \"x\"\n}\n-- app/terragrunt.hcl --\nimport \"region\" {\n  config_path = \"../region.hcl\"\n}\nterraform {\n  source = \"../modules/app\"\n}\ninputs = {\n  name = import.region.inputs.name\n}\n",
			file:  "modules/app/main.tf", at: "variable \"", to: "title",
			want: []string{"app/terragrunt.hcl: title = import.region.inputs.name", "region.hcl: name = \"x\""},
		},
		{
			name:  "a local value that another file uses with all others",
			files: module + "-- region.hcl --\nlocals {\n  name = \"x\"\n}\n-- app/terragrunt.hcl --\nlocals {\n  region = read_terragrunt_config(\"../region.hcl\")\n}\nterraform {\n  source = \"../modules/app\"\n}\ninputs = merge(local.region.locals, {})\n",
			file:  "region.hcl", at: "locals {\n  ", to: "title", refused: "app/terragrunt.hcl, line 7, uses all local values of",
		},
		{
			name:  "a local value that a function call reads",
			files: module + "-- region.hcl --\nlocals {\n  name = \"x\"\n}\n-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\ninputs = {\n  name = read_terragrunt_config(\"../region.hcl\").locals.name\n}\n",
			file:  "region.hcl", at: "locals {\n  ", to: "title",
			want: []string{"app/terragrunt.hcl: read_terragrunt_config(\"../region.hcl\").locals.title"},
		},
		{
			name:  "a local value that a function call reads with all others",
			files: module + "-- region.hcl --\nlocals {\n  name = \"x\"\n}\n-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\ninputs = read_terragrunt_config(\"../region.hcl\").locals\n",
			file:  "region.hcl", at: "locals {\n  ", to: "title", refused: "uses all local values of",
		},
		{
			name:  "an output of a module that is used as a whole",
			files: "-- m/main.tf --\noutput \"id\" {\n  value = 1\n}\n-- main.tf --\nmodule \"m\" {\n  source = \"./m\"\n}\noutput \"all\" {\n  value = module.m\n}\n",
			file:  "m/main.tf", at: "output \"", to: "number", refused: "main.tf, line 5, uses all outputs",
		},
		{
			name:  "an output of a module that is not used as a whole",
			files: "-- m/main.tf --\noutput \"id\" {\n  value = 1\n}\n-- main.tf --\nmodule \"m\" {\n  source   = \"./m\"\n  for_each = toset([\"a\"])\n}\nresource \"terraform_data\" \"x\" {\n  input      = [module.m[\"a\"].id, module.m[local.a].id, module.m[*].id]\n  depends_on = [module.m]\n}\nlocals {\n  a = \"a\"\n}\n",
			file:  "m/main.tf", at: "output \"", to: "number",
			want: []string{"main.tf: [module.m[\"a\"].number, module.m[local.a].number, module.m[*].number]"},
		},
		{
			name:  "an output of a dependency that is used as a whole",
			files: module + "-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\n-- web/terragrunt.hcl --\ndependency \"app\" {\n  config_path = \"../app\"\n}\ninputs = merge(dependency.app.outputs, {})\n",
			file:  "modules/app/main.tf", at: "output \"", to: "number", refused: "web/terragrunt.hcl, line 4, uses all outputs",
		},
		{
			name:  "a value of a unit in a stack",
			files: module + "-- catalog/app/terragrunt.hcl --\nterraform {\n  source = \"../../modules/app\"\n}\ninputs = {\n  name = values.name\n}\n-- live/terragrunt.stack.hcl --\nunit \"app\" {\n  source = \"../catalog/app\"\n  path   = \"app\"\n  values = {\n    name = \"x\"\n  }\n}\n",
			file:  "catalog/app/terragrunt.hcl", at: "values.", to: "title",
			want: []string{"catalog/app/terragrunt.hcl: values.title", "live/terragrunt.stack.hcl: title = \"x\""},
		},
		{
			name:  "a value of a values file",
			files: module + "-- app/terragrunt.values.hcl --\nname = \"x\"\n-- app/terragrunt.hcl --\nterraform {\n  source = \"../modules/app\"\n}\ninputs = {\n  name = values.name\n}\n",
			file:  "app/terragrunt.values.hcl", at: "", to: "title",
			want: []string{"app/terragrunt.hcl: values.title", "app/terragrunt.values.hcl: title = \"x\""},
		},
		{
			name:  "a value of a unit that passes all values on",
			files: module + "-- catalog/app/terragrunt.hcl --\nterraform {\n  source = \"../../modules/app\"\n}\ninputs = merge(values, {\n  other = values.name\n})\n-- live/terragrunt.stack.hcl --\nunit \"app\" {\n  source = \"../catalog/app\"\n  path   = \"app\"\n  values = {\n    name = \"x\"\n  }\n}\n",
			file:  "live/terragrunt.stack.hcl", at: "values = {\n    ", to: "title", refused: "catalog/app/terragrunt.hcl, line 4, uses all values",
		},
		{
			name:  "a value that a stack gives in an object",
			files: module + "-- catalog/app/terragrunt.hcl --\nterraform {\n  source = \"../../modules/app\"\n}\ninputs = {\n  name = values.name\n}\n-- live/terragrunt.stack.hcl --\nlocals {\n  all = { name = \"x\" }\n}\nunit \"app\" {\n  source = \"../catalog/app\"\n  path   = \"app\"\n  values = local.all\n}\nunit \"web\" {\n  source = \"../catalog/app\"\n  path   = \"web\"\n  values = {\n    name = \"y\"\n  }\n}\n",
			file:  "catalog/app/terragrunt.hcl", at: "values.", to: "title", refused: "live/terragrunt.stack.hcl, line 7, may set values.name",
		},
		{
			name:  "a path with spaces and percent signs",
			files: "-- a b/100% c.tf --\nvariable \"size\" {}\noutput \"o\" {\n  value = var.size\n}\n-- main.tf --\nmodule \"m\" {\n  source = \"./a b\"\n  size   = 1\n}\n",
			file:  "a b/100% c.tf", at: "variable \"", to: "number",
			want: []string{"a b/100% c.tf: var.number", "main.tf: number   = 1"},
		},
		{
			name:  "a text with wide characters and carriage returns",
			files: "-- main.tf --\nvariable \"size\" {}\r\nlocals {\r\n  a = \"😀é ${var.size} 😀 ${var.size}\" // 😀\r\n}\r\n",
			file:  "main.tf", at: "variable \"", to: "number",
			want: []string{"main.tf: a = \"😀é ${var.number} 😀 ${var.number}\" // 😀\r\n"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := unpack(t, c.files)
			cl := start(t, dir, nil)
			p := cl.at(c.file, c.at)
			p["newName"] = c.to
			var e protocol.WorkspaceEdit
			err := cl.try("textDocument/rename", p, &e)
			switch {
			case c.refused != "":
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("the rename returns %v and %s, not an error with %q", err, asJSON(e), c.refused)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			apply(t, &e)
			for _, w := range c.want {
				file, text, _ := strings.Cut(w, ": ")
				raw, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				text, atEnd := strings.CutSuffix(text, "$")
				if !strings.Contains(string(raw), text) || atEnd && !strings.HasSuffix(string(raw), text) {
					t.Errorf("%s does not contain %q:\n%s", file, text, raw)
				}
			}
		})
	}
}

// A module in a directory of the workspace to which a symbolic link leads is renamed together with its uses through the
// link, also if the workspace is opened through another link. A file that is also below a link which leads out of the
// workspace may have other uses.
func TestRenameThroughLinkedDirectory(t *testing.T) {
	dir := unpack(t, "-- real/main.tf --\nvariable \"size\" {}\n-- main.tf --\nmodule \"m\" {\n  source = \"./link\"\n  size   = 1\n}\n")
	opened := filepath.Join(t.TempDir(), "opened")
	for link, to := range map[string]string{filepath.Join(dir, "link"): "real", opened: dir} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
	}
	for _, root := range []string{dir, opened} {
		c := start(t, root, nil)
		for _, name := range []string{"real/main.tf", "link/main.tf"} {
			p := c.at(name, "variable \"")
			p["newName"] = "number"
			var e protocol.WorkspaceEdit
			c.call("textDocument/rename", p, &e)
			var files []string
			for uri, edits := range e.Changes {
				files = append(files, fmt.Sprint(c.name(uri), " ", len(edits)))
			}
			slices.Sort(files)
			equal(t, "the rename of "+name, files, "main.tf 1", "real/main.tf 1")
		}
	}
	if err := os.Symlink("..", filepath.Join(dir, "outside")); err != nil {
		t.Fatal(err)
	}
	c := start(t, dir, nil)
	p := c.at("real/main.tf", "variable \"")
	p["newName"] = "number"
	var e protocol.WorkspaceEdit
	if err := c.try("textDocument/rename", p, &e); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("the rename returns %v and %s", err, asJSON(e))
	}
}
