// Package scaffold implements the command that writes the unit file for a module, and copies
// units and stacks.
//
// Main functions: Command; Module and Copy, which return a Draft, for callers that have already
// found the module or unit. The one rule: it never overwrites a file.
package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
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
	"github.com/terrace-iac/terrace/internal/cli/screen"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate/catalog"
	"github.com/terrace-iac/terrace/internal/estate/modules"
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
directory, with a terragrunt.values.hcl of the values that they ask for.

On a terminal, a form asks for the values first: enter to edit one, s to write
the files, ctrl-d to write them without the values that are missing, esc to
cancel. --non-interactive skips the form.`,
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
			return append(fs, f.Declare().Hide().Show("working-dir", "source-map", "non-interactive")...), func(ctx context.Context, c *command.Call) int {
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
	var d *Draft
	if holds(dir, unit.DefaultName) || holds(dir, unit.DefaultJSONName) || holds(dir, unit.StackName) {
		d, ds = Copy(dir, to)
	} else {
		d, ds = Module(c, src, dir, to, o.include())
	}
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if t := c.System.Terminal; t.In && t.Out && !f.NonInteractive && len(d.fields) > 0 {
		sc, err := screen.Open(c.System, c.Stdout)
		canceled := false
		if err == nil {
			canceled, err = d.Ask(ctx, sc)
			err = errors.Join(err, sc.Close())
		}
		switch {
		case err != nil:
			return c.Fail(diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the input", "%s.", err))
		case ctx.Err() != nil:
			return 1
		case canceled:
			c.Report.Say("Canceled. Nothing was written.\n")
			return 0
		}
	}
	return d.Write(c)
}

// A Draft is a set of files that is not written yet.
type Draft struct {
	to     string // the directory
	title  string
	fields []*field
	build  func() map[string][]byte // returns the files by relative path, with the values of fields
}

// Ask asks the user for values in a form. canceled means that nothing is to be written.
func (d *Draft) Ask(ctx context.Context, sc *screen.Screen) (canceled bool, err error) {
	if len(d.fields) == 0 {
		return false, nil
	}
	f := &form{title: d.title, fields: d.fields}
	ended, err := sc.Show(ctx, f)
	return !ended || f.canceled, err
}

// free returns an error if one of the files exists.
func (d *Draft) free() diag.List {
	for _, name := range slices.Sorted(maps.Keys(d.build())) {
		if holds(d.to, name) {
			return notWritten(fmt.Errorf("%s exists, and nothing is written over", filepath.Join(d.to, name)))
		}
	}
	return nil
}

// Write writes the files and returns the exit code. It writes nothing if one of them exists.
func (d *Draft) Write(c *command.Call) int {
	if ds := d.free(); ds.HasErrors() {
		return c.Fail(ds)
	}
	files := d.build()
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		if err := write(filepath.Join(d.to, name), files[name]); err != nil {
			return c.Fail(notWritten(err))
		}
	}
	for _, name := range names {
		c.Report.Say("Wrote " + sys.RelativeTo(c.Dir, filepath.Join(d.to, name)) + "\n")
	}
	return 0
}

func notWritten(err error) diag.List {
	return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the configuration", "%s.", err)
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

// Module returns the unit file for a module. dir is the directory of the module, src the source
// in the unit file, and include the name of the root file ("" for none).
func Module(c *command.Call, src, dir, to, include string) (*Draft, diag.List) {
	m, ds := config.Load(dir, config.Options{Set: c.Report.Set})
	if ds.HasErrors() {
		return nil, ds
	}
	if len(m.Variables) == 0 && !holdsModule(dir) {
		return nil, diag.Errorf(diag.CodeEstateModuleNotFound, nil, "Not a module", "%s leads to %s, which holds no configuration, so it is no module.", source.HideCredentials(src), dir)
	}
	d := &Draft{to: to, title: "Inputs of " + source.HideCredentials(src)}
	for _, required := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(m.Variables)) {
			v := m.Variables[name]
			if v.Required() != required {
				continue
			}
			x := &field{name: name, ty: v.Type, shown: typeexpr.TypeString(v.Type), description: v.Description, required: required}
			if !required && !v.Sensitive {
				x.fallback = string(hclwrite.TokensForValue(v.Default).Bytes())
			}
			d.fields = append(d.fields, x)
		}
	}
	d.build = func() map[string][]byte {
		values := map[string]string{}
		for _, x := range d.fields {
			values[x.name] = x.value
		}
		return map[string][]byte{unit.DefaultName: text(src, include, m, values)}
	}
	return d, d.free()
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
		if root, ds = pinned(ctx, c, root); ds.HasErrors() {
			return "", "", ds
		}
		if dir, ds = o.Sources.Fetch(ctx, root); ds.HasErrors() {
			return "", "", ds
		}
		head, query, versioned := strings.Cut(root, "?")
		if named = head; sub != "" {
			named += "//" + sub
		}
		if versioned {
			named += "?" + query
		}
	}
	dir = filepath.Join(dir, filepath.FromSlash(sub))
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", "", diag.Errorf(diag.CodeEstateModuleNotFound, nil, "Module not found", "The source of the module, %q, leads to %s, which is not a directory.", source.HideCredentials(src), dir)
	}
	return named, dir, nil
}

// pinned returns the source of a package with the newest release, as in Terragrunt: the version
// of a module in a registry, or the tag of a git repository. A source that names one is not
// changed, nor is a repository without releases.
func pinned(ctx context.Context, c *command.Call, root string) (string, diag.List) {
	head, query, _ := strings.Cut(root, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return root, nil // fetching it reports the error
	}
	switch {
	case strings.HasPrefix(root, "tfr://") && !q.Has("version"):
		cfg, ds := c.Directory.Settings()
		if ds.HasErrors() {
			return "", ds
		}
		v, err := modules.NewestVersion(ctx, c.Directory, cfg, root)
		if err != nil {
			return "", diag.Errorf(diag.CodeModuleFetch, nil, "Failed to fetch the module", "The module %q cannot be fetched: %s.", source.HideCredentials(root), err)
		}
		q.Set("version", v)
	case strings.HasPrefix(root, "git::") && !q.Has("ref"):
		tag := NewestTag(ctx, c, strings.TrimPrefix(head, "git::"))
		if tag == "" {
			return root, nil
		}
		q.Set("ref", tag)
	default:
		return root, nil
	}
	return head + "?" + q.Encode(), nil
}

// NewestTag returns the tag of the newest release of a git repository, or "" if there is none or
// if the repository cannot be read.
func NewestTag(ctx context.Context, c *command.Call, repo string) string {
	var out strings.Builder
	err := c.Run(ctx, sys.Command{Path: "git", Args: []string{"ls-remote", "--quiet", "--refs", "--tags", "--", repo}, Dir: c.Dir, Env: c.Env.With("GIT_TERMINAL_PROMPT=0"), Stdout: &out})
	if err != nil {
		return ""
	}
	var tags []string
	for line := range strings.SplitSeq(out.String(), "\n") {
		if _, tag, ok := strings.Cut(strings.TrimSpace(line), "refs/tags/"); ok {
			tags = append(tags, tag)
		}
	}
	return modules.Newest(tags)
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

// text returns the unit file for a module. values contains the values of inputs as expressions,
// "" for those that are not set.
func text(src, include string, m *config.Module, values map[string]string) []byte {
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
		if value := values[v.Name]; value != "" {
			return v.Name + " = " + value
		}
		return fmt.Sprintf("%s = %s # TODO: fill in value", v.Name, placeholder(v.Type))
	})
	if len(required) > 0 && len(optional) > 0 {
		b.WriteString("\n")
	}
	group(&b, "Optional, with their defaults", optional, func(v *config.Variable) string {
		if value := values[v.Name]; value != "" {
			return v.Name + " = " + value
		}
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
