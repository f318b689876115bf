package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/query"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/estate/unmanaged"
	"github.com/terrace-iac/terrace/internal/plan/imports"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// # A query over all units
//
// The list blocks of all units run in one run with shared providers. The objects in the states of
// all units, also of excluded ones, are subtracted from the listed objects. If a state cannot be
// read, there is no report: an object in that state would appear as unmanaged. For the same reason
// the run cannot be limited to some units. In a subdirectory of a git repository, the states of the
// units in the rest of the repository are read too; nothing else happens in these units.

// estateQuery is a query over all units.
type estateQuery struct {
	*estateRun
	o   *query.Options
	cmd *command.Command
	eo  estate.Options // of the estate

	mu       sync.Mutex
	of       map[*estate.Unit]*query.Unit
	views    map[*estate.Unit]*unitView
	reported map[string]bool // messages that were printed
}

// queryAll runs the command query over all units.
func queryAll(ctx context.Context, c *command.Call, cmd *command.Command, f *unitflags.Flags, args []string) int {
	o := &query.Options{}
	rest, _, err := o.Flags().Parse(args, c.Env, false)
	switch {
	case err != nil:
		return c.Report.UsageError("query", "Failed to parse command-line flags", err.Error())
	case len(rest) > 0:
		return c.Report.UsageError("run", "Too many command line arguments", fmt.Sprintf("%q cannot be given with --all.", rest[0]))
	case o.Generate != "":
		return c.Report.UsageError("query", "Failed to parse command-line flags", "-generate-config-out names one file, so it cannot be given with --all. -generate writes into the units.")
	case o.Changes && !o.Adopt:
		return c.Report.UsageError("query", "Failed to parse command-line flags", "-allow-changes is about -generate, which is missing.")
	}
	eo, ds := optionsOf(c, cmd, f, args)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if !f.All || f.Graph || len(eo.Discovery.Filters) > 0 {
		return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Query over some units", "The objects in the states of all units are managed, so a query cannot be limited to some units. Use --all, without filters."))
	}
	eo.Discovery.Generate, eo.Discovery.Whole = !f.NoStackGenerate, true
	e, more := units.Open(ctx, c, eo)
	defer e.Close(ctx)
	r := &estateRun{Call: c, f: f, name: "query", words: request.Words{Args: args}, estate: e}
	if wrong, ok := r.checked(ctx, cmd, slices.Concat(ds, more, e.Found.Ungenerated)); !ok || wrong.HasErrors() {
		return r.failEstate(e, wrong)
	}
	q := &estateQuery{estateRun: r, o: o, cmd: cmd, eo: eo, of: map[*estate.Unit]*query.Unit{}, views: map[*estate.Unit]*unitView{}, reported: map[string]bool{}}
	for _, u := range e.Found.Units {
		n := c.Below(u.Dir)
		n.Command, n.Report.Unit = cmd, u.Name
		q.views[u] = &unitView{Call: n, estate: e}
	}
	results := q.eachUnit(ctx, func(*estate.Unit) bool { return true }, func(ctx context.Context, u *estate.Unit, n *command.Call) diag.List {
		got, ds := query.OfUnit(ctx, n, o)
		if got != nil {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.of[u] = got
		}
		return ds
	})
	if worst(results) != 0 {
		c.Report.Tell(diag.Errorf(diag.CodeCLIQueryIncomplete, nil, "Query is incomplete", "The query failed in a unit, so it is not known which objects are unmanaged."))
		return max(1, r.written(results))
	}
	return q.finish(ctx, results)
}

