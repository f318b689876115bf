package diag

import (
	"encoding/json"
	"strings"

	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A JSON converts messages to the objects in `validate -json` and in streams of `-json` output.
// It is safe for concurrent use.
//
// The form is that of OpenTofu 1.12 with the additional properties code and notes.
type JSON struct {
	Set        *source.Set                       // source of snippets; nil means no snippets
	Difference func(*Difference) json.RawMessage // the JSON form of a difference; nil omits differences
	Names      Names                             // the program's names in messages

	parsed parsed
}

// An Object is the JSON form of a message.
type Object struct {
	Severity string         `json:"severity"`
	Code     string         `json:"code,omitempty"`
	Summary  string         `json:"summary"`
	Detail   string         `json:"detail"`
	Address  string         `json:"address,omitempty"`
	Range    *ObjectRange   `json:"range,omitempty"`
	Snippet  *ObjectSnippet `json:"snippet,omitempty"`
	Notes    []ObjectNote   `json:"notes,omitempty"`

	Difference json.RawMessage `json:"difference,omitempty"`
}

// An ObjectRange is a source range: lines and columns from 1, bytes from 0.
type ObjectRange struct {
	Filename string    `json:"filename"`
	Start    ObjectPos `json:"start"`
	End      ObjectPos `json:"end"`
}

// An ObjectPos is one position.
type ObjectPos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// An ObjectSnippet is the source around a range.
type ObjectSnippet struct {
	Context              *string       `json:"context"` // null if there is none
	Code                 string        `json:"code"`
	StartLine            int           `json:"start_line"`
	HighlightStartOffset int           `json:"highlight_start_offset"`
	HighlightEndOffset   int           `json:"highlight_end_offset"`
	Values               []ObjectValue `json:"values"`
	FunctionCall         *ObjectCall   `json:"function_call,omitempty"`
}

// An ObjectValue is one value in a failed expression.
type ObjectValue struct {
	Traversal string `json:"traversal"`
	Statement string `json:"statement"`
}

// An ObjectNote is a note with its position, if it has one.
type ObjectNote struct {
	Text    string         `json:"text"`
	Range   *ObjectRange   `json:"range,omitempty"`
	Snippet *ObjectSnippet `json:"snippet,omitempty"`
}

// An ObjectCall is the failed function call.
type ObjectCall struct {
	CalledAs  string           `json:"called_as"`
	Signature *ObjectSignature `json:"signature,omitempty"`
}

// An ObjectSignature is the signature of a function.
type ObjectSignature struct {
	Name       string        `json:"name"`
	Params     []ObjectParam `json:"params"`
	Variadic   *ObjectParam  `json:"variadic_param,omitempty"`
	ReturnType cty.Type      `json:"return_type"`
}

// An ObjectParam is a parameter of a function.
type ObjectParam struct {
	Name       string   `json:"name"`
	IsNullable bool     `json:"is_nullable,omitempty"`
	Type       cty.Type `json:"type"`
}

// Objects converts a list. The result is never nil, so that an empty list becomes [].
func (j *JSON) Objects(ds List) []*Object {
	out := make([]*Object, len(ds))
	for i, m := range ds {
		out[i] = j.Object(m)
	}
	return out
}

// Object converts one message.
func (j *JSON) Object(m *Message) *Object {
	names := j.Names.in(m)
	o := &Object{Severity: m.Severity.String(), Code: m.CodeName(), Summary: names.Text(source.HideCredentials(m.Summary)), Detail: names.Text(source.HideCredentials(m.Detail)), Address: m.Address}
	if m.At != nil {
		o.Range = objectRange(*m.At)
		var values bool
		if o.Snippet, values = j.snippet(m.At, m.Context, m.Address != ""); o.Snippet != nil {
			for _, line := range m.Values {
				if !values {
					break
				}
				name, statement := splitValue(line)
				o.Snippet.Values = append(o.Snippet.Values, ObjectValue{name, strings.TrimPrefix(statement, " ")})
			}
			o.Snippet.FunctionCall = objectCall(m.Call)
		}
	}
	if m.Diff != nil && j.Difference != nil {
		o.Difference = j.Difference(m.Diff)
	}
	for _, n := range m.notes(j.Set) {
		note := ObjectNote{Text: names.Text(n.Text)}
		if n.At != nil {
			note.Range = objectRange(*n.At)
			note.Snippet, _ = j.snippet(n.At, nil, false)
		}
		o.Notes = append(o.Notes, note)
	}
	return o
}

// objectRange extends an empty range to one character, since editors underline the range.
func objectRange(at source.Range) *ObjectRange {
	r := &ObjectRange{
		Filename: at.Filename,
		Start:    ObjectPos{at.Start.Line, at.Start.Column, at.Start.Byte},
		End:      ObjectPos{at.End.Line, at.End.Column, at.End.Byte},
	}
	if r.Start == r.End {
		r.End.Column++
		r.End.Byte++
	}
	return r
}

// snippet returns the source around a range, and whether values of references in it may be
// shown.
func (j *JSON) snippet(at, context *source.Range, object bool) (*ObjectSnippet, bool) {
	s := j.parsed.snippet(j.Set, at, context, object)
	if s == nil || s.hidden {
		return nil, false
	}
	o := &ObjectSnippet{
		Code:                 s.code(),
		StartLine:            s.first,
		HighlightStartOffset: s.start,
		HighlightEndOffset:   s.end,
		Values:               []ObjectValue{},
	}
	if s.context != "" {
		o.Context = &s.context
	}
	return o, !s.bare
}

func objectCall(c *Call) *ObjectCall {
	if c == nil {
		return nil
	}
	o := &ObjectCall{CalledAs: c.Name}
	if !c.Known {
		return o
	}
	name := c.Name[strings.LastIndex(c.Name, "::")+1:]
	sig := &ObjectSignature{Name: strings.TrimPrefix(name, ":"), Params: []ObjectParam{}, ReturnType: written(c.Returns)}
	for _, p := range c.Params {
		sig.Params = append(sig.Params, objectParam(p))
	}
	if c.Variadic != nil {
		p := objectParam(*c.Variadic)
		sig.Variadic = &p
	}
	o.Signature = sig
	return o
}

func objectParam(p Param) ObjectParam {
	return ObjectParam{Name: p.Name, IsNullable: p.Nullable, Type: written(p.Type)}
}

// written returns a type that JSON can represent. The parameters of try() and can() have an
// internal type, which it replaces.
func written(ty cty.Type) cty.Type {
	if _, err := ty.MarshalJSON(); err != nil {
		return cty.DynamicPseudoType
	}
	return ty
}
