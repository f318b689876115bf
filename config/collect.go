package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/source"
)

// Loading has three steps. First, files are parsed concurrently and split into top-level
// blocks. Second, the blocks are collected into objects in load order: base files add objects,
// and override files add a part to an existing object. Third, every object is merged and
// decoded, again concurrently, since objects do not depend on each other.

// object is one declared object of the module, with the parts from which it is merged.
type object struct {
	key   objectKey
	parts []part
	base  [1]part // initial array of parts
	check string  // name of the check block that contains the data source
	out   any     // result of decode
	ds    diag.List
}

type objectKey struct {
	kind string
	a, b string
}

// collector collects the blocks of all files.
type collector struct {
	m       *Module
	objects []*object
	index   map[objectKey]*object
	once    []*object // moved, removed and import blocks, which have no key
	tf      terraformParts
	ds      diag.List
	queries bool // the files are query files
}

func load(dir string, names []string, read func(string) ([]byte, error), o Options) (*Module, diag.List) {
	c := collect(dir, names, read, o)
	if c.m.hasOverrides() {
		o.Set.Remark(dir, c.m.remarks)
	}
	return c.m, c.decode(o)
}

func (m *Module) hasOverrides() bool {
	return slices.ContainsFunc(m.Files, func(f FileRole) bool { return f.Role == RoleOverride })
}

// collect runs the first two steps of loading.
func collect(dir string, names []string, read func(string) ([]byte, error), o Options) *collector {
	m := &Module{Dir: dir, Set: o.Set, Files: filesOf(dir, names)}
	m.init()
	c := &collector{m: m, index: map[objectKey]*object{}}
	for _, f := range parseAll(m.Files, read, o) {
		c.ds = append(c.ds, f.ds...)
		for _, b := range f.blocks {
			c.add(b.typ, b.part)
		}
	}
	c.ds = append(c.ds, c.tf.decode(m)...)
	return c
}

// decode runs the last step of loading. If the module is for another version of the language,
// it returns only that message, because all others may be consequences.
func (c *collector) decode(o Options) diag.List {
	c.m.RequiredVersion = c.tf.version
	fatal, ds := c.tf.gate(o.Version)
	if fatal {
		return ds
	}
	ds = append(ds, c.ds...)
	return c.decodeObjects(o.Workers, ds)
}

// decodeObjects decodes all objects, and stores them in the module. It returns their messages and
// those in ds, in source order.
func (c *collector) decodeObjects(workers int, ds diag.List) diag.List {
	objects := slices.Concat(c.objects, c.once)
	parallel.Each(len(objects), workers, func(i int) { objects[i].decode() })
	for _, obj := range objects {
		ds = append(ds, obj.ds...)
		c.m.store(obj.out)
	}
	ds = append(ds, c.tf.notInOpenTofu(c.m)...)
	return append(ds, c.m.duplicateImports()...).Sort()
}

// parseAll reads and parses the files to load, in load order.
func parseAll(roles []FileRole, read func(string) ([]byte, error), o Options) []*parsed {
	base := &source.Layer{Kind: source.Base}
	var files []FileRole
	for _, f := range roles {
		if f.Role == RoleBase || f.Role == RoleOverride {
			files = append(files, f)
		}
	}
	return parallel.Map(len(files), o.Workers, func(i int) *parsed {
		f, layer := files[i], base
		if f.Role == RoleOverride {
			layer = &source.Layer{Kind: source.Override, N: f.N}
		}
		return parseFile(f, layer, o.parse(f.Path, func() ([]byte, error) { return read(f.name) }), o.Set)
	})
}

