package planhtml

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/digraph"
)

// files contains the frame, the style and the script of a page.
//
//go:embed parts
var files embed.FS

// scripts lists the parts of the script, in order.
var scripts = []string{"data.js", "find.js", "map.js", "diff.js", "panel.js", "list.js", "keys.js"}

// Write writes the page.
func Write(w io.Writer, p *Page) error {
	doc, err := encode(p)
	if err != nil {
		return err
	}
	frame, err := files.ReadFile("parts/frame.html")
	if err != nil {
		return err
	}
	style, err := files.ReadFile("parts/page.css")
	if err != nil {
		return err
	}
	script, err := script()
	if err != nil {
		return err
	}
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '" + digest(style) + "'; script-src '" + digest(script) + "'"
	// The inserted text is not searched for slots. encoding/json escapes <, > and &, so the
	// data cannot end its element.
	slots := map[string][]byte{
		"title": []byte(html.EscapeString(digraph.Clean(p.Title))), "policy": []byte(policy), "style": style, "script": script,
	}
	for rest, found := string(frame), true; found; {
		var text, name string
		text, rest, found = strings.Cut(rest, "{{")
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		name, rest, _ = strings.Cut(rest, "}}")
		if name == "data" {
			err = doc.write(w)
		} else {
			_, err = w.Write(slots[name])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func script() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("(() => {\n\"use strict\";\n")
	for _, name := range scripts {
		text, err := files.ReadFile("parts/" + name)
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	b.WriteString("})();")
	return b.Bytes(), nil
}

// digest returns the digest of a text for the page's policy.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
