package server

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
)

// workspaceBuffer is one version of an open document.
type workspaceBuffer = workspace.Buffer

// documentation is the address of the page that describes all messages.
const documentation = "https://github.com/terrace-iac/terrace/blob/main/docs/messages.md#"

// lintDocumentation is the address of the page that describes the built-in lint.
const lintDocumentation = "https://github.com/terrace-iac/terrace/blob/main/docs/lint.md"

// outdated makes the diagnostics of a file, and of what depends on it, to be computed again.
func (s *Server) outdated(path string) {
	if path == "" || s.client.TextDocument.Diagnostic != nil { // the client requests them
		return
	}
	s.mu.Lock()
	s.changed[path] = true
	if s.cancel != nil {
		s.cancel()
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// diagnose publishes diagnostics until the connection ends. A change cancels the computation for the
// text before it.
func (s *Server) diagnose() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		}
		ctx, cancel := context.WithCancel(s.ctx)
		s.mu.Lock()
		var paths []string
		for p := range s.changed {
			paths = append(paths, p)
		}
		s.cancel = cancel
		s.mu.Unlock()
		slices.Sort(paths)
		for _, path := range paths {
			if s.publishAround(ctx, path) {
				s.mu.Lock()
				delete(s.changed, path)
				s.mu.Unlock()
			}
		}
		cancel()
	}
}

// publishAround publishes the diagnostics of a file, then of the other open documents that may depend
// on it. It returns false if ctx ended.
func (s *Server) publishAround(ctx context.Context, path string) bool {
	var open []string
	for _, b := range s.Session.Files.Open() {
		if b.Path != path {
			open = append(open, b.Path)
		}
	}
	near := func(other string) bool { return filepath.Dir(other) == filepath.Dir(path) }
	slices.SortStableFunc(open, func(a, b string) int {
		switch {
		case near(a) == near(b):
			return 0
		case near(a):
			return -1
		default:
			return 1
		}
	})
	// A result that nothing outdated is not computed again, so that this costs little.
	for _, p := range append([]string{path}, open...) {
		if !s.publish(ctx, p) {
			return false
		}
	}
	return true
}

// publish publishes the diagnostics of one file, unless the client has them. It returns false if ctx
// ended.
func (s *Server) publish(ctx context.Context, path string) bool {
	b := s.Session.Files.Buffer(path)
	out := &protocol.PublishDiagnosticsParams{URI: document.URI(path), Diagnostics: []protocol.Diagnostic{}}
	if b != nil {
		out.URI, out.Version = b.URI, b.Version
		out.Diagnostics = s.diagnostics(ctx, path)
	}
	if ctx.Err() != nil || s.Session.Files.Buffer(path) != b {
		return false
	}
	text, err := json.Marshal(out.Diagnostics)
	if err != nil {
		return true
	}
	s.mu.Lock()
	same := s.published[path] == string(text) || b == nil && s.published[path] == ""
	if b == nil {
		delete(s.published, path)
	} else {
		s.published[path] = string(text)
	}
	s.mu.Unlock()
	if !same {
		_ = s.rpc.Notify(ctx, "textDocument/publishDiagnostics", out) // fails only if the client is gone
	}
	return true
}

// diagnostic answers a client that requests diagnostics.
func (s *Server) diagnostic(ctx context.Context, p *protocol.DocumentDiagnosticParams) (any, error) {
	path := document.Path(p.TextDocument.URI)
	if path == "" {
		return nil, refuse("%s is not a file", p.TextDocument.URI)
	}
	items := s.diagnostics(ctx, path)
	return &protocol.FullDocumentDiagnosticReport{Kind: "full", Items: items}, ctx.Err()
}

// diagnostics returns the diagnostics of a file as it is now.
func (s *Server) diagnostics(ctx context.Context, path string) []protocol.Diagnostic {
	text := s.Session.Files.Text(path)
	var ds diag.List
	var found []*finding.Finding
	switch kind := index.KindOf(path); kind {
	case index.Module, index.JSON:
		if m := s.Session.Module(ctx, filepath.Dir(path)); m != nil {
			ds = m.Diags
			for _, f := range m.Lint {
				f := *f
				if f.SetAt.Filename != "" {
					f.SetAt = m.Range(f.SetAt)
				}
				if f.Defined.Filename != "" {
					f.Defined = m.Range(f.Defined)
				}
				found = append(found, &f)
			}
		}
	case index.Unit:
		if u := s.unitOf(ctx, path); u != nil {
			ds = u.Diags
		}
		if !slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.At != nil && m.At.Filename == path }) {
			ds = append(slices.Clone(ds), syntaxErrors(path, text)...)
		}
	case index.Rules:
		_, ds = rules.Parse([]rules.Text{{Name: path, Text: text.Bytes}}, &source.Set{})
	case index.Other:
	default:
		ds = syntaxErrors(path, text)
	}
	out := []protocol.Diagnostic{}
	for _, m := range ds {
		if m.At != nil && m.At.Filename == path {
			out = append(out, s.message(m, text))
		}
	}
	s.mu.Lock()
	lint := s.settings.Lint == nil || *s.settings.Lint
	s.mu.Unlock()
	for _, f := range found {
		if at := f.At(); lint && at.Filename == path && f.Counts() {
			out = append(out, s.finding(f, at, text))
		}
	}
	return out
}

// syntaxErrors returns the syntax errors of a file.
func syntaxErrors(path string, text *document.Text) diag.List {
	if ds := diag.TooDeep(path, text.Bytes); ds.HasErrors() {
		return ds
	}
	_, diags := hclnative.ParseConfig(text.Bytes, path)
	return diag.FromHCL(diags)
}

func (s *Server) message(m *diag.Message, text *document.Text) protocol.Diagnostic {
	d := protocol.Diagnostic{Range: text.Range(m.At.Start.Byte, m.At.End.Byte, s.encoding), Severity: protocol.DiagnosticSeverityError, Source: "terrace", Code: m.Code, Message: m.Summary}
	if m.Severity == diag.Warning {
		d.Severity = protocol.DiagnosticSeverityWarning
	}
	if m.Detail != "" {
		d.Message += ": " + m.Detail
	}
	for _, v := range m.Values {
		d.Message += "\n" + v
	}
	if m.Code != "" {
		d.CodeDescription = &protocol.CodeDescription{Href: documentation + strings.ReplaceAll(m.Code, "/", "")}
	}
	for _, n := range m.Notes {
		if n.At != nil && filepath.IsAbs(n.At.Filename) {
			d.RelatedInformation = append(d.RelatedInformation, protocol.DiagnosticRelatedInformation{Location: s.locationOf(*n.At), Message: n.Text})
		} else {
			d.Message += "\n" + n.Text
		}
	}
	return d
}

func (s *Server) finding(f *finding.Finding, at source.Range, text *document.Text) protocol.Diagnostic {
	level := map[finding.Level]protocol.DiagnosticSeverity{finding.Error: protocol.DiagnosticSeverityError, finding.Warning: protocol.DiagnosticSeverityWarning}[f.Level]
	if level == 0 {
		level = protocol.DiagnosticSeverityInformation
	}
	return protocol.Diagnostic{
		Range: text.Range(at.Start.Byte, at.End.Byte, s.encoding), Severity: level, Source: "terrace", Code: f.Rule, Message: f.Message,
		CodeDescription: &protocol.CodeDescription{Href: lintDocumentation},
	}
}
