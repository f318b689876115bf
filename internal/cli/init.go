package cli

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
)

type initOptions struct {
	vars          []vars.Flag
	json          jsonFlags
	input         bool
	lock          lockFlags
	fromModule    string
	get, upgrade  bool
	lockfile      string
	lockModules   bool
	pluginDirs    listFlag
	backendOn     bool
	backendConfig listFlag
	forceCopy     bool
	reconfigure   bool
	migrate       bool
}

func initCommand(ctx context.Context, s *session, args []string) int {
	var o initOptions
	var cloud, ignoreVersion bool
	var testDir string
	f := newFlags("init")
	addVars(f, &o.vars)
	o.json.add(f)
	o.lock.add(f)
	f.BoolVar(&o.input, "input", true, "")
	f.BoolVar(&o.backendOn, "backend", true, "")
	f.BoolVar(&cloud, "cloud", true, "")
	f.Var(&o.backendConfig, "backend-config", "")
	f.StringVar(&o.fromModule, "from-module", "", "")
	f.BoolVar(&o.get, "get", true, "")
	f.BoolVar(&o.upgrade, "upgrade", false, "")
	f.Var(&o.pluginDirs, "plugin-dir", "")
	f.StringVar(&o.lockfile, "lockfile", "", "")
	f.BoolVar(&o.lockModules, "lock-modules", false, "")
	f.StringVar(&testDir, "test-directory", "tests", "")
	f.BoolVar(&o.forceCopy, "force-copy", false, "")
	f.BoolVar(&o.reconfigure, "reconfigure", false, "")
	f.BoolVar(&o.migrate, "migrate-state", false, "")
	f.BoolVar(&ignoreVersion, "ignore-remote-version", false, "")
	if !s.parse(f, args) || !s.useJSON(o.json) {
		return 1
	}
	defer s.finish()
	given := map[string]bool{}
	f.Visit(func(fl *flag.Flag) { given[fl.Name] = true })
	switch {
	case given["backend"] && given["cloud"]:
		return s.fail(diag.Errorf(nil, "Wrong combination of options", "The -backend and -cloud options are aliases of one another and mutually-exclusive in their use"))
	case o.migrate && o.reconfigure:
		return s.fail(diag.Errorf(nil, "Wrong combination of options", "The -migrate-state and -reconfigure options are mutually-exclusive"))
	case o.lockfile == "readonly" && o.upgrade:
		return s.fail(diag.Errorf(nil, "Wrong combination of options", "The -upgrade option changes the dependency lock file, which -lockfile=readonly forbids"))
	case o.lockfile != "" && o.lockfile != "readonly":
		return s.fail(diag.Errorf(nil, "Invalid dependency lockfile mode", "The -lockfile option knows the mode \"readonly\" only, not %q.", o.lockfile))
	case f.NArg() > 0:
		return s.usageError("init", "Too many command line arguments", "To specify a working directory, use the global -chdir flag.")
	}
	o.backendOn = o.backendOn && cloud
	o.migrate = o.migrate || o.forceCopy
	return runInit(ctx, s, &o)
}

func runInit(ctx context.Context, s *session, o *initOptions) int {
	if o.fromModule != "" {
		if ds := s.copyModule(ctx, o.fromModule); ds.HasErrors() {
			return s.fail(ds)
		}
	}
	if !config.IsConfigDir(s.Dir, config.Options{}) {
		s.human.Good(view.Product + " initialized in an empty directory!")
		s.say("\n\nThe directory has no " + view.Product + " configuration files. You may begin working\nwith " + view.Product + " immediately by creating " + view.Product + " configuration files.\n")
		return 0
	}
	i := &initializer{session: s, o: o}
	ds := i.run(ctx)
	if i.project != nil {
		i.project.close()
	}
	if ds.HasErrors() {
		return s.fail(ds)
	}
	s.tell(ds)
	s.human.Say("\n")
	s.human.Good(view.Product + " has been successfully initialized!")
	s.human.Say("\n")
	s.stream.Log(view.Product + " has been successfully initialized!")
	if !s.automated() {
		s.sayNext()
	}
	return 0
}

