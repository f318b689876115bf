package unit

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// # Finding handed-in values
//
// Values of the environment, of programs, of encrypted and variable files, and of a stack
// flow through unit files without a mark that they are secret. They work like other values,
// but no message and no explanation shows them. A handover finds these values only when an
// error is reported or a value is explained. It follows references through the text.

// handingIn contains the functions whose results are handed in.
var handingIn = []string{"get_env", "run_cmd", "sops_decrypt_file", "read_tfvars_file", "get_terraform_cli_args"}

// A handover determines whether values were handed in.
type handover struct {
	c      *evaluator
	quoted bool // whether arguments whose text is not shown count, such as inputs
	seen   map[seenExpr]bool
}

type seenExpr struct {
	e *evaluation
	x *syntax.Expr
}

// handover returns a handover with a computation of its own, so that it adds no facts to c.
func (c *evaluator) handover(quoted bool) *handover {
	return &handover{c: c.sub(c.leaf, c.full), quoted: quoted, seen: map[seenExpr]bool{}}
}

// Of reports whether a node's value, or part of it, was handed in.
func (h *handover) Of(n node) bool {
	switch n := n.(type) {
	case *exprNode:
		return h.in(n.e, n.x)
	case *joined:
		return h.Of(n.lower) || h.Of(n.upper)
	case *overlay:
		return h.Of(n.lower) || h.Of(n.upper)
	case *aliasNode:
		return h.in(n.whole.e, n.whole.x)
	case *assigned:
		return h.Of(n.n)
	case *converted:
		return h.Of(n.n)
	case *plainNode:
		return h.Of(n.n)
	case *mapped:
		return h.Of(n.n)
	case *shape:
		return h.Of(n.raw)
	case valueNode: // the value of an expression that was computed as a whole
		if n.e == nil || n.at == nil {
			return false
		}
		x := n.e.file().ArgumentAt(*n.at)
		return x != nil && h.in(n.e, x)
	}
	return false
}

// in is like Of, for an expression of a file.
func (h *handover) in(e *evaluation, x *syntax.Expr) bool {
	k := seenExpr{e, x}
	if h.seen[k] {
		return false // already visited, or being visited
	}
	h.seen[k] = true
	switch at := x.At(); {
	case filepath.Base(e.file().Path) == syntax.ValuesName:
		return true
	case h.quoted && at.Start.Line > 0 && !e.file().Src.Shows(at.Start.Line, at.End.Line):
		return true
	}
	if slices.ContainsFunc(x.Calls, func(name string) bool { return slices.Contains(handingIn, name) }) {
		return true
	}
	for i := range x.Items {
		if it := &x.Items[i]; it.KeyX != nil && h.in(e, it.KeyX) || h.in(e, it.X) {
			return true
		}
	}
	switch x.Kind {
	case syntax.ReadCall, syntax.Relative:
		r := resolved{n: &exprNode{e: e, x: x}}
		if x.Kind == syntax.Relative {
			base := (&exprNode{e: e, x: x.Args[0]}).open(h.c)
			r = h.c.descend(base, x.Ref, 0)
		}
		in, own := r.n.(*exprNode)
		return !(own && in.x == x) && r.n != nil && h.Of(r.n)
	case syntax.Reference:
		return h.refers(e, x.Ref)
	}
	return slices.ContainsFunc(x.Args, func(a *syntax.Expr) bool { return h.in(e, a) }) ||
		slices.ContainsFunc(x.Refs, func(ref hcl.Traversal) bool { return h.refers(e, ref) })
}

func (h *handover) refers(e *evaluation, ref hcl.Traversal) bool {
	r := h.c.resolve(e, ref)
	return r.n != nil && r.missing == "" && h.Of(r.n)
}

