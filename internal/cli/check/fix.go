package check

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/internal/rules/format"
	"github.com/terrace-iac/terrace/internal/rules/lint"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/source"
)

// # Fixes
//
// All edits are made, and the outlines before and after are compared: the values of all objects
// must be equal. If they are not, or the configuration has errors, all files are restored. The
// edits of each rule in each file are then tried alone, and those that change a value are left
// out. An element of depends_on that changes nothing is no value, so that it may be removed.
//
// The include blocks are rewritten before that, because their edits are in the files of the units and
// in those that they include: all edits of the estate are made, or none.

// change is a file before and after its edits.
type change struct {
	path          string
	before, after []byte
	findings      []*finding.Finding
}

// fix mends findings and returns their number.
func fix(ctx context.Context, c *command.Call, o *options, r *format.Report) (int, diag.List) {
	all, ds := changes(r)
	if ds.HasErrors() || len(all) == 0 {
		return 0, ds
	}
	before, ds := outlines(ctx, c, o)
	if ds.HasErrors() {
		return 0, ds
	}
	number := func() (n int) {
		for _, x := range all {
			n += len(x.findings)
		}
		return n
	}
	if ok, ds := try(ctx, c, o, before, all); ok || ds.HasErrors() {
		return number(), ds
	}
	var left diag.List
	for _, x := range all {
		var good []*finding.Finding
		for _, rule := range rulesOf(x.findings) {
			var some []*finding.Finding
			for _, f := range x.findings {
				if f.Rule == rule {
					some = append(some, f)
				}
			}
			ok, ds := try(ctx, c, o, before, []*change{edited(x.path, x.before, some)})
			if ds.HasErrors() {
				return 0, ds
			}
			if !ok {
				left = append(left, diag.Errorf(diag.CodeCLIFix, nil, "Fix changes a value", "After the fixes of %s in %s, a value of the configuration is another, or may be. These fixes were not made. Change the file by hand.", rule, units.PathShown(c, x.path))...)
				continue
			}
			if ds := apply([]*change{edited(x.path, x.before, some)}, true); ds.HasErrors() {
				return 0, ds
			}
			good = append(good, some...)
		}
		*x = *edited(x.path, x.before, good)
	}
	ok, ds := try(ctx, c, o, before, all)
	if !ok {
		return 0, append(left, ds...)
	}
	return number(), left
}

// rewrite mends the findings whose edits are in several files, and returns their number: it turns
// include blocks into import blocks.
func rewrite(ctx context.Context, c *command.Call, o *options, r *format.Report) (int, diag.List) {
	byPath := map[string][]*finding.Finding{}
	for _, f := range r.Findings {
		if f.Counts() && f.Rewrite {
			byPath[f.SetAt.Filename] = append(byPath[f.SetAt.Filename], f)
		}
	}
	if len(byPath) == 0 {
		return 0, nil
	}
	eo, ds := units.LookOptions(c, &o.units, "plan", nil)
	if ds.HasErrors() {
		return 0, ds
	}
	eo.Machine.Run = sys.RefusePrograms
	plan, ds := lint.RewriteIncludes(ctx, eo.UnitEnv(c.Dir), c.Dir, slices.Sorted(maps.Keys(byPath)))
	if ds.HasErrors() || len(plan.Changes) == 0 {
		return 0, ds
	}
	before, ds := outlines(ctx, c, o)
	if ds.HasErrors() {
		return 0, ds
	}
	var all []*change
	n := 0
	for _, x := range plan.Changes {
		all = append(all, &change{path: x.Path, before: x.Before, after: x.After})
		n += len(byPath[x.Path])
	}
	ok, ds := try(ctx, c, o, before, all)
	if !ok && !ds.HasErrors() {
		ds = diag.Errorf(diag.CodeCLIFix, nil, "Fix changes a value", "After the fixes of %s, a value of the configuration is another, or may be. No include block was rewritten. Change the files by hand.", lint.IncludeAsImport)
	}
	if !ok {
		n = 0
	}
	return n, ds
}

// try makes edits and reports whether the values stay as in before. If not, it restores the files.
func try(ctx context.Context, c *command.Call, o *options, before map[string]*outline.Outline, some []*change) (bool, diag.List) {
	if ds := apply(some, false); ds.HasErrors() {
		return false, append(ds, apply(some, true)...)
	}
	if after, ds := outlines(ctx, c, o); !ds.HasErrors() && equal(before, after) {
		return true, nil
	}
	return false, apply(some, true)
}

