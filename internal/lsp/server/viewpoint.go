package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	if index.KindOf(path) == index.UnitValues {
		if at := s.Session.UnitFile(filepath.Dir(path)); s.Session.Files.Exists(at) {
			return []string{at}
		}
		return nil
	}
	if s.Session.IsUnit(path) {
		if all := s.generatedFrom(ctx, path); len(all) > 0 {
			return all
		}
		return []string{path}
	}
	var out []string
	seen := map[string]bool{path: true}
	if dir := moduleOf(path); dir != "" {
		path = dir
		if own := s.ownUnit(dir); own != "" {
			out, seen[own] = append(out, own), true
		}
	}
	for queue := []string{path}; len(queue) > 0 && len(out) < maxViewpoints; queue = queue[1:] {
		users, err := s.Session.Index.Users(ctx, queue[0])
		if err != nil {
			return nil
		}
		for _, u := range users {
			if seen[u] || index.KindOf(u) != index.Unit {
				continue
			}
			seen[u] = true
			if s.Session.IsUnit(u) {
				out = append(out, u)
			} else {
				queue = append(queue, u)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b string) int {
		return cmp.Or(stepsTo(filepath.Dir(path), a)-stepsTo(filepath.Dir(path), b), strings.Compare(a, b))
	})
	return out
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
	slices.SortStableFunc(out, func(a, b view) int {
		return cmp.Or(stepsTo(dir, a.at)-stepsTo(dir, b.at), strings.Compare(a.at, b.at), strings.Compare(a.calls, b.calls))
	})
	return out
}

// stepsTo returns the number of steps on the path from a directory to a file.
func stepsTo(dir, path string) int {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return len(path)
	}
	return strings.Count(filepath.ToSlash(rel), "/")
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
	all := s.unitsOf(ctx, path)
	switch {
	case slices.Contains(all, chosen):
		return chosen
	case len(all) == 0:
		return ""
	}
	return all[0]
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
