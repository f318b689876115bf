package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
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
	json, origins bool
}

func configShowCommand(_ context.Context, s *session, args []string) int {
	var o configShowOptions
	f := newFlags("config show")
	f.BoolVar(&o.json, "json", false, "")
	f.BoolVar(&o.origins, "origins", false, "")
	if !s.parse(f, args) {
		return 1
	}
	if f.NArg() > 1 {
		return s.usageError("config show", "Too many command line arguments", "Expected at most one address.")
	}
	o.address = f.Arg(0)
	return runConfigShow(s, &o)
}

func runConfigShow(s *session, o *configShowOptions) int {
	m, ds := s.root()
	if ds.HasErrors() {
		return s.fail(ds)
	}
	if len(ds) > 0 {
		_ = s.human.Printer.Print(s.Stderr, s.filter(ds))
	}
	var out bytes.Buffer
	if err := m.Print(&out, config.PrintOptions{Origins: o.origins, JSON: o.json, Addr: o.address}); err != nil {
		return s.fail(diag.Errorf(nil, "Nothing to show", "There is no %s: %s.", o.address, err))
	}
	_, _ = s.Stdout.Write(out.Bytes())
	return 0
}

func configShowUsage() string {
	return usageText("Usage: "+view.Program+" [global options] config show [options] [ADDR]\n\n"+
		"  Prints the module in the working folder, with its override files merged in,\n  as configuration that could replace the files. Nothing is evaluated.\n\n"+
		"  ADDR names one object: TYPE.NAME, data.TYPE.NAME, var.NAME, local.NAME,\n  module.NAME, provider.NAME, provider.NAME.ALIAS, check.NAME, output.NAME or\n  terraform.",
		option("-json", "Write JSON syntax, as for a .tf.json file."),
		option("-origins", "Tell with each argument where it was set and what it replaced."),
		option("-no-color", "No color in the output."))()
}

func configFilesCommand(_ context.Context, s *session, args []string) int {
	asJSON := false
	f := newFlags("config files")
	f.BoolVar(&asJSON, "json", false, "")
	if !s.parse(f, args) {
		return 1
	}
	if f.NArg() > 0 {
		return s.usageError("config files", "Too many command line arguments", "Expected no positional arguments.")
	}
	m, ds := s.root()
	if len(m.Files) == 0 && ds.HasErrors() {
		return s.fail(ds)
	}
	if asJSON {
		return filesJSON(s, m.Files)
	}
	w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	for _, file := range m.Files {
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
		option("-no-color", "No color in the output."))()
}
