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

// groups lists the groups of packages, lowest first. Each line has the name of a group and
// its packages: a name means the package and all packages below its directory, and the
// longest name that fits decides. A group that is not mentioned in groupOrder is an error.
const groups = `
	base:          internal/base
	text:          addr source diag internal/lang/hclnative internal/lang/format
	outside:       internal/net internal/settings
	configuration: config demand
	language:      schema provider event explanation outline internal/lang
	state:         state internal/state
	providers:     internal/provider
	plan:          plan internal/plan
	engine:        engine internal/workdir internal/testrun .
	units:         unit internal/unit
	estate:        estate internal/estate internal/rules
	interfaces:    internal/cli internal/lsp internal/temporal
	programs:      cmd
	development:   internal/dev
`

// groupOrder defines which groups may import which, in the language of packageOrder.
const groupOrder = `
	NONE < base < text < outside, configuration < language < state, units;
	state < providers < plan < engine;
	engine, units < estate < interfaces < programs;
	base, interfaces < development;
`

// packageOrder is the import order of the packages, lowest first. "a, b < c, d;" means that
// c and d may import a and b and all packages that a and b may import. All other imports
// are forbidden. Test code is not checked. A listed package need not exist, but every
// existing package must be listed.
const packageOrder = `
	# Machinery and names that know nothing of each other.
	NONE
	< internal/base/parallel
	< internal/base/readfile
	< internal/lang/hclnative, addr, internal/base/value, internal/base/process,
	  internal/base/archive, internal/base/inside, internal/base/filelock, internal/base/atomicfile, internal/base/digraph, internal/base/sealing, internal/base/rawjson,
	  internal/provider/rpc/pb6;
	internal/base/process < internal/base/sys;
	internal/lang/hclnative < source;
	NONE < internal/base/release, internal/base/textdiff, internal/base/similar, internal/base/wrap, internal/base/junit;
	source < internal/lang/format;

	# messages to the user.
	source, addr, internal/base/wrap < diag;

	# files to modules; cells; what lies on the disk and the network.
	diag, internal/base/parallel, internal/base/release, internal/base/value < config;
	diag < demand;
	diag, internal/base/sys < internal/settings/cliconfig, internal/settings/telemetry;
	diag, internal/base/atomicfile < internal/settings/lock;
	internal/base/sys < internal/net/transfer, internal/net/aws;
	internal/net/transfer < internal/net/gcp, internal/net/azure;
	internal/net/transfer, internal/settings/cliconfig < internal/net/oci;
	internal/net/transfer, internal/settings/telemetry < internal/net/otlp;
	diag, internal/base/parallel, internal/base/value, internal/base/archive, internal/base/inside, internal/base/filelock,
	  internal/settings/lock, internal/net/oci < internal/net/fetch;
	internal/net/fetch < internal/net/registry < internal/net/registry/registrytest;
	internal/net/fetch, internal/net/aws, internal/net/gcp < internal/net/fetch/credentials;

	# functions and schemas.
	addr, internal/base/value < schema;
	internal/base/value, diag < internal/lang/funcs;

	# expressions, module trees, providers as an interface, the state's model.
	demand, schema, internal/base/value, internal/base/similar < internal/lang;
	config, internal/lang, internal/base/parallel, internal/net/fetch < internal/lang/module;
	internal/lang/module, internal/settings/lock, internal/base/sys, internal/net/registry < internal/lang/module/installer;
	diag, schema < provider;
	diag, internal/base/value, internal/base/rawjson < state;

	# providers for real. None of these is seen by eval or plan.
	internal/provider/rpc/pb6 < internal/provider/rpc/pb5;
	internal/base/atomicfile < internal/provider/schemacache;
	provider, internal/base/sys, internal/provider/rpc/pb5, internal/provider/schemacache
	< internal/provider/rpc
	< internal/provider/testprovider
	< internal/provider/testprovider/cmd/terraform-provider-test;
	provider < internal/provider/fake;
	provider < internal/provider/intercept;
	provider, internal/provider/intercept, internal/base/parallel < internal/provider/manager;
	provider, config, internal/settings/lock, internal/net/registry < internal/provider/install;

	# configuration to what is wanted. It sees neither state nor plugins.
	internal/lang/module, internal/lang/funcs < internal/lang/eval;
	diag < explanation;
	internal/lang/eval, explanation < internal/lang/origin;

	# where state lives.
	state < internal/state/statetest;
	state, internal/base/parallel < state/statefile;
	state/statefile, internal/base/sealing < internal/state/store;
	state/statefile, internal/base/sealing, internal/base/sys < internal/state/journal;
	state, internal/base/similar < internal/state/stateedit;
	internal/state/store, internal/base/filelock, internal/base/sys < internal/state/store/local;
	internal/state/store, internal/state/journal < internal/state/statemgr;
	internal/state/store < internal/state/store/storetest;

	# kinds of backends, a package each below internal/state/backend; only
	# internal/state/backend/kinds, the list of them, knows them all.
	internal/state/store < internal/state/backend/rest;
	internal/state/store, internal/base/sys, internal/base/parallel, schema < internal/state/backend;
	NONE < internal/state/backend/backendtest/servers;
	internal/state/backend < internal/state/backend/doctor;
	internal/state/backend/doctor, internal/state/store/storetest, internal/state/backend/backendtest/servers < internal/state/backend/backendtest;
	internal/state/backend, internal/state/backend/rest < internal/state/backend/httpstore;
	internal/state/backend, internal/net/aws < internal/state/backend/awsargs;
	internal/state/backend/awsargs, internal/state/backend/rest < internal/state/backend/s3;
	internal/state/backend, internal/state/backend/rest < internal/state/backend/pg;
	internal/state/backend, internal/state/backend/rest < internal/state/backend/consul;
	internal/state/backend, internal/state/backend/rest < internal/state/backend/kubernetes;
	internal/state/backend, internal/state/backend/rest < internal/state/backend/etcdv3;
	internal/state/backend, internal/state/backend/rest < internal/state/backend/bucket;
	internal/state/backend/bucket < internal/state/backend/cos, internal/state/backend/oss;
	internal/state/backend, internal/state/backend/rest, internal/net/gcp < internal/state/backend/gcs;
	internal/state/backend, internal/state/backend/rest, internal/net/azure < internal/state/backend/azureargs;
	internal/state/backend/azureargs < internal/state/backend/azurerm;
	internal/state/backend, internal/state/backend/rest, internal/net/transfer < internal/state/backend/tfe;
	internal/state/backend < internal/state/backend/inmem;
	internal/state/backend, internal/state/store/local < internal/state/backend/local;
	internal/state/backend/azurerm,
	  internal/state/backend/consul,
	  internal/state/backend/cos,
	  internal/state/backend/etcdv3,
	  internal/state/backend/gcs,
	  internal/state/backend/httpstore,
	  internal/state/backend/inmem,
	  internal/state/backend/kubernetes,
	  internal/state/backend/local,
	  internal/state/backend/oss,
	  internal/state/backend/pg,
	  internal/state/backend/s3,
	  internal/state/backend/tfe
	< internal/state/backend/kinds;
	internal/state/backend, internal/base/value < internal/state/backend/configure;
	internal/state/backend, internal/base/atomicfile, internal/base/inside < internal/state/backend/record;
	internal/state/backend/configure, internal/state/backend/awsargs, internal/state/backend/azureargs, internal/state/backend/rest, internal/state/journal, internal/net/gcp < internal/state/encryption;
	internal/state/backend/configure, internal/state/backend/record, config < internal/state/backend/selection;
	internal/state/backend/configure < internal/state/backend/remotestate;
	internal/state/backend, internal/state/statemgr < internal/state/backend/migrate;
	provider, internal/state/store/local < internal/provider/builtin;
	diag, schema, internal/base/sys < internal/provider/provisioner;

	# units know nothing of plans.
	diag, internal/base/value, internal/base/similar < unit/syntax;
	internal/base/process, internal/base/sys, demand, internal/lang/hclnative, internal/lang/funcs, internal/base/parallel, unit/syntax < internal/unit/functions;
	internal/unit/functions, internal/lang, internal/net/fetch, internal/lang/origin < unit;
	unit, internal/base/textdiff < unit/migrate;

	# what is wanted, what there is, what is to be done. No gRPC here.
	diag < event;
	state, event < plan;
	internal/lang/module, state < internal/plan/refactoring;
	internal/lang/eval, state < internal/plan/checks;
	internal/lang/eval, internal/plan/refactoring, plan < internal/plan/imports;
	internal/lang/eval, provider, state, event < internal/provider/resourceclient;
	plan, internal/lang/module, internal/lang/eval < internal/plan/relevantattrs;
	internal/provider/resourceclient, internal/plan/imports, internal/plan/checks < internal/plan/planner;
	internal/lang/module, internal/provider/fake < internal/plan/plantest;
	internal/provider/resourceclient, internal/plan/refactoring < internal/plan/validate;
	plan, state/statefile, internal/base/sealing < internal/plan/planfile;
	plan, internal/base/atomicfile < internal/plan/readlog;
	plan < internal/plan/rounds;
	plan, internal/base/readfile, internal/base/sys, internal/lang/hclnative < internal/plan/accepted;
	internal/plan/relevantattrs, internal/settings/lock < internal/plan/planjson;
	internal/lang/eval, event, internal/plan/refactoring < internal/plan/apply/provision;
	internal/provider/resourceclient, internal/plan/imports, internal/plan/checks, internal/plan/apply/provision < internal/plan/apply;

	addr, source < outline;
	internal/lang/eval, schema, explanation, outline < internal/lang/outliner;
	internal/lang/origin < internal/lang/subject;

	# the facade never imports unit.
	internal/plan/planner, internal/plan/accepted, internal/plan/apply, internal/provider/provisioner, internal/plan/validate, internal/plan/planfile, internal/plan/relevantattrs, internal/lang/origin, internal/lang/outliner, internal/lang/subject, internal/state/store/local,
	  internal/provider/builtin, internal/provider/manager, internal/provider/install,
	  internal/provider/rpc, internal/net/registry
	< engine;

	# An opened directory, for the command line, estates and embedding programs.
	internal/settings/telemetry, internal/base/sys < internal/settings/tracelog;
	engine, internal/state/statemgr, internal/state/encryption, internal/plan/readlog,
	  internal/state/backend/kinds, internal/state/backend/selection, internal/state/backend/remotestate,
	  internal/net/fetch/credentials, internal/provider/provisioner, internal/provider/rpc, internal/provider/install,
	  internal/settings/tracelog
	< internal/workdir;

	# tests run on the facade.
	config < internal/testrun/testfile;
	provider, internal/provider/intercept, state < internal/testrun/mock;
	engine, internal/testrun/testfile, internal/testrun/mock < internal/testrun;

	# many units, the command line, main.
	NONE < internal/estate/glob;
	internal/base/parallel < internal/estate/schedule < internal/estate/schedule/scheduletest;
	internal/estate/glob, diag < internal/estate/discovery/filter;
	internal/base/filelock, internal/base/parallel, internal/base/sys < internal/estate/discovery/git;
	unit < internal/estate/retry;
	internal/workdir < internal/workdir/flag;
	unit, internal/workdir/flag < internal/estate/arguments;
	unit, internal/settings/telemetry < internal/estate/hooks;
	unit, internal/base/parallel, internal/base/sys < internal/estate/credentials;
	unit, engine < internal/estate/inputs;
	internal/estate/glob, internal/net/fetch, internal/state/statemgr, unit < internal/estate/workcopy/copytree < internal/estate/workcopy/overlay;
	internal/estate/workcopy/overlay, engine, internal/state/backend < internal/estate/workcopy;
	internal/estate/workcopy, internal/settings/telemetry < internal/estate/discovery/stacks;
	internal/estate/discovery/filter, internal/estate/discovery/git, internal/estate/discovery/stacks, internal/estate/schedule < internal/estate/discovery;
	internal/estate/workcopy, internal/estate/arguments, internal/state/backend/selection < internal/estate/states;
	internal/estate/discovery < internal/estate/report;
	internal/estate/report, internal/plan/planfile, internal/state/journal < internal/estate/saved;
	state < internal/estate/unmanaged;
	internal/estate/discovery < internal/estate/outputs;
	internal/estate/inputs, internal/estate/outputs, internal/estate/states < internal/estate/check;
	internal/plan/refactoring, internal/state/stateedit, internal/estate/states, plan, internal/lang/hclnative < internal/estate/moves;
	internal/lang/hclnative, diag, internal/base/sys < internal/estate/placement;
	internal/estate/inputs, internal/estate/outputs, internal/estate/states, internal/estate/moves, internal/estate/saved, internal/estate/hooks, internal/estate/retry, internal/estate/credentials,
	  internal/workdir, internal/testrun, internal/plan/rounds
	< internal/estate/run;
	internal/net/registry, internal/workdir < internal/estate/modules;
	internal/estate/check, internal/estate/run, internal/lang/outliner < internal/estate;
	internal/estate/discovery/git < internal/estate/revision;
	internal/estate < internal/estate/affected;
	source < internal/rules/finding;
	internal/rules/finding, internal/lang/subject, plan < internal/rules;
	internal/rules/finding, internal/base/junit < internal/rules/format;
	internal/estate, unit/migrate, internal/rules/finding < internal/rules/lint;
	internal/plan/planjson, diag, schema < internal/cli/view;
	internal/base/digraph, internal/cli/view < internal/cli/planhtml;
	internal/settings/telemetry, internal/cli/view, internal/base/sys, config < internal/cli/report, internal/cli/interrupt;
	internal/cli/report < internal/cli/prompt;
	internal/workdir/flag < internal/estate/request;
	internal/estate/request, internal/estate/report, internal/state/statemgr, internal/state/backend, internal/base/atomicfile < internal/estate/remote;
	internal/estate/remote, internal/cli/prompt, internal/cli/interrupt < internal/cli/command;
	internal/base/wrap < internal/cli/markdown;
	NONE < internal/cli/unitlog;
	internal/cli/command, internal/cli/markdown < internal/cli/flags;
	internal/cli/command, internal/cli/unitlog < internal/cli/unitflags;
	internal/state/backend/migrate, internal/lang/module/installer, internal/workdir/flag, internal/testrun < internal/workdir/setup;
	internal/estate, internal/estate/modules, internal/workdir/setup < estate;
	internal/plan/planjson, internal/cli/flags < internal/cli/project;
	internal/workdir/setup, internal/cli/project < internal/cli/initialize;
	internal/cli/project, internal/testrun < internal/cli/validate, internal/cli/providers, internal/cli/query;
	internal/state/backend/tfe, internal/cli/project < internal/cli/remoterun;
	internal/cli/project < internal/cli/output, internal/cli/configcmd,
	  internal/cli/modules, internal/cli/login, internal/cli/version, internal/cli/workspace;
	internal/rules, internal/cli/project, internal/estate < internal/cli/rulecheck;
	internal/estate/affected, internal/estate/revision, internal/estate/modules, internal/cli/initialize, internal/cli/unitflags < internal/cli/units;
	internal/state/backend/doctor, internal/cli/units < internal/cli/backendcmd;
	internal/base/digraph, internal/cli/units < internal/cli/inspect;
	internal/base/readfile < internal/estate/catalog;
	internal/base/sys < internal/cli/screen;
	internal/lang/funcs, internal/estate/catalog, internal/cli/units, internal/cli/screen < internal/cli/scaffold < internal/cli/catalog;
	unit/migrate, internal/cli/units < internal/cli/unitfiles;
	internal/cli/report, internal/estate < internal/cli/unitview;
	internal/cli/units < internal/cli/explain;
	internal/cli/unitview, internal/cli/project < internal/cli/savedplan;
	internal/cli/planhtml, internal/cli/savedplan, internal/cli/unitview < internal/cli/planpage;
	internal/cli/units, internal/cli/planpage < internal/cli/affected;
	internal/cli/planpage, internal/cli/remoterun < internal/cli/show;
	internal/cli/planpage, internal/cli/remoterun, internal/cli/affected, internal/cli/rulecheck, internal/plan/rounds < internal/cli/planning;
	internal/cli/units, internal/cli/rulecheck, internal/cli/savedplan, internal/rules/lint, internal/rules/format < internal/cli/check;
	internal/estate/placement, internal/estate/unmanaged, internal/cli/query, internal/cli/units, internal/cli/planpage, internal/cli/planning, internal/cli/validate, internal/cli/output, internal/cli/explain, internal/testrun/testfile < internal/cli/run;
	internal/cli/run < internal/cli/stack;
	internal/estate, internal/cli/project < internal/cli/help;
	internal/cli/project, internal/state/stateedit < internal/cli/statecmd;
	internal/cli/project < internal/cli/importcmd, internal/cli/console;
	internal/cli/flags, internal/lang/funcs < internal/cli/metadata;
	internal/lang/eval, plan, state, internal/base/digraph < internal/plan/depgraph;
	internal/cli/project, internal/plan/depgraph < internal/cli/graph;
	internal/cli/command < internal/cli/execcmd;
	internal/estate, internal/testrun, internal/base/textdiff < internal/estate/estatetest;
	internal/estate/estatetest, internal/cli/rulecheck, internal/cli/units, internal/base/junit < internal/cli/testcmd;
	internal/cli/flags, internal/lang/format, internal/base/textdiff < internal/cli/fmtcmd;
	internal/net/otlp, internal/cli/units < internal/cli/measure;
	# the language server.
	NONE < internal/lsp/protocol < internal/lsp/document;
	unit, internal/rules, internal/testrun/testfile < internal/lsp/index;
	internal/lsp/document, internal/lsp/index, internal/rules/lint, internal/estate/modules < internal/lsp/workspace;
	internal/lsp/index, internal/lsp/document, internal/lang/format < internal/lsp/formatting < internal/lsp/front;
	internal/lsp/workspace, internal/lsp/formatting < internal/lsp/server;
	internal/lsp/server, internal/lsp/front, internal/cli/command < internal/cli/lsp;
	internal/cli/lsp, internal/cli/affected, internal/cli/check, internal/cli/backendcmd, internal/cli/planning, internal/cli/validate, internal/cli/output, internal/cli/explain, internal/cli/configcmd,
	  internal/cli/modules, internal/cli/providers, internal/cli/login, internal/cli/version, internal/cli/workspace,
	  internal/cli/inspect, internal/cli/unitfiles, internal/cli/stack, internal/cli/show, internal/cli/measure, internal/cli/help, internal/cli/statecmd, internal/cli/fmtcmd, internal/cli/importcmd, internal/cli/console, internal/cli/metadata, internal/cli/testcmd, internal/cli/graph, internal/cli/execcmd, internal/cli/scaffold, internal/cli/catalog
	< internal/cli;
	internal/cli < cmd/terrace;
	# Runs on other machines, which the main program does not link.
	internal/estate/remote, internal/base/sys < internal/temporal/connect;
	internal/estate/remote < internal/temporal/flow;
	internal/temporal/flow < internal/temporal/follow;
	internal/temporal/flow, internal/base/sys < internal/temporal/worker;
	internal/cli, internal/temporal/connect, internal/temporal/follow, internal/temporal/worker < internal/temporal/program;
	internal/temporal/program < cmd/terrace-worker;
	# For programs that embed Terrace: what the command line does to a directory.
	internal/workdir/setup < .;

	# Beside the house: tests of the whole and tools.
	NONE < internal/dev/deps, internal/dev/lint, internal/dev/randconfig;
	internal/base/readfile < internal/dev/lspgen;
	internal/lsp/document < internal/dev/bench < internal/dev/bench/cmd;
	internal/base/filelock < internal/dev/testkit;
`

