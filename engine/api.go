// Package engine loads the configuration of a directory, validates it, plans and applies it. It
// is the facade for the command line, for runs over many units and for programs that embed
// Terrace.
//
// Main types: Options, Engine, PlanOptions and ApplyOptions. The one rule: an Engine works on
// one directory and workspace. Its methods may be called one after another; only events and
// provider calls happen concurrently.
package engine

import (
	"context"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/lang/outliner"
	"github.com/terrace-iac/terrace/internal/provider/builtin"
	"github.com/terrace-iac/terrace/internal/provider/manager"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Options configures an Engine. Dir is required.
type Options struct {
	Dir         string      // the root module's directory, as shown in messages ("." for the current directory)
	LaunchDir   string      // value of path.cwd: the directory in which the program was started; "" means Dir
	DataDir     string      // directory for installed modules and providers; "" means ".terraform" in Dir
	Workspace   string      // "" means "default"
	Environ     []string    // the complete environment for child processes; TF_* settings are read from it as well
	Set         *source.Set // records the text of every file that is read, for messages; nil makes one
	Observe     event.Sink
	Now         func() time.Time // the clock; nil means the system clock
	Stderr      io.Writer        // receives the standard error of plugins; nil discards it
	Parallelism int              // maximum number of concurrent provider calls; 0 means 10

	// Providers returns the factories of the providers that the configuration requires. The
	// command line passes installed plugins, tests pass doubles. The built-in provider is
	// always available.
	Providers ProviderSource

	// Value returns the value of a root variable while the engine opens, for module sources and
	// versions that refer to variables. It is called for those variables only. nil means that
	// no variable has a value.
	Value ValueFunc

	// Overlay replaces files under Dir by contents in memory, by file name. nil means that all
	// files are read from disk.
	Overlay map[string][]byte

	// ReadFile reads files that are not configuration: those that functions name, and the list
	// of installed modules. It must be safe for concurrent use and return the current contents.
	// nil reads from disk each time.
	ReadFile func(path string) ([]byte, error)
	// Stat, ReadDir and Readlink are like the functions of package os, which nil means. They must be
	// safe for concurrent use. Functions such as fileset use them.
	Stat     func(path string) (fs.FileInfo, error)
	ReadDir  func(path string) ([]fs.DirEntry, error)
	Readlink func(path string) (string, error)

	// Sources, if not nil, provides the configuration files in place of Dir and Overlay.
	// Engines that share it read and parse each file once. They must also share Set.
	Sources *Sources
	// Files are the files of Dir that functions such as file read. If it is an [config.Above], they
	// also read files above Dir there. nil means the files on disk, or those of Sources if Dir is not
	// on disk; these may belong to the directory of another engine.
	Files config.FS
	// FilesOnDisk means that functions also read files on disk that Files does not contain, because
	// programs may have written them.
	FilesOnDisk bool

	// Root selects another root module than Dir, or changes the modules that are loaded.
	Root RootModule

	// Decorate, if not nil, receives the factory of every required provider, including the
	// built-in one. It returns the factory to use instead, or nil to use the original.
	// Decorated providers are not shared with other engines.
	Decorate func(addr.Provider, provider.Factory) provider.Factory

	Services
}

// A RootModule selects the root module of a run, and may change the loaded modules. The zero
// value is the module in Options.Dir, unchanged.
type RootModule struct {
	Dir string // the root module's directory, relative to Options.Dir; "" means Options.Dir
	Key string // prefix of its module calls' keys in the list of installed modules
	// Change returns the module to run in place of a loaded one. It must not modify m. nil runs
	// all modules as they are written.
	Change func(path addr.Module, m *config.Module) *config.Module
}

// Services are the parts of the surrounding program that an engine uses.
type Services struct {
	// Provisioners runs provisioner blocks. nil makes such blocks errors.
	Provisioners Provisioners

	// ReadState reads states for the data source terraform_remote_state. nil makes that data
	// source an error.
	ReadState ReadState

	// Processes, if not nil, owns provider processes that several engines share. It must
	// outlive the engine. Engines with the same Turn wait in one queue for their provider
	// calls.
	Processes *Processes
	Turn      string
}

// A ReadState reads the latest state of a workspace from a backend. It returns a nil State if
// the backend has none. Messages about one argument have Attr set to the argument's path in
// Config.
type ReadState func(ctx context.Context, req ReadStateRequest) (*state.State, diag.List)

// builtin returns f with the signature that the built-in provider expects.
func (f ReadState) builtin() builtin.ReadState {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, req builtin.ReadStateRequest) (*state.State, diag.List) {
		return f(ctx, ReadStateRequest(req))
	}
}

