package cli

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
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/module"
)

// configCommand answers config without a word behind it.
func configCommand(_ context.Context, s *session, _ []string) int {
	fmt.Fprintln(s.Stdout, configUsage())
	return 127
}

func configUsage() string {
	return "Usage: " + view.Program + " [global options] config\n\n" +
		"  Shows what the files of the working folder mean, with override files merged\n  in. Nothing is evaluated.\n\n" +
		"Subcommands:\n" +
		"    files    List the files in load order, each with its role\n" +
		"    show     Print the effective configuration"
}

type configShowOptions struct {
	address       string
	module        string
	json, origins bool
	vars          []vars.Flag
}

func configShowCommand(ctx context.Context, s *session, args []string) int {
	var o configShowOptions
	f := newFlags("config show")
	f.BoolVar(&o.json, "json", false, "")
	f.BoolVar(&o.origins, "origins", false, "")
	f.StringVar(&o.module, "module", "", "")
	addVars(f, &o.vars)
	if !s.parse(f, args) {
		return 1
	}
	if f.NArg() > 1 {
		return s.usageError("config show", "Too many command line arguments", "Expected at most one address.")
	}
	o.address = f.Arg(0)
	return runConfigShow(ctx, s, &o)
}

func runConfigShow(ctx context.Context, s *session, o *configShowOptions) int {
	path, ds := modulePath(o.module)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	calls, address := splitModule(o.address)
	m, ds := s.moduleAt(ctx, append(path, calls...), o.vars)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	if len(ds) > 0 {
		_ = s.human.Printer.Print(s.Stderr, s.filter(ds))
	}
	var out bytes.Buffer
	if err := m.Print(&out, config.PrintOptions{Origins: o.origins, JSON: o.json, Addr: address}); err != nil {
		return s.fail(diag.Errorf(nil, "Nothing to show", "There is no %s: %s.", o.address, err))
	}
	_, _ = s.Stdout.Write(out.Bytes())
	return 0
}

// moduleAt loads the module that calls lead to. Only the files of the working
// folder are read where there are none.
func (s *session) moduleAt(ctx context.Context, calls []string, flags []vars.Flag) (*config.Module, diag.List) {
	if len(calls) == 0 {
		return s.root()
	}
	p, ds := s.load(ctx, loadOptions{vars: flags, partial: true, rootOnly: true})
	if p == nil {
		return nil, ds
	}
	defer p.close()
	n := p.engine.Tree().Root
	for _, name := range calls {
		call := n.Config.Calls[name]
		if call == nil {
			return nil, diag.Errorf(nil, "Nothing to show", "There is no module call %q in %s.%s", name, moduleName(n), lang.Suggest(name, n.Config.Calls))
		}
		child := n.Calls[name]
		if child == nil {
			return nil, diag.Errorf(&call.At, "Module not loaded", "The module %q could not be loaded. If it is not installed yet, run \"%s init\"; otherwise \"%s validate\" tells what is wrong.", name, view.Program, view.Program)
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

// modulePath reads the address of a module, which need not name instances, as
// the names of the calls that lead to it.
func modulePath(address string) ([]string, diag.List) {
	if address == "" {
		return nil, nil
	}
	calls, rest := splitModule(address + ".x")
	if rest != "x" {
		return nil, diag.Errorf(nil, "Invalid module address", "%q is no address of a module. Write it as in module.NAME or module.NAME.module.OTHER.", address)
	}
	return calls, nil
}

// splitModule takes the module off an address. A call that nothing follows is an
// object of the module that it stands in.
func splitModule(address string) (calls []string, rest string) {
	t, diags := hclsyntax.ParseTraversalAbs([]byte(address), "", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, address // is reported as an address that names nothing
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

func configShowUsage() string {
	return usageText("Usage: "+view.Program+" [global options] config show [options] [ADDR]\n\n"+
		"  Prints the module in the working folder, with its override files merged in,\n  as configuration that could replace the files. No values are evaluated.\n\n"+
		"  ADDR names one object: TYPE.NAME, data.TYPE.NAME, ephemeral.TYPE.NAME,\n  var.NAME, local.NAME, module.NAME, provider.NAME, provider.NAME.ALIAS,\n  check.NAME or output.NAME, with module.NAME. in front for what stands in a\n  module; or all blocks of a kind without names: terraform, language, locals,\n  moved, removed, import.",
		option("-json", "Write JSON syntax, as for a .tf.json file."),
		option("-origins", "Tell with each argument and block where it was set and what it replaced. With -json that is under the property \"//\" of each block."),
		option("-module=ADDR", "Print the module that a call brings in, such as module.app, instead of the one in the working folder."),
		option("-var 'foo=bar'", "Set a variable that the source of a module needs."),
		option("-var-file=path", "Load such variables from a file."),
		option("-no-color", "No color in the output."))()
}

type configFilesOptions struct {
	json   bool
	module string
	vars   []vars.Flag
}

func configFilesCommand(ctx context.Context, s *session, args []string) int {
	var o configFilesOptions
	f := newFlags("config files")
	f.BoolVar(&o.json, "json", false, "")
	f.StringVar(&o.module, "module", "", "")
	addVars(f, &o.vars)
	if !s.parse(f, args) {
		return 1
	}
	if f.NArg() > 0 {
		return s.usageError("config files", "Too many command line arguments", "Expected no positional arguments.")
	}
	path, ds := modulePath(o.module)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	files, ds := config.Files(".", config.Options{FS: folder{s}})
	if len(path) > 0 {
		var m *config.Module
		if m, ds = s.moduleAt(ctx, path, o.vars); m != nil {
			files = m.Files
		}
	}
	if ds.HasErrors() {
		return s.fail(ds)
	}
	if o.json {
		return filesJSON(s, files)
	}
	w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	for _, file := range files {
		fmt.Fprintf(w, "%s\t%s\n", file.Path, role(file))
	}
	_ = w.Flush()
	return 0
}

// role says what a file is to the module.
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

func filesJSON(s *session, files []config.FileRole) int {
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
		return s.fail(diag.Errorf(nil, "Failed to write JSON", "The list cannot be written: %s.", err))
	}
	fmt.Fprintf(s.Stdout, "%s\n", out)
	return 0
}

func configFilesUsage() string {
	return usageText("Usage: "+view.Program+" [global options] config files [options]\n\n"+
		"  Lists the configuration files of the working folder in the order in which\n  they are loaded, each with its role: base, override and which, shadowed by\n  another file, a test, or ignored and why.",
		option("-json", "Produce output in a machine-readable JSON format."),
		option("-module=ADDR", "List the files of the module that a call brings in, such as module.app, instead of those in the working folder."),
		option("-var 'foo=bar'", "Set a variable that the source of a module needs."),
		option("-var-file=path", "Load such variables from a file."),
		option("-no-color", "No color in the output."))()
}
