package unit

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/unit/functions"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// rebase resolves the relative paths in a configuration from dir (rule 13).
func rebase(g *group, dir string) *group {
	out := newGroup(g.e, g.at)
	for _, name := range g.names {
		n := g.member(name)
		if b := syntax.Language().Unit.Block(name); b != nil && b.HasPaths() {
			if b.Label == syntax.NoLabel {
				n = &mapped{n, rebaseArg(b, dir)}
			} else {
				n = &mapped{n, func(_ *evaluator, _ string, in node) node { return &mapped{in, rebaseArg(b, dir)} }}
			}
		}
		out.put(name, n)
	}
	return out
}

// rebaseArg resolves the arguments of a block that are paths.
func rebaseArg(b *syntax.BlockSpec, dir string) func(*evaluator, string, node) node {
	return func(_ *evaluator, key string, n node) node {
		a := b.Arg(key)
		if a == nil || a.Path == syntax.NoPath {
			return n
		}
		one := rebasePath
		if a.Path == syntax.SourcePath {
			one = rebaseSource
		}
		return &converted{n, func(_ *evaluator, v cty.Value) cty.Value {
			if a.Ty.IsListType() {
				return eachString(v, func(s string) string { return one(s, dir) })
			}
			return onString(v, func(s string) string { return one(s, dir) })
		}}
	}
}

func onString(v cty.Value, f func(string) string) cty.Value {
	bare, marks := v.Unmark()
	if !syntax.IsString(bare) {
		return v
	}
	return cty.StringVal(f(bare.AsString())).WithMarks(marks)
}

func eachString(v cty.Value, f func(string) string) cty.Value {
	bare, marks := v.Unmark()
	if !syntax.Known(bare) || !bare.CanIterateElements() || bare.LengthInt() == 0 {
		return v
	}
	var out []cty.Value
	for _, s := range bare.AsValueSlice() {
		out = append(out, onString(s, f))
	}
	return cty.TupleVal(out).WithMarks(marks)
}

func rebasePath(path, dir string) string {
	if path == "" {
		return path
	}
	return functions.AbsPath(dir, path)
}

// rebaseSource resolves the source of a module if it is a local path. The part after // is
// kept.
func rebaseSource(src, dir string) string {
	if !LocalSource(src) {
		return src
	}
	root, sub, split := strings.Cut(src, "//")
	root = functions.AbsPath(dir, root)
	if split {
		return root + "//" + sub
	}
	return root
}

var remoteSource = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]+::|^[A-Za-z][A-Za-z0-9+.-]*://|^[^/@]+@[^/:]+:|^(github\.com|gitlab\.com|bitbucket\.org)/|\.amazonaws\.com/|^www\.googleapis\.com/storage/`)
})

// LocalSource reports whether the source of a module is a local path.
func LocalSource(src string) bool {
	if src == "" {
		return false
	}
	if strings.HasPrefix(src, ".") || filepath.IsAbs(src) {
		return true
	}
	return !remoteSource().MatchString(src)
}