// A ReadStateRequest selects the state that a ReadState reads.
type ReadStateRequest struct {
	Backend   string
	Config    cty.Value // an object, or null of any type
	Workspace string    // "" means the backend's default workspace
	Address   string    // address of the data source; "" if it is not known
	Check     bool      // only validate Backend and Config: nothing is read and the returned State is nil
}

// Processes owns the provider processes of several engines. See NewProcesses. The methods are
// safe for concurrent use.
type Processes struct{ host *manager.Host }

// ProcessOptions configures NewProcesses. The zero value is usable. It repeats the options of
// an internal package, so that their documentation is visible to callers outside this module. A
// conversion fails to compile if the two types differ.
type ProcessOptions struct {
	// Dir is the working directory of providers that do not depend on the working directory.
	Dir string
	// Empty is the working directory of shared processes whose requests are searched for relative
	// paths. It should be empty, and is created if it does not exist. "" means that such providers
	// are not shared.
	Empty string
	// Sharing describes the providers. nil means that none works the same in any working
	// directory, that every one may be needed, and that calls are not limited by configuration.
	Sharing Sharing
	// Calls is the maximum number of concurrent provider calls over all pools, which take
	// turns. 0 means no limit.
	Calls int
	// CountPerEngine applies the limit of Sharing.CallsOf to each pool separately. It is for runs that
	// count the other users of a configuration elsewhere.
	CountPerEngine bool
}

// Sharing describes how engines share the processes of providers.
type Sharing = manager.Sharing

// A DirectoryUse describes how a provider uses its working directory.
type DirectoryUse = manager.DirectoryUse

// The uses of a working directory.
const (
	UsesDirectory    = manager.UsesDirectory
	UsesNamedPaths   = manager.UsesNamedPaths
	IgnoresDirectory = manager.IgnoresDirectory
)

// NewProcesses returns an empty set of processes. The caller reports with Expect and Done how
// many engines are still expected, and calls Close at the end.
func NewProcesses(o ProcessOptions) *Processes {
	return &Processes{manager.NewHost(manager.Options(o))}
}

// Expect announces that more engines will be opened. Processes that those may share are kept
// running.
func (p *Processes) Expect(engines int) { p.host.Expect(engines) }

// Done reports that one of the expected engines has ended or will not be opened.
func (p *Processes) Done() { p.host.Done() }

// Close stops all processes.
func (p *Processes) Close() { p.host.Close() }

// Sources gives access to the configuration files of one or more engines.
type Sources struct {
	// FS reads files by their names relative to an engine's Dir.
	FS config.FS
	// Parses caches parsed files for all Sources that use the same files. nil means that this
	// Sources has its own cache.
	Parses *config.Parses

	loads module.Loads
	trees parallel.Cache[string, builtTree]
}

// A builtTree is a tree of modules with the messages from building it.
type builtTree struct {
	tree *module.Tree
	ds   diag.List
	// compiled is for evaluations of several engines. nil means that one engine uses the tree.
	compiled *eval.Compiled
	outlined *outliner.Shared // like compiled, for outlines
	// plain means that no expression calls a function that depends on the engine.
	plain bool
}

// callsPlain returns builtTree.plain of a tree.
func callsPlain(t *module.Tree) bool {
	if t == nil {
		return false
	}
	for _, f := range t.Files() {
		if f.Bytes == nil || strings.HasSuffix(f.Path, ".json") || funcs.Configured(f.Bytes) { // strings in JSON may contain escape sequences
			return false
		}
	}
	return true
}

