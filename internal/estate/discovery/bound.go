package discovery

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/discovery/filter"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
)

// # Bounds of graph terms
//
// A term that selects dependents of units searches for them in the git repository, in the
// directory that the term names, or in Settings.Boundary. The term ignores units outside of that
// directory, and they are not read for it. Without a directory, dependencies of units are found
// everywhere.

// bounds checks the directories that bound graph terms.
func (s *Settings) bounds(queries []filter.Query) diag.List {
	var ds diag.List
	dir := s.Boundary
	if dir != "" {
		if why := s.notFolder(dir); why != "" {
			return badBoundary("%s is no directory that can be used: %s", dir, why)
		}
	}
	for _, q := range queries {
		for _, t := range q.Terms {
			if dir != "" && t.Up > 0 && !inside(s.Root, dir) {
				return badBoundary("%s does not contain the working directory %s. The filter %q asks for what needs units, which is looked for from the working directory upwards: so the boundary must be the working directory or one above it", dir, s.Root, q.Text)
			}
			for _, in := range []string{t.UpIn, t.DownIn} {
				if why := s.notFolder(s.fromRoot(in)); in != "" && why != "" {
					ds = append(ds, filter.Invalid(q.Text, fmt.Sprintf("%s is no directory that can be a boundary: %s", in, why))...)
				}
			}
		}
	}
	return ds
}

func badBoundary(format string, args ...any) diag.List {
	return diag.Errorf(diag.CodeEstateBoundary, nil, "Invalid discovery boundary", "%s.", fmt.Sprintf(format, args...))
}

// notFolder returns the reason why a path is not a directory, or "" if it is one.
func (s *Settings) notFolder(path string) string {
	info, err := s.Files.Stat(path)
	switch {
	case os.IsNotExist(err):
		return "it does not exist"
	case err != nil:
		return diag.Reason(err, path)
	case !info.IsDir():
		return "it is a file"
	}
	return ""
}

// bind sets the default boundary of terms that name none, and makes the other directories
// absolute.
func (s *Settings) bind(queries []filter.Query) {
	for _, q := range queries {
		for i := range q.Terms {
			t := &q.Terms[i]
			for _, in := range []*string{&t.UpIn, &t.DownIn} {
				if *in != "" {
					*in = s.fromRoot(*in)
				} else {
					*in = s.Boundary
				}
			}
		}
	}
}

// fromRoot returns an absolute path for one that may be relative to the root of the estate.
func (s *Settings) fromRoot(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.Root, path)
}

// inside reports whether path is dir or is below it.
func inside(path, dir string) bool {
	if path == dir {
		return true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.HasPrefix(path, dir)
}

// lookedIn returns the directories outside of the root in which dependents of units are searched.
// None contains another.
func (s *Settings) lookedIn(queries []filter.Query) []string {
	var all []string
	for _, q := range queries {
		for _, t := range q.Terms {
			if t.Up == 0 {
				continue
			}
			dir := t.UpIn
			if dir == "" {
				dir = s.GraphRoot()
			}
			if dir != "" && !inside(dir, s.Root) {
				all = append(all, dir)
			}
		}
	}
	slices.Sort(all) // a directory sorts before its content
	var out []string
	for _, dir := range all {
		if !slices.ContainsFunc(out, func(o string) bool { return inside(dir, o) }) {
			out = append(out, dir)
		}
	}
	return out
}

// reaches returns a function that reports whether the unit at a path is a dependency that some
// term may select. It returns nil if no term selects dependencies.
func reaches(queries []filter.Query) func(path string) bool {
	var in []string
	asked := false
	for _, q := range queries {
		for _, t := range q.Terms {
			if t.Down > 0 {
				asked = true
				in = append(in, t.DownIn)
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

// GraphRoot returns the directory in which filters search for dependents of units. "" means the
// root of the estate.
func (s *Settings) GraphRoot() string {
	if in := s.DependentsIn; in != "" {
		return in
	}
	return git.Root(s.Root)
}
