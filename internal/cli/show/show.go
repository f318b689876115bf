// Package show implements the command show. It prints a state, a saved plan or a
// configuration, as text or JSON.
package show

import (
	"cmp"
	"context"
	"io"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/planpage"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/remoterun"
	"github.com/terrace-iac/terrace/internal/cli/savedplan"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/plan/planfile"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/zclconf/go-cty/cty"
)

// Command declares show.
func Command() command.Command {
	return command.Command{
		Name: "show", Synopsis: "Show the current state or a saved plan", Usage: "[target-option] [other-options]",
		Uses:  command.State | command.Providers,
		Units: command.InUnit | command.OnlyReads,
		Help: `Reads and outputs a Terrace state or plan file in a human-readable
form. If no path is specified, the current state will be shown.`,
		Args: []command.Arg{{Name: "PATH", Help: "A plan or a state.", Optional: true, Complete: flag.Files}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &showOptions{}
			fs := flag.Flags{
				flag.Bool(&o.state, "state", "Show the latest state snapshot of the current workspace. This is the default."),
				flag.Text(&o.plan, "plan", "FILE", "Show the plan in a saved plan file.").Completes(flag.Files),
				flag.Bool(&o.config, "config", "Show the configuration of the working directory. Only with -json."),
				flag.Text(&o.module, "module", "DIR", "Show the configuration of one module alone. Only with -json.").Completes(flag.Folders),
			}
			json := o.json.Flags()
			json[0].Help = "Produce output in a machine-readable JSON format, with sensitive values."
			fs = append(append(fs, json...),
				flag.Text(&o.html, "html", "FILE", "Write the saved plan of all units as one page for a browser, in place of showing it.").Completes(flag.Files),
				flag.Bool(&o.all, "all-changes", "Print all changes of a saved plan of many units, however many lines they take."),
				flag.Bool(&o.reveal, "show-sensitive", "Show sensitive values."), flag.NoColor())
			fs = append(fs, flags.Markdown(&o.markdown)...)
			return append(fs, flag.Vars(&o.vars)...), func(ctx context.Context, c *command.Call) int {
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
	vars   []workdir.VarFlag
	reveal bool
	state  bool
	plan   string
	config bool
	module string
	path   string // path of a plan or a state, in the legacy form of the command
	html   string // path of the HTML page of an estate's plan
	all    bool   // the text of an estate's plan is not limited

	markdown request.Markdown
}

func runShow(ctx context.Context, c *command.Call, o *showOptions) int {
	switch {
	case o.html != "" && !savedplan.IsPlan(c, cmp.Or(o.plan, o.path)):
		return c.UsageError("Failed to parse command-line flags", planpage.NoPage().Error())
	case o.markdown.File != "" && (cmp.Or(o.plan, o.path) == "" || o.config || o.module != ""):
		return noMarkdown(c)
	case o.config:
		return showConfiguration(ctx, c, o)
	case o.module != "":
		return showModule(ctx, c, o)
	case cmp.Or(o.plan, o.path) != "" && remoterun.IsBookmark(c, cmp.Or(o.plan, o.path)):
		return remoterun.Show(ctx, c, cmp.Or(o.plan, o.path), o.vars, o.json.On)
	case o.plan != "" && savedplan.IsPlan(c, o.plan):
		return showEstatePlan(ctx, c, o, o.plan)
	case o.plan != "":
		return showPlan(ctx, c, o, o.plan)
	case o.path == "":
		st, ds := c.CurrentState(ctx, o.vars, "")
		if ds.HasErrors() {
			return c.Fail(ds)
		}
		return showState(ctx, c, o, st, ds)
	}
	return showFile(ctx, c, o)
}

// showFile prints a file, which is a plan or a state.
func showFile(ctx context.Context, c *command.Call, o *showOptions) int {
	if savedplan.IsPlan(c, o.path) {
		return showEstatePlan(ctx, c, o, o.path)
	}
	head := make([]byte, 4)
	file, err := readfile.Open(c.Path(o.path))
	if err != nil {
		return c.Fail(notShown(diag.Reason(err), ""))
	}
	n, _ := io.ReadFull(file, head)
	_ = file.Close()
	if planfile.IsPlan(head[:n]) || c.IsSealedPlan(o.path) {
		return showPlan(ctx, c, o, o.path)
	}
	st, ds := c.CurrentState(ctx, o.vars, o.path)
	if o.markdown.File != "" && !ds.HasErrors() {
		return noMarkdown(c)
	}
	if ds.HasErrors() {
		detail := ds[0].Summary
		if ds[0].Detail != "" {
			detail += ": " + ds[0].Detail
		}
		return c.Fail(notShown(detail, "it does not begin as one"))
	}
	return showState(ctx, c, o, st, ds)
}

func noMarkdown(c *command.Call) int {
	return c.UsageError("Failed to parse command-line flags", "-markdown goes with a saved plan.")
}

func notShown(state, plan string) diag.List {
	detail := "State read error: " + state
	if plan != "" {
		detail += "\n\nPlan read error: " + plan
	}
	return diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the given file as a state or plan file", "%s", detail)
}

func showPlan(ctx context.Context, c *command.Call, o *showOptions, name string) int {
	f, ds := c.ReadPlanFile(ctx, o.vars, name)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	p, more := project.Load(ctx, c, f.Options(o.vars))
	if ds = append(ds, more...); p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	sc, more := p.SavedSchemas(ctx, f)
	if more.HasErrors() {
		return c.Fail(append(ds, more...))
	}
	if o.markdown.File != "" {
		comment := planpage.Comment{Call: c, To: o.markdown, Mode: f.Plan.Mode, Workspace: f.Backend.Workspace}
		comment.Plan(f.Plan, p.Engine.Root().Variables, sc)
		ds = append(ds, comment.Write(append(ds, sc.Ds...))...)
	}
	if o.json.On || o.json.Into != "" {
		doc, err := planjson.Plan(planjson.Input{Plan: f.Plan, Tree: p.Engine.Tree(), Schemas: sc, Version: config.LanguageVersion})
		if code := document(c, o, doc, err, append(ds, sc.Ds...)); o.json.On || code != 0 {
			return code
		}
	}
	if err := view.Plan(c.Stdout, c.Report.Human.Style, f.Plan, sc, o.reveal); err != nil {
		return 1
	}
	return c.Report.Status(append(ds, sc.Ds...))
}

func showState(ctx context.Context, c *command.Call, o *showOptions, st *state.State, ds diag.List) int {
	p, more := project.Load(ctx, c, workdir.LoadOptions{Vars: o.vars, Partial: true, RootOnly: true})
	if ds = append(ds, more...); p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	if st != nil && len(st.Resources) > 0 { // an empty state needs no schemas, and init may not have run yet
		if more := p.SelectProviders(ctx, st); more.HasErrors() {
			return c.Fail(append(ds, more...))
		}
	}
	sc := p.Schemas(ctx)
	if st != nil {
		st = p.Translate(st)
	}
	if o.json.On || o.json.Into != "" {
		doc, err := planjson.State(st, sc, statefile.Version)
		if code := document(c, o, doc, err, append(ds, sc.Ds...)); o.json.On || code != 0 {
			return code
		}
	}
	if err := view.State(c.Stdout, c.Report.Human.Style, st, sc, o.reveal); err != nil {
		return 1
	}
	return c.Report.Status(append(ds, sc.Ds...))
}

func showConfiguration(ctx context.Context, c *command.Call, o *showOptions) int {
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: o.vars, Partial: true})
	if p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	if more := p.SelectProviders(ctx); more.HasErrors() {
		return c.Fail(append(ds, more...))
	}
	sc := p.Schemas(ctx)
	doc, err := planjson.Configuration(p.Engine.Tree(), sc)
	return document(c, o, doc, err, append(ds, sc.Ds...))
}

// showModule prints one module. It reads neither the modules that it calls nor provider
// schemas.
func showModule(ctx context.Context, c *command.Call, o *showOptions) int {
	m, ds := config.Load(filepath.Clean(o.module), config.Options{FS: c.OnDisk(), Set: c.Report.Set})
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	text, more := callTexts(ctx, c, o, m)
	if ds = append(ds, more...); more.HasErrors() {
		return c.Fail(ds)
	}
	doc, err := planjson.Module(&module.Node{Config: m, Dir: o.module}, func(x hcl.Expression) (string, bool) {
		s, ok := text[x]
		return s, ok
	})
	return document(c, o, doc, err, ds)
}

// callTexts returns the sources and versions of a module's calls, as text. The variables in
// them need values, as in init.
func callTexts(ctx context.Context, c *command.Call, o *showOptions, m *config.Module) (map[hcl.Expression]string, diag.List) {
	out := map[hcl.Expression]string{}
	var open []hcl.Expression
	keep := func(x hcl.Expression, v cty.Value) {
		if v, _ = v.Unmark(); v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			out[x] = v.AsString()
		}
	}
	for _, call := range m.Calls {
		for _, s := range []*config.Setting{call.Source, call.Version} {
			if s == nil {
				continue
			}
			if v, diags := s.Expr.Value(nil); !diags.HasErrors() {
				keep(s.Expr, v)
			} else {
				open = append(open, s.Expr)
			}
		}
	}
	if len(open) == 0 {
		return out, nil
	}
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: o.vars, Partial: true, RootOnly: true, ConfigDir: o.module})
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	var all diag.List
	eval := p.StaticAsking(ctx, c.Prompt.May(true), "")
	for _, x := range open {
		v, ds := eval(x)
		all = append(all, ds...)
		keep(x, v)
	}
	return out, all.Sort()
}

// document prints a JSON document, or writes it to the file of -json-into.
func document(c *command.Call, o *showOptions, doc planjson.Document, err error, ds diag.List) int {
	if err != nil {
		ds = append(ds, flags.NotWritten(err)...)
	}
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	return o.json.Document(c, func(w io.Writer) error {
		_, err := doc.WriteTo(w)
		return err
	})
}
