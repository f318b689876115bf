package view

import (
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"
)

// Strings that contain a JSON object or array are compared by their parts and written as a
// call of jsonencode. Numbers in them keep their spelling.

// literal is the type of a number in JSON text. Its value is the spelling.
var literal = sync.OnceValue(func() cty.Type {
	return cty.CapsuleWithOps("number", reflect.TypeFor[string](), &cty.CapsuleOps{
		RawEquals: func(a, b any) bool { return *a.(*string) == *b.(*string) },
	})
})

// maxJSON is the size of the longest string that is parsed as JSON, in bytes.
const maxJSON = 4 << 20

// parseJSON parses a JSON object or array. ok is false for any other text.
func parseJSON(s string) (v cty.Value, ok bool) {
	if len(s) < 2 || len(s) > maxJSON || s[0] != '{' && s[0] != '[' {
		return cty.NilVal, false
	}
	if end := strings.TrimRight(s, " \t\r\n"); end[len(end)-1] != s[0]+2 {
		return cty.NilVal, false
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var x any
	if d.Decode(&x) != nil {
		return cty.NilVal, false
	}
	if _, err := d.Token(); err != io.EOF {
		return cty.NilVal, false
	}
	return fromJSON(x), true
}

func fromJSON(x any) cty.Value {
	switch x := x.(type) {
	case string:
		return cty.StringVal(x)
	case bool:
		return cty.BoolVal(x)
	case json.Number:
		s := string(x)
		return cty.CapsuleVal(literal(), &s)
	case []any:
		vs := make([]cty.Value, len(x))
		for i, e := range x {
			vs[i] = fromJSON(e)
		}
		return cty.TupleVal(vs)
	case map[string]any:
		vs := make(map[string]cty.Value, len(x))
		for name, e := range x {
			vs[name] = fromJSON(e)
		}
		return cty.ObjectVal(vs)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

// json compares strings of which at least one contains JSON. It returns nil if none does. n is
// the node from the comparison as plain strings.
func (d *differ) json(n *node, b, a string, bIs, aIs bool) *node {
	before, bJSON := cty.NilVal, false
	if bIs {
		before, bJSON = parseJSON(b)
	}
	after, aJSON := cty.NilVal, false
	if aIs {
		after, aJSON = parseJSON(a)
	}
	if !bJSON && !aJSON {
		return nil
	}
	if bJSON && n.after == cty.NilVal || aJSON && n.before == cty.NilVal || bJSON && aJSON {
		n.kind = encoded
		n.inner = d.dynamic(pair{before: before, after: after})
		return n
	}
	n.kind = converted
	n.inner, n.other = d.primitive(pair{before: n.before}), d.primitive(pair{after: n.after})
	return n
}
