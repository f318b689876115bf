package server

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

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
	if s.Session.IsUnit(path) {
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

// ownUnit returns the path of the unit whose module is its own directory, or "".
func (s *Server) ownUnit(dir string) string {
	own := filepath.Join(dir, unit.DefaultName)
	if !s.Session.Files.Exists(own) || s.Session.Index.File(own).Paths["terraform"] != "" {
		return ""
	}
	return own
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

// seenAs returns an address in a file as a unit that reads the file can use it: local.x of an imported
// file is import.NAME.locals.x.
func (s *Server) seenAs(from, path, address string) string {
	name, ok := strings.CutPrefix(address, "local.")
	if !ok || from == path {
		return address
	}
	f := s.Session.Index.File(from)
	for _, via := range slices.Sorted(maps.Keys(f.Paths)) {
		if kind, _, _ := strings.Cut(via, "."); (kind == "include" || kind == "import") && s.Session.Index.Target(f, via) == path {
			return strings.TrimSuffix(via, ".") + ".locals." + name
		}
	}
	return address
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
	at := map[string]int{}
	for _, from := range all {
		u := s.Session.Unit(ctx, from)
		if u == nil {
			return nil, ctx.Err()
		}
		value := ""
		if x, ds := u.Explain(ctx, s.seenAs(from, path, out.Address)); x != nil && !ds.HasErrors() {
			value = source.HideCredentials(x.ValueText())
		}
		i, ok := at[value]
		if !ok {
			i = len(out.Values)
			at[value] = i
			out.Values = append(out.Values, unitsValue{Value: value})
		}
		out.Values[i].Units = append(out.Values[i].Units, document.URI(from))
	}
	slices.SortStableFunc(out.Values, func(a, b unitsValue) int { return len(b.Units) - len(a.Units) })
	return out, ctx.Err()
}

// unitOf returns the unit from which a file is seen, or nil.
func (s *Server) unitOf(ctx context.Context, path string) *workspace.Unit {
	if at := s.viewpointOf(ctx, path); at != "" {
		return s.Session.Unit(ctx, at)
	}
	return nil
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