// add adds one top-level block of a file.
func (c *collector) add(typ string, p part) {
	if c.queries && !inQueries(typ) {
		c.ds = append(c.ds, unsupported(p, "Unsupported block in a query file",
			"A query file contains list, provider, variable and locals blocks. Everything else belongs in a configuration file, such as main.tf.")...)
		return
	}
	switch typ {
	case "terraform":
		c.ds = append(c.ds, c.tf.add(p)...)
	case "language":
		c.ds = append(c.ds, c.tf.addLanguage(p)...)
	case "required_providers":
		c.ds = append(c.ds, errorAt(diag.CodeConfigRequiredProvidersOutside, p.head, "Invalid required_providers block",
			"A required_providers block must be inside a terraform block.")...)
	case "locals":
		c.addLocals(p)
	case "provider":
		c.addProvider(p)
	case "moved", "removed", "import":
		c.addStatement(p, typ)
	case "check":
		c.addCheck(p)
	case "symbols":
		c.ds = append(c.ds, errorAt(diag.CodeConfigExperiment, p.head, "Unsupported experiment",
			"Symbol libraries are an experiment of OpenTofu 1.13, which Terrace does not have. Declare the values and functions in locals, or in a module.")...)
	case "action":
		c.ds = append(c.ds, unsupported(p, "Unsupported action block", noAction)...)
	case "list":
		if !c.queries {
			c.ds = append(c.ds, unsupported(p, "Unsupported list block",
				"A list block belongs in a query file, whose name ends with .tfquery.hcl: the command query reads it.")...)
			return
		}
		c.addObject(p, objectKey{typ, p.labels[0], p.labels[1]})
	case "resource", "data", "ephemeral":
		c.addObject(p, objectKey{typ, p.labels[0], p.labels[1]})
	default:
		c.addObject(p, objectKey{typ, p.labels[0], ""})
	}
}

// addObject adds a base block, or adds an override to its base.
func (c *collector) addObject(p part, key objectKey) {
	have := c.index[key]
	switch {
	case have == nil && !p.isOverride():
		c.newObject(p, key)
	case have == nil:
		c.ds = append(c.ds, missingBase(key, p)...)
	case p.isOverride():
		have.parts = append(have.parts, p)
	default:
		c.ds = append(c.ds, duplicate(key, p, have.parts[0])...)
		second := &object{key: key, parts: []part{p}}
		second.decode() // it is an error, but further errors in it are reported, too
		c.ds = append(c.ds, second.ds...)
	}
}

func (c *collector) newObject(p part, key objectKey) {
	obj := &object{key: key}
	obj.base[0] = p
	obj.parts = obj.base[:1:1]
	c.index[key] = obj
	c.objects = append(c.objects, obj)
}

func (c *collector) addStatement(p part, typ string) {
	if p.isOverride() {
		name := typ
		c.ds = append(c.ds, errorAt(diag.CodeConfigCannotOverride, p.head, "Cannot override '"+name+"' blocks",
			"A %s block is allowed in base files only: no rule says which of them an override would mean.", typ)...)
		return
	}
	c.once = append(c.once, &object{key: objectKey{kind: typ}, parts: []part{p}})
}

// addCheck adds a check, and its data source to all other data sources.
func (c *collector) addCheck(p part) {
	if p.isOverride() {
		c.ds = append(c.ds, errorAt(diag.CodeConfigCannotOverride, p.head, "Can't override check blocks",
			"A check block is allowed in base files only: no rule says how its assertions would merge.")...)
		return
	}
	key := objectKey{"check", p.labels[0], ""}
	if c.index[key] != nil {
		c.addObject(p, key)
		return
	}
	c.addObject(p, key)
	data, _, _ := p.body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "data", LabelNames: []string{"type", "name"}}}})
	if len(data.Blocks) == 0 {
		return
	}
	b := partsOf(data.Blocks[:1], p.layer)[0].part // decodeCheck reports further ones
	dkey := objectKey{"data", b.labels[0], b.labels[1]}
	fresh := c.index[dkey] == nil
	c.addObject(b, dkey)
	if fresh {
		c.index[dkey].check = p.labels[0]
	}
}

