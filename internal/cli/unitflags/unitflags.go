// Package unitflags defines the flags of commands on units and their environment variables. It
// includes the flags of Terragrunt that have no effect here.
//
// Main type: Flags. The one rule: these flags need two dashes, and the caller calls Settle
// once all are set.
package unitflags

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitlog"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/request"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Flags are the flags of commands on units. They need two dashes: --parallelism limits units,
// and -parallelism limits calls of providers.
type Flags struct {
	request.Units
	Following *remote.Job // the job of a run that has already begun; nil means that the command begins one. Not a flag
}

// Parts of Flags, for functions that need no more.
type (
	Selection = request.Selection
	Filtering = request.Filtering
	FlagUse   = request.FlagUse
	Sourcing  = request.Sourcing
	SigningIn = request.SigningIn
)

// Declare returns the flags, in the order in which the help of run lists them.
func (f *Flags) Declare() flag.Flags {
	return slices.Concat(flag.Flags{f.flag(flag.Bool(&f.All, "all", "Run on every unit below the working directory.").Or("a"))},
		f.choosing(), f.aboutUnit(), f.aboutRun(), f.aboutReports(), f.unusedFlags())
}

// flag makes x a flag of units: it needs two dashes, may follow arguments, has environment
// variables, and is recorded if given.
func (f *Flags) flag(x flag.Flag) flag.Flag {
	x = x.WithTwoDashes().Variables(VariablesOf(x.Name)...)
	return x.Then(func(s flag.Setting) {
		switch {
		case !s.Variable:
			f.noteOld(x.Name)
			f.Given = append(f.Given, x.Name)
		case strings.HasPrefix(s.As, "TERRAGRUNT_"):
			f.Old = append(f.Old, "terragrunt-prefix-env-vars "+s.As)
		}
	})
}

// noEnv is flag for a flag without environment variables.
func (f *Flags) noEnv(x flag.Flag) flag.Flag {
	x = f.flag(x)
	x.Env = nil
	return x
}

// noteOld records a flag as deprecated if a strict control has its name.
func (f *Flags) noteOld(name string) {
	if isControl(name) {
		f.Old = append(f.Old, name+" --"+name)
	}
}

func (f *Flags) each(all ...flag.Flag) flag.Flags {
	for i := range all {
		all[i] = f.flag(all[i])
	}
	return all
}

// choosing returns the flags that select units.
func (f *Flags) choosing() flag.Flags {
	return f.each(
		flag.List(&f.Filters, "filter", "QUERY", "Select the units that match a query. May be repeated.").Completes(flag.UnitNames),
		flag.Bool(&f.Affected, "filter-affected", "Select the units that differ from the main branch of the repository."),
		flag.Func(f.affectedBy, "affected", "BASE", "Select the units whose values differ from a commit, branch or tag, as --filter affected=BASE does. May be repeated."),
		flag.Text(&f.FiltersFile, "filters-file", "PATH", "A file with one query a line. Defaults to .terragrunt-filters.").Completes(flag.Files),
		flag.Bool(&f.NoFiltersFile, "no-filters-file", "Do not read .terragrunt-filters."),
		flag.Bool(&f.Graph, "graph", "Select the unit in the working directory and all units that depend on it."),
		flag.Text(&f.GraphRoot, "graph-root", "PATH", "With --graph: the directory in which dependent units are looked for. Defaults to the git repository.").Completes(flag.Folders),
		flag.Text(&f.Boundary, "discovery-boundary", "PATH", "The directory that filters do not leave when they follow dependencies, with --experiment bounded-discovery.").Completes(flag.Folders),
		flag.List(&f.IncludeDirs, "queue-include-dir", "PATH", "Select the units in a directory. May be repeated.").Completes(flag.Folders),
		flag.List(&f.ExcludeDirs, "queue-exclude-dir", "PATH", "Leave out the units in a directory. May be repeated.").Completes(flag.Folders),
		flag.Text(&f.ExcludesFile, "queue-excludes-file", "PATH", "A file with one directory to leave out a line. Defaults to .terragrunt-excludes.").Completes(flag.Files),
		flag.Bool(&f.External, "queue-include-external", "Also select units outside of the working directory that others depend on."),
		flag.List(&f.ReadingFiles, "queue-include-units-reading", "PATH", "Select the units that include or read a file. May be repeated.").Completes(flag.Files),
		flag.List(&f.IncludingFiles, "units-that-include", "PATH", "The same as --queue-include-units-reading.").Completes(flag.Files),
		flag.Text(&f.Config, "config", "PATH", "The unit file. Defaults to terragrunt.hcl in the working directory.").Completes(flag.Files),
		flag.List(&f.Features, "feature", "NAME=VALUE", "Set a feature flag. May be repeated.").Then(func(s flag.Setting) {
			f.FeaturesFrom = ""
			if s.Variable {
				f.FeaturesFrom = s.As
			}
		}),
		flag.Text(&f.Working, "working-dir", "PATH", "The directory to work in.").IsWorkingDir(),
		flag.Text(&f.DownloadDir, "download-dir", "PATH", "The directory for working copies of modules. Defaults to .terragrunt-cache.").Completes(flag.Folders),
		flag.Bool(&f.NoStackGenerate, "no-stack-generate", "Do not generate the units of stack files before the command."),
	)
}