// eachUnit runs do in the working directories of the units that wanted selects. It prints the
// messages.
func (q *estateQuery) eachUnit(ctx context.Context, wanted func(*estate.Unit) bool, do func(context.Context, *estate.Unit, *command.Call) diag.List) []*estate.Result {
	on := &onUnits{call: q.Call, cmd: q.cmd, f: q.f, args: q.words.Args, view: func(u *estate.Unit) *unitView { return q.views[u] }}
	ro := on.options()
	ro.Queue = estate.Queue{FailFast: q.f.FailFast, IgnoreErrors: q.f.IgnoreErrors, IgnoreOrder: q.f.IgnoreOrder}
	ro.Limits = estate.Limits{Units: q.f.Parallelism, Calls: q.o.Parallelism, All: q.f.Calls}
	ro.Command.Begin = func(_ context.Context, u *estate.Unit) (bool, diag.List) {
		switch {
		case u.Broken != nil:
			return false, u.Broken
		case u.Partial:
			return false, u.Invalid
		}
		return wanted(u), nil
	}
	ro.Command.Do = func(ctx context.Context, u *estate.Unit, s *estate.Site) (int, diag.List) {
		n := units.CallIn(q.views[u].Call, q.estate, s)
		n.Command = q.cmd
		ds := do(ctx, u, n)
		q.tell(u, n.Report.Set, ds)
		if ds.HasErrors() {
			return 1, ds
		}
		return 0, nil
	}
	ro.Observe = queryObserver{on, q}
	return q.estate.Run(ctx, ro)
}

// queryObserver prints the messages of units.
type queryObserver struct {
	*onUnits
	q *estateQuery
}

func (x queryObserver) Messages(u *estate.Unit, ds diag.List) { x.q.tell(u, x.q.estate.Sources(), ds) }

// tell prints messages about a unit.
func (q *estateQuery) tell(u *estate.Unit, set *source.Set, ds diag.List) {
	if len(ds) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	ds = slices.DeleteFunc(slices.Clone(ds), func(m *diag.Message) bool {
		key := fmt.Sprint(m.Summary, m.Detail, m.At)
		again := m.Severity == diag.Warning && q.reported[key] // units have many warnings in common
		q.reported[key] = true
		return again
	})
	for _, m := range ds.Errors() {
		m.Notes = append(m.Notes, diag.Note{Text: "in the unit " + u.Name})
	}
	if q.o.JSON.On && !ds.HasErrors() {
		_ = q.Report.Printer(set).Print(q.Stderr, q.Report.Filter(ds))
		return
	}
	q.Report.TellFrom(set, ds)
}

// queryReport is the document of -json.
type queryReport struct {
	Format    string            `json:"format_version"`
	Units     int               `json:"units"`
	Listed    int               `json:"listed"`
	Managed   int               `json:"managed"`
	Unmanaged []*unmanagedEntry `json:"unmanaged"`
}

// unmanagedEntry is an object that is in the state of no unit.
type unmanagedEntry struct {
	Type     string              `json:"resource_type"`
	Provider string              `json:"provider_name"`
	Name     string              `json:"display_name"`
	Identity map[string]any      `json:"identity"`
	ListedBy listedBy            `json:"listed_by"`
	Pending  *unmanaged.Import   `json:"pending_import,omitempty"`
	Proposal *unmanaged.Proposal `json:"proposal,omitempty"` // without a unit that fits, only NoOwner is set
	NoOwner  string              `json:"no_owner,omitempty"`
	Written  *writtenEntry       `json:"written,omitempty"`
	Left     string              `json:"not_written,omitempty"` // the reason

	object   query.Listed
	adoption *query.Adoption
}

type listedBy struct {
	Unit    string `json:"unit"`
	Address string `json:"address"`
}

type writtenEntry struct {
	File    string `json:"file"`
	Address string `json:"address"`
}

// finish compares the objects with the states, writes the blocks and the report.
func (q *estateQuery) finish(ctx context.Context, results []*estate.Result) int {
	report, ds := q.compare(ctx)
	if !ds.HasErrors() && q.o.Adopt {
		ds = append(ds, q.adopt(ctx, report)...)
	}
	if ds.HasErrors() {
		return q.failEstate(q.estate, ds)
	}
	if q.o.JSON.On || q.o.JSON.Into != "" {
		code := q.o.JSON.Document(q.Call, func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			enc.SetEscapeHTML(false)
			return enc.Encode(report)
		})
		if code != 0 {
			return code
		}
	}
	if !q.o.JSON.On {
		q.print(report)
	}
	return q.written(results)
}

