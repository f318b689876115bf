package run

import (
	"context"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/lang/module"
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
func (x *execution) newProcesses(ctx context.Context, units []*discovery.Unit) *engine.Processes {
	x.needs = x.expect(ctx, units)
	p := engine.NewProcesses(engine.ProcessOptions{
		Dir: x.Root, Calls: x.o.Limits.All, Needed: x.needs.mayCome,
		CallsOf: func(a addr.Provider) int { return x.o.Limits.Of[a] }, CountPerEngine: x.o.Limits.CountPerEngine,
		FolderIndependent: func(a addr.Provider) bool { return indifferent(a) || slices.Contains(x.ShareProviders, a) },
	})
	p.Expect(len(units))
	return p
}

// over notes that a unit is done.
func (x *execution) over(u *discovery.Unit) {
	x.needs.done(u)
	x.procs.Done()
	if u.Broken == nil {
		u.Forget() // those that need it read its outputs from the run
	}
}

// needs counts, for each provider, the units that are still to come and whose
// modules name it, so that its processes end in time. It is a guess from the files
// that are on this machine: a module that is not, and files that are generated, may
// name any. Where it proves wrong once, processes are kept to the end.
type needs struct {
	mu    sync.Mutex
	of    map[*discovery.Unit]map[addr.Provider]bool // nil stands for any
	left  map[addr.Provider]int
	any   int // units that may need any
	wrong bool
}

// expect reads the modules of units for the providers that they name.
func (x *execution) expect(ctx context.Context, units []*discovery.Unit) *needs {
	n := &needs{of: map[*discovery.Unit]map[addr.Provider]bool{}, left: map[addr.Provider]int{}}
	all := parallel.Map(len(units), 0, func(i int) map[addr.Provider]bool {
		return x.Dirs.LocalProviders(x.Static.Task(ctx), units[i].In(x.Static))
	})
	for i, u := range units {
		n.of[u] = all[i]
		n.count(all[i], 1)
	}
	return n
}

func (n *needs) count(m map[addr.Provider]bool, by int) {
	if m == nil {
		n.any += by
		return
	}
	for a := range m {
		n.left[a] += by
	}
}

// mayCome reports whether a unit that is not done may need a provider.
func (n *needs) mayCome(a addr.Provider) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrong || n.any > 0 || n.left[a] > 0
}

// check compares what a unit was thought to need with what it does need.
func (n *needs) check(u *discovery.Unit, tree *module.Tree) {
	n.mu.Lock()
	m := n.of[u]
	n.mu.Unlock()
	if m == nil {
		return
	}
	wrong := false
	tree.Walk(func(node *module.Node) {
		for a := range module.Requirements(node.Config) {
			wrong = wrong || !a.IsBuiltIn() && !m[a]
		}
	})
	n.mu.Lock()
	n.wrong = n.wrong || wrong
	n.mu.Unlock()
}

// done notes that a unit is done.
func (n *needs) done(u *discovery.Unit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count(n.of[u], -1)
	delete(n.of, u)
}
