package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/explanation"
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
// that the user chose, or the nearest. A module that others call is seen alone, or from the unit or root
// module that the user chose, through the calls that lead to it.

// A view is a viewpoint of a file. The zero view means that a module is seen alone.
type view struct {
	at    string // path of the unit file, or of the directory of the root module
	calls string // the calls from there to the module of the file, such as "module.app.module.inner"; "" means none
}

// viewOf returns the view that a URI names: a unit or a directory, with the calls as its fragment.
func viewOf(uri string) view {
	at, calls, _ := strings.Cut(uri, "#")
	return view{document.Path(at), calls}
}

func (v view) uri() string {
	switch {
	case v.at == "":
		return ""
	case v.calls == "":
		return document.URI(v.at)
	}
	return document.URI(v.at) + "#" + v.calls
}

// isUnit reports whether the view is from a unit.
func (v view) isUnit() bool { return index.KindOf(v.at) == index.Unit }

// address returns the address, as explain takes it at the view, of an address in the module of the file.
func (v view) address(a string) string {
	if v.calls == "" {
		return a
	}
	return v.calls + "." + a
}

// maxViewpoints is the number of units that are listed. maxCalls is the number of module calls that lead from a
// unit to a module.
const (
	maxViewpoints = 1000
	maxCalls      = 10
)

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
	parts := []string{path} // files whose readers are not known yet
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
	if !s.Session.Files.Exists(own) || s.Session.Index.OwnModule(s.Session.Index.File(own)) == "" {
		return ""
	}
	return own
}

// viewOfModule returns the view of a file of a module: the one that the user chose, or the unit of the directory.
// Unlike currentView, it does not wait for the index.
func (s *Server) viewOfModule(path string) view {
	dir := filepath.Dir(path)
	s.mu.Lock()
	chosen := s.viewpoint[dir]
	s.mu.Unlock()
	if index.KindOf(path) == index.Values && chosen.calls != "" {
		chosen = view{} // callers do not read variable files of the module
	}
	if chosen.at == "" || !s.Session.Files.Exists(chosen.at) {
		chosen = view{at: s.ownUnit(dir)}
	}
	return chosen
}

// currentView returns the view of a file. It is zero if there is none, or if a module is seen alone.
func (s *Server) currentView(ctx context.Context, path string, all []view) view {
	dir := moduleOf(path)
	if dir == "" {
		return view{at: s.viewpointOf(ctx, path)}
	}
	if v := s.viewOfModule(path); slices.Contains(all, v) {
		return v
	}
	return view{at: s.ownUnit(dir)}
}

// viewsOf returns the views from which the user can choose for a file, the nearest first.
func (s *Server) viewsOf(ctx context.Context, path string) []view {
	var out []view
	for _, u := range s.unitsOf(ctx, path) {
		out = append(out, view{at: u})
	}
	if k := index.KindOf(path); k.OfModule() {
		out = append(out, s.callers(ctx, filepath.Dir(path))...)
	}
	return out[:min(len(out), maxViewpoints)]
}

// callers returns the views of a module from the units and root modules that call it, directly or through
// other modules, the nearest first. A module that only its own examples call is a root module too.
func (s *Server) callers(ctx context.Context, dir string) []view {
	type step struct {
		dir, calls string
		count      int
	}
	var out []view
	for queue := []step{{dir: dir}}; len(queue) > 0 && len(out) < maxViewpoints; queue = queue[1:] {
		at := queue[0]
		users, err := s.Session.Index.Users(ctx, at.dir)
		if err != nil {
			return nil
		}
		root := at.calls != ""
		for _, u := range users {
			if !index.KindOf(u).OfModule() {
				continue
			}
			f := s.Session.Index.File(u)
			for _, via := range slices.Sorted(maps.Keys(f.Paths)) {
				if !strings.HasPrefix(via, "module.") || s.Session.Index.Target(f, via) != at.dir {
					continue
				}
				from := filepath.Dir(u)
				if rel, err := filepath.Rel(at.dir, from); err != nil || !filepath.IsLocal(rel) {
					root = false
				}
				calls := via
				if at.calls != "" {
					calls += "." + at.calls
				}
				if at.count < maxCalls && from != at.dir {
					queue = append(queue, step{from, calls, at.count + 1})
				}
			}
		}
		if at.calls == "" {
			continue
		}
		for _, u := range s.unitsOf(ctx, filepath.Join(at.dir, "main.tf")) {
			out, root = append(out, view{u, at.calls}), false
		}
		if root {
			out = append(out, view{at.dir, at.calls})
		}
	}
	parent := dir + string(filepath.Separator)
	slices.SortStableFunc(out, func(a, b view) int {
		return cmp.Or(distance(parent, a.at)-distance(parent, b.at), strings.Compare(a.at, b.at), strings.Compare(a.calls, b.calls))
	})
	return out
}