// rulesOf returns the rules of findings, sorted.
func rulesOf(all []*finding.Finding) []string {
	var out []string
	for _, f := range all {
		out = append(out, f.Rule)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// changes returns the files with the edits of all findings.
func changes(r *format.Report) (out []*change, ds diag.List) {
	byPath := map[string][]*finding.Finding{}
	for _, f := range r.Findings {
		if f.Counts() && len(f.Fix) > 0 {
			byPath[f.Fix[0].At.Filename] = append(byPath[f.Fix[0].At.Filename], f)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		text, err := readfile.Whole(path)
		if err != nil {
			return nil, diag.Errorf(diag.CodeConfigReadFile, nil, "Failed to read file", "%s.", err)
		}
		out = append(out, edited(path, text, byPath[path]))
	}
	return out, nil
}

// edited returns a file with the edits of findings. A finding whose edit overlaps another one is
// left to the next call.
func edited(path string, text []byte, all []*finding.Finding) *change {
	x := &change{path: path, before: text}
	var edits []finding.Edit
	for _, f := range all {
		if !slices.ContainsFunc(f.Fix, func(e finding.Edit) bool {
			return e.At.End.Byte > len(text) || slices.ContainsFunc(edits, func(d finding.Edit) bool { return overlap(d.At, e.At) })
		}) {
			edits = append(edits, f.Fix...)
			x.findings = append(x.findings, f)
		}
	}
	slices.SortFunc(edits, func(a, b finding.Edit) int { return cmp.Compare(a.At.Start.Byte, b.At.Start.Byte) })
	var b bytes.Buffer
	at := 0
	for _, e := range edits {
		b.Write(text[at:e.At.Start.Byte])
		b.WriteString(e.Text)
		at = e.At.End.Byte
	}
	b.Write(text[at:])
	x.after = b.Bytes()
	return x
}

func overlap(a, b source.Range) bool {
	return a.Start.Byte < b.End.Byte && b.Start.Byte < a.End.Byte || a.Start.Byte == b.Start.Byte
}

// apply writes files with their edits, or as they were before with back. It fails for a file that
// another process changed meanwhile.
func apply(all []*change, back bool) (ds diag.List) {
	for _, x := range all {
		from, to := x.before, x.after
		if back {
			from, to = to, from
		}
		now, err := readfile.Whole(x.path)
		if err == nil && bytes.Equal(now, to) {
			continue
		}
		if err != nil || !bytes.Equal(now, from) {
			ds = append(ds, diag.Errorf(diag.CodeCLIFileChanged, nil, "File changed meanwhile", "Another process changed the file %s during the command. It was not written.", x.path)...)
			continue
		}
		if err := atomicfile.Rewrite(x.path, to); err != nil {
			ds = append(ds, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write file", "%s.", err)...)
		}
	}
	return ds
}

// equal reports whether the values of two configurations are equal.
func equal(before, after map[string]*outline.Outline) bool {
	if len(before) != len(after) {
		return false
	}
	for name, b := range before {
		a := after[name]
		if a == nil {
			return false
		}
		for _, d := range outline.Compare(b, a) {
			for _, p := range d.Parts {
				if strings.TrimSpace(p.Path) != "depends_on" {
					return false
				}
			}
			if len(d.Parts) == 0 {
				return false
			}
		}
	}
	return true
}

// outlines returns the outline of the directory, or those of all units by name.
func outlines(ctx context.Context, c *command.Call, o *options) (map[string]*outline.Outline, diag.List) {
	out := map[string]*outline.Outline{}
	if !overUnits(c, o) {
		loaded, ds := load(ctx, c)
		if loaded == nil {
			return nil, ds.Errors()
		}
		defer loaded.Close()
		x, ds := loaded.Engine.Outline(ctx, engine.OutlineOptions{Explain: engine.ExplainOptions{Variables: loaded.Vars}})
		if ds.HasErrors() {
			return nil, ds
		}
		out["."] = x.Outline
		return out, nil
	}
	e, _, ds := openEstate(ctx, c, o, nil)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	all := e.Outlines(estate.OutlineOptions{Show: func(path string) string { return path }})
	for _, u := range e.Found.Units {
		x, more := all.Of(ctx, u)
		if more.HasErrors() {
			return nil, more
		}
		if x.Outlined != nil {
			out[u.Name] = x.Outline
		}
	}
	return out, nil
}