// affectedBy adds the filter of --affected.
func (f *Flags) affectedBy(base string) error {
	if strings.Contains(base, "..") {
		return errors.New("it takes one commit, branch or tag, which is compared with the working tree")
	}
	f.Filters = append(f.Filters, "affected="+base)
	return nil
}

// aboutUnit returns the flags about the content of units.
func (f *Flags) aboutUnit() flag.Flags {
	module := f.noEnv(flag.Text(&f.Module, "module", "NAME", "The module of an environment file that the command is about."))
	return append(flag.Flags{module}, f.each(
		flag.Text(&f.Source, "source", "URL", "The source of the module, instead of the one in the unit file."),
		flag.List(&f.SourceMap, "source-map", "FROM=TO", "Replace the part of source addresses before the //. May be repeated."),
		flag.Text(&f.AuthCommand, "auth-provider-cmd", "COMMAND", "A program that prints the credentials for each unit."),
		flag.Bool(&f.NoDiscoveryAuth, "no-discovery-auth-provider-cmd", "Do not run that program during discovery."),
		flag.Text(&f.Role, "iam-assume-role", "ARN", "The IAM role to assume."),
		flag.AtLeast(&f.RoleSeconds, 0, "iam-assume-role-duration", "SECONDS", "How long the session of the role lasts."),
		flag.Text(&f.RoleSession, "iam-assume-role-session-name", "NAME", "The name of the session of the role."),
		flag.Text(&f.WebToken, "iam-assume-role-web-identity-token", "TOKEN", "The web identity token to assume the role with, or the absolute path of a file that holds it."),
		flag.Bool(&f.NoDeprecation, "no-deprecation-warnings", "Do not warn about deprecated parts of unit files."),
		flag.Bool(&f.StrictMode, "strict-mode", "Treat all deprecated features as errors."),
		flag.List(&f.StrictNames, "strict-control", "NAME", "Treat one deprecated feature as an error. May be repeated."),
		flag.List(&f.Experiments, "experiment", "NAME", "An experiment of Terragrunt. What it enables is always on here. May be repeated."),
	)...)
}

