package cliconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/source"
)

// parseJSON parses the JSON form into the same nodes, in the order of the text. An array of
// objects is a list; unfold takes its elements as blocks.
func parseJSON(src []byte, name string) (*node, error) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	d := &jsonReader{dec: json.NewDecoder(bytes.NewReader(src)), src: src, name: name}
	d.dec.UseNumber()
	tok, err := d.dec.Token()
	if err != nil {
		return nil, d.wrap(err)
	}
	out, err := d.value(tok, 0)
	if err != nil {
		return nil, d.wrap(err)
	}
	if _, err := d.dec.Token(); err != io.EOF {
		return nil, d.wrap(fmt.Errorf("there is more after the end of the object"))
	}
	return out, nil
}

type jsonReader struct {
	dec  *json.Decoder
	src  []byte
	name string

	pos  hcl.Pos // position up to which lines were counted
	seen int
}

// here returns the current position of the decoder. It counts lines from the previous position.
func (d *jsonReader) here() source.Range {
	if d.pos == (hcl.Pos{}) {
		d.pos = hcl.InitialPos
	}
	to := min(int(d.dec.InputOffset()), len(d.src))
	for ; d.seen < to; d.seen++ {
		d.pos.Byte++
		if d.pos.Column++; d.src[d.seen] == '\n' {
			d.pos.Line, d.pos.Column = d.pos.Line+1, 1
		}
	}
	return source.Range{Filename: d.name, Start: d.pos, End: d.pos}
}

func (d *jsonReader) wrap(err error) error {
	if se, ok := err.(*syntaxError); ok {
		return se
	}
	return &syntaxError{at: d.here(), msg: fmt.Sprintf("This is not valid JSON: %s.", err)}
}

func (d *jsonReader) value(tok json.Token, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested too deeply")
	}
	out := &node{at: d.here()}
	switch v := tok.(type) {
	case string:
		out.text = v
	case json.Number:
		out.kind, out.text = numberNode, v.String()
	case bool:
		out.kind, out.text = boolNode, fmt.Sprint(v)
	case nil:
		return nil, nil
	case json.Delim:
		return out, d.compound(v, out, depth)
	}
	return out, nil
}

func (d *jsonReader) compound(open json.Delim, out *node, depth int) error {
	out.kind = listNode
	if open == '{' {
		out.kind = objectNode
	}
	for {
		tok, err := d.dec.Token()
		if err != nil {
			return err
		}
		if tok == json.Delim('}') || tok == json.Delim(']') {
			return nil
		}
		it := item{at: d.here(), assign: true, isBlock: true}
		if out.kind == objectNode {
			it.keys = []string{tok.(string)}
			if tok, err = d.dec.Token(); err != nil {
				return err
			}
		}
		v, err := d.value(tok, depth+1)
		if err != nil {
			return err
		}
		if v == nil {
			continue
		}
		if out.kind == listNode {
			out.list = append(out.list, v)
			continue
		}
		it.value = v
		out.items = append(out.items, it)
	}
}