func (s *session) sayNext() {
	text := "You may now begin working with " + view.Product + ". Try running \"" + view.Program + " plan\" to see\nany changes that are required for your infrastructure. All " + view.Product + " commands\nshould now work.\n\n" +
		"If you ever set or change modules or backend configuration for " + view.Product + ",\nrerun this command to reinitialize your working directory. If you forget, other\ncommands will detect it and remind you to do so if necessary.\n"
	s.human.Say("\n" + text)
	s.stream.Log(strings.Join(strings.Fields(text), " "))
}

// An initializer is one init under way.
type initializer struct {
	*session
	o       *initOptions
	project *project
	sources *engine.Sources // of the working folder, each read once for all steps
}

// run does the steps in their order: configuration, backend, modules, providers.
func (i *initializer) run(ctx context.Context) diag.List {
	i.sources = i.files()
	root, ds := i.sources.Load(".", i.set)
	if ds.HasErrors() {
		if i.human != nil {
			fmt.Fprint(i.Stderr, "\n"+view.Product+" encountered problems during initialization, including problems\nwith the configuration, described below.\n\n"+
				"The "+view.Product+" configuration must be valid before initialization so that\n"+view.Product+" can determine which modules and providers need to be installed.\n")
		}
		return ds
	}
	i.say("\nInitializing the backend...\n")
	if ds := i.refuse(root); len(ds) > 0 {
		return ds
	}
	ds, more := nil, diag.List(nil)
	if i.o.backendOn {
		if more = i.initBackend(ctx, root); more.HasErrors() {
			return more
		}
		ds = append(ds, more...)
	}
	if i.o.get && len(root.Calls) > 0 {
		more = i.initModules(ctx)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
	}
	i.project, more = i.load(ctx, loadOptions{vars: i.o.vars, input: i.o.input, partial: true, files: i.sources})
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	return append(ds, i.initProviders(ctx)...)
}

func initUsage() string {
	return usageText("Usage: "+view.Program+" [global options] init [options]\n\n"+
		"  Initialize a new or existing "+view.Product+" working directory by creating\n  initial files, loading any remote state, downloading modules, etc.\n\n"+
		"  This is the first command that should be run for any new or existing\n  "+view.Product+" configuration per machine. It is always safe to run it again: it\n  never deletes configuration or state.",
		option("-backend=false", "Leave the backend as it was initialized before. Alias: -cloud=false."),
		option("-backend-config=path", "Configuration to be merged with what is in the backend block: a file with assignments or a 'key=value'. May be repeated."),
		option("-force-copy", "Answer \"yes\" to all questions about copying state."),
		option("-from-module=SOURCE", "Copy the contents of the given module into the working directory first."),
		option("-get=false", "Do not install modules."),
		option("-input=false", "Do not ask for input; what has to be asked is an error then."),
		option("-lock=false", "Do not hold a state lock while state is migrated."),
		option("-lock-timeout=0s", "How long to retry a state lock."),
		option("-no-color", "No color in the output."),
		option("-plugin-dir=path", "A folder with provider packages, in place of all others. May be repeated."),
		option("-reconfigure", "Take the backend configuration as it is, without regard to what was configured before."),
		option("-migrate-state", "Take the backend configuration as it is and copy existing state to it."),
		option("-upgrade", "Install the latest module and provider versions that the constraints allow."),
		option("-lockfile=readonly", "Fail where the dependency lock file would have to change."),
		option("-lock-modules", "Pin remote modules in the dependency lock file, and keep them pinned from now on."),
		option("-json", "Produce output in a machine-readable JSON format."),
		option("-json-into=path", "Write the machine-readable output to a file, besides the output for people."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module. May be repeated."),
		option("-var-file=path", "Load variable values from a file. May be repeated."))()
}
