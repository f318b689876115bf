// Package server implements the language server: it answers the requests of the Language Server
// Protocol from a workspace.Session.
//
// Main type: Server; each feature has its own file. The one rule: a request that needs only the buffer,
// such as formatting, takes no lock and waits for no result that others compute.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/creachadair/jrpc2/handler"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/source"
)

// maxConcurrent is the number of requests that run at once. It is high, because requests that need
// processor time wait in the session, and those that need only the buffer must not wait.
const maxConcurrent = 256

// codeNotInitialized is the error code of requests before initialize.
const codeNotInitialized jrpc2.Code = -32002

// codeCanceled is the error code of a request that the client canceled.
const codeCanceled jrpc2.Code = -32800

// codeRequestFailed is the error code of a request that is refused with a reason.
const codeRequestFailed jrpc2.Code = -32803

// codeContentModified is the error code of a request whose documents changed before it was answered.
const codeContentModified jrpc2.Code = -32801

// Options configures a server.
type Options struct {
	Session *workspace.Session
	Version string
	// Affected compares the files of a directory, with the texts of buffers by their path, with the last
	// commit, and returns what the command affected prints. nil means that the server refuses this.
	Affected func(ctx context.Context, dir string, buffers map[string][]byte) (string, error)
	// Schemas fetches the providers that a directory requires, and keeps their schemas. nil means that
	// the server refuses this.
	Schemas func(ctx context.Context, dir string, required []workspace.Requirement) error
}

// A Server answers the requests of one client.
type Server struct {
	Options
	rpc      *jrpc2.Server
	ctx      context.Context // ends with the connection
	close    func()          // ends the reading of messages
	encoding document.Encoding
	client   protocol.ClientCapabilities
	settings settings

	initializing   atomic.Bool // initialize was requested
	ready, closing atomic.Bool // initialize was answered; shutdown was requested
	clean          atomic.Bool // exit came after shutdown

	configuring sync.Mutex // held while an answer to workspace/configuration is applied
	newest      int        // the number of the request to which the last applied answer belongs

	mu        sync.Mutex
	asks      int // the number of requests for the configuration
	roots     []string
	viewpoint map[string]view    // the chosen view, by the path of a file, or of the directory of a module
	seen      map[string]seen    // by the path of a file that units read
	callers   map[string]callers // by the directory of a module
	ruled     map[string]*ruled  // the last findings of rules, by path
	published map[string]string  // the diagnostics that the client has, as JSON, by path
	changed   map[string]bool    // paths whose diagnostics are outdated
	wake      chan struct{}
	cancel    context.CancelFunc // ends the computation of diagnostics
	granted   grant
	asked     map[string]bool // directories that the user trusts until the connection ends
	answered  map[string]bool // the trust in each root that the client sent with its configuration
	commands  map[string]bool // roots in which commands that the user starts may run programs
}

// settings are the settings of the client: initializationOptions, or the section "terrace" of its
// configuration.
type settings struct {
	// Lint turns the findings of the built-in lint off if it is false. nil means true.
	Lint *bool `json:"lint"`
	// Trust is described in trust.go.
	Trust json.RawMessage `json:"trust"`
	// TrustCommands is described there too. It counts only in answers to workspace/configuration.
	TrustCommands bool `json:"trustCommands"`
	// AllViewpoints makes hover list the values in all units that read a file if it is true. nil means false.
	AllViewpoints *bool `json:"allViewpoints"`
}

