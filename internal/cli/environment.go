package cli

import (
	"slices"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/encryption"
)

// environment returns the table of all environment variables, except those of single kinds of
// backends. The help, man pages, docs/commands.md and the help topic environment are generated
// from it.
func environment() []command.Variable {
	var out []command.Variable
	group := ""
	add := func(readers func(*command.Command) bool, name, help string) *command.Variable {
		out = append(out, command.Variable{Name: name, Help: help, Group: group, Readers: readers})
		return &out[len(out)-1]
	}
	family := func(readers func(*command.Command) bool, prefix, name, help string) *command.Variable {
		v := add(readers, name, help)
		v.Family = prefix
		return v
	}
	var every func(*command.Command) bool

	group = "Values and flags"
	family(takes("var"), "TF_VAR_", "TF_VAR_name", "A value for the variable \"name\" of the root module.")
	add(every, "TF_CLI_ARGS", "Flags for every command, inserted before those on the command line.")
	family(always, "TF_CLI_ARGS_", "TF_CLI_ARGS_plan", "Flags for this command, inserted before those on the command line.").
		For = func(c *command.Command) string { return command.ArgsVariable(c.Name) }
	add(takes("input"), "TF_INPUT", "0 or false: ask for nothing, as -input=false does.")
	family(onUnits, "TG_", "TG_NAME", "The flag --name of commands on units, such as TG_NON_INTERACTIVE for --non-interactive. TERRAGRUNT_NAME is its old name.")

	group = "Directories and files"
	add(inFolder, "TF_DATA_DIR", "The directory in place of .terraform, for modules, providers and what init keeps.")
	add(inFolder, "TF_WORKSPACE", "The workspace, in place of the one that was selected.")
	add(every, "TF_CLI_CONFIG_FILE", "The CLI configuration file.")
	add(every, "TERRAFORM_CONFIG", "The old name of TF_CLI_CONFIG_FILE, read where that is not set.")
	add(uses(command.Packages), "TF_PLUGIN_CACHE_DIR", "A directory in which directories share downloads of providers.")
	add(uses(command.Packages), "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE", "Take a provider from the shared directory though the lock file lacks its checksums.")
	add(uses(command.Packages), "TERRACE_VERIFY_PACKAGES", "With any value, read each provider package whole before its program starts, although its files have not changed since it was read last.")
	add(uses(command.Providers), "TERRACE_READ_SCHEMAS", "With any value, start each provider to read its schema, and keep none for later commands.")
	add(uses(command.Modules), "TERRACE_MODULE_CACHE_DIR", "A directory in which directories share downloads of modules.")

	group = "Output and log"
	add(every, "TF_IN_AUTOMATION", "Leave out hints about commands to type.")
	add(every, "TF_LOG", "Log to standard error from this level on: trace, debug, info, warn or error.")
	add(every, "TF_LOG_CORE", "The level for all but providers.")
	family(every, "TF_LOG_PROVIDER", "TF_LOG_PROVIDER", "The level for providers.")
	add(every, "TF_LOG_PATH", "A file for the log.")
	family(uses(command.Providers), "TF_LOG_SDK", "TF_LOG_SDK", "The log level of the libraries that providers use. Providers read the variable themselves.")
	add(every, "NO_COLOR", "No color.")
	add(every, "FORCE_COLOR", "Color without a terminal. CLICOLOR_FORCE does the same.")
	add(every, "CLICOLOR_FORCE", "Color without a terminal.")
	add(every, "TERRACE_AS", "Emulate this program: tofu, terraform (both ignore unit files) or terragrunt.")
	add(every, "TOFU_CPU_PROFILE", "A file for a profile of the processor time.")
	add(every, "OTEL_TRACES_EXPORTER", "otlp sends traces of the command, as in OpenTofu.")
	family(every, "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_ENDPOINT", "Where traces and metrics go, by OpenTelemetry; likewise _HEADERS, _PROTOCOL and its others.")
	add(every, "OTEL_SERVICE_NAME", "The name of the program in traces and metrics.")
	add(every, "OTEL_RESOURCE_ATTRIBUTES", "More about the program in traces and metrics.")
	add(every, telemetry.Variable, "The trace that the traces are part of.")

	group = "State"
	add(uses(command.State), encryption.Variable, "The encryption of states and plans, besides the block of the configuration.")
	add(uses(command.State), "OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION", "0: leave addresses of providers in a state as they are.")
	add(uses(command.Applies), "TF_STATE_PERSIST_INTERVAL", "Seconds between two writes of the state, 20 at least.")
	add(uses(command.Applies), "TERRACE_JOURNAL", "Where the journal of a run is kept, as -journal says: file, or store, beside a remote state.")
	add(uses(command.State), "XDG_STATE_HOME", "The directory of the user's own state, in which terrace/journal.key binds journals to the user; $HOME/.local/state if it is not set.")
	add(backends, rest.Variable, "How long the service of a backend may say nothing, such as 30s.")
	add(backends, "TF_FORCE_LOCAL_BACKEND", "Run here what the backends cloud and remote would run elsewhere.")
	for _, x := range [][2]string{{"ORGANIZATION", "organization"}, {"HOSTNAME", "hostname"}, {"PROJECT", "project"}} {
		add(backends, "TF_CLOUD_"+x[0], "The "+x[1]+", where a cloud block has none.")
	}
	family(backends, "TF_HTTP_", "TF_HTTP_ADDRESS", "The address for the backend http; likewise its other arguments, by their names.")
	add(named("plan", "apply", "destroy", "refresh", "drift"), "TF_IGNORE", "trace: say what is not uploaded for a run elsewhere.")

	group = "Registries and providers"
	family(either(backends, downloads), "TF_TOKEN_", "TF_TOKEN_app_example_com", "The token for a host.")
	add(downloads, "TF_REGISTRY_DISCOVERY_RETRY", "How often a registry that does not answer is asked again.")
	add(downloads, "TF_REGISTRY_CLIENT_TIMEOUT", "Seconds that a registry has for an answer.")
	add(uses(command.Packages), "TF_PROVIDER_DOWNLOAD_RETRY", "How often the download of a provider is tried again.")
	add(uses(command.Packages), "OPENTOFU_ENFORCE_GPG_VALIDATION", "Refuse providers that are not signed.")
	add(uses(command.Packages), "OPENTOFU_ENFORCE_GPG_EXPIRATION", "Refuse providers that are signed by a key that has expired.")
	add(every, "TF_APPEND_USER_AGENT", "More for the User-Agent of requests.")
	add(onUnits, "TG_TF_DEFAULT_REGISTRY_HOST", "The registry of tfr:/// sources.")
	add(onUnits, "TG_TF_REGISTRY_TOKEN", "The token for the registry of tfr:/// sources.")
	add(uses(command.Providers), "TF_REATTACH_PROVIDERS", "Providers that run already, as JSON.")
	add(uses(command.Providers), "TF_DISABLE_PLUGIN_TLS", "Talk to providers without TLS, wherever they listen.")
	add(uses(command.Providers), "TERRACE_SLOW_CALL", "Report calls to providers that take longer than this, such as 30s.")
	add(takes("var"), "TF_TEMPLATE_RECURSION_DEPTH", "How deep templatefile may call itself.")
	add(uses(command.Browser), "BROWSER", "The program that opens the login page, in place of the system's own.")

	group = "Runs on a Temporal server"
	temporal := uses(command.Temporal)
	add(temporal, remote.KeyVariable, "The key that seals what the server keeps, the same for the command and all workers.")
	add(temporal, "TERRACE_TEMPORAL_TLS_CERT", "A file with a certificate to show to the server.")
	add(temporal, "TERRACE_TEMPORAL_TLS_KEY", "A file with the key of that certificate.")
	add(temporal, "TERRACE_TEMPORAL_TLS_CA", "A file with the authority of the server's certificate.")
	add(temporal, "TERRACE_TEMPORAL_TLS_SERVER_NAME", "The name in the server's certificate.")
	add(temporal, "TERRACE_TEMPORAL_API_KEY", "The key for Temporal Cloud.")
	add(temporal, "TERRACE_TEMPORAL_HEARTBEAT", "After how long a silent worker is given up, such as 30s.")
	return out
}

