package planner

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Session evaluates expressions in the root module for the console, with values from state or
// from a plan. It is not safe for concurrent use.
type Session struct {
	p        *driver
	fallback Fallback
	reported int // number of messages of the graph that were returned
}

// Fallback resolves references that the module does not define. ok is false for references that
// it does not know either.
type Fallback func(ref hcl.Traversal) (v cty.Value, used int, ds diag.List, ok bool)

// NewSession returns a session. If planned is set, it first plans the whole configuration in
// the mode of the input. Otherwise nothing is read or planned, and values that are not in state
// are unknown. fallback may be nil.
func NewSession(ctx context.Context, in Input, planned bool, fallback Fallback) (*Session, diag.List) {
	if !planned {
		in.Mode, in.SkipRefresh = plan.RefreshOnly, true
	}
	p := newDriver(ctx, in)
	s := &Session{p: p, fallback: fallback}
	ds := p.prepare()
	if ds.HasErrors() {
		return s, ds
	}
	if planned {
		p.walk()
	}
	p.walked = true
	if planned {
		p.readOutputs()
	}
	return s, append(ds, s.fresh()...)
}

// fresh returns the messages of the graph that were not returned before.
func (s *Session) fresh() diag.List {
	all := s.p.messages(nil)
	if len(all) <= s.reported {
		return nil
	}
	s.reported = len(all)
	return all
}

// Eval evaluates an expression. The result has its marks.
func (s *Session) Eval(x hcl.Expression) (cty.Value, diag.List) {
	v, ds := lang.Eval(s.p.graph.Task(s.p.ctx), sessionScope{s.p.ev.Root, s.fallback}, lang.Compile(x), cty.DynamicPseudoType)
	return v, append(s.fresh(), ds...)
}

// Close releases the resources that were opened.
func (s *Session) Close() diag.List { return s.p.client.Close() }

// sessionScope is the scope of the root module, extended by fallback.
type sessionScope struct {
	lang.Scope
	fallback Fallback
}

func (s sessionScope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	if s.fallback != nil {
		if v, used, ds, ok := s.fallback(ref); ok {
			return v, used, ds
		}
	}
	return s.Scope.Resolve(t, ref, at)
}
