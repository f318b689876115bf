// Package affected implements the command affected, which compares two revisions by the values of
// their configuration.
package affected

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/markdown"
	"github.com/terrace-iac/terrace/internal/cli/planpage"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/estate/revision"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// options contains the flags of the command.
type options struct {
	json, detailed, none, blame, exec, recursive bool
	overUnits                                    bool // recursive, and there are units
	vars                                         []workdir.VarFlag
	units                                        unitflags.Flags
	markdown                                     request.Markdown
	page                                         string          // path of the HTML page; "" for none
	warnings                                     *warnings       // nil if they are not reported
	errors                                       []units.Located // of units that were not compared
}

// Command declares affected.
func Command() command.Command {
	return command.Command{
		Name: "affected", Synopsis: "Show which values differ between two revisions", Usage: "[options] [BASE[..HEAD]]",
		Units: command.TakesUnitFlags,
		Help: `Compares two revisions of the working directory by the values of their
configuration: resources, data sources, outputs, checks, provider
configurations and module calls, after evaluation, overrides and merges. In an
estate, also the inputs, hooks, generated files and dependencies of its units.
Comments, white space and moved lines make no difference. Each difference is
listed below the changed line that causes it.

BASE and HEAD are commits, branches or tags. Without HEAD, the working tree is
compared. BASE... and BASE...HEAD compare with the merge base. Without an
argument, BASE is the merge base with the default branch. Two arguments are two
directories.

No state is read, no provider is started, and without -exec no program runs. A
value that is
only known after an apply may change if its definition differs, or that of a
resource it depends on. It is then listed as "may change" with the reason.
Sensitive values are never shown.

A unit that has errors in one of the revisions is not compared. The errors are
printed, the other units are compared, and the exit status is 1.`,
		Args:     []command.Arg{{Name: "BASE[..HEAD]", Help: "The revisions to compare, or two directories.", Optional: true, Repeated: true}},
		Examples: []command.Example{{Line: "affected main...", Text: "Show what the branch changes, including uncommitted changes."}, {Line: "affected -expect-none HEAD", Text: "Check that a refactoring changes no value."}},
		Exits:    []command.Exit{{Code: 0, Help: "The revisions were compared."}, {Code: 1, Help: "An error occurred, or values differ although -expect-none is set."}, {Code: 2, Help: "With -detailed-exitcode: values differ."}},
		Mixed:    true,
		Prepare: func() (flag.Flags, command.Run) {
			o := &options{}
			fs := flag.Flags{
				flag.Bool(&o.blame, "blame", "Add the commit, author and date of each changed line."),
				flag.Bool(&o.detailed, "detailed-exitcode", "Exit with status 2 if values differ."),
				flag.Bool(&o.exec, "exec", "Run the programs of run_cmd, sops_decrypt_file and the like, in both revisions with the same environment."),
				flag.Bool(&o.none, "expect-none", "Exit with status 1 if values differ."),
				flag.Bool(&o.recursive, "recursive", "Compare all directories of configuration below the working directory, such as a library of modules with its examples, and the units. After errors in one of them, the others are compared, and the exit status is 1."),
				flag.Bool(&o.json, "json", "Produce output in a machine-readable JSON format."),
			}
			fs = append(fs, flags.Markdown(&o.markdown)...)
			fs = append(fs, flag.Text(&o.page, "html", "FILE", "Also write the differences to an HTML page.").Completes(flag.Files))
			ofUnits := slices.DeleteFunc(o.units.DeclareFor(false), func(x flag.Flag) bool { return x.Name == "html" }) // that of plan
			fs = append(append(fs, flag.Vars(&o.vars)...), ofUnits...)
			return fs, func(ctx context.Context, c *command.Call) int {
				if err := o.units.Settle(c.Env); err != nil {
					return c.UsageError("Failed to parse command-line flags", err.Error())
				}
				if len(c.Args) > 2 {
					return c.UsageError("Too many command line arguments", "The command takes BASE..HEAD, or two directories.")
				}
				units.WorkIn(c, &o.units)
				return run(ctx, c, o)
			}
		},
	}
}

