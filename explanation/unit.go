package explanation

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// An InputSource is the source of the root module's inputs.
type InputSource interface {
	// Part returns the way to a part of the unit, such as inputs.tags.team. ok is false if the
	// address does not refer to a unit. ds contains an error if the unit does not have the
	// part.
	Part(address hcl.Traversal) (w Way, ok bool, ds diag.List)
	// Given returns the way to the block that names a variable file, or sets an environment
	// variable, for a command on the unit. ok is false if there is none.
	Given(by source.Layer, name string) (w Way, ok bool)
	// Generated returns the way to the source of an expression in a file. ok is false if the
	// unit does not generate the file.
	Generated(at GeneratedLine) (w Way, ok bool)
}

// A GeneratedLine is the line of a generated file that contains an expression, or its first
// line.
type GeneratedLine struct {
	File, Text string
	Earlier    int // number of earlier lines with this text, apart from white space
	From, To   int // range of the expression in Text, in bytes; both are 0 if a block is requested
}

// A Scope is a unit file, or a file that it reads, in one evaluation. Scopes of the same
// evaluation are equal.
type Scope interface {
	// Eval evaluates an expression of the file. names contains the variables of enclosing
	// iterations.
	Eval(x hcl.Expression, names map[string]cty.Value) (cty.Value, diag.List)
	// Follow returns the way to the target of a reference. ok is false if the target is not
	// text.
	Follow(ref hcl.Traversal) (w Way, ok bool)
	// Read returns the way to a path in the file that a call reads or decodes. ok is false for
	// calls that do not read a file.
	Read(call *hclsyntax.FunctionCallExpr, path hcl.Traversal) (w Way, ok bool)
}

// A UnitOutput is an output of a unit.
type UnitOutput struct {
	Unit string // ID of the unit
	Name string // "" means all outputs
}

// A Way contains the stops between two expressions.
type Way struct {
	Stops []Stop
	Next  *ExprPart // where the explanation continues; nil if it ends
}

// An ExprPart is a part of an expression.
type ExprPart struct {
	In   Scope
	Expr hcl.Expression
	Path hcl.Traversal
}

// A Stop is a definition or block on a way.
type Stop struct {
	Kind  Kind
	Text  string
	At    source.Range
	Layer *source.Layer
	In    Scope          // scope of Expr
	Expr  hcl.Expression // the expression; nil for the header of a block
	// Of returns the whole definition if Expr is an element of it. nil means Expr.
	Of       func() hcl.Expression
	Value    cty.Value     // value of the requested part, if it is known here; or NilVal
	Path     hcl.Traversal // with Value: path of the part
	Whole    bool          // a whole block is requested
	Names    bool          // the expression names files, which are not secret
	Bare     bool          // the line is not shown, because it also contains other values
	Output   *UnitOutput   // the output at which a Dependency ends
	Replaces []Way         // ways to the overridden definitions
	With     []Way         // ways to other definitions that contribute to the value
}
