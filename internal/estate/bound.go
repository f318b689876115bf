package estate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
)

// # How far graph terms reach
//
// A term that asks for what needs the units it finds has them looked for in the git
// repository, or in the folder that it names, or in that of Look.Boundary. What lies
// outside of the folder of a term is not read for it and not found by it. Without a
// folder what units need is found wherever it lies.

// bounds looks at the folders that graph terms may not leave.
func (e *Estate) bounds(queries []query) diag.List {
	var ds diag.List
	dir := e.o.Look.Boundary
	if dir != "" {
		if why := notFolder(dir); why != "" {
			return badBoundary("%s is no folder that can be used: %s", dir, why)
		}
	}
	for _, q := range queries {
		for _, t := range q.terms {
			if dir != "" && t.up > 0 && !inside(e.o.Root, dir) {
				return badBoundary("%s does not contain the working folder %s. The filter %q asks for what needs units, which is looked for from the working folder upwards: so the boundary must be the working folder or one above it", dir, e.o.Root, q.text)
			}
			for _, in := range []string{t.upIn, t.downIn} {
				if why := notFolder(e.fromRoot(in)); in != "" && why != "" {
					ds = append(ds, badFilter(q.text, fmt.Sprintf("%s is no folder that can be a boundary: %s", in, why))...)
				}
			}
		}
	}
	return ds
}

func badBoundary(format string, args ...any) diag.List {
	ds := diag.Errorf(nil, "Invalid discovery boundary", "%s.", fmt.Sprintf(format, args...))
	ds[0].Code = "estate/boundary"
	return ds
}

// notFolder says why a path is no folder, "" if it is one.
func notFolder(path string) string {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return "it does not exist"
	case err != nil:
		return err.Error()
	case !info.IsDir():
		return "it is a file"
	}
	return ""
}

// bind gives the boundary of all to the terms that name none, and makes the folders of
// the others absolute.
func (e *Estate) bind(queries []query) {
	for _, q := range queries {
		for i := range q.terms {
			t := &q.terms[i]
			for _, in := range []*string{&t.upIn, &t.downIn} {
				if *in != "" {
					*in = e.fromRoot(*in)
				} else {
					*in = e.o.Look.Boundary
				}
			}
		}
	}
}

// fromRoot is a path that may be relative to the root of the estate.
func (e *Estate) fromRoot(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(e.o.Root, path)
}

// inside reports whether a path is a folder, or lies below it.
func inside(path, dir string) bool {
	if path == dir {
		return true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.HasPrefix(path, dir)
}

// lookedIn are the folders, the root and what lies below it aside, in which units that
// need others are looked for. None lies in another.
func (e *Estate) lookedIn(queries []query) []string {
	var all []string
	for _, q := range queries {
		for _, t := range q.terms {
			if t.up == 0 {
				continue
			}
			dir := t.upIn
			if dir == "" {
				dir = e.GraphRoot()
			}
			if dir != "" && !inside(dir, e.o.Root) {
				all = append(all, dir)
			}
		}
	}
	slices.Sort(all) // a folder comes before what lies in it
	var out []string
	for _, dir := range all {
		if !slices.ContainsFunc(out, func(o string) bool { return inside(dir, o) }) {
			out = append(out, dir)
		}
	}
	return out
}

// reaches is a test of whether something of what units need is to be read, by the
// terms that ask for it; nil if no term does.
func reaches(queries []query) func(path string) bool {
	var in []string
	asked := false
	for _, q := range queries {
		for _, t := range q.terms {
			if t.down > 0 {
				asked = true
				in = append(in, t.downIn)
			}
		}
	}
	if !asked {
		return nil
	}
	return func(path string) bool {
		return slices.ContainsFunc(in, func(dir string) bool { return dir == "" || inside(path, dir) })
	}
}
