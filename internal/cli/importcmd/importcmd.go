// Package importcmd implements the command import, which adds an existing object to the state.
// The configuration must contain a block for it.
//
// Main function: Command. The one rule: it evaluates only the expressions that the provider
// configuration needs, so that errors elsewhere do not prevent an import.
package importcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

type options struct {
	state       flag.State
	json        flags.JSON
	vars        []workdir.VarFlag
	input       bool
	parallelism int
	config      string
}

// Command declares import.
func Command() command.Command {
	return command.Command{
		Name: "import", Synopsis: "Associate existing infrastructure with a resource", Usage: "[options] ADDR ID",
		Uses:  command.State | command.Providers,
		Units: command.InUnit | command.NeedsInputs | command.OneUnit,
		Help: `Bring an existing object into the state, under the address of a resource block
that is already in the configuration. The documentation of the resource type
describes the format of ID.

The infrastructure is read and not changed. Only the provider configuration of
the resource is evaluated, with the values of variables; other data sources and
resources are not read. The next plan shows how the object differs from its
block. "import" blocks in the configuration do the same as part of a plan.`,
		Args: []command.Arg{
			{Name: "ADDR", Help: "The address of the instance that will manage the object.", Complete: flag.Addresses},
			{Name: "ID", Help: "The ID of the object, as its provider defines it."},
		},
		Examples: []command.Example{
			{Line: "import aws_instance.a i-0123456789", Text: "Import one object."},
			{Line: "import 'module.net.aws_subnet.all[\"b\"]' subnet-1", Text: "Import it as an instance in a module."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			o := &options{input: true, parallelism: 10}
			fs := flag.Flags{
				flag.Text(&o.config, "config", "path", "The directory of the configuration, if it is not the working directory.").Completes(flag.Folders),
				flag.Bool(&o.input, "input", "Do not ask for input. Missing variables are errors then."),
			}
			fs = append(append(fs, o.state.Lock.Flags()...), flag.NoColor(),
				flag.Int(&o.parallelism, "parallelism", "n", "How many operations run at the same time. Defaults to 10."))
			fs = append(append(fs, flag.Vars(&o.vars)...), o.state.PathFlag())
			fs = append(append(fs, o.state.WriteFlags()...), o.json.Flags()...)
			fs = append(fs, o.state.VersionFlag())
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) != 2 {
					return c.UsageError("Invalid number of arguments", "The import command expects two arguments, the address of a resource instance and the ID of an object"+given(c.Args)+".")
				}
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return o.run(ctx, c)
			}
		},
	}
}

func (o *options) run(ctx context.Context, c *command.Call) int {
	a, ds := target(c.Arg(0))
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	dir := c.Dir
	if o.config != "" {
		dir = c.Path(o.config)
	}
	if !config.IsConfigDir(dir, config.Options{}) {
		shown := o.config
		if shown == "" {
			shown = c.Dir
		}
		return c.Fail(diag.Errorf(diag.CodeCLIImportConfiguration, nil, "No "+view.Product+" configuration files", "The directory %s does not contain any %s configuration files (.tf or .tf.json). To specify a different configuration directory, use the -config=\"...\" command line option.", shown, view.Product))
	}
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: o.vars, Input: o.input, Parallelism: o.parallelism, ConfigDir: o.config, Observe: observer(c)})
	if p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	if more := configured(p, a); more.HasErrors() {
		return c.Fail(append(ds, more...))
	}
	op, held, more := p.Begin(ctx, o.state, "import")
	if ds = append(ds, more...); more.HasErrors() {
		return c.Fail(ds)
	}
	defer func() { c.Report.Tell(held.Release()) }()
	ds = append(ds, op.Import(ctx, engine.ImportOptions{Addr: a, ID: c.Arg(1)})...)
	if !ds.HasErrors() {
		done(c)
	}
	return c.Report.Status(ds)
}

// target parses the address of the instance.
func target(text string) (addr.Instance, diag.List) {
	t, err := addr.ParseTarget(text)
	if err == nil && t.IsModule() {
		err = errors.New("a resource instance address is required here: the module path must be followed by a resource instance specification")
	}
	if err != nil {
		return addr.Instance{}, diag.Errorf(diag.CodeConfigInvalidAddress, nil, "Invalid address", "%q is not the address of a resource instance: %s", text, project.AsSentence(err))
	}
	if mode := t.Resource.Mode; mode != addr.Managed {
		what := "a data resource"
		if mode == addr.Ephemeral {
			what = "an ephemeral resource"
		}
		return addr.Instance{}, diag.Errorf(diag.CodeCLIImportAddress, nil, "Invalid target resource address", "A managed resource address is required. Importing into %s is not allowed.", what)
	}
	return t.Instance(), nil
}

// configured returns an error that names the missing block, if the configuration has no block
// for the address.
func configured(p *project.Project, a addr.Instance) diag.List {
	n := p.Engine.Tree().Node(a.Module)
	if n == nil {
		return diag.Errorf(diag.CodeCLIImportModule, nil, "Import to non-existent module", "%s is not defined in the configuration. Please add configuration for this module before importing into it.", a.Module)
	}
	if n.Config.Resources[a.Resource] != nil {
		return nil
	}
	where := "the root module"
	if a.Module != "" {
		where = string(a.Module)
	}
	return diag.Errorf(diag.CodeCLIImportMissingResource, nil, fmt.Sprintf("resource address %q does not exist in the configuration.", a), "Before importing this resource, please create its configuration in %s. For example:\n\n  resource %q %q {\n    # (resource arguments)\n  }", where, a.Resource.Type, a.Resource.Name)
}

// observer returns an event sink that prints the progress in the words of an import.
func observer(c *command.Call) event.Sink {
	return func(e event.Event) {
		switch e.Kind {
		case event.ImportStart:
			c.Report.Human.Strong(fmt.Sprintf("%s: Importing from ID %q...\n", e.Object, e.IDValue))
		case event.ImportDone:
			c.Report.Human.Strong(fmt.Sprintf("%s: Import prepared!\n  Prepared %s for import\n", e.Object, e.Object.Instance.Resource.Type))
		default:
			c.Report.Event(e)
		}
	}
}

func done(c *command.Call) {
	const rest = "The resources that were imported are shown above. These resources are now in"
	product := c.Report.Names.Product()
	c.Report.Human.Good("\nImport successful!\n\n" + rest + "\nyour " + product + " state and will henceforth be managed by " + product + ".\n\n")
	c.Report.Stream.Log("Import successful! " + rest + " your " + product + " state and will henceforth be managed by " + product)
}

// given returns the end of a sentence that quotes the arguments of the command line.
func given(args []string) string {
	switch len(args) {
	case 0:
		return "; there are none"
	case 1:
		return fmt.Sprintf("; there is only %q", args[0])
	}
	return fmt.Sprintf("; there are %d", len(args))
}