// outside lists packages of other modules and of the standard library that only some of our
// packages may import, except in tests. A name ending in / covers all packages below it.
const outside = `
	google.golang.org/grpc: internal/dev/bench internal/net/otlp internal/provider/rpc internal/provider/rpc/pb5 internal/provider/rpc/pb6 internal/provider/testprovider
	google.golang.org/grpc/: internal/state/backend/etcdv3 internal/net/otlp internal/provider/rpc internal/provider/rpc/pb5 internal/provider/rpc/pb6 internal/provider/testprovider
	google.golang.org/protobuf/: internal/temporal/connect internal/state/backend/oss internal/state/backend/backendtest/servers internal/net/otlp internal/provider/rpc internal/provider/rpc/pb5 internal/provider/rpc/pb6 internal/provider/testprovider
	go.etcd.io/etcd/: internal/state/backend/etcdv3
	go.temporal.io/: internal/temporal/connect internal/temporal/flow internal/temporal/follow internal/temporal/worker internal/temporal/program
	go.uber.org/zap: internal/state/backend/etcdv3
	github.com/jackc/pgx/: internal/state/backend/pg internal/state/backend/backendtest/servers
	github.com/hashicorp/go-plugin: internal/dev/bench internal/provider/rpc internal/provider/testprovider
	golang.org/x/term: internal/base/sys
	os/signal: internal/base/sys internal/dev/bench/cmd internal/provider/testprovider
	os/user: internal/base/sys internal/state/backend/backendtest/servers
	log: NONE
	log/slog: NONE
	testing: internal/state/backend/backendtest internal/state/backend/backendtest/servers internal/dev/testkit internal/plan/plantest internal/net/registry/registrytest internal/state/statetest internal/state/store/storetest internal/estate/schedule/scheduletest
	github.com/google/go-cmp/: internal/dev/testkit internal/state/statetest internal/state/store/storetest
	pgregory.net/rapid: internal/state/statetest internal/state/store/storetest
	github.com/rogpeppe/go-internal/: NONE
`

