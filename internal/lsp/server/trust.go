package server

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// # Trust and configuration
//
// The option "trust" of initialize selects the directories in which functions of unit files may run
// programs. An editor may read its settings from a file in the repository, so workspace/configuration
// grants no trust, unless the option is "configuration". It can always withdraw it.

// trustConfiguration is the value of the option "trust" for clients that send the trust of each root
// with workspace/configuration, and whose settings for it cannot come from the repository. Such a client
// also sends "trustCommands": true for a root in which the commands that run programs may run, because the
// user starts them. Functions of unit files do not run programs then.
const trustConfiguration = "configuration"

// programFunctions are the functions of unit files that run programs.
var programFunctions = []string{"run_cmd", "sops_decrypt_file", "get_aws_account_id", "get_aws_account_alias", "get_aws_caller_identity_arn", "get_aws_caller_identity_user_id"}

// A grant is the value of the option "trust" in initializationOptions.
type grant struct {
	all           bool     // true: all roots
	dirs          []string // a list of paths or URIs
	configuration bool     // "configuration"
}

// grantOf returns the value of the option. ok is false if it has another type.
func grantOf(raw json.RawMessage) (g grant, ok bool) {
	var word string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return g, true
	case json.Unmarshal(raw, &g.all) == nil:
		return g, true
	case json.Unmarshal(raw, &word) == nil:
		g.configuration = word == trustConfiguration
		return g, g.configuration
	case json.Unmarshal(raw, &g.dirs) != nil:
		return grant{}, false
	}
	for i, d := range g.dirs {
		if !strings.HasPrefix(d, "file:") {
			if !filepath.IsAbs(d) {
				return grant{}, false
			}
			d = document.URI(d)
		}
		if g.dirs[i] = document.Path(d); g.dirs[i] == "" { // in the form of the paths of documents
			return grant{}, false
		}
	}
	return g, true
}

// confirm asks the user a question, and reports whether the answer is action. A client that cannot ask
// means no.
func (s *Server) confirm(ctx context.Context, question, action string) bool {
	rsp, err := s.rpc.Callback(ctx, "window/showMessageRequest", &protocol.ShowMessageRequestParams{
		Type: protocol.MessageTypeWarning, Message: question, Actions: []protocol.MessageActionItem{{Title: action}, {Title: "Cancel"}},
	})
	var chosen *protocol.MessageActionItem
	return err == nil && rsp.UnmarshalResult(&chosen) == nil && chosen != nil && chosen.Title == action
}

// trustFor returns nil if programs may run in a directory. Otherwise it asks the user to trust the
// directory, until the connection ends, unless the client has withdrawn the trust. what is the reason, as
// a sentence without its period.
func (s *Server) trustFor(ctx context.Context, dir, what string) error {
	if s.Session.Trusts(dir) {
		return nil
	}
	if !s.Session.RunsPrograms() {
		return refuse("%s, and the server was started with --no-exec", what)
	}
	root := dir
	s.mu.Lock()
	for _, r := range s.roots {
		if rel, err := filepath.Rel(r, dir); err == nil && filepath.IsLocal(rel) && len(r) < len(root) {
			root = r
		}
	}
	on, answered := s.answered[root]
	commands := s.granted.configuration && s.commands[root]
	s.mu.Unlock()
	if commands {
		return nil
	}
	const trust = "Trust"
	if !(answered && !on) && s.confirm(ctx, what+". Do you trust "+root+" until the editor is closed? Then functions of its unit files may run programs too.", trust) {
		s.mu.Lock()
		if s.asked == nil {
			s.asked = map[string]bool{}
		}
		s.asked[root] = true
		s.mu.Unlock()
		s.applyTrust()
	}
	if s.Session.Trusts(dir) {
		return nil
	}
	return refuse("%s, and %s is not trusted. The option \"trust\" of the server grants trust; see docs/editor.md", what, root)
}

// applyTrust sets the directories in which programs may run.
func (s *Server) applyTrust() {
	trusted := map[string]bool{}
	s.mu.Lock()
	for _, dir := range s.granted.dirs {
		trusted[dir] = true
	}
	for dir := range s.asked {
		trusted[dir] = true
	}
	for _, root := range s.roots {
		on, answered := s.answered[root]
		switch {
		case s.granted.configuration && (answered || !s.asked[root]):
			trusted[root] = on
		case answered && !on:
			trusted[root] = false
		case s.granted.all:
			trusted[root] = true
		}
	}
	s.mu.Unlock()
	if s.Session.SetTrust(trusted) {
		s.recompute()
	}
}

