package cli_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"
)

// planted is the secret that no output may contain.
const planted = "hunter2pw"

// A leak is a directory in which one source of values contains planted, with commands to run
// in it. Most of the commands fail, since errors print excerpts.
type leak struct {
	name     string
	files    string   // txtar
	env      []string // in addition to the environment of all leaks
	dir      string   // directory of the commands, relative to the files
	commands []string
	open     bool // the value is not marked as sensitive, so explain and config show print it
}

var plainCommands = []string{
	"validate", "validate -json", "plan -input=false", "plan -input=false -json", "apply -auto-approve -input=false", "apply -auto-approve -input=false -json",
	"refresh -input=false", "destroy -auto-approve -input=false", "output", "output -json", "show", "show -json", "init -input=false", "init -input=false -json",
	"explain var.x", "explain -json var.x", "explain output.o", "config show", "config files", "providers", "modules -json",
}

var unitCommands = []string{
	"plan", "plan -json", "apply -auto-approve", "validate", "validate -json", "output", "show", "run --all plan --report-file=r.json --html=page.html",
	"run --all apply --non-interactive --report-file=r.csv", "run --all plan -json", "run --all validate", "find --json --dependencies", "list -l", "dag graph",
	"hcl validate", "hcl validate --json", "hcl validate --inputs", "hcl validate --inputs --strict", "info print", "config files", "explain inputs", "explain inputs.x", "explain -json inputs.x", "explain -json inputs",
	"explain var.x", "run --all destroy --non-interactive", "run --all plan --log-level=debug",
}

var sourceCommands = []string{
	"validate", "validate -json", "plan", "plan -json", "modules", "modules -json", "config show", "config show -json", "config show -origins", "config files",
	"explain module.m.source", "explain -json module.m.source", "explain local.s", "explain module.m.x", "providers", "graph", "show -json -config", "apply -auto-approve", "show -json",
	"plan -out=p", "show -json p", "init", "init -json", "get", "get -update",
}

var testCommands = []string{"test", "test -verbose -junit-xml=j.xml", "test -json"} // -json -verbose would print the state

const (
	declared  = "-- main.tf --\nvariable \"x\" {\n  type = number\n}\noutput \"o\" {\n  value = sha256(var.x)\n}\n"
	sensitive = "-- main.tf --\nvariable \"x\" {\n  type      = number\n  sensitive = true\n}\noutput \"o\" {\n  value     = var.x\n  sensitive = true\n}\n"
	ephemeral = "-- main.tf --\nvariable \"x\" {\n  type      = number\n  ephemeral = true\n}\noutput \"o\" {\n  value = 1\n}\n"
	checked   = "-- main.tf --\nvariable \"x\" {\n  type = string\n  validation {\n    condition     = var.x == \"other\"\n    error_message = \"Wrong.\"\n  }\n}\noutput \"o\" {\n  value = sha256(var.x)\n}\n"
	module    = "-- m/main.tf --\nvariable \"x\" {\n  sensitive = true\n}\noutput \"o\" {\n  value     = var.x\n  sensitive = true\n}\n"
	numeric   = "-- m/main.tf --\nvariable \"x\" {\n  type      = number\n  sensitive = true\n}\noutput \"o\" {\n  value = 1\n}\n"
	ruled     = "-- m/main.tf --\nvariable \"x\" {\n  validation {\n    condition     = var.x == \"other\"\n    error_message = \"Wrong.\"\n  }\n}\noutput \"o\" {\n  value = 1\n}\n"
	unitHead  = "-- u/terragrunt.hcl --\nterraform { source = \"../m\" }\n"
)

