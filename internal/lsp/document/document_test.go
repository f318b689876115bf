package document

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

func TestPositions(t *testing.T) {
	text := New([]byte("aé😀b\r\nx\n"))
	for _, c := range []struct {
		e      Encoding
		offset int
		want   string
	}{
		{UTF8, 7, "0:7"}, {UTF16, 7, "0:4"}, {UTF32, 7, "0:3"},
		{UTF16, 3, "0:2"}, {UTF8, 10, "1:0"}, {UTF16, 11, "1:1"}, {UTF16, 12, "2:0"}, {UTF16, 99, "2:0"},
	} {
		p := text.Position(c.offset, c.e)
		if got := fmt.Sprintf("%d:%d", p.Line, p.Character); got != c.want {
			t.Errorf("offset %d in %s is %s, want %s", c.offset, c.e, got, c.want)
		}
		if back := text.Offset(p, c.e); back != min(c.offset, len(text.Bytes)) {
			t.Errorf("position %v in %s is offset %d, want %d", p, c.e, back, c.offset)
		}
	}
	for _, c := range []struct {
		e    Encoding
		p    protocol.Position
		want int
	}{
		{UTF16, protocol.Position{Line: 0, Character: 3}, 3},  // inside a surrogate pair
		{UTF8, protocol.Position{Line: 0, Character: 2}, 1},   // inside a character
		{UTF16, protocol.Position{Line: 0, Character: 99}, 8}, // the line break is not part of the line
		{UTF16, protocol.Position{Line: 9}, 12},
	} {
		if got := text.Offset(c.p, c.e); got != c.want {
			t.Errorf("position %v in %s is offset %d, want %d", c.p, c.e, got, c.want)
		}
	}
}

// Edits that are applied to a text result in the other text, in each encoding.
func TestEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []byte {
		var b bytes.Buffer
		for range r.IntN(6) {
			b.WriteString([]string{"a\n", "é😀\n", "  b = 1\n", "\n", "c"}[r.IntN(5)])
		}
		return b.Bytes()
	}
	for range 2000 {
		from, to := random(), random()
		for _, e := range []Encoding{UTF8, UTF16, UTF32} {
			x := New(from)
			edits := x.Edits(to, e)
			var changes []protocol.TextDocumentContentChange
			for i := len(edits) - 1; i >= 0; i-- { // from the end, so that earlier ranges stay valid
				changes = append(changes, protocol.TextDocumentContentChange{Range: &edits[i].Range, Text: edits[i].NewText})
			}
			if got := x.Apply(changes, e); !bytes.Equal(got.Bytes, to) {
				t.Fatalf("%q to %q by %v: %q", from, to, edits, got.Bytes)
			}
		}
	}
}

func TestURI(t *testing.T) {
	for _, path := range []string{"/a/b.tf", "/a b/c#?%.tf", "/é"} {
		if got := Path(URI(path)); got != path {
			t.Errorf("%s is %s, and back %s", path, URI(path), got)
		}
	}
	for _, x := range []struct {
		uri, path string
		windows   bool
	}{
		{"file://localhost/a/b.tf", "/a/b.tf", false},
		{"file:///a%20b/100%25.tf", "/a b/100%.tf", false},
		{"file:///c%3A/a%20b.tf", "C:/a b.tf", true},
		{"file:///C:/a.tf", "C:/a.tf", true},
		{"file://server/share/a.tf", "//server/share/a.tf", true},
	} {
		if got := pathOf(x.uri, x.windows); got != x.path {
			t.Errorf("%s is the path %s, not %s", x.uri, got, x.path)
		}
	}
	if got := URI("//server/share/a b.tf"); got != "file://server/share/a%20b.tf" {
		t.Errorf("the URI of a path of a server is %s", got)
	}
	for _, uri := range []string{"untitled:x", "http://x/y", "::", "file://server/share/a.tf"} {
		if runtime.GOOS == "windows" && strings.HasPrefix(uri, "file:") {
			continue
		}
		if got := Path(uri); got != "" {
			t.Errorf("%s is the path %s", uri, got)
		}
	}
	if got := Path("file:///a/../b"); !strings.HasSuffix(got, "b") || strings.Contains(got, "..") {
		t.Errorf("the path is not clean: %s", got)
	}
}
