// Package front answers formatting requests in a process of its own, in front of the language server.
//
// A server that reads a workspace uses all processors, collects garbage and waits for memory. A formatting
// request that arrives in the same process meanwhile waits for up to tens of milliseconds, whatever its priority
// in the process is. The front is a process that almost always sleeps, so that the system runs it at once. It
// keeps the texts of the open documents, answers textDocument/formatting and textDocument/rangeFormatting, and
// passes all other messages on without a change.
//
// Main function: Relay. The one rule: the front answers only requests whose answer it knows to be that of the
// server. It passes on every other message, in the order in which messages arrive.
package front

import (
	"bytes"
	"encoding/json"
	"runtime"
	"sync"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/formatting"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// codeCanceled is the error code of a request that the client canceled.
const codeCanceled jrpc2.Code = -32800

// Relay relays the messages of a client and a server to each other, and answers formatting requests. It
// closes the server's end when the client disconnects. It returns when the server has disconnected and all
// messages of the server have been sent. A read from the client may continue then, because it cannot be
// interrupted.
func Relay(client, server channel.Channel) {
	newRelay(client, server).run()
}

func newRelay(client, server channel.Channel) *relay {
	return &relay{client: end{Channel: client}, server: end{Channel: server}, edits: edits, documents: map[string]*document.Text{}, pending: map[string]*request{}}
}

func (r *relay) run() {
	go func() { // ends with the client's connection
		for {
			m, err := r.client.Recv()
			if err != nil {
				_ = r.server.Close() // the server ends too
				return
			}
			if r.answers(m) {
				runtime.Gosched() // the answer continues on this thread; another one may have to wait for a processor
			} else {
				_ = r.server.send(m) // a server that has ended ends the relay
			}
		}
	}()
	for {
		m, err := r.server.Recv()
		if err != nil {
			return
		}
		r.learn(m)
		_ = r.client.send(m) // a client that has disconnected closes its other stream too
	}
}

// end is one end of the relay. Messages are sent one after the other.
type end struct {
	channel.Channel
	mu sync.Mutex
}

func (e *end) send(m []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Send(m)
}

// relay is the state of one connection.
type relay struct {
	client, server end
	edits          func(method, path string, t *document.Text, in protocol.Range, e document.Encoding) []protocol.TextEdit

	mu         sync.Mutex
	state      state
	initialize string // ID of the request initialize, in JSON; "" before it
	encoding   document.Encoding
	documents  map[string]*document.Text // open documents by path; the front knows the text of each
	pending    map[string]*request       // the requests that the front is answering, by ID in JSON
}

// state is the state of the protocol.
type state int

// The states of the protocol.
const (
	starting  state = iota // initialize is not answered yet
	following              // the front follows the changes of documents
	passing                // the front passes on all messages, because it may not know the documents
)

// request is a request that the front answers.
type request struct{ canceled bool }

// answers handles a message from the client. It reports whether the front answers the message. Otherwise, the
// server must receive it.
func (r *relay) answers(raw []byte) bool {
	requests, err := jrpc2.ParseRequests(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == passing || err != nil || len(requests) == 0 {
		return false
	}
	m := requests[0]
	switch {
	case m.Batch: // the Language Server Protocol has no batches
		r.state = passing
	case m.Error != nil: // the server refuses the message
	case m.Method == "initialize" && r.initialize == "":
		r.initialize = m.ID
	case m.Method == "$/cancelRequest":
		return r.cancel(m.Params)
	case m.Method == "textDocument/didOpen" || m.Method == "textDocument/didChange" || m.Method == "textDocument/didClose":
		if r.state == starting { // the server may ignore this message or not
			r.state = passing
			return false
		}
		r.follow(m.Method, m.Params)
	case m.Method == "textDocument/formatting" || m.Method == "textDocument/rangeFormatting":
		return r.state == following && m.ID != "" && r.format(m, raw)
	}
	return false
}

// follow changes the documents as the server does. A message with invalid parameters changes nothing.
func (r *relay) follow(method string, params json.RawMessage) {
	switch method {
	case "textDocument/didOpen":
		var p protocol.DidOpenTextDocumentParams
		if json.Unmarshal(params, &p) != nil {
			return
		}
		if path := document.Path(p.TextDocument.URI); path != "" {
			r.documents[path] = document.New([]byte(p.TextDocument.Text))
		}
	case "textDocument/didChange":
		var p protocol.DidChangeTextDocumentParams
		if json.Unmarshal(params, &p) != nil {
			return
		}
		path := document.Path(p.TextDocument.URI)
		if t := r.documents[path]; t != nil {
			r.documents[path] = t.Apply(p.ContentChanges, r.encoding)
		}
	case "textDocument/didClose":
		var p protocol.DidCloseTextDocumentParams
		if json.Unmarshal(params, &p) == nil {
			delete(r.documents, document.Path(p.TextDocument.URI))
		}
	}
}

// cancel cancels a request that the front is answering. It returns false for other requests.
func (r *relay) cancel(params json.RawMessage) bool {
	var p struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	q := r.pending[string(p.ID)]
	if q != nil {
		q.canceled = true
	}
	return q != nil
}

// format answers a request for formatting in the background. It returns false if the server must answer. raw
// is the whole message, which is valid until format returns.
func (r *relay) format(m *jrpc2.ParsedRequest, raw []byte) bool {
	var p protocol.DocumentRangeFormattingParams // has the parameters of both methods
	if json.Unmarshal(m.Params, &p) != nil {
		return false
	}
	path := document.Path(p.TextDocument.URI)
	text, encoding := r.documents[path], r.encoding
	if text == nil || r.pending[m.ID] != nil {
		return false
	}
	q, message := &request{}, bytes.Clone(raw)
	r.pending[m.ID] = q
	go func() { // ends with the answer
		result, ok := r.try(m.Method, path, text, p.Range, encoding)
		r.mu.Lock()
		delete(r.pending, m.ID)
		canceled := q.canceled
		r.mu.Unlock()
		if !ok {
			_ = r.server.send(message) // the server answers with the details of the bug
			return
		}
		answer := struct {
			Version string              `json:"jsonrpc"`
			ID      json.RawMessage     `json:"id"`
			Result  []protocol.TextEdit `json:"result,omitzero"`
			Error   *jrpc2.Error        `json:"error,omitempty"`
		}{"2.0", json.RawMessage(m.ID), result, nil}
		if canceled {
			answer.Result, answer.Error = nil, &jrpc2.Error{Code: codeCanceled, Message: "the request was canceled"}
		}
		if out, err := json.Marshal(answer); err == nil {
			_ = r.client.send(out) // a client that has disconnected needs no answer
		}
	}()
	return true
}

// try returns the answer to a request for formatting. ok is false if there is a bug in the formatter.
func (r *relay) try(method, path string, t *document.Text, in protocol.Range, e document.Encoding) (out []protocol.TextEdit, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return r.edits(method, path, t, in, e), true
}

func edits(method, path string, t *document.Text, in protocol.Range, e document.Encoding) []protocol.TextEdit {
	if method == "textDocument/formatting" {
		return formatting.Document(path, t, e)
	}
	return formatting.Range(path, t, in, e)
}

// learn reads the encoding of positions from the server's answer to initialize. From then on, the front answers
// requests.
func (r *relay) learn(raw []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != starting || r.initialize == "" {
		return
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Result *struct {
			Capabilities struct {
				PositionEncoding document.Encoding `json:"positionEncoding"`
			} `json:"capabilities"`
		} `json:"result"`
	}
	if json.Unmarshal(raw, &m) == nil && m.Method == "" && m.Result != nil && string(m.ID) == r.initialize {
		r.encoding, r.state = m.Result.Capabilities.PositionEncoding, following
	}
}
