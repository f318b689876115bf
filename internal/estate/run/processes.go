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
	"github.com/terrace-iac/terrace/internal/settings/tracelog"
)

// # Provider processes
//
// The units of a run share provider processes, as docs/shared-providers.md documents. A process
// serves two units only if the program, the configuration and the environment are equal. Each unit
// has its own working directory. A provider that can use it in other ways than by paths in its
// arguments has one process per unit: see directoryUse. For other providers, package manager
// searches the arguments for paths.

// ignoring are the providers of hashicorp that behave the same in every working directory. Such a
// provider takes contents and never paths, and starts no programs.
var ignoring = []string{"cloudinit", "null", "random", "time", "tls"}

// using are the types of providers that write files or run programs by design, in any namespace.
var using = []string{"ansible", "archive", "command", "exec", "external", "git", "local", "shell", "template"}

// directoryUse returns how a provider uses its working directory.
func directoryUse(a addr.Provider) engine.DirectoryUse {
	switch {
	case slices.Contains(using, a.Type):
		return engine.UsesDirectory
	case a.Namespace == "hashicorp" && (a.Host == addr.DefaultHost || a.Host == "registry.terraform.io") && slices.Contains(ignoring, a.Type):
		return engine.IgnoresDirectory
	}
	return engine.UsesNamedPaths
}

// newProcesses returns the provider processes of a run over units.
func (x *execution) newProcesses(ctx context.Context, units []*discovery.Unit) *engine.Processes {
	x.needs = x.expect(ctx, units)
	p := engine.NewProcesses(engine.ProcessOptions{
		Dir: x.Root, Empty: x.Host.emptyDir(), Calls: x.o.Limits.All, CountPerEngine: x.o.Limits.CountPerEngine, Sharing: sharing{x},
	})
	p.Expect(len(units))
	return p
}

// sharing implements engine.Sharing for a run.
type sharing struct{ x *execution }

func (s sharing) Directory(a addr.Provider) engine.DirectoryUse {
	switch {
	case slices.Contains(s.x.OwnProviders, a):
		return engine.UsesDirectory
	case slices.Contains(s.x.ShareProviders, a):
		return engine.IgnoresDirectory
	}
	return directoryUse(a)
}

func (s sharing) Separated(unit string, a addr.Provider, argument string) {
	s.x.Host.log(tracelog.Debug, "[%s] provider %s: the argument %s can name a path in the directory of the unit, so the unit does not share the process", unit, a.Display(), argument)
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
