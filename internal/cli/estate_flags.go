package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/sys"
)

// unitFlags are the flags of commands on units. Those with two dashes are meant:
// --parallelism counts units, -parallelism calls of providers.
type unitFlags struct {
	all, graph                                   bool
	nonInteractive, noAutoInit, noAutoApprove    bool
	failFast, ignoreErrors, ignoreOrder          bool
	useMocks, strict, noDeprecation              bool
	summaryOff, summaryPerUnit                   bool
	parallelism                                  int
	config, module, source, downloadDir, working string
	report, reportFormat, reportSchema           string
	filters, features                            []string
}

// bools and texts are where the flags go.
func (f *unitFlags) bools() map[string]*bool {
	return map[string]*bool{
		"all": &f.all, "a": &f.all, "graph": &f.graph, "non-interactive": &f.nonInteractive, "no-auto-init": &f.noAutoInit,
		"no-auto-approve": &f.noAutoApprove, "fail-fast": &f.failFast, "queue-ignore-errors": &f.ignoreErrors,
		"queue-ignore-dag-order": &f.ignoreOrder, "use-mocks": &f.useMocks, "strict": &f.strict,
		"no-deprecation-warnings": &f.noDeprecation, "summary-disable": &f.summaryOff, "summary-per-unit": &f.summaryPerUnit,
	}
}

func (f *unitFlags) texts() map[string]*string {
	return map[string]*string{
		"config": &f.config, "module": &f.module, "source": &f.source, "download-dir": &f.downloadDir, "working-dir": &f.working,
		"report-file": &f.report, "report-format": &f.reportFormat, "report-schema-file": &f.reportSchema,
	}
}

func (f *unitFlags) lists() map[string]*[]string {
	return map[string]*[]string{"filter": &f.filters, "feature": &f.features}
}

// silent are flags of Terragrunt that change nothing here: how it logs, and how it
// saves work that is not done in one process.
var silent = map[string]bool{
	"log-disable": true, "no-tips": true, "no-auto-provider-cache-dir": true, "use-partial-parse-config-cache": true,
	"tf-forward-stdout": true, "provider-cache": true, "no-stack-generate": true, "queue-exclude-external": true, "no-cas": true,
	"log-level": false, "log-format": false, "tf-path": false, "provider-cache-dir": false, "no-tip": false,
}

// refused are flags of Terragrunt that would change what happens, and that this
// version does not have.
var refused = map[string]string{
	"graph-root": "", "source-map": "", "source-update": "", "inputs-debug": "", "no-auto-retry": "", "queue-include-dir": "use --filter",
	"queue-exclude-dir": "use --filter", "queue-excludes-file": "use --filter", "queue-include-units-reading": "use --filter reading=…",
	"queue-include-external": "", "filter-affected": "use --filter", "filters-file": "use --filter", "out-dir": "", "json-out-dir": "", "backend-bootstrap": "",
	"backend-require-bootstrap": "", "auth-provider-cmd": "", "iam-assume-role": "", "no-hooks": "", "no-dependency-outputs": "", "html": "",
	"provider-calls": "use -parallelism",
}

// takeUnitFlags takes the flags of units out of the words of a command. Words
// behind a bare -- are the command's own.
func takeUnitFlags(args []string, env sys.Env) (*unitFlags, []string, error) {
	f := &unitFlags{}
	if err := f.fromEnv(env); err != nil {
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
		if !ok {
			rest = append(rest, a)
			continue
		}
		name, value, has := strings.Cut(name, "=")
		if bare, known := silent[name]; known {
			if !bare && !has {
				i++
			}
			continue
		}
		if hint, known := refused[name]; known {
			return nil, nil, notHere("--"+name, hint)
		}
		if !f.knows(name) {
			rest = append(rest, a)
			continue
		}
		if !has && f.bools()[name] == nil {
			if i++; i == len(args) {
				return nil, nil, fmt.Errorf("flag needs an argument: --%s", name)
			}
			value, has = args[i], true
		}
		if err := f.set(name, value, has); err != nil {
			return nil, nil, err
		}
	}
	return f, rest, nil
}

func notHere(what, hint string) error {
	if hint != "" {
		return fmt.Errorf("%s is not part of this version: %s", what, hint)
	}
	return fmt.Errorf("%s is not part of this version", what)
}

func (f *unitFlags) knows(name string) bool {
	return name == "parallelism" || f.bools()[name] != nil || f.texts()[name] != nil || f.lists()[name] != nil
}

func (f *unitFlags) set(name, value string, has bool) error {
	if p := f.bools()[name]; p != nil {
		b, err := boolOf(name, value, has)
		*p = b
		return err
	}
	if p := f.texts()[name]; p != nil {
		*p = value
		return nil
	}
	if p := f.lists()[name]; p != nil {
		*p = append(*p, value)
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return fmt.Errorf("invalid value %q for flag --parallelism: it must be a whole number from 1 on", value)
	}
	f.parallelism = n
	return nil
}

// fromEnv reads the TG_ variables that stand for flags.
func (f *unitFlags) fromEnv(env sys.Env) error {
	read := func(name string) (string, bool) {
		v := env.Get("TG_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
		return v, v != ""
	}
	for name := range f.bools() {
		if v, ok := read(name); ok && name != "a" && name != "strict" {
			if err := f.set(name, v, true); err != nil {
				return err
			}
		}
	}
	for name := range f.texts() {
		if v, ok := read(name); ok && name != "module" {
			if err := f.set(name, v, true); err != nil {
				return err
			}
		}
	}
	for name, into := range f.lists() {
		if v, ok := read(name); ok {
			*into = append(*into, strings.Split(v, ",")...)
		}
	}
	if v, ok := read("parallelism"); ok {
		return f.set("parallelism", v, true)
	}
	return nil
}

// featureMap makes a map of --feature flags.
func (f *unitFlags) featureMap() (map[string]string, error) {
	out := map[string]string{}
	for _, x := range f.features {
		name, value, ok := strings.Cut(x, "=")
		if !ok {
			return nil, fmt.Errorf("invalid value %q for flag --feature: it must be name=value", x)
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
