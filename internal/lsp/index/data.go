package index

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/source"
	"go.yaml.in/yaml/v3"
)

// # Keys of data files
//
// A local value that decodes a file, local.x = yamldecode(file("x.yaml")), gives names to its keys:
// local.x.a.b is the key "key.a.b" of the file. Keys that contain a dot and keys in lists have no
// name.

// maxKeyDepth is the number of nested mappings whose keys are read.
const maxKeyDepth = 50

// keys adds the keys of a YAML or JSON file. JSON is read as YAML, which contains it.
func (f *File) keys(text []byte) {
	var doc yaml.Node
	if _, deep := source.TooDeep(f.Path, text); deep || yaml.Unmarshal(text, &doc) != nil {
		f.Broken = true
		return
	}
	lines := [][2]int{} // start and end of each line
	for at := 0; at <= len(text); {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			n = len(text) - at
		}
		lines = append(lines, [2]int{at, at + n})
		at += n + 1
	}
	var walk func(n *yaml.Node, prefix string, depth int)
	walk = func(n *yaml.Node, prefix string, depth int) {
		if n.Kind != yaml.MappingNode || depth > maxKeyDepth {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if k.Kind != yaml.ScalarNode || !hclsyntax.ValidIdentifier(k.Value) || k.Line < 1 || k.Line > len(lines) {
				continue
			}
			start, end := lines[k.Line-1][0], lines[k.Line-1][1]
			for c := 1; c < k.Column && start < end; c++ {
				_, size := utf8.DecodeRune(text[start:end])
				start += size
			}
			quote := text[start:min(start+1, end)]
			if string(quote) == `"` || string(quote) == "'" {
				start++
			}
			if !bytes.HasPrefix(text[start:], []byte(k.Value)) { // an escaped key
				continue
			}
			addr := prefix + "." + k.Value
			f.Names = append(f.Names, Occurrence{Addr: addr, Role: Declares, Start: start, End: start + len(k.Value), Line: k.Line})
			walk(v, addr, depth+1)
		}
	}
	for _, n := range doc.Content {
		walk(n, "key", 0)
	}
	f.Aliases = hasAlias(&doc, 0)
}

// hasAlias reports whether a part of a YAML document repeats another part.
func hasAlias(n *yaml.Node, depth int) bool {
	return n.Kind == yaml.AliasNode || depth < maxKeyDepth && slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return hasAlias(c, depth+1) })
}

// decoded adds the paths of the files that local values decode. The path of another local value in an override
// file is "", because that file's value replaces the others.
func (w *walker) decoded(body *hclsyntax.Body) {
	for _, b := range body.Blocks {
		if b.Type != "locals" {
			continue
		}
		for _, a := range b.Body.Attributes {
			if s := w.decodedPath(a.Expr, body, "local."+a.Name); s != "" || w.Override {
				w.Paths["local."+a.Name] = s
			}
		}
	}
}

// decodedPath returns the path of the file that the expression at an address decodes, or "".
func (w *walker) decodedPath(x hclsyntax.Expression, body *hclsyntax.Body, addr string) string {
	if wrap, ok := x.(*hclsyntax.TemplateWrapExpr); ok { // in JSON syntax
		x = wrap.Wrapped
	}
	decode, ok := x.(*hclsyntax.FunctionCallExpr)
	if !ok || decode.Name != "yamldecode" && decode.Name != "jsondecode" || len(decode.Args) != 1 {
		return ""
	}
	read, ok := decode.Args[0].(*hclsyntax.FunctionCallExpr)
	if !ok || read.Name != "file" || len(read.Args) != 1 {
		return ""
	}
	path := w.path(read.Args[0], body)
	if path != "" {
		w.keyed[read] = true
		w.link(read.Args[0], path, addr)
	}
	return path
}

// keyReference adds the keys that a reference to a local value names.
func (w *walker) keyReference(t hcl.Traversal, via string) {
	addr := []string{"key"}
	for i := 2; i < len(t); i++ {
		a, ok := attr(t, i)
		if !ok {
			return
		}
		addr = append(addr, a)
		w.add(Occurrence{Addr: strings.Join(addr, "."), Via: via, Part: part(t, i+1)}, name(t[i]))
	}
}
