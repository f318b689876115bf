package cli

import (
	"slices"

	"github.com/terrace-iac/terrace/internal/cli/view"
)

// # Help on the flags of units
//
// The help of run lists every flag there is for units; a test sees to that. Those of
// other commands list what the command looks at.

// choiceOptions say which units a command is about.
func choiceOptions() []string {
	return []string{
		option("--filter=QUERY", "Take the units that a query matches. May be repeated."),
		option("--filter-affected", "Take the units that differ from the main branch of the repository."),
		option("--filters-file=PATH", "A file with a query in each line, .terragrunt-filters by default."),
		option("--no-filters-file", "Without that file."),
		option("--graph", "Take the unit in the working folder and all that need it."),
		option("--graph-root=PATH", "Where these are looked for, the git repository by default."),
		option("--discovery-boundary=PATH", "The folder that filters do not leave on their way to units that need others or are needed, with --experiment bounded-discovery."),
		option("--queue-include-dir=PATH", "Take the units in a folder. May be repeated."),
		option("--queue-exclude-dir=PATH", "Leave out the units in a folder. May be repeated."),
		option("--queue-excludes-file=PATH", "A file with such a folder in each line, .terragrunt-excludes by default."),
		option("--queue-include-external", "Take what units need from outside of the working folder, too."),
		option("--queue-include-units-reading=PATH", "Take the units that read a file. May be repeated."),
		option("--units-that-include=PATH", "The same."),
		option("--config=PATH", "The unit file."),
		option("--feature=NAME=VALUE", "Set a feature flag. May be repeated."),
		option("--working-dir=PATH", "The folder to work in."),
		option("--download-dir=PATH", "Where modules run, .terragrunt-cache by default."),
		option("--no-stack-generate", "Do not generate the units of stack files first."),
	}
}

// unitOptions are the flags of commands on a unit or, with --all, on several.
func unitOptions() []string {
	return slices.Concat([]string{option("--all, -a", "Run on every unit below the working folder.")}, choiceOptions(), []string{
		option("--module=NAME", "The module of an environment file."),
		option("--source=URL", "The source of the module, in place of the unit's own."),
		option("--source-map=FROM=TO", "Replace the address of sources before the //. May be repeated."),
		option("--auth-provider-cmd=COMMAND", "The program that gives each unit its credentials."),
		option("--no-discovery-auth-provider-cmd", "Do not run it while units are looked for."),
		option("--iam-assume-role=ARN", "The role to assume."),
		option("--iam-assume-role-duration=SECONDS", "For how long."),
		option("--iam-assume-role-session-name=NAME", "The name of that session."),
		option("--iam-assume-role-web-identity-token=TOKEN", "The token to assume it with, or the absolute path of a file that holds it."),
		option("--no-deprecation-warnings", "Say nothing of deprecated parts of unit files."),
		option("--strict-mode", "Make everything deprecated an error."),
		option("--strict-control=NAME", "Make one deprecated thing an error. May be repeated."),
		option("--experiment=NAME", "An experiment of Terragrunt; what it brings is on anyway. May be repeated."),
	})
}

