package server

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
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
