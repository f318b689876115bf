package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
)

// renderOptions are the flags of render.
type renderOptions struct {
	units          *unitFlags
	json, metadata bool
	write          bool
	format, out    string
}

func (s *session) renderFlags(args []string) (*renderOptions, error) {
	o := &renderOptions{}
	env := withoutInfix(s.Env, "RENDER")
	var err error
	if o.units, args, err = takeUnitFlags(args, env); err != nil {
		return nil, err
	}
	f := newFlags("render")
	for name, into := range map[string]*bool{"json": &o.json, "with-metadata": &o.metadata, "write": &o.write} {
		v, from := flagVariable(name, env)
		if v != "" {
			if *into, err = strconv.ParseBool(v); err != nil {
				return nil, fmt.Errorf("invalid value %q for the environment variable %s: it must be true or false", v, strings.Replace(from, "TG_", "TG_RENDER_", 1))
			}
		}
		f.BoolVar(into, name, *into, "")
	}
	f.BoolVar(&o.write, "w", o.write, "")
	f.StringVar(&o.format, "format", env.Get("TG_FORMAT"), "")
	f.StringVar(&o.out, "out", env.Get("TG_OUT"), "")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case o.units.many() && filepath.IsAbs(o.out):
		return nil, fmt.Errorf("with --all, --out is a name in the folder of each unit, not the path of one file")
	case f.NArg() > 0:
		return nil, fmt.Errorf("the command takes flags alone")
	case o.format == "json":
		o.json = true
	case o.format != "" && o.format != "hcl":
		return nil, fmt.Errorf("invalid value %q for flag --format: the formats are hcl and json", o.format)
	}
	o.json = o.json || o.metadata
	o.write = o.write || o.out != ""
	return o, nil
}

// renderCommand prints the effective configuration of a unit, or of all.
func renderCommand(ctx context.Context, s *session, args []string) int {
	ro, err := s.renderFlags(args)
	if err != nil {
		return s.usageError("render", "Failed to parse command-line flags", err.Error())
	}
	f := ro.units
	if f.working != "" {
		s.System = s.System.In(f.working)
	}
	o, ds := s.estateOptions(f, "render", nil, nil)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	s.aside(ds)
	if f.many() {
		o.Look.Generate = !f.noStackGenerate
		e, ds := s.open(ctx, o.Tolerate())
		defer e.Close(ctx)
		if ds.HasErrors() {
			return s.failWith(e, ds)
		}
		s.beside(e, ds)
		code := 0
		for _, u := range e.Order(false) {
			if u.Excluded == "" {
				code = max(code, s.render(ctx, e, u, ro))
			}
		}
		return code
	}
	e, u, ds := estate.OpenUnit(ctx, o.Tolerate(), s.unitPath(f), f.module)
	if ds.HasErrors() {
		return s.failWith(e, ds)
	}
	s.beside(e, ds)
	return s.render(ctx, e, u, ro)
}

// beside tells warnings about the files of an estate where others read Stdout.
func (s *session) beside(e *estate.Estate, ds diag.List) {
	if ds = s.filter(ds); len(ds) > 0 {
		_ = s.printer(e.Sources()).Print(s.Stderr, ds)
	}
}

// render prints or writes the configuration of one unit.
func (s *session) render(ctx context.Context, e *estate.Estate, u *estate.Unit, o *renderOptions) int {
	b, ds := e.Render(ctx, u, o.json, o.metadata)
	s.beside(e, ds)
	if ds.HasErrors() {
		return 1
	}
	b = append([]byte(strings.TrimRight(string(b), "\n")), '\n')
	if !o.write {
		_, _ = s.Stdout.Write(b)
		return 0
	}
	name := o.out
	if name == "" {
		name = "terragrunt.rendered.hcl"
		if o.json {
			name = "terragrunt.rendered.json"
		}
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(u.Dir, name)
	}
	if err := os.WriteFile(name, b, 0o644); err != nil {
		return s.fail(diag.Errorf(nil, "Failed to write the configuration", "%s.", err))
	}
	return 0
}

func renderUsage() string {
	return usageText("Usage: "+view.Program+" [global options] render [options]\n\n  Prints the effective configuration of the unit in the working folder.",
		append([]string{
			option("--json", "As JSON."),
			option("--with-metadata", "As JSON, with the file and line of each key."),
			option("--write, -w", "Write a file terragrunt.rendered.hcl or .json beside the unit's instead."),
			option("--out=NAME", "The name of that file."),
		}, unitOptions()...)...)()
}