// aboutRun returns the flags that control a run.
func (f *Flags) aboutRun() flag.Flags {
	out := f.each(
		flag.AtLeast(&f.Parallelism, 1, "parallelism", "N", "How many units run at once. Defaults to 16. (-parallelism limits the provider calls within one unit.)"),
		flag.AtLeast(&f.Calls, 1, "provider-calls", "N", "How many provider calls run at once in all units together. There is no limit by default."),
		flag.List(&f.Sharing, "share-provider", "SOURCE", "Let units always share the processes of a provider, also if an argument can be a path in the directory of a unit. May be repeated."),
		flag.List(&f.Owning, "own-provider", "SOURCE", "Give each unit its own processes of a provider. May be repeated."),
		flag.Bool(&f.NonInteractive, "non-interactive", "Ask nothing, and assume yes."),
		flag.Bool(&f.NoAutoApprove, "no-auto-approve", "Ask before apply and destroy over several units, also with --non-interactive."),
		flag.Bool(&f.NoAutoInit, "no-auto-init", "Do not run init for units that need it."),
		flag.Bool(&f.NoRetry, "no-auto-retry", "Do not retry units that failed."),
		flag.Bool(&f.NoHooks, "no-hooks", "Run no hooks."),
		flag.Bool(&f.FailFast, "fail-fast", "Start no more units after one has failed."),
		flag.Bool(&f.IgnoreErrors, "queue-ignore-errors", "Run units even if units that they depend on failed."),
		flag.Bool(&f.IgnoreOrder, "queue-ignore-dag-order", "Ignore dependencies between units when ordering the run."),
		flag.Bool(&f.AllowDestroy, "filter-allow-destroy", "Let apply destroy the resources of units that a git filter finds to be removed."),
		flag.Bool(&f.CheckDependents, "destroy-dependencies-check", "Before a unit is destroyed, list the units that depend on it, and ask."),
		flag.Bool(&f.Bootstrap, "backend-bootstrap", "Create the buckets and tables that remote_state describes before they are used."),
		flag.Bool(&f.RequireBootstrap, "backend-require-bootstrap", "Fail if a bucket does not exist, instead of creating it."),
		flag.Bool(&f.KeepBucket, "disable-bucket-update", "Do not change the settings of buckets that exist."),
		flag.Bool(&f.UseMocks, "use-mocks", "Prefer mock_outputs over planned outputs."),
		flag.Bool(&f.NoOutputs, "no-dependency-outputs", "Treat the outputs of other units as unknown."))
	out = append(out,
		f.noEnv(flag.Text(&f.On, "on", "URL", "With --all: run the units on the workers of a Temporal server, temporal://HOST:PORT/NAMESPACE/QUEUE, or temporal for the one of the CLI configuration.")),
		f.noEnv(flag.Text(&f.Blobs, "blobs", "PLACE", "With --on: where the files and plans for the workers are kept: a directory, or KIND:ARGUMENT=VALUE,… of a backend.").Completes(flag.Folders)),
		f.noEnv(flag.Bool(&f.InPlace, "in-place", "With --on: the workers have the files under the same path, so that none are copied.")),
		f.noEnv(flag.Bool(&f.Detach, "detach", "With --on: start the run, print its ID, and do not wait for it.")))
	out = append(out, f.noEnv(flag.Bool(&f.Strict, "strict", "Treat inputs that the module does not declare as errors.")))
	return append(out, f.each(
		flag.Bool(&f.SourceUpdate, "source-update", "Download modules again."),
		flag.Bool(&f.ProviderCache, "provider-cache", "Share provider downloads between units, in one directory."),
		flag.Text(&f.ProviderCacheDir, "provider-cache-dir", "PATH", "The directory for shared provider downloads.").Completes(flag.Folders),
		flag.Bool(&f.NoPluginCache, "no-auto-provider-cache-dir", "Do not share provider downloads between units."),
		flag.Bool(&f.InputsDebug, "inputs-debug", "Write the inputs of each unit to a file in the directory of the unit."),
	)...)
}