// addLocals adds each value of a locals block as an object.
func (c *collector) addLocals(p part) {
	attrs, diags := p.body.JustAttributes()
	c.ds = append(c.ds, diag.FromHCL(diags)...)
	for _, a := range inOrder(attrs) {
		s := &Setting{Attribute: a, Layer: p.layer}
		have := c.m.Locals[a.Name]
		switch {
		case have == nil && p.isOverride():
			c.ds = append(c.ds, errorAt(diag.CodeConfigMissingBase, a.NameRange, "Missing base local value definition to override",
				"There is no local value named %q in the base files, and so nothing to override. Define it in a file that is not an override file.", a.Name)...)
		case have == nil:
			c.ds = append(c.ds, validName(a.Name, a.NameRange, "local value")...)
			c.m.Locals[a.Name] = &Local{Name: a.Name, Value: s, At: a.NameRange}
		case p.isOverride():
			s.Replaced = have.Value
			have.Value = s
		default:
			c.ds = append(c.ds, duplicateLocal(a.Name, a.NameRange, have.At)...)
		}
	}
}

func duplicateLocal(name string, at, first source.Range) diag.List {
	return errorAt(diag.CodeConfigDuplicateLocal, at, "Duplicate local value definition",
		"A local value named %q was already defined at %s. The names of local values must be unique within a module.", name, first).
		Note(&first, "first defined here")
}

// addProvider adds a provider block. It reads the alias, which is part of the object's key.
func (c *collector) addProvider(p part) {
	content, _, _ := p.body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "alias"}}})
	key := objectKey{kind: "provider", a: p.labels[0]}
	if a := content.Attributes["alias"]; a != nil {
		alias, ds := constString(a)
		if ds.HasErrors() {
			c.ds = append(c.ds, ds...)
			return
		}
		if ds := validName(alias, a.Expr.Range(), "provider configuration alias"); ds != nil {
			c.ds = append(c.ds, ds...)
			return
		}
		key.b = alias
	}
	if c.index[key] == nil && key.b == "" && p.isOverride() {
		// The default configuration exists even without a block. It is then empty.
		c.newObject(p, key)
		return
	}
	c.addObject(p, key)
}

// label returns the name of the object for messages.
func (k objectKey) label() string {
	switch k.kind {
	case "resource", "ephemeral", "list":
		return k.kind + " " + quote(k.a) + " " + quote(k.b)
	case "data":
		return "data source " + quote(k.a) + " " + quote(k.b)
	case "provider":
		if k.b != "" {
			return "provider configuration " + quote(k.a) + " with alias " + quote(k.b)
		}
		return "default provider configuration " + quote(k.a)
	case "module":
		return "module call " + quote(k.a)
	default:
		return k.kind + " " + quote(k.a)
	}
}

func (k objectKey) resource() addr.Resource {
	r := addr.Resource{Type: k.a, Name: k.b}
	switch k.kind {
	case "data":
		r.Mode = addr.Data
	case "ephemeral":
		r.Mode = addr.Ephemeral
	}
	return r
}

func missingBase(key objectKey, p part) diag.List {
	summary := map[string]string{
		"variable":  "Missing base variable declaration to override",
		"output":    "Missing base output definition to override",
		"module":    "Missing module call to override",
		"resource":  "Missing resource to override",
		"data":      "Missing data resource to override",
		"ephemeral": "Missing ephemeral resource to override",
		"provider":  "Missing base provider configuration for override",
	}[key.kind]
	return errorAt(diag.CodeConfigMissingBase, p.head, summary,
		"There is no %s in the base files, and so nothing to override. An override file can only change what a file that is not an override file defines.", key.label())
}

func duplicate(key objectKey, p, first part) diag.List {
	summary, where := "", "in one module"
	switch key.kind {
	case "variable":
		summary = "Duplicate variable declaration"
	case "output":
		summary = "Duplicate output definition"
	case "module":
		summary = "Duplicate module call"
	case "provider":
		summary = "Duplicate provider configuration"
	case "check":
		summary = "Duplicate check " + quote(key.a) + " configuration"
	case "ephemeral":
		summary = "Duplicate ephemeral resource " + quote(key.a) + " configuration"
	case "data":
		where = "in one module, including within check blocks"
		fallthrough
	default:
		summary = "Duplicate " + key.kind + " " + quote(key.a) + " configuration"
	}
	return errorAt("config/duplicate-"+key.kind, p.head, summary,
		"The %s was already defined at %s. Files are appended to each other, not merged, and so every name can be defined only once %s. Rename one of the two, or move the second to an override file.",
		key.label(), first.head, where).Note(&first.head, "first defined here")
}
