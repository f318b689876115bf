package help

import "github.com/terrace-iac/terrace/internal/cli/command"

// Topics returns the pages of "help TOPIC". environment is the list of all environment
// variables.
func Topics(environment []command.Variable) []command.Topic {
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
		command.EnvironmentTopic(environment, `Each kind of backend reads its own besides, such as AWS_REGION, ARM_ACCESS_KEY or PGHOST: see docs/backends.md.`),
		{Name: "units", Synopsis: "Units and estates", Text: `
Units and estates

A directory with a terragrunt.hcl is a unit: a module with its inputs, a state
of its own, and dependencies on other units. Each module block of an environment
file is a unit too. All units below a directory are an estate.

  plan, apply, ...          in the directory of a unit: on that unit
  run --all plan            on all units below, dependencies first
  run --filter QUERY plan   on some of them
  find, list, dag graph     the units, and their dependencies
  render                    the effective configuration of a unit
  estate check              check all units and the outputs between them
  explain inputs.region     where an input comes from`},
		{Name: "variables", Synopsis: "Where values of variables come from", Text: `
Values of variables

Later ones replace earlier ones:

  1. the default in the variable block
  2. the inputs of the unit, in the directory of one
  3. the environment: TF_VAR_name
  4. terraform.tfvars, then terraform.tfvars.json
  5. *.auto.tfvars and *.auto.tfvars.json, by name
  6. -var and -var-file, in the order of the command line

"explain var.NAME" shows which of them set the value, and what it replaced.`},
	}
}
