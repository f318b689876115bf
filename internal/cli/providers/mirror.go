package providers

import (
	"context"
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/settings/lock"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Mirror declares providers mirror.
func Mirror() command.Command {
	return command.Command{
		Name: "providers mirror", Synopsis: "Save local copies of all required provider plugins", Usage: "[options] <target-dir>",
		Uses:  command.Packages,
		Units: command.InUnit,
		Help: `Fills a directory with the packages of all providers that the configuration
needs. It serves as a filesystem mirror and, published by a web server, as a
network mirror. Packages come from the registries that the providers belong to.`,
		Args: []command.Arg{{Name: "target-dir", Help: "The directory to fill.", Complete: flag.Folders}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &providersMirrorOptions{}
			fs := flag.Flags{flag.List(&o.platforms, "platform", "os_arch", "The platform to get packages for, such as linux_amd64; the current platform by default. May be repeated.")}
			return append(append(fs, o.json.Flags()...), flag.Vars(&o.vars)...), func(ctx context.Context, c *command.Call) int {
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				if len(c.Args) != 1 {
					return c.UsageError("Wrong number of arguments", "The providers mirror command requires an output directory as a command-line argument.")
				}
				o.dir = c.Arg(0)
				return c.Report.Status(mirrorProviders(ctx, c, o))
			}
		},
	}
}

type providersMirrorOptions struct {
	json      flags.JSON
	vars      []workdir.VarFlag
	platforms []string
	dir       string
}

func mirrorProviders(ctx context.Context, c *command.Call, o *providersMirrorOptions) diag.List {
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: o.vars, Partial: true})
	if p == nil {
		return ds
	}
	defer p.Close()
	locked, more := lock.Read(p.Plugins.Directory.Files, p.Plugins.LockPath())
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	all := p.Required()
	req := p.Plugins.Packaged(all)
	for _, a := range workdir.SortedProviders(all) {
		if a.IsBuiltIn() {
			step(c, "Skipping "+a.String()+" because it is built in to "+c.Report.Names.Product()+" CLI")
		}
	}
	io := p.Plugins.InstallOptions().DirectOnly()
	l := &mirrorLog{Call: c, turn: workdir.SortedProviders(req), held: map[addr.Provider][]install.Event{}}
	t := project.NewTransfers(c)
	io.Progress = func(e install.Event) {
		t.Provider(e)
		l.take(e)
	}
	l.begin()
	more = install.Mirror(ctx, install.Wanted{Requirements: req, Locked: locked, Platforms: platformsOr(o.platforms)}, c.ReportPath(o.dir), io)
	t.End()
	return append(ds, more...)
}

// A mirrorLog reports one provider after the other, although several are fetched concurrently.
// It prints events of the first unfinished provider at once, and holds back the others.
type mirrorLog struct {
	*command.Call
	turn []addr.Provider // unfinished providers, in order
	held map[addr.Provider][]install.Event
}

// begin announces the next provider.
func (l *mirrorLog) begin() {
	if len(l.turn) > 0 {
		step(l.Call, "Mirroring "+l.turn[0].Display()+"...")
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
		l.Report.Human.Say(fmt.Sprintf("  - Selected v%s %s\n", e.Version, why))
		l.Report.Stream.Log("Selected " + name + " " + why)
	case install.Fetching:
		l.Report.Human.Say("  - Downloading package for " + e.Platform + "...\n")
		l.Report.Stream.Log("Downloading " + name + " package for " + e.Platform + "...")
	case install.Retrieved:
		how := install.Auth{How: e.Auth.How}.String()
		l.Report.Human.Say("  - Package authenticated: " + how + "\n")
		l.Report.Stream.Log("Package " + name + " for " + e.Platform + " authenticated: " + how)
	}
}
