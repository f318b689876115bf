// Package units opens units for commands: the unit in the working directory, or those that the
// flags select. It sets up their credentials, providers and modules according to the command
// line.
//
// Main functions: Options, Open and CallIn. The one rule: errors in the files of a unit are
// reported with their source text, by FailWith and Beside.
package units

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/initialize"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/unitlog"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/modules"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/unit"
)

// installing lists the commands that may install providers.
var installing = []string{"init", "plan", "apply", "destroy", "refresh", "validate", "import", "test", "console", "show", "graph", "providers"}

// Options returns the options for opening units in a command. args are the command's words,
// and flags its variables.
func Options(c *command.Call, f *unitflags.Flags, command string, args []string, flags []workdir.VarFlag) (estate.Options, diag.List) {
	return OptionsOf(c, f, command, WordsOf(c, command, args), flags)
}

// WordsOf returns the words of a command. args are the words after its name. Flags that every
// command accepts are not in args. As in Terragrunt, get_terraform_cli_args returns -no-color
// last, also if --no-color or TG_NO_COLOR requested it, and no words of TF_CLI_ARGS.
func WordsOf(c *command.Call, name string, args []string) request.Words {
	own := command.OfEnvironment(c.Env, name, args)
	words := slices.Clone(args)
	add := func(word string, on bool) {
		if on && !strings.Contains(c.Env.Get("TF_CLI_ARGS")+c.Env.Get("TF_CLI_ARGS_"+name), word) {
			words = append(words, word)
		}
	}
	add("-compact-warnings", c.Report.Options.CompactWarnings)
	add("-no-color", c.Report.Options.NoColor)
	return request.Words{Args: words, Environ: own, EnvironVars: variables(args[:own])}
}

// AddWordsOfRun sets the words that `run --all` adds to those of the user in Terragrunt, for
// get_terraform_cli_args.
func AddWordsOfRun(words *request.Words, name string, f *unitflags.Flags) {
	if (name == "apply" || name == "destroy") && !f.NoAutoApprove && !slices.Contains(words.Args, "-auto-approve") {
		words.Added = append(words.Added, "-auto-approve")
	}
	given := func(w string) bool { return w == "-input" || strings.HasPrefix(w, "-input=") }
	if slices.Contains([]string{"apply", "destroy", "plan", "refresh"}, name) && !slices.ContainsFunc(words.Args, given) {
		words.Added = append(words.Added, "-input=false")
	}
}

// OptionsOf is Options for words that are already read.
func OptionsOf(c *command.Call, f *unitflags.Flags, command string, words request.Words, flags []workdir.VarFlag) (estate.Options, diag.List) {
	if slices.Contains(installing, command) {
		if ds := usePluginCache(c, &f.Sourcing); ds.HasErrors() {
			return estate.Options{}, ds
		}
	}
	return options(c, f, command, words, flags)
}

