package testcmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/state/statefile"
)

// CleanupCommand declares test cleanup.
func CleanupCommand() command.Command {
	return command.Command{
		Name: "test cleanup", Synopsis: "Destroy the objects that earlier tests have left", Usage: "[options]",
		Uses:  command.Providers,
		Units: command.InUnit | command.NeedsInputs,
		Help: `Destroys the objects of tests that were killed, objects that a test could not
destroy, and objects that a test kept because of skip_cleanup or of a backend
block in a run. Their states are in .terraform/tests or in these backends.

Terrace destroys the objects of a state with the providers and the values of
the last run in the test file that uses the state. It does not ask for
approval.`,
		Examples: []command.Example{
			{Line: "test cleanup -repair", Text: "Destroy objects that tests did not mean to keep."},
		},
		Exits: []command.Exit{
			{Code: 0, Help: "Nothing is left, except for objects that -repair keeps."},
			{Code: 1, Help: "Objects are left, or there was an error."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			o, only := &options{}, false
			fs := flag.Flags{
				flag.List(&o.filters, "filter", "testfile", "Clean up after this test file only, named relative to the working directory. May be repeated.").Completes(flag.Files),
				flag.Bool(&only, "repair", "Keep the objects that tests keep on purpose: those of runs with skip_cleanup = true or with a backend."),
				flags.TestDirectory(&o.directory),
			}
			fs = append(append(fs, o.json.Flags()...), flag.Vars(&o.vars)...)
			return append(fs, flag.NoColor()), func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Unexpected argument", c.NoArguments())
				}
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return cleanUp(ctx, c, o, only)
			}
		},
	}
}

// cleanUp destroys the objects of earlier tests. only keeps those that tests keep on purpose.
func cleanUp(ctx context.Context, c *command.Call, o *options, only bool) int {
	root, _ := c.Root() // opening the module reports errors
	files, ds := testrun.Load(c.OnDisk(), o.directory, c.Report.Set, root)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	files, more := filtered(files, o)
	ds = append(ds, more...)
	values, more := gather(ctx, c, o)
	if ds = append(ds, more...); more.HasErrors() {
		return c.Fail(ds)
	}
	eo, plugins, more := workdir.EngineOptions(c.Directory, workdir.LoadOptions{})
	if ds = append(ds, more...); more.HasErrors() {
		return c.Fail(ds)
	}
	processes := engine.NewProcesses(engine.ProcessOptions{})
	defer processes.Close()
	eo.Processes, eo.Observe = processes, nil
	left := &leftStates{of: c, options: o, files: leftFiles(c)}
	p := &printer{Call: c, options: o}
	s := &testrun.Suite{Engine: eo, Files: files, Program: &suiteProgram{printer: p, given: values, files: files, plugins: plugins}}
	results, more := s.Cleanup(ctx, left.take, only)
	if ds = append(ds, more...); more.HasErrors() {
		return c.Fail(ds)
	}
	code, destroyed := 0, 0
	done := map[string]bool{}
	for _, r := range results {
		p.tell(r.Diags, r.File.Name, "")
		for _, x := range r.Cleanup {
			destroyed += x.Destroyed
			if x.Left == nil {
				done[x.Lineage] = true
			}
			p.cleaned(r, x)
		}
		if r.Status != testrun.Pass {
			code = 1
		}
	}
	if len(o.filters) == 0 {
		// No run has the names of these states any more.
		ds = append(ds, inspect(ctx, c, o, left.files, "test cleanup", func(shown, objects string) diag.List {
			return diag.Errorf(diag.CodeTestRemaining, nil, "Objects of an unknown test remain", "The state %s contains %s, and belongs to no run of the test files. To destroy its objects, run \"%s destroy -state=%[1]s\" with the configuration and the variables of that test.", shown, objects, view.Program)
		})...)
	}
	ds = append(ds, deleteCopies(c, done)...)
	c.Report.Tell(ds)
	if h := c.Report.Human; h != nil {
		h.Say(fmt.Sprintf("Destroyed %s of earlier tests.\n", view.Numbered(destroyed, "object")))
	}
	if ds.HasErrors() {
		code = 1
	}
	return code
}

