package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/planfile"
	"github.com/terrace-iac/terrace/internal/planjson"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

type showOptions struct {
	json   jsonFlags
	vars   []vars.Flag
	reveal bool
	state  bool
	plan   string
	config bool
	module string
	path   string // a plan or a state, as the legacy form has it
	html   string // the page of an estate's plan
}

func showCommand(ctx context.Context, s *session, args []string) int {
	var o showOptions
	f := newFlags("show")
	o.json.add(f)
	addVars(f, &o.vars)
	f.BoolVar(&o.reveal, "show-sensitive", false, "")
	f.BoolVar(&o.state, "state", false, "")
	f.StringVar(&o.plan, "plan", "", "")
	f.BoolVar(&o.config, "config", false, "")
	f.StringVar(&o.module, "module", "", "")
	f.StringVar(&o.html, "html", "", "")
	if !s.parse(f, args) {
		return 1
	}
	targets := 0
	f.Visit(func(fl *flag.Flag) {
		switch fl.Name {
		case "state", "plan", "config", "module":
			targets++
		}
	})
	switch {
	case f.NArg() > 1:
		return s.usageError("show", "Too many command line arguments", "Expected at most one positional argument for the legacy positional argument mode.")
	case targets+f.NArg() > 1:
		return s.usageError("show", "Conflicting object types to show", "The -state, -plan=FILENAME, -config, and -module=DIR options are mutually-exclusive, to specify which kind of object to show.")
	case (o.config || o.module != "") && !o.json.on:
		return s.usageError("show", "JSON output required", "The -config and -module options are possible only together with -json.")
	case o.json.on && o.json.into != "":
		return s.usageError("show", "Invalid output format", "The -json and -json-into arguments are mutually exclusive")
	}
	if o.plan == "" {
		o.path = f.Arg(0)
	}
	return runShow(ctx, s, &o)
}

func runShow(ctx context.Context, s *session, o *showOptions) int {
	switch {
	case o.html != "" && !s.isEstatePlan(cmp.Or(o.plan, o.path)):
		return s.usageError("show", "Failed to parse command-line flags", noPage().Error())
	case o.config:
		return showConfiguration(ctx, s, o)
	case o.module != "":
		return showModule(ctx, s, o)
	case o.plan != "" && s.isEstatePlan(o.plan):
		return showEstatePlan(s, o, o.plan)
	case o.plan != "":
		f, err := s.readPlanFile(o.plan)
		if err != nil {
			return s.fail(planFileError(o.plan, err))
		}
		return showPlan(ctx, s, o, f)
	case o.path == "":
		st, ds := s.currentState(ctx, o.vars, "")
		if ds.HasErrors() {
			return s.fail(ds)
		}
		return showState(ctx, s, o, st, ds)
	}
	return showFile(ctx, s, o)
}

// showFile shows a file that is a plan or a state.
func showFile(ctx context.Context, s *session, o *showOptions) int {
	head := make([]byte, 4)
	file, err := os.Open(s.Path(o.path))
	if err != nil {
		return s.fail(notShown(err.Error(), ""))
	}
	n, _ := io.ReadFull(file, head)
	_ = file.Close()
	if planfile.IsPlan(head[:n]) {
		if s.isEstatePlan(o.path) {
			return showEstatePlan(s, o, o.path)
		}
		f, err := s.readPlanFile(o.path)
		if err != nil {
			return s.fail(planFileError(o.path, err))
		}
		return showPlan(ctx, s, o, f)
	}
	st, ds := s.currentState(ctx, o.vars, o.path)
	if ds.HasErrors() {
		detail := ds[0].Summary
		if ds[0].Detail != "" {
			detail += ": " + ds[0].Detail
		}
		return s.fail(notShown(detail, "it does not begin as one"))
	}
	return showState(ctx, s, o, st, ds)
}

func notShown(state, plan string) diag.List {
	detail := "State read error: " + state
	if plan != "" {
		detail += "\n\nPlan read error: " + plan
	}
	return diag.Errorf(nil, "Failed to read the given file as a state or plan file", "%s", detail)
}

func showPlan(ctx context.Context, s *session, o *showOptions, f *planfile.File) int {
	p, ds := s.load(ctx, loadOptions{vars: o.vars, workspace: f.Backend.Workspace, saved: f.Config, partial: true})
	if p == nil {
		return s.fail(ds)
	}
	defer p.close()
	if more := p.selectProviders(ctx, f.Plan.PrevRun, f.Plan.Prior); more.HasErrors() {
		return s.fail(append(ds, more...))
	}
	sc := p.schemas(ctx)
	if o.json.on || o.json.into != "" {
		doc, err := planjson.Plan(planjson.Input{Plan: f.Plan, Tree: p.engine.Tree(), Schemas: sc, Version: config.LanguageVersion})
		if code := s.document(o, doc, err, append(ds, sc.ds...)); o.json.on || code != 0 {
			return code
		}
	}
	if err := view.Plan(s.Stdout, s.human.Style, f.Plan, sc, o.reveal); err != nil {
		return 1
	}
	return s.status(append(ds, sc.ds...))
}