func options(c *command.Call, f *unitflags.Flags, about string, words request.Words, flags []workdir.VarFlag) (estate.Options, diag.List) {
	features, err := f.FeatureMap()
	if err != nil {
		return estate.Options{}, diag.Errorf(diag.CodeCLIFlags, nil, "Failed to parse command-line flags", "%s", err)
	}
	plugins, ds := c.Directory.Plugins()
	if ds.HasErrors() {
		return estate.Options{}, ds
	}
	ds = append(ds, f.WithoutEffect()...)
	cfg := plugins.Config
	log, err := unitlog.New(f.Log(), "", c.Now)
	if err != nil {
		return estate.Options{}, diag.Errorf(diag.CodeCLIFlags, nil, "Failed to parse command-line flags", "%s", err)
	}
	c.Report.Options.ErrorsAlone = !log.Shows("warn")
	sources, err := unitflags.Pairs("source-map", f.SourceMap)
	if err != nil {
		return estate.Options{}, diag.Errorf(diag.CodeCLIFlags, nil, "Failed to parse command-line flags", "%s", err)
	}
	o := estate.Options{
		Discovery: discovery.Settings{Root: c.Dir, Removals: about != "apply" || f.AllowDestroy},
		Sources:   workcopy.Sources{Override: f.Source, Base: f.Many(), Map: sources, Fetch: modules.Fetch(c.Directory, cfg, f.SourceUpdate)}, Who: c.Who(), Run: c.Mark(),
		Request:  unit.Request{Command: about, Args: slices.Concat([]string{about}, words.Args[words.Environ:], words.Added), Source: f.Source, Features: features, FeaturesFrom: f.FeaturesFrom, DownloadDir: f.DownloadDir},
		Machine:  unit.Machine{Environ: c.Env, Run: c.Run, Now: c.Now, Home: c.Directory.HomeOrError},
		Redactor: c.Report.Redactor,
		Inputs:   estate.Inputs{Strict: f.Strict, Debug: f.InputsDebug, Mocks: f.UseMocks},
		Skip:     estate.Skip{Hooks: f.NoHooks, Retries: f.NoRetry, Outputs: f.NoOutputs}, ValuesElsewhere: len(flags) > 0,
	}
	if dir := o.Request.DownloadDir; dir != "" {
		o.Request.DownloadDir = c.Path(dir)
	}
	if more := signIn(c, &f.SigningIn, &o); more.HasErrors() {
		return o, more
	}
	if f.GraphRoot != "" {
		o.Discovery.DependentsIn = c.Path(f.GraphRoot)
	}
	if f.Boundary != "" {
		o.Discovery.Boundary = c.Path(f.Boundary)
	}
	if name := f.Config; name != "" && filepath.Base(name) == name {
		o.Discovery.ConfigName = name
	}
	o.Answers = &estate.Answers{}
	if s := c.Serving; s != nil && s.Commits != nil {
		o.Answers = git.Given(s.Commits, s.Unpack)
	}
	if more := filterBy(c.Report.Context, c, &f.Selection, &o); more.HasErrors() {
		return o, more
	}
	o.Worktrees = &estate.Worktrees{}
	o.Discovery.Affected = differing(c, &o)
	c.Interrupts.Removes(o.Worktrees.Remove)
	ds = append(ds, providersOf("share-provider", f.Sharing, &o.ShareProviders)...)
	ds = append(ds, providersOf("own-provider", f.Owning, &o.OwnProviders)...)
	o.Host = estateHost(c, plugins, flags, words.EnvironVars)
	o.Host.Bootstrap = states.Bootstrapping{On: f.Bootstrap || f.RequireBootstrap, Require: f.RequireBootstrap, Keep: f.KeepBucket}
	o.Credentials.AssumeRole = assumeRole(c)
	o.Host.NoInit = f.NoAutoInit && about != "init"
	return o, ds
}

// estateHost returns the services that the program provides to an estate. The first flags come
// from the environment; first is their number.
func estateHost(c *command.Call, plugins *workdir.Plugins, flags []workdir.VarFlag, first int) estate.Host {
	out := estate.Host{
		Plugins: plugins, Texts: c.Report.Set, Vars: estate.FlagVars{Flags: absolute(c, flags), First: min(first, len(flags))},
		Program:  program{c},
		Backends: c.Backends(), KeepSegments: workdir.KeepSegmentsOf(c.Env.Get("TERRACE_JOURNAL"), plugins.Config.JournalInStore),
	}
	if path, err := c.Executable(); err == nil {
		out.Executable = path
	}
	return out
}

// program is the program around an estate.
type program struct{ c *command.Call }

// UnitHost implements estate.Program.
func (p program) UnitHost(unit string) workdir.Host {
	return unitHost{Host: p.c.Host, c: p.c, unit: unit}
}

// Init runs init in the working directory of a unit.
func (p program) Init(ctx context.Context, in estate.Installing) diag.List {
	inner := p.c.Inside(in.Directory)
	inner.Report.Set.Include(in.Sources)
	return initialize.Quietly(ctx, inner, in.Words)
}

// unitHost is the Host of a unit. Its messages contain the name of the unit.
type unitHost struct {
	workdir.Host
	c    *command.Call
	unit string
}

func (h unitHost) Note(sentence string) {
	h.c.Report.Human.Say(About(h.unit, sentence) + "\n")
	h.c.Report.Stream.Log(About(h.unit, sentence))
}

func (h unitHost) Waiting(holder *store.LockInfo) {
	if holder == nil { // the store reports the owner of the lock later
		return
	}
	text := "The state of " + h.unit + " is locked by " + backend.Describe(holder) + ". Waiting for the lock..."
	h.c.Report.Human.Say(text + "\n")
	h.c.Report.Stream.Log(text)
}