// Serve answers requests from in on out until the client disconnects or sends exit. ok reports whether
// the client had requested the shutdown before.
func Serve(ctx context.Context, o Options, in io.Reader, out io.WriteCloser) (ok bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &Server{Options: o, ctx: ctx, encoding: document.UTF16, viewpoint: map[string]view{}, published: map[string]string{}, seen: map[string]seen{}, callers: map[string]callers{}, ruled: map[string]*ruled{}, changed: map[string]bool{}, wake: make(chan struct{}, 1)}
	s.rpc = jrpc2.NewServer(s.methods(), &jrpc2.ServerOptions{
		AllowPush: true, DisableBuiltin: true, Concurrency: maxConcurrent, NewContext: func() context.Context { return ctx },
	})
	// A client may keep its end of in open after exit, and reading from in cannot be interrupted.
	// After close, the server stops by itself. Its method Stop panics if a message arrives at that moment.
	messages, copied := io.Pipe()
	s.close = func() { _ = messages.Close() }
	go func() { // ends with in, or with its next byte
		_ = copied.CloseWithError(copyMessages(copied, in))
	}()
	s.rpc.Start(answers{channel.LSP(messages, out)})
	var wg sync.WaitGroup
	wg.Go(s.diagnose) // ends with ctx
	go func() {       // ends with ctx
		<-ctx.Done()
		s.close()
	}()
	_ = s.rpc.Wait() // a client that disconnects is not an error
	stop()
	wg.Wait()
	return s.clean.Load()
}

// copyMessages copies from to until from ends. Before each reading, it lets other goroutines run: the thread
// that reads keeps its processor at first, and the message that has arrived would wait for that processor.
func copyMessages(to io.Writer, from io.Reader) error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// on returns the handler of a method with parameters of type P.
func on[P, R any](s *Server, f func(context.Context, *P) (R, error)) jrpc2.Handler {
	return func(ctx context.Context, req *jrpc2.Request) (_ any, err error) {
		defer func() {
			if x := recover(); x != nil { // a bug must not end the session with the unsaved buffers
				err = jrpc2.Errorf(jrpc2.InternalError, "bug in %s: %v\n%s", req.Method(), x, debug.Stack())
			}
		}()
		if !s.ready.Load() && req.Method() != "initialize" {
			return nil, jrpc2.Errorf(codeNotInitialized, "the server is not initialized")
		}
		var p P
		if err := req.UnmarshalParams(&p); err != nil {
			return nil, jrpc2.Errorf(jrpc2.InvalidParams, "invalid parameters: %v", err)
		}
		r, err := f(ctx, &p)
		switch {
		case errors.Is(err, context.Canceled) || ctx.Err() != nil:
			return nil, jrpc2.Errorf(codeCanceled, "the request was canceled")
		case err != nil:
			return nil, err
		}
		return r, nil
	}
}

// urgent is on for a request whose answer a user waits for while typing. The walk over the workspace pauses
// meanwhile.
func urgent[P, R any](s *Server, f func(context.Context, *P) (R, error)) jrpc2.Handler {
	return on(s, func(ctx context.Context, p *P) (R, error) {
		ctx, done := s.Session.Index.Urgent(ctx)
		defer done()
		return f(ctx, p)
	})
}

// notified is on for a notification.
func notified[P any](s *Server, f func(context.Context, *P)) jrpc2.Handler {
	return on(s, func(ctx context.Context, p *P) (any, error) {
		f(ctx, p)
		return nil, nil
	})
}

// refuse returns the error of a request that cannot be answered, with the reason for the user.
func refuse(format string, args ...any) error {
	return jrpc2.Errorf(codeRequestFailed, format, args...)
}

