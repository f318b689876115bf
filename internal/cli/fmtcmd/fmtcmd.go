// Package fmtcmd implements the command fmt, which rewrites configuration files in canonical
// form.
//
// Main function: Command. The one rule: a file that cannot be read or has syntax errors stays
// unchanged, and the other files are formatted anyway.
package fmtcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/textdiff"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/lang/format"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
)

type options struct {
	list, write, diff, check, recursive bool
}

// Command declares fmt.
func Command() command.Command {
	return command.Command{
		Name: "fmt", Synopsis: "Reformat your configuration in the standard style", Usage: "[options] [target...]",
		Mixed: true, Units: command.EachFolder,
		Help: `Rewrites configuration files to a canonical format: those with the
extensions .tf, .tofu, .tfvars, .tftest.hcl, .tofutest.hcl and .tfquery.hcl.

A target is a file, a directory, or "-" for standard input, whose result is
printed. Without one it is the current directory.`,
		Args: []command.Arg{{Name: "target", Help: "A file, a directory, or \"-\".", Optional: true, Repeated: true, Complete: flag.Files}},
		Examples: []command.Example{
			{Line: "fmt -recursive", Text: "Format everything below this directory."},
			{Line: "fmt -check -diff", Text: "Show what is not formatted, and end with 3 if anything is not."},
		},
		Exits: []command.Exit{{Code: 0, Help: "Everything is formatted."}, {Code: 2, Help: "A file has a mistake, or cannot be read or written."}, {Code: 3, Help: "With -check: something is not formatted."}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &options{list: true, write: true}
			fs := flag.Flags{
				flag.Bool(&o.list, "list", "List the files whose formatting differs. Always off with standard input."),
				flag.Bool(&o.write, "write", "Write the files. Always off with standard input or -check."),
				flag.Bool(&o.diff, "diff", "Show what changes."),
				flag.Bool(&o.check, "check", "Write nothing, and end with 3 if a file is not formatted."),
				flag.Bool(&o.recursive, "recursive", "Format what is in subdirectories too."),
				flag.NoColor(),
			}
			return fs, func(_ context.Context, c *command.Call) int { return run(c, o) }
		},
	}
}

func run(c *command.Call, o *options) int {
	c.Report.Human.Errs = c.Stderr
	targets := c.Args
	if len(targets) == 0 {
		targets = []string{"."}
	}
	if targets[0] == "-" {
		if len(targets) > 1 {
			return usage(c, diag.Errorf(diag.CodeCLIFlags, nil, "Invalid arguments", "Standard input (-) cannot be formatted together with other targets."))
		}
		return standardInput(c, o)
	}
	var ds diag.List
	var paths []string
	for _, t := range targets {
		found, err := format.Find(c.Dir, filepath.Clean(t), o.recursive)
		var ext *format.ErrExtension
		switch {
		case errors.As(err, &ext):
			ds = append(ds, diag.Errorf(diag.CodeCLIFmtExtension, nil, "Invalid file extension", "Only .tf, .tofu, .tfvars, .tftest.hcl, .tofutest.hcl, and .tfquery.hcl files can be processed with %s fmt", c.Table.Program)...)
		case errors.Is(err, fs.ErrNotExist):
			ds = append(ds, diag.Errorf(diag.CodeCLIFmtPath, nil, "Invalid file or directory path", "No file or directory at %s", filepath.Clean(t))...)
		case err != nil:
			ds = append(ds, diag.Errorf(diag.CodeFilesRead, nil, "Failed to look for files", "%s.", err)...)
		}
		paths = append(paths, found...)
	}
	if ds.HasErrors() {
		return usage(c, ds)
	}
	return files(c, o, paths)
}

// usage reports messages and returns the exit status of a failure, which is 2 for fmt.
func usage(c *command.Call, ds diag.List) int {
	c.Report.Tell(ds)
	return 2
}

// formatted returns text in canonical form, or errors.
func formatted(c *command.Call, path string, text []byte) ([]byte, diag.List) {
	out, diags := format.Configuration(text, path)
	if diags.HasErrors() {
		c.Report.Set.Add(&source.File{Path: path, Bytes: text})
		return nil, diag.FromHCL(diags)
	}
	return out, nil
}

func standardInput(c *command.Call, o *options) int {
	text, err := io.ReadAll(c.System.Stdin)
	if err != nil {
		return usage(c, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read from stdin", "%s.", err))
	}
	out, ds := formatted(c, "<stdin>", text)
	switch {
	case ds.HasErrors():
		return usage(c, ds)
	case !o.check && o.diff: // as in OpenTofu: instead of the text
		_, _ = io.WriteString(c.Stdout, textdiff.Unified("old/<stdin>", "new/<stdin>", text, out))
		return 0
	case !o.check:
		_, _ = c.Stdout.Write(out)
		return 0
	case bytes.Equal(out, text):
		return 0
	}
	return 3
}

// writers is the number of files written at the same time. Each write waits for the disk,
// which combines concurrent syncs.
const writers = 64

// files formats files, and reports them in order.
func files(c *command.Call, o *options, paths []string) int {
	type result struct {
		before, after []byte // after is nil if the file needs no change
		ds            diag.List
	}
	workers := 0
	if o.write && !o.check {
		workers = writers
	}
	formatting := make(chan struct{}, runtime.GOMAXPROCS(0)) // a parsed file needs far more memory than its text
	all := parallel.Map(len(paths), workers, func(i int) result {
		formatting <- struct{}{}
		text, err := readfile.Whole(c.Path(paths[i]))
		if err != nil {
			<-formatting
			return result{ds: diag.Errorf(diag.CodeConfigReadFile, nil, "Failed to read file", "%s.", err)}
		}
		out, ds := formatted(c, paths[i], text)
		<-formatting
		if ds.HasErrors() || bytes.Equal(out, text) {
			return result{ds: ds}
		}
		if o.write && !o.check {
			if err := atomicfile.Rewrite(c.Path(paths[i]), out); err != nil {
				return result{ds: diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write file", "%s.", err)}
			}
		}
		if !o.diff {
			text, out = nil, []byte{}
		}
		return result{before: text, after: out}
	})
	var ds diag.List
	code := 0
	for i, r := range all {
		ds = append(ds, r.ds...)
		if r.after == nil {
			continue
		}
		if o.check {
			code = 3
		}
		if o.list {
			fmt.Fprintln(c.Stdout, paths[i])
		}
		if o.diff {
			fmt.Fprint(c.Stdout, textdiff.Unified("old/"+filepath.ToSlash(paths[i]), "new/"+filepath.ToSlash(paths[i]), r.before, r.after))
		}
	}
	if c.Report.Tell(ds); ds.HasErrors() {
		return 2
	}
	return code
}
