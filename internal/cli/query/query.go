// Package query implements the command query, which lists existing objects with the list blocks
// of query files.
//
// Main functions: Command, and Directory for commands over many units. The one rule: a query
// changes nothing, and never writes to a file that exists.
package query

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan/imports"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Options are the flags of query.
type Options struct {
	JSON        flags.JSON
	Generate    string // path of the file for generated configuration; "" for none
	Vars        []workdir.VarFlag
	Input       bool
	Parallelism int
	Reveal      bool

	// With --all only.
	Adopt   bool // write import and resource blocks into the units
	Changes bool // write them also if the import would change something
}

// Flags returns the flags of query. Some are only allowed in one directory, or only with --all.
func (o *Options) Flags() flag.Flags {
	o.Input, o.Parallelism = true, 10
	fs := append(flag.Vars(&o.Vars),
		flag.Bool(&o.Input, "input", "Do not ask for input. Missing variables are errors then."),
		flag.Parallelism(&o.Parallelism),
		flag.Bool(&o.Reveal, "show-sensitive", "Show sensitive values."), flag.NoColor())
	fs = append(fs, o.JSON.Flags()...)
	return append(fs,
		flag.Text(&o.Generate, "generate-config-out", "path", "Write import and resource blocks for the objects to a file, which must not exist. With -json, they are part of the output instead. Not with --all.").Completes(flag.Files),
		flag.Bool(&o.Adopt, "generate", "With --all: write an import block and a resource block for each unmanaged object into a new file of the unit that should own it, if its plan then imports the object and changes nothing."),
		flag.Bool(&o.Changes, "allow-changes", "With -generate: write the blocks also if the plan would change the object."))
}

// Command declares query.
func Command() command.Command {
	return command.Command{
		Name: "query", Synopsis: "List existing objects, and generate configuration to import them", Usage: "[options]",
		Uses:  command.State | command.Providers,
		Units: command.InUnit | command.NeedsInputs | command.OnlyReads,
		Help: `Run the list blocks in the query files of the directory, whose names end with
.tfquery.hcl or .tfquery.json, and print the objects that the providers list.
Nothing is changed. -generate-config-out writes import and resource blocks for
the objects to a new file.

"run --all query" runs the list blocks of all units and reports the objects
that are in the state of no unit. For each, it proposes the unit that should
own it; with -generate it writes an import block and a resource block there.`,
		Examples: []command.Example{
			{Line: "query -generate-config-out=imports.tf", Text: "Write import and resource blocks for all objects."},
			{Line: "run --all query", Text: "Report the objects that no unit manages."},
		},
		Exits: []command.Exit{{Code: 0, Help: "All list blocks ran."}, {Code: 1, Help: "There was an error."}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &Options{}
			return o.Flags(), func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Too many command line arguments", "To specify a working directory, use the global -chdir flag.")
				}
				if o.Adopt || o.Changes {
					return c.UsageError("Failed to parse command-line flags", "-generate and -allow-changes are about many units: use run --all query.")
				}
				if !o.JSON.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return run(ctx, c, o)
			}
		},
	}
}

func run(ctx context.Context, c *command.Call, o *Options) int {
	if o.Generate != "" && !o.JSON.On {
		if _, err := os.Lstat(c.ReportPath(o.Generate)); err == nil {
			return c.Fail(diag.Errorf(diag.CodeCLIGenerateExists, nil, "Target generated file already exists", "%s can only write generated config into a new file. Either choose a different target location or move all existing configuration out of the target file, delete it and try again.", view.Product))
		}
	}
	p, ds := open(ctx, c, o)
	if p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	c.Report.Tell(ds.Warnings())
	out := newPrinter(p, o)
	ds = p.query(ctx, engine.ListOptions{Generate: o.Generate != "", To: out})
	ds = append(ds, out.limits()...)
	out.print(!ds.HasErrors())
	if !ds.HasErrors() && o.Generate != "" && !o.JSON.On {
		ds = append(ds, out.write(c.ReportPath(o.Generate))...)
	}
	c.Report.Tell(ds)
	if ds.HasErrors() {
		return 1
	}
	return 0
}

// A loaded is the configuration of a directory with its query files.
type loaded struct{ *project.Project }

// open loads the directory with its query files. After errors, the result is nil.
func open(ctx context.Context, c *command.Call, o *Options) (*loaded, diag.List) {
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: o.Vars, Input: o.Input, Parallelism: o.Parallelism, Query: true})
	if p == nil {
		return nil, ds
	}
	return &loaded{p}, ds
}

