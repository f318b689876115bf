package server

import (
	"cmp"
	"context"
	"fmt"
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
	steps := func(u string) int {
		rel, err := filepath.Rel(filepath.Dir(path), u)
		if err != nil {
			return len(u)
		}
		return strings.Count(filepath.ToSlash(rel), "/")
	}
	slices.SortStableFunc(out, func(a, b string) int {
		if n := steps(a) - steps(b); n != 0 {
			return n
		}
		return strings.Compare(a, b)
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

// viewpointOf returns the path of the unit from which a file is seen, or "". A module whose directory has
// no unit is seen alone, unless the user chose a unit.
func (s *Server) viewpointOf(ctx context.Context, path string) string {
	dir := moduleOf(path)
	s.mu.Lock()
	chosen := s.viewpoint[cmp.Or(dir, path)]
	s.mu.Unlock()
	all := s.unitsOf(ctx, path)
	if slices.Contains(all, chosen) {
		return chosen
	}
	if dir != "" {
		return s.ownUnit(dir)
	}
	if len(all) == 0 {
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
