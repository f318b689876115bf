package statecmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/terrace-iac/terrace/internal/workdir"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/internal/state/stateedit"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

func list() command.Command {
	return command.Command{
		Name: "state list", Aliases: []string{"state ls"}, Synopsis: "List resources in the state", Usage: "[options] [ADDRESS...]",
		Uses:  command.State,
		Units: command.InUnit | command.OnlyReads,
		Help: `List the instances in the state, or those that addresses of modules,
resources or instances cover.`,
		Args:     []command.Arg{{Name: "ADDRESS", Help: "A module, a resource or an instance.", Optional: true, Repeated: true, Complete: flag.Instances}},
		Examples: []command.Example{{Line: "state list module.network", Text: "List what is in a module."}},
		Prepare: func() (flag.Flags, command.Run) {
			o, id := &common{}, ""
			fs := append(o.reading(), flag.Text(&id, "id", "ID", "List only instances whose attribute \"id\" is this."))
			return fs, func(ctx context.Context, c *command.Call) int {
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				ts, s, found, ds := matching(ctx, c, o.outline)
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				c.Report.AboveStatus(ds)
				var listed []state.Listed
				for _, t := range ts { // in the order of the arguments, as OpenTofu prints them
					some, _ := stateedit.Matching(s, []addr.Target{t})
					listed = append(listed, byDepth(some)...)
				}
				if len(ts) == 0 {
					listed = byDepth(found)
				}
				out := bufio.NewWriterSize(c.Stdout, 64<<10)
				for _, l := range listed {
					if l.Addr.Deposed != "" || id != "" && attribute(l.Object, "id") != id {
						continue
					}
					name := l.Addr.Instance.String()
					if c.Report.Human != nil {
						out.WriteString(name)
						out.WriteByte('\n')
					}
					c.Report.Stream.Typed(name, "resource_address", nil)
				}
				if err := out.Flush(); err != nil {
					return c.Fail(flags.NotWritten(err))
				}
				return 0
			}
		},
	}
}

// matching reads a state and returns the objects at the addresses in the arguments, or all
// objects without arguments. It returns an error if there is no state, or if nothing is at an
// address.
func matching(ctx context.Context, c *command.Call, read func(context.Context, *command.Call) (*state.State, diag.List)) (ts []addr.Target, s *state.State, found []state.Listed, ds diag.List) {
	if ts, ds = targets(c.Args); ds.HasErrors() {
		return nil, nil, nil, ds
	}
	if s, ds = read(ctx, c); ds.HasErrors() {
		return nil, nil, nil, ds
	}
	if s == nil {
		return nil, nil, nil, noState()
	}
	found, missing := stateedit.Matching(s, ts)
	if len(missing) > 0 {
		ds = diag.List{{Code: diag.CodeStateUnknownResource, Severity: diag.Error, Summary: "Unknown resource", Detail: fmt.Sprintf("The current state contains no resource %s. If you've just added this resource to the configuration, you must run \"%s apply\" first to create the resource's entry in the state.", missing[0], view.Program)}}
	}
	return ts, s, found, ds
}

// identities declares state identities, a command of Terraform 1.12 and later that OpenTofu
// 1.12 does not have.
func identities() command.Command {
	return command.Command{
		Name: "state identities", Synopsis: "List the identities of resources in the state", Usage: "[options] -json [ADDRESS...]",
		Uses:  command.State,
		Units: command.InUnit | command.OnlyReads,
		Help: `Print the resource identities of the instances in the state, or of those that
addresses of modules, resources or instances cover, as a JSON object by
address. Instances without an identity are left out.`,
		Args:     []command.Arg{{Name: "ADDRESS", Help: "A module, a resource or an instance.", Optional: true, Repeated: true, Complete: flag.Instances}},
		Examples: []command.Example{{Line: "state identities -json module.network", Text: "Print the identities of what is in a module."}},
		Prepare: func() (flag.Flags, command.Run) {
			o, id, asJSON := &common{}, "", false
			fs := append(append(flag.Flags{o.state.PathFlag()}, flag.Vars(&o.vars)...), flag.NoColor(),
				flag.Bool(&asJSON, "json", "Print JSON, which is the only form; required."),
				flag.Text(&id, "id", "ID", "Print only instances whose attribute \"id\" is this."))
			return fs, func(ctx context.Context, c *command.Call) int {
				if !asJSON {
					return c.UsageError("Missing -json", "The identities are printed as JSON alone: give -json")
				}
				_, _, found, ds := matching(ctx, c, o.read)
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				c.Report.AboveStatus(ds)
				out := map[string]json.RawMessage{}
				for _, l := range found {
					if l.Addr.Deposed == "" && l.Object.Identity != nil && (id == "" || attribute(l.Object, "id") == id) {
						out[l.Addr.Instance.String()] = l.Object.Identity
					}
				}
				text, err := json.MarshalIndent(out, "", "  ")
				if err == nil {
					_, err = fmt.Fprintf(c.Stdout, "%s\n", text)
				}
				if err != nil {
					return c.Fail(flags.NotWritten(err))
				}
				return 0
			}
		},
	}
}

