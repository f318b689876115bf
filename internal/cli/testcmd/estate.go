package testcmd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/estatetest"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
)

// loadEstates reads the test files of estates in the working directory.
func loadEstates(c *command.Call, filters []string) (out []*testfile.Estate, ds diag.List) {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, nil // reported for the tests of the module
	}
	for _, e := range entries { // sorted by name
		if e.IsDir() || !strings.HasSuffix(e.Name(), testfile.EstateSuffix) || len(filters) > 0 && !slices.Contains(filters, e.Name()) {
			continue
		}
		text, err := readfile.Whole(c.Path(e.Name()))
		if err != nil {
			ds = append(ds, diag.Errorf(diag.CodeConfigReadFile, nil, "Failed to read file", "The file %q cannot be read: %s.", e.Name(), err)...)
			continue
		}
		f, more := testfile.ParseEstate(e.Name(), text, c.Report.Set)
		ds = append(ds, more...)
		out = append(out, f)
	}
	return out, ds
}

// runEstates runs tests of the units below the working directory.
func runEstates(ctx context.Context, c *command.Call, o *options, files []*testfile.Estate) ([]*testrun.Result, int) {
	temp, err := os.MkdirTemp(c.Env.Get("TMPDIR"), "terrace-test-")
	if err != nil {
		return nil, c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to make a directory", "Tests need a directory for what units write: %s.", err))
	}
	defer os.RemoveAll(temp)
	stop := make(chan struct{})
	var once sync.Once
	c.Interrupts.Gently(func() { once.Do(func() { close(stop) }) })
	defer c.Interrupts.Gently(nil)
	p := &printer{Call: c, options: o}
	fns := funcs.Table(funcs.Config{BaseDir: c.Dir, Home: c.Directory.HomeOrError, Now: c.Now, PureOnly: true})
	var all []*testrun.Result
	for i, f := range files {
		t := &estatetest.Test{
			File: f, Functions: fns, Now: c.Now, Stop: stop, Keep: o.update,
			Program: estateProgram{c, filepath.Join(temp, fmt.Sprint(i)), c.OpenBackends()},
		}
		all = append(all, p.estate(f, t.Run(ctx, func(r *estatetest.Result) { p.units(f, r) })))
	}
	return all, p.end(all)
}

// estateProgram implements estatetest.Program.
type estateProgram struct {
	*command.Call
	dir      string // directory for files that units write
	backends *backend.Set
}

func (x estateProgram) Options(command string, filters []string) (estate.Options, diag.List) {
	uf := &unitflags.Flags{}
	uf.Declare()
	uf.All, uf.Filters, uf.NonInteractive = true, filters, true
	if uf.DownloadDir == "" {
		uf.DownloadDir = filepath.Join(x.dir, "units")
	}
	eo, ds := units.Options(x.Call, uf, command, nil, nil)
	eo.Throwaway, eo.Host.Backends, eo.Host.KeepSegments = filepath.Join(x.dir, "states"), x.backends, workdir.NoSegments
	eo.Discovery.Generate, eo.Discovery.Whole, eo.At = true, true, x.Now().UTC()
	return eo, ds
}

func (x estateProgram) Render(ctx context.Context, e *engine.Engine, pl *plan.Plan) string {
	var b bytes.Buffer
	_ = view.Plan(&b, view.Style{}, pl, project.NewSchemas(ctx, e), false)
	return b.String()
}

func (x estateProgram) Snapshot(name string) (string, bool) {
	text, err := readfile.Whole(x.Path(name))
	return string(text), err == nil
}

func (x estateProgram) Write(name, text string) error {
	return atomicfile.Write(x.Path(name), []byte(text), 0o644)
}

// outcome reports the status of a run.
func (p *printer) outcome(file, run string, status testrun.Status) {
	where := file + ": run " + run
	if h := p.Report.Human; h != nil {
		h.Say(where + "... ")
		p.status(status)
		h.Say("\n")
	}
	p.Report.Stream.Typed(where+"... "+word(status), "test_run", map[string]any{
		"@testfile": file, "@testrun": run,
		"test_run": map[string]any{"path": file, "run": run, "status": string(status)},
	})
}

// units reports a run of units.
func (p *printer) units(f *testfile.Estate, r *estatetest.Result) {
	p.outcome(f.Name, r.Run.Name, r.Status)
	set := p.Report.Set
	if r.Estate != nil {
		for _, m := range r.Diags { // messages about unit files
			if m.At != nil && set.File(m.At.Filename) == nil {
				if file := r.Estate.Sources().File(m.At.Filename); file != nil {
					set.Add(file)
				}
			}
		}
	}
	p.tell(r.Diags, f.Name, r.Run.Name)
	for _, u := range r.Of {
		if u.Status != estate.Failed || len(u.Diags.Errors()) == 0 {
			continue
		}
		from := u.Set
		if from == nil {
			from = r.Estate.Sources()
		}
		p.Report.TellFrom(from, u.Diags.Errors())
	}
}

// estate returns the result of a file with runs of units, for the summary and for reports.
func (p *printer) estate(f *testfile.Estate, results []*estatetest.Result) *testrun.Result {
	out := &testrun.Result{File: &testfile.File{Name: f.Name}, Status: testrun.Pass}
	for _, r := range results {
		out.Status = out.Status.Worse(r.Status)
		out.Runs = append(out.Runs, &testrun.RunResult{Run: &testfile.Run{Name: r.Run.Name, At: r.Run.At}, Status: r.Status, Diags: r.Diags, Elapsed: r.Elapsed})
	}
	return out
}
