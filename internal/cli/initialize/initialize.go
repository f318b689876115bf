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
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/testrun"
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
		Prepare: func() (command.Flags, command.Run) {
			o := newOptions(&flags.Request{})
			cloud := true
			fs := o.flags(&cloud)
			return fs, func(ctx context.Context, c *command.Call) int {
				if !o.Json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				switch {
				case c.Given("backend") && c.Given("cloud"):
					return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Wrong combination of options", "The -backend and -cloud options are aliases of one another and mutually-exclusive in their use"))
				case o.migrate && o.reconfigure:
					return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Wrong combination of options", "The -migrate-state and -reconfigure options are mutually-exclusive"))
				case o.lockfile == "readonly" && o.upgrade:
					return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Wrong combination of options", "The -upgrade option changes the dependency lock file, which -lockfile=readonly forbids"))
				case o.lockfile != "" && o.lockfile != "readonly":
					return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Invalid dependency lockfile mode", "The -lockfile option knows the mode \"readonly\" only, not %q.", o.lockfile))
				case len(c.Args) > 0:
					return c.UsageError("Too many command line arguments", "To specify a working directory, use the global -chdir flag.")
				}
				o.backendOn = o.backendOn && cloud
				o.migrate = o.migrate || o.forceCopy
				return runInit(ctx, c, o)
			}
		},
	}
}

// flags returns the flags of init. cloud is an alias of backendOn.
func (o *initOptions) flags(cloud *bool) command.Flags {
	fs := command.Flags{
		command.Bool(&o.backendOn, "backend", "Leave the backend as it was initialized before. Alias: -cloud=false."),
		command.Bool(cloud, "cloud", "").Hide(),
		command.List(&o.backendConfig, "backend-config", "path", "Configuration to be merged with what is in the backend block: a file with assignments or a 'key=value'. May be repeated.").Completes(command.Files),
		command.Bool(&o.forceCopy, "force-copy", "Answer \"yes\" to all questions about copying state."),
		command.Text(&o.fromModule, "from-module", "SOURCE", "Copy the contents of the given module into the working directory first."),
		command.Bool(&o.get, "get", "Do not install modules."),
		command.Bool(&o.Input, "input", "Do not ask for input; what has to be asked is an error then."),
	}
	lock := o.State.Lock.Flags()
	lock[0].Help = "Do not hold a state lock while state is migrated."
	fs = append(append(fs, lock...), flags.NoColor(),
		command.List(&o.pluginDirs, "plugin-dir", "path", "A directory with provider packages, in place of all others. May be repeated.").Completes(command.Folders),
		command.Bool(&o.reconfigure, "reconfigure", "Take the backend configuration as it is, without regard to what was configured before."),
		command.Bool(&o.migrate, "migrate-state", "Take the backend configuration as it is and copy existing state to it."),
		command.Bool(&o.upgrade, "upgrade", "Install the latest module and provider versions that the constraints allow."),
		command.Text(&o.lockfile, "lockfile", "readonly", "Fail where the dependency lock file would have to change."),
		command.Bool(&o.lockModules, "lock-modules", "Pin remote modules in the dependency lock file, and keep them pinned from now on."))
	fs = append(append(fs, o.Json.Flags()...), flags.Vars(&o.Vars)...)
	fs = append(fs, flags.TestDirectory(&o.TestDirectory).Hide(), command.Bool(&o.ignoreVersion, "ignore-remote-version", "").Hide())
	return fs
}

// Over returns the form of init for many units, which installs missing modules and providers.
// With any other flag, init runs once for each unit.
func Over() *flags.Over {
	return &flags.Over{
		Flags: func(r *flags.Request) command.Flags {
			cloud := true
			return newOptions(r).flags(&cloud)
		},
		Together: []string{"json", "input", "var", "var-file", "no-color"},
	}
}

type initOptions struct {
	*flags.Request
	fromModule    string
	get, upgrade  bool
	lockfile      string
	lockModules   bool
	pluginDirs    []string
	backendOn     bool
	backendConfig []string
	forceCopy     bool
	reconfigure   bool
	migrate       bool
	ignoreVersion bool
}

func newOptions(r *flags.Request) *initOptions {
	r.Input = true
	return &initOptions{Request: r, backendOn: true, get: true}
}

