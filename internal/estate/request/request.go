// Package request defines the request of a run over units: the command, its options, and the options
// of the units. The command line converts flags to a Request once. A run on other machines sends it
// to its workers, which parse no flags.
//
// Main type: Request. The one rule: everything here is plain data that JSON keeps.
package request

import (
	"slices"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/plan"
)

// A Request is a command over units, with all options.
type Request struct {
	Command string // plan, apply, destroy, validate or init
	Words   Words  `json:",omitzero"`
	// Dir is the working directory, with slashes, relative to the directory in which the program
	// was started.
	Dir      string
	NoExec   bool   `json:",omitzero"` // no program and no provider runs
	PlanFile string `json:",omitzero"` // file of the saved plan to apply; "" means none
	// FreshFor means that Operation.Plan.RefreshMaxAge was set, even if it is 0.
	FreshFor bool `json:",omitzero"`

	View      View
	Units     Units
	Operation Operation

	State    flag.State // the state, its lock and its journal
	JSON     bool       `json:",omitzero"` // events are written as JSON
	JSONInto string     `json:",omitzero"` // file for events; "" means none
}

// Words contains the words of a command as unit files read them, with functions such as
// get_terraform_cli_args. Nothing else uses them.
type Words struct {
	Args        []string `json:",omitzero"` // words after the command
	Added       []string `json:",omitzero"` // words that Terragrunt adds for a run of several units, for get_terraform_cli_args
	Environ     int      `json:",omitzero"` // number of the first Args, which come from TF_CLI_ARGS
	EnvironVars int      `json:",omitzero"` // number of variables and variable files among these
}

// View selects the messages that are shown.
type View struct {
	NoColor, CompactWarnings, Concise      bool   `json:",omitzero"`
	ConsolidateWarnings, ConsolidateErrors bool   `json:",omitzero"`
	Deprecation                            string `json:",omitzero"` // module:all, module:local or module:none
}

// Operation contains the options of the command that runs in each unit.
type Operation struct {
	Scope       flag.Scope        `json:",omitzero"`
	Vars        []workdir.VarFlag `json:",omitzero"`
	Input       bool              `json:",omitzero"` // prompts are allowed
	Parallelism int               `json:",omitzero"`
	// Plan contains the options of the plan, except those in Scope. Mode has several bits if the
	// flags contradict each other.
	Plan     plan.Options `json:",omitzero"`
	Reveal   bool         `json:",omitzero"` // show sensitive values
	Out      string       `json:",omitzero"` // path of the plan file; "" for none
	Detailed bool         `json:",omitzero"` // use the exit status to report changes
	Markdown Markdown     `json:",omitzero"`
	Origins  string       `json:",omitzero"` // path of the file with the origins of new values; "" for none
	Since    string       `json:",omitzero"` // the revision whose texts are shown beside the origins of new values; "" for none
	Approved bool         `json:",omitzero"` // apply without approval

	Rounds      int      `json:",omitzero"` // maximum number of plans and applies; 0 means 1
	RoundsAllow []string `json:",omitzero"` // actions that -auto-approve covers in rounds after the first

	Drift         bool   `json:",omitzero"` // the command drift, which has a list of accepted drift
	ShowAccepted  bool   `json:",omitzero"` // list the accepted drift
	NoTests       bool   `json:",omitzero"` // do not validate test files
	TestDirectory string `json:",omitzero"` // directory of the test files
	Query         bool   `json:",omitzero"` // validate query files; not over many units
}

// Markdown contains the options of the Markdown that is written beside the output.
type Markdown struct {
	File  string `json:",omitzero"` // path; "" for none
	Limit int    `json:",omitzero"` // size in bytes; 0 means no limit
}

// Units contains the options of units.
type Units struct {
	Selection
	Running
	Sourcing
	Logging
	Reporting
	SigningIn
}

// Selection selects units. Its zero value selects the unit in the working directory.
type Selection struct {
	Filtering
	FlagUse
	All, Graph                         bool     `json:",omitzero"`
	Config, Module, Working, GraphRoot string   `json:",omitzero"`
	Features                           []string `json:",omitzero"`
	FeaturesFrom                       string   `json:",omitzero"` // the variable that set Features; "" for the flag
	NoStackGenerate, Strict            bool     `json:",omitzero"`
}

