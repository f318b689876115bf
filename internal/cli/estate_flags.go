package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/sys"
)

// unitFlags are the flags of commands on units. Those with two dashes are meant:
// --parallelism counts units, -parallelism calls of providers.
type unitFlags struct {
	selection
	running
	sourcing
	telling
	reporting
	signingIn
}

// selection says which units. Its zero value means the one in the working folder.
type selection struct {
	filtering
	flagUse
	all, graph                         bool
	config, module, working, graphRoot string
	features                           []string
	noStackGenerate, strict            bool
}

// filtering is what filters are made of.
type filtering struct {
	affected, allowDestroy       bool
	noFiltersFile, external      bool
	filtersFile, excludesFile    string
	boundary                     string // the folder that filters do not leave
	filters, includeDirs         []string
	excludeDirs                  []string
	readingFiles, includingFiles []string
}

// flagUse is what is noted of the flags and variables in use, and how strict to be
// about them.
type flagUse struct {
	experiments, strictNames []string
	strictMode               bool
	allExperiments           bool
	old                      []string // deprecated ones, each with its control
	idle                     []string // those that do nothing, each with the reason
	given                    []string // the flags of the command line that do something, by name
}

// running says how the units run.
type running struct {
	limits
	nonInteractive, noAutoInit, noAutoApprove bool
	failFast, ignoreErrors, ignoreOrder       bool
	useMocks, noRetry, noHooks, noOutputs     bool
	checkDependents                           bool
	outDir, jsonOutDir                        string
}

// limits say how much goes on at once, and which providers serve several units.
type limits struct {
	parallelism, calls int
	sharing            []string
}

// sourcing says where modules and providers come from.
type sourcing struct {
	sourceUpdate, inputsDebug, providerCache, noPluginCache bool
	source, downloadDir, providerCacheDir                   string
	sourceMap                                               []string
}

// telling says what is told of it.
type telling struct {
	noDeprecation, logOff, absPaths, forward bool
	logLevel, logFormat, logCustom           string
	profile                                  sys.Profiles // where profiles of the program go
	profileDir                               string
}

// reporting is about the end of a run.
type reporting struct {
	summaryOff, summaryPerUnit         bool
	report, reportFormat, reportSchema string
	html                               string // the page of a plan
}

// signingIn is where credentials come from.
type signingIn struct {
	authCommand, role, roleSession, webToken string
	roleSeconds                              int
	noDiscoveryAuth                          bool
}

// A flagSpec is one flag: one of the pointers says what it takes.
type flagSpec struct {
	name  string
	on    *bool
	text  *string
	list  *[]string
	count *int
	least int    // of a count
	among string // what a text may be, separated by spaces; "" for anything
	noEnv bool   // no variable stands for it
}

// specs are the flags that do something.
func (f *unitFlags) specs() []flagSpec {
	return slices.Concat(f.selectionSpecs(), f.runningSpecs(), f.otherSpecs())
}

func (f *unitFlags) selectionSpecs() []flagSpec {
	return []flagSpec{
		{name: "all", on: &f.all}, {name: "a", on: &f.all, noEnv: true}, {name: "graph", on: &f.graph}, {name: "graph-root", text: &f.graphRoot},
		{name: "discovery-boundary", text: &f.boundary},
		{name: "filter", list: &f.filters}, {name: "filter-affected", on: &f.affected}, {name: "filter-allow-destroy", on: &f.allowDestroy},
		{name: "filters-file", text: &f.filtersFile}, {name: "no-filters-file", on: &f.noFiltersFile},
		{name: "queue-include-dir", list: &f.includeDirs}, {name: "queue-exclude-dir", list: &f.excludeDirs},
		{name: "queue-excludes-file", text: &f.excludesFile}, {name: "queue-include-external", on: &f.external},
		{name: "queue-include-units-reading", list: &f.readingFiles}, {name: "units-that-include", list: &f.includingFiles},
		{name: "config", text: &f.config}, {name: "module", text: &f.module, noEnv: true}, {name: "working-dir", text: &f.working},
		{name: "feature", list: &f.features}, {name: "no-stack-generate", on: &f.noStackGenerate}, {name: "strict", on: &f.strict, noEnv: true},
		{name: "experiment", list: &f.experiments}, {name: "strict-control", list: &f.strictNames}, {name: "strict-mode", on: &f.strictMode},
	}
}

func (f *unitFlags) runningSpecs() []flagSpec {
	return []flagSpec{
		{name: "non-interactive", on: &f.nonInteractive}, {name: "no-auto-init", on: &f.noAutoInit}, {name: "no-auto-approve", on: &f.noAutoApprove},
		{name: "no-auto-retry", on: &f.noRetry}, {name: "fail-fast", on: &f.failFast}, {name: "queue-ignore-errors", on: &f.ignoreErrors},
		{name: "queue-ignore-dag-order", on: &f.ignoreOrder}, {name: "use-mocks", on: &f.useMocks}, {name: "no-hooks", on: &f.noHooks},
		{name: "no-dependency-outputs", on: &f.noOutputs}, {name: "destroy-dependencies-check", on: &f.checkDependents},
		{name: "parallelism", count: &f.parallelism, least: 1},
		{name: "provider-calls", count: &f.calls, least: 1}, {name: "share-provider", list: &f.sharing},
		{name: "out-dir", text: &f.outDir}, {name: "json-out-dir", text: &f.jsonOutDir},
	}
}

