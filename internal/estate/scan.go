package estate

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/unit"
)

// finding is what lies below a folder, sorted by path.
type finding struct {
	units  []string // unit files
	stacks []string // stack files
}

// discover lists the unit files below a folder: those of the usual name, and
// others that hold a module block. Folders in which programs keep what is theirs are
// left out, and so is that of --download-dir, and hidden ones if that is asked for, but
// for those that stacks are generated in.
func discover(look Look, download, root string) (finding, diag.List) {
	var f finding
	var maybe []string
	name := look.ConfigName
	if name == "" {
		name = unit.DefaultName
	}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			hidden := look.NoHidden && strings.HasPrefix(d.Name(), ".") && d.Name() != unit.StackDir
			if p != root && (private(d.Name()) || hidden || p == download) {
				return filepath.SkipDir
			}
		case d.Name() == name:
			f.units = append(f.units, p)
		case d.Name() == unit.DefaultJSONName && name == unit.DefaultName:
			if n := len(f.units); n > 0 && filepath.Dir(f.units[n-1]) == filepath.Dir(p) {
				f.units = f.units[:n-1] // JSON goes first
			}
			f.units = append(f.units, p)
		case d.Name() == unit.StackName:
			f.stacks = append(f.stacks, p)
		case isCandidate(d.Name()):
			maybe = append(maybe, p)
		}
		return nil
	})
	if err != nil {
		return f, diag.Errorf(nil, "Failed to look for units", "The folder cannot be read: %s.", err)
	}
	holds := parallel.Map(len(maybe), 0, func(i int) bool { return holdsModule(maybe[i]) })
	for i, p := range maybe {
		if holds[i] {
			f.units = append(f.units, p)
		}
	}
	slices.Sort(f.units)
	return f, nil
}

// clashes are errors about folders that hold a unit and a stack.
func (f *finding) clashes(lenient bool) diag.List {
	var ds diag.List
	dirs := map[string]bool{}
	for _, s := range f.stacks {
		dirs[filepath.Dir(s)] = true
	}
	for _, u := range f.units {
		if dir := filepath.Dir(u); dirs[dir] && strings.HasPrefix(filepath.Base(u), "terragrunt.hcl") {
			ds = append(ds, &diag.Message{
				Code: "estate/unit-and-stack", Summary: "Unit and stack in one folder",
				Detail: "The folder " + dir + " holds a unit file and a stack file. A folder is a unit or a stack: move one of them to a folder of its own.",
			})
		}
	}
	if lenient {
		return warned(ds)
	}
	return ds
}

// stacks notes the stack files, and which of them nothing was generated from.
func (e *Estate) stacks(f finding) {
	for _, s := range f.stacks {
		e.Stacks = append(e.Stacks, e.name(filepath.Dir(s)))
		dir := filepath.Dir(s) + string(filepath.Separator)
		i, _ := slices.BinarySearch(f.units, dir)
		if i < len(f.units) && strings.HasPrefix(f.units[i], dir) || e.told.unmade[filepath.Dir(s)] {
			continue
		}
		m := &diag.Message{
			Code: "estate/stack", Summary: "Stack not generated",
			Detail: "The units of the stack file " + s + " were not generated. Leave --no-stack-generate out, or generate them with \"stack generate\" first.",
		}
		if e.o.Look.Generate {
			m.Summary, m.Detail = "Empty stack", "The stack file "+s+" has no unit and no stack block."
		}
		e.Ungenerated = append(e.Ungenerated, m)
	}
}

// private reports whether a folder is one in which programs keep what is theirs.
func private(name string) bool {
	switch name {
	case ".terragrunt-cache", ".terraform", ".terrace", ".git":
		return true
	}
	return false
}

func isCandidate(name string) bool {
	if !strings.HasSuffix(name, ".hcl") || strings.HasPrefix(name, ".") {
		return false
	}
	return name != unit.ValuesName && name != unit.AutoIncludeName && name != unit.StackAutoIncludeName && !strings.HasSuffix(name, ".tftest.hcl") && !strings.HasSuffix(name, ".tofutest.hcl")
}

// holdsModule reports whether a file has a module block at the start of a line.
// It looks at the text alone: whether the file is sound is found out when it is
// loaded.
func holdsModule(path string) bool {
	src, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(src) {
		rest, ok := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte("module"))
		if !ok {
			continue
		}
		if rest = bytes.TrimLeft(rest, " \t"); len(rest) > 0 && (rest[0] == '"' || rest[0] == '{') {
			return true
		}
	}
	return false
}

// holdsValues reports whether a folder has variable files that are taken by
// themselves.
func holdsValues(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(en fs.DirEntry) bool { return isValues(en.Name()) })
}

// replaceSource replaces the address of a module's package as --source-map says:
// what stands before the // and the query.
func replaceSource(src string, by map[string]string) string {
	if len(by) == 0 || src == "" {
		return src
	}
	root, sub := unit.SplitSource(src)
	address, query, has := strings.Cut(root, "?")
	to, ok := by[address]
	if !ok {
		return src
	}
	if sub != "" {
		to += "//" + sub
	}
	if has && !unit.LocalSource(by[address]) {
		to += "?" + query
	}
	return to
}
