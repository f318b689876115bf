package deps

import (
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/terrace-iac/terrace"

// floors is the import order, from the bottom up. "a, b < c, d;" says that c and
// d may import a and b and all that a and b may import; what is not said is
// forbidden. It is checked for what is not test code. A package that stands here
// need not exist yet, but one that exists must stand here.
const floors = `
	# Floor 0: words and machinery that know nothing of each other.
	NONE
	< internal/readfile
	< hclnative, addr, internal/parallel, internal/value, process,
	  internal/archive, internal/inside, internal/filelock, internal/atomicfile, internal/digraph, internal/sealing, internal/state/rawjson,
	  internal/provider/rpc/pb6;
	process < internal/sys;
	hclnative < source;
	NONE < internal/textdiff;
	source < internal/format;

	# Floor 1: messages to the user.
	source, addr < diag;

	# Floor 2: files to modules; cells; what lies on the disk and the network.
	diag, internal/parallel < config;
	diag < demand;
	diag, internal/sys < internal/cliconfig, internal/telemetry;
	diag, internal/atomicfile < internal/lock;
	internal/sys < internal/transfer, internal/aws;
	internal/transfer < internal/gcp, internal/azure;
	internal/transfer, internal/cliconfig < internal/oci;
	internal/transfer, internal/telemetry < internal/telemetry/otlp;
	diag, internal/parallel, internal/value, internal/archive, internal/inside, internal/filelock,
	  internal/lock, internal/oci < internal/fetch;
	internal/fetch < internal/registry < internal/registry/registrytest;
	internal/fetch, internal/aws, internal/gcp < internal/fetch/credentials;

	# Floor 3: functions and schemas.
	addr, internal/value < schema;
	internal/value, diag < internal/funcs;

	# Floor 4: expressions, module trees, providers as an interface, the state's model.
	demand, schema, internal/value < internal/lang;
	config, internal/lang, internal/parallel, internal/fetch < internal/module;
	internal/module, internal/lock, internal/sys, internal/registry < internal/module/installer;
	diag, schema < provider;
	diag, internal/value, internal/state/rawjson < state;

	# Floor 5: providers for real. None of these is seen by eval or plan.
	internal/provider/rpc/pb6 < internal/provider/rpc/pb5;
	provider, internal/sys, internal/provider/rpc/pb5
	< internal/provider/rpc
	< internal/provider/testprovider
	< internal/provider/testprovider/cmd/terraform-provider-test;
	provider < internal/provider/fake;
	provider, internal/parallel < internal/provider/manager;
	provider, config, internal/lock, internal/registry < internal/provider/install;

	# Floor 5: configuration to what is wanted. It sees neither state nor plugins.
	internal/module, internal/funcs < internal/eval;
	diag < explanation;
	internal/eval, explanation < internal/origin;

	# Floor 5 and 6: where state lives.
	state < internal/state/statetest;
	state < state/statefile;
	state/statefile, internal/sealing < internal/state/store;
	state/statefile, internal/sealing, internal/sys < internal/state/journal;
	state < internal/stateedit;
	internal/state/store, internal/filelock, internal/sys < internal/state/store/local;
	internal/state/store, internal/state/journal < internal/state/statemgr;
	internal/state/store < internal/state/store/storetest;

	# Floor 6: kinds of backends, a package each below internal/backend; only
	# internal/backend/kinds, the list of them, knows them all.
	internal/state/store < internal/backend/rest;
	internal/state/store, internal/sys, internal/parallel, schema < internal/backend;
	NONE < internal/backend/backendtest/servers;
	internal/backend < internal/backend/doctor;
	internal/backend/doctor, internal/state/store/storetest, internal/backend/backendtest/servers < internal/backend/backendtest;
	internal/backend, internal/backend/rest < internal/backend/httpstore;
	internal/backend, internal/aws < internal/backend/awsargs;
	internal/backend/awsargs, internal/backend/rest < internal/backend/s3;
	internal/backend, internal/backend/rest < internal/backend/pg;
	internal/backend, internal/backend/rest < internal/backend/consul;
	internal/backend, internal/backend/rest < internal/backend/kubernetes;
	internal/backend, internal/backend/rest < internal/backend/etcdv3;
	internal/backend < internal/backend/bucket;
	internal/backend/bucket, internal/backend/rest < internal/backend/cos, internal/backend/oss;
	internal/backend, internal/backend/rest, internal/gcp < internal/backend/gcs;
	internal/backend, internal/backend/rest, internal/azure < internal/backend/azureargs;
	internal/backend/azureargs < internal/backend/azurerm;
	internal/backend, internal/backend/rest, internal/transfer < internal/backend/tfe;
	internal/backend < internal/backend/inmem;
	internal/backend, internal/state/store/local < internal/backend/local;
	internal/backend/azurerm,
	  internal/backend/consul,
	  internal/backend/cos,
	  internal/backend/etcdv3,
	  internal/backend/gcs,
	  internal/backend/httpstore,
	  internal/backend/inmem,
	  internal/backend/kubernetes,
	  internal/backend/local,
	  internal/backend/oss,
	  internal/backend/pg,
	  internal/backend/s3,
	  internal/backend/tfe
	< internal/backend/kinds;
	internal/backend, internal/value < internal/backend/configure;
	internal/backend, internal/atomicfile, internal/inside < internal/backend/record;
	internal/backend/configure, internal/backend/awsargs, internal/backend/azureargs, internal/backend/rest, internal/state/journal, internal/gcp < internal/encryption;
	internal/backend/configure, internal/backend/record, config < internal/backend/workdir;
	internal/backend/configure < internal/backend/remotestate;
	internal/backend, internal/state/statemgr < internal/backend/migrate;
	provider, internal/state/store/local < internal/provider/builtin;
	diag, schema, internal/sys < internal/provisioner;

	# Floor 6: units know nothing of plans.
	diag, internal/value < unit/syntax;
	process, demand, hclnative, internal/funcs, internal/parallel, unit/syntax < unit/functions;
	unit/functions, internal/lang, internal/fetch, internal/origin < unit;
	unit, internal/textdiff < unit/migrate;

	# Floor 7: what is wanted, what there is, what is to be done. No gRPC here.
	diag < event;
	state, event < plan;
	internal/module, state < internal/refactoring;
	internal/eval, state < internal/checks;
	internal/eval, internal/refactoring, plan < internal/imports;
	internal/eval, provider, state, event < internal/resourceclient;
	plan, internal/module, internal/eval < internal/relevantattrs;
	internal/resourceclient, internal/imports, internal/checks < internal/planner;
	internal/module, internal/provider/fake < internal/plantest;
	internal/resourceclient, internal/refactoring < internal/validate;
	plan, state/statefile, internal/sealing < internal/planfile;
	plan, internal/atomicfile < internal/readlog;
	internal/relevantattrs < internal/planjson;
	internal/eval, event, internal/refactoring < internal/apply/provision;
	internal/resourceclient, internal/imports, internal/checks, internal/apply/provision < internal/apply;

	# Floor 8: the facade never imports unit.
	internal/planner, internal/apply, internal/provisioner, internal/validate, internal/planfile, internal/relevantattrs, internal/origin, internal/state/store/local,
	  internal/provider/builtin, internal/provider/manager, internal/provider/install,
	  internal/provider/rpc, internal/registry
	< engine;

	# Floor 8: an engine with its state, for the command line and estates.
	engine, internal/state/statemgr, internal/encryption, internal/readlog < internal/operation;

	# Floor 8: folders of configuration, for the command line, estates and embedding programs.
	engine, internal/sys < internal/vars;
	internal/telemetry, internal/sys < internal/tracelog;
	internal/operation, internal/backend/kinds, internal/backend/workdir, internal/backend/remotestate, internal/fetch/credentials,
	  internal/provisioner, internal/provider/rpc, internal/provider/install, internal/vars, internal/tracelog
	< internal/folder;

	# Floor 8: tests run on the facade.
	config < internal/testrun/testfile;
	provider, state < internal/testrun/mock;
	engine, internal/testrun/testfile, internal/testrun/mock < internal/testrun;

	# Floor 9 to 11: many units, the command line, main.
	NONE < internal/estate/glob;
	internal/parallel < internal/estate/schedule < internal/estate/schedule/scheduletest;
	internal/estate/glob, diag < internal/estate/discovery/filter;
	internal/filelock, internal/sys < internal/estate/discovery/git;
	unit < internal/estate/retry;
	unit, internal/vars < internal/estate/arguments;
	unit, internal/telemetry < internal/estate/hooks;
	unit, internal/parallel, internal/sys < internal/estate/credentials;
	unit, engine < internal/estate/inputs;
	internal/estate/glob, internal/fetch, unit < internal/estate/workdir/copytree < internal/estate/workdir/overlay;
	internal/estate/workdir/overlay, engine, internal/backend < internal/estate/workdir;
	internal/estate/workdir, internal/telemetry < internal/estate/discovery/stacks;
	internal/estate/discovery/filter, internal/estate/discovery/git, internal/estate/discovery/stacks, internal/estate/schedule < internal/estate/discovery;
	internal/estate/workdir, internal/estate/arguments, internal/operation, internal/backend/workdir < internal/estate/states;
	internal/estate/discovery < internal/estate/report;
	internal/estate/report, internal/planfile, internal/state/journal < internal/estate/saved;
	internal/estate/discovery < internal/estate/outputs;
	internal/estate/inputs, internal/estate/outputs, internal/estate/states < internal/estate/check;
	internal/refactoring, internal/stateedit, internal/estate/states, plan, hclnative < internal/estate/moves;
	hclnative, diag, internal/sys < internal/estate/placement;
	internal/estate/inputs, internal/estate/outputs, internal/estate/states, internal/estate/moves, internal/estate/saved, internal/estate/hooks, internal/estate/retry, internal/estate/credentials,
	  internal/folder, internal/testrun
	< internal/estate/run;
	internal/estate/check, internal/estate/run < internal/estate;
	internal/planjson, diag, schema < internal/cli/view;
	internal/digraph < internal/planhtml;
	internal/telemetry, internal/cli/view, internal/sys, config < internal/cli/report, internal/cli/interrupt;
	internal/cli/report < internal/cli/prompt;
	internal/estate/report, internal/state/statemgr, internal/backend, internal/atomicfile < internal/estate/remote;
	internal/folder, internal/estate/remote, internal/cli/prompt, internal/cli/interrupt < internal/cli/command;
	internal/cli/command, internal/vars < internal/cli/flags;
	NONE < internal/cli/unitlog;
	internal/cli/command, internal/cli/unitlog < internal/cli/unitflags;
	internal/folder, internal/vars < internal/project;
	internal/backend/migrate, internal/module/installer, internal/project, internal/testrun < internal/project/setup;
	internal/planjson, internal/project, internal/cli/flags < internal/cli/project;
	internal/project/setup, internal/cli/project < internal/cli/initialize;
	internal/cli/project, internal/testrun < internal/cli/validate, internal/cli/providers;
	internal/backend/tfe, internal/cli/project < internal/cli/remoterun;
	internal/cli/remoterun < internal/cli/planning;
	internal/cli/project < internal/cli/output, internal/cli/configcmd,
	  internal/cli/modules, internal/cli/login, internal/cli/version, internal/cli/workspace;
	internal/estate, internal/cli/initialize, internal/cli/unitflags < internal/cli/units;
	internal/backend/doctor, internal/cli/units < internal/cli/backendcmd;
	internal/digraph, internal/cli/units < internal/cli/inspect;
	internal/readfile < internal/catalog;
	internal/funcs, internal/catalog, internal/cli/units < internal/cli/scaffold < internal/cli/catalog;
	unit/migrate, internal/cli/units < internal/cli/unitfiles;
	internal/cli/report, internal/estate < internal/cli/unitview;
	internal/cli/units < internal/cli/explain;
	internal/cli/unitview, internal/cli/project < internal/cli/savedplan;
	internal/planhtml, internal/cli/savedplan, internal/cli/unitview < internal/cli/planpage;
	internal/cli/planpage, internal/cli/remoterun < internal/cli/show;
	internal/estate/placement, internal/cli/units, internal/cli/planpage, internal/cli/planning, internal/cli/validate, internal/cli/output, internal/cli/explain, internal/testrun/testfile < internal/cli/run;
	internal/cli/run < internal/cli/stack;
	internal/estate, internal/cli/project < internal/cli/help;
	internal/cli/project, internal/stateedit < internal/cli/statecmd;
	internal/cli/project < internal/cli/importcmd, internal/cli/console;
	internal/cli/flags, internal/funcs < internal/cli/metadata;
	internal/eval, plan, state, internal/digraph < internal/depgraph;
	internal/cli/project, internal/depgraph < internal/cli/graph;
	internal/cli/command < internal/cli/execcmd;
	internal/estate, internal/testrun, internal/textdiff < internal/estate/estatetest;
	internal/estate/estatetest, internal/cli/units < internal/cli/testcmd;
	internal/cli/flags, internal/format, internal/textdiff < internal/cli/fmtcmd;
	internal/telemetry/otlp, internal/cli/units < internal/cli/measure;
	internal/cli/backendcmd, internal/cli/planning, internal/cli/validate, internal/cli/output, internal/cli/explain, internal/cli/configcmd,
	  internal/cli/modules, internal/cli/providers, internal/cli/login, internal/cli/version, internal/cli/workspace,
	  internal/cli/inspect, internal/cli/unitfiles, internal/cli/stack, internal/cli/show, internal/cli/measure, internal/cli/help, internal/cli/statecmd, internal/cli/fmtcmd, internal/cli/importcmd, internal/cli/console, internal/cli/metadata, internal/cli/testcmd, internal/cli/graph, internal/cli/execcmd, internal/cli/scaffold, internal/cli/catalog
	< internal/cli;
	internal/cli < cmd/terrace;
	# Runs on other machines, which the main program does not link.
	internal/estate/remote, internal/sys < internal/temporal/connect;
	internal/estate/remote < internal/temporal/flow;
	internal/temporal/flow < internal/temporal/follow;
	internal/temporal/flow, internal/sys < internal/temporal/worker;
	internal/cli, internal/temporal/connect, internal/temporal/follow, internal/temporal/worker < internal/temporal/program;
	internal/temporal/program < cmd/terrace-worker;
	# For programs that embed Terrace: what the command line does to a folder.
	internal/project/setup < .;

	# Beside the house: tests of the whole and tools.
	NONE < internal/deps, internal/lint, internal/randconfig, bench;
	bench < bench/cmd;
	internal/filelock < internal/testkit;
`

// outside says which packages of other modules, and which of the standard
// library, only some of ours may import, outside of tests. A name ending in /
// stands for all below it.
const outside = `
	google.golang.org/grpc: internal/telemetry/otlp internal/provider/rpc internal/provider/rpc/pb5 internal/provider/rpc/pb6 internal/provider/testprovider
	google.golang.org/grpc/: internal/backend/etcdv3 internal/telemetry/otlp internal/provider/rpc internal/provider/rpc/pb5 internal/provider/rpc/pb6 internal/provider/testprovider
	google.golang.org/protobuf/: internal/temporal/connect internal/backend/oss internal/backend/backendtest/servers internal/telemetry/otlp internal/provider/rpc internal/provider/rpc/pb5 internal/provider/rpc/pb6 internal/provider/testprovider
	go.etcd.io/etcd/: internal/backend/etcdv3
	go.temporal.io/: internal/temporal/connect internal/temporal/flow internal/temporal/follow internal/temporal/worker internal/temporal/program
	go.uber.org/zap: internal/backend/etcdv3
	github.com/jackc/pgx/: internal/backend/pg internal/backend/backendtest/servers
	github.com/hashicorp/go-plugin: internal/provider/rpc internal/provider/testprovider
	golang.org/x/term: internal/sys
	os/signal: internal/sys bench/cmd internal/provider/testprovider
	os/user: internal/sys internal/backend/backendtest/servers
	log: NONE
	log/slog: NONE
	testing: internal/backend/backendtest internal/backend/backendtest/servers internal/testkit internal/plantest internal/registry/registrytest internal/state/statetest internal/state/store/storetest internal/estate/schedule/scheduletest
	github.com/google/go-cmp/: internal/testkit internal/state/statetest internal/state/store/storetest
	pgregory.net/rapid: internal/state/statetest internal/state/store/storetest
	github.com/rogpeppe/go-internal/: NONE
`

// root is the module's folder, seen from here.
const root = "../.."

func TestFloors(t *testing.T) {
	order, err := parseOrder(floors)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages(t) {
		below, known := order[p.name]
		if !known {
			t.Errorf("%s: no floor; give the package a place in the text of this test and in ARCHITECTURE.md", p.name)
			continue
		}
		for _, imp := range p.ours {
			if !below[imp] {
				t.Errorf("%s imports %s, which does not stand below it (%s)", p.name, imp, p.where[imp])
			}
		}
	}
}

// The tour of the house leaves no room out, and shows none that is not there.
func TestArchitecture(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, p := range packages(t) {
		there[p.name] = true
		if p.name != "." && !strings.HasPrefix(p.name, "examples/") && !strings.Contains(string(b), "`"+p.name+"`") {
			t.Errorf("ARCHITECTURE.md does not name %s", p.name)
		}
	}
	for _, m := range regexp.MustCompile("`(internal/[a-z0-9/]+)`").FindAllStringSubmatch(string(b), -1) {
		if !there[m[1]] {
			t.Errorf("ARCHITECTURE.md names %s, which there is not", m[1])
		}
	}
}

func TestOutside(t *testing.T) {
	rules := map[string][]string{}
	for line := range strings.Lines(outside) {
		if name, owners, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			rules[name] = strings.Fields(owners)
		}
	}
	for _, p := range packages(t) {
		for _, imp := range p.others {
			for _, rule := range slices.Sorted(maps.Keys(rules)) {
				if (imp == rule || strings.HasSuffix(rule, "/") && strings.HasPrefix(imp, rule)) && !slices.Contains(rules[rule], p.name) {
					t.Errorf("%s imports %s (%s), which only these may: %s", p.name, imp, p.where[imp], strings.Join(rules[rule], " "))
				}
			}
		}
	}
}

