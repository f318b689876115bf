// Package plan defines the Plan, which describes what an apply will do. The planner makes
// plans, package apply carries them out, and views show them.
//
// Main types: Plan, Change (the effect on one object, as it is shown) and Action (one step of
// an apply, with the steps that must come first). The one rule: a Plan contains only data, no
// functions or connections, so that it can be printed, saved, compared and applied by another
// process.
package plan

import (
	"slices"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Mode is the kind of a plan.
type Mode uint8

// The modes, which are mutually exclusive. Each is a bit, so that the flags of two modes differ
// from the flag of one.
const (
	Normal      Mode = 0
	Destroy     Mode = 1
	RefreshOnly Mode = 2
)

// Op is the operation on an object.
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

// Reason is the reason for an operation, in the words of the JSON plan format, such as
// "replace_because_tainted". "" means none.
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

// A Change describes what happens to one object. The values have no marks: BeforeSensitive and
// AfterSensitive contain the paths of their sensitive parts. BeforeIdentity and AfterIdentity are
// cty.NilVal or null if the object has no identity.
type Change struct {
	Addr     addr.Instance
	Deposed  addr.DeposedKey // "" for the current object
	Prev     addr.Instance   // address in the state before moves; equal to Addr if the object did not move
	Provider addr.ProviderConfig
	Op       Op
	Reason   Reason

	Before          cty.Value // null if there is no object yet; has the schema's type
	After           cty.Value // null if no object remains; unknown parts become known during apply
	BeforeSensitive []cty.Path
	AfterSensitive  []cty.Path
	Undeclared      []cty.Path // the paths of AfterSensitive, in the same order, that planned_values in JSON output omits
	ReplacePaths    []cty.Path // arguments that force the replacement

	// Causes are the places that set the new values, sorted by path. They are computed only if
	// Options.Causes is set, and plan files do not contain them.
	Causes []Cause
	// Origins are the places that set all values of the new object, changed or not, sorted by path. They
	// are computed only if Options.AllOrigins is set, and plan files do not contain them.
	Origins []Cause

	Import         *Import // nil if the object is not imported
	BeforeIdentity cty.Value
	AfterIdentity  cty.Value

	Handling
}

// A Cause is the place that sets a new value: the end of the explanation of the value.
type Cause struct {
	// Path is the argument, or the changed part of it. nil means the object as a whole, which is
	// replaced because it is tainted or because the user requested it.
	Path    cty.Path
	File    string // as shown to users; "" if no file sets the value
	Line    int
	Was     string // the text at the place in another revision, if the cause is a difference from it; else ""
	Removed bool   // no file sets the value, and the new value is null
	Forces  bool   // the change of the value forces the replacement of the object
	Kept    bool   // the value does not change
}

// TriggersPath returns the path of the argument replace_triggered_by, which is that of the cause if it
// forces a replacement.
func TriggersPath() cty.Path { return cty.GetAttrPath("lifecycle").GetAttr("replace_triggered_by") }

// Handling is the information for carrying out a change. It is never shown.
type Handling struct {
	Private      []byte                // the provider's private data, passed to the call that makes the change
	Dependencies []addr.ConfigResource // stored with the new object
	ForcedCBD    bool                  // create_before_destroy is set, in the configuration or by a dependent resource
	SkipDestroy  bool                  // lifecycle.destroy = false
	ConfigKnown  bool                  // the configuration was wholly known, so this is the object's final plan
}

// Moved reports whether the object's address changes.
func (c *Change) Moved() bool { return c.Prev != c.Addr }

// Outlives reports whether the object is removed from state without being destroyed, because
// its lifecycle in configuration or state forbids destroying it.
func (c *Change) Outlives() bool {
	return c.Op == Forget && (c.Reason == ForgotDestroyConfig || c.Reason == ForgotDestroyState)
}

// An Import identifies the existing object that a change imports.
type Import struct {
	ID              string
	Identity        cty.Value // cty.NilVal if the import uses an ID
	GeneratedConfig string    // configuration of the object in native syntax; "" if none was generated
}

// An OutputChange describes what happens to a root output. Before and After have no marks. Parts of
// After that become known during apply are unknown.
type OutputChange struct {
	Name            string
	Op              Op // NoOp, Create, Update or Delete
	Before, After   cty.Value
	BeforeSensitive bool
	AfterSensitive  bool    // the output is declared sensitive
	Origins         []Cause // like Change.Origins
	Left            bool    // the plan does not cover the output, which keeps its value in state
	Deprecated      string  // deprecation message; "" if the output is not deprecated
}

// Kind is the kind of an action.
type Kind uint8

// The kinds of actions. A replacement consists of StepDelete and StepCreate. StepDepose marks
// the current object as deposed before a create-before-destroy create.
const (
	StepJoin   Kind = iota // no operation; lets many actions depend on one instead of many
	StepCreate             // create an object, also as part of a replacement
	StepUpdate
	StepRead   // read a data source that was deferred to apply
	StepDelete // delete the current object
	StepDeleteDeposed
	StepForget
	StepNoOp  // write planned metadata to state without a provider call
	StepCheck // evaluate conditions of an unchanged object that were unknown in the plan
)

// An Action is one step of an apply.
type Action struct {
	Kind   Kind
	Change int   // index in Plan.Changes; -1 for StepJoin
	Needs  []int // indexes in Plan.Actions of the actions that must come first
}

// CheckStatus is the result of a check.
type CheckStatus = string

// A Plan contains all changes that an apply will make, and the inputs from which it was
// computed.
type Plan struct {
	Mode      Mode
	Changes   []*Change       // sorted by address, including no-ops
	Drift     []*Change       // changes made outside of Terrace since the last apply
	Accepted  []AcceptedDrift // drift that the list of accepted drift contains, which is not in Drift; plan files do not contain it
	Deferred  []*Deferred     // objects that cannot be planned yet, sorted by address; empty unless Options.Defer or DeferInputs is set
	Outputs   []*OutputChange
	Actions   []Action
	Checks    []state.CheckResult
	Prior     *state.State // state after moves and refresh, from which an apply starts
	PrevRun   *state.State // state as read from the store
	Relevant  []RelevantAttr
	Modules   []CalledModule // the module instances in the configuration that were evaluated, sorted by address
	Transfers []Transfer     // moves between this state and those of other units, which happen first
	Reads     Reads
	Readings  []Reading  // sorted by address; only with Readings.Note; never saved
	DataRead  []DataRead // sorted by address; only with Options.AllOrigins; never saved
	Timestamp time.Time  // result of plantimestamp()
	Errored   bool       // planning had errors, so that the plan is incomplete and cannot be applied
	Refused   bool       // with Errored: nothing was planned, because the configuration or the request is invalid
	Workspace string

	Request
}

// A Request contains the user's inputs of a plan besides the mode.
type Request struct {
	Variables         map[string]cty.Value // given values of root variables; ephemeral ones are null
	Ephemeral         []string             // names of root variables that must be given again for apply
	Targets, Excludes []addr.Target
	Replace           []addr.Instance
}

// RelevantAttr is an attribute that contributed to the planned changes.
type RelevantAttr struct {
	Resource addr.Instance
	Path     cty.Path
}

// DataRead contains the origins of the values of a data source that planning read.
type DataRead struct {
	Addr    addr.Instance
	Origins []Cause // as in Change; all are Kept
}

// A CalledModule is an instance of a called module.
type CalledModule struct {
	Addr addr.ModuleInstance
	Null []string // names of its outputs that are null, which do not count as changes
}

// Counts contains the numbers of objects that a plan or an apply changes, as shown in the
// summary line.
type Counts struct{ Add, Change, Destroy, Import, Forget int }

// A Transfer moves an object between the states of two units. The prior state of the plan shows
// the move as done.
type Transfer struct {
	Addr  addr.Instance // address in this state
	Unit  string        // name of the other unit
	Other addr.Instance // address in the other unit's state
	Out   bool          // the object leaves this state
}

// Plus returns the sums of n and m.
func (n Counts) Plus(m Counts) Counts {
	return Counts{n.Add + m.Add, n.Change + m.Change, n.Destroy + m.Destroy, n.Import + m.Import, n.Forget + m.Forget}
}

// Counts returns the numbers of changes in the plan.
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

// HasChanges reports whether the plan has changes, or defers objects that may have some.
func (p *Plan) HasChanges() bool { return len(p.Deferred) > 0 || p.Changing() }

// Changing reports whether an apply would change objects, outputs or addresses in state.
func (p *Plan) Changing() bool {
	if len(p.Transfers) > 0 {
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

// OnlyMoves reports whether a refresh-only plan found nothing but moved objects. Such a plan is
// shown and applied without asking for approval, and does not count as having changes. Source:
// OpenTofu 1.12.6.
func (p *Plan) OnlyMoves() bool {
	return p.Mode == RefreshOnly && len(p.Drift) > 0 &&
		!slices.ContainsFunc(p.Drift, func(c *Change) bool { return c.Op != NoOp }) &&
		!slices.ContainsFunc(p.Outputs, func(o *OutputChange) bool { return o.Op != NoOp })
}
