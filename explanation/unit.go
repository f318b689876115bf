package explanation

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Unit is what gives the root module its inputs.
type Unit interface {
	// Part leads to a part of the unit, such as inputs.tags.team. ok is false if
	// the address is none of a unit; ds says that the unit has no such part.
	Part(address hcl.Traversal) (w Way, ok bool, ds diag.List)
	// Given leads to the block that names a variable file, or sets an environment
	// variable, for a command on the unit. ok is false if none does.
	Given(by source.Layer, name string) (w Way, ok bool)
	// Generated leads to what writes a line of a file. ok is false if the unit does
	// not generate it.
	Generated(file, line string) (w Way, ok bool)
}

// A Scope is a unit file, or one that it reads, in one evaluation. Scopes of the
// same evaluation are equal.
type Scope interface {
	// Eval evaluates an expression of the file. names are what iterations around
	// it define.
	Eval(x hcl.Expression, names map[string]cty.Value) (cty.Value, diag.List)
	// Follow leads to what a reference names. ok is false where that is no text.
	Follow(ref hcl.Traversal) (w Way, ok bool)
	// Read leads into the file that a call reads or decodes, at a path in it. ok is
	// false for calls that read none.
	Read(call *hclsyntax.FunctionCallExpr, path hcl.Traversal) (w Way, ok bool)
}

// A Way is what lies between two expressions.
type Way struct {
	Stops []Stop
	Next  *Target // where it goes on; nil where it ends
}

// A Target is a part of an expression.
type Target struct {
	In   Scope
	Expr hcl.Expression
	Path hcl.Traversal
}

// A Stop is a definition or block on a way.
type Stop struct {
	Kind     Kind
	Text     string
	At       source.Range
	Layer    *source.Layer
	In       Scope          // with Expr
	Expr     hcl.Expression // what is written there; nil for the header of a block
	Of       hcl.Expression // the whole definition that Expr is an item of; nil: Expr
	Value    cty.Value      // of the part that is asked for, if it is known here; or NilVal
	Path     hcl.Traversal  // with Value: which part of what stands there it is
	Whole    bool           // a block as a whole is asked for
	Names    bool           // what is written there names files, which is no secret
	Bare     bool           // the line is not shown: it holds other values as well
	Replaces []Way          // to what lost against this
	With     []Way          // to what has a part in the value as well
}