// query runs the list blocks.
func (p *loaded) query(ctx context.Context, how engine.ListOptions) diag.List {
	prev, ds := p.state(ctx)
	if ds.HasErrors() {
		return ds
	}
	return append(ds, p.Engine.Query(ctx, prev, engine.QueryOptions{Variables: p.Vars, ListOptions: how})...)
}

// A listing is a list block instance with its objects.
type listing struct {
	*engine.Listing
	found    []object
	complete bool
}

// An object is a listed object with its generated blocks, which are "" unless they were
// requested.
type object struct {
	engine.Found
	importing, resource string
}

// printer collects the objects, and writes JSON events. It implements engine.ListObserver.
type printer struct {
	p *loaded
	o *Options

	mu   sync.Mutex
	all  map[*engine.Listing]*listing
	used map[addr.Resource]bool
	seen map[string]bool // objects that have generated blocks; see Key
}

func newPrinter(p *loaded, o *Options) *printer {
	x := &printer{p: p, o: o, all: map[*engine.Listing]*listing{}, used: map[addr.Resource]bool{}, seen: map[string]bool{}}
	for a := range p.Engine.Root().Resources {
		x.used[a] = true
	}
	return x
}

func (x *printer) Started(l *engine.Listing) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[l] = &listing{Listing: l}
	f := about(l)
	f["input_config"] = plainObject(l.Config, l.Secret, x.o.Reveal)
	x.p.Report.Stream.Typed(l.List.String()+": listing objects", "list_start", map[string]any{"list_start": f})
}

func (x *printer) Found(l *engine.Listing, f engine.Found) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := x.all[l]
	o := object{Found: f}
	if key := Key(l, f); x.o.Generate != "" && !x.seen[key] { // two list blocks can list one object
		x.seen[key] = true
		a := addr.Resource{Type: l.List.Resource.Type}
		n := len(of.found)
		a.Name = imports.AdoptedName(fmt.Sprintf("%s%s_%d", l.List.Resource.Name, l.List.Key, n), "listed", func(name string) bool {
			return x.used[addr.Resource{Type: a.Type, Name: name}]
		})
		x.used[a] = true
		o.importing, o.resource = Blocks(x.p.Engine.Root(), a, l, f)
	}
	of.found = append(of.found, o)
	if x.p.Report.Stream == nil {
		return
	}
	e := about(l)
	e["display_name"], e["identity"], e["identity_version"] = f.Name, plainObject(f.Identity, nil, true), l.Schema.IdentityVersion
	if f.Object != cty.NilVal && l.Objects {
		e["resource_object"] = plainObject(f.Object, l.Schema.Block.SensitivePaths(f.Object), x.o.Reveal)
	}
	if o.resource != "" {
		e["config"], e["import_config"] = o.resource, o.importing
	}
	x.p.Report.Stream.Typed(l.List.String()+": object found", "list_resource_found", map[string]any{"list_resource_found": e})
}

func (x *printer) Complete(l *engine.Listing) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[l].complete = true
	f := about(l)
	f["total"] = l.Total
	x.p.Report.Stream.Typed(l.List.String()+": all objects listed", "list_complete", map[string]any{"list_complete": f})
}

// about returns the fields that all events of a listing have.
func about(l *engine.Listing) map[string]any {
	return map[string]any{"address": l.List.String(), "resource_type": l.List.Resource.Type}
}

// plainObject returns an object as JSON. Sensitive values are null unless reveal is set.
func plainObject(v cty.Value, secret []cty.Path, reveal bool) json.RawMessage {
	if !reveal && len(secret) > 0 {
		v = withoutPaths(v, secret)
	}
	b, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return nil // only values with unknown parts have no JSON form; the engine refuses them
	}
	return b
}

// withoutPaths returns a value with null at the paths.
func withoutPaths(v cty.Value, paths []cty.Path) cty.Value {
	out, err := cty.Transform(v, func(p cty.Path, v cty.Value) (cty.Value, error) {
		if slices.ContainsFunc(paths, p.Equals) {
			return cty.NullVal(v.Type()), nil
		}
		return v, nil
	})
	if err != nil {
		return cty.NullVal(v.Type())
	}
	return out
}

// sorted returns the listings by address.
func (x *printer) sorted() []*listing {
	var out []*listing
	for _, l := range x.all {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b *listing) int { return a.List.Compare(b.List) })
	return out
}

