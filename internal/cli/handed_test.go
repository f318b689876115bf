package cli_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// A position is a position in the files of an estate. VALUE there is replaced by an expression
// whose value comes from the environment or from a program.
type position struct {
	name  string
	files string // txtar; the unit is u, its module m
	early bool   // local values are not allowed there
}

const (
	positionHead = "-- m/main.tf --\nvariable \"x\" {\n  default = null\n}\n-- d/main.tf --\noutput \"o\" {\n  value = 1\n}\n-- d/terragrunt.hcl --\n-- u/terragrunt.hcl --\n"
	positionUnit = positionHead + "terraform { source = \"../m\" }\n"
)

// inTerraform returns a unit with text in its terraform block.
func inTerraform(text string) string {
	return positionHead + "terraform {\n  source = \"../m\"\n  " + text + "\n}\n"
}

func positions() []position {
	hook := func(kind, text string) string {
		return inTerraform(kind + " \"h\" {\n    commands = [\"plan\", \"apply\", \"validate\"]\n    " + text + "\n  }")
	}
	extra := func(text string) string {
		return inTerraform("extra_arguments \"e\" {\n    commands = [\"init\", \"plan\", \"apply\", \"validate\"]\n    " + text + "\n  }")
	}
	remote := func(backend, config, more string) string {
		return positionUnit + "remote_state {\n  backend = " + backend + "\n  config = " + config + "\n  " + more + "\n}\n"
	}
	generate := func(text string) string { return positionUnit + "generate \"g\" {\n  " + text + "\n}\n" }
	stack := func(text string) string {
		return "-- m/main.tf --\n-- m/terragrunt.hcl --\n-- terragrunt.stack.hcl --\n" + text
	}
	module := func(text string) string {
		return "-- m/main.tf --\nvariable \"x\" {\n  default = null\n}\n-- u/terragrunt.hcl --\n" + text
	}
	const backendFile = "generate = { path = \"backend.tf\", if_exists = \"overwrite\" }"
	return []position{
		{name: "source", files: positionHead + "terraform { source = VALUE }\n"},
		{name: "directory in source", files: positionHead + "terraform { source = \"../${VALUE}//m\" }\n"},
		{name: "subdirectory of source", files: positionHead + "terraform { source = \"..//m/${VALUE}\" }\n"},
		{name: "host in source", files: positionHead + "terraform { source = \"git::http://127.0.0.1:1/${VALUE}.git//m?ref=v1\" }\n"},
		{name: "ref in source", files: positionHead + "terraform { source = \"git::file:///nowhere/x.git//m?ref=${VALUE}\" }\n"},
		{name: "query in source", files: positionHead + "terraform { source = \"http://127.0.0.1:1/x.zip?a=${VALUE}\" }\n"},
		{name: "scheme in source", files: positionHead + "terraform { source = \"${VALUE}::http://127.0.0.1:1/x\" }\n"},
		{name: "registry in source", files: positionHead + "terraform { source = \"tfr://127.0.0.1:1/a/${VALUE}/c?version=1.0.0\" }\n"},
		{name: "version in source", files: positionHead + "terraform { source = \"tfr://127.0.0.1:1/a/b/c?version=${VALUE}\" }\n"},
		{name: "version", files: positionHead + "terraform {\n  source = \"../m\"\n  version = VALUE\n}\n"},
		{name: "include_in_copy", files: inTerraform("include_in_copy = [\"[${VALUE}\"]")},
		{name: "exclude_from_copy", files: inTerraform("exclude_from_copy = [\"[${VALUE}\"]")},
		{name: "copy_terraform_lock_file", files: inTerraform("copy_terraform_lock_file = VALUE")},
		{name: "extra commands", files: inTerraform("extra_arguments \"e\" {\n    commands = [VALUE]\n    arguments = [\"-nothing\"]\n  }")},
		{name: "extra arguments", files: extra("arguments = [\"-${VALUE}\"]")},
		{name: "value in extra arguments", files: extra("arguments = [\"-nothing=${VALUE}\"]")},
		{name: "backend in extra arguments", files: extra("arguments = [\"-backend-config=password=${VALUE}\"]")},
		{name: "variable in extra arguments", files: extra("arguments = [\"-var=${VALUE}\"]")},
		{name: "number in extra arguments", files: extra("arguments = [\"-parallelism=${VALUE}\"]")},
		{name: "switch in extra arguments", files: extra("arguments = [\"-lock=${VALUE}\"]")},
		{name: "word in extra arguments", files: extra("arguments = [VALUE]")},
		{name: "target in extra arguments", files: extra("arguments = [\"-target=${VALUE}.x[\"]")},
		{name: "replaced in extra arguments", files: extra("arguments = [\"-replace=${VALUE}.x[\"]")},
		{name: "env_vars", files: extra("env_vars = { TF_VAR_x = [VALUE] }")},
		{name: "setting in env_vars", files: extra("env_vars = { TF_CLI_ARGS = VALUE, TF_CLI_CONFIG_FILE = VALUE }")},
		{name: "workspace in env_vars", files: extra("env_vars = { TF_WORKSPACE = \"/${VALUE}\" }")},
		{name: "required_var_files", files: extra("required_var_files = [\"${VALUE}.tfvars\"]")},
		{name: "optional_var_files", files: extra("optional_var_files = [\"${VALUE}.tfvars\"]") + "-- PLANTED.tfvars --\n["},
		{name: "hook commands", files: inTerraform("before_hook \"h\" {\n    commands = [VALUE]\n    execute = [\"false\"]\n  }")},
		{name: "hook program", files: hook("before_hook", "execute = [VALUE]")},
		{name: "hook path", files: hook("before_hook", "execute = [\"./${VALUE}/x\"]")},
		{name: "hook working_dir", files: hook("before_hook", "execute = [\"true\"]\n    working_dir = \"/nowhere/${VALUE}\"")},
		{name: "hook if", files: hook("before_hook", "execute = [\"true\"]\n    if = VALUE")},
		{name: "after_hook program", files: hook("after_hook", "execute = [\"./${VALUE}\"]")},
		{name: "error_hook pattern", files: inTerraform("before_hook \"f\" {\n    commands = [\"plan\", \"apply\"]\n    execute = [\"false\"]\n  }\n  error_hook \"h\" {\n    commands = [\"plan\", \"apply\"]\n    execute = [\"true\"]\n    on_errors = [\"[${VALUE}\"]\n  }")},
		{name: "backend", files: remote("VALUE", "{}", backendFile)},
		{name: "backend argument", files: remote("\"local\"", "{ nothing = VALUE }", backendFile)},
		{name: "backend path", files: remote("\"local\"", "{ path = \"/dev/null/${VALUE}\" }", backendFile)},
		{name: "backend address", files: remote("\"http\"", "{ address = \"http://127.0.0.1:1/${VALUE}\", retry_max = 0 }", backendFile)},
		{name: "backend name", files: remote("\"local\"", "{ (VALUE) = 1 }", backendFile)},
		{name: "backend config", files: remote("\"local\"", "VALUE", backendFile)},
		{name: "backend file", files: remote("\"local\"", "{}", "generate = { path = \"/dev/null/${VALUE}\", if_exists = \"overwrite\" }")},
		{name: "backend file outside", files: remote("\"local\"", "{}", "generate = { path = \"../../../../${VALUE}\", if_exists = \"overwrite\" }")},
		{name: "backend if_exists", files: remote("\"local\"", "{}", "generate = { path = \"backend.tf\", if_exists = VALUE }")},
		{name: "disable_init", files: remote("\"local\"", "{}", "disable_init = VALUE\n  "+backendFile)},
		{name: "encryption", files: remote("\"local\"", "{}", "encryption = { key_provider = VALUE, passphrase = VALUE }\n  "+backendFile)},
		{name: "generate path", files: generate("path = \"/dev/null/${VALUE}\"\n  if_exists = \"overwrite\"\n  contents = \"\"")},
		{name: "generate over a file", files: "-- m/PLANTED --\n" + generate("path = VALUE\n  if_exists = \"error\"\n  contents = \"\"")},
		{name: "if_exists", files: generate("path = \"g.tf\"\n  if_exists = VALUE\n  contents = \"\"")},
		{name: "if_disabled", files: generate("path = \"g.tf\"\n  if_exists = \"overwrite\"\n  if_disabled = VALUE\n  contents = \"\"")},
		{name: "comment_prefix", files: generate("path = \"g.tf\"\n  if_exists = \"overwrite\"\n  comment_prefix = VALUE\n  contents = \"\"")},
		{name: "contents", files: generate("path = \"g.tf\"\n  if_exists = \"overwrite\"\n  contents = VALUE")},
		{name: "generated file's name", files: generate("path = \"${VALUE}.tf\"\n  if_exists = \"overwrite\"\n  contents = \"locals {\"")},
		{name: "generate disable", files: generate("path = \"g.tf\"\n  if_exists = \"overwrite\"\n  contents = \"\"\n  disable = VALUE")},
		{name: "config_path", files: positionUnit + "dependency \"d\" { config_path = \"../${VALUE}\" }\ninputs = { x = dependency.d.outputs.o }\n"},
		{name: "config_path to what has no unit", files: "-- PLANTED/x --\n" + positionUnit + "dependency \"d\" { config_path = \"../${VALUE}\" }\ninputs = { x = dependency.d.outputs.o }\n"},
		{name: "dependency enabled", files: positionUnit + "dependency \"d\" {\n  config_path = \"../d\"\n  enabled = VALUE\n}\n"},
		{name: "mock_outputs", files: positionUnit + "dependency \"d\" {\n  config_path = \"../d\"\n  mock_outputs = VALUE\n}\ninputs = { x = dependency.d.outputs.o }\n"},
		{name: "mock strategy", files: positionUnit + "dependency \"d\" {\n  config_path = \"../d\"\n  mock_outputs = {}\n  mock_outputs_merge_strategy_with_state = VALUE\n}\ninputs = { x = dependency.d.outputs.o }\n"},
		{name: "dependencies", files: positionUnit + "dependencies { paths = [\"../${VALUE}\"] }\n"},
		{name: "include", early: true, files: positionHead + "include \"r\" { path = \"../${VALUE}.hcl\" }\nterraform { source = \"../m\" }\n"},
		{name: "included file", early: true, files: "-- PLANTED.hcl --\ninputs = { x = local.nothing }\n" + positionHead + "include \"r\" { path = \"../${VALUE}.hcl\" }\nterraform { source = \"../m\" }\n"},
		{name: "merge_strategy", early: true, files: "-- r.hcl --\n" + positionHead + "include \"r\" {\n  path = \"../r.hcl\"\n  merge_strategy = VALUE\n}\nterraform { source = \"../m\" }\n"},
		{name: "expose", early: true, files: "-- r.hcl --\n" + positionHead + "include \"r\" {\n  path = \"../r.hcl\"\n  expose = VALUE\n}\nterraform { source = \"../m\" }\n"},
		{name: "import", early: true, files: positionHead + "import \"r\" { config_path = \"../${VALUE}.hcl\" }\nterraform { source = \"../m\" }\n"},
		{name: "imported file", early: true, files: "-- PLANTED.hcl --\nlocals { a = b.c }\n" + positionHead + "import \"r\" { config_path = \"../${VALUE}.hcl\" }\nterraform { source = \"../m\" }\ninputs = { x = import.r.locals.a }\n"},
		{name: "merge", early: true, files: "-- r.hcl --\n" + positionHead + "import \"r\" {\n  config_path = \"../r.hcl\"\n  merge = VALUE\n}\nterraform { source = \"../m\" }\n"},
		{name: "feature", files: positionUnit + "feature \"f\" { default = VALUE }\ninputs = { x = tonumber(feature.f.value) }\n"},
		{name: "exclude if", files: positionUnit + "exclude {\n  if = VALUE\n  actions = [\"all\"]\n}\n"},
		{name: "exclude actions", files: positionUnit + "exclude {\n  if = true\n  actions = VALUE\n}\n"},
		{name: "retryable_errors", files: inTerraform("before_hook \"f\" {\n    commands = [\"plan\", \"apply\"]\n    execute = [\"false\"]\n  }") + "errors {\n  retry \"r\" {\n    retryable_errors = [\"[${VALUE}\"]\n    max_attempts = 2\n    sleep_interval_sec = 0\n  }\n}\n"},
		{name: "max_attempts", files: positionUnit + "errors {\n  retry \"r\" {\n    retryable_errors = [\"x\"]\n    max_attempts = VALUE\n    sleep_interval_sec = 0\n  }\n}\n"},
		{name: "ignorable_errors", files: inTerraform("before_hook \"f\" {\n    commands = [\"plan\", \"apply\"]\n    execute = [\"false\"]\n  }") + "errors {\n  ignore \"r\" {\n    ignorable_errors = [\"[${VALUE}\"]\n  }\n}\n"},
		{name: "ignore message", files: inTerraform("before_hook \"f\" {\n    commands = [\"plan\", \"apply\"]\n    execute = [\"false\"]\n  }") + "errors {\n  ignore \"r\" {\n    ignorable_errors = [\".*\"]\n    message = \"Said ${VALUE}.\"\n  }\n}\n"},
		{name: "engine", files: positionUnit + "engine { source = VALUE }\n"},
		{name: "inputs", files: positionUnit + "inputs = VALUE\n"},
		{name: "input", files: positionUnit + "inputs = { x = tonumber(VALUE) }\n"},
		{name: "name of an input", files: positionUnit + "inputs = { (VALUE) = 1 }\n"},
		{name: "download_dir", files: positionUnit + "download_dir = \"/dev/null/${VALUE}\"\n"},
		{name: "relative download_dir", files: positionUnit + "download_dir = \"./${VALUE}\"\ninputs = { x = local.nothing }\n"},
		{name: "prevent_destroy", files: positionUnit + "prevent_destroy = VALUE\n"},
		{name: "iam_role", files: positionUnit + "iam_role = VALUE\n"},
		{name: "session name", files: positionUnit + "iam_role = \"arn:aws:iam::1:role/r\"\niam_assume_role_session_name = VALUE\n"},
		{name: "session duration", files: positionUnit + "iam_role = \"arn:aws:iam::1:role/r\"\niam_assume_role_duration = VALUE\n"},
		{name: "web identity token", files: positionUnit + "iam_role = \"arn:aws:iam::1:role/r\"\niam_web_identity_token = VALUE\n"},
		{name: "terraform_binary", files: positionUnit + "terraform_binary = VALUE\n"},
		{name: "terraform constraint", files: positionUnit + "terraform_version_constraint = VALUE\n"},
		{name: "terragrunt constraint", files: positionUnit + "terragrunt_version_constraint = VALUE\n"},
		{name: "excluding constraint", files: positionUnit + "terragrunt_version_constraint = \"> 99.0.0-${VALUE}\"\n"},
		{name: "condition", files: positionUnit + "inputs = { x = VALUE ? 1 : 2 }\n"},
		{name: "index", files: positionUnit + "locals { m = {} }\ninputs = { x = local.m[VALUE] }\n"},
		{name: "path of a function", files: positionUnit + "inputs = { x = read_terragrunt_config(VALUE) }\n"},
		{name: "file of a function", files: positionUnit + "inputs = { x = file(VALUE), y = read_tfvars_file(VALUE) }\n"},
		{name: "searched file", files: positionUnit + "inputs = { x = find_in_parent_folders(VALUE) }\n"},
		{name: "program of a function", files: positionUnit + "inputs = { x = run_cmd(\"--terragrunt-quiet\", \"./${VALUE}\") }\n"},
		{name: "catalog", files: positionUnit + "catalog { urls = VALUE }\n"},
		{name: "stack source", files: stack("unit \"a\" {\n  source = \"./${VALUE}\"\n  path = \"a\"\n}\n")},
		{name: "fetched stack source", files: stack("unit \"a\" {\n  source = \"git::http://127.0.0.1:1/${VALUE}.git\"\n  path = \"a\"\n}\n")},
		{name: "stack path", files: stack("unit \"a\" {\n  source = \"./m\"\n  path = \"../../${VALUE}\"\n}\n")},
		{name: "stack values", files: stack("unit \"a\" {\n  source = \"./m\"\n  path = \"a\"\n  values = VALUE\n}\n")},
		{name: "name of a value", files: stack("unit \"a\" {\n  source = \"./m\"\n  path = \"a\"\n  values = { \"${VALUE} x\" = 1 }\n}\n")},
		{name: "stack flag", files: stack("unit \"a\" {\n  source = \"./m\"\n  path = \"a\"\n  no_validation = VALUE\n}\n")},
		{name: "stack in a stack", files: stack("stack \"a\" {\n  source = \"./${VALUE}\"\n  path = \"a\"\n}\n")},
		{name: "included stack file", early: true, files: stack("include \"r\" { path = \"./${VALUE}.hcl\" }\n")},
		{name: "autoinclude", files: stack("unit \"a\" {\n  source = \"./m\"\n  path = \"a\"\n  autoinclude {\n    terraform { source = \"./${VALUE}\" }\n  }\n}\n")},
		{name: "values file", files: positionHead + "terraform { source = values.s }\ndependency \"d\" { config_path = values.s }\n-- u/terragrunt.values.hcl --\ns = \"PLANTED\"\n"},
		{name: "expression in a values file", files: positionHead + "terraform { source = \"../${values.s}\" }\n-- u/terragrunt.values.hcl --\ns = VALUE\n", early: true},
		{name: "module source", files: module("module \"a\" { source = \"../${VALUE}\" }\n")},
		{name: "module version", files: module("module \"a\" {\n  source = \"tfr://127.0.0.1:1/a/b/c\"\n  version = VALUE\n}\n")},
		{name: "module enabled", files: module("module \"a\" {\n  source = \"../m\"\n  enabled = VALUE\n}\n")},
		{name: "module for_each", files: module("module \"a\" {\n  source = \"../m\"\n  for_each = VALUE\n}\n")},
		{name: "module argument", files: module("module \"a\" {\n  source = \"../m\"\n  x = tonumber(VALUE)\n}\n")},
		{name: "undeclared module argument", files: module("module \"a\" {\n  source = \"../m\"\n  nothing = VALUE\n}\n")},
	}
}