func run(ctx context.Context, c *command.Call, o *options) int {
	if f := c.System.LeaveHeap; f != nil {
		f(leftHeap)
	}
	if real, err := filepath.EvalSymlinks(c.Dir); err == nil && len(c.Args) < 2 { // git names files by it
		c.WorkIn(real)
	}
	trees := &estate.Worktrees{}
	c.Interrupts.Removes(trees.Remove)
	pair, ds := units.Revisions(ctx, c, trees, c.Dir, c.Args, o.exec)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	defer pair.Close(ctx)
	r := &affected.Report{Base: pair.Base.Name, Head: pair.Head.Name}
	o.warnings = &warnings{}
	compare := compareDirectories
	switch {
	case o.recursive:
		compare = compareLibrary
	case overUnits(c, o, pair.Head):
		compare = compareEstates
	}
	if ds = compare(ctx, c, o, pair, r); ds.HasErrors() && len(r.NotCompared) == 0 {
		return c.Fail(ds)
	}
	r.Finish()
	if o.blame {
		blame(ctx, c, pair, r)
	}
	onBase, onHead := o.warnings.lists(c.Report.Dir, pair)
	messages := append(slices.Clip(o.errors), units.Located{Files: c.Report.Set, Messages: ds.Errors()}, units.Located{Files: &o.warnings.head.set, Messages: onHead}, units.Located{Files: &o.warnings.base.set, Messages: onBase})
	if o.json {
		for _, x := range messages {
			j := view.JSONMessages(x.Files, c.Report.Names)
			for _, m := range j.Objects(c.Report.Filter(x.Messages)) {
				if m.Range != nil {
					m.Range.Filename = filepath.ToSlash(sys.RelativeTo(c.Report.Dir, m.Range.Filename))
				}
				r.Diagnostics = append(r.Diagnostics, m)
			}
		}
		doc, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write JSON", "The differences cannot be written: %s.", err))
		}
		fmt.Fprintf(c.Stdout, "%s\n", doc)
	} else {
		o.warnings.print(c, onBase, onHead)
		printText(c.Report, r, o.noun())
	}
	if o.page != "" {
		if ds := planpage.WriteFile(c, o.page, page(c, r, o.noun())); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	if o.markdown.File != "" {
		var all []markdown.Message
		for _, x := range messages {
			all = append(all, flags.MarkdownMessages(c, x.Files, c.Report.Filter(x.Messages))...)
		}
		if ds := flags.WriteMarkdown(c, o.markdown, document(c, r, o.noun(), all)); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	switch differ := len(r.Units) > 0; {
	case len(r.NotCompared) > 0:
		for _, x := range append(slices.Clip(o.errors), units.Located{Files: c.Report.Set, Messages: ds}) {
			if o.json { // Stdout is the document
				c.Report.AsideWith(x.Files, x.Messages)
			} else {
				c.Report.TellFrom(x.Files, x.Messages)
			}
		}
		return 1
	case differ && o.none:
		return 1
	case differ && o.detailed:
		return 2
	}
	return 0
}

// leftHeap is the size of the heap, in bytes, below which no garbage is collected. A comparison
// evaluates one unit after the other and keeps little of each.
const leftHeap = 128 << 20

// blame adds the commits of the changed lines.
func blame(ctx context.Context, c *command.Call, pair *revision.Pair, r *affected.Report) {
	for _, x := range r.Causes {
		at := pair.Head
		if x.Removed {
			at = pair.Base
		}
		path := x.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		b, ok := pair.Blame(ctx, at, at.Inside(path), x.Line)
		if !ok {
			continue
		}
		x.Commit, x.Author = b.Commit, b.Author
		if sec, err := strconv.ParseInt(b.Date, 10, 64); err == nil {
			x.Date = time.Unix(sec, 0).UTC().Format(time.RFC3339)
		}
	}
}

// noun returns the word for what is compared besides the working directory.
func (o *options) noun() string {
	switch {
	case o.overUnits:
		return "configuration"
	case o.recursive:
		return "module"
	}
	return "unit"
}
