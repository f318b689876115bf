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
// The units of a run share provider processes. A process serves two units only if the program,
// the configuration, the complete environment and the working directory are equal. Each unit has
// its own working directory. In practice, only providers that do not depend on their working
// directory are shared: those in the list below, which docs/shared-providers.md documents, and
// those that the user names.

// indifferent reports whether a provider behaves the same in every working directory. Such a
// provider takes contents and never paths, and starts no programs.
func indifferent(a addr.Provider) bool {
	if a.Namespace != "hashicorp" || a.Host != addr.DefaultHost && a.Host != "registry.terraform.io" {
		return false
	}
	switch a.Type {
	case "cloudinit", // renders text from text
		"null",   // generates IDs
		"random", // generates random values
		"time",   // computes and stores times
		"tls":    // takes keys and certificates as text
		return true
	}
	return false
}

// newProcesses returns the provider processes of a run over units.
func (x *execution) newProcesses(ctx context.Context, units []*discovery.Unit) *engine.Processes {
	x.needs = x.expect(ctx, units)
	p := engine.NewProcesses(engine.ProcessOptions{
		Dir: x.Root, Calls: x.o.Limits.All, CountPerEngine: x.o.Limits.CountPerEngine, Sharing: sharing{x},
	})
	p.Expect(len(units))
	return p
}

// sharing implements engine.Sharing for a run.
type sharing struct{ x *execution }

func (s sharing) DirectoryIndependent(a addr.Provider) bool {
	return indifferent(a) || slices.Contains(s.x.ShareProviders, a)
}

func (s sharing) Needed(a addr.Provider) bool { return s.x.needs.mayCome(a) }

func (s sharing) CallsOf(a addr.Provider) int { return s.x.o.Limits.Of[a] }

// over releases the resources of a unit that is done.
func (x *execution) over(u *discovery.Unit) {
	x.needs.done(u)
	x.procs.Done()
	if u.Broken == nil {
		u.Forget() // units that depend on this one read its outputs from the run
	}
}

// needs counts, for each provider, the units that are not done and whose modules require it.
// Provider processes are ended when no unit needs them any more. The counts are an estimate from
// the files on this machine: a module that is not installed and generated files may require any
// provider. After the first wrong estimate, all processes are kept until the run ends.
type needs struct {
	mu    sync.Mutex
	of    map[*discovery.Unit]map[addr.Provider]bool // a nil set means any provider
	left  map[addr.Provider]int
	any   int // number of units that may need any provider
	wrong bool
}

// expect reads the modules of units for the providers that they require.
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

// mayCome reports whether a unit that is not done may need the provider a.
func (n *needs) mayCome(a addr.Provider) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrong || n.any > 0 || n.left[a] > 0
}

// check compares the estimated providers of a unit with those that its loaded module requires.
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

// done removes a unit that is done from the counts.
func (n *needs) done(u *discovery.Unit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count(n.of[u], -1)
	delete(n.of, u)
}
