package server

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// # Viewpoints
//
// A file that several units read has no values of its own. It is seen from one of these units: the one
// that the user chose, or the nearest.

// maxViewpoints is the number of units that are listed.
const maxViewpoints = 1000

// moduleOf returns the directory of the module that a file is part of, or "".
func moduleOf(path string) string {
	switch index.KindOf(path) {
	case index.Module, index.JSON, index.Values:
		return filepath.Dir(path)
	}
	return ""
}

// unitsOf returns the paths of the units that read a file, the nearest first. A unit file reads itself.
// For the file of a module, it returns the units of the module.
func (s *Server) unitsOf(ctx context.Context, path string) []string {
	all := s.readersOf(ctx, path)
	slices.SortFunc(all, reader.compare)
	out := make([]string, len(all))
	for i, r := range all {
		out[i] = r.unit
	}
	return slices.Compact(out)
}

// A reader is a unit that reads a file.
type reader struct {
	unit     string // path of the unit file
	distance int    // from the file
}

// compare orders readers by their distance.
func (r reader) compare(other reader) int {
	return cmp.Or(cmp.Compare(r.distance, other.distance), strings.Compare(r.unit, other.unit))
}

// readersOf returns the units of unitsOf in no order. It may contain a unit twice. A file may have
// thousands of readers, and most requests need only the nearest.
func (s *Server) readersOf(ctx context.Context, path string) (out []reader) {
	if index.KindOf(path) == index.UnitValues {
		if at := s.Session.UnitFile(filepath.Dir(path)); s.Session.Files.Exists(at) {
			return []reader{{unit: at}}
		}
		return nil
	}
	if s.Session.IsUnit(path) {
		for i, at := range s.generatedFrom(ctx, path) {
			out = append(out, reader{at, i})
		}
		if len(out) > 0 {
			return out
		}
		return []reader{{unit: path}}
	}
	dir := moduleOf(path)
	path = cmp.Or(dir, path)
	parent, _ := filepath.Split(path)
	add := func(unit string) { out = append(out, reader{unit, distance(parent, unit)}) }
	if dir != "" {
		if own := s.ownUnit(dir); own != "" {
			add(own)
		}
	}
	parts := []string{path} // files that units read, of which the readers are not known yet
	for i := 0; i < len(parts) && len(out) < maxViewpoints; i++ {
		users, err := s.Session.Index.Users(ctx, parts[i])
		if err != nil {
			return nil
		}
		for _, u := range users {
			switch {
			case index.KindOf(u) != index.Unit:
			case s.Session.IsUnit(u):
				add(u)
			case !slices.Contains(parts, u):
				parts = append(parts, u)
			}
		}
	}
	return out
}

// distance returns the number of separators in the relative path from a directory, whose path ends with a
// separator, to a file. Both paths are absolute.
func distance(dir, file string) int {
	same := 0 // length of the path of the nearest directory that contains both
	for i := 0; i < len(dir) && i < len(file) && dir[i] == file[i]; i++ {
		if os.IsPathSeparator(dir[i]) {
			same = i + 1
		}
	}
	const separator = string(filepath.Separator)
	return strings.Count(dir[same:], separator) + strings.Count(file[same:], separator)
}

