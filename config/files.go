package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// The loaded files are the entries of the directory with one of ten suffixes (source:
// OpenTofu 1.12.6, and the documentation of override files, load order and query files). Files with names
// that editors use for their own files are ignored. Override files are merged last. A .tofu
// file replaces the .tf file with the same name.

// suffixes are in the order in which they are tried, each with the suffix that shadows it.
var suffixes = [...]struct {
	text, by string
	role     Role
}{
	{".tf", ".tofu", RoleBase},
	{".tf.json", ".tofu.json", RoleBase},
	{".tftest.hcl", ".tofutest.hcl", RoleTest},
	{".tftest.json", ".tofutest.json", RoleTest},
	{".tofu", "", RoleBase},
	{".tofu.json", "", RoleBase},
	{".tofutest.hcl", "", RoleTest},
	{".tofutest.json", "", RoleTest},
	{".tfquery.hcl", "", RoleQuery},
	{".tfquery.json", "", RoleQuery},
}

// fileClass is the classification of a file by its name.
type fileClass struct {
	role     Role
	why      string // the reason for RoleIgnored
	shadowBy string // name of the file that would shadow this one, or ""
}

// classify returns the role of a file by its base name, before shadowing.
func classify(name string) fileClass {
	switch {
	case strings.HasPrefix(name, "."):
		return fileClass{role: RoleIgnored, why: "the name starts with a dot"}
	case strings.HasSuffix(name, "~"):
		return fileClass{role: RoleIgnored, why: "the name ends with a tilde, as an editor's backup"}
	case strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#"):
		return fileClass{role: RoleIgnored, why: "the name stands between number signs, as an editor's unsaved file"}
	}
	for _, s := range suffixes {
		stem, ok := strings.CutSuffix(name, s.text)
		if !ok {
			continue
		}
		c := fileClass{role: s.role}
		if s.by != "" {
			c.shadowBy = stem + s.by
		}
		if s.role == RoleBase && (stem == "override" || strings.HasSuffix(stem, "_override")) {
			c.role = RoleOverride
		}
		return c
	}
	return fileClass{role: RoleIgnored, why: "the suffix is not that of a configuration file"}
}

// filesOf determines the role of every file in a directory: base files sorted by name (as
// bytes), then override files, then files that are not loaded.
func filesOf(dir string, names []string) []FileRole {
	names = slices.Clone(names)
	slices.Sort(names)
	have := make(map[string]bool, len(names))
	for _, n := range names {
		have[n] = true
	}
	var base, over, rest []FileRole
	for _, n := range names {
		c := classify(n)
		f := FileRole{name: n, Path: filepath.Join(dir, n), Role: c.role, Why: c.why}
		switch {
		case c.role == RoleIgnored:
			rest = append(rest, f)
		case c.shadowBy != "" && have[c.shadowBy]:
			f.Role, f.By = RoleShadowed, filepath.Join(dir, c.shadowBy)
			rest = append(rest, f)
		case c.role == RoleOverride:
			f.N = len(over) + 1
			over = append(over, f)
		case c.role == RoleTest || c.role == RoleQuery:
			rest = append(rest, f)
		default:
			base = append(base, f)
		}
	}
	return slices.Concat(base, over, rest)
}

// isTofu reports whether Terraform does not read a file.
func isTofu(path string) bool {
	return strings.HasSuffix(path, ".tofu") || strings.HasSuffix(path, ".tofu.json")
}
