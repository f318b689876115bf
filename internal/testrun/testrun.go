// Package testrun runs test files: plans and applies of a module with the values,
// providers and mocks that each run names, assertions about what came of it, and the
// destruction of all that was made.
//
// Main types: Suite, what is tested, and Result, what came of one file. The one rule:
// the states of a test live in memory, and nothing on disk is read or written but
// configuration.
package testrun

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/testrun/mock"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// A Suite is the test files of one module. Its fields are set before Run.
type Suite struct {
	Engine engine.Options // of the module under test
	Files  []*testfile.File

	// Given are the values of variables from outside, for a file; those that the module
	// does not declare are left out.
	Given func(file *testfile.File, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List)
	// Select finds the packages of the providers that engines need.
	Select func(context.Context, []*engine.Engine) diag.List
	// Mocks reads the mocks of a folder that a mock_provider block names.
	Mocks func(folder string) (*testfile.Mock, diag.List)
	// Begin is called once everything is loaded, before the first run.
	Begin func()
	// Report is called for each file when it is done, one after another in the order of
	// Files. The engines of its runs are still open.
	Report func(*Result)
	// Stop, when closed, ends the tests; what was made is destroyed.
	Stop        <-chan struct{}
	Parallelism int  // files at once; below 1: one
	Keep        bool // keep the engines of all runs until their file is reported

	shared mock.Shared
	plain  map[root]opened // the modules as they are written
}

// A root is a root module of runs: the module under test, or another.
type root struct{ dir, key string }

// opened is a module as it is written, of which nothing is run.
type opened struct{ e *engine.Engine }

// A Status is what came of a run or a file.
type Status string

// The statuses, in the words of the JSON output.
const (
	Pending Status = "pending"
	Skip    Status = "skip"
	Pass    Status = "pass"
	Fail    Status = "fail"
	Error   Status = "error"
)

// rank orders statuses: a file has the worst of its runs.
func (s Status) rank() int {
	switch s {
	case Pending:
		return 0
	case Skip:
		return 1
	case Pass:
		return 2
	case Fail:
		return 3
	default:
		return 4
	}
}

// Worse is the worse of two statuses.
func (s Status) Worse(o Status) Status {
	if o.rank() > s.rank() {
		return o
	}
	return s
}

// A Result is what came of a test file.
type Result struct {
	File    *testfile.File
	Status  Status
	Runs    []*RunResult
	Cleanup []*Cleanup
	Diags   diag.List // about the file as a whole
}

// A RunResult is what came of a run.
type RunResult struct {
	Run     *testfile.Run
	Status  Status
	Diags   diag.List
	Plan    *plan.Plan     // of a run that plans; nil if there is none
	State   *state.State   // of a run that applies
	Engine  *engine.Engine // whose schemas the plan and the state have
	Elapsed time.Duration
}

// A Cleanup is the end of one state.
type Cleanup struct {
	Run   *testfile.Run // the last that used the state
	Diags diag.List
	Left  *state.State // what could not be destroyed, or is kept; nil: nothing
	Kept  bool         // the file says that it is not to be destroyed
}