// byDepth sorts instances in nested modules after those further up, as OpenTofu does. It keeps
// the order of the others.
func byDepth(listed []state.Listed) []state.Listed {
	var levels [][]state.Listed
	var module addr.ModuleInstance
	depth := 0 // of the module
	for _, l := range listed {
		if m := l.Addr.Instance.Module; m != module {
			module, depth = m, len(m.Steps())
		}
		for len(levels) <= depth {
			levels = append(levels, nil)
		}
		levels[depth] = append(levels[depth], l)
	}
	return slices.Concat(levels...)
}

// attribute returns a string attribute of an object, or "" if it is not a string.
func attribute(o *state.Object, name string) string {
	if o.JSON == nil {
		return o.Flat[name]
	}
	var all map[string]json.RawMessage
	var out string
	if json.Unmarshal(o.JSON, &all) == nil {
		_ = json.Unmarshal(all[name], &out) // the result is "" if the value is not a string
	}
	return out
}

func show() command.Command {
	return command.Command{
		Name: "state show", Synopsis: "Show a resource in the state", Usage: "[options] ADDRESS",
		Uses:  command.State | command.Providers,
		Units: command.InUnit | command.OnlyReads,
		Help:  `Shows the attributes of one instance in the state.`,
		Args:  []command.Arg{{Name: "ADDRESS", Help: "The instance.", Complete: flag.Instances}},
		Prepare: func() (flag.Flags, command.Run) {
			o, reveal := &common{}, false
			fs := append(o.reading(), flag.Bool(&reveal, "show-sensitive", "Show sensitive values."))
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) != 1 {
					return c.UsageError("Invalid number of arguments", "Exactly one argument expected")
				}
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return runShow(ctx, c, o, reveal)
			}
		},
	}
}

func runShow(ctx context.Context, c *command.Call, o *common, reveal bool) int {
	a, err := addr.ParseInstance(c.Arg(0))
	if err != nil {
		return c.Fail(badAddress(c.Arg(0), err))
	}
	s, ds := o.read(ctx, c)
	switch {
	case ds.HasErrors():
		return c.Fail(ds)
	case s == nil:
		return c.Fail(noState())
	}
	object, provider, ok := s.Object(addr.Object{Instance: a})
	if !ok {
		return c.Fail(diag.List{{Code: diag.CodeStateNoInstance, Severity: diag.Error, Summary: "No instance found for the given address", Detail: fmt.Sprintf("This command requires that the address references one specific instance. To view the available instances, use \"%s state list\". Please modify the address to reference a specific instance.%s", view.Program, stateedit.Suggest(s, a.String()))}})
	}
	d := state.New().Edit()
	d.Apply(state.Change{Object: addr.Object{Instance: a}, Provider: provider, New: object})
	one := d.Freeze()
	p, more := project.Load(ctx, c, workdir.LoadOptions{Vars: o.vars, Partial: true, RootOnly: true})
	if ds = append(ds, more...); p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	if more := p.SelectProviders(ctx, one); more.HasErrors() {
		return c.Fail(append(ds, more...))
	}
	sc := p.Schemas(ctx)
	one = p.Translate(one)
	if o.json.On || o.json.Into != "" {
		doc, err := planjson.State(one, sc, statefile.Version)
		var out io.Writer = c.Stdout
		if !o.json.On {
			out = c.Report.Stream.Out
		}
		if err == nil {
			_, err = append(doc, []byte("\n")).WriteTo(out)
		}
		if err != nil {
			return c.Fail(append(ds, flags.NotWritten(err)...))
		}
		if o.json.On {
			return c.Report.Status(append(ds, sc.Ds...))
		}
	}
	if err := view.State(c.Stdout, c.Report.Human.Style, one, sc, reveal); err != nil {
		return 1
	}
	return c.Report.Status(append(ds, sc.Ds...))
}

func pull() command.Command {
	return command.Command{
		Name: "state pull", Synopsis: "Pull current state and output to stdout", Usage: "[options]",
		Uses:  command.State,
		Units: command.InUnit | command.OnlyReads,
		Help:  `Print the current state as JSON, in the format of state files.`,
		Prepare: func() (flag.Flags, command.Run) {
			o := &common{}
			return flag.Vars(&o.vars), func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Too many command line arguments", "No arguments are expected.")
				}
				s, ds := o.read(ctx, c)
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				c.Report.AboveStatus(ds)
				if s == nil {
					return 0
				}
				err := statefile.Write(c.Stdout, s, false)
				if err == nil {
					_, err = fmt.Fprintln(c.Stdout) // an empty line, as OpenTofu prints
				}
				if err != nil {
					return c.Fail(flags.NotWritten(err))
				}
				return 0
			}
		},
	}
}
