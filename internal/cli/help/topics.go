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

Values and flags:
  TF_VAR_name            a value for the variable "name"
  TF_CLI_ARGS            flags for every command
  TF_CLI_ARGS_plan       flags for plan; likewise for other commands
  TF_INPUT=0             ask nothing
  TG_NAME                sets the flag --name of commands on units

Folders and files:
  TF_DATA_DIR            the folder .terraform
  TF_WORKSPACE           the workspace
  TF_CLI_CONFIG_FILE     the CLI configuration file; TERRAFORM_CONFIG is its old
                         name
  TF_PLUGIN_CACHE_DIR    share downloads of providers
  TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE
                         take a provider from there though the lock file lacks
                         its checksums
  TERRACE_MODULE_CACHE_DIR
                         share downloads of modules

Output and log:
  TF_IN_AUTOMATION       leave out hints about commands to type
  TF_LOG=LEVEL           log to standard error; TF_LOG_CORE and
                         TF_LOG_PROVIDER for one part; TF_LOG_PATH for a file
  NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE
                         no color, or color without a terminal
  TERRACE_AS=tofu        behave as tofu: unit files are ignored; likewise
                         terraform and terragrunt
  TOFU_CPU_PROFILE       write a profile of the processor time to this file
  OTEL_EXPORTER_OTLP_ENDPOINT, TRACEPARENT and others of OpenTelemetry
                         where traces go

State:
  TF_STATE_PERSIST_INTERVAL
                         seconds between two writes of the state in an apply
  TF_ENCRYPTION          the encryption of state and plans
  TERRACE_JOURNAL=store  keep the journal of an apply beside a remote state
  TF_IGNORE=trace        say what is not uploaded for a run elsewhere
  TF_FORCE_LOCAL_BACKEND run here what "cloud" and "remote" would run
  TF_CLOUD_ORGANIZATION, TF_CLOUD_HOSTNAME, TF_CLOUD_PROJECT
                         what a "cloud" block leaves out
  TERRACE_STORE_TIMEOUT=30s
                         how long the service of a backend may say nothing
  OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION=0
                         leave addresses of providers in a state as they are

  Each kind of backend reads its own besides, such as AWS_REGION, ARM_ACCESS_KEY,
  PGHOST or TF_HTTP_ADDRESS (TF_HTTP_ and the name of an argument).

Registries and providers:
  TF_TOKEN_app_example_com
                         the token for a host
  TF_REGISTRY_DISCOVERY_RETRY, TF_REGISTRY_CLIENT_TIMEOUT
                         how often a registry is asked, and seconds for an answer
  TF_PROVIDER_DOWNLOAD_RETRY
                         how often the download of a provider is tried again
  TF_APPEND_USER_AGENT   more for the User-Agent of requests
  TG_TF_DEFAULT_REGISTRY_HOST, TG_TF_REGISTRY_TOKEN
                         the registry of tfr:/// sources, and its token
  OPENTOFU_ENFORCE_GPG_VALIDATION, OPENTOFU_ENFORCE_GPG_EXPIRATION
                         refuse providers that are not signed, or by a key that
                         has expired
  TF_REATTACH_PROVIDERS  providers that run already
  TF_DISABLE_PLUGIN_TLS  talk to providers without TLS, wherever they listen
  TERRACE_SLOW_CALL=30s  report calls to providers that take longer than this
  BROWSER                the program that opens the page of login
  TF_TEMPLATE_RECURSION_DEPTH
                         how deep templatefile may call itself

Runs on a Temporal server:
  TERRACE_RUN_KEY        the key that seals what the server keeps
  TERRACE_TEMPORAL_TLS_CA, TERRACE_TEMPORAL_TLS_CERT, TERRACE_TEMPORAL_TLS_KEY,
  TERRACE_TEMPORAL_TLS_SERVER_NAME, TERRACE_TEMPORAL_API_KEY
                         how to connect
  TERRACE_TEMPORAL_HEARTBEAT
                         after how long a silent worker is given up`},
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