// Run runs the files. Those that cannot get into each other's way run at once, the
// others one after another. Whatever comes of a test stands in its result; the messages
// returned say why nothing could be run.
func (s *Suite) Run(ctx context.Context) ([]*Result, diag.List) {
	defer s.shared.Close()
	ds := s.open(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	defer func() {
		for _, o := range s.plain {
			o.e.Close()
		}
	}()
	if s.Begin != nil {
		s.Begin()
	}
	out := make([]*Result, len(s.Files))
	var alone sync.Mutex // held by files that may get into another's way
	var telling sync.Mutex
	done, next := make([]*fileRun, len(s.Files)), 0
	parallel.Each(len(s.Files), max(1, s.Parallelism), func(i int) {
		f := &fileRun{Suite: s, file: s.Files[i], result: &Result{File: s.Files[i], Status: Pass}, states: map[string]*testState{}, outputs: map[string]cty.Value{}}
		if !s.independent(f.file) {
			alone.Lock()
			defer alone.Unlock()
		}
		f.run(ctx)
		telling.Lock()
		defer telling.Unlock()
		out[i], done[i] = f.result, f
		for ; next < len(done) && done[next] != nil; next++ {
			if s.Report != nil {
				s.Report(done[next].result)
			}
			done[next].close()
		}
	})
	return out, ds
}

// independent reports whether a file can run beside others: it says so, or every
// provider that its runs ask is mocked.
func (s *Suite) independent(f *testfile.File) bool {
	if f.Parallel {
		return true
	}
	for _, r := range f.Runs {
		got := s.plain[rootOf(f, r)]
		mocked := map[string]bool{}
		for key, p := range f.Providers {
			if p.Mock != nil && p.Alias == "" {
				mocked[got.e.Root().Source(key).String()] = true
			}
		}
		for a := range got.e.Requirements() {
			if !a.IsBuiltIn() && !mocked[a.String()] {
				return false
			}
		}
	}
	return true
}

// open loads every module that runs need and finds their providers.
func (s *Suite) open(ctx context.Context) (ds diag.List) {
	s.plain = map[root]opened{}
	load := func(at root, m *testfile.Call) diag.List {
		if _, ok := s.plain[at]; ok {
			return nil
		}
		o := s.Engine
		o.Root = engine.RootModule{Dir: at.dir, Key: at.key}
		e, ds := engine.Open(ctx, o)
		if m != nil && config.Unread(ds) {
			ds = diag.Errorf(diag.CodeModuleNotInstalled, &m.SourceAt, "Module not installed", "The folder %q of this module does not exist. Run \"terrace init\" to install all modules required by this configuration.", at.dir)
		}
		if ds.HasErrors() {
			if e != nil {
				e.Close()
			}
			return ds
		}
		s.plain[at] = opened{e}
		return ds
	}
	if ds = load(root{}, nil); ds.HasErrors() {
		return ds
	}
	for _, f := range s.Files {
		for _, r := range f.Runs {
			ds = append(ds, load(rootOf(f, r), r.Module)...)
		}
	}
	if ds.HasErrors() || s.Select == nil {
		return ds.Once()
	}
	engines := make([]*engine.Engine, 0, len(s.plain))
	for _, o := range s.plain {
		engines = append(engines, o.e)
	}
	return append(ds, s.Select(ctx, engines)...)
}

// rootOf is the root module of a run.
func rootOf(f *testfile.File, r *testfile.Run) root {
	if r.Module == nil {
		return root{}
	}
	out := root{key: InstallKey(f.Name, r.Name)}
	if module.IsLocal(r.Module.Source) {
		out.dir = filepath.ToSlash(filepath.Clean(r.Module.Source))
	}
	return out
}

// InstallKey is the key under which the module of a run is installed.
func InstallKey(file, run string) string { return FileKey(file) + "." + run }

// FileKey is what the keys of all runs of a file begin with.
func FileKey(file string) string { return "test." + strings.ReplaceAll(stem(file), "/", ".") }

// stem is the name of a test file without its suffix.
func stem(file string) string {
	for _, end := range [...]string{".tftest.hcl", ".tftest.json", ".tofutest.hcl", ".tofutest.json"} {
		if rest, ok := strings.CutSuffix(filepath.ToSlash(file), end); ok {
			return rest
		}
	}
	return file
}

// scope answers the references of expressions in test files.
type scope struct {
	vars map[string]cty.Value
	runs func(name string) (cty.Value, diag.List)
}

func (s *scope) resolve(ref hcl.Traversal, at *hcl.Range) (cty.Value, int, bool, diag.List) {
	name := ""
	if len(ref) > 1 {
		if a, ok := ref[1].(hcl.TraverseAttr); ok {
			name = a.Name
		}
	}
	switch ref.RootName() {
	case "var":
		v, ok := s.vars[name]
		return v, 2, ok, nil
	case "run":
		if name == "" {
			return cty.DynamicVal, 1, true, diag.Errorf(diag.CodeEvalReference, at, "Invalid reference", "The \"run\" object cannot be accessed directly. Instead, name a run block, as in run.NAME.OUTPUT.")
		}
		v, ds := s.runs(name)
		for _, m := range ds {
			m.At = at
		}
		return v, 2, true, ds
	}
	return cty.NilVal, 0, false, nil
}
