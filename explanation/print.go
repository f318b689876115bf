package explanation

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// ValueText returns the value as Print writes it, or "" if the value is not known.
func (x *Explanation) ValueText() string {
	if x.Value == cty.NilVal {
		return ""
	}
	return valueText(x.Value)
}

// Print writes an explanation as text. It returns the errors of w.
func (x *Explanation) Print(w io.Writer) error {
	b := bufio.NewWriter(w)
	switch {
	case x.Value != cty.NilVal:
		fmt.Fprintf(b, "%s = %s", x.Address, valueText(x.Value))
		if x.FromState {
			b.WriteString("   (as in state)")
		}
		b.WriteString("\n")
	case x.Each:
		fmt.Fprintf(b, "%s has a value for each instance; name one to see it\n", x.Address)
	case x.ends(NotSet):
		fmt.Fprintf(b, "%s is not set\n", x.Address)
	case x.ends(Failed):
		fmt.Fprintf(b, "%s has no value\n", x.Address)
	case !x.Whole:
		fmt.Fprintf(b, "%s is not known from configuration alone\n", x.Address)
	}
	var before *SourceLine
	for i, s := range x.Steps {
		if i > 0 || !x.Whole {
			b.WriteString("\n")
		}
		s.print(b, before)
		before = s.At
	}
	if len(x.Parts) > 0 {
		b.WriteString("\n  holds:\n")
		for _, p := range x.Parts {
			fmt.Fprintf(b, "    %s  %s\n", p.At.where(), p.At.Source)
			for _, w := range p.With {
				fmt.Fprintf(b, "      merged with %s\n", w.where())
			}
			for _, w := range p.Replaces {
				fmt.Fprintf(b, "      replaces %s  %s\n", w.where(), w.Source)
			}
		}
	}
	for _, a := range x.Unchecked {
		fmt.Fprintf(b, "\nThe provider %s is not installed here, so which of its\narguments are sensitive is not known: those with names such as password or token are hidden.\n", a.Display())
	}
	return b.Flush()
}

func (x *Explanation) ends(k Kind) bool {
	return len(x.Steps) > 0 && x.Steps[len(x.Steps)-1].Kind == k
}

// print writes one step. If the line was shown by the previous step, it only shows the relevant
// part.
func (s *Step) print(b *bufio.Writer, before *SourceLine) {
	fmt.Fprintf(b, "%s\n", s.Text)
	if s.At != nil {
		at := *s.At
		again := before != nil && before.File == at.File && before.Line == at.Line
		if again && at.Part != "" {
			at.Source = at.Part
		}
		if !again || at.Part != "" || at.Source == "" || before.Source != at.Source {
			at.print(b, "  ")
		}
	}
	for _, p := range s.With {
		p.print(b, "  merged with ")
	}
	for _, p := range s.Replaces {
		p.print(b, "  replaces ")
	}
	if s.Computed && len(s.From) == 0 && s.Kind != Computed {
		b.WriteString("  computed here\n")
	}
	if len(s.From) > 0 {
		names := make([]string, len(s.From))
		for i, f := range s.From {
			names[i] = f.Address
		}
		word := "made of"
		if s.Computed {
			word = "computed from"
		}
		fmt.Fprintf(b, "  %s %s\n", word, strings.Join(names, ", "))
	}
}

func (p *SourceLine) print(b *bufio.Writer, head string) {
	fmt.Fprintf(b, "%s%s\n", head, p.where())
	if p.Source != "" {
		fmt.Fprintf(b, "    %s\n", p.Source)
	}
}

// where returns file, line and layer. Outside files it returns only the layer.
func (p *SourceLine) where() string {
	if p.File == "" {
		return p.Layer
	}
	return fmt.Sprintf("%s:%d (%s)", p.File, p.Line, p.Layer)
}

func valueText(v cty.Value) string {
	return strings.TrimSpace(string(hclwrite.TokensForValue(v).Bytes()))
}

type (
	jsonExplanation struct {
		Format    string          `json:"format_version"`
		Address   string          `json:"address"`
		Value     json.RawMessage `json:"value,omitempty"`
		Known     bool            `json:"known"`
		Sensitive bool            `json:"sensitive"`
		Whole     bool            `json:"whole,omitempty"`
		FromState bool            `json:"from_state,omitempty"`
		Each      bool            `json:"each,omitempty"`
		Unchecked []string        `json:"unchecked_providers,omitempty"`
		Steps     []jsonStep      `json:"steps"`
		Arguments []jsonPart      `json:"arguments,omitempty"`
	}
	jsonStep struct {
		Kind     Kind        `json:"kind"`
		Text     string      `json:"text"`
		At       *jsonPlace  `json:"at,omitempty"`
		With     []jsonPlace `json:"merged_with,omitempty"`
		Replaces []jsonPlace `json:"replaces,omitempty"`
		Computed bool        `json:"computed,omitempty"`
		From     []jsonFrom  `json:"from,omitempty"`
	}
	jsonPlace struct {
		File   string `json:"file,omitempty"`
		Line   int    `json:"line,omitempty"`
		Column int    `json:"column,omitempty"`
		Source string `json:"source,omitempty"`
		Part   string `json:"part,omitempty"`
		Layer  string `json:"layer"`
	}
	jsonFrom struct {
		Address string     `json:"address"`
		At      *jsonPlace `json:"at,omitempty"`
	}
	jsonPart struct {
		Name     string      `json:"name"`
		At       jsonPlace   `json:"at"`
		With     []jsonPlace `json:"merged_with,omitempty"`
		Replaces []jsonPlace `json:"replaces,omitempty"`
	}
)

// MarshalJSON encodes the explanation for tools. Properties are named like the fields. value is
// omitted if it is unknown, and contains "(sensitive value)" in place of hidden parts.
func (x *Explanation) MarshalJSON() ([]byte, error) {
	out := jsonExplanation{
		Format: "1.0", Address: x.Address, Known: x.Value != cty.NilVal, Sensitive: x.Sensitive, Whole: x.Whole, FromState: x.FromState, Each: x.Each, Steps: []jsonStep{},
	}
	for _, a := range x.Unchecked {
		out.Unchecked = append(out.Unchecked, a.String())
	}
	if x.Value != cty.NilVal {
		raw, err := ctyjson.Marshal(x.Value, x.Value.Type())
		if err != nil {
			return nil, err
		}
		out.Value = raw
	}
	for _, s := range x.Steps {
		js := jsonStep{Kind: s.Kind, Text: s.Text, At: s.At.json(), With: placesJSON(s.With), Replaces: placesJSON(s.Replaces), Computed: s.Computed}
		for _, f := range s.From {
			js.From = append(js.From, jsonFrom{f.Address, f.At.json()})
		}
		out.Steps = append(out.Steps, js)
	}
	for _, p := range x.Parts {
		out.Arguments = append(out.Arguments, jsonPart{p.Name, *p.At.json(), placesJSON(p.With), placesJSON(p.Replaces)})
	}
	return json.Marshal(out)
}

func placesJSON(at []SourceLine) (out []jsonPlace) {
	for i := range at {
		out = append(out, *at[i].json())
	}
	return out
}

func (p *SourceLine) json() *jsonPlace {
	if p == nil {
		return nil
	}
	j := jsonPlace{p.File, p.Line, p.Column, p.Source, p.Part, p.Layer}
	if j.Part == j.Source {
		j.Part = ""
	}
	return &j
}