// always means every command, for a variable whose name depends on the command.
func always(*command.Command) bool { return true }

// uses returns a function that selects the commands with one of the properties.
func uses(what command.Uses) func(*command.Command) bool {
	return func(c *command.Command) bool { return c.Uses.HasAny(what) }
}

// named returns a function that selects commands by name.
func named(names ...string) func(*command.Command) bool {
	return func(c *command.Command) bool { return slices.Contains(names, c.Name) }
}

// takes returns a function that selects the commands with a flag that the variable sets too.
func takes(flag string) func(*command.Command) bool {
	return func(c *command.Command) bool {
		if c.Prepare == nil {
			return false
		}
		own, _ := c.Prepare()
		return own.Named(flag) != nil
	}
}

// either returns a function that selects the commands that one of the functions selects.
func either(of ...func(*command.Command) bool) func(*command.Command) bool {
	return func(c *command.Command) bool {
		return slices.ContainsFunc(of, func(reads func(*command.Command) bool) bool { return reads(c) })
	}
}

// backends selects the commands that access a backend. downloads selects those that access
// registries.
func backends(c *command.Command) bool  { return c.Uses.HasAny(command.Backends | command.State) }
func downloads(c *command.Command) bool { return c.Uses.HasAny(command.Modules | command.Packages) }

// inFolder selects the commands that work in an initialized directory: those that run in
// units, and those that load the configuration, which needs values of variables.
func inFolder(c *command.Command) bool { return c.Units.Has(command.InUnit) || takes("var")(c) }

// onUnits selects the commands that accept the flags of units.
func onUnits(c *command.Command) bool {
	return c.Units.Has(command.InUnit) || c.Units.Has(command.TakesUnitFlags)
}
