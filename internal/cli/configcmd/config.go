// Package configcmd implements the commands config files and config show. They show the merged
// content of the files of a directory, without evaluating expressions.
package configcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Commands declares the commands of this package.
func Commands() []command.Command {
	moduleVars := func(list *[]workdir.VarFlag) flag.Flags {
		fs := flag.Vars(list)
		fs[0].Help, fs[1].Help = "Set a variable that the source of a module needs.", "Load such variables from a file."
		return fs
	}
	return []command.Command{
		{
			Name: "config", Synopsis: "Show the effective configuration and its files",
			Help: `Shows what the files of the working directory mean, with override files merged
in. Nothing is evaluated.`,
			Exits: []command.Exit{{Code: command.NoCommand, Help: "No command was given behind it, and the help was shown."}},
			Prepare: func() (flag.Flags, command.Run) {
				return nil, func(_ context.Context, c *command.Call) int {
					fmt.Fprintln(c.Stdout, c.Table.HelpOf(c.Command))
					return command.NoCommand
				}
			},
		},
		{
			Name: "config files", Synopsis: "List configuration files with their roles", Usage: "[options]",
			Units: command.InUnit | command.Uninitialized | command.OnlyReads,
			Help: `Lists the configuration files of the working directory in the order in which
they are loaded, each with its role: base, override and which, shadowed by
another file, a test, or ignored and why.`,
			Prepare: func() (flag.Flags, command.Run) {
				o := &configFilesOptions{}
				fs := flag.Flags{
					flag.Bool(&o.json, "json", "Produce output in a machine-readable JSON format."),
					flag.Text(&o.module, "module", "ADDR", "List the files of the module that a call brings in, such as module.app, instead of those in the working directory."),
				}
				return append(append(fs, moduleVars(&o.vars)...), flag.NoColor()), func(ctx context.Context, c *command.Call) int {
					if len(c.Args) > 0 {
						return c.UsageError("Too many command line arguments", "Expected no positional arguments.")
					}
					return runConfigFiles(ctx, c, o)
				}
			},
		},
		{
			Name: "config show", Synopsis: "Print the merged configuration", Usage: "[options] [ADDR]",
			Units: command.InUnit | command.Uninitialized | command.OnlyReads,
			Help: `Prints the module in the working directory, with its override files merged in,
as configuration that could replace the files. No values are evaluated. The
arguments of backend, cloud and encryption blocks and the credentials in
addresses are hidden unless -show-sensitive is set.

ADDR names one object: TYPE.NAME, data.TYPE.NAME, ephemeral.TYPE.NAME,
var.NAME, local.NAME, module.NAME, provider.NAME, provider.NAME.ALIAS,
check.NAME or output.NAME, with module.NAME. in front for what stands in a
module; or all blocks of a kind without names: terraform, language, locals,
moved, removed, import.`,
			Args: []command.Arg{{Name: "ADDR", Help: "The object to print.", Optional: true, Complete: flag.Addresses}},
			Prepare: func() (flag.Flags, command.Run) {
				o := &configShowOptions{}
				fs := flag.Flags{
					flag.Bool(&o.json, "json", "Write JSON syntax, as for a .tf.json file."),
					flag.Bool(&o.origins, "origins", "Add a comment to each argument and block, with the place where it was set and the value that it replaced. With -json, the property \"//\" of each block contains this."),
					flag.Text(&o.module, "module", "ADDR", "Print the module that a call brings in, such as module.app, instead of the one in the working directory."),
					flag.Bool(&o.reveal, "show-sensitive", "Show the arguments of backend, cloud and encryption blocks, and credentials in addresses."),
				}
				return append(append(fs, moduleVars(&o.vars)...), flag.NoColor()), func(ctx context.Context, c *command.Call) int {
					if len(c.Args) > 1 {
						return c.UsageError("Too many command line arguments", "Expected at most one address.")
					}
					o.address = c.Arg(0)
					return runConfigShow(ctx, c, o)
				}
			},
		},
	}
}

type configShowOptions struct {
	address       string
	module        string
	json, origins bool
	reveal        bool
	vars          []workdir.VarFlag
}

