// Package providers implements the commands providers, providers lock, providers mirror and
// providers schema.
package providers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/settings/lock"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/state"
)

// Command declares providers.
func Command() command.Command {
	return command.Command{
		Name: "providers", Synopsis: "Show the providers required for this configuration", Usage: "[options]",
		Units: command.InUnit | command.OnlyReads,
		Help: `Prints the tree of modules with the providers that each of them needs and
the constraints on their versions, those that test files need, and the
providers that the state needs.`,
		Prepare: func() (flag.Flags, command.Run) {
			var given []workdir.VarFlag
			testDir := ""
			fs := append(flag.Flags{flags.TestDirectory(&testDir)}, flag.Vars(&given)...)
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Unexpected argument", c.NoArguments())
				}
				return runProviders(ctx, c, given, testDir)
			}
		},
	}
}

func runProviders(ctx context.Context, c *command.Call, given []workdir.VarFlag, testDir string) int {
	if !config.IsConfigDir(c.Dir, config.Options{}) {
		return c.Fail(diag.Errorf(diag.CodeEstateNoConfiguration, nil, "No configuration files", "The directory %s contains no %s configuration files.", c.Dir, view.Product))
	}
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: given, Partial: true})
	if p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	st, more := p.CurrentState(ctx)
	if ds = append(ds, more...); more.HasErrors() {
		return c.Fail(ds)
	}
	var b strings.Builder
	b.WriteString("\nProviders required by configuration:\n.\n")
	root := moduleNeeds(".", p.Engine.Tree().Root)
	tests, more := testNeeds(ctx, c, p.Engine.Root(), testDir)
	ds = append(ds, more...)
	root.below = append(tests, root.below...)
	root.draw(&b, "")
	b.WriteString("\n" + providersOfState(p.Translate(st)))
	c.Report.Human.Copy(b.String())
	c.Report.Tell(ds)
	return 0
}

// needs contains the provider requirements of a module, a test file or a test run, and its
// children in the tree.
type needs struct {
	name      string
	providers map[addr.Provider][]config.Constraint
	below     []*needs
}

func moduleNeeds(name string, n *module.Node) *needs {
	out := &needs{name: name, providers: module.Requirements(n.Config)}
	for _, name := range slices.Sorted(maps.Keys(n.Calls)) {
		out.below = append(out.below, moduleNeeds("module."+name, n.Calls[name]))
	}
	return out
}

// testNeeds returns the requirements of the test files, in addition to those of the module
// under test.
func testNeeds(ctx context.Context, c *command.Call, root *config.Module, dir string) ([]*needs, diag.List) {
	files, ds := testrun.Load(c.OnDisk(), dir, c.Report.Set, root)
	if len(files) == 0 || ds.HasErrors() {
		return nil, ds
	}
	o, _, more := workdir.EngineOptions(c.Directory, workdir.LoadOptions{})
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	var out []*needs
	of := map[*testfile.File]*needs{}
	for _, f := range files {
		of[f] = &needs{name: testrun.FileKey(f.Name), providers: map[addr.Provider][]config.Constraint{}}
		for _, a := range testrun.Configured(root, f) {
			of[f].providers[a] = nil
		}
		out = append(out, of[f])
	}
	testrun.EachModule(ctx, o, files, func(f *testfile.File, r *testfile.Run, e *engine.Engine) {
		of[f].below = append(of[f].below, moduleNeeds("run."+r.Name, e.Tree().Root))
	})
	return out, ds
}

// draw draws the tree below a module.
func (n *needs) draw(b *strings.Builder, indent string) {
	left := len(n.providers) + len(n.below)
	for _, a := range workdir.SortedProviders(n.providers) {
		left--
		mark, _ := view.Branch(left == 0)
		fmt.Fprintf(b, "%s%sprovider[%s]%s\n", indent, mark, a, constraintText(n.providers[a]))
	}
	for _, x := range n.below {
		left--
		mark, below := view.Branch(left == 0)
		fmt.Fprintf(b, "%s%s%s\n", indent, mark, x.name)
		x.draw(b, indent+below)
	}
}

// constraintText returns constraints in canonical form, after a space.
func constraintText(list []config.Constraint) string {
	var all lock.Constraints
	for _, c := range list {
		one, err := lock.ParseConstraints(c.Text)
		if err != nil {
			return " " + c.Text // init reports the invalid constraint
		}
		all = append(all, one...)
	}
	if len(all) == 0 {
		return ""
	}
	return " " + all.String()
}

// providersOfState lists the providers of the objects in a state.
func providersOfState(st *state.State) string {
	if st == nil || len(st.Resources) == 0 {
		return ""
	}
	used := map[addr.Provider]bool{}
	for _, r := range st.Resources {
		used[r.Provider.Provider] = true
	}
	var b strings.Builder
	b.WriteString("Providers required by state:\n\n")
	for _, a := range slices.SortedFunc(maps.Keys(used), lock.CompareProviders) {
		fmt.Fprintf(&b, "    provider[%s]\n\n", a)
	}
	return b.String()
}
