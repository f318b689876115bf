package server

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creachadair/jrpc2"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// Edits of a document that was changed while they were computed are refused.
func TestEditsOfChangedDocument(t *testing.T) {
	dir := t.TempDir()
	d, who, err := workdir.Embedded(workdir.Embedding{Dir: dir, Environ: []string{"HOME=" + dir}, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Options: Options{Session: workspace.New(d, who)}}
	path := filepath.Join(dir, "main.tf")
	uri := document.URI(path)
	set := func(version int, text string) {
		s.Session.Files.Set(&workspace.Buffer{URI: uri, Path: path, Version: version, Text: document.New([]byte(text))})
	}
	changes := map[string][]protocol.TextEdit{uri: {{NewText: "x"}}}
	set(1, "a = 1\n")
	before := s.Session.Files.Changes()
	if e, err := s.workspaceEdit(changes, before); err != nil || len(e.Changes[uri]) != 1 {
		t.Errorf("without a change: %v, %v", e, err)
	}
	set(2, "b = 1\na = 1\n")
	if _, err := s.workspaceEdit(changes, before); jrpc2.ErrorCode(err) != codeContentModified || !strings.Contains(err.Error(), path) {
		t.Errorf("after a change: %v", err)
	}
	other := filepath.Join(dir, "other.tf")
	s.Session.Files.Set(&workspace.Buffer{URI: document.URI(other), Path: other, Version: 1, Text: document.New(nil)})
	if _, err := s.workspaceEdit(changes, s.Session.Files.Changes()-1); err != nil {
		t.Errorf("after the change of another document: %v", err)
	}
}
