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

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/source"
)

// # Viewpoints
//
// A file that several units read has no values of its own. It is seen from one of these units: the one
// that the user chose, or the nearest.

// maxViewpoints is the number of units that are listed.
const maxViewpoints = 1000

// unitsOf returns the paths of the units that read a file, the nearest first. A unit file reads itself.
func (s *Server) unitsOf(ctx context.Context, path string) []string {
	if s.Session.IsUnit(path) {
		return []string{path}
	}
	var out []string
	seen := map[string]bool{path: true}
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

// viewpointOf returns the path of the unit from which a file is seen, or "".
func (s *Server) viewpointOf(ctx context.Context, path string) string {
	s.mu.Lock()
	chosen := s.viewpoint[path]
	s.mu.Unlock()
	all := s.unitsOf(ctx, path)
	if slices.Contains(all, chosen) {
		return chosen
	}
	if len(all) == 0 {
		return ""
	}
	return all[0]
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
	on := s.settings.AllViewpoints
	s.mu.Unlock()
	key := path
	if index.KindOf(path) == index.Module {
		key = filepath.Dir(path)
	}
	if !on {
		return ""
	}
	units := s.unitsOf(ctx, key)
	if len(units) < 2 {
		return ""
	}
	limited, cancel := context.WithTimeout(ctx, viewpointTime)
	defer cancel()
	byValue := map[string][]string{}
	looked := 0
	for _, u := range units {
		x := s.Session.Value(limited, u, address)
		if limited.Err() != nil {
			break
		}
		looked++
		text := "(not set)"
		if x != nil {
			var b strings.Builder
			_ = x.Print(&b) // a strings.Builder returns no error
			text, _, _ = strings.Cut(source.HideCredentials(b.String()), "\n\n")
			if _, value, ok := strings.Cut(text, " = "); ok {
				text = value
			}
		}
		byValue[text] = append(byValue[text], s.shortName(u))
	}
	plural := "s"
	if len(byValue) == 1 {
		plural = ""
	}
	of := ""
	if looked < len(units) {
		of = fmt.Sprintf(" of %d", len(units))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d value%s in %d%s units:\n", len(byValue), plural, looked, of)
	values := slices.SortedFunc(maps.Keys(byValue), func(x, y string) int {
		return cmp.Or(len(byValue[y])-len(byValue[x]), strings.Compare(x, y))
	})
	for _, v := range values[:min(len(values), 20)] {
		names := byValue[v]
		fmt.Fprintf(&b, "\n%s\n  %s", v, strings.Join(names[:min(len(names), maxNamed)], ", "))
		if n := len(names) - maxNamed; n > 0 {
			fmt.Fprintf(&b, " and %d others", n)
		}
	}
	return fenced(b.String())
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