func (s *Server) methods() handler.Map {
	return handler.Map{
		"initialize":  on(s, s.initialize),
		"initialized": notified(s, s.initialized),
		"shutdown": on(s, func(context.Context, *struct{}) (any, error) {
			s.closing.Store(true)
			return nil, nil
		}),
		"exit": func(context.Context, *jrpc2.Request) (any, error) {
			s.clean.Store(s.closing.Load())
			s.close()
			return nil, nil
		},
		"$/cancelRequest": notified(s, func(_ context.Context, p *protocol.CancelParams) {
			id, _ := json.Marshal(p.ID) // a number or a string
			s.rpc.CancelRequest(string(id))
		}),
		"$/setTrace": notified(s, func(context.Context, *struct{}) {}),

		"textDocument/didOpen":                notified(s, s.didOpen),
		"textDocument/didChange":              notified(s, s.didChange),
		"textDocument/didClose":               notified(s, s.didClose),
		"textDocument/didSave":                notified(s, s.didSave),
		"workspace/didChangeWatchedFiles":     notified(s, s.didChangeFiles),
		"workspace/didChangeWorkspaceFolders": notified(s, s.didChangeFolders),
		"workspace/didChangeConfiguration":    notified(s, s.didChangeConfiguration),
		"workspace/didRenameFiles":            notified(s, s.didRenameFiles),
		"workspace/willRenameFiles":           on(s, s.willRenameFiles),

		"textDocument/formatting":           urgent(s, s.formatting),
		"textDocument/rangeFormatting":      urgent(s, s.rangeFormatting),
		"textDocument/diagnostic":           urgent(s, s.diagnostic),
		"textDocument/definition":           urgent(s, s.definition),
		"textDocument/references":           on(s, s.references),
		"textDocument/documentHighlight":    urgent(s, s.highlight),
		"textDocument/prepareRename":        on(s, s.prepareRename),
		"textDocument/rename":               on(s, s.rename),
		"textDocument/hover":                urgent(s, s.hover),
		"textDocument/completion":           urgent(s, s.completion),
		"textDocument/signatureHelp":        urgent(s, s.signature),
		"textDocument/documentSymbol":       urgent(s, s.documentSymbols),
		"workspace/symbol":                  on(s, s.workspaceSymbols),
		"textDocument/foldingRange":         urgent(s, s.folding),
		"textDocument/semanticTokens/full":  urgent(s, s.semanticTokens),
		"textDocument/semanticTokens/range": urgent(s, s.semanticTokensIn),
		"textDocument/documentLink":         urgent(s, s.links),
		"textDocument/inlayHint":            urgent(s, s.hints),
		"textDocument/codeLens":             on(s, s.lenses),
		"codeLens/resolve":                  on(s, s.resolveLens),
		"textDocument/codeAction":           on(s, s.actions),
		"workspace/executeCommand":          on(s, s.execute),
		"workspace/textDocumentContent":     on(s, s.content),
		"terrace/effective":                 on(s, s.effective),
		"terrace/viewpoints":                on(s, s.viewpoints),
		"terrace/values":                    on(s, s.values),
	}
}

