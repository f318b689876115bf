// Package engine loads a folder of configuration, validates it, plans and
// applies it: the facade for the command line, the estate and programs that
// embed Terrace. Struct in, struct out.
//
// Main types: Options, Engine, PlanOptions and ApplyOptions. The one rule: an
// Engine works on one folder and workspace; its methods may be called one after
// another, and only events and provider calls happen concurrently.
package engine

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/provider/builtin"
	"github.com/terrace-iac/terrace/internal/provider/manager"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Names for callers outside this module.
type (
	Plan   = plan.Plan
	Change = plan.Change
	State  = state.State
	Event  = event.Event
)

// Options says which folder to work on and with what. Dir is required.
type Options struct {
	Dir         string      // the root module's folder, as shown in messages ("." for the current one)
	LaunchDir   string      // path.cwd: where the program was started; "" means Dir
	DataDir     string      // ".terraform" relative to Dir if ""
	Workspace   string      // "default" if ""
	Environ     []string    // the complete environment for child processes, and TF_* settings
	Set         *source.Set // receives the text of every file read; nil makes one
	Observe     event.Sink
	Now         func() time.Time // nil: the system clock
	Stderr      io.Writer        // where plugins write; nil discards
	Parallelism int              // provider calls at once; 0 means 10

	// Providers makes instances of the providers that configuration names. The
	// command line passes installed plugins; tests pass doubles. The built-in
	// provider is always there.
	Providers ProviderSource

	// Value gives a root variable the value that sources and versions of modules are made
	// with, while the engine opens; it is asked for those variables alone. nil: none has one.
	Value ValueFunc

	// Overlay replaces files under Dir in memory; nil reads the disk alone.
	Overlay map[string][]byte

	// ReadFile reads what is no configuration: the files that functions name, and the list of
	// installed modules. It must be safe to call concurrently, and give what the files hold
	// now. nil: they are read from disk each time.
	ReadFile func(path string) ([]byte, error)

	// Sources, if not nil, is where configuration is read in place of Dir and
	// Overlay. Engines that share it read and parse each file once; their Set must
	// then be the same, too.
	Sources *Sources

	// Root is the root module where it is another one than that of Dir, or not as it is
	// written.
	Root RootModule

	// Decorate, if not nil, is given the factory of every provider that is needed, also of
	// the built-in one, and returns what is used in its place; nil: it is used as it is.
	// Providers that are decorated are not shared with other engines.
	Decorate func(addr.Provider, provider.Factory) provider.Factory

	Services
}

// A RootModule says what is run in a folder. The zero value is the module of the
// folder as it is written.
type RootModule struct {
	Dir string // the folder of the root module, relative to that of the options; "" for that
	Key string // what stands before the keys of its calls in the list of installed modules
	// Change returns what is run in place of a module that was loaded, which it must not
	// change itself; nil: all are run as they are written.
	Change func(path addr.Module, m *config.Module) *config.Module
}

// Services are what an engine uses of the program around it.
type Services struct {
	// Provisioners runs provisioner blocks; nil makes them errors.
	Provisioners Provisioners

	// ReadState serves the data source terraform_remote_state; nil makes it an error.
	ReadState ReadState

	// Processes, if not nil, has the provider processes that several engines share;
	// it must outlive the engine. Calls of engines with one Turn wait in one line.
	Processes *Processes
	Turn      string
}

// A ReadState reads the latest state of a workspace out of a backend. The
// configuration is an object or null. A nil State means that there is none.
// Messages about one argument have Attr set to its path in config. With
// workspace "" the backend takes its default one. Where check is set, only the
// configuration is checked and nothing is read.
type ReadState func(ctx context.Context, req ReadStateRequest) (*state.State, diag.List)

// builtin is the function as the built-in provider calls it.
func (f ReadState) builtin() builtin.ReadState {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, req builtin.ReadStateRequest) (*state.State, diag.List) {
		return f(ctx, ReadStateRequest(req))
	}
}

// A ReadStateRequest names a state.
type ReadStateRequest struct {
	Backend   string
	Config    cty.Value // an object, or null of any type
	Workspace string    // "" for the default one
	Address   string    // of the data source; "" where it is not known
	Check     bool      // check Backend and Config alone; nothing is read and the State is nil
}

// Processes are provider processes of several engines. See NewProcesses. The methods may
// be called concurrently.
type Processes struct{ host *manager.Host }

// ProcessOptions are the settings of NewProcesses; the zero value is usable. They are those
// of the package that keeps processes, which is internal: its name would hide what they are.
// The compiler holds the two to each other.
type ProcessOptions struct {
	// Dir is where providers start that are indifferent to their folder.
	Dir string
	// FolderIndependent tells whether a provider is indifferent to its folder; nil: none is.
	FolderIndependent func(addr.Provider) bool
	// Needed tells whether units that are still to come may need a provider, so that
	// its processes are kept; nil: they may need any. It must not call the host.
	Needed func(addr.Provider) bool
	// Calls is how many calls of providers may run at once, over all pools, which
	// take turns; 0 means any number.
	Calls int
	// CallsOf is how many calls may run at once of a provider with one configuration;
	// nil, or 0: any number.
	CallsOf func(addr.Provider) int
	// CountPerEngine counts the calls of CallsOf for each pool by itself: the others that use a
	// configuration are counted elsewhere.
	CountPerEngine bool
}

