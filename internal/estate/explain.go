package estate

import (
	"context"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/origin"
)

// Origin is a unit as explanations of its module see it.
func (e *Estate) Origin(ctx context.Context, u *Unit) origin.Unit { return u.Origin(e.task(ctx)) }

// OfUnit reports whether an address names a part of a unit, and not of its module.
func (e *Estate) OfUnit(ctx context.Context, u *Unit, address string) bool {
	ref, diags := hclsyntax.ParseTraversalAbs([]byte(address), "<address>", hcl.InitialPos)
	if diags.HasErrors() {
		return false
	}
	_, ok, ds := u.Origin(e.task(ctx)).Part(ref)
	return ok && !ds.HasErrors()
}

// AtHand reports whether the module of a unit can be read without fetching anything.
func (e *Estate) AtHand(ctx context.Context, u *Unit) bool {
	p, ds := e.placeOf(e.task(ctx), u, false)
	return p != nil && p.files != nil && !ds.HasErrors()
}

// Explain tells where a part of a unit comes from, without its module. show is as in
// origin.Explainer.
func (e *Estate) Explain(ctx context.Context, u *Unit, address string, show func(string) (name, layer string)) (*origin.Explanation, diag.List) {
	t := e.task(ctx)
	x := &origin.Explainer{Set: e.Sources(), Unit: u.Origin(t), Show: show}
	return x.Explain(t, address)
}

// Locate is where a file of a unit that was made ready lies, by its name there, and
// its layer where the unit alone knows that: files that are copied lie where they are
// copied from.
func (e *Estate) Locate(u *Unit, name string) (path, layer string) {
	if filepath.IsAbs(name) || u.place == nil || u.place.files == nil {
		return name, ""
	}
	if at := u.place.files.Locate(name); at != "" {
		return at, ""
	}
	path = filepath.Join(u.place.dir, name)
	if _, ok := u.place.files.generated[filepath.ToSlash(filepath.Clean(name))]; ok || name == u.place.backendAt {
		return path, "generated"
	}
	return path, ""
}