// build builds the module tree of an engine. If the tree is the same for all engines of s, it
// is built once.
func (s *Sources) build(ctx context.Context, dir string, o module.Options) builtTree {
	alone := func() builtTree {
		tree, ds := module.Build(ctx, dir, o)
		return builtTree{tree: tree, ds: ds}
	}
	if s == nil || o.Change != nil {
		return alone()
	}
	key := dir + "\x00" + o.KeyPrefix + "\x00" + o.Workspace
	for _, name := range slices.Sorted(maps.Keys(o.Manifest)) {
		m := o.Manifest[name]
		key += "\x00" + name + "\x00" + m.Source + "\x00" + m.Version + "\x00" + m.Dir
	}
	got, err := s.trees.Do(ctx, key, func() (builtTree, bool) {
		b := alone()
		b.compiled, b.outlined, b.plain = &eval.Compiled{Shared: true}, &outliner.Shared{}, callsPlain(b.tree)
		return b, !slices.ContainsFunc(b.ds, module.Missing)
	})
	if err != nil || !got.tree.Constant {
		return alone()
	}
	got.ds = slices.Clone(got.ds)
	return got
}

// Load returns the configuration of a directory, which is read once for all engines that share
// s. The caller must not modify the module.
func (s *Sources) Load(dir string, set *source.Set) (*config.Module, diag.List) {
	return s.loads.Load(dir, config.Options{FS: s.FS, Set: set, Parses: s.Parses})
}

// Loads returns the cache of loaded directories.
func (s *Sources) Loads() *config.Loads { return &s.loads }

// Provisioners validates and runs provisioners. config and connection conform to the schemas and
// are wholly known when a provisioner runs. connection is null if there is no connection block. The
// methods may be called concurrently.
type Provisioners interface {
	// Schema returns the schema of a provisioner type, or nil if the type is unknown.
	Schema(typ string) *schema.Block
	// ConnectionSchema returns the schema of connection blocks.
	ConnectionSchema() *schema.Block
	// Validate checks rules that a schema cannot express. Parts of the values may be unknown.
	Validate(typ string, config, connection cty.Value) diag.List
	// Run runs a provisioner. It calls output for each line that the provisioner prints.
	Run(ctx context.Context, typ string, config, connection cty.Value, output func(line string)) diag.List
}

// A ProviderSource returns the factory of a provider.
type ProviderSource interface {
	// Factory returns the factory of a provider, or an error if the provider is not available.
	Factory(addr.Provider) (provider.Factory, diag.List)
}

// InputValue is the value of a root variable with its source.
type InputValue struct {
	Value cty.Value     // used unchanged if Text is nil
	Text  *string       // text from the command line or environment, parsed according to the variable's type; nil if Value is set
	At    *source.Range // the range in the variable file; nil for other sources
	From  source.Layer  // the kind of source: environment, variable file, flag or prompt
}

// ValueFunc returns the value of a root variable; ok is false if the variable has none. It is
// called when an expression that is evaluated before planning refers to the variable. Calls are
// never concurrent.
type ValueFunc func(ctx context.Context, v *config.Variable) (in InputValue, ok bool)

// Given returns a ValueFunc that looks up values by name.
func Given(values map[string]InputValue) ValueFunc {
	return func(_ context.Context, v *config.Variable) (InputValue, bool) {
		in, ok := values[v.Name]
		return in, ok
	}
}

// PlanOptions configures Plan. The zero value makes a normal plan.
type PlanOptions struct {
	plan.Options
	Variables map[string]InputValue
	// Readings are results of earlier plans that may replace reading an object again.
	Readings plan.Readings
	// IgnorePreventDestroy plans deletes that lifecycle.prevent_destroy forbids, for objects that were
	// only created to be destroyed.
	IgnorePreventDestroy bool
	// Stop cancels planning when it is closed, like cancelling the context.
	Stop <-chan struct{}
}

// ApplyOptions configures Apply.
type ApplyOptions struct {
	Variables map[string]InputValue // values of ephemeral variables, which a saved plan does not contain
	// State stores the new state during the apply. nil means that the state is only returned in
	// the result.
	State state.Manager
	Every time.Duration // shortest interval between writes of the whole state; 0 means 20 s
	// Stop, when closed, starts no further operations; running ones may finish.
	Stop <-chan struct{}
	// ShowSensitive shows the output of provisioners whose configuration contains sensitive or
	// ephemeral values.
	ShowSensitive bool
}

// ApplyResult is the result of an apply.
type ApplyResult struct {
	State   *state.State // never nil
	Counts  plan.Counts  // objects that the apply changed
	Stopped bool         // some actions were not carried out because of Stop
	Started bool         // state.Manager.Start succeeded, so the apply began
	// Providers contains a digest of each provider's configuration.
	Providers map[addr.ProviderConfig]state.Digest
}