// compare returns the objects that are in no state.
func (q *estateQuery) compare(ctx context.Context) (*queryReport, diag.List) {
	var index unmanaged.Index
	for _, u := range q.estate.Found.Units {
		if got := q.of[u]; got != nil {
			index.Add(u.Name, got.State, got.Configs)
			for _, im := range got.Imports {
				index.AddImport(unmanaged.Import{Unit: u.Name, Address: im.Addr.String()}, im.Addr.Resource.Type, im.Provider, im.ID, query.IdentityOf(im))
			}
			continue
		}
		st, ds := q.estate.State(ctx, u) // an excluded unit
		if ds.HasErrors() {
			return nil, ds
		}
		index.Add(u.Name, st, nil)
	}
	outside, ds := q.addOutside(ctx, &index)
	if ds.HasErrors() {
		return nil, ds
	}
	out := &queryReport{Format: "1.0", Units: len(q.estate.Found.Units) + outside, Unmanaged: []*unmanagedEntry{}}
	seen, lists := map[string]bool{}, false
	for _, u := range q.estate.Found.Units {
		got := q.of[u]
		if got == nil {
			continue
		}
		lists = lists || got.Lists
		for _, l := range got.Objects {
			identity, attrs := query.Attributes(l.Found)
			o := unmanaged.Object{Type: l.Listing.List.Resource.Type, Provider: l.Listing.Provider.Provider, Config: l.Listing.Digest, Identity: identity, Name: l.Name, Attrs: attrs}
			key := fmt.Sprint(o.Type, o.Provider, o.Config, query.Identity(l.Identity))
			if seen[key] {
				continue // several list blocks can list one object
			}
			seen[key] = true
			out.Listed++
			if index.Managed(o) {
				out.Managed++
				continue
			}
			entry := &unmanagedEntry{Type: o.Type, Provider: o.Provider.String(), Name: l.Name, Identity: identity, ListedBy: listedBy{u.Name, l.Listing.List.String()}, object: l}
			if entry.Pending = index.Importing(o); entry.Pending != nil {
				// another block would import the object twice
			} else if p := index.Propose(o, u.Name); p.Unit != "" {
				entry.Proposal = &p
			} else {
				entry.NoOwner = p.Reason
			}
			out.Unmanaged = append(out.Unmanaged, entry)
		}
	}
	if !lists {
		return nil, diag.Errorf(diag.CodeConfigNoQueries, nil, "No list blocks", "No unit below the working directory has a query file with a list block. Create a file such as main.tfquery.hcl in a unit that requires the providers.")
	}
	return out, nil
}

// statesAtOnce is the number of states that are read concurrently.
const statesAtOnce = 16

// addOutside adds the objects in the states of the units that are in the git repository, but not
// below the working directory. It returns the number of these units. Their stacks are generated in
// memory.
func (q *estateQuery) addOutside(ctx context.Context, index *unmanaged.Index) (int, diag.List) {
	o := q.eo
	root := o.Discovery.GraphRoot()
	if o.Discovery.Boundary != "" {
		root = o.Discovery.Boundary
	}
	below, err := filepath.Rel(o.Discovery.Root, root)
	if root == "" || err != nil || filepath.IsLocal(below) {
		return 0, nil
	}
	o.Discovery.Root, o.Discovery.Overlay, o.Discovery.Generated, o.Discovery.Empty = root, &stacks.Overlay{}, nil, nil
	e, ds := units.Open(ctx, q.Call, o)
	defer e.Close(ctx)
	q.Report.Set.Include(e.Sources())
	if ds = append(ds.Errors(), e.Found.Ungenerated...); ds.HasErrors() {
		return 0, unreadable(ds, root)
	}
	others := slices.DeleteFunc(slices.Clone(e.Found.Units), func(u *estate.Unit) bool {
		rel, err := filepath.Rel(q.eo.Discovery.Root, u.ID)
		return err == nil && filepath.IsLocal(rel) || q.estate.Found.ByID(u.ID) != nil
	})
	type read struct {
		state *state.State
		ds    diag.List
	}
	all := parallel.Map(len(others), statesAtOnce, func(i int) read {
		u := others[i]
		if u.Broken != nil {
			return read{ds: u.Broken}
		}
		st, ds := e.State(ctx, u)
		return read{st, ds}
	})
	for i, r := range all {
		if r.ds.HasErrors() {
			for _, m := range r.ds.Errors() {
				m.Notes = append(m.Notes, diag.Note{Text: "in the unit " + others[i].ID})
			}
			return 0, unreadable(r.ds.Errors(), root)
		}
		index.Add(q.estate.Found.Name(others[i].ID), r.state, nil)
	}
	return len(others), nil
}