func leaks() []leak {
	deprecated := strings.Replace(sensitive, "type      = number", "type = string\n  deprecated = \"Use y.\"", 1)
	backend := "-- main.tf --\nterraform {\n  backend \"local\" {}\n}\n"
	return []leak{
		{name: "undeclared", files: sensitive + "-- terraform.tfvars --\nx = 1\nsecret = \"hunter2pw\"\nother = { a = \"hunter2pw\" }\n"},
		{name: "type", files: declared + "-- terraform.tfvars --\nx = \"hunter2pw\"\n"},
		{name: "sensitive type", files: sensitive + "-- a.auto.tfvars --\nx = \"hunter2pw\"\n"},
		{name: "ephemeral type", files: ephemeral + "-- a.auto.tfvars --\nx = \"hunter2pw\"\n"},
		{name: "validation", files: checked + "-- terraform.tfvars --\nx = \"hunter2pw\"\n"},
		{name: "validation of the environment", files: checked, env: []string{"TF_VAR_x=hunter2pw"}},
		{name: "deprecated", files: deprecated + "-- terraform.tfvars --\nx = \"hunter2pw\"\n"},
		{name: "JSON", files: sensitive + "-- terraform.tfvars.json --\n{\"x\": \"hunter2pw\", \"y\": \"hunter2pw\"}\n"},
		{name: "auto JSON", files: sensitive + "-- a.auto.tfvars.json --\n{\"x\": [\"hunter2pw\"], \"y\": {\"z\": \"hunter2pw\"}}\n"},
		{name: "broken JSON", files: sensitive + "-- terraform.tfvars.json --\n{\"x\": hunter2pw}\n"},
		{name: "broken text", files: sensitive + "-- terraform.tfvars --\nx = \"hunter2pw\ny = 2\n"},
		{name: "bare word", files: sensitive + "-- terraform.tfvars --\nx = hunter2pw\n"},
		{name: "call", files: sensitive + "-- terraform.tfvars --\nx = upper(\"hunter2pw\")\n"},
		{name: "template", files: sensitive + "-- terraform.tfvars --\nx = \"%{hunter2pw}\"\n"},
		{name: "twice", files: sensitive + "-- terraform.tfvars --\nx = 1\nx = \"hunter2pw\"\n"},
		{name: "tests", commands: testCommands, files: sensitive + "-- tests/a.tftest.hcl --\nvariables { x = \"hunter2pw\" }\nrun \"a\" {\n}\n-- tests/b.tftest.hcl --\nrun \"a\" {\n  variables { x = [\"hunter2pw\"] }\n}\n"},
		{name: "tests of what holds not", commands: testCommands, files: strings.Replace(sensitive, "number", "string", 1) + "-- tests/a.tftest.hcl --\nvariables { x = \"hunter2pw\" }\nrun \"a\" {\n  assert {\n    condition     = var.x == \"other\" && output.o == \"other\"\n    error_message = \"Is not ${var.x}.\"\n  }\n}\nrun \"b\" {\n  expect_failures = [var.x]\n}\n"},
		{name: "variable file of tests", commands: testCommands, files: sensitive + "-- tests/terraform.tfvars --\nx = \"hunter2pw\"\nnobody = \"hunter2pw\"\n-- tests/a.tftest.hcl --\nrun \"a\" {\n}\n"},
		{name: "environment", files: sensitive, env: []string{"TF_VAR_x=hunter2pw"}},
		{name: "expression in the environment", files: strings.Replace(sensitive, "number", "list(string)", 1), env: []string{"TF_VAR_x=[hunter2pw"}},
		{name: "flag", files: sensitive, commands: []string{"plan -var=x=hunter2pw", "plan -json -var=x=hunter2pw", "plan -var=hunter2pw", "plan -var=nobody=hunter2pw", "validate -var=x=hunter2pw"}},
		{name: "flag for an expression", files: strings.Replace(sensitive, "number", "map(string)", 1), commands: []string{"plan -var=x=hunter2pw", "plan -json -var=x={a=hunter2pw", "explain -var=x={a=hunter2pw var.x"}},
		{name: "file", files: sensitive + "-- f --\nx = \"hunter2pw\"\ny = \"hunter2pw\"\n", commands: []string{"plan -var-file=f", "plan -json -var-file=f", "explain -var-file=f var.x", "apply -auto-approve -json -var-file=f"}},
		{name: "backend file", files: backend + "-- b.hcl --\nnobody = \"hunter2pw\"\npath = [\"hunter2pw\"]\n", commands: []string{"init -backend-config=b.hcl", "init -json -backend-config=b.hcl"}},
		{name: "broken backend file", files: backend + "-- b.hcl --\npath = \"hunter2pw\nx = 1\n-- b.json --\n{\"path\": hunter2pw}\n", commands: []string{"init -backend-config=b.hcl", "init -json -backend-config=b.json", "init -backend-config=b.json"}},
		{name: "backend flag", files: backend, commands: []string{"init -backend-config=nobody=hunter2pw", "init -json -backend-config=nobody=hunter2pw"}},
		{name: "backend block", open: true, files: "-- main.tf --\nterraform {\n  backend \"local\" {\n    nobody = \"hunter2pw\"\n  }\n}\n"},
		{name: "backend block on a line", open: true, files: "-- main.tf --\nterraform {\n  backend \"local\" { nobody = \"hunter2pw\" }\n}\n"},
		{name: "backend block in JSON", open: true, files: "-- main.tf.json --\n{\"terraform\": {\"backend\": {\"local\": {\"nobody\": \"hunter2pw\"}}}}\n"},
		{name: "encryption", open: true, files: "-- main.tf --\nterraform {\n  encryption {\n    key_provider \"pbkdf2\" \"k\" {\n      passphrase = hunter2pw\n    }\n  }\n}\n"},

		{name: "source", commands: sourceCommands, files: "-- main.tf --\nmodule \"m\" {\n  source = \"git::https://user:hunter2pw@127.0.0.1:1/x.git//m?ref=v1\"\n}\n"},
		{name: "source with a token", commands: sourceCommands, files: "-- main.tf --\nmodule \"m\" {\n  source = \"https://127.0.0.1:1/x.zip?X-Amz-Signature=hunter2pw&archive=zip\"\n}\n"},
		{name: "source with a token for a user", commands: sourceCommands, files: "-- main.tf --\nmodule \"m\" {\n  source = \"git::http://hunter2pw@127.0.0.1:1/x.git\"\n  nobody = tonumber(\"x\")\n}\n"},
		{name: "source with a key", commands: sourceCommands, files: "-- main.tf --\nmodule \"m\" {\n  source = \"git::ssh://git@127.0.0.1:1/x.git?sshkey=hunter2pw\"\n}\n"},
		{name: "source that is wrong", commands: sourceCommands, files: "-- main.tf --\nmodule \"m\" {\n  source = \"nobody::https://user:hunter2pw@127.0.0.1:1/x.git\"\n}\nmodule \"n\" {\n  source  = \"https://user:hunter2pw@127.0.0.1:1/x.git\"\n  version = \"1\"\n}\nmodule \"o\" {\n  source  = \"https://user:hunter2pw@127.0.0.1:bad/ x.git\"\n}\n"},
		{name: "source from a local value", commands: sourceCommands, files: "-- main.tf --\nlocals {\n  s = \"git::https://user:hunter2pw@127.0.0.1:1/x.git\"\n}\nmodule \"m\" {\n  source = local.s\n}\n"},
		{name: "source that is installed", commands: sourceCommands[:len(sourceCommands)-4], files: "-- main.tf --\nmodule \"m\" {\n  source = \"git::https://user:hunter2pw@127.0.0.1:1/x.git//m\"\n  x = 1\n}\n-- .terraform/modules/m/m/main.tf --\nvariable \"x\" {}\nresource \"terraform_data\" \"d\" {\n  input = var.x\n}\n-- .terraform/modules/modules.json --\n{\"Modules\":[{\"Key\":\"\",\"Source\":\"\",\"Dir\":\".\"},{\"Key\":\"m\",\"Source\":\"git::https://user:hunter2pw@127.0.0.1:1/x.git//m\",\"Dir\":\".terraform/modules/m/m\"}]}\n"},
		{name: "source of a unit", dir: "u", commands: append([]string{"render", "render --json", "render --all"}, unitCommands...), files: "-- u/terragrunt.hcl --\nterraform { source = \"git::https://user:hunter2pw@127.0.0.1:1/x.git//m\" }\n"},
		{name: "source of a unit with a token", dir: "u", commands: append([]string{"render", "render --json"}, unitCommands...), files: "-- u/terragrunt.hcl --\nterraform { source = \"https://127.0.0.1:1/x.zip?private_token=hunter2pw\" }\n"},
		{name: "source of a unit that calls", dir: "u", commands: append([]string{"modules", "modules -json", "init", "config show"}, unitCommands...), files: "-- m/main.tf --\nmodule \"m\" {\n  source = \"git::https://user:hunter2pw@127.0.0.1:1/x.git//m\"\n}\n" + unitHead},
		{name: "source of a stack", dir: ".", files: "-- terragrunt.stack.hcl --\nunit \"u\" {\n  source = \"git::https://user:hunter2pw@127.0.0.1:1/x.git//m\"\n  path   = \"u\"\n}\n", commands: []string{"stack generate", "stack run plan", "find", "list", "find --json", "stack output", "hcl validate"}},
		{name: "backend arguments", files: "-- main.tf --\nterraform {\n  backend \"pg\" {\n    conn_str = \"postgres://127.0.0.1:1/x?password=hunter2pw\"\n  }\n}\n", commands: []string{"config show", "config show -json", "config show -origins", "init", "plan", "explain terraform.backend", "validate"}},

		{name: "inputs", dir: "u", files: numeric + unitHead + "inputs = { x = \"hunter2pw\" }\n"},
		{name: "inputs on lines", dir: "u", files: numeric + unitHead + "inputs = {\n  # one\n  x = \"hunter2pw\"\n  y = {\n    z = [\"hunter2pw\"]\n  }\n}\n"},
		{name: "sensitive inputs", dir: "u", files: module + unitHead + "inputs = {\n  x = \"hunter2pw\"\n}\n"},
		{name: "ruled inputs", open: true, dir: "u", files: ruled + unitHead + "inputs = {\n  x = \"hunter2pw\"\n}\n"},
		{name: "broken inputs", dir: "u", files: module + unitHead + "inputs = {\n  x = \"hunter2pw\n  y = \"hunter2pw\"\n}\n"},
		{name: "broken locals before inputs", dir: "u", files: module + unitHead + "locals {\n  a = [\n}\ninputs = {\n  x = \"hunter2pw\"\n}\n"},
		{name: "bare inputs", open: true, dir: "u", files: module + unitHead + "inputs = \"hunter2pw\"\n"},
		{name: "call in inputs", dir: "u", files: module + unitHead + "inputs = {\n  x = tonumber(\"hunter2pw\")\n}\n"},
		{name: "bare word in inputs", dir: "u", files: module + unitHead + "inputs = {\n  x = hunter2pw\n}\n"},
		{name: "bare words in inputs", dir: "u", files: module + unitHead + "inputs = {\n  x = \"a-${hunter2pw}\"\n}\n"},
		{name: "inputs in JSON", dir: "u", files: numeric + "-- u/terragrunt.hcl.json --\n{\"terraform\": {\"source\": \"../m\"}, \"inputs\": {\"x\": \"hunter2pw\"}, \"nobody\": 1}\n"},
		{name: "imported inputs", dir: "u", files: numeric + "-- shared.hcl --\ninputs = { x = \"hunter2pw\" }\n" + unitHead + "import \"shared\" { config_path = \"../shared.hcl\" }\n"},
		{name: "included inputs", dir: "u", files: numeric + "-- shared.hcl --\ninputs = { x = \"hunter2pw\" }\n" + unitHead + "include \"shared\" { path = \"../shared.hcl\" }\n"},
		{name: "values", dir: "u", files: numeric + unitHead + "inputs = { x = values.x }\n-- u/terragrunt.values.hcl --\nx = \"hunter2pw\"\n"},
		{name: "broken values", dir: "u", files: numeric + unitHead + "inputs = { x = values.x }\n-- u/terragrunt.values.hcl --\nx = \"hunter2pw\ny = hunter2pw()\n"},
		{name: "values in a reason", dir: "u", files: module + unitHead + "locals { x = tonumber(values.x) }\ninputs = { x = local.x }\n-- u/terragrunt.values.hcl --\nx = \"hunter2pw\"\n"},
		{name: "stack", dir: ".", files: module + "-- terragrunt.stack.hcl --\nunit \"u\" {\n  source = \"./m\"\n  path   = \"u\"\n  values = { x = tonumber(\"hunter2pw\") }\n}\n", commands: []string{"stack generate", "stack run plan", "find"}},
		{name: "broken stack", dir: ".", files: module + "-- terragrunt.stack.hcl --\nunit \"u\" {\n  source = \"./m\"\n  path   = \"u\"\n  values = { x = hunter2pw }\n}\n", commands: []string{"stack generate", "stack run plan", "find", "list", "stack output", "hcl validate"}},
		{name: "remote state", dir: "u", files: module + unitHead + "remote_state {\n  backend = \"local\"\n  config = {\n    nobody = \"hunter2pw\"\n  }\n  generate = { path = \"backend.tf\", if_exists = \"overwrite\" }\n}\ninputs = { x = 1 }\n"},
		{name: "extra arguments", dir: "u", files: numeric + unitHead + "  terraform {\n  extra_arguments \"a\" {\n    commands = [\"plan\", \"apply\"]\n    arguments = [\"-var\", \"x=hunter2pw\", \"-var=hunter2pw\"]\n    env_vars = { TF_VAR_x = \"hunter2pw\" }\n  }\n}\n"},
		{name: "extra environment", dir: "u", files: numeric + "-- u/terragrunt.hcl --\nterraform {\n  source = \"../m\"\n  extra_arguments \"a\" {\n    commands = [\"plan\", \"apply\"]\n    env_vars = { TF_VAR_x = \"hunter2pw\" }\n  }\n}\n"},
		{name: "extra flags", dir: "u", files: numeric + "-- u/terragrunt.hcl --\nterraform {\n  source = \"../m\"\n  extra_arguments \"a\" {\n    commands = [\"plan\", \"apply\"]\n    arguments = [\"-var\", \"x=hunter2pw\"]\n  }\n}\n"},
		{name: "extra files", dir: "u", files: numeric + "-- u/terragrunt.hcl --\nterraform {\n  source = \"../m\"\n  extra_arguments \"a\" {\n    commands = [\"plan\", \"apply\"]\n    required_var_files = [\"${get_terragrunt_dir()}/secret.tfvars\"]\n  }\n}\n-- u/secret.tfvars --\nx = \"hunter2pw\"\ny = \"hunter2pw\"\n"},
		{name: "environment of a unit", dir: "u", files: numeric + unitHead + "inputs = { x = get_env(\"PW\") }\n", env: []string{"PW=hunter2pw"}},
		{name: "environment in locals", dir: "u", files: module + unitHead + "locals {\n  pw = get_env(\"PW\")\n  n  = local.pw + 1\n}\ninputs = { x = local.n }\n", env: []string{"PW=hunter2pw"}},
		{name: "environment in a reason", dir: "u", files: module + unitHead + "locals {\n  pw = get_env(\"PW\")\n  n  = tonumber(\"${local.pw}\")\n}\ninputs = { x = local.n }\n", env: []string{"PW=hunter2pw"}},
		{name: "environment in a key", dir: "u", files: module + unitHead + "locals {\n  pw = get_env(\"PW\")\n  n  = { for k in [1, 2] : local.pw => k }\n}\ninputs = { x = local.n }\n", env: []string{"PW=hunter2pw"}},
		{name: "environment in an index", dir: "u", files: module + unitHead + "locals {\n  pw = get_env(\"PW\")\n  n  = {}[local.pw]\n}\ninputs = { x = local.n }\n", env: []string{"PW=hunter2pw"}},
		{name: "environment behind another file", dir: "u", files: module + "-- shared.hcl --\nlocals { pw = get_env(\"PW\") }\n" + unitHead + "locals {\n  shared = read_terragrunt_config(\"../shared.hcl\")\n  n = parseint(local.shared.locals.pw, 10)\n}\ninputs = { x = local.n }\n", env: []string{"PW=hunter2pw"}},
		{name: "environment that works", dir: "u", files: module + unitHead + "locals { pw = get_env(\"PW\") }\ninputs = {\n  x = local.pw\n  y = \"${get_env(\"PW\")}!\"\n}\n", env: []string{"PW=hunter2pw"}},
		{name: "environment of a module", dir: "u", files: numeric + unitHead, env: []string{"TF_VAR_x=hunter2pw"}},
		{name: "command", dir: "u", files: module + unitHead + "inputs = { x = run_cmd(\"--terragrunt-quiet\", \"echo\", \"hunter2pw\") }\n"},
		{name: "command in locals", dir: "u", files: numeric + unitHead + "locals { pw = run_cmd(\"--terragrunt-quiet\", \"sh\", \"-c\", \"echo hunter''2pw\") }\ninputs = { x = local.pw }\n"},
		{name: "command in a reason", dir: "u", files: numeric + unitHead + "locals {\n  pw = run_cmd(\"--terragrunt-quiet\", \"sh\", \"-c\", \"echo hunter''2pw\")\n  n = tonumber(local.pw)\n}\ninputs = { x = local.n }\n"},
		{name: "command that fails", dir: "u", files: numeric + unitHead + "locals { pw = run_cmd(\"--terragrunt-quiet\", \"sh\", \"-c\", \"echo hunter''2pw; echo hunter''2pw >&2; exit 3\") }\ninputs = { x = local.pw }\n"},
		{name: "variable file of a unit", dir: "u", files: numeric + unitHead + "inputs = jsondecode(read_tfvars_file(\"${get_terragrunt_dir()}/s.tfvars\"))\n-- u/s.tfvars --\nx = \"hunter2pw\"\n"},
		{name: "broken variable file of a unit", dir: "u", files: numeric + unitHead + "locals { v = read_tfvars_file(\"${get_terragrunt_dir()}/s.tfvars\") }\ninputs = jsondecode(local.v)\n-- u/s.tfvars --\nx = hunter2pw\n\"hunter2pw\n"},
		{name: "variable file in a reason", dir: "u", files: numeric + unitHead + "locals {\n  v = jsondecode(read_tfvars_file(\"${get_terragrunt_dir()}/s.tfvars\"))\n  n = tonumber(local.v.x)\n}\ninputs = { x = local.n }\n-- u/s.tfvars --\nx = \"hunter2pw\"\n"},
		{name: "backend that cannot be reached", files: "-- main.tf --\nterraform {\n  backend \"http\" {\n    address   = \"http://u:hunter2pw@127.0.0.1:1/state?token=hunter2pw\"\n    retry_max = 0\n  }\n}\n", commands: append([]string{"backend doctor", "workspace list", "state list", "state pull", "force-unlock -force x"}, plainCommands...)},
		{name: "database that cannot be reached", files: "-- main.tf --\nterraform {\n  backend \"pg\" {}\n}\n", commands: []string{"init -backend-config=conn_str=postgres://u:hunter2pw@127.0.0.1:1/x", "plan", "init -json -backend-config=conn_str=postgres://u:hunter2pw@127.0.0.1:1/x", "init -backend-config=conn_str=postgres://u:hunter2pw@127.0.0.1:bad/x", "init -backend-config=conn_str=hunter2pw"}},
		{name: "backend from the environment", files: "-- main.tf --\nterraform {\n  backend \"http\" {\n    retry_max = 0\n  }\n}\n", env: []string{"TF_HTTP_ADDRESS=http://u:hunter2pw@127.0.0.1:1/x?t=hunter2pw", "TF_HTTP_PASSWORD=hunter2pw"}, commands: []string{"init", "init -json", "plan", "state list", "backend doctor"}},
		{name: "backend environment that is wrong", files: "-- main.tf --\nterraform {\n  backend \"http\" {}\n}\n", env: []string{"TF_HTTP_ADDRESS=hunter2pw://x", "TF_HTTP_RETRY_MAX=hunter2pw"}, commands: []string{"init", "init -json", "backend doctor"}},
		{name: "state of others", files: "-- main.tf --\ndata \"terraform_remote_state\" \"s\" {\n  backend = \"http\"\n  config = {\n    address   = \"http://u:hunter2pw@127.0.0.1:1/state?token=hunter2pw\"\n    retry_max = 0\n  }\n}\n", commands: []string{"plan", "plan -json", "validate", "apply -auto-approve"}},
		{name: "encryption in the environment", files: declared, env: []string{"TF_ENCRYPTION=key_provider \"pbkdf2\" \"k\" { passphrase = \"hunter2pw\" "}},
		{name: "encryption that is wrong", files: declared, env: []string{"TF_ENCRYPTION={\"key_provider\":{\"pbkdf2\":{\"k\":{\"passphrase\":\"hunter2pw\",\"nobody\":\"hunter2pw\"}}}}"}},
		{name: "arguments in the environment", files: declared, env: []string{"TF_CLI_ARGS_plan=-var x=hunter2pw -var=nobody=hunter2pw", "TF_CLI_ARGS=-var=x=hunter2pw"}},
		{name: "arguments that are never closed", files: declared, env: []string{"TF_CLI_ARGS_plan=-var 'x=hunter2pw"}},
		{name: "credentials", files: declared + "-- c.tfrc --\ncredentials \"127.0.0.1\" {\n  token = \"hunter2pw\n}\n", env: []string{"TF_CLI_CONFIG_FILE=c.tfrc"}},
		{name: "credentials of the wrong type", files: declared + "-- c.tfrc --\ncredentials \"127.0.0.1\" {\n  token = [\"hunter2pw\"]\n  nobody = \"hunter2pw\"\n}\n", env: []string{"TF_CLI_CONFIG_FILE=c.tfrc"}},

		{name: "hook that fails", dir: "u", files: module + "-- u/terragrunt.hcl --\nterraform {\n  source = \"../m\"\n  before_hook \"h\" {\n    commands = [\"plan\", \"apply\", \"validate\"]\n    execute  = [\"false\", get_env(\"PW\")]\n  }\n}\ninputs = { x = get_env(\"PW\") }\n", env: []string{"PW=hunter2pw"}},
		{name: "program of a hook", dir: "u", files: module + "-- u/terragrunt.hcl --\nterraform {\n  source = \"../m\"\n  before_hook \"h\" {\n    commands = [\"plan\", \"apply\", \"validate\"]\n    execute  = [get_env(\"PW\")]\n  }\n  after_hook \"a\" {\n    commands = [\"terragrunt-read-config\"]\n    execute  = [\"./${get_env(\"PW\")}\", \"x\"]\n  }\n}\n", env: []string{"PW=hunter2pw"}},
		{name: "program of a function", dir: "u", files: module + unitHead + "inputs = { x = run_cmd(get_env(\"PW\"), \"x\") }\n", env: []string{"PW=hunter2pw"}, commands: append([]string{"render", "render --all --no-exec", "plan --no-exec", "find --no-exec"}, unitCommands...)},
		{name: "generated text", open: true, dir: "u", files: module + unitHead + "generate \"g\" {\n  path      = \"backend.tf\"\n  if_exists = \"overwrite\"\n  contents  = \"locals {\\n  a = ${get_env(\"PW\")}\\n  b = [\\n}\"\n}\n", env: []string{"PW=hunter2pw"}},
		{name: "exclude", dir: "u", files: module + unitHead + "exclude {\n  if      = get_env(\"PW\")\n  actions = [get_env(\"PW\")]\n}\n", env: []string{"PW=hunter2pw"}},
		{name: "paths", dir: "u", files: module + "-- u/terragrunt.hcl --\nterraform {\n  source = \"../m\"\n  extra_arguments \"e\" {\n    commands = [get_env(\"PW\")]\n    arguments = [{ a = get_env(\"PW\") }]\n  }\n}\n", env: []string{"PW=hunter2pw"}},
		{name: "mocks", dir: "u", files: numeric + "-- d/terragrunt.hcl --\n-- d/main.tf --\noutput \"p\" {\n  value = 1\n}\n" + unitHead + "dependency \"d\" {\n  config_path = \"../d\"\n  mock_outputs = { p = \"hunter2pw\" }\n}\ninputs = { x = dependency.d.outputs.p }\n"},
		{name: "deep clash", dir: "u", files: module + "-- shared.hcl --\ninputs = { x = { a = \"hunter2pw\" } }\n" + unitHead + "import \"shared\" {\n  config_path = \"../shared.hcl\"\n  deep_merge  = true\n}\ninputs = { x = [\"hunter2pw\"] }\n"},
		{name: "deep merge of lists", dir: "u", files: module + "-- shared.hcl --\ninputs = { x = [\"hunter2pw\"] }\n" + unitHead + "include \"shared\" {\n  path           = \"../shared.hcl\"\n  merge_strategy = \"deep\"\n}\ninputs = { x = { a = \"hunter2pw\" } }\n"},
		{name: "remote state without a file", dir: "u", files: "-- m/main.tf --\nterraform {\n  backend \"http\" {}\n}\n" + unitHead + "remote_state {\n  backend = \"http\"\n  config = {\n    address   = \"http://u:hunter2pw@127.0.0.1:1/x\"\n    password  = \"hunter2pw\"\n    retry_max = 0\n    nobody    = \"hunter2pw\"\n  }\n}\n"},
		{name: "remote state that cannot be reached", dir: "u", files: "-- m/main.tf --\n" + unitHead + "remote_state {\n  backend  = \"http\"\n  generate = { path = \"backend.tf\", if_exists = \"overwrite\" }\n  config = {\n    address   = \"http://u:hunter2pw@127.0.0.1:1/x\"\n    password  = \"hunter2pw\"\n    retry_max = 0\n  }\n}\n"},
		{name: "remote state of a dependency", dir: "u", files: numeric + "-- d/main.tf --\n-- d/terragrunt.hcl --\nremote_state {\n  backend  = \"http\"\n  generate = { path = \"backend.tf\", if_exists = \"overwrite\" }\n  config   = { address = \"http://u:hunter2pw@127.0.0.1:1/x\", retry_max = 0 }\n}\n" + unitHead + "dependency \"d\" {\n  config_path = \"../d\"\n}\ninputs = { x = dependency.d.outputs.p }\n"},
		{name: "arguments of a module block", dir: "u", files: numeric + "-- u/terragrunt.hcl --\nmodule \"a\" {\n  source = \"../m\"\n  x      = \"hunter2pw\"\n  nobody = \"hunter2pw\"\n}\n", commands: []string{"run --all plan", "run --all plan -json", "estate check", "plan --module a", "find", "hcl validate --inputs --strict", "run --all apply --non-interactive"}},
		{name: "feature", dir: "u", files: module + unitHead + "feature \"f\" {\n  default = false\n}\ninputs = { x = feature.f.value }\n", env: []string{"TG_FEATURE=f=hunter2pw,hunter2pw"}},
		{name: "credentials of a unit", dir: "u", files: module + unitHead + "-- u/auth.sh --\necho '{\"envs\": {\"A\": hunter2pw}}'\n", env: []string{"TG_AUTH_PROVIDER_CMD=sh auth.sh"}},
		{name: "credentials of a unit that fail", dir: "u", files: module + unitHead + "-- u/auth.sh --\necho hunter2pw\nexit 1\n", env: []string{"TG_AUTH_PROVIDER_CMD=sh auth.sh"}},
	}
}

