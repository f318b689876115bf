package providers

import (
	"context"
	"fmt"
	"runtime"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Lock declares providers lock.
func Lock() command.Command {
	return command.Command{
		Name: "providers lock", Synopsis: "Write out dependency locks for the configured providers", Usage: "[options] [providers...]",
		Uses:  command.Packages,
		Units: command.InUnit,
		Help: `Adds the checksums of provider packages to the dependency lock file, for the
given platforms and without installing anything. The packages come from the
registries that the providers belong to, whatever the CLI configuration says
of installation methods. Without addresses it does so for every provider of
the configuration and of its test files.`,
		Args: []command.Arg{{Name: "providers", Help: "Source addresses of providers.", Optional: true, Repeated: true}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &providersLockOptions{}
			fs := flag.Flags{
				flag.Text(&o.fsMirror, "fs-mirror", "dir", "Take the packages from a filesystem mirror instead.").Completes(flag.Folders),
				flag.Text(&o.netMirror, "net-mirror", "url", "Take the packages from a network mirror instead."),
				flag.Text(&o.ociMirror, "oci-mirror", "template", "Take the packages from an OCI mirror instead: the address of a provider's repository, in which {hostname}, {namespace} and {type} stand for the parts of its source address."),
				flag.List(&o.platforms, "platform", "os_arch", "The platform to get checksums for, such as linux_amd64; the current platform by default. May be repeated."),
			}
			return append(append(append(fs, o.json.Flags()...), flags.TestDirectory(&o.tests)), flag.Vars(&o.vars)...), func(ctx context.Context, c *command.Call) int {
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				if o.fsMirror != "" && o.netMirror != "" || o.ociMirror != "" && o.fsMirror+o.netMirror != "" {
					return c.UsageError("Invalid installation method options", "The -fs-mirror, -net-mirror and -oci-mirror command line options are mutually-exclusive.")
				}
				o.only = c.Args
				return c.Report.Status(lockProviders(ctx, c, o))
			}
		},
	}
}

type providersLockOptions struct {
	json                flags.JSON
	vars                []workdir.VarFlag
	platforms           []string
	fsMirror, netMirror string
	ociMirror           string
	tests               string   // directory of test files
	only                []string // addresses of providers; empty means all
}

// lockProviders adds hashes to the lock file.
func lockProviders(ctx context.Context, c *command.Call, o *providersLockOptions) diag.List {
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: o.vars, Partial: true})
	if p == nil {
		return ds
	}
	defer p.Close()
	all, more := required(ctx, c, p, o.tests)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	req, more := chosen(p.Plugins.Packaged(all), o.only)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if o.fsMirror != "" {
		o.fsMirror = c.ReportPath(o.fsMirror)
	}
	io, more := originOptions(p.Plugins, o)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	old, more := lock.Read(p.Plugins.Directory.Files, p.Plugins.LockPath())
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	t := project.NewTransfers(c)
	io.Progress = func(e install.Event) {
		t.Provider(e)
		what := e.Provider.Display() + " " + e.Version.String() + " for " + e.Platform
		switch e.Kind {
		case install.Fetching:
			step(c, "Fetching "+what+"...")
		case install.Retrieved:
			step(c, fmt.Sprintf("Retrieved %s (%s)", what, e.Auth))
		}
	}
	var obtained []string
	next, more := install.LockPlatforms(ctx, install.Wanted{Requirements: req, Locked: old, Platforms: platformsOr(o.platforms)}, io, func(f install.Fetched) {
		obtained = append(obtained, fmt.Sprintf("Obtained %s checksums for %s; %s", f.Provider.Display(), f.Platform, gained(f)))
	})
	t.End()
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	for _, line := range obtained {
		step(c, line)
	}
	return append(ds, writeLock(c, p.Plugins.LockPath(), old, next)...)
}

// required returns the providers of the configuration and of the test files, as init installs
// them. directory is the directory of test files.
func required(ctx context.Context, c *command.Call, p *project.Project, directory string) (install.Requirements, diag.List) {
	all := p.Required()
	tests, ds := testrun.Load(c.OnDisk(), directory, c.Report.Set, p.Engine.Root())
	if ds.HasErrors() || len(tests) == 0 {
		return all, ds
	}
	o, _, more := workdir.EngineOptions(c.Directory, workdir.LoadOptions{})
	for a, constraints := range testrun.Requirements(ctx, o, p.Engine.Root(), tests) {
		all[a] = append(all[a], constraints...)
	}
	return all, append(ds, more...)
}

