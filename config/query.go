package config

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/source"
)

// # Query files
//
// Files with the extensions .tfquery.hcl and .tfquery.json contain list blocks, which query
// existing objects. Only the command query and validate -query load them, with the root module of
// their directory. Their variables, local values and provider configurations belong to that
// module. Source: Terraform's documentation of query files and list blocks.

// Queries is the content of the query files of a directory. It is immutable.
type Queries struct {
	Files []FileRole // in load order

	m *Module // contains the lists, and nothing but what query files may contain
}

// A Listing contains the arguments of a list block that other resources do not have.
type Listing struct {
	IncludeResource *Setting // nil if not given
	Limit           *Setting // nil if not given
}

// LoadQueries reads the query files of a directory. A directory without query files is not an
// error. The result is never nil.
func LoadQueries(dir string, o Options) (*Queries, diag.List) {
	o = o.withDefaults()
	q := &Queries{m: &Module{Dir: dir, Set: o.Set}}
	q.m.init()
	names, ds := o.names(dir)
	if ds.HasErrors() {
		return q, ds
	}
	for _, f := range filesOf(dir, names) {
		if f.Role == RoleQuery {
			q.Files = append(q.Files, f)
		}
	}
	base := &source.Layer{Kind: source.Base}
	c := &collector{m: q.m, index: map[objectKey]*object{}, queries: true}
	for _, f := range parallel.Map(len(q.Files), o.Workers, func(i int) *parsed {
		f := q.Files[i]
		read := func() ([]byte, error) { return o.FS.ReadFile(filepath.Join(dir, f.name)) }
		return parseFile(f, base, o.parse(f.Path, read), o.Set)
	}) {
		c.ds = append(c.ds, f.ds...)
		for _, b := range f.blocks {
			c.add(b.typ, b.part)
		}
	}
	return q, c.decodeObjects(o.Workers, c.ds)
}

// inQueries reports whether a query file can contain a type of block.
func inQueries(typ string) bool {
	switch typ {
	case "list", "provider", "variable", "locals":
		return true
	}
	return false
}

// Empty reports whether there are no list blocks.
func (q *Queries) Empty() bool { return len(q.m.Resources) == 0 }

// Into returns a copy of the module that also contains the content of the query files. A name
// that both define is an error.
func (q *Queries) Into(m *Module) (*Module, diag.List) {
	out := *m
	out.Variables, out.Locals = maps.Clone(m.Variables), maps.Clone(m.Locals)
	out.Providers, out.Resources = maps.Clone(m.Providers), maps.Clone(m.Resources)
	var ds diag.List
	again := func(key objectKey, at, first source.Range) {
		ds = append(ds, duplicate(key, part{head: at}, part{head: first})...)
	}
	for name, v := range q.m.Variables {
		if have := m.Variables[name]; have != nil {
			again(objectKey{kind: "variable", a: name}, v.At, have.At)
		}
		out.Variables[name] = v
	}
	for name, l := range q.m.Locals {
		if have := m.Locals[name]; have != nil {
			ds = append(ds, duplicateLocal(name, l.At, have.At)...)
		}
		out.Locals[name] = l
	}
	for key, p := range q.m.Providers {
		if have := m.Providers[key]; have != nil {
			again(objectKey{kind: "provider", a: p.Name, b: p.Alias}, p.At, have.At)
		}
		out.Providers[key] = p
	}
	maps.Copy(out.Resources, q.m.Resources)
	for _, r := range q.m.Resources {
		ds = append(ds, undeclaredProvider(m, r)...)
	}
	return &out, ds.Sort()
}

// undeclaredProvider returns an error for a list block whose provider the configuration files do
// not require. init does not read query files, so it would not install the provider.
func undeclaredProvider(m *Module, r *Resource) diag.List {
	name := r.LocalProvider()
	if m.RequiredProviders[name] != nil {
		return nil
	}
	for _, p := range m.Providers {
		if p.Name == name {
			return nil
		}
	}
	for _, other := range m.Resources {
		if other.LocalProvider() == name {
			return nil
		}
	}
	return errorAt(diag.CodeConfigListProvider, r.At, "Provider not required",
		"%s uses the provider %q, which the configuration files do not require. Add it to required_providers in a configuration file, such as main.tf, and run init.", r.Addr, name)
}

// decodeList decodes a list block.
func decodeList(o *object) (*Resource, diag.List) {
	c, ds := kinds().list.merge(o.parts)
	e := &errs{ds}
	r := &Resource{Addr: addr.Resource{Mode: addr.List, Type: o.key.a, Name: o.key.b}, At: c.head, Listing: &Listing{c.args["include_resource"], c.args["limit"]}}
	e.add(validName(r.Addr.Type, c.head, "resource type"))
	e.add(validName(r.Addr.Name, c.head, "list"))
	if s := c.args["provider"]; s != nil {
		r.Provider = keep[*ProviderRef](e)(decodeProviderRef(s.Expr))
	} else {
		e.add(errorAt(diag.CodeConfigMissingArgument, c.at, "Missing required argument",
			"The argument \"provider\" is required: it names the provider configuration that lists the objects, such as provider = %s.", ImpliedProvider(r.Addr.Type)))
	}
	r.Repeat = keep[Repeat](e)(c.repeat(nil))
	r.Body = &hclsyntax.Body{SrcRange: c.head, EndRange: c.head}
	if all := c.blocks("config"); len(all) > 0 {
		r.Body = all[0][0].body
	}
	return r, e.ds
}

// Lists returns the list blocks of a module, sorted by address. A module has them only after
// Queries.Into.
func (m *Module) Lists() []*Resource {
	var out []*Resource
	for a, r := range m.Resources {
		if a.Mode == addr.List {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *Resource) int { return a.Addr.Compare(b.Addr) })
	return out
}