// generatedFrom returns the paths of the units that stacks generate from a unit file, which lacks the
// values that they give.
func (s *Server) generatedFrom(ctx context.Context, path string) (out []string) {
	if s.Session.Files.Exists(filepath.Join(filepath.Dir(path), unit.ValuesName)) {
		return nil
	}
	uses := slices.ContainsFunc(s.Session.Index.File(path).Names, func(o index.Occurrence) bool { return o.Via == "values" })
	if !uses && !s.Session.Index.Ready() {
		return nil // the first answer does not wait; most units are no source of a stack
	}
	users, err := s.Session.Index.Users(ctx, filepath.Dir(path))
	if err != nil {
		return nil
	}
	for _, user := range users {
		if index.KindOf(user) != index.Stack {
			continue
		}
		for _, top := range s.stacksOf(ctx, user) {
			if st := s.Session.Stack(ctx, top); st != nil {
				out = append(out, st.Units[path]...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stacksOf returns the paths of the stack files from which a stack file is seen: those that generate it,
// or itself.
func (s *Server) stacksOf(ctx context.Context, path string) (out []string) {
	seen := map[string]bool{path: true}
	for queue := []string{path}; len(queue) > 0; queue = queue[1:] {
		users, err := s.Session.Index.Users(ctx, filepath.Dir(queue[0]))
		if err != nil {
			return nil
		}
		top := true
		for _, u := range users {
			if index.KindOf(u) == index.Stack && filepath.Dir(u) != filepath.Dir(queue[0]) {
				if top = false; !seen[u] {
					seen[u] = true
					queue = append(queue, u)
				}
			}
		}
		if top || s.Session.Files.Exists(filepath.Join(filepath.Dir(queue[0]), unit.ValuesName)) {
			out = append(out, queue[0])
		}
	}
	slices.Sort(out)
	return out
}

// ownUnit returns the path of the unit whose module is its own directory, or "".
func (s *Server) ownUnit(dir string) string {
	own := s.Session.UnitFile(dir)
	if !s.Session.Files.Exists(own) || s.Session.Index.File(own).Paths["terraform"] != "" {
		return ""
	}
	return own
}

// unitOfModule returns the path of the unit from which the files of a module are seen: the one that the
// user chose, or that of the directory, or "". Unlike viewpointOf, it does not wait for the index.
func (s *Server) unitOfModule(path string) string {
	dir := filepath.Dir(path)
	s.mu.Lock()
	chosen := s.viewpoint[dir]
	s.mu.Unlock()
	return cmp.Or(chosen, s.ownUnit(dir))
}

// seenFrom returns the path of the unit from which a file is seen, or "".
func (s *Server) seenFrom(ctx context.Context, path string) string {
	switch {
	case moduleOf(path) != "":
		return s.unitOfModule(path)
	case index.KindOf(path) == index.Stack:
		return ""
	}
	return s.viewpointOf(ctx, path)
}

// generatedFile returns the path of the unit file that a stack generates in a directory.
func (s *Server) generatedFile(st *workspace.Stack, dir string) string {
	for _, all := range st.Units {
		for _, path := range all {
			if filepath.Dir(path) == dir {
				return path
			}
		}
	}
	return filepath.Join(dir, unit.DefaultName)
}

// viewpointOf returns the path of the unit from which a file is seen, or "". A module whose directory has
// no unit is seen alone, unless the user chose a unit.
func (s *Server) viewpointOf(ctx context.Context, path string) string {
	dir := moduleOf(path)
	s.mu.Lock()
	chosen := s.viewpoint[cmp.Or(dir, path)]
	s.mu.Unlock()
	switch {
	case dir != "" && chosen == "":
		return s.ownUnit(dir) // without the index
	case dir != "" && s.chosenOrNearest(ctx, path, chosen) == chosen:
		return chosen
	case dir != "":
		return s.ownUnit(dir)
	}
	return s.chosenOrNearest(ctx, path, chosen)
}

// maxSeen is the number of files whose viewpoint is kept.
const maxSeen = 1000

// A seen is the viewpoint of a file that was computed last.
type seen struct {
	version int // of the index
	chosen  string
	unit    string // path; "" means none
}

// chosenOrNearest returns the path of the unit that the user chose for a file, if it reads the file.
// Otherwise it returns that of the nearest unit, or "" if there is none.
func (s *Server) chosenOrNearest(ctx context.Context, path, chosen string) string {
	if kind := index.KindOf(path); kind == index.UnitValues || s.Session.IsUnit(path) {
		return closest(s.readersOf(ctx, path), chosen) // few
	}
	version, err := s.Session.Index.Version(ctx)
	if err != nil {
		return ""
	}
	s.mu.Lock()
	kept, ok := s.seen[path]
	s.mu.Unlock()
	if ok && kept.version == version && kept.chosen == chosen {
		return kept.unit
	}
	out := seen{version, chosen, closest(s.readersOf(ctx, path), chosen)}
	if ctx.Err() != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) >= maxSeen {
		clear(s.seen)
	}
	s.seen[path] = out
	return out.unit
}

// closest returns the chosen unit if it is a reader, otherwise the nearest reader, or "".
func closest(all []reader, chosen string) string {
	switch {
	case len(all) == 0:
		return ""
	case slices.ContainsFunc(all, func(r reader) bool { return r.unit == chosen }):
		return chosen
	}
	return slices.MinFunc(all, reader.compare).unit
}

// maxValued is the number of units whose values are computed for one request.
const maxValued = 500

// valuesResult is the answer of the request terrace/values.
type valuesResult struct {
	Address string       `json:"address"` // "" if there is no name at the position
	Values  []unitsValue `json:"values"`  // sorted by the number of units, the largest first
	More    bool         `json:"more"`    // there are more units than those that were computed
}

// unitsValue is a value with the units that have it.
type unitsValue struct {
	Value string   `json:"value"` // "" if it is not known
	Units []string `json:"units"` // URIs
}

// values returns the values that a name has in all units that read its file.
func (s *Server) values(ctx context.Context, p *protocol.HoverParams) (*valuesResult, error) {
	path, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	out := &valuesResult{Values: []unitsValue{}}
	o := f.At(text.Offset(p.Position, s.encoding))
	if o == nil {
		return out, nil
	}
	out.Address = address(f, o)
	all := s.unitsOf(ctx, path)
	if out.More = len(all) > maxValued; out.More {
		all = all[:maxValued]
	}
	if values, _ := s.valuesIn(ctx, all, path, out.Address); values != nil {
		out.Values = values
	}
	return out, ctx.Err()
}

// unitOf returns the unit from which a file is seen, or nil.
func (s *Server) unitOf(ctx context.Context, path string) *workspace.Unit {
	if at := s.viewpointOf(ctx, path); at != "" {
		return s.Session.Unit(ctx, at)
	}
	return nil
}

// viewpointTime is the time in which the values of all viewpoints are computed for a hover.
const viewpointTime = 3 * time.Second

// maxNamed is the number of units that a list of values names for each value.
const maxNamed = 5

// everywhere returns the values at an address in all units that read a file, or "" if there is one unit
// or the client does not want them.
func (s *Server) everywhere(ctx context.Context, path, address string) string {
	s.mu.Lock()
	on := s.settings.AllViewpoints != nil && *s.settings.AllViewpoints
	s.mu.Unlock()
	if !on {
		return ""
	}
	units := s.unitsOf(ctx, path)
	if len(units) < 2 {
		return ""
	}
	limited, cancel := context.WithTimeout(ctx, viewpointTime)
	defer cancel()
	values, looked := s.valuesIn(limited, units, path, address)
	plural := "s"
	if len(values) == 1 {
		plural = ""
	}
	of := ""
	if looked < len(units) {
		of = fmt.Sprintf(" of %d", len(units))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d value%s in %d%s units:\n", len(values), plural, looked, of)
	for _, v := range values[:min(len(values), 20)] {
		var names []string
		for _, u := range v.Units[:min(len(v.Units), maxNamed)] {
			names = append(names, s.shortName(document.Path(u)))
		}
		fmt.Fprintf(&b, "\n%s\n  %s", cmp.Or(v.Value, "(not known)"), strings.Join(names, ", "))
		if n := len(v.Units) - maxNamed; n > 0 {
			fmt.Fprintf(&b, " and %d others", n)
		}
	}
	return fenced(b.String())
}

// valuesIn returns the values that an address of a file has in units, those of most units first, and the
// number of units that were looked at before the context ended.
func (s *Server) valuesIn(ctx context.Context, units []string, path, address string) ([]unitsValue, int) {
	var out []unitsValue
	at := map[string]int{}
	looked := 0
	for _, from := range units {
		file := path
		if index.KindOf(path) != index.Unit {
			file = ""
		}
		x := s.Session.Value(ctx, from, file, address)
		if ctx.Err() != nil {
			break
		}
		looked++
		value := ""
		if x != nil {
			value = source.HideCredentials(x.ValueText())
		}
		i, ok := at[value]
		if !ok {
			i = len(out)
			at[value] = i
			out = append(out, unitsValue{Value: value})
		}
		out[i].Units = append(out[i].Units, document.URI(from))
	}
	slices.SortStableFunc(out, func(a, b unitsValue) int { return len(b.Units) - len(a.Units) })
	return out, looked
}

// shortName returns the directory of a unit relative to the root of the workspace.
func (s *Server) shortName(unit string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := filepath.Dir(unit)
	for _, r := range s.roots {
		if rel, err := filepath.Rel(r, dir); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return dir
}

// viewpointsResult is the answer of the request terrace/viewpoints.
type viewpointsResult struct {
	Current string   `json:"current"` // URI of the unit; "" if the file has no viewpoint
	All     []string `json:"all"`
}

func (s *Server) viewpoints(ctx context.Context, p *struct {
	TextDocument protocol.TextDocumentIdentifier `json:"textDocument"`
}) (*viewpointsResult, error) {
	path := document.Path(p.TextDocument.URI)
	out := &viewpointsResult{All: []string{}}
	for _, u := range s.unitsOf(ctx, path) {
		out.All = append(out.All, document.URI(u))
	}
	if at := s.viewpointOf(ctx, path); at != "" {
		out.Current = document.URI(at)
	}
	return out, nil
}
