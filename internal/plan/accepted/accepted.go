// Package accepted reads the list of accepted drift, and moves the drift that it contains out of
// the drift of a plan.
//
// Main functions: Load and Apply. The one rule: an instance is accepted as a whole. If one of its
// changed attributes is not in the list, all of them are drift.
package accepted

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// FileName is the name of the file with the list.
const FileName = "accepted.drift.hcl"

// content is the syntax of the file.
type content struct {
	Accept []struct {
		Address   string    `hcl:"address,optional"`
		Attribute string    `hcl:"attribute,optional"`
		Provider  string    `hcl:"provider,optional"`
		Unit      string    `hcl:"unit,optional"`
		Reason    string    `hcl:"reason"`
		Expires   string    `hcl:"expires,optional"`
		At        hcl.Range `hcl:",def_range"`
	} `hcl:"accept,block"`
}

const summary = "Invalid list of accepted drift"

// Load reads the file in dir or in the nearest parent up to the root of the repository, and adds
// its text to set. It returns an empty list if there is no file. now is the time with which expiry
// dates are compared, in UTC.
func Load(dir string, set *source.Set, now time.Time) (plan.Acceptances, diag.List) {
	var out plan.Acceptances
	path := sys.Nearest(dir, FileName)
	if path == "" {
		return out, nil
	}
	shown := path // in messages: relative to dir
	if rel, err := filepath.Rel(dir, path); err == nil {
		shown = filepath.ToSlash(rel)
	}
	text, err := readfile.Whole(path)
	if err != nil {
		return out, diag.Errorf(diag.CodePlanAcceptedDrift, nil, summary, "The file %s cannot be read: %s.", shown, diag.Reason(err))
	}
	set.Add(&source.File{Path: shown, Bytes: text, Layer: &source.Layer{Kind: source.Base, Name: shown}})
	var in content
	file, diags := hclnative.ParseConfig(text, shown)
	if !diags.HasErrors() {
		diags = append(diags, gohcl.DecodeBody(file.Body, nil, &in)...)
	}
	if diags.HasErrors() {
		return out, diag.FromHCL(diags)
	}
	if rel, err := filepath.Rel(filepath.Dir(path), dir); err == nil && rel != "." {
		out.Dir = filepath.ToSlash(rel)
	}
	var ds diag.List
	today := now.UTC().Format(time.DateOnly)
	for _, a := range in.Accept {
		at := a.At
		bad := func(format string, args ...any) {
			ds = append(ds, diag.Errorf(diag.CodePlanAcceptedDrift, &at, summary, format, args...)...)
		}
		e := plan.Acceptance{Address: a.Address, Attribute: a.Attribute, Unit: a.Unit, Reason: strings.TrimSpace(a.Reason), Expires: a.Expires, File: shown, Line: at.Start.Line}
		if e.Address == "" && a.Provider == "" {
			bad("An accept block needs an address or a provider. The address \"*\" accepts drift of every object.")
		}
		if e.Reason == "" {
			bad("The reason is empty. Write why this drift is accepted.")
		}
		if e.Attribute != "" && steps(e.Attribute) == nil {
			bad("The attribute is not a path, such as \"tags\", \"tags[\\\"Name\\\"]\" or \"ingress[*].cidr\".")
		}
		if _, err := time.Parse(time.DateOnly, e.Expires); err != nil && e.Expires != "" {
			bad("The expiry date must have the form YYYY-MM-DD, such as \"2027-01-31\".")
		}
		if a.Provider != "" {
			p, err := addr.ParseProvider(a.Provider)
			if err != nil {
				bad("The provider must be the source of a provider, such as \"hashicorp/aws\": %s.", diag.Reason(err))
			}
			e.Provider = p.String()
		}
		e.Expired = e.Expires != "" && e.Expires < today
		out.Entries = append(out.Entries, e)
	}
	return out, ds
}

// Apply moves the accepted drift of a plan to p.Accepted. If no other drift remains, the outputs of
// the plan do not count as changes either, since they follow from the accepted drift.
func Apply(p *plan.Plan, list plan.Acceptances) {
	if len(list.Entries) == 0 {
		return
	}
	p.Drift = slices.DeleteFunc(p.Drift, func(c *plan.Change) bool {
		a, ok := accept(c, list.Entries)
		if ok {
			p.Accepted = append(p.Accepted, a)
		}
		return ok
	})
	if len(p.Accepted) > 0 && len(p.Drift) == 0 {
		p.Outputs = nil
	}
}

