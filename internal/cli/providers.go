package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lock"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/state"
)

// gettingCommands are the commands about modules, providers and the hosts that
// they come from.
func gettingCommands() []command {
	return []command{
		{name: "get", synopsis: "Install or upgrade remote " + view.Product + " modules", usage: getUsage, run: getCommand},
		{name: "login", synopsis: "Obtain and save credentials for a remote host", usage: loginUsage, run: loginCommand},
		{name: "logout", synopsis: "Remove locally-stored credentials for a remote host", usage: logoutUsage, run: logoutCommand},
		{name: "modules", synopsis: "Show the tree of module calls", usage: modulesUsage, run: modulesCommand},
		{name: "providers", synopsis: "Show the providers required for this configuration", usage: providersUsage, run: providersCommand},
		{name: "providers lock", synopsis: "Write out dependency locks for the configured providers", usage: providersLockUsage, run: providersLockCommand},
		{name: "providers mirror", synopsis: "Save local copies of all required provider plugins", usage: providersMirrorUsage, run: providersMirrorCommand},
		{name: "providers schema", synopsis: "Show schemas for the providers used in the configuration", usage: providersSchemaUsage, run: providersSchemaCommand},
	}
}

func providersCommand(ctx context.Context, s *session, args []string) int {
	var flags []vars.Flag
	var testDir string
	f := newFlags("providers")
	addVars(f, &flags)
	f.StringVar(&testDir, "test-directory", "tests", "")
	if !s.parse(f, args) {
		return 1
	}
	if f.NArg() > 0 {
		return s.usageError("providers", "Unexpected argument", "Too many command line arguments. Did you mean to use -chdir?")
	}
	if !config.IsConfigDir(s.Dir, config.Options{}) {
		return s.fail(diag.Errorf(nil, "No configuration files", "The directory %s contains no %s configuration files.", s.Dir, view.Product))
	}
	p, ds := s.load(ctx, loadOptions{vars: flags, partial: true})
	if p == nil {
		return s.fail(ds)
	}
	defer p.close()
	st, more := p.stateShown(ctx)
	if ds = append(ds, more...); more.HasErrors() {
		return s.fail(ds)
	}
	var b strings.Builder
	b.WriteString("\nProviders required by configuration:\n.\n")
	drawProviders(&b, p.engine.Tree().Root, "")
	b.WriteString("\n" + providersOfState(p.translate(st)))
	s.human.Say(b.String())
	s.tell(ds)
	return 0
}

// stateShown reads the state of the selected workspace; nil if there is none.
func (p *project) stateShown(ctx context.Context) (*state.State, diag.List) {
	b, ds := p.backend(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	st, more := p.shownIn(ctx, b, p.workspace, stateFlags{})
	return st, append(ds, more...)
}

// drawProviders draws what each module needs, with the modules that it calls.
func drawProviders(b *strings.Builder, n *module.Node, indent string) {
	req := module.Requirements(n.Config)
	calls := slices.Sorted(maps.Keys(n.Calls))
	left := len(req) + len(calls)
	for _, a := range sortedProviders(req) {
		left--
		mark, _ := branch(left == 0)
		fmt.Fprintf(b, "%s%sprovider[%s]%s\n", indent, mark, a, constraintText(req[a]))
	}
	for _, name := range calls {
		left--
		mark, below := branch(left == 0)
		fmt.Fprintf(b, "%s%smodule.%s\n", indent, mark, name)
		drawProviders(b, n.Calls[name], indent+below)
	}
}

// constraintText is constraints in their canonical form, after a blank.
func constraintText(list []config.Constraint) string {
	var all lock.Constraints
	for _, c := range list {
		one, err := lock.ParseConstraints(c.Text)
		if err != nil {
			return " " + c.Text // init says what is wrong with it
		}
		all = append(all, one...)
	}
	if len(all) == 0 {
		return ""
	}
	return " " + all.String()
}

// providersOfState lists the providers that the objects of a state belong to.
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

func providersUsage() string {
	return usageText("Usage: "+view.Program+" [global options] providers [options]\n\n"+
		"  Prints the tree of modules with the providers that each of them needs and\n  the constraints on their versions, and the providers that the state needs.",
		option("-test-directory=path", "The folder of test files, \"tests\" by default."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module. May be repeated."),
		option("-var-file=path", "Load variable values from a file. May be repeated."))() +
		"\n\nSubcommands:\n    lock      Write out dependency locks for the configured providers\n    mirror    Save local copies of all required provider plugins\n    schema    Show schemas for the providers used in the configuration"
}
