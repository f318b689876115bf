package lang

import (
	"strings"
	"sync"
	"weak"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/zclconf/go-cty/cty"
)

// # Compiled expressions
//
// Most expressions of native syntax are never converted to HCL's syntax trees. Their text is
// compiled to steps (hclnative.Code), which need a fraction of the memory and are kept. If the
// steps do not support an expression, or fail, its tree is built and evaluated, because the
// steps have neither ranges nor messages.

// fromCode compiles an expression to steps. It returns false if that is not supported.
func (e *Expr) fromCode(x *hclnative.Late) bool {
	code, ok := x.Code()
	if !ok {
		return false
	}
	for _, v := range code.Values {
		if value.Bounded(v) != nil {
			return false
		}
	}
	e.code, e.refs = code, code.Refs
	calls := false
	for i := range code.Steps {
		if s := &code.Steps[i]; s.Op == hclnative.Call {
			calls = true
			e.provided(code.Names[s.A])
		}
	}
	e.constant = len(e.refs) == 0 && !calls
	e.named = len(code.Steps) == 1 && code.Steps[0].Op == hclnative.Refer
	return true
}

// whole returns the expression with its tree. The tree is kept as long as it is used.
func (e *Expr) whole() *Expr {
	e.once.Do(e.find)
	if e.tree != nil {
		return e
	}
	e.last.mu.Lock()
	defer e.last.mu.Unlock()
	x := e.last.x.Value()
	if x == nil {
		x = Compile(e.Expression.(*hclnative.Late).Tree())
		e.last.x = weak.Make(x)
	}
	return x
}

// run executes the steps of the expression. ok is false if a step fails, or if the scope
// returns messages.
func (e *Expr) run(t *demand.Task, scope Scope) (v cty.Value, ok bool) {
	m := machines.Get().(*machine)
	defer m.end()
	m.expr = e
	for i := range e.refs {
		v, used, ds := scope.Resolve(t, e.refs[i].Traversal, &e.refs[i].At)
		if len(ds) > 0 {
			return cty.DynamicVal, false
		}
		m.refs = append(m.refs, resolved{v, used})
	}
	for i := range e.code.Steps {
		if !m.step(t, scope, &e.code.Steps[i]) {
			return cty.DynamicVal, false
		}
	}
	return m.stack[0], true
}

// machine is the state of running the steps of an expression.
type machine struct {
	expr  *Expr
	refs  []resolved // as in the expression
	stack []cty.Value
}

// machines is a pool. A scope that is called during a run may evaluate other expressions with
// another machine.
var machines = sync.Pool{New: func() any { return new(machine) }}

// mostRoom is the maximum length of a stack that is kept in the pool.
const mostRoom = 64

func (m *machine) end() {
	if cap(m.stack) > mostRoom || cap(m.refs) > mostRoom {
		return
	}
	clear(m.refs)
	clear(m.stack[:cap(m.stack)])
	m.expr, m.refs, m.stack = nil, m.refs[:0], m.stack[:0]
	machines.Put(m)
}

func (m *machine) push(v cty.Value) { m.stack = append(m.stack, v) }

// pop removes the last n values. They are valid until the next push.
func (m *machine) pop(n int) []cty.Value {
	rest := len(m.stack) - n
	out := m.stack[rest:]
	m.stack = m.stack[:rest]
	return out
}

func (m *machine) step(t *demand.Task, scope Scope, s *hclnative.Step) bool {
	code := m.expr.code
	n := int(s.N)
	switch s.Op {
	case hclnative.Const:
		m.push(code.Values[s.A])
		return true
	case hclnative.Refer:
		r := &m.refs[s.A]
		return m.take(r.value, m.expr.refs[s.A].Traversal[r.used:])
	case hclnative.Take:
		return m.take(m.pop(1)[0], code.Paths[s.A])
	case hclnative.Index:
		args := m.pop(2)
		v, diags := hcl.Index(args[0], args[1], &hcl.Range{})
		m.push(v)
		return len(diags) == 0
	case hclnative.Binary:
		args := m.pop(2)
		return m.result(binary(s.Operator(), args[0], args[1]))
	case hclnative.Unary:
		return m.result(unary(s.Operator(), m.pop(1)[0]))
	case hclnative.Cond:
		args := m.pop(3)
		return m.result(conditional(args[0], args[1], args[2]))
	case hclnative.Tuple:
		m.push(cty.TupleVal(m.pop(int(s.A))))
		return true
	case hclnative.Object:
		vals := make(map[string]cty.Value, n)
		for i, v := range m.pop(n) {
			vals[code.Names[int(s.A)+i]] = v
		}
		m.push(cty.ObjectVal(vals))
		return true
	case hclnative.Template:
		return m.result(template(m.pop(int(s.A))))
	case hclnative.Call:
		fns, ds := scope.Functions(t, m.expr.provider)
		f, there := fns[code.Names[s.A]]
		if len(ds) > 0 || !there || takesExpressions(f.Params(), f.VarParam()) {
			return false
		}
		return m.result(call(f, m.pop(n)))
	}
	return false
}

func (m *machine) result(v cty.Value, ok bool) bool {
	m.push(v)
	return ok
}

// take follows a path into a value.
func (m *machine) take(v cty.Value, path hcl.Traversal) bool {
	if len(path) == 0 {
		m.push(v)
		return true
	}
	v, diags := path.TraverseRel(v)
	m.push(v)
	return len(diags) == 0
}

// template concatenates values. It returns false for unknown, null and marked values, which HCL
// must handle.
func template(parts []cty.Value) (cty.Value, bool) {
	var b strings.Builder
	for _, v := range parts {
		if !plain(v) {
			return computed(&hclsyntax.TemplateExpr{Parts: literals(parts)})
		}
		text, ok := primitiveText(v)
		if !ok {
			return cty.DynamicVal, false
		}
		b.WriteString(text)
	}
	return cty.StringVal(b.String()), true
}

func literals(vals []cty.Value) []hclsyntax.Expression {
	out := make([]hclsyntax.Expression, len(vals))
	for i, v := range vals {
		out[i] = literal(v)
	}
	return out
}
