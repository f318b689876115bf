package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/workdir"
	"golang.org/x/tools/txtar"
)

// client drives a server over a pipe.
type client struct {
	server map[string]any // its capabilities
	t      testing.TB
	dir    string
	rpc    *jrpc2.Client
	done   chan bool // receives the result of Serve
	stop   func()    // disconnects, and waits for the server to end

	mu       sync.Mutex
	pushed   map[string]protocol.PublishDiagnosticsParams // by name
	versions map[string]int
	messages []string // of window/showMessage
}

// start starts a server in a directory.
func start(t testing.TB, dir string, capabilities map[string]any) *client {
	t.Helper()
	return startWith(t, dir, capabilities, nil, nil)
}

// startWith starts a server with initialization options. answer returns the results of the requests of
// the server; nil answers all with null.
func startWith(t testing.TB, dir string, capabilities, options map[string]any, answer func(method string, params json.RawMessage) any) *client {
	t.Helper()
	return startServer(t, dir, capabilities, options, answer, func(*Options) {})
}

// fakeAffected returns the directory instead of comparing it.
func fakeAffected(_ context.Context, dir string, _ map[string][]byte) (string, error) {
	return dir, nil
}

// recordSchemas returns a function that fetches no schema, and stores what was required.
func recordSchemas(to *[]workspace.Requirement) func(context.Context, string, []workspace.Requirement) error {
	return func(_ context.Context, _ string, required []workspace.Requirement) error {
		*to = required
		return nil
	}
}

// startServer is startWith with a function that changes the options of the server.
func startServer(t testing.TB, dir string, capabilities, options map[string]any, answer func(method string, params json.RawMessage) any, set func(*Options)) *client {
	t.Helper()
	d, who, err := workdir.Embedded(workdir.Embedding{Dir: dir, Environ: []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	c := &client{t: t, dir: dir, done: make(chan bool, 1), pushed: map[string]protocol.PublishDiagnosticsParams{}, versions: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends when the client closes the pipe
		o := Options{Session: workspace.New(d, who), Version: "test"}
		set(&o)
		c.done <- Serve(ctx, o, toServer, fromServer)
		close(c.done)
		_ = fromServer.Close()
	}()
	c.rpc = jrpc2.NewClient(channel.LSP(toClient, fromClient), &jrpc2.ClientOptions{
		OnNotify: func(r *jrpc2.Request) {
			var m protocol.ShowMessageParams
			if r.Method() == "window/showMessage" && r.UnmarshalParams(&m) == nil {
				c.mu.Lock()
				c.messages = append(c.messages, m.Message)
				c.mu.Unlock()
			}
			var p protocol.PublishDiagnosticsParams
			if r.Method() == "textDocument/publishDiagnostics" && r.UnmarshalParams(&p) == nil {
				c.mu.Lock()
				c.pushed[c.name(p.URI)] = p
				c.mu.Unlock()
			}
		},
		OnCallback: func(_ context.Context, r *jrpc2.Request) (any, error) {
			if answer == nil {
				return nil, nil
			}
			var p json.RawMessage
			_ = r.UnmarshalParams(&p)
			return answer(r.Method(), p), nil
		},
	})
	c.stop = sync.OnceFunc(func() {
		_ = fromClient.Close()
		_ = c.rpc.Close()
		cancel()
		<-c.done
	})
	t.Cleanup(c.stop)
	var r struct{ Capabilities map[string]any }
	c.call("initialize", map[string]any{"rootUri": document.URI(dir), "capabilities": capabilities, "initializationOptions": options}, &r)
	c.server = r.Capabilities
	c.notify("initialized", map[string]any{})
	return c
}

// unpack writes the files of an archive to a new directory.
func unpack(t testing.TB, text string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse([]byte(text)).Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (c *client) uri(name string) string { return document.URI(filepath.Join(c.dir, name)) }

func (c *client) name(uri string) string {
	rel, err := filepath.Rel(c.dir, document.Path(uri))
	if err != nil {
		return uri
	}
	return filepath.ToSlash(rel)
}

func (c *client) try(method string, params, result any) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	rsp, err := c.rpc.Call(ctx, method, params)
	if err != nil {
		return err
	}
	if result == nil {
		return nil
	}
	return rsp.UnmarshalResult(result)
}

func (c *client) call(method string, params, result any) {
	c.t.Helper()
	if err := c.try(method, params, result); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

func (c *client) notify(method string, params any) {
	c.t.Helper()
	if err := c.rpc.Notify(c.t.Context(), method, params); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

// open opens a file with its text on disk, and returns the text.
func (c *client) open(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	c.opened(name, string(text))
	return string(text)
}

// opened opens a file with a text, which may not exist on disk.
func (c *client) opened(name, text string) {
	c.t.Helper()
	c.notify("textDocument/didOpen", protocol.DidOpenTextDocumentParams{TextDocument: protocol.TextDocumentItem{URI: c.uri(name), LanguageID: "terraform", Version: 1, Text: text}})
	c.versions[name] = 1
}

// edited returns a text after edits.
func edited(text string, edits []protocol.TextEdit) string {
	x := document.New([]byte(text))
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b protocol.TextEdit) int {
		return x.Offset(b.Range.Start, document.UTF16) - x.Offset(a.Range.Start, document.UTF16)
	})
	for _, e := range edits {
		start, end := x.Offset(e.Range.Start, document.UTF16), x.Offset(e.Range.End, document.UTF16)
		text = text[:start] + e.NewText + text[end:]
	}
	return text
}

// change replaces the text of an open file.
func (c *client) change(name, text string) {
	c.t.Helper()
	c.versions[name]++
	c.notify("textDocument/didChange", map[string]any{
		"textDocument": map[string]any{"uri": c.uri(name), "version": c.versions[name]}, "contentChanges": []any{map[string]any{"text": text}},
	})
}

// at returns the parameters for the position of a mark in the text of a file: the character behind the
// first occurrence of before.
func (c *client) at(name, before string) map[string]any {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	i := strings.Index(string(text), before)
	if i < 0 {
		c.t.Fatalf("%s does not contain %q", name, before)
	}
	return c.position(name, text, i+len(before))
}

func (c *client) position(name string, text []byte, offset int) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}, "position": document.New(text).Position(offset, document.UTF16)}
}