// gained returns a text about the hashes that a package added to the lock file.
func gained(f install.Fetched) string {
	switch {
	case f.First && f.New:
		return "This was a new provider and the checksums for this platform are now tracked in the lock file"
	case f.New:
		return "Additional checksums for this platform are now tracked in the lock file"
	}
	return "All checksums for this platform were already tracked in the lock file"
}

func writeLock(c *command.Call, path string, old, next *lock.File) diag.List {
	if next.Equal(old) {
		c.Report.Human.Say("\n")
		c.Report.Human.Good("Success!")
		c.Report.Human.Say(" " + c.Report.Names.Product() + " has validated the lock file and found no need for changes.\n")
		c.Report.Stream.Log("Success! " + c.Report.Names.Product() + " has validated the lock file and found no need for changes")
		return nil
	}
	if err := lock.Write(path, next); err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write dependency lock file", "The dependency lock file cannot be written: %s.", err)
	}
	c.Report.Human.Say("\n")
	c.Report.Human.Good("Success!")
	c.Report.Human.Say(" " + c.Report.Names.Product() + " has updated the lock file.\n\nReview the changes in " + lock.Name + " and then commit to your\nversion control system to retain the new checksums.\n\n")
	c.Report.Stream.Log("Success! " + c.Report.Names.Product() + " has updated the lock file. Review the changes in " + lock.Name + " and then commit to your version control system to retain the new checksums")
	return nil
}

// chosen returns the requirements for the given addresses, or all of them without addresses.
func chosen(req install.Requirements, only []string) (install.Requirements, diag.List) {
	if len(only) == 0 {
		return req, nil
	}
	out := install.Requirements{}
	var ds diag.List
	for _, text := range only {
		a, err := addr.ParseProvider(text)
		if err != nil {
			ds = append(ds, diag.Errorf(diag.CodeCLIMirrorProvider, nil, "Invalid provider argument", "%q is not the source address of a provider: %s.", text, err)...)
			continue
		}
		if a.IsBuiltIn() {
			continue
		}
		want, ok := req[a]
		if !ok {
			ds = append(ds, diag.Errorf(diag.CodeCLIMirrorProvider, nil, "Invalid provider argument", "The provider %s is not required by the current configuration.", a)...)
			continue
		}
		out[a] = want
	}
	return out, ds
}

// originOptions returns install options that fetch packages from their registries, or from the
// mirror in the options.
func originOptions(pl *workdir.Plugins, o *providersLockOptions) (install.Options, diag.List) {
	out := pl.InstallOptions().DirectOnly()
	if o.fsMirror+o.netMirror+o.ociMirror == "" {
		return out, nil
	}
	m := cliconfig.Method{Kind: cliconfig.FilesystemMirror, Location: o.fsMirror, Retries: -1}
	if o.netMirror != "" {
		base, ok := cliconfig.MirrorURL(o.netMirror)
		if !ok {
			return out, diag.Errorf(diag.CodeCLIMirrorUrl, nil, "Invalid network mirror URL", "The -net-mirror option requires a valid https: URL as the mirror base URL.")
		}
		m.Kind, m.Location = cliconfig.NetworkMirror, base
	}
	if o.ociMirror != "" {
		var err error
		if m.Template, err = cliconfig.ParseOCITemplate(o.ociMirror); err != nil {
			return out, diag.Errorf(diag.CodeCLIMirrorUrl, nil, "Invalid OCI mirror URI template", "The -oci-mirror argument is not a valid template: %s.", err)
		}
		m.Kind = cliconfig.OCIMirror
	}
	out.Config.Installation = &cliconfig.Installation{Methods: []cliconfig.Method{m}}
	return out, nil
}

// platformsOr returns the given platforms, or the current one without any.
func platformsOr(given []string) []string {
	if len(given) > 0 {
		return given
	}
	return []string{runtime.GOOS + "_" + runtime.GOARCH}
}

// step reports a step: to people as a line with a mark, and in the stream without it.
func step(c *command.Call, text string) {
	c.Report.Human.Say("- " + text + "\n")
	c.Report.Stream.Log(text)
}
