// Package testcmd implements the command test. It runs test files and reports the results as
// text, as JSON and as JUnit XML.
//
// Main types: options, the flags; printer, which reports each file. The one rule: it writes
// only the files that the user requests, and the state of objects that could not be destroyed.
package testcmd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/rulecheck"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Command declares test.
func Command() command.Command {
	return command.Command{
		Name: "test", Synopsis: "Execute integration tests for Terrace modules", Usage: "[options]",
		Uses:  command.Providers,
		Units: command.InUnit | command.NeedsInputs,
		Help: `Executes the test files of the working directory and of its directory "tests"
(NAME.tftest.hcl, NAME.tofutest.hcl, and the same with .json): each run plans
or applies the configuration with a state of its own, and its assertions are
evaluated. The objects are destroyed at the end of a file.

Runs create real infrastructure, unless their providers are mocked. While real
objects exist, their states are in .terraform/tests, so that a killed test
loses nothing. The backend block of a run stores its state in a backend, and
keeps the objects for the next test.

In a unit's directory, and with run --all, they are the tests of the unit's
module, and the inputs of the unit are values of its variables.

Files NAME.estatetest.hcl test the units below the directory: all providers are
mocked, and all states live in memory. Files NAME.rulestest.hcl and
NAME.policytest.hcl test the rules of the directory with given values.`,
		Examples: []command.Example{
			{Line: "test -filter=tests/network.tftest.hcl -verbose", Text: "Run one file, and show the plan or the state of each run."},
			{Line: "test -junit-xml=report.xml", Text: "Write a report that CI systems read."},
		},
		Exits: []command.Exit{
			{Code: 0, Help: "Every test passed."},
			{Code: 1, Help: "A test failed, or there was an error."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			o := &options{}
			fs := flag.Flags{
				flag.List(&o.filters, "filter", "testfile", "Run this test file only, named relative to the working directory. May be repeated.").Completes(flag.Files),
				flag.Text(&o.junit, "junit-xml", "path", "Write a report in the JUnit XML format to this file.").Completes(flag.Files),
				flag.Bool(&o.verbose, "verbose", "Print the plan or the state of each run, and the failures that it expects."),
				flag.Int(&o.parallelism, "run-parallelism", "n", "How many test files run at once, as far as they are independent: of files with real providers only those that say so."),
				flag.Bool(&o.update, "update-snapshots", "Write the snapshots of tests of an estate, to be reviewed, in place of comparing plans with them."),
				flags.TestDirectory(&o.directory),
			}
			fs = append(fs, flags.Markdown(&o.markdown)...)
			fs = append(append(fs, o.json.Flags()...), flag.Vars(&o.vars)...)
			return append(fs, flag.NoColor()), func(ctx context.Context, c *command.Call) int {
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return run(ctx, c, o)
			}
		},
	}
}

type options struct {
	filters     []string
	junit       string
	markdown    request.Markdown
	verbose     bool
	update      bool
	parallelism int
	directory   string
	json        flags.JSON
	vars        []workdir.VarFlag
}

func run(ctx context.Context, c *command.Call, o *options) int {
	root, _ := c.Root() // the run of the module reports errors
	files, ds := testrun.Load(c.OnDisk(), o.directory, c.Report.Set, root)
	estates, more := loadEstates(c, o.filters)
	ds = append(ds, more...)
	ruled, more := rulecheck.Test(ctx, c, func(name string) bool { return len(o.filters) == 0 || slices.Contains(o.filters, name) })
	if ds = append(ds, more...); ds.HasErrors() {
		return c.Fail(ds)
	}
	var results []*testrun.Result
	code := 0
	if len(estates)+len(ruled) == 0 || len(files) > 0 {
		results, code = runModule(ctx, c, o, files, ds)
	} else {
		c.Report.Tell(ds)
	}
	if len(estates) > 0 {
		more, status := runEstates(ctx, c, o, estates)
		results, code = append(results, more...), max(code, status)
	}
	if len(ruled) > 0 {
		more, status := reportRules(c, o, ruled)
		results, code = append(results, more...), max(code, status)
	}
	if o.junit != "" {
		if err := writeJUnit(c.Path(o.junit), results, c.Report.Set); err != nil {
			return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the report", "The file of -junit-xml cannot be written: %s.", err))
		}
	}
	if o.markdown.File != "" {
		if ds := flags.WriteMarkdown(c, o.markdown, document(c.DirectoryName(), results, c.Report.Set, code)); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	return code
}

// runModule runs the tests of the module in the working directory.
func runModule(ctx context.Context, c *command.Call, o *options, files []*testfile.File, ds diag.List) ([]*testrun.Result, int) {
	files, more := filtered(files, o)
	ds = append(append(ds, more...), remaining(ctx, c, o)...)
	values, more := gather(ctx, c, o)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, c.Fail(ds)
	}
	eo, plugins, more := workdir.EngineOptions(c.Directory, workdir.LoadOptions{})
	if ds = append(ds, more...); more.HasErrors() {
		return nil, c.Fail(ds)
	}
	processes := engine.NewProcesses(engine.ProcessOptions{})
	defer processes.Close()
	processes.Expect(1)
	eo.Processes, eo.Observe = processes, nil
	c.Report.Tell(ds)
	p := &printer{Call: c, options: o}
	s := &testrun.Suite{Engine: eo, Files: files, Keep: o.verbose, Parallelism: o.parallelism, Program: &suiteProgram{printer: p, given: values, files: files, plugins: plugins}}
	if s.Parallelism < 1 {
		s.Parallelism = runtime.GOMAXPROCS(0)
	}
	stop := make(chan struct{})
	var once sync.Once
	c.Interrupts.Gently(func() { once.Do(func() { close(stop) }) })
	defer c.Interrupts.Gently(nil)
	s.Stop = stop
	results, ds := s.Run(ctx)
	if ds.HasErrors() {
		return nil, c.Fail(ds)
	}
	return results, p.end(results)
}

// suiteProgram implements testrun.Program.
type suiteProgram struct {
	*printer
	given   *given
	files   []*testfile.File
	plugins *workdir.Plugins
}

func (x *suiteProgram) Begin() { x.begin(x.files) }

func (x *suiteProgram) Report(ctx context.Context, r *testrun.Result) { x.file(ctx, r) }

func (x *suiteProgram) Mocks(dir string) (*testfile.Mock, diag.List) {
	return testrun.LoadMocks(x.OnDisk(), dir, x.Call.Report.Set)
}

func (x *suiteProgram) Given(f *testfile.File, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	return x.given.forFile(f, declared)
}

func (x *suiteProgram) Select(ctx context.Context, engines []*engine.Engine) diag.List {
	req := map[addr.Provider][]config.Constraint{}
	for _, e := range engines {
		for a, cs := range e.Requirements() {
			req[a] = append(req[a], cs...)
		}
	}
	return x.plugins.Choose(ctx, req).Errors()
}

// given contains the values of variables from outside of the test files.
type given struct {
	directory           string
	first, tests, flags workdir.Variables // later ones have precedence
}

// gather reads the values of variables from the environment, variable files and flags.
func gather(ctx context.Context, c *command.Call, o *options) (*given, diag.List) {
	out := &given{directory: filepath.ToSlash(filepath.Clean(o.directory))}
	all := func(from workdir.VarSources) (workdir.Variables, diag.List) {
		from.Set = c.Report.Set
		g, ds := workdir.GatherVariables(from)
		return g.All(), ds
	}
	var ds, more diag.List
	out.first, ds = all(workdir.VarSources{Dir: c.Dir, Env: c.Env, Read: c.Files})
	tests := c.Path(o.directory)
	if info, err := os.Stat(tests); err == nil && info.IsDir() && tests != c.Dir {
		out.tests, more = all(workdir.VarSources{Dir: tests, FS: c.OnDisk(), Under: out.directory, Read: c.Files})
		ds = append(ds, more...)
	}
	out.flags, more = all(workdir.VarSources{Files: c.Dir, Flags: o.vars, Read: c.Files})
	if ds = append(ds, more...); ds.HasErrors() || c.Unit == nil {
		return out, ds
	}
	root, more := config.Load(c.Dir, config.Options{Set: c.Report.Set})
	if more.HasErrors() {
		return out, append(ds, more...)
	}
	return out, append(ds, c.Unit.All(ctx, out.first, root)...)
}

// forFile returns the values for a file. Values in the test directory apply only to the test
// files there.
func (g *given) forFile(f *testfile.File, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	out := map[string]engine.InputValue{}
	for _, from := range []workdir.Variables{g.first, g.tests, g.flags} {
		for _, name := range slices.Sorted(maps.Keys(from)) {
			if declared[name] != nil {
				out[name] = from[name]
			}
		}
	}
	return out, nil
}

// leftName returns a new path for the state of objects that could not be destroyed. It does
// not exist yet, so that earlier states are kept for a cleanup.
func leftName(c *command.Call) string {
	name := "errored_test.tfstate"
	for n := 1; ; n++ {
		if _, err := os.Lstat(c.Path(name)); err != nil {
			return name
		}
		name = fmt.Sprintf("errored_test.%d.tfstate", n)
	}
}
