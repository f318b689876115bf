package eval

import (
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang"
)

// LooseBody is a body that is decoded without a schema. It is immutable.
type LooseBody struct {
	Args   []LooseArg    // sorted by name
	Blocks []LooseBlocks // sorted by type; a type that is also the name of an argument is left out
}

// LooseArg is an argument of a LooseBody.
type LooseArg struct {
	Name string
	Expr *lang.Expr
}

// LooseBlocks are the nested blocks of one type, in source order.
type LooseBlocks struct {
	Type string
	All  []LooseBlock
}

// LooseBlock is a nested block, or a dynamic block that creates nested blocks.
type LooseBlock struct {
	Body *LooseBody // the content of the nested blocks; nil if a dynamic block is not complete
	// Each and Iterator are the collection of a dynamic block and the name of its iterator. Each is
	// nil for a block that is not dynamic.
	Each     *lang.Expr
	Iterator string
}

// Loose returns the body of a block of the module, decoded without a schema. The result is cached
// by owner, a pointer to the block.
func (m *Module) Loose(owner any, body hcl.Body) *LooseBody {
	all, cfg := m.ev.compiled, m.Node.Config
	all.mu.Lock()
	get := all.loose[owner]
	if get == nil {
		get = sync.OnceValue(func() *LooseBody { return looseBody(cfg, body) })
		if all.loose == nil {
			all.loose = map[any]func() *LooseBody{}
		}
		all.loose[owner] = get
	}
	all.mu.Unlock()
	return get()
}

// looseBody decodes a body. Validation reports its errors.
func looseBody(cfg *config.Module, body hcl.Body) *LooseBody {
	out := &LooseBody{}
	schema := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "dynamic", LabelNames: []string{"type"}}}}
	names, _ := body.JustAttributes()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: name})
	}
	types := cfg.BlockTypes(body)
	for _, typ := range types {
		schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: typ})
	}
	content, _ := lang.Content(body, schema)
	for _, a := range schema.Attributes {
		if got := content.Attributes[a.Name]; got != nil {
			out.Args = append(out.Args, LooseArg{a.Name, lang.Compile(got.Expr)})
		}
	}
	for _, typ := range types {
		if names[typ] != nil {
			continue
		}
		all := LooseBlocks{Type: typ}
		for _, b := range content.Blocks {
			switch {
			case b.Type == typ:
				all.All = append(all.All, LooseBlock{Body: looseBody(cfg, b.Body)})
			case b.Type == "dynamic" && b.Labels[0] == typ:
				all.All = append(all.All, looseDynamic(cfg, b))
			}
		}
		out.Blocks = append(out.Blocks, all)
	}
	return out
}

func looseDynamic(cfg *config.Module, b *hcl.Block) LooseBlock {
	content, _, _ := b.Body.PartialContent(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "for_each"}, {Name: "iterator"}, {Name: "labels"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "content"}},
	})
	each := content.Attributes["for_each"]
	if each == nil || len(content.Blocks) == 0 {
		return LooseBlock{}
	}
	out := LooseBlock{Body: looseBody(cfg, content.Blocks[0].Body), Each: lang.Compile(each.Expr), Iterator: b.Labels[0]}
	if it := content.Attributes["iterator"]; it != nil {
		out.Iterator = hcl.ExprAsKeyword(it.Expr)
	}
	return out
}