// TestHandedInValues checks that no output, log or telemetry contains a value that unit,
// stack, values or environment files read from the environment or from a program.
func TestHandedInValues(t *testing.T) {
	t.Parallel()
	var traces traces
	collector := httptest.NewServer(&traces)
	t.Cleanup(func() {
		collector.Close()
		traces.check(t)
	})
	telemetry := []string{"TG_TELEMETRY_TRACE_EXPORTER=otlpHttp", "TG_TELEMETRY_METRIC_EXPORTER=otlpHttp", "TG_TELEMETRY_LOG_EXPORTER=otlpHttp"}
	for _, kind := range []string{"TRACES", "METRICS", "LOGS"} {
		telemetry = append(telemetry, "OTEL_EXPORTER_OTLP_"+kind+"_ENDPOINT="+collector.URL+"/"+kind)
	}
	for i, p := range positions() {
		forms := map[string]string{"environment": `get_env("PW")`, "program": `run_cmd("--terragrunt-quiet", "printenv", "PW")`}
		if !p.early {
			forms["local value"], forms["call"] = "local.handed.pw", `replace(get_env("PWX"), "x", "u")`
		}
		if !sampled(i) {
			continue
		}
		for form, expr := range forms {
			t.Run(p.name+" from "+form, func(t *testing.T) {
				t.Parallel()
				root, home := t.TempDir(), t.TempDir()
				text := strings.NewReplacer("VALUE", expr, "PLANTED", planted).Replace(p.files)
				ar := txtar.Parse([]byte(text))
				dir := root
				for i := range ar.Files {
					f := &ar.Files[i]
					data := string(f.Data)
					if strings.Contains(data, "local.handed") && filepath.Ext(f.Name) == ".hcl" {
						data += "locals { handed = jsondecode(jsonencode({ pw = get_env(\"PW\") })) }\n"
						data = strings.Replace(data, "locals { m = {} }\n", "", 1)
						data = strings.Replace(data, "local.m[", "{}[", 1)
					}
					if strings.HasPrefix(f.Name, "u/") {
						dir = filepath.Join(root, "u")
					}
					path := filepath.Join(root, f.Name)
					if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				commands := []string{
					"run --all plan --report-file=r.json --html=page.html", "run --all apply --non-interactive -json --report-file=r.csv", "hcl validate --json", "hcl validate --inputs --strict", "estate check",
					"plan", "init -json", "find --json", "list -l", "run --all plan --log-level=debug --queue-include-external",
				}
				if dir == root {
					commands = append(commands, "stack generate", "stack run plan")
				}
				for _, line := range commands {
					env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "TF_LOG=trace", "PW=" + planted, "PWX=" + strings.Replace(planted, "u", "x", 1)}, telemetry...)
					out := combined(t, dir, env, strings.Fields(line)...) // the exit status does not matter
					if strings.Contains(unwrapped(out), planted) {
						t.Errorf("terrace %s prints the secret:\n%s", line, out)
					}
				}
				for _, name := range []string{"r.json", "r.csv", "page.html"} {
					if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil && strings.Contains(string(text), planted) {
						t.Errorf("%s holds the secret:\n%s", name, text)
					}
				}
			})
		}
	}
}