// unreadable adds to errors about units outside of the working directory why the units matter.
func unreadable(ds diag.List, root string) diag.List {
	return append(ds, diag.Errorf(diag.CodeCLIQueryIncomplete, nil, "Query is incomplete", "The state of a unit outside of the working directory cannot be read, so it is not known which objects are unmanaged. The query reads the states of all units of the git repository %s. If the unit does not belong to the estate, name the directory that does with --experiment bounded-discovery --discovery-boundary DIR.", root)...)
}

// adopt writes the blocks of the objects into the units that should own them.
func (q *estateQuery) adopt(ctx context.Context, report *queryReport) diag.List {
	by := map[*estate.Unit][]*unmanagedEntry{}
	for _, x := range report.Unmanaged {
		if x.Pending != nil {
			continue
		}
		if x.Proposal == nil {
			x.Left = "no unit fits"
			continue
		}
		u := q.unit(x.Proposal.Unit)
		if x.Left = q.draft(u, x, by[u]); x.Left == "" {
			by[u] = append(by[u], x)
		}
	}
	if len(by) == 0 {
		return nil
	}
	var wrong diag.List
	results := q.eachUnit(ctx, func(u *estate.Unit) bool { return len(by[u]) > 0 }, func(ctx context.Context, u *estate.Unit, n *command.Call) diag.List {
		ds := q.adoptInto(ctx, u, n, by[u])
		q.mu.Lock()
		defer q.mu.Unlock()
		wrong = append(wrong, ds...)
		return nil
	})
	if worst(results) != 0 {
		return append(wrong, diag.Errorf(diag.CodeCLIQueryIncomplete, nil, "Query is incomplete", "The plan failed in a unit that should own objects.")...)
	}
	return wrong
}

func (q *estateQuery) unit(name string) *estate.Unit {
	for _, u := range q.estate.Found.Units {
		if u.Name == name {
			return u
		}
	}
	return nil
}

// draft sets the blocks of an object in the unit that should own it. others are further objects
// of the unit. It returns the reason if that is impossible, or "".
func (q *estateQuery) draft(u *estate.Unit, x *unmanagedEntry, others []*unmanagedEntry) string {
	got := q.of[u]
	switch {
	case got == nil || u.Module != "":
		return "the unit has no directory for configuration files"
	case x.object.Object.IsNull():
		return "the provider did not return the object"
	}
	ref, ok := providerIn(got, x.object)
	if !ok {
		return "the unit has no provider configuration with the same values"
	}
	a := addr.Resource{Type: x.Type}
	a.Name = imports.AdoptedName(x.Name, x.object.Listing.List.Resource.Name, func(name string) bool {
		r := addr.Resource{Type: a.Type, Name: name}
		return got.Root.Resources[r] != nil || slices.ContainsFunc(others, func(o *unmanagedEntry) bool { return o.adoption.Addr.Resource == r })
	})
	settings := x.object.Object
	if x.object.Config.IsKnown() && !x.object.Config.IsNull() {
		settings = x.object.Config
	}
	x.adoption = &query.Adoption{Addr: addr.AbsResource{Resource: a}.Instance(addr.Key{})}
	x.adoption.Importing, x.adoption.Resource = imports.Adopt(a, ref, x.object.Listing.Schema, x.object.Identity, settings)
	return ""
}

