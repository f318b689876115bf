// Package initialize implements the commands init and get, which prepare a directory for other
// commands.
//
// Main type: initOptions. The one rule: package setup does the work, also for programs that
// embed Terrace. This package declares the flags and prints the progress.
package initialize

import (
	"context"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/internal/workdir/setup"
)

// Command declares init.
func Command() command.Command {
	return command.Command{
		Name: "init", Synopsis: "Prepare your working directory for other commands", Main: true, Usage: "[options]",
		Uses:  command.State | command.Modules | command.Packages,
		Units: command.InUnit | command.Uninitialized | command.OverEstate,
		Help: `Initialize a new or existing Terrace working directory by creating
initial files, loading any remote state, downloading modules, etc.

This is the first command that should be run for any new or existing
Terrace configuration per machine. It is always safe to run it again: it
never deletes configuration or state.`,
		Examples: []command.Example{
			{Line: "init -upgrade", Text: "Look for newer versions of modules and providers within their constraints."},
			{Line: "init -backend-config=prod.hcl -reconfigure", Text: "Use another backend configuration, without a copy of the state."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			o := newOptions(&flags.Request{})
			return o.flags(), func(ctx context.Context, c *command.Call) int {
				if !o.Json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				switch {
				case c.Given("backend") && c.Given("cloud"):
					return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Wrong combination of options", "The -backend and -cloud options are aliases of one another and mutually-exclusive in their use"))
				case o.setup.Migrate && o.setup.Reconfigure:
					return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Wrong combination of options", "The -migrate-state and -reconfigure options are mutually-exclusive"))
				case o.setup.Lockfile == "readonly" && o.setup.Upgrade:
					return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Wrong combination of options", "The -upgrade option changes the dependency lock file, which -lockfile=readonly forbids"))
				case o.setup.Lockfile != "" && o.setup.Lockfile != "readonly":
					return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Invalid dependency lockfile mode", "The -lockfile option knows the mode \"readonly\" only, not %q.", o.setup.Lockfile))
				case len(c.Args) > 0:
					return c.UsageError("Too many command line arguments", "To specify a working directory, use the global -chdir flag.")
				}
				return runInit(ctx, c, o)
			}
		},
	}
}

// flags returns the flags of init, in the order of the help.
func (o *initOptions) flags() flag.Flags {
	fs := o.setup.Flags().
		After("force-copy", flag.Text(&o.fromModule, "from-module", "SOURCE", "Copy the contents of the given module into the working directory first.")).
		After("get", flag.Bool(&o.Input, "input", "Do not ask for input; what has to be asked is an error then.")).
		After("lock-timeout", flag.NoColor())
	more := append(o.Json.Flags(), flag.Vars(&o.Vars)...)
	return fs.After("lock-modules", append(more, flags.TestDirectory(&o.TestDirectory).Hide())...)
}

// Over returns the form of init for many units, which installs missing modules and providers.
// With any other flag, init runs once for each unit.
func Over() *flags.Over {
	return &flags.Over{
		Flags: func(r *flags.Request) flag.Flags {
			return newOptions(r).flags()
		},
		Together: []string{"json", "input", "var", "var-file", "no-color"},
	}
}

type initOptions struct {
	*flags.Request
	setup      setup.Options // options that are not in Request
	fromModule string
}

func newOptions(r *flags.Request) *initOptions {
	r.Input, r.State.On = true, true
	return &initOptions{Request: r}
}

func runInit(ctx context.Context, c *command.Call, o *initOptions) int {
	if o.fromModule != "" {
		if ds := copyModule(ctx, c, o.fromModule); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	if !config.IsConfigDir(c.Dir, config.Options{}) {
		c.Report.Human.Good(c.Report.Names.Product() + " initialized in an empty directory!")
		c.Report.Say("\n\nThe directory has no " + c.Report.Names.Product() + " configuration files. You may begin working\nwith " + c.Report.Names.Product() + " immediately by creating " + c.Report.Names.Product() + " configuration files.\n")
		return 0
	}
	cloud, ds := setup.Run(ctx, c.Directory, o.complete(c), initView{c})
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.Tell(ds)
	c.Report.Human.Say("\n")
	done := c.Report.Names.Product() + " has been successfully initialized!"
	if cloud {
		done = "Cloud backend has been successfully initialized!"
	}
	c.Report.Human.Good(done)
	c.Report.Human.Say("\n")
	c.Report.Stream.Log(done)
	if !c.Report.Automated() {
		sayNext(c, cloud)
	}
	return 0
}

// Quietly runs init with additional words. It does not prompt, and prints nothing if the call
// has no views.
func Quietly(ctx context.Context, c *command.Call, words []string) diag.List {
	o := newOptions(&flags.Request{Operation: request.Operation{TestDirectory: testrun.DefaultDirectory}})
	words, err := flags.View(&c.Report.Options).Take(words, true)
	if err == nil {
		words, _, err = o.flags().Parse(words, nil, false)
	}
	if err == nil && len(words) > 0 {
		err = fmt.Errorf("%q is no flag", words[0])
	}
	if err != nil {
		return setup.BadWords(err)
	}
	o.Input = false
	_, ds := setup.Run(ctx, c.Directory, o.complete(c), initView{c})
	return ds
}

// complete returns the settings that the flags request.
func (o *initOptions) complete(c *command.Call) setup.Options {
	out := o.setup
	out.Vars, out.Input, out.Tests, out.Who = o.Vars, o.Input, o.TestDirectory, c.Who()
	return out
}

// initView shows the progress of init in the views of a call.
type initView struct{ *command.Call }

func (v initView) Say(text string) { v.Report.Say(text) }

func (v initView) Human(text string) { v.Report.Human.Say(text) }

func (v initView) Good(text string) { v.Report.Human.Good(text) }

func (v initView) Log(text string) { v.Report.Stream.Log(text) }

func (v initView) Invalid() {
	if v.Report.Human != nil {
		v.Report.Human.Complain("\n" + v.Report.Names.Product() + " encountered problems during initialization, including problems\nwith the configuration, described below.\n\n" +
			"The " + v.Report.Names.Product() + " configuration must be valid before initialization so that\n" + v.Report.Names.Product() + " can determine which modules and providers need to be installed.\n")
	}
}

func (v initView) Names() diag.Names { return v.Report.Names }

func (v initView) Transfer() setup.Transfer { return project.NewTransfers(v.Call) }

func sayNext(c *command.Call, cloud bool) {
	text := "You may now begin working with " + c.Report.Names.Product() + ". Try running \"" + c.Report.Names.Program() + " plan\" to see\nany changes that are required for your infrastructure. All " + c.Report.Names.Product() + " commands\nshould now work.\n\n" +
		"If you ever set or change modules or backend configuration for " + c.Report.Names.Product() + ",\nrerun this command to reinitialize your working directory. If you forget, other\ncommands will detect it and remind you to do so if necessary.\n"
	if cloud {
		text = "You may now begin working with cloud backend. Try running \"" + c.Report.Names.Program() + " plan\" to\nsee any changes that are required for your infrastructure.\n\n" +
			"If you ever set or change modules or " + c.Report.Names.Product() + " Settings, run \"" + c.Report.Names.Program() + " init\"\nagain to reinitialize your working directory.\n"
	}
	c.Report.Human.Say("\n" + text)
	c.Report.Stream.Log(strings.Join(strings.Fields(text), " "))
}
