package server

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/unit/syntax"
)

// # Completion in JSON syntax
//
// The text at the cursor usually has a syntax error, so that the objects around the cursor are found in
// the text before it.

// jsonCursor describes the JSON text before the cursor.
type jsonCursor struct {
	path   []string // the keys of the objects around the cursor, outermost first, with that of the value
	key    bool     // at a key, and not at a value
	quoted bool     // inside a string
	text   string   // with quoted: the string before the cursor, with its escapes
}

func jsonCursorAt(text []byte) (c jsonCursor) {
	type frame struct {
		object, key bool
		name        string
	}
	stack := []frame{}
	top := func() *frame {
		if len(stack) == 0 {
			return &frame{}
		}
		return &stack[len(stack)-1]
	}
	for i := 0; i < len(text) && !c.quoted; i++ {
		switch text[i] {
		case '{':
			stack = append(stack, frame{object: true, key: true})
		case '[':
			stack = append(stack, frame{})
		case '}', ']':
			stack = stack[:max(len(stack)-1, 0)]
		case ',':
			top().key, top().name = top().object, ""
		case ':':
			top().key = false
		case '"':
			start := i + 1
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if i >= len(text) {
				c.quoted, c.text = true, string(text[start:])
			} else if top().key {
				top().name = string(text[start:i])
			}
		}
	}
	c.key = len(stack) > 0 && top().key
	for i, f := range stack {
		if f.object && f.name != "" && (i < len(stack)-1 || !c.key) {
			c.path = append(c.path, f.name)
		}
	}
	return c
}

// json adds the completions of a file in JSON syntax.
func (w *completer) json() {
	c := jsonCursorAt(w.text.Bytes[:w.at])
	dir := filepath.Dir(w.path)
	if !c.key {
		if c.quoted {
			w.jsonValue(dir, c)
		}
		return
	}
	switch w.file.Kind {
	case index.Values:
		if len(c.path) == 0 {
			w.variables(dir)
		}
	case index.JSON:
		w.jsonModule(dir, c.path)
	case index.Test:
		w.jsonTest(c.path)
	default:
		w.unitNames(jsonBlocksOf(c.path))
	}
	for i := range w.items {
		item := &w.items[i]
		item.InsertTextFormat = 0
		if item.InsertText = strconv.Quote(item.Label) + ": "; c.quoted {
			item.InsertText = item.Label
		}
	}
}

// jsonValue adds what a string may continue with: the references of a template, or a path.
func (w *completer) jsonValue(dir string, c jsonCursor) {
	last := ""
	if len(c.path) > 0 {
		last = c.path[len(c.path)-1]
	}
	open := strings.LastIndex(c.text, "${")
	switch {
	case open >= 0 && !strings.Contains(c.text[open:], "}"):
		w.cursor = cursor{value: true, text: unfinished().FindString(c.text[open+2:])}
	case slices.Contains([]string{"depends_on", "provider", "from", "to", "ignore_changes", "replace_triggered_by"}, last) && w.file.Kind == index.JSON:
		w.cursor = cursor{value: true, text: unfinished().FindString(c.text)}
	case slices.Contains([]string{"target", "replace", "expect_failures"}, last) && w.file.Kind == index.Test:
		w.cursor = cursor{value: true, text: unfinished().FindString(c.text)}
	case (last == "command" || last == "override_during") && w.file.Kind == index.Test:
		w.testValue(nil, last)
		return
	case last == "source" || last == "config_path" || last == "path":
		w.paths(c.text)
		return
	default:
		return
	}
	switch w.file.Kind {
	case index.JSON:
		w.references(dir)
	case index.Test:
		var blocks []enclosing
		if len(c.path) > 1 {
			blocks = []enclosing{{typ: c.path[0], labels: c.path[1:2]}}
		}
		w.testValue(blocks, "")
	default:
		w.unitReferences()
	}
}

// jsonModule adds the keys at a path in a file of a module.
func (w *completer) jsonModule(dir string, path []string) {
	if len(path) == 0 {
		for name, labels := range moduleBlocks() {
			w.blockItem(name, "", labels, false)
		}
		return
	}
	labels, ok := moduleBlocks()[path[0]]
	switch {
	case !ok:
	case len(path) > labels:
		blocks := []enclosing{{typ: path[0], labels: path[1 : 1+labels]}}
		for _, name := range path[1+labels:] {
			blocks = append(blocks, enclosing{typ: name})
		}
		w.inBlock(dir, blocks)
	case len(path) == 1 && labels == 2:
		w.typesOf(path[0])
	}
}

// jsonBlocksOf returns the blocks of a unit or stack file around a path of keys.
func jsonBlocksOf(path []string) (out []enclosing) {
	spec := syntax.Language().Unit
	stack := syntax.Language().Stack
	for i := 0; i < len(path); i++ {
		e := enclosing{typ: path[i], object: true}
		var next *syntax.BlockSpec
		if spec != nil {
			next = spec.Block(path[i])
		}
		if next == nil && len(out) == 0 {
			next = stack.Block(path[i])
		}
		if next != nil {
			e.object = false
			if next.Label == syntax.OneLabel {
				i++
				if i == len(path) {
					return nil // at a label
				}
				e.labels = []string{path[i]}
			}
		}
		spec = next
		out = append(out, e)
	}
	return out
}

// movedText returns the edit that adds a moved block to a file in JSON syntax. ok is false if the text
// cannot be parsed.
func (s *Server) movedText(path, from, to string) (e protocol.TextEdit, ok bool) {
	text := s.Session.Files.Text(path)
	root, broken := index.ParseJSON(text.Bytes)
	if root == nil || broken {
		return e, false
	}
	at := func(offset int, insert string) (protocol.TextEdit, bool) {
		return protocol.TextEdit{Range: text.Range(offset, offset, s.encoding), NewText: insert}, true
	}
	block := `{"from": ` + strconv.Quote(from) + `, "to": ` + strconv.Quote(to) + `}`
	switch {
	case root.Type == '[' && len(root.Items) > 0:
		return at(root.Items[len(root.Items)-1].End, `, {"moved": `+block+`}`)
	case root.Type != '{' || len(root.Members) == 0:
		return e, false
	}
	for _, m := range root.Members {
		switch {
		case m.Key != "moved":
		case m.Value.Type == '[' && len(m.Value.Items) > 0:
			return at(m.Value.Items[len(m.Value.Items)-1].End, ",\n    "+block)
		case m.Value.Type == '[':
			return at(m.Value.Start+1, block)
		default:
			old := string(text.Bytes[m.Value.Start:m.Value.End])
			return protocol.TextEdit{Range: text.Range(m.Value.Start, m.Value.End, s.encoding), NewText: "[" + old + ", " + block + "]"}, true
		}
	}
	return at(root.Members[len(root.Members)-1].Value.End, ",\n  \"moved\": ["+block+"]")
}