// TestNoLeaks checks that output does not contain secret values: text, JSON, reports, pages
// and logs. State and saved plans contain values and are excluded, and so is the output of
// render.
func TestNoLeaks(t *testing.T) {
	t.Parallel()
	var traces traces
	collector := httptest.NewServer(&traces)
	t.Cleanup(func() {
		collector.Close()
		traces.check(t)
	})
	telemetry := []string{"TG_TELEMETRY_TRACE_EXPORTER=otlpHttp", "TG_TELEMETRY_METRIC_EXPORTER=otlpHttp"}
	for _, kind := range []string{"TRACES", "METRICS"} {
		telemetry = append(telemetry, "OTEL_EXPORTER_OTLP_"+kind+"_ENDPOINT="+collector.URL+"/"+kind)
	}
	for i, l := range leaks() {
		if !sampled(i) {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			commands := l.commands
			switch {
			case commands != nil:
			case l.dir == "":
				commands = plainCommands
			default:
				commands = unitCommands
			}
			root := t.TempDir()
			ar := txtar.Parse([]byte(l.files))
			for _, f := range ar.Files {
				path := filepath.Join(root, f.Name)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, f.Data, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			home := t.TempDir()
			for _, line := range commands {
				if l.open && (strings.HasPrefix(line, "explain") || line == "config show") {
					continue
				}
				env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "TF_LOG=trace"}, slices.Concat(telemetry, l.env)...)
				out := combined(t, filepath.Join(root, l.dir), env, strings.Fields(line)...) // the exit status does not matter
				if strings.Contains(unwrapped(out), planted) {
					t.Errorf("terrace %s prints the secret:\n%s", line, out)
				}
			}
			written(t, root, ar)
		})
	}
}