// providerIn returns the reference to the provider configuration of a unit that has the same
// values as the one that lists an object. It is nil for the default one of the type.
func providerIn(u *query.Unit, l query.Listed) (*config.ProviderRef, bool) {
	var found []addr.ProviderConfig
	for pc, digest := range u.Configs {
		if pc.Provider == l.Listing.Provider.Provider && digest == l.Listing.Digest {
			found = append(found, pc)
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	slices.SortFunc(found, func(a, b addr.ProviderConfig) int { return strings.Compare(a.String(), b.String()) })
	name := config.ImpliedProvider(l.Listing.List.Resource.Type)
	if u.Root.Source(name) != found[0].Provider {
		for other, rp := range u.Root.RequiredProviders {
			if rp.Source == found[0].Provider {
				name = other
			}
		}
	}
	if found[0].Alias == "" && name == config.ImpliedProvider(l.Listing.List.Resource.Type) {
		return nil, true
	}
	ref := &config.ProviderRef{Name: name, Alias: found[0].Alias}
	if found[0].Alias != "" {
		ref.Alias += found[0].Key.String()
	}
	return ref, true
}

// adoptInto plans the imports into a unit, and writes the file.
func (q *estateQuery) adoptInto(ctx context.Context, u *estate.Unit, n *command.Call, all []*unmanagedEntry) diag.List {
	name := newFile(u.Dir)
	adoptions := make([]*query.Adoption, len(all))
	for i, x := range all {
		adoptions[i] = x.adoption
	}
	if ds := query.Plan(ctx, n, q.o, name, textOf(all), adoptions); ds.HasErrors() {
		q.tell(u, n.Report.Set, ds.AsWarnings())
		for _, x := range all {
			x.Left = "the plan of the unit has errors"
		}
		return nil
	}
	var keep []*unmanagedEntry
	for _, x := range all {
		if c := x.adoption.Changes; len(c) > 0 && !q.o.Changes {
			x.Left = "the plan would change " + strings.Join(c, ", ")
			continue
		}
		keep = append(keep, x)
	}
	if len(keep) == 0 {
		return nil
	}
	path := filepath.Join(u.Dir, name)
	if err := atomicfile.Create(path, []byte(textOf(keep)), 0o644); err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write generated configuration", "The file %s could not be written: %s.", path, err)
	}
	for _, x := range keep {
		x.Written = &writtenEntry{filepath.ToSlash(filepath.Join(u.Name, name)), x.adoption.Addr.String()}
	}
	return nil
}

// textOf returns the text of a file with the blocks of objects.
func textOf(all []*unmanagedEntry) string {
	var b strings.Builder
	b.WriteString("# __generated__ by Terrace\n# Please review these resources and move them into your main configuration files.\n")
	for _, x := range all {
		fmt.Fprintf(&b, "\n# __generated__ by Terrace from %s of %s\n%s\n%s", x.ListedBy.Address, x.ListedBy.Unit, x.adoption.Importing, x.adoption.Resource)
	}
	return b.String()
}

// newFile returns the name of a file that does not exist in a directory.
func newFile(dir string) string {
	name := "imported.tf"
	for n := 2; ; n++ {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return name
		}
		name = fmt.Sprintf("imported_%d.tf", n)
	}
}

// print prints the report for people.
func (q *estateQuery) print(report *queryReport) {
	h := q.Report.Human
	for _, x := range report.Unmanaged {
		id := query.Identity(x.object.Identity)
		if x.Name != "" {
			id += " (" + x.Name + ")"
		}
		h.Copy(x.Type + " " + id + "\n")
		line := "  No unit fits. " + x.NoOwner
		switch {
		case x.Pending != nil:
			line = "  " + x.Pending.Unit + ": Its import block imports the object as " + x.Pending.Address + " with the next apply."
		case x.Proposal != nil:
			line = "  " + x.Proposal.Unit + ": " + x.Proposal.Reason
		}
		h.Copy(line + "\n")
		switch {
		case x.Pending != nil:
		case x.Written != nil:
			h.Copy("  Written to " + x.Written.File + " as " + x.Written.Address + ".\n")
		case q.o.Adopt:
			h.Copy("  Not written: " + x.Left + ".\n")
		}
	}
	if len(report.Unmanaged) > 0 {
		h.Say("\n")
	}
	h.Say(fmt.Sprintf("%s listed, %d managed, %d unmanaged. The states of %s were read.\n", view.Numbered(report.Listed, "object"), report.Managed, len(report.Unmanaged), view.Numbered(report.Units, "unit")))
}
