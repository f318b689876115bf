// Package unitfiles implements the commands that rewrite unit files: hcl fmt, migrate imports
// and migrate includes.
package unitfiles

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate/discovery/filter"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/migrate"
)

// Commands declares the commands of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "hcl", Synopsis: "Format or validate unit files", Usage: "<subcommand> [options]", Help: "Works on unit files.", Prepare: command.Group},
		hclFormatCmd(),
		{Name: "migrate", Synopsis: "Rewrite unit files from include to import, or back", Usage: "imports|includes [options] [PATH...]", Help: MigrateImports().Help, Prepare: command.Group},
		MigrateImports(),
		MigrateIncludes(),
	}
}

// hclFormatCmd declares hcl fmt.
func hclFormatCmd() command.Command {
	return command.Command{
		Name: "hcl fmt", Aliases: []string{"hcl format"}, Synopsis: "Rewrite files into the canonical format", Usage: "[options]", Units: command.TakesUnitFlags,
		Help: `Rewrites all *.hcl files below the working directory into the canonical
format, and lists those that changed. Copies below .terragrunt-cache and
.terragrunt-stack are left alone.`,
		Prepare: func() (flag.Flags, command.Run) {
			o := &formatOptions{units: &unitflags.Flags{}}
			fs := flag.Flags{
				flag.Bool(&o.check, "check", "Write nothing; the status is 1 if a file needs formatting."),
				flag.Bool(&o.diff, "diff", "Show what changes."),
				flag.Text(&o.file, "file", "PATH", "Format this file alone.").Completes(flag.Files),
				flag.Bool(&o.stdin, "stdin", "Format what comes from stdin, to stdout."),
				flag.List(&o.exclude, "exclude-dir", "PATH", "Leave a directory out. May be repeated.").Completes(flag.Folders),
			}.WithTwoDashesShown()
			all := o.units.Declare().Hide().Show("filter", "working-dir")
			all.Named("filter").Help = "Take the files that a path or name matches; ! in front leaves them out. May be repeated."
			return append(fs, all...), func(_ context.Context, c *command.Call) int {
				if err := o.units.Settle(c.Env); err != nil {
					return c.UsageError("Failed to parse command-line flags", err.Error())
				}
				units.WorkIn(c, o.units)
				o.units.NoUse("hcl fmt", "filter parallelism")
				c.Report.AboveStatus(o.units.WithoutEffect())
				if o.stdin {
					return formatInput(c, o)
				}
				paths, ds := filesToFormat(c, o)
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				return format(c, o, paths)
			}
		},
	}
}

type formatOptions struct {
	check, diff, stdin bool
	file               string
	exclude            []string
	units              *unitflags.Flags
}

// formatted returns text in canonical form, or errors.
func formatted(set *source.Set, path string, text []byte) ([]byte, diag.List) {
	if ds := diag.TooDeep(path, text); ds != nil {
		set.Add(unit.Source(path, text))
		return nil, ds
	}
	if out, ok := hclnative.Format(text, path); ok {
		return out, nil
	}
	if _, diags := hclsyntax.ParseConfig(text, path, hcl.InitialPos); diags.HasErrors() {
		set.Add(unit.Source(path, text))
		return nil, diag.FromHCL(diags)
	}
	return hclwrite.Format(text), nil
}

// formatInput formats standard input. With --check or --diff it does not print the text.
func formatInput(c *command.Call, o *formatOptions) int {
	text, err := io.ReadAll(c.System.Stdin)
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeFilesRead, nil, "Failed to read from stdin", "%s.", err))
	}
	out, ds := formatted(c.Report.Set, "stdin", text)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if !o.check && !o.diff {
		_, _ = c.Stdout.Write(out)
		return 0
	}
	if bytes.Equal(out, text) {
		return 0
	}
	if o.diff {
		_, _ = io.WriteString(c.Stdout, (&migrate.Change{Path: "stdin", Before: text, After: out}).Diff())
	}
	if o.check {
		return c.Fail(needsFormatting("stdin"))
	}
	return 0
}

// needsFormatting returns the error of --check for a file that is not in canonical form.
func needsFormatting(path string) diag.List {
	return diag.Errorf(diag.CodeCLIFormat, nil, "File needs formatting", "The file %s needs formatting.", path)
}

// filesToFormat returns the *.hcl files below the working directory, except copies that a run
// or a stack made.
func filesToFormat(c *command.Call, o *formatOptions) ([]string, diag.List) {
	if o.file != "" {
		path := c.Path(o.file)
		if _, err := os.Stat(path); err != nil {
			return nil, diag.Errorf(diag.CodeConfigReadFile, nil, "Failed to read file", "%s.", err)
		}
		return []string{path}, nil
	}
	takes, ds := filter.Paths(c.Dir, o.units.Filters)
	if ds.HasErrors() {
		return nil, ds
	}
	var skip, out []string
	for _, dir := range o.exclude {
		skip = append(skip, c.Path(filepath.Clean(dir)))
	}
	err := filepath.WalkDir(c.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if d.Name() == ".terragrunt-cache" || d.Name() == unit.StackDir || slices.Contains(skip, path) {
				return filepath.SkipDir
			}
		case strings.HasSuffix(path, ".hcl") && takes(path):
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		return nil, diag.Errorf(diag.CodeFilesRead, nil, "Failed to look for files", "%s.", err)
	}
	return out, nil
}

// format formats files, or reports which files need it. An unreadable file does not prevent
// the others from being formatted.
func format(c *command.Call, o *formatOptions, paths []string) int {
	type result struct {
		change *migrate.Change // nil if the file needs no change
		ds     diag.List
	}
	all := parallel.Map(len(paths), 0, func(i int) result {
		text, err := readfile.Whole(paths[i])
		if err != nil {
			return result{nil, diag.Errorf(diag.CodeConfigReadFile, nil, "Failed to read file", "%s.", err)}
		}
		out, ds := formatted(c.Report.Set, paths[i], text)
		if ds.HasErrors() && unit.OtherTool(paths[i]) {
			return result{}
		}
		if ds.HasErrors() || bytes.Equal(out, text) {
			return result{nil, ds}
		}
		return result{&migrate.Change{Path: units.PathShown(c, paths[i]), Before: text, After: out}, nil}
	})
	var ds diag.List
	for i, r := range all {
		ds = append(ds, r.ds...)
		if r.change == nil {
			continue
		}
		if o.diff {
			fmt.Fprint(c.Stdout, r.change.Diff())
		}
		if o.check {
			ds = append(ds, needsFormatting(r.change.Path)...)
			continue
		}
		if err := atomicfile.Rewrite(paths[i], r.change.After); err != nil {
			ds = append(ds, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write file", "%s.", err)...)
		} else if !o.diff {
			fmt.Fprintln(c.Stdout, r.change.Path)
		}
	}
	return c.Report.Status(ds)
}