// withheld computes the expression again with the inputs marked as sensitive, so that HCL's
// messages do not contain their values.
func (c *evaluator) withheld(e *evaluation, x *syntax.Expr, ctx *hcl.EvalContext, diags hcl.Diagnostics) hcl.Diagnostics {
	h := c.handover(true)
	found := false
	var tree scopeTree
	for _, ref := range x.Refs {
		r := h.c.resolve(e, ref)
		switch {
		case r.n == nil:
			continue
		case r.missing != "":
			tree.put(ref[:r.used], cty.NilVal, false)
			continue
		}
		v := r.n.value(h.c)
		if h.Of(r.n) {
			v, found = v.Mark(value.Hidden), true
		}
		tree.put(ref[:r.used], v, true)
	}
	functions := maps.Clone(ctx.Functions)
	for _, name := range x.Calls {
		if f, ok := functions[name]; ok && slices.Contains(handingIn, name) {
			functions[name], found = marking(name, f), true
		}
	}
	if found {
		again := ctx.Parent().NewChild()
		again.Variables, again.Functions = tree.values(), functions
		_, more := x.Expression.Value(again)
		if more.HasErrors() != diags.HasErrors() || len(more) != len(diags) {
			for _, d := range diags {
				if d.EvalContext = nil; !saysNoValues(d) {
					d.Detail = notShown
				}
			}
			return diags
		}
		diags = more
	}
	at := x.At()
	if native, ok := x.Expression.(hclsyntax.Node); ok && at.Start.Line > 0 && !e.file().Src.Shows(at.Start.Line, at.End.Line) {
		return withoutReasons(native, diags) // the text itself may be handed in
	}
	return diags
}

// marking returns a function whose results are marked. It returns the cached output of a
// program, and unknown if there is none.
func marking(name string, f function.Function) function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "args", Type: cty.String, AllowMarked: true, AllowUnknown: true},
		Type:     func(args []cty.Value) (cty.Type, error) { return f.ReturnTypeForValues(args) },
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			if name == "run_cmd" && slices.ContainsFunc(args, isNoCache) {
				return cty.UnknownVal(ret).Mark(value.Hidden), nil
			}
			v, err := f.Call(args)
			return v.Mark(value.Hidden), err
		},
	})
}

func isNoCache(v cty.Value) bool {
	v, _ = v.Unmark()
	return syntax.IsString(v) && v.AsString() == "--terragrunt-no-cache"
}

// withoutReasons removes the reasons from messages about an expression whose text is not
// shown, because they may quote the text. Functions that take names and paths keep their
// reasons.
func withoutReasons(x hclsyntax.Node, diags hcl.Diagnostics) hcl.Diagnostics {
	words := literals(x)
	out := make(hcl.Diagnostics, len(diags))
	for i, d := range diags {
		m := *d
		_, calls := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
		switch {
		case m.Summary == unknownVariable:
			m.Detail = unknownName(m.Detail, d.Expression)
		case saysNoValues(d):
		case calls || m.Summary == "Duplicate object key":
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(m.Detail, w) }) {
				m.Detail = notShown
			}
		}
		out[i] = &m
	}
	return out
}

// saysNoValues reports whether a message is about a call of a function that takes names and
// paths.
func saysNoValues(d *hcl.Diagnostic) bool {
	call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
	return ok && syntax.IsContextFunction(call.CalledFunctionName()) && call.CalledFunctionName() != "constraint_check"
}

const (
	notShown        = "The reason is not shown, since it may show a value that is given."
	unknownVariable = "Unknown variable"
)

// unknownName returns the message for an unknown name in an expression whose text is not
// shown. The name may be a string without quotes.
func unknownName(detail string, x hcl.Expression) string {
	if ref, ok := x.(*hclsyntax.ScopeTraversalExpr); ok && isRoot(ref.Traversal.RootName()) {
		return detail
	}
	return "This is not a known name. Strings need quotes."
}

// isRoot reports whether a name begins references in unit files or in modules.
func isRoot(name string) bool {
	_, ok := rootNamed(name)
	return ok || slices.Contains(moduleRoots, name)
}

// moduleRoots are names that begin references only in modules.
var moduleRoots = []string{"var", "data", "path", "each", "count", "self", "terraform"}

// literals returns the strings and numbers that are written in an expression.
func literals(n hclsyntax.Node) []string {
	if n == nil {
		return nil
	}
	w := &literalFinder{}
	_ = hclsyntax.Walk(n, w)
	return w.words
}

type literalFinder struct{ words []string }

func (w *literalFinder) Enter(n hclsyntax.Node) hcl.Diagnostics {
	if l, ok := n.(*hclsyntax.LiteralValueExpr); ok && syntax.Known(l.Val) {
		switch v := l.Val; v.Type() {
		case cty.String:
			if text := strings.TrimSpace(v.AsString()); len(text) > 1 {
				w.words = append(w.words, text)
			}
		case cty.Number:
			w.words = append(w.words, v.AsBigFloat().Text('f', -1))
		}
	}
	return nil
}

func (w *literalFinder) Exit(hclsyntax.Node) hcl.Diagnostics { return nil }