// Rescue does nothing: the state stays in its journal, because the output belongs to all
// units.
func (h unitHost) Rescue([]byte) diag.List { return nil }

// absolute returns the flags with absolute paths of variable files.
func absolute(c *command.Call, all []workdir.VarFlag) []workdir.VarFlag {
	out := slices.Clone(all)
	for i, f := range out {
		if f.File {
			out[i].Value = c.Path(f.Value)
		}
	}
	return out
}

// variables returns the number of variables and variable files in words of the command line.
func variables(words []string) int { return len(variablesIn(words)) }

// variablesIn returns the variables and variable files in words of the command line.
func variablesIn(words []string) []workdir.VarFlag {
	var given []workdir.VarFlag
	_, _ = flag.Vars(&given).Take(words, false) // errors are impossible: every value is accepted
	return given
}

// CommandVars adds the variables on the command line to those of the unit in whose directory
// the command works. Opening the state of that unit, or of a dependency, may need them.
func CommandVars(c *command.Call, o *estate.Options, name string, args []string) {
	own := command.OfEnvironment(c.Env, name, args)
	o.Host.VarsOfCommand = estate.FlagVars{Flags: absolute(c, variablesIn(args)), First: variables(args[:own])}
	o.ValuesElsewhere = o.ValuesElsewhere || len(o.Host.VarsOfCommand.Flags) > 0
}

// IsUnit reports whether the working directory contains a unit file or an environment file.
// The working directory in which a unit's hooks run has a copy of the unit file and does not
// count.
func IsUnit(c *command.Call, f *unitflags.Selection) bool {
	if copytree.Working(c.Dir) && f.Config == "" && f.Module == "" {
		return false
	}
	for _, name := range []string{f.Config, unit.DefaultName, unit.DefaultJSONName} {
		if name == "" {
			continue
		}
		if info, err := c.Files.Stat(c.Path(name)); err == nil && !info.IsDir() {
			return true
		}
	}
	return f.Module != "" || holdsEnvironment(c)
}

// LookOptions returns the options for a command that only reads units. It fetches no modules
// or providers, and creates no directories for them.
func LookOptions(c *command.Call, f *unitflags.Flags, command string, args []string) (estate.Options, diag.List) {
	o, ds := options(c, f, command, WordsOf(c, command, args), nil)
	if ds.HasErrors() {
		return o, ds
	}
	cfg, more := c.Directory.Settings()
	o.Sources.Fetch = modules.Fetched(c.Directory, cfg)
	return o, append(ds, more.Errors()...)
}

// FailWith reports errors in the files of an estate and returns the exit status. e may be nil.
func FailWith(c *command.Call, e *estate.Estate, ds diag.List) int {
	if e != nil {
		c.Report.Set.Include(e.Sources())
	}
	return c.Fail(ds)
}

func UnitPath(c *command.Call, f *unitflags.Flags) string {
	if f.Config != "" {
		return c.Path(f.Config)
	}
	if path := environmentFile(&f.Selection, discovery.EnvironmentFiles(c.Files, c.Dir)); path != "" {
		return path
	}
	return c.Dir
}

// Beside prints warnings about the files of an estate to Stderr, for a command whose Stdout
// other programs read.
func Beside(c *command.Call, e *estate.Estate, ds diag.List) {
	if ds = c.Report.Filter(ds); len(ds) > 0 {
		_ = c.Report.Printer(e.Sources()).Print(c.Stderr, ds)
	}
}

// WorkIn changes to the directory of --working-dir.
func WorkIn(c *command.Call, f *unitflags.Flags) {
	if f.Working != "" {
		c.WorkIn(f.Working)
	}
}

// PathShown returns path as messages show it: relative to the working directory if path is
// inside, and otherwise unchanged.
func PathShown(c *command.Call, path string) string {
	if rel, err := filepath.Rel(c.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// OpenLeniently opens an estate even if some units are invalid.
func OpenLeniently(ctx context.Context, c *command.Call, o estate.Options) (*estate.Estate, diag.List) {
	o.Discovery.Lenient = true
	return Open(ctx, c, o)
}

// About returns text with the name of the unit in front. The unit of the working directory is
// not named.
func About(unit, text string) string {
	if unit == "." {
		return strings.ToUpper(text[:1]) + text[1:]
	}
	return unit + ": " + text
}
