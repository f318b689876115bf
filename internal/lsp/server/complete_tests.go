package server

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
)

// test adds the completions of a file with tests in native syntax.
func (w *completer) test() {
	c := &w.cursor
	blocks := c.block()
	switch {
	case c.quoted && c.name == "source":
		w.paths(c.prefix)
	case c.quoted:
	case c.value:
		w.testValue(blocks, c.name)
	case len(c.blocks) > 0 && c.blocks[len(c.blocks)-1].object:
	default:
		w.testNames(blocks)
	}
}

// testNames adds the arguments and blocks inside blocks of a test.
func (w *completer) testNames(blocks []enclosing) {
	block := ""
	if len(blocks) > 0 {
		block = blocks[len(blocks)-1].typ
	} else if index.IsMocks(w.path) {
		block = "mock_provider"
	}
	switch {
	case block == "variables":
		w.variables(w.testedBy(blocks))
		return
	case index.IsQueries(w.path):
		if block == "" {
			w.blockItem("list", "", 2, false)
			w.blockItem("provider", "", 1, false)
			w.blockItem("variable", "", 1, false)
			w.blockItem("locals", "", 0, false)
		}
		w.language(block)
		return
	case block == "variable":
		w.language(block)
	}
	s := testfile.Schema(block)
	if s == nil {
		return
	}
	for _, a := range s.Attributes {
		if len(blocks) > 0 { // a file with mocks has no arguments
			w.argument(a.Name, "", "", a.Required)
		}
	}
	for _, b := range s.Blocks {
		w.blockItem(b.Type, "", len(b.LabelNames), false)
	}
}

// testValue adds what the value of an argument of a test may be.
func (w *completer) testValue(blocks []enclosing, argument string) {
	steps := strings.Split(w.cursor.text, ".")
	switch {
	case len(steps) > 1:
	case argument == "command" || argument == "override_during":
		w.add("plan", "", protocol.CompletionItemKindKeyword, false)
		w.add("apply", "", protocol.CompletionItemKindKeyword, false)
		return
	case argument == "mode":
		w.add("normal", "", protocol.CompletionItemKindKeyword, false)
		w.add("refresh-only", "", protocol.CompletionItemKindKeyword, false)
		return
	default:
		w.add("run", "", protocol.CompletionItemKindKeyword, false)
		w.add("output", "", protocol.CompletionItemKindKeyword, false)
	}
	switch root := steps[0]; {
	case root == "run" && len(steps) == 2:
		w.declared(workspace.Symbol{Scope: w.path}, "run.")
	case root == "run" && len(steps) == 3:
		w.declared(workspace.Symbol{Scope: w.moduleOfRun(steps[1])}, "output.")
	case root == "output" && len(steps) == 2:
		w.declared(workspace.Symbol{Scope: w.testedBy(blocks)}, "output.")
	default:
		w.references(w.testedBy(blocks))
	}
}

// testedBy returns the directory of the module to which names inside blocks of a test refer.
func (w *completer) testedBy(blocks []enclosing) string {
	if len(blocks) > 0 && blocks[0].typ == "run" && len(blocks[0].labels) == 1 {
		return w.moduleOfRun(blocks[0].labels[0])
	}
	return w.s.Session.Index.Tested(w.file)
}

// moduleOfRun returns the directory of the module that a run is about.
func (w *completer) moduleOfRun(name string) string {
	if to := w.target("run." + name); to != "" {
		return to
	}
	return w.s.Session.Index.Tested(w.file)
}

// jsonTest adds the keys at a path in a file with tests.
func (w *completer) jsonTest(path []string) {
	var blocks []enclosing
	for i := 0; i < len(path); i++ {
		block := ""
		if len(blocks) > 0 {
			block = blocks[len(blocks)-1].typ
		} else if index.IsMocks(w.path) {
			block = "mock_provider"
		}
		s := testfile.Schema(block)
		if s == nil {
			return
		}
		at := slices.IndexFunc(s.Blocks, func(b hcl.BlockHeaderSchema) bool { return b.Type == path[i] })
		if at < 0 {
			return // the value of an argument
		}
		e := enclosing{typ: path[i]}
		if n := len(s.Blocks[at].LabelNames); n > 0 {
			if i += n; i >= len(path) {
				return // at a label
			}
			e.labels = path[i : i+1]
		}
		blocks = append(blocks, e)
	}
	w.testNames(blocks)
}
