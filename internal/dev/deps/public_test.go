package deps

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
	"testing"

	gopackages "golang.org/x/tools/go/packages"
)

// A program of another module can name every type in an exported signature, field or method
// of a public package: the type is in a public package, or a public package has an alias of
// it.
func TestExportedTypesArePublic(t *testing.T) {
	mode := gopackages.NeedName | gopackages.NeedTypes | gopackages.NeedImports | gopackages.NeedDeps | gopackages.NeedExportFile
	var public []string // other packages are not loaded, because that would compile many of them
	for _, p := range packages(t) {
		if !internal(module+"/"+p.name) && !strings.HasPrefix(p.name, "cmd/") {
			public = append(public, "./"+p.name)
		}
	}
	all, err := gopackages.Load(&gopackages.Config{Mode: mode, Dir: "../../.."}, public...)
	if err != nil {
		t.Fatal(err)
	}
	aliases := map[types.Type]bool{}
	for _, p := range all {
		if p.Types == nil || internal(p.PkgPath) {
			continue
		}
		for _, name := range p.Types.Scope().Names() {
			if o, ok := p.Types.Scope().Lookup(name).(*types.TypeName); ok && o.Exported() && o.IsAlias() {
				aliases[types.Unalias(o.Type())] = true
			}
		}
	}
	checked := 0
	for _, p := range all {
		for _, e := range p.Errors {
			t.Error(e)
		}
		if p.Name == "main" || internal(p.PkgPath) {
			continue
		}
		checked++
		w := &publicWalk{aliases: aliases, seen: map[types.Type]bool{}, found: map[string]string{}}
		scope := p.Types.Scope()
		for _, name := range scope.Names() {
			if o := scope.Lookup(name); o.Exported() {
				w.object(p.Name+"."+name, o)
			}
		}
		for _, at := range slices.Sorted(mapKeys(w.found)) {
			t.Errorf("%s mentions %s, which programs of other modules cannot name", at, w.found[at])
		}
	}
	if checked < 15 {
		t.Fatalf("only %d public packages were found", checked)
	}
}

func mapKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// internal reports whether programs of other modules cannot import a package.
func internal(path string) bool {
	return strings.HasPrefix(path, module+"/") && slices.Contains(strings.Split(path, "/"), "internal")
}

// A publicWalk visits exported declarations.
type publicWalk struct {
	aliases map[types.Type]bool // types with an alias in a public package
	seen    map[types.Type]bool
	found   map[string]string // maps a location to the type that is not public
}

func (w *publicWalk) object(at string, o types.Object) {
	if c, ok := o.(*types.TypeName); ok {
		if a, ok := c.Type().(*types.Alias); ok { // an alias of another package's type only gives it a name
			w.typ(at, a.Rhs())
			return
		}
		w.typ(at, c.Type())
		return
	}
	if _, ok := o.(*types.Const); ok && !named(o.Type()) {
		return
	}
	w.typ(at, o.Type())
}

func named(t types.Type) bool { _, ok := t.(*types.Named); return ok }

// typ visits a type that is mentioned at a location.
func (w *publicWalk) typ(at string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		if p := t.Obj().Pkg(); p != nil && internal(p.Path()) {
			w.found[at] = t.String()
			return
		}
		w.typ(at, t.Rhs())
		return
	case *types.Named:
		if args := t.TypeArgs(); args != nil {
			for i := range args.Len() {
				w.typ(at, args.At(i))
			}
		}
		p := t.Obj().Pkg()
		if p == nil || !strings.HasPrefix(p.Path()+"/", module+"/") {
			return
		}
		if internal(p.Path()) && !w.aliases[t] {
			w.found[at] = t.String()
			return
		}
		if w.seen[t] {
			return
		}
		w.seen[t] = true
		at = p.Name() + "." + t.Obj().Name()
		for i := range t.NumMethods() {
			if m := t.Method(i); m.Exported() {
				w.typ(at+"."+m.Name(), m.Type())
			}
		}
		w.typ(at, t.Underlying())
		return
	}
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Pointer:
		w.typ(at, t.Elem())
	case *types.Slice:
		w.typ(at, t.Elem())
	case *types.Array:
		w.typ(at, t.Elem())
	case *types.Chan:
		w.typ(at, t.Elem())
	case *types.Map:
		w.typ(at, t.Key())
		w.typ(at, t.Elem())
	case *types.Signature:
		for i := range t.TypeParams().Len() {
			w.typ(at, t.TypeParams().At(i).Constraint())
		}
		w.typ(at, t.Params())
		w.typ(at, t.Results())
	case *types.Tuple:
		for i := range t.Len() {
			w.typ(at, t.At(i).Type())
		}
	case *types.Struct:
		for i := range t.NumFields() {
			if f := t.Field(i); f.Exported() {
				w.typ(at+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for i := range t.NumMethods() {
			if m := t.Method(i); m.Exported() {
				w.typ(fmt.Sprintf("%s.%s", at, m.Name()), m.Type())
			}
		}
	}
}