func runConfigShow(ctx context.Context, c *command.Call, o *configShowOptions) int {
	path, ds := modulePath(o.module)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	calls, address := splitModule(o.address)
	m, ds := moduleAt(ctx, c, append(path, calls...), o.vars)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if len(ds) > 0 {
		_ = c.Report.Human.Printer.Print(c.Stderr, c.Report.Filter(ds))
	}
	var out bytes.Buffer
	if err := m.Print(&out, config.PrintOptions{Origins: o.origins, JSON: o.json, Hide: !o.reveal, Addr: address}); err != nil {
		return c.Fail(diag.Errorf(diag.CodeCLINothingShow, nil, "Nothing to show", "There is no %s: %s.", o.address, err))
	}
	_, _ = c.Stdout.Write(out.Bytes())
	return 0
}

// moduleAt loads the module at the end of a chain of calls. Without calls, it reads only the
// files of the working directory.
func moduleAt(ctx context.Context, c *command.Call, calls []string, flags []workdir.VarFlag) (*config.Module, diag.List) {
	if len(calls) == 0 {
		return c.Root()
	}
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: flags, Partial: true, RootOnly: true})
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	n := p.Engine.Tree().Root
	for _, name := range calls {
		call := n.Config.Calls[name]
		if call == nil {
			return nil, diag.Errorf(diag.CodeCLINothingShow, nil, "Nothing to show", "There is no module call %q in %s.%s", name, moduleName(n), lang.Suggest(name, n.Config.Calls))
		}
		child := n.Calls[name]
		if child == nil {
			return nil, diag.Errorf(diag.CodeCLIModuleNotLoaded, &call.At, "Module not loaded", "The module %q could not be loaded. If it is not installed yet, run \"%s init\"; otherwise \"%s validate\" tells what is wrong.", name, view.Program, view.Program)
		}
		n = child
	}
	return n.Config, ds
}

func moduleName(n *module.Node) string {
	if n.Parent == nil {
		return "the root module"
	}
	return string(n.Path)
}

// modulePath parses the address of a module into the names of its calls. The address may omit
// instance keys.
func modulePath(address string) ([]string, diag.List) {
	if address == "" {
		return nil, nil
	}
	calls, rest := splitModule(address + ".x")
	if rest != "x" {
		return nil, diag.Errorf(diag.CodeCLIInvalidModuleAddress, nil, "Invalid module address", "%q is not the address of a module. Write it as in module.NAME or module.NAME.module.OTHER.", address)
	}
	return calls, nil
}

// splitModule splits an address into the module and the rest. If nothing follows a call, the
// call is an object of its parent module.
func splitModule(address string) (calls []string, rest string) {
	t, diags := hclsyntax.ParseTraversalAbs([]byte(address), "", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, address // the caller reports that the address names nothing
	}
	var names []string
	for _, step := range t {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			names = append(names, step.Name)
		case hcl.TraverseAttr:
			names = append(names, step.Name)
		}
	}
	for len(names) > 2 && names[0] == "module" {
		calls, names = append(calls, names[1]), names[2:]
	}
	return calls, strings.Join(names, ".")
}

type configFilesOptions struct {
	json   bool
	module string
	vars   []workdir.VarFlag
}

// role returns the role of a file in its module.
func role(f config.FileRole) string {
	switch f.Role {
	case config.RoleOverride:
		return fmt.Sprintf("override %d", f.N)
	case config.RoleShadowed:
		return "shadowed by " + f.By
	case config.RoleIgnored:
		return "ignored: " + f.Why
	}
	return f.Role.String()
}

func filesJSON(c *command.Call, files []config.FileRole) int {
	type entry struct {
		Path     string `json:"path"`
		Role     string `json:"role"`
		Override int    `json:"override,omitempty"`
		By       string `json:"shadowed_by,omitempty"`
		Why      string `json:"reason,omitempty"`
	}
	doc := struct {
		Format string  `json:"format_version"`
		Files  []entry `json:"files"`
	}{"1.0", []entry{}}
	for _, f := range files {
		doc.Files = append(doc.Files, entry{f.Path, f.Role.String(), f.N, f.By, f.Why})
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write JSON", "The list cannot be written: %s.", err))
	}
	fmt.Fprintf(c.Stdout, "%s\n", out)
	return 0
}

func runConfigFiles(ctx context.Context, c *command.Call, o *configFilesOptions) int {
	path, ds := modulePath(o.module)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	files, ds := config.Files(".", config.Options{FS: c.FilesOf()})
	if len(path) > 0 {
		var m *config.Module
		if m, ds = moduleAt(ctx, c, path, o.vars); m != nil {
			files = m.Files
		}
	}
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if o.json {
		return filesJSON(c, files)
	}
	w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	for _, file := range files {
		fmt.Fprintf(w, "%s\t%s\n", file.Path, role(file))
	}
	_ = w.Flush()
	return 0
}
