package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lock"
	"github.com/terrace-iac/terrace/internal/provider/install"
)

type providersMirrorOptions struct {
	json      jsonFlags
	vars      []vars.Flag
	platforms listFlag
	dir       string
}

func providersMirrorCommand(ctx context.Context, s *session, args []string) int {
	var o providersMirrorOptions
	f := newFlags("providers mirror")
	o.json.add(f)
	addVars(f, &o.vars)
	f.Var(&o.platforms, "platform", "")
	if !s.parse(f, args) || !s.useJSON(o.json) {
		return 1
	}
	defer s.finish()
	if f.NArg() != 1 {
		return s.usageError("providers mirror", "Wrong number of arguments", "The providers mirror command requires an output directory as a command-line argument.")
	}
	o.dir = f.Arg(0)
	return s.status(s.mirrorProviders(ctx, &o))
}

func (s *session) mirrorProviders(ctx context.Context, o *providersMirrorOptions) diag.List {
	p, ds := s.load(ctx, loadOptions{vars: o.vars, partial: true})
	if p == nil {
		return ds
	}
	defer p.close()
	locked, more := lock.Read(p.plugins.lockPath())
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	all := p.required()
	req := p.plugins.packaged(all)
	for _, a := range sortedProviders(all) {
		if a.IsBuiltIn() {
			s.step("Skipping " + a.String() + " because it is built in to " + view.Product + " CLI")
		}
	}
	io := p.plugins.installOptions().DirectOnly()
	l := &mirrorLog{session: s, turn: sortedProviders(req), held: map[addr.Provider][]install.Event{}}
	t := s.newTransfers()
	io.Progress = func(e install.Event) {
		t.provider(e)
		l.take(e)
	}
	l.begin()
	more = install.Mirror(ctx, install.Wanted{Requirements: req, Locked: locked, Platforms: platformsOr(o.platforms)}, o.dir, io)
	t.end()
	return append(ds, more...)
}

// A mirrorLog tells of one provider after the other, though several are fetched
// at once: what happens to the first that is not finished is told at once, the
// rest is held back.
type mirrorLog struct {
	*session
	turn []addr.Provider // those that are not finished, in order
	held map[addr.Provider][]install.Event
}

// begin announces the provider whose turn it is.
func (l *mirrorLog) begin() {
	if len(l.turn) > 0 {
		l.step("Mirroring " + l.turn[0].Display() + "...")
	}
}

func (l *mirrorLog) take(e install.Event) {
	if e.Kind == install.Transfer {
		return
	}
	if len(l.turn) == 0 || e.Provider != l.turn[0] {
		l.held[e.Provider] = append(l.held[e.Provider], e)
		return
	}
	if e.Kind != install.Finished {
		l.tellStep(e)
		return
	}
	l.turn = l.turn[1:]
	l.begin()
	if len(l.turn) > 0 {
		for _, e := range slices.Clone(l.held[l.turn[0]]) {
			l.take(e)
		}
	}
}

func (l *mirrorLog) tellStep(e install.Event) {
	name := fmt.Sprintf("%s v%s", e.Provider.Display(), e.Version)
	switch e.Kind {
	case install.Selected:
		why := "with no constraints"
		if e.Locked {
			why = "to match dependency lock file"
		} else if e.Constraints != "" {
			why = "to meet constraints " + e.Constraints
		}
		l.human.Say(fmt.Sprintf("  - Selected v%s %s\n", e.Version, why))
		l.stream.Log("Selected " + name + " " + why)
	case install.Fetching:
		l.human.Say("  - Downloading package for " + e.Platform + "...\n")
		l.stream.Log("Downloading " + name + " package for " + e.Platform + "...")
	case install.Retrieved:
		how := install.Auth{How: e.Auth.How}.String()
		l.human.Say("  - Package authenticated: " + how + "\n")
		l.stream.Log("Package " + name + " for " + e.Platform + " authenticated: " + how)
	}
}

func providersMirrorUsage() string {
	return usageText("Usage: "+view.Program+" [global options] providers mirror [options] <target-dir>\n\n"+
		"  Fills a folder with the packages of all providers that the configuration\n  needs. It serves as a filesystem mirror and, published by a web server, as a\n  network mirror. Packages come from the registries that the providers belong to.",
		option("-platform=os_arch", "The platform to get packages for, such as linux_amd64; ours by default. May be repeated."),
		option("-json", "Produce output in a machine-readable JSON format."),
		option("-json-into=path", "Write the machine-readable output to a file, besides the output for people."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module. May be repeated."),
		option("-var-file=path", "Load variable values from a file. May be repeated."))()
}
