package server

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/source"
)

// workspaceBuffer is one version of an open document.
type workspaceBuffer = workspace.Buffer

// documentation is the address of the page that describes all messages.
const documentation = "https://github.com/terrace-iac/terrace/blob/main/docs/messages.md#"

// rulesDocumentation is the address of the page that describes rules.
const rulesDocumentation = "https://github.com/terrace-iac/terrace/blob/main/docs/rules.md"

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

// publish publishes the diagnostics of one file, unless the client has them: first with the last findings
// of rules, then with the new ones. It returns false if ctx ended.
func (s *Server) publish(ctx context.Context, path string) bool {
	path = s.Session.Files.Real(path)
	b := s.Session.Files.Buffer(path)
	out := &protocol.PublishDiagnosticsParams{URI: document.URI(path), Diagnostics: []protocol.Diagnostic{}}
	if b == nil {
		return s.send(ctx, path, nil, out)
	}
	out.URI, out.Version = b.URI, b.Version
	items := s.diagnostics(ctx, path)
	out.Diagnostics = append(slices.Clone(items), s.lastRuled(path, b.Text)...)
	if !s.send(ctx, path, b, out) {
		return false
	}
	more, ok := s.ruleFindings(ctx, path, b.Text)
	if !ok {
		return ctx.Err() == nil
	}
	out.Diagnostics = append(items, more...)
	return s.send(ctx, path, b, out)
}

// send publishes the diagnostics of one version of a file, unless the client has them. It returns false
// if ctx ended, or if the file has another version.
func (s *Server) send(ctx context.Context, path string, b *workspaceBuffer, out *protocol.PublishDiagnosticsParams) bool {
	if ctx.Err() != nil || s.Session.Files.Buffer(path) != b {
		return false
	}
	text, err := json.Marshal(out.Diagnostics)
	if err != nil {
		return true
	}
	uris := []string{out.URI}
	if b != nil {
		uris = s.Session.Files.URIs(path)
	}
	for _, uri := range uris {
		s.mu.Lock()
		same := s.published[uri] == string(text) || b == nil && s.published[uri] == ""
		if b == nil {
			delete(s.published, uri)
		} else {
			s.published[uri] = string(text)
		}
		s.mu.Unlock()
		if !same {
			each := *out
			each.URI = uri
			_ = s.rpc.Notify(ctx, "textDocument/publishDiagnostics", &each) // fails only if the client is gone
		}
	}
	return true
}

// unpublish withdraws the diagnostics of a closed document, if its file is still open by another path.
func (s *Server) unpublish(ctx context.Context, uri string) {
	s.mu.Lock()
	old := s.published[uri]
	delete(s.published, uri)
	s.mu.Unlock()
	if old != "" {
		_ = s.rpc.Notify(ctx, "textDocument/publishDiagnostics", &protocol.PublishDiagnosticsParams{URI: uri, Diagnostics: []protocol.Diagnostic{}}) // fails only if the client is gone
	}
}

// # Findings of rules
//
// The rules on values need the evaluation of a module or unit, and the other diagnostics do not. So a
// file's diagnostics are sent first with the findings of its last text, whose positions follow the edits,
// and again when the rules were checked.

// ruled are the findings of rules in one version of a file.
type ruled struct {
	text  *document.Text
	items []protocol.Diagnostic
}

// lastRuled returns the last findings of rules in a file, without those in text that was edited since.
func (s *Server) lastRuled(path string, text *document.Text) []protocol.Diagnostic {
	s.mu.Lock()
	last := s.ruled[path]
	s.mu.Unlock()
	var out []protocol.Diagnostic
	if last == nil {
		return nil
	}
	was, is := last.text.Bytes, text.Bytes
	first := 0
	for first < min(len(was), len(is)) && was[first] == is[first] {
		first++
	}
	same := 0
	for same < min(len(was), len(is))-first && was[len(was)-1-same] == is[len(is)-1-same] {
		same++
	}
	for _, d := range last.items {
		start, end := last.text.Offset(d.Range.Start, s.encoding), last.text.Offset(d.Range.End, s.encoding)
		switch {
		case end <= first:
		case start >= len(was)-same:
			start, end = start+len(is)-len(was), end+len(is)-len(was)
		default:
			continue
		}
		d.Range = text.Range(start, end, s.encoding)
		out = append(out, d)
	}
	return out
}

