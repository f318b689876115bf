package inspect

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
)

// Render declares render.
func Render() command.Command {
	return command.Command{
		Name: "render", Synopsis: "Show the effective configuration of a unit", Usage: "[options]",
		Units: command.TakesUnitFlags, Help: "Prints the effective configuration of the unit in the working directory.",
		Prepare: func() (flag.Flags, command.Run) {
			o := &renderOptions{units: &unitflags.Flags{}}
			fs := flag.Flags{
				flag.Bool(&o.json, "json", "As JSON."),
				flag.Bool(&o.metadata, "with-metadata", "As JSON, with the file and line of each key."),
				flag.Bool(&o.write, "write", "Write a file terragrunt.rendered.hcl or .json beside the unit's instead, with sensitive values and credentials.").Or("w"),
				flag.Text(&o.out, "out", "NAME", "The name of that file."),
				flag.Bool(&o.reveal, "show-sensitive", "Print sensitive values, and credentials in addresses."),
				flag.Text(&o.format, "format", "FORMAT", "").Among("hcl", "json").Hide(),
			}
			for i := range fs {
				fs[i].Env = unitflags.VariablesOf(fs[i].Name)
			}
			return unitflags.Under("RENDER", append(fs.WithTwoDashesShown(), o.units.DeclareFor(true)...)), func(ctx context.Context, c *command.Call) int {
				if err := o.settle(c); err != nil {
					return c.UsageError("Failed to parse command-line flags", err.Error())
				}
				return runRender(ctx, c, o)
			}
		},
	}
}

func (o *renderOptions) settle(c *command.Call) error {
	switch err := o.units.Settle(c.Env); {
	case err != nil:
		return err
	case o.units.Many() && filepath.IsAbs(o.out):
		return fmt.Errorf("with --all, --out is a name in the directory of each unit, not the path of one file")
	case len(c.Args) > 0:
		return fmt.Errorf("the command takes flags alone")
	}
	o.json = o.json || o.metadata || o.format == "json"
	o.write = o.write || o.out != ""
	return nil
}

// renderOptions contains the flags of render.
type renderOptions struct {
	units          *unitflags.Flags
	json, metadata bool
	write, reveal  bool
	format, out    string
}

// runRender prints the effective configuration of one unit, or of all.
func runRender(ctx context.Context, c *command.Call, ro *renderOptions) int {
	f := ro.units
	units.WorkIn(c, f)
	o, ds := units.LookOptions(c, f, "render", nil)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.AboveStatus(ds)
	o.Tolerant, o.Rendering = true, true
	if f.Many() {
		e, ds := units.Open(ctx, c, o)
		defer e.Close(ctx)
		if ds.HasErrors() {
			return units.FailWith(c, e, ds)
		}
		units.Beside(c, e, ds)
		code := 0
		for _, u := range e.Found.Order(false) {
			code = max(code, render(ctx, c, e, u, ro)) // exclude blocks do not apply, since nothing runs
		}
		return code
	}
	e, u, ds := units.OpenUnit(ctx, c, o, units.UnitPath(c, f), f.Module)
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	units.Beside(c, e, append(ds, u.Warnings(e.Task(ctx))...))
	return render(ctx, c, e, u, ro)
}

// render prints or writes the configuration of one unit.
func render(ctx context.Context, c *command.Call, e *estate.Estate, u *estate.Unit, o *renderOptions) int {
	var b []byte
	var ds diag.List
	in := u.Unit
	if taken := e.Declared(ctx, u); taken != nil {
		in = in.Using(func(name string) bool { return taken[name] != nil })
	}
	open := o.write || o.reveal // a file must contain the real values to be usable
	if open {
		in = in.Revealing()
	}
	switch t := e.Task(ctx); {
	case o.metadata:
		b, ds = in.RenderMetadata(t)
	case o.json:
		b, ds = in.RenderJSON(t)
	default:
		b, ds = in.RenderHCL(t)
	}
	units.Beside(c, e, ds)
	if ds.HasErrors() {
		return 1
	}
	text := strings.TrimRight(string(b), "\n") + "\n"
	if !open {
		text = source.HideCredentials(text)
	}
	b = []byte(text)
	if !o.write {
		_, _ = c.Stdout.Write(b)
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
	if err := atomicfile.WriteUnlinked(name, b, 0o600); err != nil {
		return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the configuration", "%s.", err))
	}
	return 0
}