// Filtering contains the options from which filters are made.
type Filtering struct {
	Affected, AllowDestroy       bool     `json:",omitzero"`
	NoFiltersFile, External      bool     `json:",omitzero"`
	FiltersFile, ExcludesFile    string   `json:",omitzero"`
	Boundary                     string   `json:",omitzero"` // the directory that filters do not leave
	Filters, IncludeDirs         []string `json:",omitzero"`
	ExcludeDirs                  []string `json:",omitzero"`
	ReadingFiles, IncludingFiles []string `json:",omitzero"`
}

// FlagUse records which flags and variables were given, and which strict controls are on.
type FlagUse struct {
	Experiments, StrictNames []string `json:",omitzero"`
	StrictMode               bool     `json:",omitzero"`
	AllExperiments           bool     `json:",omitzero"`
	Old                      []string `json:",omitzero"` // deprecated flags and variables, each after the name of its strict control
	Idle                     []string `json:",omitzero"` // flags and variables without effect, each with the reason
	Given                    []string `json:",omitzero"` // names of the flags on the command line that have an effect
}

// Running contains the options that control how units run.
type Running struct {
	Limits
	NonInteractive, NoAutoInit, NoAutoApprove bool   `json:",omitzero"`
	FailFast, IgnoreErrors, IgnoreOrder       bool   `json:",omitzero"`
	UseMocks, NoRetry, NoHooks, NoOutputs     bool   `json:",omitzero"`
	CheckDependents                           bool   `json:",omitzero"`
	Bootstrap, RequireBootstrap, KeepBucket   bool   `json:",omitzero"` // creation and settings of the buckets of states
	OutDir, JSONOutDir                        string `json:",omitzero"`
	Distributing
}

// Distributing contains the options for runs in other processes.
type Distributing struct {
	On, Blobs       string `json:",omitzero"`
	InPlace, Detach bool   `json:",omitzero"`
}

// Limits contains the limits of concurrency, and the providers whose processes units always share
// (Sharing) or never share (Owning).
type Limits struct {
	Parallelism, Calls int      `json:",omitzero"`
	Sharing, Owning    []string `json:",omitzero"`
}

// Sourcing contains the options about the sources of modules and providers.
type Sourcing struct {
	SourceUpdate, InputsDebug, ProviderCache, NoPluginCache bool     `json:",omitzero"`
	Source, DownloadDir, ProviderCacheDir                   string   `json:",omitzero"`
	SourceMap                                               []string `json:",omitzero"`
}

// Logging contains the options that control log lines and profiles.
type Logging struct {
	NoDeprecation, LogOff, AbsPaths, Forward bool         `json:",omitzero"`
	LogLevel, LogFormat, LogCustom           string       `json:",omitzero"`
	Profile                                  sys.Profiles `json:",omitzero"` // paths of profiles of the program
	ProfileDir                               string       `json:",omitzero"`
}

// Reporting contains the options about the end of a run.
type Reporting struct {
	SummaryOff, SummaryPerUnit         bool   `json:",omitzero"`
	AllChanges                         bool   `json:",omitzero"` // print all changes of a plan
	Report, ReportFormat, ReportSchema string `json:",omitzero"`
	HTML                               string `json:",omitzero"` // path of the HTML page of a plan
}

// SigningIn contains the options about credentials.
type SigningIn struct {
	AuthCommand, Role, RoleSession, WebToken string `json:",omitzero"`
	RoleSeconds                              int    `json:",omitzero"`
	NoDiscoveryAuth                          bool   `json:",omitzero"`
}

// Many reports whether several units are selected.
func (s *Selection) Many() bool {
	return s.All || s.Graph || s.Affected || len(s.Filters)+len(s.IncludeDirs)+len(s.ReadingFiles)+len(s.IncludingFiles) > 0 || s.FiltersFile != ""
}

// Strictly reports whether a strict control is on.
func (f *FlagUse) Strictly(control string) bool {
	return f.StrictMode || slices.Contains(f.StrictNames, control)
}

// Tries reports whether an experiment is on.
func (f *FlagUse) Tries(experiment string) bool {
	return f.AllExperiments || slices.Contains(f.Experiments, experiment)
}
