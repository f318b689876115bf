package value

import (
	"errors"
	"fmt"
	"math"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// What a few lines may make at most. Values that name one another twice double with every
// line, as do loops in loops; nothing that people write comes near to these numbers.
const (
	MaxParts = 1 << 22 // values that one value is made of
	MaxTurns = 1 << 22 // of the loops of one expression
)

// ErrTurns is the error of Loops.
var ErrTurns = errors.New("its loops go round more than 4 million times")

// Measured returns an error for a value that is made of too many others. It looks at no
// more than are allowed, however many there are.
func Measured(v cty.Value) error { return MeasuredBy(v, MaxParts) }

// MeasuredBy is Measured with another number of values.
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

// Within takes the number of values that v is made of from left, and reports whether there
// were so many.
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
	for it := v.ElementIterator(); it.Next(); {
		if _, e := it.Element(); !Within(e, left) {
			return false
		}
	}
	return true
}

// Loops are the for expressions of an expression, with those that are in each other.
type Loops struct {
	loops []*loop
	deep  bool // one is in another

	entered []*loop // whose parts are looked at
	inside  []*loop // whose turns are looked at
}

type loop struct {
	x     *hclsyntax.ForExpr
	names map[string]bool // that collections in here and further in refer to
	inner []*loop
}

// LoopsOf finds the loops of an expression.
func LoopsOf(n hclsyntax.Node) *Loops {
	l := new(Loops)
	_ = hclsyntax.Walk(n, l)
	return l
}

// Enter is for hclsyntax.Walk, and for walkers that see to more than loops.
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

// Exit is for hclsyntax.Walk.
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

// Deep reports whether a loop is in another.
func (l *Loops) Deep() bool { return l != nil && l.deep }

// Bounded returns an error if loops in each other go round too often. It evaluates what
// they go over, and nothing else.
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

// turns counts how often loops go round; it may stop where it has more than most.
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
		return 0 // the loop does not run either
	}
	over, _ = over.Unmark()
	if !over.IsKnown() || over.IsNull() || !over.CanIterateElements() {
		return 0
	}
	n := float64(over.LengthInt())
	if n == 0 || n > most || len(l.inner) == 0 {
		return n
	}
	var same, differ []*loop // in each turn, or by what the turn is about
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
