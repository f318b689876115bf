package value

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Limits of values, because a few lines can produce very large ones. A value that refers to another
// one twice doubles with every line, and so do nested loops. Real configurations stay far below
// these limits.
const (
	MaxParts = 1 << 22 // number of values inside one value
	MaxTurns = 1 << 22 // number of iterations of the loops of one expression
)

// ErrTurns is returned by Loops.Bounded.
var ErrTurns = errors.New("its loops go round more than 4 million times")

// Measured returns an error for a value that contains too many values. It stops counting
// at the limit.
func Measured(v cty.Value) error { return MeasuredBy(v, MaxParts) }

// MeasuredBy is like Measured, with another limit.
func MeasuredBy(v cty.Value, most int) error {
	if v == cty.NilVal || v.Type().IsPrimitiveType() {
		return nil
	}
	left := most
	if !Within(v, &left) {
		return fmt.Errorf("it is made of more than %d million values", most>>20)
	}
	return nil
}

// Within subtracts the number of values inside v from left. It reports whether left was
// large enough.
func Within(v cty.Value, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	if v.IsMarked() {
		v, _ = v.Unmark()
	}
	ty := v.Type()
	if ty.IsPrimitiveType() || ty == cty.DynamicPseudoType || v.IsNull() || !v.IsKnown() || !v.CanIterateElements() {
		return true
	}
	if ty.IsCollectionType() && ty.ElementType().IsPrimitiveType() {
		*left -= v.LengthInt()
		return *left >= 0
	}
	if ty.IsObjectType() { // the iterator would sort the names
		for name, el := range ty.AttributeTypes() {
			if el.IsPrimitiveType() {
				*left--
			} else if !Within(v.GetAttr(name), left) {
				return false
			}
		}
		return *left >= 0
	}
	if ty.IsTupleType() && !slices.ContainsFunc(ty.TupleElementTypes(), func(el cty.Type) bool { return !el.IsPrimitiveType() }) {
		*left -= v.LengthInt()
		return *left >= 0
	}
	for it := v.ElementIterator(); it.Next(); {
		if _, e := it.Element(); !Within(e, left) {
			return false
		}
	}
	return true
}

// Loops are the for expressions of an expression, also nested ones.
type Loops struct {
	loops []*loop
	deep  bool // there are nested loops

	entered []*loop // loops whose parts are being visited
	inside  []*loop // loops whose bodies are being visited
}

type loop struct {
	x     *hclsyntax.ForExpr
	names map[string]bool // the names that collections in this loop and in nested loops refer to
	inner []*loop
}

// LoopsOf returns the loops of an expression, or nil.
func LoopsOf(n hclsyntax.Node) *Loops {
	l := new(Loops)
	_ = hclsyntax.Walk(n, l)
	return l
}

// Enter implements hclsyntax.Walker; other walkers call it too.
func (l *Loops) Enter(n hclsyntax.Node) hcl.Diagnostics {
	switch n := n.(type) {
	case *hclsyntax.ForExpr:
		f := &loop{x: n, names: map[string]bool{}}
		for _, ref := range n.CollExpr.Variables() {
			f.names[ref.RootName()] = true
		}
		if at := len(l.inside); at > 0 {
			l.deep = true
			l.inside[at-1].inner = append(l.inside[at-1].inner, f)
			for _, outer := range l.inside {
				for name := range f.names {
					outer.names[name] = true
				}
			}
		} else {
			l.loops = append(l.loops, f)
		}
		l.entered = append(l.entered, f)
	case hclsyntax.ChildScope:
		if at := len(l.entered); at > 0 {
			l.inside = append(l.inside, l.entered[at-1])
		}
	}
	return nil
}

// Exit implements hclsyntax.Walker.
func (l *Loops) Exit(n hclsyntax.Node) hcl.Diagnostics {
	switch n.(type) {
	case *hclsyntax.ForExpr:
		l.entered = l.entered[:len(l.entered)-1]
	case hclsyntax.ChildScope:
		if len(l.inside) > 0 {
			l.inside = l.inside[:len(l.inside)-1]
		}
	}
	return nil
}

// Deep reports whether there are nested loops.
func (l *Loops) Deep() bool { return l != nil && l.deep }

// Bounded returns an error if nested loops have too many iterations. It evaluates only
// the collections of the loops.
func (l *Loops) Bounded(ctx *hcl.EvalContext) error {
	if !l.Deep() {
		return nil
	}
	if ctx == nil {
		ctx = &hcl.EvalContext{}
	}
	if turns(l.loops, ctx, MaxTurns) > MaxTurns {
		return ErrTurns
	}
	return nil
}

// turns counts the iterations of loops. It may stop counting above most.
func turns(loops []*loop, ctx *hcl.EvalContext, most float64) float64 {
	sum := 0.0
	for _, l := range loops {
		if sum += l.turns(ctx, most-sum); sum > most {
			break
		}
	}
	return sum
}

func (l *loop) turns(ctx *hcl.EvalContext, most float64) float64 {
	over, diags := l.x.CollExpr.Value(ctx)
	if diags.HasErrors() {
		return 0 // the loop itself will fail too
	}
	over, _ = over.Unmark()
	if !over.IsKnown() || over.IsNull() || !over.CanIterateElements() {
		return 0
	}
	n := float64(over.LengthInt())
	if n == 0 || n > most || len(l.inner) == 0 {
		return n
	}
	var same, differ []*loop // loops over the same collection in each iteration, and loops that depend on the iteration
	for _, in := range l.inner {
		if in.names[l.x.KeyVar] || in.names[l.x.ValVar] {
			differ = append(differ, in)
		} else {
			same = append(same, in)
		}
	}
	sum := n
	if len(same) > 0 {
		sum += n * turns(same, ctx, math.Ceil(most/n))
	}
	if len(differ) == 0 {
		return sum
	}
	for it := over.ElementIterator(); it.Next() && sum <= most; {
		k, v := it.Element()
		in := ctx.NewChild()
		in.Variables = map[string]cty.Value{l.x.ValVar: v}
		if l.x.KeyVar != "" {
			in.Variables[l.x.KeyVar] = k
		}
		sum += turns(differ, in, most-sum)
	}
	return sum
}
