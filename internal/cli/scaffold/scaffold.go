// Package scaffold implements the command that writes the unit file for a module, and copies
// units and stacks.
//
// Main functions: Command; Module and Copy, for callers that have already found the module or
// unit. The one rule: it never overwrites a file.
package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate/catalog"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// Command declares scaffold.
func Command() command.Command {
	return command.Command{
		Name: "scaffold", Synopsis: "Write the file of a new unit for a module, or copy a unit or stack", Usage: "[options] MODULE", Units: command.TakesUnitFlags,
		Help: `Writes a terragrunt.hcl in the working directory that runs a module: its
source, the include of the root file, and all variables of the module as
inputs, each with its type and description. Inputs without a default are to be
filled in, those with one stand there as comments. The module is fetched if it
is not on this machine.

Where the source is a unit or a stack, its files are copied into the working
directory, with a terragrunt.values.hcl of the values that they ask for.`,
		Args: []command.Arg{{Name: "MODULE", Help: "The source of the module, as in a terraform block.", Complete: flag.Folders}},
		Examples: []command.Example{
			{Line: "scaffold ../../modules/vpc", Text: "A unit for a module of the same repository."},
			{Line: "scaffold 'github.com/acme/modules//vpc?ref=v1.2.0'", Text: "A unit for a released module."},
			{Line: "scaffold 'github.com/acme/catalog//units/app'", Text: "A copy of a unit."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			f, o := &unitflags.Flags{}, &options{root: "root.hcl"}
			fs := flag.Flags{
				flag.Text(&o.folder, "output-folder", "PATH", "Where the file is written, the working directory by default.").Completes(flag.Folders),
				flag.Text(&o.root, "root-file-name", "NAME", "The file that the unit includes, root.hcl by default.").Variables("TG_ROOT_FILE_NAME"),
				flag.Bool(&o.noRoot, "no-include-root", "Include no root file.").Variables("TG_NO_INCLUDE_ROOT"),
			}.WithTwoDashesShown()
			return append(fs, f.Declare().Hide().Show("working-dir", "source-map")...), func(ctx context.Context, c *command.Call) int {
				if err := f.Settle(c.Env); err != nil {
					return c.UsageError("Failed to parse command-line flags", err.Error())
				}
				if len(c.Args) != 1 {
					return c.UsageError("One module expected", "The command takes the source of one module. Templates are not rendered.")
				}
				units.WorkIn(c, f)
				return run(ctx, c, f, o)
			}
		},
	}
}

type options struct {
	folder, root string
	noRoot       bool
}

func run(ctx context.Context, c *command.Call, f *unitflags.Flags, o *options) int {
	to := c.Path(cmp.Or(o.folder, "."))
	src, dir, ds := find(ctx, c, f, c.Args[0], to)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if holds(dir, unit.DefaultName) || holds(dir, unit.StackName) {
		return Copy(c, dir, to)
	}
	return Module(c, src, dir, to, o.include())
}

func (o *options) include() string {
	if o.noRoot {
		return ""
	}
	return o.root
}

func holds(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// Module writes a unit file for a module. dir is the directory of the module, src the source
// in the unit file, and include the name of the root file ("" for none).
func Module(c *command.Call, src, dir, to, include string) int {
	m, ds := config.Load(dir, config.Options{Set: c.Report.Set})
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if len(m.Variables) == 0 && !holdsModule(dir) {
		return c.UsageError("Not a module", fmt.Sprintf("%s leads to %s, which holds no configuration, so it is no module.", source.HideCredentials(src), dir))
	}
	path := filepath.Join(to, unit.DefaultName)
	if err := write(path, text(src, include, m)); err != nil {
		return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the configuration", "%s.", err))
	}
	c.Report.Say("Wrote " + sys.RelativeTo(c.Dir, path) + "\n")
	return 0
}

// holdsModule reports whether a directory contains configuration.
func holdsModule(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(en fs.DirEntry) bool { return catalog.IsConfiguration(en.Name()) })
}

// find returns the directory of a module, and the source with which a unit in the directory to
// refers to it.
func find(ctx context.Context, c *command.Call, f *unitflags.Flags, src, to string) (named, dir string, ds diag.List) {
	root, sub := unit.SplitSource(unit.Getter(src))
	if unit.LocalSource(root) {
		dir = c.Path(strings.TrimPrefix(root, "file://"))
		named = root
		if rel, err := filepath.Rel(to, dir); err == nil && !filepath.IsAbs(root) {
			named = filepath.ToSlash(rel)
		}
		if sub != "" {
			named += "//" + sub
		}
	} else {
		o, ds := units.Options(c, f, "init", nil, nil)
		if ds.HasErrors() {
			return "", "", ds
		}
		if dir, ds = o.Sources.Fetch(ctx, root); ds.HasErrors() {
			return "", "", ds
		}
		named = src
	}
	dir = filepath.Join(dir, filepath.FromSlash(sub))
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", "", diag.Errorf(diag.CodeEstateModuleNotFound, nil, "Module not found", "The source of the module, %q, leads to %s, which is not a directory.", source.HideCredentials(src), dir)
	}
	return named, dir, nil
}

// write writes a new file. It fails if the file exists.
func write(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and nothing is written over", path)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	return errors.Join(err, file.Close())
}

// text returns the unit file for a module.
func text(src, include string, m *config.Module) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "terraform {\n  source = %s\n}\n", quoted(src))
	if include != "" {
		fmt.Fprintf(&b, "\ninclude \"root\" {\n  path = find_in_parent_folders(%s)\n}\n", quoted(include))
	}
	var required, optional []*config.Variable
	for _, name := range slices.Sorted(maps.Keys(m.Variables)) {
		if v := m.Variables[name]; v.Required() {
			required = append(required, v)
		} else {
			optional = append(optional, v)
		}
	}
	b.WriteString("\ninputs = {\n")
	group(&b, "Required", required, func(v *config.Variable) string {
		return fmt.Sprintf("%s = %s # TODO: fill in value", v.Name, placeholder(v.Type))
	})
	if len(required) > 0 && len(optional) > 0 {
		b.WriteString("\n")
	}
	group(&b, "Optional, with their defaults", optional, func(v *config.Variable) string {
		value := string(hclwrite.TokensForValue(v.Default).Bytes())
		if v.Sensitive {
			value = "\"\""
		}
		return commented(v.Name + " = " + value)
	})
	b.WriteString("}\n")
	return hclwrite.Format(b.Bytes())
}

func group(b *bytes.Buffer, title string, all []*config.Variable, line func(*config.Variable) string) {
	for i, v := range all {
		if i == 0 {
			fmt.Fprintf(b, "  # %s\n", title)
		}
		fmt.Fprintf(b, "\n  %s\n", commented("Type: "+typeexpr.TypeString(v.Type)))
		if v.Description != "" {
			fmt.Fprintf(b, "  %s\n", commented("Description: "+strings.TrimSpace(v.Description)))
		}
		fmt.Fprintf(b, "  %s\n", line(v))
	}
}

// commented returns text of one or more lines as a comment in the inputs.
func commented(text string) string {
	return "# " + strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), "\n", "\n  # ")
}

// placeholder returns an empty value of a type, as an expression.
func placeholder(ty cty.Type) string {
	switch {
	case ty == cty.Number:
		return "0"
	case ty == cty.Bool:
		return "false"
	case ty.IsListType(), ty.IsSetType(), ty.IsTupleType():
		return "[]"
	case ty.IsMapType(), ty.IsObjectType():
		return "{}"
	}
	return "\"\""
}

func quoted(s string) string { return string(hclwrite.TokensForValue(cty.StringVal(s)).Bytes()) }