func (s *Server) initialize(_ context.Context, p *protocol.InitializeParams) (any, error) {
	if s.initializing.Swap(true) {
		return nil, jrpc2.Errorf(jrpc2.InvalidRequest, "the server was initialized before")
	}
	s.client = p.Capabilities
	for _, e := range p.Capabilities.General.PositionEncodings {
		if e == string(document.UTF8) {
			s.encoding = document.UTF8
		}
	}
	for _, f := range p.WorkspaceFolders {
		s.roots = append(s.roots, document.Path(f.URI))
	}
	if len(s.roots) == 0 && p.RootURI != "" {
		s.roots = []string{document.Path(p.RootURI)}
	}
	s.roots = slices.DeleteFunc(s.roots, func(r string) bool { return r == "" })
	_ = json.Unmarshal(p.InitializationOptions, &s.settings) // settings that cannot be read are the defaults
	s.granted, _ = grantOf(s.settings.Trust)                 // another value grants nothing
	s.applyTrust()
	s.Session.Index.SetRoots(slices.Clone(s.roots))
	s.ready.Store(true)
	return map[string]any{
		"serverInfo": map[string]string{"name": "terrace", "version": s.Version},
		"capabilities": map[string]any{
			"positionEncoding":                s.encoding,
			"textDocumentSync":                map[string]any{"openClose": true, "change": 2, "save": true},
			"documentFormattingProvider":      !s.registersFormatting(),
			"documentRangeFormattingProvider": !s.registersFormatting(),
			"definitionProvider":              true,
			"referencesProvider":              true,
			"documentHighlightProvider":       true,
			"renameProvider":                  map[string]any{"prepareProvider": true},
			"hoverProvider":                   true,
			"completionProvider":              map[string]any{"triggerCharacters": []string{".", "\"", "("}},
			"signatureHelpProvider":           map[string]any{"triggerCharacters": []string{"(", ","}},
			"documentSymbolProvider":          true,
			"workspaceSymbolProvider":         true,
			"foldingRangeProvider":            true,
			"documentLinkProvider":            map[string]any{},
			"inlayHintProvider":               true,
			"codeLensProvider":                map[string]any{"resolveProvider": true},
			"codeActionProvider":              map[string]any{"codeActionKinds": []string{"quickfix", "refactor.rewrite"}},
			"executeCommandProvider":          map[string]any{"commands": []string{commandReferences, commandViewpoint, commandAffected, commandEffective, commandSchemas}},
			"diagnosticProvider":              map[string]any{"interFileDependencies": true, "workspaceDiagnostics": false},
			"semanticTokensProvider": map[string]any{
				"legend": map[string]any{"tokenTypes": tokenTypes, "tokenModifiers": []string{}}, "full": true, "range": true,
			},
			"workspace": map[string]any{
				"workspaceFolders":    map[string]any{"supported": true, "changeNotifications": true},
				"textDocumentContent": map[string]any{"schemes": []string{scheme}},
				"fileOperations":      map[string]any{"willRename": renameFilter, "didRename": renameFilter},
			},
		},
	}, nil
}

// initialized registers the files whose changes the client reports, and starts the index.
func (s *Server) initialized(context.Context, *struct{}) {
	go func() { // ends with the connection
		if s.Session.Index.Scan(s.ctx) == nil { // a request that needs the index repeats it
			s.recompute() // the units that stacks generate are known now
		}
	}()
	s.configure()
	if s.registersFormatting() {
		selector := []any{map[string]string{"scheme": "file", "pattern": "**/*.{tf,tofu,tfvars,hcl}"}}
		go func() { // ends with the connection
			for _, method := range []string{"textDocument/formatting", "textDocument/rangeFormatting"} {
				_ = s.register(method, map[string]any{"documentSelector": selector})
			}
		}()
	}
	if !s.client.Workspace.DidChangeWatchedFiles.DynamicRegistration {
		return
	}
	go func() { // ends with the connection
		watchers := []map[string]string{{"globPattern": "**/*.{tf,tofu,hcl,tfvars,json,yaml,yml}"}}
		if s.register("workspace/didChangeWatchedFiles", map[string]any{"watchers": watchers}) == nil { // otherwise requests look for changes more often
			s.Session.Index.Watched()
		}
	}()
}

// registersFormatting reports whether the client can learn which files the server formats. Otherwise, the server
// would be a second formatter of JSON files, and some editors then format none.
func (s *Server) registersFormatting() bool {
	return s.client.TextDocument.Formatting.DynamicRegistration && s.client.TextDocument.RangeFormatting.DynamicRegistration
}

// register registers a method with its options at the client.
func (s *Server) register(method string, options any) error {
	_, err := s.rpc.Callback(s.ctx, "client/registerCapability", map[string]any{"registrations": []any{
		map[string]any{"id": method, "method": method, "registerOptions": options},
	}})
	return err
}

func (s *Server) didOpen(_ context.Context, p *protocol.DidOpenTextDocumentParams) {
	d := p.TextDocument
	if path := s.path(d.URI); path != "" {
		s.Session.Files.Set(&workspace.Buffer{URI: d.URI, Path: path, Version: d.Version, Text: document.New([]byte(d.Text))})
		s.Session.Index.Changed([]string{path})
		s.outdated(path)
	}
}

