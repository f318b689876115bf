package estate

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
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

// newProcesses makes the processes of a run over a number of units.
func (e *Estate) newProcesses(o RunOptions, units int) *engine.Processes {
	p := engine.NewProcesses(engine.ProcessOptions{
		Dir: e.o.Root, Calls: o.TotalCalls,
		Indifferent: func(a addr.Provider) bool { return indifferent(a) || slices.Contains(e.o.ShareProviders, a) },
	})
	p.Expect(units)
	return p
}

// options are the options of the unit's engine.
func (w *work) options() engine.Options {
	o := w.r.e.engineOptions(w.u, w.r.o, w.r.observe(w.u))
	o.Processes, o.Turn = w.r.procs, w.u.Name
	return o
}
