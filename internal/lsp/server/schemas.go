package server

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
)

// # Schemas before init
//
// The schemas of providers come from the cache of earlier commands. If it does not contain one, the user
// can fetch it: after a confirmation, processes of their own download the provider and start it once. The
// server itself starts no provider and uses no network.

// fetchSchemas fetches the schemas of the module of a file that are not known, and returns a message.
func (s *Server) fetchSchemas(ctx context.Context, path string) (any, error) {
	dir := moduleOf(path)
	if path == "" || dir == "" {
		return nil, refuse("the argument is the URI of a file of a module")
	}
	m := s.Session.Module(ctx, dir)
	if m == nil {
		return nil, ctx.Err()
	}
	required := m.WithoutSchema(ctx)
	if len(required) == 0 {
		return "The schemas of all providers are known.", nil
	}
	if s.Schemas == nil {
		return nil, refuse("this server cannot fetch schemas")
	}
	if err := s.trustFor(ctx, dir, "Terrace starts a provider to read its schema"); err != nil {
		return nil, err
	}
	names := nameAll(required)
	const fetch = "Fetch"
	if !s.confirm(ctx, "Terrace downloads "+names+" and starts each once, to read its schema.", fetch) {
		return nil, refuse("the schemas were not fetched, without your confirmation")
	}
	if err := s.Schemas(ctx, dir, required); err != nil {
		return nil, refuse("the schemas were not fetched: %v", err)
	}
	s.Session.SchemasChanged()
	s.recompute()
	return fmt.Sprintf("Fetched the schemas of %s.", names), nil
}

// nameAll lists providers with their version constraints.
func nameAll(required []workspace.Requirement) string {
	var out []string
	for _, r := range required {
		name := r.Provider.Display()
		if r.Constraints != "" {
			name += " (" + r.Constraints + ")"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// schemaAction returns the action that fetches the schemas of a module, if the range is in a block whose
// provider has none, or nil.
func (s *Server) schemaAction(ctx context.Context, f *index.File, start, end int) *protocol.CodeAction {
	if s.Schemas == nil {
		return nil
	}
	for i := range f.Names {
		o := &f.Names[i]
		if o.Role != index.Declares || o.WholeStart > end || o.WholeEnd < start || o.WholeEnd == 0 {
			continue
		}
		m := s.Session.Module(ctx, filepath.Dir(f.Path))
		if m == nil {
			return nil
		}
		local := ""
		if kind, name, _ := strings.Cut(o.Addr, "."); kind == "provider" {
			local, _, _ = strings.Cut(name, ".")
		} else if r := resourceOf(m.Config, o.Addr); r != nil {
			local = localProvider(r)
		}
		if local == "" {
			continue
		}
		provider := m.Config.Source(local)
		if provider.IsBuiltIn() || m.Schema(ctx, provider) != nil {
			continue
		}
		title := "Fetch the schema of " + provider.Display()
		return &protocol.CodeAction{Title: title, Command: &protocol.Command{Title: title, Command: commandSchemas, Arguments: []any{document.URI(f.Path)}}}
	}
	return nil
}