// ruleFindings returns the findings of rules in a file as it is now, and the validations that fail for the values
// from its view. There are no findings if the module or unit has errors. ok is false if ctx ended.
func (s *Server) ruleFindings(ctx context.Context, path string, text *document.Text) (out []protocol.Diagnostic, ok bool) {
	if ctx.Err() != nil {
		return nil, false
	}
	found := s.rulings(ctx, path)
	if ctx.Err() != nil {
		return nil, false
	}
	if found == nil {
		found = &workspace.Rulings{}
	}
	out = s.failedValidations(ctx, path, text)
	for _, f := range found.Findings {
		if at := f.At(); at.Filename == path {
			out = append(out, s.finding(f, at, text))
		}
	}
	for _, m := range found.Diags {
		if m.At != nil && m.At.Filename == path {
			out = append(out, s.message(m, text))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(out) == 0 {
		delete(s.ruled, path)
	} else {
		s.ruled[path] = &ruled{text, out}
	}
	return out, true
}

// failedValidations returns the validations of variables in a file of a module that fail for the values from the
// view of the file. The error itself is at the argument that gives the value, in another file.
func (s *Server) failedValidations(ctx context.Context, path string, text *document.Text) (out []protocol.Diagnostic) {
	if !index.KindOf(path).OfModule() {
		return nil
	}
	v := s.viewOfModule(ctx, path)
	var ds diag.List
	if v.isUnit() {
		if u := s.Session.Unit(ctx, v.at); u != nil {
			ds = u.Diags
		}
	} else if v.at != "" {
		if m := s.Session.Module(ctx, v.at); m != nil {
			ds = m.Diags
		}
	}
	for _, m := range ds {
		if m.Code != diag.Condition || m.At == nil || m.At.Filename == path {
			continue
		}
		for _, n := range m.Notes {
			if n.At == nil || n.At.Filename != path || n.At.Start.Byte >= n.At.End.Byte {
				continue
			}
			seen := *m
			seen.Summary, seen.Detail, seen.At, seen.Notes = "Seen from "+s.viewName(view{at: v.at}), m.Summary+": "+m.Detail, n.At, nil
			d := s.message(&seen, text)
			d.Severity = protocol.DiagnosticSeverityInformation
			if filepath.IsAbs(m.At.Filename) {
				d.RelatedInformation = []protocol.DiagnosticRelatedInformation{{Location: s.locationOf(*m.At), Message: "the value is given here"}}
			}
			out = append(out, d)
		}
	}
	return out
}

// rulings returns the failed rules of the module or unit from which a file is seen, or nil.
func (s *Server) rulings(ctx context.Context, path string) *workspace.Rulings {
	switch index.KindOf(path) {
	case index.Module, index.JSON, index.Values:
		v, dir := s.viewOfModule(ctx, path), filepath.Dir(path)
		var found *workspace.Rulings
		if v.isUnit() {
			if u := s.Session.Unit(ctx, v.at); u != nil {
				found = u.Rules(ctx)
			}
		} else if m := s.Session.Module(ctx, cmp.Or(v.at, dir)); m != nil {
			found = m.Rules(ctx)
		}
		if found == nil && v.at != "" && v.dir() != dir { // the viewpoint has errors
			if m := s.Session.Module(ctx, dir); m != nil {
				found = m.Rules(ctx)
			}
		}
		return found
	case index.Unit:
		if u := s.unitOf(ctx, path); u != nil {
			return u.Rules(ctx)
		}
	case index.Rules: // rules without a subject, in the directory of what they check
		dir := filepath.Dir(path)
		if at := s.Session.UnitFile(dir); s.Session.Files.Exists(at) {
			if u := s.Session.Unit(ctx, at); u != nil {
				return u.Rules(ctx)
			}
		} else if slices.ContainsFunc(s.Session.Index.Dir(dir), func(f *index.File) bool { return f.Kind.OfModule() }) {
			if m := s.Session.Module(ctx, dir); m != nil {
				return m.Rules(ctx)
			}
		}
	}
	return nil
}

// diagnostic answers a client that requests diagnostics.
func (s *Server) diagnostic(ctx context.Context, p *protocol.DocumentDiagnosticParams) (any, error) {
	path := s.path(p.TextDocument.URI)
	if path == "" {
		return nil, refuse("%s is not a file", p.TextDocument.URI)
	}
	items := s.diagnostics(ctx, path)
	text := s.Session.Files.Text(path)
	more, ok := s.ruleFindings(ctx, path, text)
	if !ok {
		more = s.lastRuled(path, text)
	}
	items = append(items, more...)
	return &protocol.FullDocumentDiagnosticReport{Kind: "full", Items: items}, ctx.Err()
}

// diagnostics returns the diagnostics of a file as it is now.
func (s *Server) diagnostics(ctx context.Context, path string) []protocol.Diagnostic {
	if isTemplate(path) {
		return []protocol.Diagnostic{}
	}
	text := s.Session.Files.Text(path)
	var ds diag.List
	var found []*finding.Finding
	switch kind := index.KindOf(path); kind {
	case index.Module, index.JSON:
		if m := s.Session.Module(ctx, filepath.Dir(path)); m != nil {
			ds = s.withoutGenerated(filepath.Dir(path), m.Diags)
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
		if !slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == diag.CodeEstateCycle }) {
			ds = append(slices.Clone(ds), s.cycleErrors(path)...)
		}
		if strings.HasSuffix(path, testfile.EstateSuffix) {
			ds = testErrors(path, text)
		}
	case index.Rules: // an exception may be about a rule of another file
		files, _ := rules.Read(s.Session.Files, filepath.Dir(path), rules.IsFile, func(path string) string { return path })
		_, ds = rules.Parse(files, &source.Set{})
	case index.Stack:
		for _, at := range s.stacksOf(ctx, path) {
			if st := s.Session.Stack(ctx, at); st != nil {
				ds = append(ds, st.Diags...)
			}
		}
		ds = ds.Once()
	case index.Other, index.Data:
	case index.Test:
		ds = testErrors(path, text)
	case index.Values:
		ds = s.variableErrors(ctx, path, text)
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

// withoutGenerated returns the messages about a module without those about names that the unit in its directory may
// generate: a file that the unit merges has a generate block whose text declares the name or is not constant. The
// module is read without the generated files.
func (s *Server) withoutGenerated(dir string, ds diag.List) diag.List {
	undeclared := func(m *diag.Message) bool { return m.Code == diag.CodeEvalUndeclared && m.At != nil }
	own := s.Session.UnitFile(dir)
	if !slices.ContainsFunc(ds, undeclared) || !s.Session.Files.Exists(own) {
		return ds
	}
	unknown, text := false, []byte{}
	for _, f := range s.Session.Index.Merged(s.Session.Index.File(own)) {
		raw := s.Session.Files.Text(f.Path).Bytes
		body, _ := index.Parse(f.Path, raw)
		if body == nil {
			continue
		}
		for _, b := range body.Blocks {
			a := b.Body.Attributes["contents"]
			if b.Type != "generate" || a == nil {
				continue
			}
			at := a.Expr.Range()
			text = append(text, raw[at.Start.Byte:at.End.Byte]...)
			_, constant := a.Expr.(*hclsyntax.TemplateExpr)
			unknown = unknown || !constant
		}
	}
	if len(text) == 0 {
		return ds
	}
	return slices.DeleteFunc(slices.Clone(ds), func(m *diag.Message) bool {
		if !undeclared(m) || unknown {
			return undeclared(m)
		}
		raw := s.Session.Files.Text(m.At.Filename).Bytes
		if m.At.End.Byte > len(raw) {
			return false
		}
		words := words().FindAll(raw[m.At.Start.Byte:m.At.End.Byte], -1)
		if len(words) < 2 {
			return false
		}
		declared := `"` + regexp.QuoteMeta(string(words[0])) + `"\s+"` + regexp.QuoteMeta(string(words[1])) + `"` // a resource
		switch name := regexp.QuoteMeta(string(words[1])); string(words[0]) {
		case "var":
			declared = `\bvariable\s+"` + name + `"`
		case "local":
			declared = `\b` + name + `\s*=`
		case "module":
			declared = `\bmodule\s+"` + name + `"`
		case "data":
			declared = `\bdata\s+"` + name + `"`
		}
		found, err := regexp.Match(declared, text)
		return err == nil && found
	})
}

// isTemplate reports whether a file is a template of the command scaffold, which is no configuration.
func isTemplate(path string) bool {
	return slices.Contains(strings.Split(filepath.ToSlash(path), "/"), ".boilerplate")
}

// testErrors returns the errors in a file with tests, without those about the names in the module.
func testErrors(path string, text *document.Text) (ds diag.List) {
	switch {
	case strings.HasSuffix(path, testfile.EstateSuffix):
		_, ds = testfile.ParseEstate(path, text.Bytes, &source.Set{})
	case index.IsMocks(path):
		_, ds = testfile.ParseMocks(path, text.Bytes, &source.Set{})
	case index.IsQueries(path) || rules.IsTest(filepath.Base(path)):
		ds = syntaxErrors(path, text)
	default:
		_, ds = testfile.Parse(path, text.Bytes, &source.Set{})
	}
	return ds
}

// syntaxErrors returns the syntax errors of a file.
func syntaxErrors(path string, text *document.Text) diag.List {
	if ds := diag.TooDeep(path, text.Bytes); ds.HasErrors() {
		return ds
	}
	if index.IsJSON(path) {
		_, diags := hcljson.Parse(text.Bytes, path)
		return diag.FromHCL(diags)
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
	if at.Start.Byte == 0 && at.Start.Line > 1 { // where a value was set is known by line and column
		start := text.LineStart(at.Start.Line-1) + max(at.Start.Column-1, 0)
		end := text.LineStart(at.Start.Line-1) + len(text.Line(at.Start.Line-1))
		at.Start.Byte, at.End.Byte = min(start, end), end
	}
	d := protocol.Diagnostic{
		Range: text.Range(at.Start.Byte, at.End.Byte, s.encoding), Severity: level, Source: "terrace", Code: f.Rule, Message: f.Message,
		CodeDescription: &protocol.CodeDescription{Href: lintDocumentation},
	}
	if f.RuleAt.Filename == "" {
		return d
	}
	d.CodeDescription.Href = rulesDocumentation
	about := f.Address
	if f.Path != "" {
		about += "." + f.Path
	}
	if f.Unit != "" && f.Unit != f.Address {
		about = f.Unit + " " + about
	}
	if about != "" {
		d.Message += "\n" + about
	}
	if f.RuleAt != at {
		d.RelatedInformation = []protocol.DiagnosticRelatedInformation{{Location: s.locationOf(f.RuleAt), Message: "the rule"}}
	}
	return d
}