func (f *unitFlags) otherSpecs() []flagSpec {
	return []flagSpec{
		{name: "source", text: &f.source}, {name: "source-map", list: &f.sourceMap}, {name: "source-update", on: &f.sourceUpdate},
		{name: "download-dir", text: &f.downloadDir}, {name: "inputs-debug", on: &f.inputsDebug},
		{name: "provider-cache", on: &f.providerCache}, {name: "provider-cache-dir", text: &f.providerCacheDir},
		{name: "no-auto-provider-cache-dir", on: &f.noPluginCache},
		{name: "no-deprecation-warnings", on: &f.noDeprecation}, {name: "log-disable", on: &f.logOff},
		{name: "log-level", text: &f.logLevel, among: "stderr stdout error warn info debug trace"},
		{name: "log-format", text: &f.logFormat, among: "bare pretty json key-value"}, {name: "log-custom-format", text: &f.logCustom},
		{name: "log-show-abs-paths", on: &f.absPaths}, {name: "tf-forward-stdout", on: &f.forward},
		{name: "profile-cpu", text: &f.profile.CPU}, {name: "profile-mem", text: &f.profile.Memory},
		{name: "profile-goroutine", text: &f.profile.Goroutines}, {name: "profile-dir", text: &f.profileDir},
		{name: "summary-disable", on: &f.summaryOff}, {name: "summary-per-unit", on: &f.summaryPerUnit},
		{name: "report-file", text: &f.report}, {name: "report-format", text: &f.reportFormat, among: "csv json"},
		{name: "report-schema-file", text: &f.reportSchema}, {name: "html", text: &f.html, noEnv: true},
		{name: "auth-provider-cmd", text: &f.authCommand}, {name: "no-discovery-auth-provider-cmd", on: &f.noDiscoveryAuth},
		{name: "iam-assume-role", text: &f.role}, {name: "iam-assume-role-session-name", text: &f.roleSession},
		{name: "iam-assume-role-web-identity-token", text: &f.webToken}, {name: "iam-assume-role-duration", count: &f.roleSeconds},
	}
}

// takeUnitFlags takes the flags of units out of the words of a command. Words
// behind a bare -- are the command's own.
func takeUnitFlags(args []string, env sys.Env) (*unitFlags, []string, error) {
	f := &unitFlags{}
	specs := map[string]*flagSpec{}
	all := f.specs()
	for i := range all {
		specs[all[i].name] = &all[i]
	}
	idle := map[string]idleFlag{}
	for _, x := range idleFlags() {
		idle[x.name] = x
	}
	if err := f.fromEnv(all, env); err != nil {
		return nil, nil, err
	}
	if err := f.idleFromEnv(env); err != nil {
		return nil, nil, err
	}
	var rest []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		name, ok := strings.CutPrefix(a, "--")
		if a == "-a" {
			name, ok = "a", true
		}
		name, value, has := strings.Cut(name, "=")
		nothing, isIdle := idle[name]
		spec := specs[name]
		if !ok || spec == nil && !isIdle {
			rest = append(rest, a)
			continue
		}
		if !has && (isIdle && nothing.takes || spec != nil && spec.on == nil) {
			if i++; i == len(args) {
				return nil, nil, fmt.Errorf("flag needs an argument: --%s", name)
			}
			value, has = args[i], true
		}
		if strings.Contains(" "+strictControls+" ", " "+name+" ") { // the control has the flag's name
			f.old = append(f.old, name+" --"+name)
		}
		if isIdle {
			if err := f.noteIdle(nothing, "--"+name, value, has); err != nil {
				return nil, nil, err
			}
			continue
		}
		if err := spec.set(value, has, !slices.Contains(f.given, name)); err != nil {
			return nil, nil, fmt.Errorf("invalid value %q for flag --%s: %w", value, name, err)
		}
		f.given = append(f.given, name)
	}
	return f, rest, f.check()
}

// set sets a flag; first says that a list begins anew.
func (s *flagSpec) set(value string, has, first bool) error {
	switch {
	case s.on != nil:
		b := true
		var err error
		if has {
			b, err = strconv.ParseBool(value)
		}
		if err != nil {
			return fmt.Errorf("it must be true or false")
		}
		*s.on = b
	case s.list != nil:
		if first {
			*s.list = nil
		}
		*s.list = append(*s.list, value)
	case s.count != nil:
		n, err := strconv.Atoi(value)
		if err != nil || n < s.least {
			return fmt.Errorf("it must be a whole number from %d on", s.least)
		}
		*s.count = n
	default:
		if s.among != "" && !slices.Contains(strings.Fields(s.among), value) {
			return fmt.Errorf("it must be one of %s", strings.Join(strings.Fields(s.among), ", "))
		}
		*s.text = value
	}
	return nil
}

