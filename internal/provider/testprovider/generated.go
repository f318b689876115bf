package testprovider

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// generatedTypes are types without a purpose, in the number and size of those of a cloud's
// provider. Benchmarks use them.
type generatedTypes struct {
	resources, datas map[string]*schema.Block
	codecs           sync.Map // from *schema.Block to *value.Codec
}

// typesFromEnv generates as many types as the variable TEST_TYPES contains.
func typesFromEnv() *generatedTypes {
	n, _ := strconv.Atoi(os.Getenv("TEST_TYPES"))
	return generateTypes(n)
}

// generateTypes returns n resource types, test_thing0000, test_thing0001 and so on, and a
// data source of the same name for the first two fifths of them. The same n always gives the
// same types.
func generateTypes(n int) *generatedTypes {
	g := &generatedTypes{resources: map[string]*schema.Block{}, datas: map[string]*schema.Block{}}
	for i := range n {
		// Each type has its own source, so that it does not depend on n.
		r := rand.New(rand.NewPCG(uint64(i), 1))
		name := fmt.Sprintf("test_thing%04d", i)
		g.resources[name] = thing(r, 8+r.IntN(26), 1+r.IntN(3))
		if i < n*2/5 {
			g.datas[name] = thing(r, 8+r.IntN(12), r.IntN(3))
		}
	}
	return g
}

// codec returns the codec of a generated block. It creates codecs when they are needed,
// because most types are not used.
func (g *generatedTypes) codec(b *schema.Block) *value.Codec {
	if c, ok := g.codecs.Load(b); ok {
		return c.(*value.Codec)
	}
	c, _ := g.codecs.LoadOrStore(b, value.NewCodec(b.ImpliedType()))
	return c.(*value.Codec)
}

// thing returns the schema of an object: the same seven attributes and the same block in
// each, n further attributes, and nested blocks down to the given depth.
func thing(r *rand.Rand, n, depth int) *schema.Block {
	b := &schema.Block{
		Attributes: attrs{
			"id": computed(cty.String), "address": computed(cty.String), "name": required(cty.String), "size": either(cty.Number),
			"labels": optional(cty.Map(cty.String)), "all_labels": either(cty.Map(cty.String)), "password": sensitive(optional(cty.String)),
		},
		Blocks: map[string]*schema.NestedBlock{
			"rule": {Nesting: schema.Set, Block: &schema.Block{Attributes: attrs{
				"port": optional(cty.Number), "ranges": optional(cty.List(cty.String)), "note": optional(cty.String),
			}}},
		},
	}
	for range n {
		kind := optional
		switch r.IntN(3) {
		case 0:
			kind = computed
		case 1:
			kind = either
		}
		addAttribute(r, b, kind)
	}
	addBlocks(r, b, depth)
	return b
}

var (
	thingWords = []string{
		"access", "backup", "cache", "daily", "edge", "filter", "group", "health", "index", "job", "key", "limit", "mirror", "node", "owner",
		"peer", "quota", "route", "shard", "token", "update", "volume", "window", "zone", "alert", "bucket", "class", "domain", "event", "flow",
		"gateway", "host", "image", "journal", "kernel", "lease", "metric", "network", "origin", "policy", "queue", "region", "stage", "table",
	}
	thingTypes = []cty.Type{
		cty.String, cty.String, cty.String, cty.Bool, cty.Number, cty.List(cty.String), cty.Set(cty.String), cty.Map(cty.String),
	}
)

// newName returns a name that the block does not have yet.
func newName(r *rand.Rand, b *schema.Block) string {
	for {
		name := thingWords[r.IntN(len(thingWords))] + "_" + thingWords[r.IntN(len(thingWords))]
		if b.Attributes[name] == nil && b.Blocks[name] == nil {
			return name
		}
	}
}

func addAttribute(r *rand.Rand, b *schema.Block, kind func(cty.Type) *schema.Attribute) {
	name := newName(r, b)
	a := kind(thingTypes[r.IntN(len(thingTypes))])
	if r.IntN(4) == 0 {
		a.Description = "The " + name + " of the object, which must exist before the object is created in the service."
	}
	b.Attributes[name] = a
}

func addBlocks(r *rand.Rand, b *schema.Block, depth int) {
	if depth == 0 {
		return
	}
	for range 1 + r.IntN(3) {
		nested := &schema.Block{Attributes: attrs{}, Blocks: map[string]*schema.NestedBlock{}}
		for range 2 + r.IntN(6) {
			addAttribute(r, nested, optional)
		}
		addBlocks(r, nested, depth-1)
		nesting := schema.List
		if r.IntN(3) == 0 {
			nesting = schema.Set
		}
		b.Blocks[newName(r, b)] = &schema.NestedBlock{Nesting: nesting, Block: nested}
	}
}

// planThing sets computed attributes that the configuration does not set to their prior
// values, or to unknown values.
func planThing(b *schema.Block, prior, proposed cty.Value) cty.Value {
	d := draft{of: proposed}
	for name, a := range b.Attributes {
		if a.Computed && d.get(name).IsNull() {
			d.keepOr(prior, name, cty.UnknownVal(a.Type))
		}
	}
	return d.value()
}

// realizeThing replaces unknown attributes by values, and those of collections by null.
func realizeThing(b *schema.Block, planned cty.Value) cty.Value {
	d := draft{of: planned}
	name := text(planned, "name")
	for attr, a := range b.Attributes {
		if d.get(attr).IsKnown() {
			continue
		}
		switch a.Type {
		case cty.String:
			d.set(attr, cty.StringVal(name+"-"+attr))
		case cty.Number:
			d.set(attr, cty.NumberIntVal(4))
		case cty.Bool:
			d.set(attr, cty.False)
		default:
			d.set(attr, cty.NullVal(a.Type))
		}
	}
	return d.value()
}