// recompute makes the client request again what it shows of all files.
func (s *Server) recompute() {
	for _, b := range s.Session.Files.Open() {
		s.outdated(b.Path)
	}
	w := s.client.Workspace
	for _, r := range []struct {
		supported bool
		method    string
	}{
		{w.Diagnostics.RefreshSupport, "workspace/diagnostic/refresh"},
		{w.InlayHint.RefreshSupport, "workspace/inlayHint/refresh"},
		{w.CodeLens.RefreshSupport, "workspace/codeLens/refresh"},
	} {
		if r.supported && s.ready.Load() {
			go func() { // ends with the connection
				_, _ = s.rpc.Callback(s.ctx, r.method, nil) // the next change has the same effect
			}()
		}
	}
}

// configure requests the section "terrace" of the client's configuration, for the workspace and for
// each root.
func (s *Server) configure() {
	if !s.client.Workspace.Configuration {
		return
	}
	s.mu.Lock()
	s.asks++
	number, roots := s.asks, slices.Clone(s.roots)
	s.mu.Unlock()
	type item struct {
		ScopeURI string `json:"scopeUri,omitempty"`
		Section  string `json:"section"`
	}
	items := []item{{Section: "terrace"}}
	for _, r := range roots {
		items = append(items, item{document.URI(r), "terrace"})
	}
	go func() { // ends with the connection
		rsp, err := s.rpc.Callback(s.ctx, "workspace/configuration", map[string]any{"items": items})
		var answers []json.RawMessage
		if err != nil || rsp.UnmarshalResult(&answers) != nil || len(answers) != len(items) {
			return // the settings stay as they are
		}
		s.configuring.Lock()
		defer s.configuring.Unlock()
		if number < s.newest {
			return // a newer answer came first; this one could grant trust that the user has withdrawn
		}
		s.newest = number
		s.configured(answers[0])
		answered, commands := map[string]bool{}, map[string]bool{}
		for i, raw := range answers[1:] {
			var o settings
			if json.Unmarshal(raw, &o) == nil {
				if on, ok := o.trusts(); ok {
					answered[roots[i]] = on
				}
				commands[roots[i]] = o.TrustCommands
			}
		}
		s.mu.Lock()
		s.answered, s.commands = answered, commands
		s.mu.Unlock()
		s.applyTrust()
	}()
}

// configured takes the settings that the client sent after initialize. Options that it does not send
// keep their values.
func (s *Server) configured(raw json.RawMessage) {
	var o settings
	if json.Unmarshal(raw, &o) != nil {
		return
	}
	s.mu.Lock()
	if o.AllViewpoints != nil {
		s.settings.AllViewpoints = o.AllViewpoints
	}
	changed := o.Lint != nil && (s.settings.Lint == nil || *s.settings.Lint != *o.Lint)
	if changed {
		s.settings.Lint = o.Lint
	}
	s.mu.Unlock()
	if changed {
		s.recompute()
	}
}

// trusts returns the trust in one root. ok is false if the client does not send it.
func (o settings) trusts() (on, ok bool) {
	err := json.Unmarshal(o.Trust, &on)
	return on, err == nil && string(o.Trust) != "null"
}

func (s *Server) didChangeConfiguration(_ context.Context, p *struct {
	Settings struct {
		Terrace json.RawMessage `json:"terrace"`
	} `json:"settings"`
}) {
	if s.client.Workspace.Configuration {
		s.configure()
		return
	}
	s.configured(p.Settings.Terrace)
	var o settings
	if json.Unmarshal(p.Settings.Terrace, &o) != nil {
		return
	}
	if on, ok := o.trusts(); ok {
		s.mu.Lock()
		s.answered = map[string]bool{}
		for _, r := range s.roots {
			s.answered[r] = on
		}
		s.mu.Unlock()
		s.applyTrust()
	}
}

// skippedPrograms calls found for each function of a unit file that would run a program, if programs
// may not run there. end is the offset behind the call.
func (s *Server) skippedPrograms(path string, text *document.Text, found func(name string, end int)) {
	if s.Session.Trusts(path) {
		return
	}
	body, _ := index.Parse(path, text.Bytes)
	if body == nil {
		return
	}
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && slices.Contains(programFunctions, call.Name) {
			found(call.Name, call.Range().End.Byte)
		}
		return nil
	})
}