// fromEnv reads the variables that stand for flags: TG_NAME, or TERRAGRUNT_NAME of
// old.
func (f *unitFlags) fromEnv(specs []flagSpec, env sys.Env) error {
	for i := range specs {
		s := &specs[i]
		if s.noEnv {
			continue
		}
		v, name := flagVariable(s.name, env)
		if v == "" {
			continue
		}
		if strings.HasPrefix(name, "TERRAGRUNT_") {
			f.old = append(f.old, "terragrunt-prefix-env-vars "+name)
		}
		values := []string{v}
		if s.list != nil {
			values = strings.Split(v, ",")
		}
		for i, v := range values {
			if err := s.set(v, true, i == 0); err != nil {
				return fmt.Errorf("invalid value %q for the environment variable %s: %w", v, name, err)
			}
		}
	}
	return nil
}

// check reports what makes no sense.
func (f *unitFlags) check() error {
	for _, pair := range f.sourceMap {
		if from, _, ok := strings.Cut(pair, "="); !ok || from == "" {
			return fmt.Errorf("invalid value %q for flag --source-map: it must be FROM=TO", pair)
		}
	}
	for _, name := range f.experiments {
		if !slices.Contains(strings.Fields(experiments), name) {
			return fmt.Errorf("invalid value %q for flag --experiment: there is no such experiment; there are %s", name, strings.Join(strings.Fields(experiments), ", "))
		}
	}
	if f.boundary != "" && !f.tries("bounded-discovery") {
		return errors.New("--discovery-boundary requires the experiment bounded-discovery to be enabled: add --experiment bounded-discovery")
	}
	for _, name := range f.strictNames {
		if !slices.Contains(strings.Fields(strictControls), name) {
			return fmt.Errorf("invalid value %q for flag --strict-control: there is no such control; there are %s", name, strings.Join(strings.Fields(strictControls), ", "))
		}
	}
	for _, old := range f.old {
		if control, what, _ := strings.Cut(old, " "); f.strictly(control) || f.strictly("deprecated-flags") {
			return fmt.Errorf("%s is deprecated, which the strict control %s makes an error", what, control)
		}
	}
	_, err := newUnitLog(f, "", nil)
	return err
}

// strictly reports whether a strict control is on.
func (f *flagUse) strictly(control string) bool {
	return f.strictMode || slices.Contains(f.strictNames, control)
}

// experiments and strictControls are the names that Terragrunt 1.1.3 knows.
const (
	experiments = "azure-backend block-iteration bounded-discovery browse-tui catalog-format deep-merge dependency-fetch-output-from-state " +
		"hook-context-env iac-engine mutable-generate oci optional-dependency-outputs optional-hooks otel-logs profiling slow-task-reporting symlinks version-attribute " +
		"auto-provider-cache-dir cas catalog-redesign cli-redesign dag-queue-display filter-flag mark-many-as-read opt-out-auth report runner-pool stack-dependencies stacks"
	strictControls = "bare-include cli-redesign default-commands deprecated-commands deprecated-configs deprecated-env-vars deprecated-flags deprecated-hidden-flag " +
		"disable-command-validation disable-dependent-modules fast-copy legacy-gcs-public-prefix legacy-internal-tflint legacy-logs no-destroy-dependencies-check " +
		"optional-hooks queue-exclude-external queue-strict-include root-terragrunt-hcl terragrunt-prefix-env-vars terragrunt-prefix-flags units-that-include"
)

// many reports whether the command is about several units.
func (f *selection) many() bool {
	return f.all || f.graph || f.affected || len(f.filters)+len(f.includeDirs)+len(f.readingFiles)+len(f.includingFiles) > 0 || f.filtersFile != ""
}

// featureMap makes a map of --feature flags.
func (f *selection) featureMap() (map[string]string, error) { return pairs("feature", f.features) }

// pairs makes a map of the values of a flag.
func pairs(flag string, list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, x := range list {
		name, value, ok := strings.Cut(x, "=")
		if !ok {
			return nil, fmt.Errorf("invalid value %q for flag --%s: it must be name=value", x, flag)
		}
		out[name] = value
	}
	return out, nil
}

// plainFolder reports whether the program is called as a tool that knows no units.
func (s *session) plainFolder() bool {
	as := s.Env.Get("TERRACE_AS")
	if as == "" && len(s.Args) > 0 {
		as = strings.TrimSuffix(filepath.Base(s.Args[0]), ".exe")
	}
	return as == "tofu" || as == "terraform"
}