// places formats locations as "file:line:column text".
func (c *client) places(all []protocol.Location) []string {
	out := []string{}
	for _, l := range all {
		text, _ := os.ReadFile(document.Path(l.URI))
		x := document.New(text)
		start, end := x.Offset(l.Range.Start, document.UTF16), x.Offset(l.Range.End, document.UTF16)
		out = append(out, fmt.Sprintf("%s:%d %s", c.name(l.URI), l.Range.Start.Line+1, x.Bytes[start:end]))
	}
	slices.Sort(out)
	return out
}

// diagnostics requests the diagnostics of a file, as "line severity code message".
func (c *client) diagnostics(name string) []string {
	c.t.Helper()
	var r protocol.FullDocumentDiagnosticReport
	c.call("textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}, &r)
	return shown(r.Items)
}

func shown(all []protocol.Diagnostic) []string {
	out := []string{}
	for _, d := range all {
		line := fmt.Sprintf("%d %d %s %s", d.Range.Start.Line+1, d.Severity, d.Code, d.Message)
		for _, r := range d.RelatedInformation {
			line += fmt.Sprintf(" [%s:%d %s]", filepath.Base(r.Location.URI), r.Location.Range.Start.Line+1, r.Message)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// wait waits until the diagnostics that the server sent for a file satisfy ok.
func (c *client) wait(name string, ok func([]string) bool) {
	c.t.Helper()
	var last []string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		c.mu.Lock()
		p, have := c.pushed[name]
		c.mu.Unlock()
		if last = shown(p.Diagnostics); have && ok(last) {
			return
		}
	}
	c.t.Fatalf("the diagnostics of %s are %q", name, last)
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// apply applies a workspace edit to the files on disk.
func apply(t testing.TB, e *protocol.WorkspaceEdit) {
	t.Helper()
	for uri, edits := range e.Changes {
		path := document.Path(uri)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(edited(string(text), edits))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func asJSON(v any) string {
	out, _ := json.Marshal(v)
	return string(out)
}
