package server

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/source"
)

// # Sources and versions
//
// Sources and versions of modules and providers come from what earlier commands have installed or locked.

// installed returns the modules and providers that are installed in the workspace, or nil if the request
// was canceled.
func (w *completer) installed() *workspace.Installed {
	in, err := w.s.Session.Installed(w.ctx, filepath.Dir(w.path))
	if err != nil {
		return nil
	}
	return in
}

// versions adds versions, newest first.
func (w *completer) versions(all []string) {
	prefix := w.cursor.prefix
	number := prefix[len(strings.TrimRight(prefix, "0123456789.")):] // behind an operator
	at := w.text.Range(w.at-len(number), w.at, w.s.encoding)
	for i, v := range all {
		item := w.add(v, "", protocol.CompletionItemKindConstant, false)
		item.SortText, item.TextEdit = fmt.Sprintf("%04d", i), &protocol.TextEdit{Range: at, NewText: v}
	}
}

// moduleSources adds the sources of modules that are not local paths, if the text at the cursor is not one.
func (w *completer) moduleSources() {
	if prefix := w.cursor.prefix; prefix != "" && (prefix[0] == '.' || prefix[0] == '/') {
		return
	}
	in := w.installed()
	if in == nil {
		return
	}
	for _, address := range in.ModuleSources() {
		registry := !strings.Contains(address, ":") // unit files have the scheme tfr for registries
		if ofModule := w.file.Kind == index.Module; registry && !ofModule || ofModule && strings.HasPrefix(address, "tfr:") {
			continue
		}
		if source.HideCredentials(address) == address {
			w.replacing(address)
		}
	}
}

// replacing adds an item that replaces the text of the string before the cursor. Editors would otherwise
// replace only the last word of an address.
func (w *completer) replacing(label string) {
	i := w.add(label, "", protocol.CompletionItemKindModule, false)
	at := w.text.Range(w.at-len(w.cursor.prefix), w.at, w.s.encoding)
	i.TextEdit = &protocol.TextEdit{Range: at, NewText: label}
}

// inRequired reports whether the cursor is in the object of a provider in required_providers.
func (w *completer) inRequired() bool {
	b := w.cursor.blocks
	return len(b) == 3 && b[0].typ == "terraform" && b[1].typ == "required_providers" && b[2].object
}

// requiredProvider adds the sources or versions of a provider in required_providers.
func (w *completer) requiredProvider() {
	in := w.installed()
	if in == nil {
		return
	}
	if w.cursor.name == "source" {
		for _, address := range in.Providers() {
			w.replacing(address)
		}
		return
	}
	provider := addr.DefaultProvider(w.cursor.blocks[2].typ)
	if address := w.sourceBeside(); address != "" {
		p, err := addr.ParseProvider(address)
		if err != nil {
			return
		}
		provider = p
	}
	w.versions(in.ProviderVersions(provider))
}

var sourceArgument = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bsource\s*=\s*"([^"$]*)"`) })

// sourceBeside returns the source in the block or object around the cursor, or "".
func (w *completer) sourceBeside() string {
	start := w.cursor.blocks[len(w.cursor.blocks)-1].start
	rest := w.text.Bytes[start:]
	if end := bytes.IndexByte(rest[w.at-start:], '}'); end >= 0 {
		rest = rest[:w.at-start+end]
	}
	if m := sourceArgument().FindSubmatch(rest); m != nil {
		return string(m[1])
	}
	return ""
}
