package estate

import (
	"context"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/internal/parallel"
)

// # Provider processes
//
// The units of a run share the processes of their providers. One serves two units
// only if the program, the configuration, the complete environment and the working
// folder are equal. Working folders never are, since each unit has its own, so in
// fact those providers are shared that do not look at theirs: the ones below, which
// docs/shared-providers.md lists too, and those that the user names.

// indifferent reports whether a provider does the same in whatever folder it runs:
// it takes contents and never paths, and starts no programs.
func indifferent(a addr.Provider) bool {
	if a.Namespace != "hashicorp" || a.Host != addr.DefaultHost && a.Host != "registry.terraform.io" {
		return false
	}
	switch a.Type {
	case "cloudinit", // makes text of text
		"null",   // makes ids
		"random", // makes random values
		"time",   // makes and keeps times
		"tls":    // takes keys and certificates as text
		return true
	}
	return false
}

// newProcesses makes the processes of a run over its units.
func (r *Run) newProcesses(ctx context.Context, units []*Unit) *engine.Processes {
	r.needs = r.e.expect(ctx, units)
	p := engine.NewProcesses(engine.ProcessOptions{
		Dir: r.e.o.Root, Calls: r.o.Limits.All, Needed: r.needs.mayCome,
		Indifferent: func(a addr.Provider) bool { return indifferent(a) || slices.Contains(r.e.o.ShareProviders, a) },
	})
	p.Expect(len(units))
	return p
}

// over says that a unit is done.
func (r *Run) over(u *Unit) {
	r.needs.done(u)
	r.procs.Over()
	if u.Broken == nil {
		u.Forget() // those that need it read its outputs from the run
	}
}

// options are the options of the unit's engine.
func (w *work) options() engine.Options {
	o := w.r.e.engineOptions(w.u, w.r.o.Limits.Calls, w.r.observe(w.u))
	o.Processes, o.Turn = w.r.procs, w.u.Name
	return o
}

// needs counts, for each provider, the units that are still to come and whose
// modules name it, so that its processes end in time. It is a guess from the files
// that are on this machine: a module that is not, and files that are generated, may
// name any. Where it proves wrong once, processes are kept to the end.
type needs struct {
	mu    sync.Mutex
	of    map[*Unit]*moduleNeeds
	left  map[addr.Provider]int
	any   int // units that may need any
	wrong bool
}

// moduleNeeds are the providers that a module and those that it calls name; nil
// stands for any.
type moduleNeeds struct{ named map[addr.Provider]bool }

func (e *Estate) expect(ctx context.Context, units []*Unit) *needs {
	n := &needs{of: map[*Unit]*moduleNeeds{}, left: map[addr.Provider]int{}}
	all := parallel.Map(len(units), 0, func(i int) *moduleNeeds {
		if m := e.localTree(e.task(ctx), units[i]); m != nil {
			return m.needs
		}
		return nil
	})
	for i, u := range units {
		n.of[u] = all[i]
		n.count(all[i], 1)
	}
	return n
}

func (n *needs) count(m *moduleNeeds, by int) {
	if m == nil {
		n.any += by
		return
	}
	for a := range m.named {
		n.left[a] += by
	}
}

// mayCome reports whether a unit that is not done may need a provider.
func (n *needs) mayCome(a addr.Provider) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrong || n.any > 0 || n.left[a] > 0
}

// met compares what a unit was thought to need with what it does need.
func (n *needs) met(u *Unit, tree *module.Tree) {
	n.mu.Lock()
	m := n.of[u]
	n.mu.Unlock()
	if m == nil {
		return
	}
	wrong := false
	tree.Walk(func(node *module.Node) {
		for a := range module.Requirements(node.Config) {
			wrong = wrong || !a.IsBuiltIn() && !m.named[a]
		}
	})
	n.mu.Lock()
	n.wrong = n.wrong || wrong
	n.mu.Unlock()
}

// done says that a unit is done.
func (n *needs) done(u *Unit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count(n.of[u], -1)
	delete(n.of, u)
}

// needsOf are the providers that the modules of a tree name.
func needsOf(tree *module.Tree) *moduleNeeds {
	m := &moduleNeeds{named: map[addr.Provider]bool{}}
	tree.Walk(func(n *module.Node) {
		for a := range module.Requirements(n.Config) {
			m.named[a] = true
		}
	})
	return m
}