// turnOptions say how a run goes on.
func turnOptions() []string {
	return []string{
		option("--parallelism=N", "How many units run at once, 16 by default. -parallelism counts the calls of providers in one unit."),
		option("--provider-calls=N", "How many calls of providers run at once in all units together, which take turns. Without it there is no limit."),
		option("--share-provider=SOURCE", "Let units share processes of a provider though they run in different folders. May be repeated."),
		option("--non-interactive", "Do not ask; plan and apply are done."),
		option("--no-auto-approve", "Let apply and destroy of all units ask, also with --non-interactive."),
		option("--no-auto-init", "Install nothing that a unit needs."),
		option("--no-auto-retry", "Do not run a unit again that failed."),
		option("--no-hooks", "Run no hooks."),
		option("--fail-fast", "Start nothing more after a unit failed."),
		option("--queue-ignore-errors", "Run units though others that they need failed."),
		option("--queue-ignore-dag-order", "Run units in no order."),
		option("--filter-allow-destroy", "Let apply destroy what units manage that a filter by git finds removed."),
		option("--destroy-dependencies-check", "Name the units that need the one to be destroyed, and ask."),
		option("--use-mocks", "Let mock outputs come before planned ones."),
		option("--no-dependency-outputs", "Take the outputs of other units for unknown."),
		option("--strict", "Make inputs that a module does not declare errors."),
		option("--source-update", "Fetch modules again."),
		option("--provider-cache", "Share downloads of providers in a folder."),
		option("--provider-cache-dir=PATH", "That folder."),
		option("--no-auto-provider-cache-dir", "Share no downloads of providers."),
		option("--inputs-debug", "Write the inputs of each unit to a file beside it."),
	}
}

// reportOptions say what is told of a run, and where.
func reportOptions() []string {
	return []string{
		option("--out-dir=PATH", "With plan: save the plan of each unit in a file of its own; with apply: apply these."),
		option("--json-out-dir=PATH", "With plan: write the plan of each unit as JSON."),
		option("--html=FILE", "With plan: write the plan of all units as one page for a browser: a map, each unit's changes, where its inputs come from, and a search."),
		option("--report-file=PATH", "Write a report of the run, as CSV or JSON."),
		option("--report-format=FORMAT", "csv or json; the ending of the file by default."),
		option("--report-schema-file=PATH", "Write the schema of such reports."),
		option("--summary-disable", "Print no summary."),
		option("--summary-per-unit", "List the units in the summary, with how long they took."),
		option("--log-level=LEVEL", "stderr, stdout, error, warn, info, debug or trace."),
		option("--log-format=FORMAT", "bare, pretty, json or key-value."),
		option("--log-custom-format=FORMAT", "The form of lines on units, as in \"%time %prefix %msg\"."),
		option("--log-disable", "Without lines on units."),
		option("--log-show-abs-paths", "Units by their whole path in these lines."),
		option("--tf-forward-stdout", "What units print without the unit in front."),
		option("--profile-cpu=PATH", "Write a profile of the program. --profile-mem and --profile-goroutine write others, --profile-dir all into a folder."),
		option("--profile-mem=PATH", "What takes memory."),
		option("--profile-goroutine=PATH", "What runs at the end."),
		option("--profile-dir=PATH", "All of them."),
	}
}

func runUsage() string {
	return usageText("Usage: "+view.Program+" [global options] run [options] [--] COMMAND [ARGS]\n\n"+
		"  Runs a command on the unit in the working folder, or with --all on every\n  unit below it, in the order of their dependencies and in one process. What a\n  unit takes from others that were not applied yet is unknown in its plan; what\n  cannot be planned so is deferred, and listed with what it waits for.\n\n"+
		"  All units are checked before anything runs, as by \"estate check\". With --all,\n  plan -out=FILE saves the plan of all units, which show FILE shows and\n  run --all apply FILE applies.\n\n"+
		"  The options with two dashes come before the command or behind it; the variable\n  TG_NAME stands for --name. Other flags of Terragrunt are taken and do nothing.\n\n"+
		"  TG_TELEMETRY_TRACE_EXPORTER and TG_TELEMETRY_METRIC_EXPORTER (console,\n  otlpHttp, otlpGrpc) send traces and metrics by OpenTelemetry, in the trace that\n  TRACEPARENT names.",
		slices.Concat(unitOptions(), turnOptions(), reportOptions())...)()
}

func estateCheckUsage() string {
	return usageText("Usage: "+view.Program+" [global options] estate check [options]\n\n"+
		"  Checks all units below the working folder and what they take from each\n  other, without state, credentials or providers.",
		append([]string{option("--strict", "Make inputs that a module does not declare errors."), option("-json", "Messages as JSON.")}, choiceOptions()...)...)()
}