// accept returns the entries that accept a change. ok is false if a part of it is not accepted.
func accept(c *plan.Change, list []plan.Acceptance) (out plan.AcceptedDrift, ok bool) {
	if c.Op == plan.NoOp {
		return out, false
	}
	out.Address = c.Addr.String()
	use := func(attribute []string) bool {
		i := slices.IndexFunc(list, func(e plan.Acceptance) bool {
			return !e.Expired && (e.Address == "" || plan.Wildcard(e.Address, out.Address)) &&
				(e.Provider == "" || e.Provider == c.Provider.Provider.String()) &&
				(e.Attribute == "" || attribute != nil && covers(steps(e.Attribute), attribute))
		})
		if i < 0 {
			return false
		}
		if !slices.Contains(out.By, list[i]) {
			out.By = append(out.By, list[i])
		}
		return true
	}
	if c.Before.IsNull() || c.After.IsNull() {
		return out, use(nil)
	}
	var paths []cty.Path
	changed(c.Before, c.After, nil, &paths)
	for _, p := range paths {
		text := strings.TrimPrefix(value.PathString(p), ".")
		if !use(steps(text)) {
			return out, false
		}
		out.Attributes = append(out.Attributes, text)
	}
	return out, len(paths) > 0
}

// changed appends the paths of the parts in which two values differ: attributes, elements of maps,
// and elements of lists of equal length.
func changed(a, b cty.Value, at cty.Path, out *[]cty.Path) {
	a, _ = a.Unmark()
	b, _ = b.Unmark()
	if a.RawEquals(b) {
		return
	}
	ty := a.Type()
	same := ty.Equals(b.Type()) && !a.IsNull() && !b.IsNull() && a.IsKnown() && b.IsKnown()
	switch {
	case same && ty.IsObjectType():
		for _, name := range slices.Sorted(keys(ty.AttributeTypes())) {
			changed(a.GetAttr(name), b.GetAttr(name), at.GetAttr(name), out)
		}
	case same && ty.IsMapType():
		x, y := a.AsValueMap(), b.AsValueMap()
		all := map[string]cty.Value{}
		for _, m := range []map[string]cty.Value{x, y} {
			for k := range m {
				all[k] = cty.NilVal
			}
		}
		for _, k := range slices.Sorted(keys(all)) {
			before, was := x[k]
			after, is := y[k]
			if was && is {
				changed(before, after, at.IndexString(k), out)
			} else {
				*out = append(*out, at.IndexString(k))
			}
		}
	case same && (ty.IsListType() || ty.IsTupleType()) && a.LengthInt() == b.LengthInt():
		x, y := a.AsValueSlice(), b.AsValueSlice()
		for i := range x {
			changed(x[i], y[i], at.IndexInt(i), out)
		}
	default:
		*out = append(*out, at.Copy())
	}
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// steps splits the text of a path into its steps. It returns nil if the text is not a path.
func steps(path string) []string {
	x, diags := hclsyntax.ParseExpression([]byte(strings.ReplaceAll(path, "[*]", "[\"*\"]")), "", hcl.InitialPos)
	if diags.HasErrors() {
		return nil
	}
	t, diags := hcl.RelTraversalForExpr(x)
	if diags.HasErrors() {
		return nil
	}
	var out []string
	for _, step := range t {
		switch step := step.(type) {
		case hcl.TraverseAttr:
			out = append(out, step.Name)
		case hcl.TraverseIndex:
			switch step.Key.Type() {
			case cty.String:
				out = append(out, step.Key.AsString())
			case cty.Number:
				out = append(out, step.Key.AsBigFloat().Text('f', -1))
			}
		}
	}
	return out
}

// covers reports whether a pattern is a prefix of a path.
func covers(pattern, path []string) bool {
	if len(pattern) > len(path) {
		return false
	}
	for i, p := range pattern {
		if !plan.Wildcard(p, path[i]) {
			return false
		}
	}
	return true
}

// Warnings returns warnings about entries that have expired, and about entries without drift. drift
// is the accepted drift of the whole run. read reports whether the run read every object that an entry
// can be about; nil means that it did not, so that no entry counts as unused.
func Warnings(list plan.Acceptances, drift []plan.AcceptedDrift, read func(plan.Acceptance) bool) diag.List {
	var ds diag.List
	for _, e := range list.Entries {
		if e.Expired {
			ds = append(ds, diag.Warnf(diag.CodePlanAcceptedDrift, nil, "Expired acceptance of drift", "The entry at %s:%d accepted drift until %s, and no longer does: %s. Extend the date, or undo the drift and delete the entry.", e.File, e.Line, e.Expires, strings.TrimRight(e.Reason, "."))...)
			continue
		}
		if read != nil && read(e) && !slices.ContainsFunc(drift, func(a plan.AcceptedDrift) bool { return slices.Contains(a.By, e) }) {
			ds = append(ds, diag.Warnf(diag.CodePlanAcceptedDrift, nil, "Unused acceptance of drift", "The entry at %s:%d matches no drift. Delete it if the drift is gone, or correct its address, attribute, provider or unit.", e.File, e.Line)...)
		}
	}
	return ds
}