// aboutReports returns the flags about reports and logs.
func (f *Flags) aboutReports() flag.Flags {
	page := f.noEnv(flag.Text(&f.HTML, "html", "FILE", "With plan: write the plan of all units as one page for a browser: a map, each unit's changes, where its inputs come from, and a search.").Completes(flag.Files))
	out := f.each(
		flag.Text(&f.OutDir, "out-dir", "PATH", "With plan: save the plan of each unit to a file in this directory. With apply: apply these plans.").Completes(flag.Folders),
		flag.Text(&f.JSONOutDir, "json-out-dir", "PATH", "With plan: write the plan of each unit to this directory as JSON.").Completes(flag.Folders))
	all := f.noEnv(flag.Bool(&f.AllChanges, "all-changes", "Print all changes of a plan, however many lines they take. By default, a long plan is cut, and what is left out is counted; the question before an apply shows everything."))
	return append(append(out, page, all), f.each(
		flag.Text(&f.Report, "report-file", "PATH", "Write a report of the run to a file, as CSV or JSON.").Completes(flag.Files),
		flag.Text(&f.ReportFormat, "report-format", "FORMAT", "The format of the report, csv or json. Defaults to the extension of the file.").Among("csv", "json"),
		flag.Text(&f.ReportSchema, "report-schema-file", "PATH", "Write the JSON Schema of reports to a file.").Completes(flag.Files),
		flag.Bool(&f.SummaryOff, "summary-disable", "Do not print a summary at the end."),
		flag.Bool(&f.SummaryPerUnit, "summary-per-unit", "List the units in the summary, with how long they took."),
		flag.Text(&f.LogLevel, "log-level", "LEVEL", "Which log lines are printed: stderr, stdout, error, warn, info, debug or trace.").Among(unitlog.Levels()...),
		flag.Text(&f.LogFormat, "log-format", "FORMAT", "The format of log lines: bare, pretty, json or key-value.").Among("bare", "pretty", "json", "key-value"),
		flag.Text(&f.LogCustom, "log-custom-format", "FORMAT", "A format of your own for log lines, such as \"%time %prefix %msg\"."),
		flag.Bool(&f.LogOff, "log-disable", "Print no log lines."),
		flag.Bool(&f.AbsPaths, "log-show-abs-paths", "Print absolute paths in log lines."),
		flag.Bool(&f.Forward, "tf-forward-stdout", "Print the output of units without the name of the unit before each line."),
		flag.Text(&f.Profile.CPU, "profile-cpu", "PATH", "Write a CPU profile of the program, for go tool pprof.").Completes(flag.Files),
		flag.Text(&f.Profile.Memory, "profile-mem", "PATH", "Write a memory profile.").Completes(flag.Files),
		flag.Text(&f.Profile.Goroutines, "profile-goroutine", "PATH", "Write a goroutine profile.").Completes(flag.Files),
		flag.Text(&f.ProfileDir, "profile-dir", "PATH", "Write all profiles into this directory.").Completes(flag.Folders),
	)...)
}

// DeclareFor returns the flags for a command about units themselves. Its help shows the flags
// that select units and, with whole, those about the content of units.
func (f *Flags) DeclareFor(whole bool) flag.Flags {
	all := f.Declare()
	shown := f.choosing()
	if whole {
		shown = append(append(shown, f.aboutUnit()...), flag.Flag{Name: "all"})
	}
	for i := range all {
		if !slices.ContainsFunc(shown, func(x flag.Flag) bool { return x.Name == all[i].Name }) {
			all[i].Hidden = true
		}
	}
	return all
}

// Under adds the variables TG_WORD_NAME to the flags. They have precedence over TG_NAME.
func Under(word string, fs flag.Flags) flag.Flags {
	for i := range fs {
		if env := fs[i].Env; len(env) > 0 && strings.HasPrefix(env[0], "TG_") {
			fs[i].Env = append([]string{"TG_" + word + "_" + strings.TrimPrefix(env[0], "TG_")}, env...)
		}
	}
	return fs
}

// Take removes the flags of units from the words of a command, sets them, and returns the
// other words. It ignores words after --.
func Take(args []string, env sys.Env) (*Flags, []string, error) {
	f := &Flags{}
	all := f.Declare()
	if err := all.FromEnv(env); err != nil {
		return nil, nil, err
	}
	rest, err := all.Take(args, false)
	if err != nil {
		return nil, nil, err
	}
	return f, rest, f.Settle(env)
}

