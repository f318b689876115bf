package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/migrate"
)

// unitCommands are the commands that look at unit files or rewrite them.
func unitCommands() []command {
	return []command{
		{name: "hcl", synopsis: "Format or validate unit files", usage: hclUsage, run: twoWords("hcl", "hcl fmt or hcl validate")},
		{name: "hcl fmt", synopsis: "Format unit files", usage: hclFormatUsage, run: hclFormatCommand},
		{name: "hcl format", synopsis: "Format unit files", usage: hclFormatUsage, run: hclFormatCommand},
		{name: "hcl validate", synopsis: "Check whether unit files are valid", usage: hclValidateUsage, run: hclValidateCommand},
		{name: "info", synopsis: "Tell with what a unit runs", usage: infoUsage, run: twoWords("info", "info print")},
		{name: "info print", synopsis: "Tell with what a unit runs", usage: infoUsage, run: infoCommand},
		{name: "migrate", synopsis: "Rewrite unit files from include to import", usage: migrateUsage, run: twoWords("migrate", "migrate imports")},
		{name: "migrate imports", synopsis: "Rewrite unit files from include to import", usage: migrateUsage, run: migrateCommand},
	}
}

// twoWords answers the first word of a command of two.
func twoWords(word, names string) func(context.Context, *session, []string) int {
	return func(_ context.Context, s *session, _ []string) int {
		return s.usageError(word, "No command given", "The command is "+names+".")
	}
}

type formatOptions struct {
	check, diff, stdin bool
	file               string
	exclude            listFlag
	units              *unitFlags
}

func hclFormatCommand(_ context.Context, s *session, args []string) int {
	o := &formatOptions{}
	var err error
	if o.units, args, err = takeUnitFlags(args, s.Env); err != nil {
		return s.usageError("hcl fmt", "Failed to parse command-line flags", err.Error())
	}
	f := newFlags("hcl fmt")
	f.BoolVar(&o.check, "check", false, "")
	f.BoolVar(&o.diff, "diff", false, "")
	f.BoolVar(&o.stdin, "stdin", false, "")
	f.StringVar(&o.file, "file", "", "")
	f.Var(&o.exclude, "exclude-dir", "")
	if !s.parse(f, args) {
		return 1
	}
	s.workIn(o.units)
	o.units.noUse("hcl fmt", "filter parallelism")
	s.aside(o.units.withoutEffect())
	if o.stdin {
		return s.formatInput()
	}
	paths, ds := s.filesToFormat(o)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	return s.format(o, paths)
}

// workIn goes to the folder of --working-dir.
func (s *session) workIn(f *unitFlags) {
	if f.working != "" {
		s.System = s.System.In(f.working)
	}
}

// formatted is a text in its canonical form, unless it has errors.
func formatted(set *source.Set, path string, text []byte) ([]byte, diag.List) {
	if _, diags := hclsyntax.ParseConfig(text, path, hcl.InitialPos); diags.HasErrors() {
		set.Add(unit.Source(path, text))
		return nil, diag.FromHCL(diags)
	}
	return hclwrite.Format(text), nil
}

func (s *session) formatInput() int {
	text, err := io.ReadAll(s.Stdin)
	if err != nil {
		return s.fail(diag.Errorf(nil, "Failed to read from stdin", "%s.", err))
	}
	out, ds := formatted(s.set, "stdin", text)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	_, _ = s.Stdout.Write(out)
	return 0
}

// filesToFormat lists the *.hcl files below the working folder, but for copies
// that a run or a stack made.
func (s *session) filesToFormat(o *formatOptions) ([]string, diag.List) {
	if o.file != "" {
		path := s.Path(o.file)
		if _, err := os.Stat(path); err != nil {
			return nil, diag.Errorf(nil, "Failed to read file", "%s.", err)
		}
		return []string{path}, nil
	}
	takes, ds := estate.PathFilter(s.Dir, o.units.filters)
	if ds.HasErrors() {
		return nil, ds
	}
	var skip, out []string
	for _, dir := range o.exclude {
		skip = append(skip, s.Path(filepath.Clean(dir)))
	}
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
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
		return nil, diag.Errorf(nil, "Failed to look for files", "%s.", err)
	}
	return out, nil
}

// format formats files, or tells which of them need it. One that cannot be read
// does not keep the others from it.
func (s *session) format(o *formatOptions, paths []string) int {
	type result struct {
		change *migrate.Change // nil if nothing is to be done
		ds     diag.List
	}
	all := parallel.Map(len(paths), 0, func(i int) result {
		text, err := os.ReadFile(paths[i])
		if err != nil {
			return result{nil, diag.Errorf(nil, "Failed to read file", "%s.", err)}
		}
		out, ds := formatted(s.set, paths[i], text)
		if ds.HasErrors() || bytes.Equal(out, text) {
			return result{nil, ds}
		}
		return result{&migrate.Change{Path: s.pathShown(paths[i]), Before: text, After: out}, nil}
	})
	var ds diag.List
	for i, r := range all {
		ds = append(ds, r.ds...)
		if r.change == nil {
			continue
		}
		if o.diff {
			fmt.Fprint(s.Stdout, r.change.Diff())
		}
		if o.check {
			ds = append(ds, diag.Errorf(nil, "File needs formatting", "The file %s needs formatting.", r.change.Path)...)
			continue
		}
		if err := writeOver(paths[i], r.change.After); err != nil {
			ds = append(ds, diag.Errorf(nil, "Failed to write file", "%s.", err)...)
		} else if !o.diff {
			fmt.Fprintln(s.Stdout, r.change.Path)
		}
	}
	return s.status(ds)
}

// writeOver replaces a file by another text with the same permissions. Where the
// path is a link, the file that it leads to is replaced.
func writeOver(path string, text []byte) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o200 == 0 {
		return &fs.PathError{Op: "write", Path: real, Err: errors.New("the file is read-only")}
	}
	return atomicfile.WriteMode(real, text, info.Mode().Perm())
}

// pathShown is a path as it is shown: seen from the working folder, if it lies below.
func (s *session) pathShown(path string) string {
	if rel, err := filepath.Rel(s.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func hclUsage() string {
	return strings.TrimSpace("Usage: " + view.Program + " [global options] hcl <subcommand> [options]\n\n" +
		"  Works on unit files.\n\nSubcommands:\n    fmt         Rewrite files into the canonical format\n    validate    Check whether unit files are valid")
}

func hclFormatUsage() string {
	return usageText("Usage: "+view.Program+" [global options] hcl fmt [options]\n\n"+
		"  Rewrites all *.hcl files below the working folder into the canonical format,\n  and lists those that changed. Copies below .terragrunt-cache and\n  .terragrunt-stack are left alone.",
		option("--check", "Write nothing; the status is 1 if a file needs formatting."),
		option("--diff", "Show what changes."),
		option("--file=PATH", "Format this file alone."),
		option("--stdin", "Format what comes from stdin, to stdout."),
		option("--exclude-dir=PATH", "Leave a folder out. May be repeated."),
		option("--filter=QUERY", "Take the files that a path or name matches; ! in front leaves them out. May be repeated."),
		option("--working-dir=PATH", "The folder to work in."))()
}
