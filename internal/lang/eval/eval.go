// Package eval says what a module tree wants: the resource instances, with
// their configuration, and the values of variables, locals and outputs, all
// computed on demand.
//
// Main types: Evaluator, Module (one module instance) and Desired (one wanted
// resource instance). The one rule: eval knows neither state nor plugins; what
// value a resource instance has, its Phase says.
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

// A Phase supplies what configuration alone does not know. Plan answers with
// planned values, apply with new ones, validate with unknowns.
type Phase interface {
	// Value is what a reference to a wanted instance yields; marks included.
	Value(t *demand.Task, d *Desired) (cty.Value, diag.List)
	// Schema returns the schema of a provider.
	Schema(t *demand.Task, p addr.Provider) (*schema.Provider, diag.List)
	// Function calls a provider-defined function. cfg is nil for an unconfigured provider.
	Function(t *demand.Task, p addr.Provider, cfg *ProviderConfig, name string) (function.Function, diag.List)
}

// Options are what an evaluation starts from.
type Options struct {
	Tree      *module.Tree
	Phase     Phase
	Variables map[string]Input // of the root module
	Workspace string
	RootDir   string // path.root
	Cwd       string // path.cwd
	Functions map[string]function.Function
	// Compiled keeps what was read of configuration, for evaluations of one tree that
	// come one after another; nil: for this one alone.
	Compiled *Compiled
	// Validating evaluates every block once with unknown repetition, and root
	// variables as unknown values of their types.
	Validating bool
	// Alone takes the root module for one that another will call: provider configurations
	// that it takes from a caller count as given.
	Alone bool
	// Applying makes terraform.applying true, and unknown in none.
	Applying bool
	// Deferring defers what depends on unknown root variables and cannot be planned
	// before they are known, where that is an error otherwise.
	Deferring bool
	// Exists reports whether an instance is there for those who read its resource as
	// a whole: with targets some are neither planned nor in state. nil: all are.
	Exists func(*demand.Task, *Desired) bool
	// Kept lists the instances of a resource that are not wanted, but there for those
	// who read it as a whole: in a refresh-only plan what state has. nil: none.
	Kept func(*demand.Task, *Resource, *Instances) []NotWanted
	// Lenient makes warnings of conditions that fail, as a refresh-only plan has it.
	Lenient bool
	// Narrow reads nothing for the arguments of a module without instances: with targets
	// only what something planned needs is asked for.
	Narrow bool
}

// An Input is the value of a root variable. Its place is nil outside files.
type Input struct {
	Value cty.Value
	At    *source.Range
	From  string // where it came from, for messages: `the environment variable TF_VAR_x`
}

// An Evaluator is one evaluation of a tree. It may be used by many tasks at once.
type Evaluator struct {
	Root *Module
	o    Options

	report func(diag.List) // adds messages that belong to no cell

	compiled *Compiled
	reported sync.Map // *body and *callCode whose messages were reported

	deprecated atomic.Bool // whether anything was marked as deprecated
	oldParts   sync.Map    // *schema.Resource to what its provider calls deprecated

	metas sync.Map // *config.ProviderMeta to *providerMeta

	unknown  map[string]bool // root variables with something unknown in them; nil unless deferring
	deferred sync.Map        // *demand.Node of instances that are deferred
}

// New prepares an evaluation; nothing is evaluated before it is asked for.
func New(g *demand.Graph, o Options) *Evaluator {
	ev := &Evaluator{report: g.Report, o: o, compiled: o.Compiled, unknown: unknownInputs(o)}
	if ev.compiled == nil {
		ev.compiled = &Compiled{}
	}
	ev.Root = ev.newModule(nil, nil, o.Tree.Root, "", instance{})
	return ev
}

// Tree is the tree that is evaluated.
func (ev *Evaluator) Tree() *module.Tree { return ev.o.Tree }

// instance is one repetition of a block: its key and each.value.
type instance struct {
	key     addr.Key
	each    cty.Value // each.value; cty.NilVal without for_each
	eachKey cty.Value // each.key where it is not the key's text: unknown while validating
	count   cty.Value // count.index where it is not the key's number
}
