// Package testrun runs test files: it plans and applies a module with the values, providers and
// mocks of each run, evaluates assertions about the results, and destroys all objects.
//
// Main types: Suite, the tests of a module, and Result, the result of one file. The one rule:
// a Program stores the states of real objects, and this package reads only configuration.
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

// A Suite contains the test files of one module. All fields are set before Run.
type Suite struct {
	Engine engine.Options // options of the module under test
	Files  []*testfile.File

	Program Program
	// Stop, when closed, ends the tests. Their objects are destroyed.
	Stop        <-chan struct{}
	Parallelism int  // concurrent files; below 1 means 1
	Keep        bool // keep the engines of all runs open until their file is reported

	shared mock.Shared
	plain  map[root]opened // unmodified modules
}

// A Program is the program that runs a Suite.
type Program interface {
	// Given returns the values of variables from outside for a file. It omits variables that the
	// module does not declare. It may be called concurrently.
	Given(file *testfile.File, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List)
	// Select finds the packages of the providers that engines need.
	Select(ctx context.Context, engines []*engine.Engine) diag.List
	// Mocks reads the mocks of the directory that a mock_provider block names. It may be called
	// concurrently.
	Mocks(dir string) (*testfile.Mock, diag.List)
	// Take opens the state of a run, which then holds until Release. With a backend block, it is the
	// state in that backend; otherwise it is a new state on disk, so that a killed process loses
	// nothing. value evaluates the arguments of the block. It may be called concurrently.
	Take(ctx context.Context, file *testfile.File, run *testfile.Run, value func(hcl.Expression) (cty.Value, diag.List)) (Held, diag.List)
	// Begin is called when everything is loaded, before the first run.
	Begin()
	// Report is called for each file when it is done, one after another in the order of
	// Suite.Files. The engines of its runs are still open.
	Report(ctx context.Context, r *Result)
}

// A Held is a stored state. Its methods are called as state.Manager documents.
type Held interface {
	state.Manager
	Current() *state.State // nil if there is none
	// Release ends the use of the state. discard means that a state without a backend is not needed
	// any more, because it has no objects.
	Release(discard bool) diag.List
}

// A root identifies the root module of runs: the module under test, or another one.
type root struct{ dir, key string }

// opened is an unmodified module, which is only evaluated.
type opened struct{ e *engine.Engine }

// A Status is the result of a run or a file.
type Status string

// The statuses, as they are written in the JSON output.
const (
	Pending Status = "pending"
	Skip    Status = "skip"
	Pass    Status = "pass"
	Fail    Status = "fail"
	Error   Status = "error"
)

// rank returns the severity of a status. The status of a file is the worst of its runs, and
// Pass if all are skipped, as in OpenTofu.
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

// Worse returns the worse of two statuses.
func (s Status) Worse(o Status) Status {
	if o.rank() > s.rank() {
		return o
	}
	return s
}

// A Result is the result of a test file.
type Result struct {
	File    *testfile.File
	Status  Status
	Runs    []*RunResult
	Cleanup []*Cleanup
	Diags   diag.List // messages about the whole file
}

// A RunResult is the result of a run.
type RunResult struct {
	Run      *testfile.Run
	Status   Status
	Diags    diag.List
	Expected diag.List      // failures that expect_failures names
	Plan     *plan.Plan     // plan of a run that plans; nil if there is none
	State    *state.State   // state of a run that applies
	Engine   *engine.Engine // engine with the schemas of the plan and the state
	Elapsed  time.Duration
}

// A Cleanup is the destruction of the objects in one state.
type Cleanup struct {
	Run   *testfile.Run // last run that used the state
	Diags diag.List
	Left  *state.State // state with the remaining objects; nil if there are none
	Kept  bool         // the run keeps its objects
	// Backend is the backend that contains the state; nil if it is that of no backend.
	Backend *testfile.Backend
	// Stored means that the state remains on disk or in the backend, so that Suite.Cleanup finds it.
	Stored bool
	// Destroyed is the number of objects that were destroyed.
	Destroyed int
	// Lineage is the lineage of the state; "" if it was in memory only.
	Lineage string
}

// Run runs the files. Independent files run concurrently, and the others one after another. All
// results of tests are in the results; the returned messages only contain errors that prevented
// all tests.
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
	s.Program.Begin()
	out := make([]*Result, len(s.Files))
	var alone sync.Mutex // held by files that are not independent
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
			s.Program.Report(ctx, done[next].result)
			ds = append(ds, done[next].close()...)
		}
	})
	return out, ds
}

// independent reports whether a file can run concurrently with others: it is parallel, or all
// providers that its runs use are mocked.
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

// open loads all modules that runs need, and finds their providers.
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
			ds = diag.Errorf(diag.CodeModuleNotInstalled, &m.SourceAt, "Module not installed", "The directory %q of this module does not exist. Run \"terrace init\" to install all modules required by this configuration.", at.dir)
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
	if ds.HasErrors() {
		return ds.Once()
	}
	engines := make([]*engine.Engine, 0, len(s.plain))
	for _, o := range s.plain {
		engines = append(engines, o.e)
	}
	return append(ds, s.Program.Select(ctx, engines)...)
}

// rootOf returns the root module of a run.
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

// InstallKey returns the key under which the module of a run is installed.
func InstallKey(file, run string) string { return FileKey(file) + "." + run }

// FileKey returns the prefix of the keys of all runs in a file.
func FileKey(file string) string { return "test." + strings.ReplaceAll(stem(file), "/", ".") }

// stem returns the name of a test file without its suffix.
func stem(file string) string {
	for _, end := range [...]string{".tftest.hcl", ".tftest.json", ".tofutest.hcl", ".tofutest.json"} {
		if rest, ok := strings.CutSuffix(filepath.ToSlash(file), end); ok {
			return rest
		}
	}
	return file
}

// scope resolves references in expressions of test files.
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
