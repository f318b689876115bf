package deps

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
	"testing"

	load "golang.org/x/tools/go/packages"
)

// TestSignatures checks the public packages for embedders: each type of this module that an
// exported name mentions, through fields, parameters, results and methods, has a public
// name. A type of an internal package has one if a public package declares an alias of it.
// The exported fields and methods of such a type are checked too.
func TestSignatures(t *testing.T) {
	const module = "github.com/terrace-iac/terrace"
	loaded, err := load.Load(&load.Config{
		Mode: load.NeedName | load.NeedTypes | load.NeedImports | load.NeedDeps | load.NeedExportFile,
		Dir:  "../../..",
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	w := &signatures{module: module, named: map[*types.TypeName]bool{}, seen: map[types.Type]bool{}}
	var public []*types.Package
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			t.Fatal(p.Errors[0])
		}
		if !strings.Contains(p.PkgPath+"/", "/internal/") && p.Types.Name() != "main" {
			public = append(public, p.Types)
		}
	}
	if len(public) < 10 {
		t.Fatalf("only %d public packages were found", len(public))
	}
	for _, p := range public {
		for _, name := range p.Scope().Names() {
			if o, ok := p.Scope().Lookup(name).(*types.TypeName); ok && o.Exported() && o.IsAlias() {
				if n, ok := types.Unalias(o.Type()).(*types.Named); ok {
					w.named[n.Obj()] = true
				}
			}
		}
	}
	for _, p := range public {
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); o.Exported() {
				w.object(o, p.Path()+"."+name)
			}
		}
	}
	slices.Sort(w.found)
	for _, line := range slices.Compact(w.found) {
		t.Error(line)
	}
}

// signatures visits the types that exported names mention.
type signatures struct {
	module string
	named  map[*types.TypeName]bool // internal types with a public alias
	seen   map[types.Type]bool
	found  []string
}

func (w *signatures) object(o types.Object, at string) {
	w.typ(o.Type(), at)
}

func (w *signatures) typ(t types.Type, at string) {
	t = types.Unalias(t)
	if w.seen[t] {
		return
	}
	switch t := t.(type) {
	case *types.Named:
		o := t.Obj()
		for a := range t.TypeArgs().Types() {
			w.typ(a, at)
		}
		if o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), w.module) {
			return
		}
		if o.Exported() && strings.Contains(o.Pkg().Path(), "/internal/") && !w.named[o] {
			w.found = append(w.found, fmt.Sprintf("%s mentions %s.%s, which has no public name", at, o.Pkg().Path(), o.Name()))
			return
		}
		w.seen[t] = true
		for m := range t.Methods() {
			if m.Exported() {
				w.typ(m.Type(), at+"."+m.Name())
			}
		}
		w.typ(t.Underlying(), at)
	case *types.Pointer:
		w.typ(t.Elem(), at)
	case *types.Slice:
		w.typ(t.Elem(), at)
	case *types.Array:
		w.typ(t.Elem(), at)
	case *types.Chan:
		w.typ(t.Elem(), at)
	case *types.Map:
		w.typ(t.Key(), at)
		w.typ(t.Elem(), at)
	case *types.Signature:
		for _, list := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range list.Variables() {
				w.typ(v.Type(), at)
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				w.typ(f.Type(), at+"."+f.Name())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				w.typ(m.Type(), at+"."+m.Name())
			}
		}
	}
}
