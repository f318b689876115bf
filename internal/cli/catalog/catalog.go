// Package catalog implements the command catalog, which lists the components in repositories
// and registries: in a browser on a terminal, and otherwise as text or JSON.
//
// Main function: Command. The one rule: the terminal is restored, however the command ends.
package catalog

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/scaffold"
	"github.com/terrace-iac/terrace/internal/cli/screen"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate/catalog"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/unit"
)

type options struct {
	format, ignoreFile, root string
	noRoot                   bool
}

// Command declares catalog.
func Command() command.Command {
	return command.Command{
		Name: "catalog", Synopsis: "Browse modules, units and stacks, and use them", Usage: "[options] [SOURCE]", Units: command.TakesUnitFlags,
		Help: `Lists the modules, units, stacks and templates in repositories and in modules
of registries, with the title, the description and the tags of their READMEs.
The argument says where to look; without it, the catalog block of the nearest
terragrunt.hcl or root.hcl in the working directory or above; without that, the
working directory. Directories named in .terragrunt-catalog-ignore at the root
of a repository are left out.

On a terminal the list can be browsed: arrows, / to search, tab for one kind,
enter to read, s to scaffold the selected component, ? for all keys. Otherwise
it is printed.`,
		Args: []command.Arg{{Name: "SOURCE", Optional: true, Help: "A directory, a repository, or a module of a registry as tfr://HOST/NAMESPACE/NAME/SYSTEM.", Complete: flag.Folders}},
		Examples: []command.Example{
			{Line: "catalog", Text: "Browse the repositories in the catalog block of the estate."},
			{Line: "catalog github.com/acme/modules --format md", Text: "Print a whole repository as one document."},
			{Line: "catalog 'tfr:///terraform-aws-modules/vpc/aws' --format jsonl", Text: "Print a module of a registry and its submodules as JSON lines."},
		},
		Mixed: true,
		Prepare: func() (flag.Flags, command.Run) {
			f, o := &unitflags.Flags{}, &options{root: "root.hcl"}
			fs := flag.Flags{
				flag.Text(&o.format, "format", "FORMAT", "tui, the list to browse; list; jsonl, an object a line; md, a document.").Among("tui", "list", "jsonl", "md").Variables("TG_FORMAT"),
				flag.Text(&o.ignoreFile, "ignore-file", "PATH", "More directories to leave out, in the form of .terragrunt-catalog-ignore.").Variables("TG_IGNORE_FILE").Completes(flag.Files),
				flag.Text(&o.root, "root-file-name", "NAME", "The file with the catalog block, which new units include, root.hcl by default.").Variables("TG_ROOT_FILE_NAME"),
				flag.Bool(&o.noRoot, "no-include-root", "New units include no root file.").Variables("TG_NO_INCLUDE_ROOT"),
				flag.Ignored("no-shell", "", "").Variables("TG_NO_SHELL"),
				flag.Ignored("no-hooks", "", "").Variables("TG_NO_HOOKS"),
			}.WithTwoDashesShown()
			return append(fs, f.Declare().Hide().Show("working-dir", "source-map")...), func(ctx context.Context, c *command.Call) int {
				if err := f.Settle(c.Env); err != nil {
					return c.UsageError("Failed to parse command-line flags", err.Error())
				}
				if len(c.Args) > 1 {
					return c.UsageError("Too many command line arguments", "The catalog command takes one source at most.")
				}
				units.WorkIn(c, f)
				return run(ctx, c, f, o)
			}
		},
	}
}

func run(ctx context.Context, c *command.Call, f *unitflags.Flags, o *options) int {
	able := c.System.Terminal.In && c.System.Terminal.Out && c.System.Terminal.Keys != nil && c.Env.Get("TERM") != "dumb"
	switch {
	case o.format == "tui" && !able:
		return c.UsageError("Terminal required", "The list can be browsed on a terminal alone. Use --format list, jsonl or md.")
	case o.format == "" && able && c.Env.Get("TF_IN_AUTOMATION") == "":
		o.format = "tui"
	}
	sources, ds := find(ctx, c, f, o)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.AboveStatus(ds)
	if o.format == "tui" {
		return browse(ctx, c, o, sources)
	}
	var show writer
	switch o.format {
	case "jsonl":
		show = &lines{c.Stdout}
	case "md":
		show = &document{w: c.Stdout}
	default:
		show = &table{w: tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)}
	}
	code := 0
	var err error
	for i := range sources { // in order, each as soon as those before it are complete
		found, ds := sources[i].components()
		if c.Report.AboveStatus(ds); ds.HasErrors() {
			code = 1
		}
		for j := range found {
			if err == nil {
				err = show.entry(&found[j])
			}
		}
		if ctx.Err() != nil {
			return 1
		}
	}
	if err == nil {
		err = show.end(len(sources))
	}
	if err != nil {
		return c.Fail(flags.NotWritten(err))
	}
	return code
}

// browse shows the list on the terminal, and uses the component that the user chooses.
func browse(ctx context.Context, c *command.Call, o *options, sources []source) int {
	c.Report.Wait(fmt.Sprintf("Loading the catalog from %s.\n", view.Numbered(len(sources), "source")))
	b := &browser{}
	failed := 0
	for i := range sources {
		found, ds := sources[i].components()
		if c.Report.AboveStatus(ds); ds.HasErrors() {
			failed++
		}
		b.all = append(b.all, found...)
	}
	if failed > 0 {
		b.note = fmt.Sprintf("%d of %s could not be read: the reasons are printed at the end", failed, view.Numbered(len(sources), "source"))
	}
	sc, err := screen.Open(c.System, c.Stdout)
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the input", "%s.", err))
	}
	var chosen *catalog.Component
	var made *scaffold.Draft
	var ds diag.List
	for again := true; again && err == nil && !ds.HasErrors(); { // after a form that was canceled
		again = false
		if chosen, err = b.show(ctx, sc); err != nil || chosen == nil {
			break
		}
		if made, ds = draft(c, o, chosen); !ds.HasErrors() && !b.skip {
			again, err = made.Ask(ctx, sc)
		}
	}
	if e := sc.Close(); err == nil {
		err = e
	}
	switch {
	case err != nil:
		return c.Fail(diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the input", "%s.", err))
	case ctx.Err() != nil, chosen == nil && failed > 0:
		return 1
	case chosen == nil:
		return 0
	case ds.HasErrors():
		return c.Fail(ds)
	}
	return made.Write(c)
}

// draft returns the files for a component in the working directory.
func draft(c *command.Call, o *options, chosen *catalog.Component) (*scaffold.Draft, diag.List) {
	if chosen.Kind == catalog.Unit || chosen.Kind == catalog.Stack {
		return scaffold.Copy(chosen.Folder, c.Dir)
	}
	include := o.root
	if o.noRoot {
		include = ""
	}
	src := chosen.ComponentSource
	if root, _ := unit.SplitSource(src); unit.LocalSource(root) {
		src = sys.RelativeTo(c.Dir, chosen.Folder)
		if !strings.HasPrefix(src, ".") && !strings.HasPrefix(src, "/") {
			src = "./" + src
		}
	}
	return scaffold.Module(c, src, chosen.Folder, c.Dir, include)
}