// root is the module's directory, relative to this package.
const root = "../../.."

func TestPackageOrder(t *testing.T) {
	order, err := parseOrder(packageOrder)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages(t) {
		below, known := order[p.name]
		if !known {
			t.Errorf("%s is not in packageOrder: add the package there", p.name)
			continue
		}
		for _, imp := range p.ours {
			if !below[imp] {
				t.Errorf("%s imports %s, which packageOrder does not allow (%s)", p.name, imp, p.where[imp])
			}
		}
	}
}

// A group imports only the groups that groupOrder allows.
func TestGroupOrder(t *testing.T) {
	order, err := parseOrder(groupOrder)
	if err != nil {
		t.Fatal(err)
	}
	groupOf := map[string]string{} // by package or directory name
	for line := range strings.Lines(groups) {
		if name, members, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			if order[name] == nil {
				t.Errorf("groupOrder does not mention %s", name)
			}
			for _, m := range strings.Fields(members) {
				groupOf[m] = name
			}
		}
	}
	group := func(name string) string {
		for {
			if g := groupOf[name]; g != "" {
				return g
			}
			if name = path.Dir(name); name == "." {
				return ""
			}
		}
	}
	groupOfRoot := groupOf["."]
	for _, p := range packages(t) {
		g := group(p.name)
		if p.name == "." {
			g = groupOfRoot
		}
		if g == "" && !strings.HasPrefix(p.name, "examples/") {
			t.Errorf("%s is in no group", p.name)
		}
		for _, imp := range p.ours {
			if below := group(imp); g != below && !order[g][below] && g != "" {
				t.Errorf("%s (group %s) imports %s (group %s), which groupOrder does not allow (%s)", p.name, g, imp, below, p.where[imp])
			}
		}
	}
}

// ARCHITECTURE.md mentions only packages that exist.
func TestArchitecture(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, p := range packages(t) {
		exists[p.name] = true
	}
	names := regexp.MustCompile("`((?:internal|unit|cmd)/[a-z0-9/-]+)`").FindAllStringSubmatch(string(b), -1)
	if len(names) < 20 {
		t.Fatalf("only %d packages are named", len(names))
	}
	for _, m := range names {
		if !exists[m[1]] {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", m[1])
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

// A pkg is one of our packages, with its imports outside of tests.
type pkg struct {
	name         string // without the module path; "." for the root
	ours, others []string
	where        map[string]string // the file of each import
}

// packages returns all packages with their imports outside of tests, for all operating
// systems.
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

// parseOrder parses rules "a, b < c, d < e;". For each name it returns the names that may
// be below it.
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

// place adds the lower names, and all names below them, to each upper name.
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