// A traces is a collector of telemetry.
type traces struct {
	mu   sync.Mutex
	seen map[string]int // number of requests by path
	bad  []string
}

func (c *traces) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[r.URL.Path]++
	if at := bytes.Index(body, []byte(planted)); err != nil || at >= 0 {
		c.bad = append(c.bad, fmt.Sprintf("%s: %v: %q", r.URL.Path, err, body[max(0, at-200):min(len(body), max(0, at)+200)]))
	}
}

// check checks that telemetry was sent, and that it contains no secret.
func (c *traces) check(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen["/TRACES"] == 0 || c.seen["/METRICS"] == 0 {
		t.Errorf("telemetry came to %v", c.seen)
	}
	for _, text := range c.bad {
		t.Errorf("telemetry holds the secret: %s", text)
	}
}

// unwrapped joins wrapped lines.
func unwrapped(text string) string {
	return strings.NewReplacer("\n", "", "│", "", " ", "").Replace(text)
}

// written checks the files that the commands created.
func written(t *testing.T, root string, ar *txtar.Archive) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() || strings.Contains(name, ".tfstate") || d.Name() == "backend.tf" || slices.ContainsFunc(ar.Files, func(f txtar.File) bool {
			return f.Name == name || filepath.Base(f.Name) == filepath.Base(name) // copied to the working directory of the unit
		}) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for member, text := range members(t, text) {
			// Copies of the configuration in a saved plan contain the secret, as those of OpenTofu do.
			if strings.Contains(string(text), planted) && !slices.ContainsFunc(ar.Files, func(f txtar.File) bool { return bytes.Equal(f.Data, text) }) {
				t.Errorf("%s holds the secret:\n%s", filepath.Join(name, member), text)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// members returns the decompressed members of an archive by name, or a file that is no archive with
// the name "". A saved plan is an archive.
func members(t *testing.T, text []byte) map[string][]byte {
	if !bytes.HasPrefix(text, []byte("PK")) {
		return map[string][]byte{"": text}
	}
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if out[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	return out
}