// seenFrom returns the view of a file.
func (s *Server) seenFrom(ctx context.Context, path string) view {
	switch {
	case moduleOf(path) != "":
		return s.viewOfModule(path)
	case index.KindOf(path) == index.Stack:
		return view{}
	}
	return view{at: s.viewpointOf(ctx, path)}
}

// generatedBy returns the path of the unit file that a block of a stack file generates, or "".
func (s *Server) generatedBy(ctx context.Context, path, address string) string {
	for _, top := range s.stacksOf(ctx, path) {
		st := s.Session.Stack(ctx, top)
		if st == nil {
			return ""
		}
		if dir := st.Dirs[workspace.StackBlock{Path: path, Address: address}]; dir != "" {
			return s.generatedFile(st, dir)
		}
	}
	return ""
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

// viewpointOf returns the path of the unit from which a file that is not part of a module is seen, or "".
func (s *Server) viewpointOf(ctx context.Context, path string) string {
	s.mu.Lock()
	chosen := s.viewpoint[path].at
	s.mu.Unlock()
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
	Units []string `json:"units"` // URIs of the units or root modules, as in viewpointsResult
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
	all := s.viewsOf(ctx, path)
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
	units := s.viewsOf(ctx, path)
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
			names = append(names, s.viewName(viewOf(u)))
		}
		fmt.Fprintf(&b, "\n%s\n  %s", cmp.Or(v.Value, "(not known)"), strings.Join(names, ", "))
		if n := len(v.Units) - maxNamed; n > 0 {
			fmt.Fprintf(&b, " and %d others", n)
		}
	}
	return fenced(b.String())
}

// valuesIn returns the values that an address of a file has in views, those of most views first, and the
// number of views that were looked at before the context ended.
func (s *Server) valuesIn(ctx context.Context, views []view, path, address string) ([]unitsValue, int) {
	var out []unitsValue
	at := map[string]int{}
	looked := 0
	for _, from := range views {
		var x *explanation.Explanation
		switch {
		case index.KindOf(path) == index.Unit:
			x = s.Session.Value(ctx, from.at, path, address)
		case from.isUnit():
			x = s.Session.Value(ctx, from.at, "", from.address(address))
		default:
			x = s.Session.ModuleValue(ctx, from.at, from.address(address))
		}
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
		out[i].Units = append(out[i].Units, from.uri())
	}
	slices.SortStableFunc(out, func(a, b unitsValue) int { return len(b.Units) - len(a.Units) })
	return out, looked
}

// viewName returns the directory of a view relative to the root of the workspace, with the calls.
func (s *Server) viewName(v view) string {
	dir, calls := v.at, ""
	if v.isUnit() {
		dir = filepath.Dir(dir)
	}
	if v.calls != "" {
		calls = " " + v.calls
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.roots {
		if rel, err := filepath.Rel(r, dir); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel) + calls
		}
	}
	return dir + calls
}

// viewpointsResult is the answer of the request terrace/viewpoints. A viewpoint is the URI of a unit file, or of
// the directory of a root module. Its fragment contains the calls that lead to the module of the file.
type viewpointsResult struct {
	Current string   `json:"current"` // "" if the file has no viewpoint, or if a module is seen alone
	Default string   `json:"default"` // the viewpoint if the user chooses none
	All     []string `json:"all"`     // the nearest first
}

func (s *Server) viewpoints(ctx context.Context, p *struct {
	TextDocument protocol.TextDocumentIdentifier `json:"textDocument"`
}) (*viewpointsResult, error) {
	path := document.Path(p.TextDocument.URI)
	all := s.viewsOf(ctx, path)
	out := &viewpointsResult{All: []string{}, Current: s.currentView(ctx, path, all).uri()}
	for _, v := range all {
		out.All = append(out.All, v.uri())
	}
	if dir := moduleOf(path); dir != "" {
		out.Default = view{at: s.ownUnit(dir)}.uri()
	} else if len(all) > 0 {
		out.Default = all[0].uri()
	}
	return out, ctx.Err()
}
