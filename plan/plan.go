// Package plan is what has to be done: a Plan, which is data alone. The planner
// makes it, apply carries it out, and views show it.
//
// Main types: Plan, Change (what becomes of one object, as it is shown) and
// Action (one step of carrying it out, with the steps that it needs first).
// The one rule: nothing in a Plan is a function or a connection, so that it can
// be printed, saved, compared and applied by another process.
package plan

import (
	"slices"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Mode is the kind of plan.
type Mode uint8

// The modes; they exclude one another.
const (
	Normal Mode = iota
	Destroy
	RefreshOnly
)

// Op is what happens to an object.
type Op = event.Op

// The operations. The last three are shown as one change and carried out as two actions.
const (
	NoOp             = event.NoOp
	Create           = event.Create
	Read             = event.Read
	Update           = event.Update
	Delete           = event.Delete
	Forget           = event.Forget
	DeleteThenCreate = event.DeleteThenCreate
	CreateThenDelete = event.CreateThenDelete
	ForgetThenCreate = event.ForgetThenCreate
)

// Reason says why an operation was chosen, in the words of the JSON plan
// format ("replace_because_tainted"); "" is none.
type Reason string

// The reasons.
const (
	ReplaceCannotUpdate    Reason = "replace_because_cannot_update"
	ReplaceTainted         Reason = "replace_because_tainted"
	ReplaceByRequest       Reason = "replace_by_request"
	ReplaceByTriggers      Reason = "replace_by_triggers"
	DeleteNoResourceConfig Reason = "delete_because_no_resource_config"
	DeleteWrongRepetition  Reason = "delete_because_wrong_repetition"
	DeleteCountIndex       Reason = "delete_because_count_index"
	DeleteEnabledFalse     Reason = "delete_because_enabled_false"
	DeleteEachKey          Reason = "delete_because_each_key"
	DeleteNoModule         Reason = "delete_because_no_module"
	DeleteNoMoveTarget     Reason = "delete_because_no_move_target"
	ReadConfigUnknown      Reason = "read_because_config_unknown"
	ReadDependencyPending  Reason = "read_because_dependency_pending"
	ReadCheckNested        Reason = "read_because_check_nested"
	ForgotDestroyState     Reason = "forgot_because_lifecycle_destroy_in_state"
	ForgotDestroyConfig    Reason = "forgot_because_lifecycle_destroy_in_config"
)

// A Change is what becomes of one object. Values carry no marks; which parts
// are sensitive stands beside them.
type Change struct {
	Addr     addr.Instance
	Deposed  addr.DeposedKey // "" for the current object
	Prev     addr.Instance   // where state had it before moves; equal to Addr if it did not move
	Provider addr.ProviderConfig
	Op       Op
	Reason   Reason

	Before          cty.Value // null where there is no object; of the schema's type
	After           cty.Value // null where there will be none; unknown parts are known after apply
	BeforeSensitive []cty.Path
	AfterSensitive  []cty.Path
	Undeclared      []cty.Path // of AfterSensitive, in its order: what planned_values of the JSON form does not tell
	ReplacePaths    []cty.Path // what forces replacement

	Import         *Import // nil unless the object is imported
	BeforeIdentity cty.Value
	AfterIdentity  cty.Value

	Handling
}

// Handling is what carrying out a change goes by, and what is never shown.
type Handling struct {
	Private      []byte                // of the provider, for the call that makes the change
	Dependencies []addr.ConfigResource // for the state of the new object
	ForcedCBD    bool                  // create_before_destroy by configuration or propagation
	SkipDestroy  bool                  // lifecycle.destroy = false
	ConfigKnown  bool                  // the configuration was wholly known, so that this is the final plan for the object
}

// Moved reports whether the object had another address before.
func (c *Change) Moved() bool { return c.Prev != c.Addr }

// Outlives reports whether the object is forgotten since its lifecycle says that it is not
// to be destroyed, in configuration or in state.
func (c *Change) Outlives() bool {
	return c.Op == Forget && (c.Reason == ForgotDestroyConfig || c.Reason == ForgotDestroyState)
}

// An Import names the existing object that a change takes over.
type Import struct {
	ID              string
	Identity        cty.Value // cty.NilVal if by ID
	GeneratedConfig string
}

// An OutputChange is what becomes of a root output.
type OutputChange struct {
	Name            string
	Op              Op // NoOp, Create, Update or Delete
	Before, After   cty.Value
	BeforeSensitive bool
	AfterSensitive  bool // the output is declared sensitive
	Left            bool // the plan leaves it out: it stays as state has it
	Deprecated      string
}

// Kind is what a step does.
type Kind uint8

// The steps. A replacement is a StepDelete and a StepCreate; StepDepose moves
// the current object aside before a create-before-destroy create.
const (
	StepJoin   Kind = iota // nothing; others need it in place of many
	StepCreate             // create, or the create of a replacement
	StepUpdate
	StepRead   // data source deferred to apply
	StepDelete // current object
	StepDeleteDeposed
	StepForget
	StepNoOp  // write planned metadata into state without a call
	StepCheck // hold an unchanged object to conditions that were not known
)

// An Action is one step of carrying out a plan.
type Action struct {
	Kind   Kind
	Change int   // index into Plan.Changes; -1 for StepJoin
	Needs  []int // indexes into Plan.Actions
}

// CheckStatus is what came of a check.
type CheckStatus = string

// A Plan is everything that has to be done, and what it was computed from.
type Plan struct {
	Mode      Mode
	Changes   []*Change   // sorted by address; no-ops included
	Drift     []*Change   // what was found changed outside, compared with the last run
	Deferred  []*Deferred // what cannot be planned yet, by address; none unless that was allowed
	Outputs   []*OutputChange
	Actions   []Action
	Checks    []state.CheckResult
	Prior     *state.State // after moves and refresh; what apply starts from
	PrevRun   *state.State // as it was found in the store
	Relevant  []RelevantAttr
	Modules   []CalledModule // the instances that are wanted, as far as that was asked for, by address
	Transfers []Transfer     // moves between this state and those of other units, which come first
	Reads     Reads
	Readings  []Reading // by address, where they were asked for; never saved
	Timestamp time.Time
	Errored   bool
	Refused   bool // with Errored: nothing was looked at, as configuration or what was asked for is wrong
	Workspace string

	Request
}

// A Request is what the user asked for beside the mode.
type Request struct {
	Variables         map[string]cty.Value // root variables as given; ephemeral ones are null
	Ephemeral         []string             // names of root variables that must be given again
	Targets, Excludes []addr.Target
	Replace           []addr.Instance
}

// RelevantAttr is an attribute that contributed to the planned changes.
type RelevantAttr struct {
	Resource addr.Instance
	Path     cty.Path
}

// A CalledModule is an instance of a called module.
type CalledModule struct {
	Addr addr.ModuleInstance
	Null []string // its outputs that are null, which counts as no change
}

// Counts says how many objects a plan changes, or an apply changed, as the summary line has it.
type Counts struct{ Add, Change, Destroy, Import, Forget int }

// A Transfer is an object that moves from the state of one unit into that of another. What
// the plan starts from shows it as done.
type Transfer struct {
	Addr  addr.Instance // in this state
	Unit  string        // the other one
	Other addr.Instance // in the other's state
	Out   bool          // it leaves this state
}

// Plus adds counts.
func (n Counts) Plus(m Counts) Counts {
	return Counts{n.Add + m.Add, n.Change + m.Change, n.Destroy + m.Destroy, n.Import + m.Import, n.Forget + m.Forget}
}

// Counts counts the plan's changes.
func (p *Plan) Counts() Counts {
	var n Counts
	for _, c := range p.Changes {
		if c.Import != nil {
			n.Import++
		}
		if c.Addr.Resource.Mode != addr.Managed {
			continue
		}
		switch c.Op {
		case Create:
			n.Add++
		case Update:
			n.Change++
		case Delete:
			n.Destroy++
		case Forget:
			n.Forget++
		case DeleteThenCreate, CreateThenDelete:
			n.Add++
			n.Destroy++
		case ForgetThenCreate:
			n.Add++
			n.Forget++
		}
	}
	return n
}

// HasChanges reports whether applying the plan would do anything: to objects,
// to outputs, or to addresses in state. What is deferred counts.
func (p *Plan) HasChanges() bool {
	if len(p.Deferred)+len(p.Transfers) > 0 {
		return true
	}
	for _, c := range p.Changes {
		if c.Op != NoOp || c.Moved() || c.Import != nil {
			return true
		}
	}
	for _, o := range p.Outputs {
		if o.Op != NoOp {
			return true
		}
	}
	return p.Mode == RefreshOnly && len(p.Drift) > 0
}

// OnlyMoves reports whether a refresh-only plan found objects that are as they were
// under other addresses, and nothing else. It is shown and carried out, but does
// not count as one with changes: nobody is asked, as in OpenTofu 1.12.6.
func (p *Plan) OnlyMoves() bool {
	return p.Mode == RefreshOnly && len(p.Drift) > 0 &&
		!slices.ContainsFunc(p.Drift, func(c *Change) bool { return c.Op != NoOp }) &&
		!slices.ContainsFunc(p.Outputs, func(o *OutputChange) bool { return o.Op != NoOp })
}