func (s *Server) didChange(_ context.Context, p *protocol.DidChangeTextDocumentParams) {
	b := s.Session.Files.Document(p.TextDocument.URI)
	if b == nil {
		return
	}
	path := s.path(b.URI)
	s.Session.Files.Set(&workspace.Buffer{URI: b.URI, Path: path, Version: p.TextDocument.Version, Text: b.Text.Apply(p.ContentChanges, s.encoding)})
	s.outdated(path)
}

func (s *Server) didClose(ctx context.Context, p *protocol.DidCloseTextDocumentParams) {
	path := s.path(p.TextDocument.URI)
	s.Session.Files.Close(p.TextDocument.URI)
	if s.Session.Files.Buffer(path) != nil || s.path(p.TextDocument.URI) != document.Path(p.TextDocument.URI) {
		s.unpublish(ctx, p.TextDocument.URI)
	}
	s.mu.Lock()
	delete(s.ruled, path)
	s.mu.Unlock()
	s.Session.Index.Changed([]string{path})
	s.outdated(path)
}

func (s *Server) didSave(_ context.Context, p *protocol.DidSaveTextDocumentParams) {
	if s.Session.Saved() {
		s.recompute()
	}
	s.outdated(s.path(p.TextDocument.URI))
}

func (s *Server) didChangeFiles(_ context.Context, p *protocol.DidChangeWatchedFilesParams) {
	var paths []string
	for _, c := range p.Changes {
		if path := s.path(c.URI); path != "" {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		s.Session.Index.Invalidate()
	}
	s.Session.Index.Changed(paths)
	for _, path := range paths {
		s.outdated(path)
	}
}

func (s *Server) didChangeFolders(_ context.Context, p *protocol.DidChangeWorkspaceFoldersParams) {
	s.mu.Lock()
	for _, f := range p.Event.Removed {
		s.roots = slices.DeleteFunc(s.roots, func(r string) bool { return r == document.Path(f.URI) })
	}
	for _, f := range p.Event.Added {
		if path := document.Path(f.URI); path != "" {
			s.roots = append(s.roots, path)
		}
	}
	roots := slices.Clone(s.roots)
	s.mu.Unlock()
	s.Session.Index.SetRoots(roots)
	s.applyTrust()
	s.configure()
}

// inWorkspace reports whether a path is below a root of the workspace, and not part of a directory that
// init writes.
func (s *Server) inWorkspace(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.roots {
		if rest, ok := below(path, r); ok {
			return !slices.ContainsFunc(strings.Split(filepath.ToSlash(rest), "/"), func(p string) bool { return p == ".terraform" || p == ".terragrunt-cache" })
		}
	}
	return false
}

// path returns the path of a file with a URI, without the symbolic links to directories of the workspace, or "".
func (s *Server) path(uri string) string {
	if path := document.Path(uri); path != "" {
		return s.Session.Files.Real(path)
	}
	return ""
}

// uriOf returns the URI of a file: the one by which it is open, if it is.
func (s *Server) uriOf(path string) string {
	if b := s.Session.Files.Buffer(path); b != nil {
		return b.URI
	}
	return document.URI(path)
}

// open returns the path, the text and the names of a document.
func (s *Server) open(d protocol.TextDocumentIdentifier) (string, *document.Text, *index.File, error) {
	path := s.path(d.URI)
	if path == "" {
		return "", nil, nil, refuse("%s is not a file", d.URI)
	}
	return path, s.Session.Files.Text(path), s.Session.Index.File(path), nil
}

// location returns the location of a range of bytes in a file.
func (s *Server) location(path string, start, end int) protocol.Location {
	return protocol.Location{URI: s.uriOf(path), Range: s.Session.Files.Text(path).Range(start, end, s.encoding)}
}

// locationOf returns the location of a source range, whose path is absolute.
func (s *Server) locationOf(at source.Range) protocol.Location {
	return s.location(at.Filename, at.Start.Byte, at.End.Byte)
}