// limits returns a warning for each list block that may have more objects than its limit.
func (x *printer) limits() diag.List {
	var ds diag.List
	for _, l := range x.sorted() {
		if l.complete && l.Truncated {
			ds = append(ds, Limited(x.p.Engine.Root(), l.Listing)...)
		}
	}
	return ds
}

// Limited returns the warning that a list block returned as many objects as its limit allows.
func Limited(root *config.Module, l *engine.Listing) diag.List {
	r := root.Resources[l.List.Resource]
	at := r.At
	if r.Listing.Limit != nil {
		at = r.Listing.Limit.Expr.Range()
	}
	return diag.Warnf(diag.CodeCLIQueryLimit, &at, "Limit of list block reached", "%s returned %s, as many as its limit allows. There may be more: set a larger limit.", l.List, view.Numbered(l.Total, "object"))
}

// print prints the objects for people. complete reports that everything was listed.
func (x *printer) print(complete bool) {
	h := x.p.Report.Human
	if h == nil {
		return
	}
	var rows [][3]string
	var wide [2]int
	for _, l := range x.sorted() {
		for _, o := range l.found {
			row := [3]string{l.List.String(), Identity(o.Identity), o.Name}
			wide[0], wide[1] = max(wide[0], len(row[0])), max(wide[1], len(row[1]))
			rows = append(rows, row)
		}
	}
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s   %-*s   %s", wide[0], r[0], wide[1], r[1], r[2]), " ") + "\n")
	}
	if len(rows) == 0 && complete {
		h.Say("The list blocks returned no objects.\n")
		return
	}
	h.Copy(b.String())
}

// Identity returns an identity as text, such as id=x,region=y. Parts that are null are left out.
func Identity(v cty.Value) string {
	var parts []string
	all := v.AsValueMap()
	for name, e := range all {
		if !e.IsNull() {
			parts = append(parts, name+"="+strings.Trim(string(plainObject(e, nil, true)), `"`))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// Blocks returns the import block and the resource block for a listed object. root is the module
// that contains the list block.
func Blocks(root *config.Module, a addr.Resource, l *engine.Listing, f engine.Found) (importing, resource string) {
	settings := f.Object
	if f.Config != cty.NilVal {
		settings = f.Config
	}
	return imports.Adopt(a, ProviderOf(root, l), l.Schema, f.Identity, settings)
}

// Key identifies a listed object: by its type, the provider configuration that lists it, and its
// identity.
func Key(l *engine.Listing, f engine.Found) string {
	return l.List.Resource.Type + " " + l.Provider.String() + " " + string(plainObject(f.Identity, nil, true))
}

// ProviderOf returns the reference to the provider configuration of a list block, for a resource
// in the same module. It is nil for the default configuration of the type.
func ProviderOf(root *config.Module, l *engine.Listing) *config.ProviderRef {
	r := root.Resources[l.List.Resource]
	name := r.LocalProvider()
	if l.Provider.Alias == "" && name == config.ImpliedProvider(l.List.Resource.Type) {
		return nil
	}
	return &config.ProviderRef{Name: name, Alias: l.Provider.Alias + keyed(l)}
}

// keyed returns the key of the provider configuration with brackets, or "".
func keyed(l *engine.Listing) string {
	if l.Provider.Alias == "" {
		return ""
	}
	return l.Provider.Key.String()
}

// write writes the generated blocks to a new file.
func (x *printer) write(path string) diag.List {
	var b strings.Builder
	b.WriteString("# __generated__ by Terrace\n# Please review these resources and move them into your main configuration files.\n")
	n := 0
	for _, l := range x.sorted() {
		for _, o := range l.found {
			if o.resource == "" {
				continue
			}
			fmt.Fprintf(&b, "\n# __generated__ by Terrace from %s\n%s\n%s", l.List, o.resource, o.importing)
			n++
		}
	}
	if n == 0 {
		return nil
	}
	if err := atomicfile.Create(path, []byte(b.String()), 0o644); err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write generated configuration", "The configuration for listed objects could not be written: %s. Name a file that does not exist yet in a directory that can be written.", err)
	}
	x.p.Report.Human.Say(fmt.Sprintf("\nThe configuration of %s was written to %s. Review it, and apply it to import them.\n", view.Numbered(n, "object"), x.o.Generate))
	return nil
}
