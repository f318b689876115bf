package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/planfile"
	"github.com/terrace-iac/terrace/internal/planjson"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// showCmd declares show.
func showCmd() command.Command {
	return command.Command{
		Name: "show", Synopsis: "Show the current state or a saved plan", Usage: "[target-option] [other-options]",
		Units: command.InUnit | command.OnlyReads,
		Help: `Reads and outputs a Terrace state or plan file in a human-readable
form. If no path is specified, the current state will be shown.`,
		Args: []command.Arg{{Name: "PATH", Help: "A plan or a state.", Optional: true, Complete: command.Files}},
		Prepare: func() (command.Flags, command.Run) {
			o := &showOptions{}
			fs := command.Flags{
				command.Bool(&o.state, "state", "Show the latest state snapshot of the current workspace. This is the default."),
				command.Text(&o.plan, "plan", "FILE", "Show the plan in a saved plan file.").Completes(command.Files),
				command.Bool(&o.config, "config", "Show the configuration of the working folder. Only with -json."),
				command.Text(&o.module, "module", "DIR", "Show the configuration of one module alone. Only with -json.").Completes(command.Folders),
			}
			json := o.json.Flags()
			json[0].Help = "Produce output in a machine-readable JSON format, with sensitive values."
			fs = append(append(fs, json...),
				command.Text(&o.html, "html", "FILE", "Write the saved plan of all units as one page for a browser, in place of showing it.").Completes(command.Files),
				command.Bool(&o.reveal, "show-sensitive", "Show sensitive values."), flags.NoColor())
			return append(fs, flags.Vars(&o.vars)...), func(ctx context.Context, c *command.Call) int {
				targets := 0
				for _, name := range []string{"state", "plan", "config", "module"} {
					if c.Given(name) {
						targets++
					}
				}
				switch {
				case len(c.Args) > 1:
					return c.UsageError("Too many command line arguments", "Expected at most one positional argument for the legacy positional argument mode.")
				case targets+len(c.Args) > 1:
					return c.UsageError("Conflicting object types to show", "The -state, -plan=FILENAME, -config, and -module=DIR options are mutually-exclusive, to specify which kind of object to show.")
				case (o.config || o.module != "") && !o.json.On:
					return c.UsageError("JSON output required", "The -config and -module options are possible only together with -json.")
				case o.json.On && o.json.Into != "":
					return c.UsageError("Invalid output format", "The -json and -json-into arguments are mutually exclusive")
				}
				if o.plan == "" {
					o.path = c.Arg(0)
				}
				return runShow(ctx, c, o)
			}
		},
	}
}

type showOptions struct {
	json   flags.JSON
	vars   []vars.Flag
	reveal bool
	state  bool
	plan   string
	config bool
	module string
	path   string // a plan or a state, as the legacy form has it
	html   string // the page of an estate's plan
}

func runShow(ctx context.Context, c *command.Call, o *showOptions) int {
	switch {
	case o.html != "" && !isEstatePlan(c, cmp.Or(o.plan, o.path)):
		return c.UsageError("Failed to parse command-line flags", noPage().Error())
	case o.config:
		return showConfiguration(ctx, c, o)
	case o.module != "":
		return showModule(ctx, c, o)
	case o.plan != "" && isEstatePlan(c, o.plan):
		return showEstatePlan(c, o, o.plan)
	case o.plan != "":
		f, err := readPlanFile(c, o.plan)
		if err != nil {
			return c.Fail(planFileError(o.plan, err))
		}
		return showPlan(ctx, c, o, f)
	case o.path == "":
		st, ds := currentState(ctx, c, o.vars, "")
		if ds.HasErrors() {
			return c.Fail(ds)
		}
		return showState(ctx, c, o, st, ds)
	}
	return showFile(ctx, c, o)
}

// showFile shows a file that is a plan or a state.
func showFile(ctx context.Context, c *command.Call, o *showOptions) int {
	head := make([]byte, 4)
	file, err := os.Open(c.Path(o.path))
	if err != nil {
		return c.Fail(notShown(err.Error(), ""))
	}
	n, _ := io.ReadFull(file, head)
	_ = file.Close()
	if planfile.IsPlan(head[:n]) {
		if isEstatePlan(c, o.path) {
			return showEstatePlan(c, o, o.path)
		}
		f, err := readPlanFile(c, o.path)
		if err != nil {
			return c.Fail(planFileError(o.path, err))
		}
		return showPlan(ctx, c, o, f)
	}
	st, ds := currentState(ctx, c, o.vars, o.path)
	if ds.HasErrors() {
		detail := ds[0].Summary
		if ds[0].Detail != "" {
			detail += ": " + ds[0].Detail
		}
		return c.Fail(notShown(detail, "it does not begin as one"))
	}
	return showState(ctx, c, o, st, ds)
}