// deleteCopies deletes the files errored_test.tfstate of states whose objects were destroyed.
// lineages contains the lineages of these states.
func deleteCopies(c *command.Call, lineages map[string]bool) (ds diag.List) {
	files, _ := filepath.Glob(c.Path("errored_test*.tfstate"))
	for _, file := range files {
		b, err := c.Files.Whole(file)
		if err != nil {
			continue
		}
		s, _ := statefile.Parse(file, b)
		if s == nil || s.Lineage == "" || !lineages[s.Lineage] {
			continue
		}
		if err := os.Remove(file); err != nil {
			ds = append(ds, diag.Warnf(diag.CodeFilesWrite, nil, "Failed to delete a state", "The state of a test, which has no objects any more, cannot be deleted: %s.", err)...)
		}
	}
	return ds
}

// filtered returns the test files that -filter names; all if there is no such option.
func filtered(files []*testfile.File, o *options) ([]*testfile.File, diag.List) {
	if len(o.filters) == 0 {
		return files, nil
	}
	files = slices.DeleteFunc(files, func(f *testfile.File) bool {
		return !slices.ContainsFunc(o.filters, func(name string) bool { return filepath.ToSlash(filepath.Clean(name)) == f.Name })
	})
	if len(files) > 0 {
		return files, nil
	}
	return nil, diag.Warnf(diag.CodeCLINoTests, nil, "No tests were found", "-filter is being used but no tests were found. Make sure you're using a relative path to the current working directory.")
}

// leftStates are the states of earlier tests on disk.
type leftStates struct {
	of      *command.Call
	options *options
	files   []string // those that no run has taken yet
}

// take implements testrun.Remaining.
func (l *leftStates) take(ctx context.Context, f *testfile.File, r *testfile.Run) ([]testrun.Held, diag.List) {
	mine := func(path string) bool {
		run, _, ok := strings.Cut(filepath.Base(path), ".")
		return ok && run == stateName(f, r)
	}
	var out []testrun.Held
	var ds diag.List
	for _, file := range l.files {
		if !mine(file) {
			continue
		}
		enc, more := testEncryption(ctx, l.of, l.options)
		if ds = append(ds, more...); more.HasErrors() {
			break
		}
		open, more := takeFile(ctx, l.of, enc, file, "test cleanup")
		if ds = append(ds, more...); open != nil {
			out = append(out, &held{open, file})
		}
	}
	l.files = slices.DeleteFunc(l.files, mine)
	return out, ds
}

// cleaned reports the result of a cleanup.
func (p *printer) cleaned(r *testrun.Result, c *testrun.Cleanup) {
	where := r.File.Name + "/" + c.Run.Name
	about := map[string]any{"@testfile": r.File.Name, "@testrun": c.Run.Name}
	p.tell(c.Diags, r.File.Name, c.Run.Name)
	var names []string
	var left []map[string]any
	if c.Left != nil {
		for o := range c.Left.Objects() {
			one := map[string]any{"instance": o.Instance.String()}
			if o.Deposed != "" {
				one["deposed_key"] = string(o.Deposed)
			}
			names, left = append(names, o.String()), append(left, one)
		}
	}
	text := fmt.Sprintf("%s: destroyed %s", where, view.Numbered(c.Destroyed, "object"))
	switch {
	case c.Kept:
		text, about["test_cleanup"] = where+": kept "+strings.Join(names, ", "), map[string]any{"kept_resources": left}
	case c.Left != nil:
		text, about["test_cleanup"] = text+", left "+strings.Join(names, ", "), map[string]any{"failed_resources": left}
	default:
		about["test_cleanup"] = map[string]any{"failed_resources": []any{}}
	}
	if h := p.Report.Human; h != nil {
		h.Say(text + ".\n")
	}
	if c.Left != nil && !c.Kept {
		p.Report.Stream.TypedError(text, "test_cleanup", about)
		return
	}
	p.Report.Stream.Typed(text, "test_cleanup", about)
}