// A replace directive would break `go install` of the program.
func TestNoReplace(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(b), "module "+module+"\n") {
		t.Errorf("go.mod is not that of %s", module)
	}
	if strings.Contains(string(b), "\nreplace ") {
		t.Error("go.mod has a replace directive, with which `go install` of the program does not work")
	}
}

// A pkg is a package of ours with what it imports outside of tests.
type pkg struct {
	name         string // without the module path; "." for the root
	ours, others []string
	where        map[string]string // the file that an import stands in
}

// packages reads the imports of all packages outside of tests, whatever system
// a file is for.
func packages(t *testing.T) []*pkg { return readPackages(t, false) }

func readPackages(t *testing.T, tests bool) []*pkg {
	found := map[string]*pkg{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != root && (base == "testdata" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != root {
				return fs.SkipDir // a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || !tests && strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(rel))
		p := found[dir]
		if p == nil {
			p = &pkg{name: dir, where: map[string]string{}}
			found[dir] = p
		}
		for _, imp := range f.Imports {
			p.add(strings.Trim(imp.Path.Value, `"`), filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d packages found", len(found))
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *pkg) int { return cmp.Compare(a.name, b.name) })
}

func (p *pkg) add(imp, file string) {
	list := &p.others
	if rest, ok := strings.CutPrefix(imp, module+"/"); ok {
		imp, list = rest, &p.ours
	}
	if p.where[imp] == "" {
		p.where[imp] = file
		*list = append(*list, imp)
	}
}

// parseOrder reads rules "a, b < c, d < e;" into what may stand below each name.
func parseOrder(text string) (map[string]map[string]bool, error) {
	below := map[string]map[string]bool{}
	var clean strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			clean.WriteString(line + " ")
		}
	}
	for rule := range strings.SplitSeq(clean.String(), ";") {
		if strings.TrimSpace(rule) == "" {
			continue
		}
		var lower []string
		for i, set := range strings.Split(rule, "<") {
			var upper []string
			for name := range strings.SplitSeq(set, ",") {
				name = strings.TrimSpace(name)
				if name == "" || strings.Contains(name, " ") {
					return nil, fmt.Errorf("bad name %q in rule %q", name, strings.TrimSpace(rule))
				}
				upper = append(upper, name)
			}
			if i == 0 {
				for _, name := range upper {
					if name != "NONE" && below[name] == nil {
						return nil, fmt.Errorf("%q stands below something before it was placed itself", name)
					}
				}
			} else if err := place(below, lower, upper); err != nil {
				return nil, err
			}
			lower = upper
		}
	}
	return below, nil
}

// place puts each upper name above the lower ones and all that is below them.
func place(below map[string]map[string]bool, lower, upper []string) error {
	for _, up := range upper {
		if below[up] != nil {
			return fmt.Errorf("%q is placed twice", up)
		}
		set := map[string]bool{}
		for _, low := range lower {
			if low != "NONE" {
				set[low] = true
				maps.Copy(set, below[low])
			}
		}
		below[up] = set
	}
	return nil
}

func TestParseOrder(t *testing.T) {
	got, err := parseOrder("NONE < a, b; # not a comment here\n")
	if err == nil {
		t.Errorf("accepted %v", got)
	}
	got, err = parseOrder("# comment\nNONE < a, b;\na < c < d;\nb < e;")
	if err != nil {
		t.Fatal(err)
	}
	for edge, want := range map[string]bool{"c a": true, "d a": true, "d c": true, "e b": true, "e a": false, "a c": false, "c b": false} {
		up, low, _ := strings.Cut(edge, " ")
		if got[up][low] != want {
			t.Errorf("%s below %s: %v, want %v", low, up, got[up][low], want)
		}
	}
	for _, bad := range []string{"a < b;", "NONE < a; NONE < a;", "NONE < a,;", "NONE < a; a < b; b < a;"} {
		if got, err := parseOrder(bad); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}