func runInit(ctx context.Context, c *command.Call, o *initOptions) int {
	if o.fromModule != "" {
		if ds := copyModule(ctx, c, o.fromModule); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	if !config.IsConfigDir(c.Dir, config.Options{}) {
		c.Report.Human.Good(view.Product + " initialized in an empty directory!")
		c.Report.Say("\n\nThe directory has no " + view.Product + " configuration files. You may begin working\nwith " + view.Product + " immediately by creating " + view.Product + " configuration files.\n")
		return 0
	}
	cloud, ds := setup.Run(ctx, c.Directory, o.setup(c), viewOf(c))
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.Tell(ds)
	c.Report.Human.Say("\n")
	done := view.Product + " has been successfully initialized!"
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
	o := newOptions(&flags.Request{TestDirectory: testrun.DefaultDirectory, State: flags.State{Lock: flags.Lock{On: true}}})
	o.Input = false
	if len(words) > 0 {
		cloud := true
		words, err := flags.View(&c.Report.Options).Take(words, true)
		if err == nil {
			words, _, err = o.flags(&cloud).Parse(words, nil, false)
		}
		if err == nil && len(words) > 0 {
			err = fmt.Errorf("%q is no flag", words[0])
		}
		if err != nil {
			return diag.Errorf(diag.CodeCLIFlags, nil, "Failed to parse command-line flags", "What is added to init cannot be read: %s.", err)
		}
		o.Input, o.backendOn, o.migrate = false, o.backendOn && cloud, o.migrate || o.forceCopy
	}
	_, ds := setup.Run(ctx, c.Directory, o.setup(c), viewOf(c))
	return ds
}

// setup returns the settings that the flags request.
func (o *initOptions) setup(c *command.Call) setup.Options {
	return setup.Options{
		Vars: o.Vars, Input: o.Input,
		NoBackend: !o.backendOn, BackendConfig: o.backendConfig, Reconfigure: o.reconfigure, Migrate: o.migrate, ForceCopy: o.forceCopy, IgnoreVersion: o.ignoreVersion,
		Unlocked: !o.State.Lock.On, LockTimeout: o.State.Lock.Timeout, Who: c.Who(),
		NoModules: !o.get, Tests: o.TestDirectory, Upgrade: o.upgrade, Readonly: o.lockfile == "readonly", Pin: o.lockModules, PluginDirs: o.pluginDirs,
	}
}

// viewOf returns a view that prints the progress.
func viewOf(c *command.Call) *setup.View {
	v := &setup.View{
		Say: c.Report.Say, Human: c.Report.Human.Say, Good: c.Report.Human.Good, Log: c.Report.Stream.Log,
		Transfer: func() setup.Transfer {
			t := project.NewTransfers(c)
			if t == nil {
				return setup.Transfer{}
			}
			return setup.Transfer{Package: t.Module, Provider: t.Provider, End: t.End}
		},
	}
	if c.Prompt.May(true) {
		v.Ask = func(ctx context.Context, title, text string) (string, error) {
			return c.Prompt.Ask(ctx, prompt.Question{Title: title, Text: text})
		}
	}
	if c.Report.Human != nil {
		v.Invalid = func() {
			fmt.Fprint(c.Stderr, "\n"+view.Product+" encountered problems during initialization, including problems\nwith the configuration, described below.\n\n"+
				"The "+view.Product+" configuration must be valid before initialization so that\n"+view.Product+" can determine which modules and providers need to be installed.\n")
		}
	}
	return v
}

func sayNext(c *command.Call, cloud bool) {
	text := "You may now begin working with " + view.Product + ". Try running \"" + view.Program + " plan\" to see\nany changes that are required for your infrastructure. All " + view.Product + " commands\nshould now work.\n\n" +
		"If you ever set or change modules or backend configuration for " + view.Product + ",\nrerun this command to reinitialize your working directory. If you forget, other\ncommands will detect it and remind you to do so if necessary.\n"
	if cloud {
		text = "You may now begin working with cloud backend. Try running \"" + view.Program + " plan\" to\nsee any changes that are required for your infrastructure.\n\n" +
			"If you ever set or change modules or " + view.Product + " Settings, run \"" + view.Program + " init\"\nagain to reinitialize your working directory.\n"
	}
	c.Report.Human.Say("\n" + text)
	c.Report.Stream.Log(strings.Join(strings.Fields(text), " "))
}
