package help

import "github.com/terrace-iac/terrace/internal/cli/command"

// Topics are the pages of "help TOPIC".
func Topics() []command.Topic {
	return []command.Topic{
		{Name: "addresses", Synopsis: "How resources, modules and values are named", Text: `
Addresses

  aws_instance.web             a resource
  aws_instance.web[0]          one of its instances, by count
  aws_instance.web["a"]        one of its instances, by for_each
  data.aws_ami.ubuntu          a data source
  module.app                   a module, with everything in it
  module.app["x"].aws_s3.logs  a resource in an instance of a module

Quote them for the shell: 'aws_instance.web["a"]'. The flags -target, -exclude
and -replace take them; explain also takes arguments and values, such as
aws_instance.web.tags["Name"], var.region or local.names.`},
		{Name: "environment", Synopsis: "Environment variables", Text: `
Environment variables

  TF_VAR_name            a value for the variable "name"
  TF_CLI_ARGS            flags for every command
  TF_CLI_ARGS_plan       flags for plan; likewise for other commands
  TF_DATA_DIR            the folder .terraform
  TF_WORKSPACE           the workspace
  TF_INPUT=0             ask nothing
  TF_IN_AUTOMATION       leave out hints about commands to type
  TF_PLUGIN_CACHE_DIR    share downloads of providers
  TF_CLI_CONFIG_FILE     the CLI configuration file
  TF_LOG=LEVEL           log to standard error; TF_LOG_CORE and
                         TF_LOG_PROVIDER for one part; TF_LOG_PATH for a file
  NO_COLOR               no color
  TG_NAME                sets the flag --name of commands on units
  TERRACE_AS=tofu        behave as tofu: unit files are ignored`},
		{Name: "units", Synopsis: "Units and estates", Text: `
Units and estates

A folder with a terragrunt.hcl is a unit: a module with its inputs, a state of
its own, and dependencies on other units. Each module block of an environment
file is a unit too. All units below a folder are an estate.

  plan, apply, ...          in the folder of a unit: on that unit
  run --all plan            on all units below, in the order of their dependencies
  run --filter QUERY plan   on some of them
  find, list, dag graph     the units, and their dependencies
  render                    the effective configuration of a unit
  estate check              check all units and the outputs between them
  explain inputs.region     where an input comes from`},
		{Name: "variables", Synopsis: "Where values of variables come from", Text: `
Values of variables

Later ones replace earlier ones:

  1. the default in the variable block
  2. the inputs of the unit, in the folder of one
  3. the environment: TF_VAR_name
  4. terraform.tfvars, then terraform.tfvars.json
  5. *.auto.tfvars and *.auto.tfvars.json, by name
  6. -var and -var-file, in the order of the command line

"explain var.NAME" shows which of them set the value, and what it replaced.`},
	}
}
