package outliner

import (
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
)

// Shared caches the expressions of a module tree for the outlines of all units with the same files.
// Without it, each outline builds and compiles the expressions again, since the parser builds an
// expression on each request. The zero value is empty and usable. Its methods may be called
// concurrently.
type Shared struct {
	bodies parallel.Cache[hcl.Body, *sharedBody]

	mu    sync.RWMutex
	nodes map[hclsyntax.Expression]*node // only those whose root was given to add
}

// A sharedBody contains the arguments of a block and its nested blocks.
type sharedBody struct {
	names  []string // of the arguments, sorted
	attrs  hcl.Attributes
	types  []string     // of the nested blocks, sorted
	blocks []hcl.Blocks // the nested blocks of each type
}

// block returns the first nested block of a type, or nil.
func (b *sharedBody) block(typ string) *hcl.Block {
	if i := slices.Index(b.types, typ); i >= 0 && len(b.blocks[i]) > 0 {
		return b.blocks[i][0]
	}
	return nil
}

// A node is an expression of the module tree.
type node struct {
	compiled *lang.Expr
	refs     []*hclsyntax.ScopeTraversalExpr // the references in the expression
	once     sync.Once
	text     string // set by once: the text without comments and white space
	walk     sync.Once
	steps    []step // set by walk, of a reference
	walks    bool   // set by walk: the reference consists of steps
}

// body returns the arguments and blocks of a body. s may be nil.
func (s *Shared) body(cfg *config.Module, b hcl.Body) *sharedBody {
	read := func() *sharedBody {
		out := &sharedBody{}
		out.attrs, _ = b.JustAttributes() // blocks are not an error here
		out.names = slices.Sorted(maps.Keys(out.attrs))
		out.types = cfg.BlockTypes(b)
		for _, typ := range out.types {
			out.blocks = append(out.blocks, nestedBlocks(b, typ))
		}
		return out
	}
	switch b.(type) {
	case *config.Body, *hclnative.Body: // they live as long as the module
	default:
		return read()
	}
	if s == nil {
		return read()
	}
	return s.bodies.Pure(b, func() *sharedBody {
		out := read()
		for _, name := range out.names {
			s.add(out.attrs[name].Expr)
		}
		return out
	})
}

// add adds an expression and all expressions in it. The expression must live as long as the module.
// s may be nil.
func (s *Shared) add(x hcl.Expression) {
	root, ok := unwrap(x).(hclsyntax.Expression)
	if !ok || s == nil || s.node(root) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil {
		s.nodes = map[hclsyntax.Expression]*node{}
	}
	_ = hclsyntax.VisitAll(root, func(n hclsyntax.Node) hcl.Diagnostics {
		if x, ok := n.(hclsyntax.Expression); ok && s.nodes[x] == nil {
			at := &node{compiled: lang.Compile(x)}
			s.nodes[x] = at
			if _, plain := x.(*hclsyntax.ScopeTraversalExpr); plain {
				return nil
			}
			for _, ref := range x.Variables() {
				r := reference(ref)
				at.refs = append(at.refs, r)
				s.nodes[r] = &node{compiled: lang.Compile(r)}
			}
		}
		return nil
	})
}

// node returns the data of an expression, or nil if add was not called for it.
func (s *Shared) node(x hcl.Expression) *node {
	native, ok := x.(hclsyntax.Expression)
	if !ok || s == nil {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.nodes[native]
}

// reference returns the expression of a reference.
func reference(ref hcl.Traversal) *hclsyntax.ScopeTraversalExpr {
	return &hclsyntax.ScopeTraversalExpr{Traversal: ref, SrcRange: ref.SourceRange()}
}