// NewProcesses makes an empty set of processes. Who makes it says with Expect and
// Done how many engines are still to come, and closes it.
func NewProcesses(o ProcessOptions) *Processes {
	return &Processes{manager.NewHost(manager.Options(o))}
}

// Expect says that more engines are to come, so that processes that they may share are
// kept running for them.
func (p *Processes) Expect(engines int) { p.host.Expect(engines) }

// Done says that one of the engines that were expected has ended, or will not come.
func (p *Processes) Done() { p.host.Done() }

// Close ends all processes.
func (p *Processes) Close() { p.host.Close() }

// A Program is what a provider runs as; see ProgramSource.
type Program = provider.Program

// A ProgramSource is a ProviderSource whose providers engines can share.
type ProgramSource = provider.ProgramSource

// Sources are the configuration files of one or several engines.
type Sources struct {
	// FS reads files by their names relative to an engine's Dir.
	FS config.FS
	// Parses keeps the files that were parsed, for other Sources with files
	// that lie at the same place; nil: for these alone.
	Parses *config.Parses

	loads module.Loads
	trees parallel.Cache[string, builtTree]
}

// A builtTree is a tree of modules with its messages.
type builtTree struct {
	tree *module.Tree
	ds   diag.List
}

// build builds the tree of an engine, once for all of them if it is the same for all.
func (s *Sources) build(ctx context.Context, dir string, o module.Options) (*module.Tree, diag.List) {
	if s == nil || o.Change != nil {
		return module.Build(ctx, dir, o)
	}
	key := dir + "\x00" + o.KeyPrefix + "\x00" + o.Workspace
	for _, name := range slices.Sorted(maps.Keys(o.Manifest)) {
		m := o.Manifest[name]
		key += "\x00" + name + "\x00" + m.Source + "\x00" + m.Version + "\x00" + m.Dir
	}
	got, err := s.trees.Do(ctx, key, func() (builtTree, bool) {
		tree, ds := module.Build(ctx, dir, o)
		return builtTree{tree, ds}, !slices.ContainsFunc(ds, module.Missing)
	})
	if err != nil || !got.tree.Constant {
		return module.Build(ctx, dir, o)
	}
	return got.tree, slices.Clone(got.ds)
}

// Load is the configuration of a folder, read once for all that share the
// sources. The module must not be changed.
func (s *Sources) Load(dir string, set *source.Set) (*config.Module, diag.List) {
	return s.loads.Load(dir, config.Options{FS: s.FS, Set: set, Parses: s.Parses})
}

// Loads are the loaded folders.
func (s *Sources) Loads() *ModuleLoads { return &s.loads }

// Provisioners knows the types of provisioners and runs them. Schema is nil for a type that is
// not known. config and connection are values of the schemas, wholly known when they run, and
// connection is null without a connection block.
type Provisioners interface {
	Schema(typ string) *schema.Block
	ConnectionSchema() *schema.Block
	// Validate checks what the schemas cannot say; parts may be unknown.
	Validate(typ string, config, connection cty.Value) diag.List
	Run(ctx context.Context, typ string, config, connection cty.Value, output func(line string)) diag.List
}

// A ProviderSource gives the factory of a provider.
type ProviderSource interface {
	Factory(addr.Provider) (provider.Factory, diag.List)
}

// InputValue is the value of a root variable and where it came from.
type InputValue struct {
	Value cty.Value     // used as it is if Text is nil
	Text  *string       // text of the command line or environment, parsed by the variable's type
	At    *source.Range // in a variable file; nil otherwise
	From  source.Layer  // environment, variable file, flag, prompt
}

// ValueFunc returns the value of a root variable; ok is false if the variable has none. It
// is called when an expression that is evaluated before planning refers to the variable, by
// one goroutine at a time.
type ValueFunc func(ctx context.Context, v *config.Variable) (in InputValue, ok bool)

// Given returns values of root variables by name.
func Given(values map[string]InputValue) ValueFunc {
	return func(_ context.Context, v *config.Variable) (InputValue, bool) {
		in, ok := values[v.Name]
		return in, ok
	}
}

// PlanOptions are a plan's options and what it is made with; the zero value is a normal plan.
type PlanOptions struct {
	plan.Options
	Variables map[string]InputValue
	// Readings are what earlier plans found, and which of it may stand for new readings.
	Readings plan.Readings
	// Stop, when closed, gives the plan up, as the end of the context does.
	Stop <-chan struct{}
}

// ApplyOptions are the knobs of an apply.
type ApplyOptions struct {
	Variables map[string]InputValue // ephemeral ones of a saved plan
	// State keeps what comes of the apply; nil: the result alone has it.
	State state.Manager
	Every time.Duration // how often the whole state is written meanwhile; 0 means 20 s
	// Stop, when closed, lets running operations end and starts nothing more.
	Stop <-chan struct{}
}

// ApplyResult is what came of an apply.
type ApplyResult struct {
	State   *state.State // never nil
	Counts  plan.Counts  // of what was done
	Stopped bool         // a stop left actions undone
	Started bool         // the state was ready for it: state.Manager.Start did not fail
	// Providers say what the providers were configured with.
	Providers map[addr.ProviderConfig]state.Digest
}

// A Module is loaded configuration, for callers that need no more.
type Module = config.Module
