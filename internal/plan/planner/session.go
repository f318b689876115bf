package planner

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Session evaluates expressions in a module instance for the console, with values from state or
// from a plan. It is not safe for concurrent use.
type Session struct {
	p        *driver
	scope    lang.Scope
	reported int // number of messages of the graph that were returned
}

// Scope selects the names that a Session resolves.
type Scope struct {
	Module   addr.ModuleInstance // "" means the root module
	Fallback Fallback            // for the root module; may be nil
}

// Fallback resolves references that the module does not define. ok is false for references that
// it does not know either.
type Fallback func(ref hcl.Traversal) (v cty.Value, used int, ds diag.List, ok bool)

// NewSession returns a session. If planned is set, it first plans the whole configuration in
// the mode of the input. Otherwise nothing is read or planned, and values that are not in state
// are unknown. A module instance that does not exist is an error.
func NewSession(ctx context.Context, in Input, planned bool, scope Scope) (*Session, diag.List) {
	if !planned {
		in.Mode, in.SkipRefresh = plan.RefreshOnly, true
	}
	p := newDriver(ctx, in)
	s := &Session{p: p, scope: sessionScope{p.ev.Root, scope.Fallback}}
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
	if scope.Module != "" {
		m := p.ev.Find(p.graph.Task(p.ctx), scope.Module)
		if m == nil {
			if more := s.fresh().Errors(); len(more) > 0 {
				return s, append(ds, more...)
			}
			return s, append(ds, noScope(p, scope.Module)...)
		}
		s.scope = m
	}
	return s, append(ds, s.fresh()...)
}

// noScope returns the error that a module instance does not exist. It lists the instances of its
// module.
func noScope(p *driver, a addr.ModuleInstance) diag.List {
	above := addr.ModuleInstance("")
	for _, step := range a.Steps() {
		parent := p.ev.Find(p.graph.Task(p.ctx), above)
		call := parent.Call(step.Name)
		if call == nil || call.Node == nil {
			return diag.Errorf(diag.CodeCLIFlags, nil, "Invalid scope", "There is no module %s in the configuration.", above.Child(step.Name, addr.Key{}))
		}
		next := above.Child(step.Name, step.Key)
		if p.ev.Find(p.graph.Task(p.ctx), next) == nil {
			ch, _ := call.Children(p.graph.Task(p.ctx))
			var names []string
			for _, m := range ch.All {
				names = append(names, string(m.Addr))
			}
			have := "It has no instances."
			if len(names) > 0 {
				have = "The instances are " + strings.Join(names[:min(len(names), 10)], ", ") + "."
			}
			if len(names) > 10 {
				have = fmt.Sprintf("It has %d instances, such as %s.", len(names), strings.Join(names[:10], ", "))
			}
			return diag.Errorf(diag.CodeCLIFlags, nil, "Invalid scope", "There is no module instance %s. %s", next, have)
		}
		above = next
	}
	return nil
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
	v, ds := lang.Eval(s.p.graph.Task(s.p.ctx), s.scope, lang.Compile(x), cty.DynamicPseudoType)
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