func notShown(state, plan string) diag.List {
	detail := "State read error: " + state
	if plan != "" {
		detail += "\n\nPlan read error: " + plan
	}
	return diag.Errorf(nil, "Failed to read the given file as a state or plan file", "%s", detail)
}

func showPlan(ctx context.Context, c *command.Call, o *showOptions, f *planfile.File) int {
	p, ds := load(ctx, c, loadOptions{vars: o.vars, workspace: f.Backend.Workspace, saved: f.Config, partial: true})
	if p == nil {
		return c.Fail(ds)
	}
	defer p.close()
	if more := p.selectProviders(ctx, f.Plan.PrevRun, f.Plan.Prior); more.HasErrors() {
		return c.Fail(append(ds, more...))
	}
	sc := p.schemas(ctx)
	if o.json.On || o.json.Into != "" {
		doc, err := planjson.Plan(planjson.Input{Plan: f.Plan, Tree: p.engine.Tree(), Schemas: sc, Version: config.LanguageVersion})
		if code := document(c, o, doc, err, append(ds, sc.ds...)); o.json.On || code != 0 {
			return code
		}
	}
	if err := view.Plan(c.Stdout, c.Report.Human.Style, f.Plan, sc, o.reveal); err != nil {
		return 1
	}
	return c.Report.Status(append(ds, sc.ds...))
}

func showState(ctx context.Context, c *command.Call, o *showOptions, st *state.State, ds diag.List) int {
	p, more := load(ctx, c, loadOptions{vars: o.vars, partial: true, rootOnly: true})
	if ds = append(ds, more...); p == nil {
		return c.Fail(ds)
	}
	defer p.close()
	if more := p.selectProviders(ctx, st); more.HasErrors() {
		return c.Fail(append(ds, more...))
	}
	sc := p.schemas(ctx)
	if st != nil {
		st = p.translate(st)
	}
	if o.json.On || o.json.Into != "" {
		doc, err := planjson.State(st, sc, statefile.Version)
		if code := document(c, o, doc, err, append(ds, sc.ds...)); o.json.On || code != 0 {
			return code
		}
	}
	if err := view.State(c.Stdout, c.Report.Human.Style, st, sc, o.reveal); err != nil {
		return 1
	}
	return c.Report.Status(append(ds, sc.ds...))
}

func showConfiguration(ctx context.Context, c *command.Call, o *showOptions) int {
	p, ds := load(ctx, c, loadOptions{vars: o.vars, partial: true})
	if p == nil {
		return c.Fail(ds)
	}
	defer p.close()
	if more := p.selectProviders(ctx); more.HasErrors() {
		return c.Fail(append(ds, more...))
	}
	sc := p.schemas(ctx)
	doc, err := planjson.Configuration(p.engine.Tree(), sc)
	return document(c, o, doc, err, append(ds, sc.ds...))
}

// showModule shows one module without looking at what it calls or at providers.
func showModule(_ context.Context, c *command.Call, o *showOptions) int {
	m, ds := config.Load(filepath.Clean(o.module), config.Options{FS: folder{c}, Set: c.Report.Set})
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	doc, err := planjson.Module(&module.Node{Config: m, Dir: o.module}, nil)
	return document(c, o, doc, err, ds)
}

// document prints a JSON document, or writes it to the file of -json-into.
func document(c *command.Call, o *showOptions, doc []byte, err error, ds diag.List) int {
	if err != nil {
		ds = append(ds, notWritten(err)...)
	}
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	return documentFrom(c, o, func(w io.Writer) error {
		_, err := w.Write(doc)
		return err
	})
}

func notWritten(err error) diag.List {
	return diag.Errorf(nil, "Failed to write JSON", "The document cannot be written: %s.", err)
}

// documentFrom is document for one that a function writes piece by piece.
func documentFrom(c *command.Call, o *showOptions, write func(io.Writer) error) int {
	line := func(w io.Writer) error {
		b := bufio.NewWriter(w)
		err := write(b)
		if err == nil {
			err = errors.Join(b.WriteByte('\n'), b.Flush())
		}
		return err
	}
	if o.json.On {
		if err := line(c.Stdout); err != nil {
			return c.Fail(notWritten(err))
		}
		return 0
	}
	f, err := os.OpenFile(c.Path(o.json.Into), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(line(f), f.Close())
	}
	if err != nil {
		return c.Fail(diag.Errorf(nil, "Invalid argument", "The file of -json-into cannot be written: %s.", err))
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