// Settle checks the flags once all are set. It returns an error for an invalid value or
// combination.
func (f *Flags) Settle(env sys.Env) error {
	for _, v := range env {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, OldTelemetry) {
			f.Old = append(f.Old, "terragrunt-prefix-env-vars "+name)
		}
	}
	return f.check()
}

// TakeMachine sets the options about this machine that are not set yet from environment
// variables. It is for a request of another machine, whose environment is part of env.
func (f *Flags) TakeMachine(env sys.Env) error {
	own := &Flags{}
	if err := own.Declare().FromEnv(env); err != nil {
		return err
	}
	f.ProviderCache, f.NoPluginCache = f.ProviderCache || own.ProviderCache, f.NoPluginCache || own.NoPluginCache
	f.ProviderCacheDir, f.DownloadDir = cmp.Or(f.ProviderCacheDir, own.ProviderCacheDir), cmp.Or(f.DownloadDir, own.DownloadDir)
	f.SigningIn = cmp.Or(f.SigningIn, own.SigningIn)
	return nil
}

func (f *Flags) check() error {
	for _, pair := range f.SourceMap {
		if from, _, ok := strings.Cut(pair, "="); !ok || from == "" {
			return fmt.Errorf("invalid value %q for flag --source-map: it must be FROM=TO", pair)
		}
	}
	for _, name := range f.Experiments {
		if !slices.Contains(strings.Fields(experiments), name) {
			return fmt.Errorf("invalid value %q for flag --experiment: there is no such experiment; there are %s", name, strings.Join(strings.Fields(experiments), ", "))
		}
	}
	if f.Boundary != "" && !f.Tries("bounded-discovery") {
		return errors.New("--discovery-boundary requires the experiment bounded-discovery to be enabled: add --experiment bounded-discovery")
	}
	for _, name := range f.StrictNames {
		if !isControl(name) {
			var names []string
			for _, s := range StrictControls() {
				if !s.Completed {
					names = append(names, s.Name)
				}
			}
			return fmt.Errorf("invalid value %q for flag --strict-control: there is no such control; there are %s", name, strings.Join(names, ", "))
		}
	}
	for _, old := range f.Old {
		if control, what, _ := strings.Cut(old, " "); f.Strictly(control) || f.Strictly("deprecated-flags") {
			return fmt.Errorf("%s is deprecated, which the strict control %s makes an error", what, control)
		}
	}
	_, err := unitlog.New(f.Log(), "", nil)
	return err
}

// Log returns the settings of log lines.
func (f *Flags) Log() unitlog.Settings {
	return unitlog.Settings{Level: f.LogLevel, Format: f.LogFormat, Custom: f.LogCustom, Off: f.LogOff, AbsPaths: f.AbsPaths, Forward: f.Forward}
}

// Names of the experiments of Terragrunt 1.1.3.
const experiments = "azure-backend block-iteration bounded-discovery browse-tui catalog-format deep-merge dependency-fetch-output-from-state " +
	"hook-context-env iac-engine mutable-generate oci optional-dependency-outputs optional-hooks otel-logs profiling slow-task-reporting symlinks version-attribute " +
	"auto-provider-cache-dir cas catalog-redesign cli-redesign dag-queue-display filter-flag mark-many-as-read opt-out-auth report runner-pool stack-dependencies stacks"

// FeatureMap returns the values of --feature by name.
func (f *Flags) FeatureMap() (map[string]string, error) { return Pairs("feature", f.Features) }

// Pairs parses NAME=VALUE texts of a flag into a map.
func Pairs(flag string, list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, x := range list {
		name, value, ok := strings.Cut(x, "=")
		if !ok {
			return nil, fmt.Errorf("invalid value for flag --%s: it must be name=value", flag) // omits the text, which may be a secret from the environment
		}
		out[name] = value
	}
	return out, nil
}

// PlainFolder reports whether the program emulates a tool without units: tofu or terraform.
func PlainFolder(c *command.Call) bool {
	as := c.CalledAs()
	return as == "tofu" || as == "terraform"
}
