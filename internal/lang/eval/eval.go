// Package eval evaluates a module tree on demand: the resource instances with their
// configuration, and the values of variables, locals and outputs.
//
// Main types: Evaluator, Module (one module instance) and Desired (one configured resource
// instance). The one rule: eval knows neither state nor plugins. The Phase determines the value
// of a resource instance.
package eval

import (
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A Phase supplies the information that is not in configuration. A plan returns planned values,
// an apply new values, and validation unknown values.
type Phase interface {
	// Value returns the value of a configured instance for references, including marks.
	Value(t *demand.Task, d *Desired) (cty.Value, diag.List)
	// Schema returns the schema of a provider.
	Schema(t *demand.Task, p addr.Provider) (*schema.Provider, diag.List)
	// Function returns a provider-defined function. cfg is nil for an unconfigured provider.
	Function(t *demand.Task, p addr.Provider, cfg *ProviderConfig, name string) (function.Function, diag.List)
}

// Options configures an evaluation.
type Options struct {
	Tree      *module.Tree
	Phase     Phase
	Variables map[string]Input // values of root variables
	Workspace string
	RootDir   string // value of path.root
	Cwd       string // value of path.cwd
	Functions map[string]function.Function
	// Compiled caches preprocessed configuration for successive evaluations of one tree. nil
	// means that this evaluation has its own cache.
	Compiled *Compiled
	// Validating evaluates every block once with unknown repetition. Root variables are unknown
	// values of their types.
	Validating bool
	// Alone validates the root module as a module that another module will call: provider
	// configurations that the caller must pass count as passed.
	Alone bool
	// Applying is the value of terraform.applying.
	Applying bool
	// Deferring determines which objects are deferred if they cannot be planned yet. Otherwise
	// that is an error.
	Deferring Deferring
	// Postponed returns, for the address of a resource or module call whose instances a plan has
	// deferred, a test for the addresses of the instances that the plan contains. These are then
	// the only ones, whatever is known now: the apply of the plan must not read what the plan
	// did not read. It returns nil for other blocks, and may be nil.
	Postponed func(block string) func(instance string) bool
	// Exists reports whether a reference to a whole resource includes an instance. With
	// targets, instances that are neither planned nor in state are excluded. nil means that all
	// are included.
	Exists func(*demand.Task, *Desired) bool
	// Kept returns the instances of a resource that are not in the configuration, but included
	// in references to the whole resource. In a refresh-only plan these are the instances in
	// state. nil means none.
	Kept func(*demand.Task, *Resource, *Instances) []NotWanted
	// Estimating gives a block whose number of instances is unknown one instance that represents
	// all, as Validating does. Otherwise an unknown number is an error.
	Estimating bool
	// Lenient turns failed conditions into warnings, as in a refresh-only plan.
	Lenient bool
	// Narrow does not read the references in the arguments of a module call without instances.
	// With targets only the dependencies of planned objects are read.
	Narrow bool
}

// An Input is the value of a root variable. At is nil unless it comes from a file.
type Input struct {
	Value cty.Value
	At    *source.Range
	From  string // origin for messages, such as `the environment variable TF_VAR_x`
}

// An Evaluator is one evaluation of a tree. It is safe for concurrent use by many tasks.
type Evaluator struct {
	Root *Module
	o    Options

	report func(diag.List) // adds messages that belong to no cell

	compiled *Compiled
	reported sync.Map // *body and *callCode whose messages were reported

	deprecated atomic.Bool // a value was marked as deprecated
	oldParts   sync.Map    // *schema.Resource to its *oldPart

	metas sync.Map // *config.ProviderMeta to *providerMeta

	unknown  map[string]bool // root variables with unknown parts; nil with DeferNothing
	deferred sync.Map        // *demand.Node of deferred instances
}

// New returns an Evaluator. Nothing is evaluated before it is needed.
func New(g *demand.Graph, o Options) *Evaluator {
	ev := &Evaluator{report: g.Report, o: o, compiled: o.Compiled, unknown: unknownInputs(o)}
	if ev.compiled == nil {
		ev.compiled = &Compiled{}
	}
	ev.Root = ev.newModule(nil, nil, o.Tree.Root, "", instance{})
	return ev
}

// Tree returns the tree that is evaluated.
func (ev *Evaluator) Tree() *module.Tree { return ev.o.Tree }

// instance is one repetition of a block with its key and each.value.
type instance struct {
	key     addr.Key
	each    cty.Value // cty.NilVal without for_each
	eachKey cty.Value // value of each.key if it differs from the key: unknown during validation
	count   cty.Value // value of count.index if it differs from the key
	// uncertain means that the instance may not exist, because the value of count, for_each or enabled is
	// unknown. Only set with Options.Estimating.
	uncertain bool
}