func showState(ctx context.Context, s *session, o *showOptions, st *state.State, ds diag.List) int {
	p, more := s.load(ctx, loadOptions{vars: o.vars, partial: true, rootOnly: true})
	if ds = append(ds, more...); p == nil {
		return s.fail(ds)
	}
	defer p.close()
	if more := p.selectProviders(ctx, st); more.HasErrors() {
		return s.fail(append(ds, more...))
	}
	sc := p.schemas(ctx)
	if st != nil {
		st = p.translate(st)
	}
	if o.json.on || o.json.into != "" {
		doc, err := planjson.State(st, sc, statefile.Version)
		if code := s.document(o, doc, err, append(ds, sc.ds...)); o.json.on || code != 0 {
			return code
		}
	}
	if err := view.State(s.Stdout, s.human.Style, st, sc, o.reveal); err != nil {
		return 1
	}
	return s.status(append(ds, sc.ds...))
}

func showConfiguration(ctx context.Context, s *session, o *showOptions) int {
	p, ds := s.load(ctx, loadOptions{vars: o.vars, partial: true})
	if p == nil {
		return s.fail(ds)
	}
	defer p.close()
	if more := p.selectProviders(ctx); more.HasErrors() {
		return s.fail(append(ds, more...))
	}
	sc := p.schemas(ctx)
	doc, err := planjson.Configuration(p.engine.Tree(), sc)
	return s.document(o, doc, err, append(ds, sc.ds...))
}

// showModule shows one module without looking at what it calls or at providers.
func showModule(_ context.Context, s *session, o *showOptions) int {
	m, ds := config.Load(filepath.Clean(o.module), config.Options{FS: folder{s}, Set: s.set})
	if ds.HasErrors() {
		return s.fail(ds)
	}
	doc, err := planjson.Module(&module.Node{Config: m, Dir: o.module}, nil)
	return s.document(o, doc, err, ds)
}

// document prints a JSON document, or writes it to the file of -json-into.
func (s *session) document(o *showOptions, doc []byte, err error, ds diag.List) int {
	if err != nil {
		ds = append(ds, notWritten(err)...)
	}
	if ds.HasErrors() {
		return s.fail(ds)
	}
	return s.documentFrom(o, func(w io.Writer) error {
		_, err := w.Write(doc)
		return err
	})
}

func notWritten(err error) diag.List {
	return diag.Errorf(nil, "Failed to write JSON", "The document cannot be written: %s.", err)
}

// documentFrom is document for one that a function writes piece by piece.
func (s *session) documentFrom(o *showOptions, write func(io.Writer) error) int {
	line := func(w io.Writer) error {
		b := bufio.NewWriter(w)
		err := write(b)
		if err == nil {
			err = errors.Join(b.WriteByte('\n'), b.Flush())
		}
		return err
	}
	if o.json.on {
		if err := line(s.Stdout); err != nil {
			return s.fail(notWritten(err))
		}
		return 0
	}
	f, err := os.OpenFile(s.Path(o.json.into), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(line(f), f.Close())
	}
	if err != nil {
		return s.fail(diag.Errorf(nil, "Invalid argument", "The file of -json-into cannot be written: %s.", err))
	}
	return 0
}

// ProviderConfig implements planjson.Schemas.
func (s *schemas) ProviderConfig(a addr.Provider) *schema.Block {
	if s.failed[a] {
		return nil
	}
	sp, ds := s.engine.Schema(s.ctx, a)
	if ds.HasErrors() || sp == nil {
		s.failed[a] = true
		s.ds = append(s.ds, ds...)
		return nil
	}
	return sp.Config
}

func showUsage() string {
	return usageText("Usage: "+view.Program+" [global options] show [target-option] [other-options]\n\n"+
		"  Reads and outputs a "+view.Product+" state or plan file in a human-readable\n  form. If no path is specified, the current state will be shown.",
		option("-state", "Show the latest state snapshot of the current workspace. This is the default."),
		option("-plan=FILE", "Show the plan in a saved plan file."),
		option("-config", "Show the configuration of the working folder. Only with -json."),
		option("-module=DIR", "Show the configuration of one module alone. Only with -json."),
		option("-json", "Produce output in a machine-readable JSON format, with sensitive values."),
		option("-json-into=path", "Write the machine-readable output to a file, besides the output for people."),
		option("-html=FILE", "Write the saved plan of all units as one page for a browser, in place of showing it."),
		option("-show-sensitive", "Show sensitive values."),
		option("-no-color", "No color in the output."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module."),
		option("-var-file=path", "Load variable values from a file."))()
}
