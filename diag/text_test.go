package diag

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// A case in testdata/*.txtar contains source files, "messages" as JSON, and the expected output
// of each printer: plain, terminal, compact, consolidated, json. Positions have the form
// FILE:TEXT or FILE:N:TEXT, for the first or nth TEXT in the file.
func TestPrint(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			set, ds := load(t, a)
			wants := 0
			for i := range a.Files {
				f := &a.Files[i]
				show, ok := ways[f.Name]
				if !ok {
					continue
				}
				wants++
				got := show(t, set, ds)
				if *update {
					f.Data = []byte(got)
				} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", f.Name, diff)
				}
			}
			if wants == 0 {
				t.Error("the case expects nothing")
			}
			if *update {
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var ways = map[string]func(*testing.T, *source.Set, List) string{
	"plain":        text(&Printer{}),
	"narrow":       text(&Printer{Width: 40}),
	"terminal":     text(&Printer{Color: true, Width: 80}),
	"compact":      text(&Printer{CompactWarnings: true}),
	"consolidated": text(&Printer{ConsolidateWarnings: true, ConsolidateErrors: true}),
	"both":         text(&Printer{CompactWarnings: true, ConsolidateWarnings: true, Names: NamesOf("OpenTofu", "tofu")}),
	"json": func(t *testing.T, set *source.Set, ds List) string {
		j := JSON{Set: set}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(j.Objects(ds)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	},
}

// text prints with a printer of the same options and shows escapes as "‹1m›".
func text(options *Printer) func(*testing.T, *source.Set, List) string {
	return func(t *testing.T, set *source.Set, ds List) string {
		p := Printer{Set: set, Color: options.Color, Width: options.Width, CompactWarnings: options.CompactWarnings,
			ConsolidateWarnings: options.ConsolidateWarnings, ConsolidateErrors: options.ConsolidateErrors, Names: options.Names}
		var b bytes.Buffer
		if err := p.Print(&b, ds); err != nil {
			t.Fatal(err)
		}
		out := strings.ReplaceAll(b.String(), "\x1b[0m", "‹›")
		for _, code := range []string{"1", "4", "31", "33", "90"} {
			out = strings.ReplaceAll(out, "\x1b["+code+"m", "‹"+code+"›")
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("an unknown escape sequence in %q", out)
		}
		return out
	}
}

func load(t *testing.T, a *txtar.Archive) (*source.Set, List) {
	set := new(source.Set)
	var messages []byte
	for _, f := range a.Files {
		switch {
		case f.Name == "messages":
			messages = f.Data
		case ways[f.Name] == nil:
			file := &source.File{Path: f.Name, Bytes: f.Data}
			if strings.HasPrefix(f.Name, "<") {
				file.Layer = &source.Layer{Kind: source.Environment}
			}
			set.Add(file)
		}
	}
	var in []struct {
		Severity, Code, Summary, Detail, At, Context, Address string
		Notes                                                 [][2]string
		Values                                                []string
		Alone                                                 bool
	}
	dec := json.NewDecoder(bytes.NewReader(messages))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		t.Fatalf("messages: %v", err)
	}
	var ds List
	for _, m := range in {
		msg := &Message{Code: m.Code, Summary: m.Summary, Detail: m.Detail, Address: m.Address, Values: m.Values, Alone: m.Alone,
			At: place(t, set, m.At), Context: place(t, set, m.Context)}
		if m.Severity == "warning" {
			msg.Severity = Warning
		}
		for _, n := range m.Notes {
			msg.Notes = append(msg.Notes, Note{n[0], place(t, set, n[1])})
		}
		ds = append(ds, msg)
	}
	return set, ds
}

// place returns the range of a position in a case.
func place(t *testing.T, set *source.Set, s string) *source.Range {
	if s == "" {
		return nil
	}
	name, text, _ := strings.Cut(s, ":")
	nth := 1
	if n, rest, ok := strings.Cut(text, ":"); ok {
		if _, err := fmt.Sscan(n, &nth); err == nil {
			text = rest
		}
	}
	f := set.File(name)
	if f == nil { // an unknown file
		return &source.Range{Filename: name, Start: hcl.Pos{Line: 7, Column: 3, Byte: 80}, End: hcl.Pos{Line: 7, Column: 5, Byte: 82}}
	}
	start := -1
	for range nth {
		i := strings.Index(string(f.Bytes[start+1:]), text)
		if i < 0 {
			t.Fatalf("%s has no %q number %d", name, text, nth)
		}
		start += 1 + i
	}
	return &source.Range{Filename: name, Start: position(f.Bytes, start), End: position(f.Bytes, start+len(text))}
}

func position(b []byte, offset int) hcl.Pos {
	before := string(b[:offset])
	line := strings.LastIndex(before, "\n") + 1
	return hcl.Pos{Line: strings.Count(before, "\n") + 1, Column: len([]rune(before[line:])) + 1, Byte: offset}
}

// A message with any position can be shown.
func TestPlacesOutsideOfTheFile(t *testing.T) {
	set := new(source.Set)
	set.Add(&source.File{Path: "a.tf", Bytes: []byte("locals {\n  é = 1\n}\n")})
	set.Add(&source.File{Path: "empty.tf", Bytes: []byte{}})
	set.Add(&source.File{Path: "b.tf.json", Bytes: []byte(`{"locals": {"a": [`)})
	var ds List
	for _, name := range []string{"a.tf", "empty.tf", "b.tf.json", "none.tf", ""} {
		for _, start := range []hcl.Pos{{}, {Line: 1, Column: 1}, {Line: 2, Column: 3, Byte: 11}, {Line: 2, Column: 3, Byte: 12}, {Line: 99, Column: 9, Byte: 999}, {Line: -4, Column: -1, Byte: -9}} {
			for _, end := range []hcl.Pos{{}, start, {Line: 2, Column: 4, Byte: 13}, {Line: 1 << 30, Byte: 1 << 30}} {
				at := source.Range{Filename: name, Start: start, End: end}
				ds = append(ds, &Message{Summary: "S", At: &at, Context: &source.Range{Filename: name, Start: end, End: start}})
			}
		}
	}
	for _, color := range []bool{true, false} {
		p := Printer{Set: set, Color: color}
		var b bytes.Buffer
		if err := p.Print(&b, ds); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "Error: "); n != len(ds) {
			t.Errorf("%d of %d messages shown", n, len(ds))
		}
	}
	j := JSON{Set: set}
	for _, o := range j.Objects(ds) {
		if s := o.Snippet; s != nil && (s.HighlightStartOffset < 0 || s.HighlightStartOffset > s.HighlightEndOffset || s.HighlightEndOffset > len(s.Code)) {
			t.Errorf("highlight %d to %d of %q", s.HighlightStartOffset, s.HighlightEndOffset, s.Code)
		}
	}
}

func TestManyNotes(t *testing.T) {
	m := &Message{Code: CodeEvalCycle, Summary: "Cycle", Detail: "D."}
	for i := range 5000 {
		m.Notes = append(m.Notes, Note{fmt.Sprintf("step %d", i), &source.Range{Filename: "a.tf", Start: hcl.Pos{Line: i + 1}}})
	}
	got := (&Printer{}).Text(m)
	if !strings.Contains(got, "step 59, on a.tf line 60\n") || strings.Contains(got, "step 60") || !strings.HasSuffix(got, "\n  (and 4940 more)\n") {
		t.Errorf("got %s", got)
	}
}

func TestLongPlaceIsCut(t *testing.T) {
	set := new(source.Set)
	set.Add(&source.File{Path: "a.tf", Bytes: []byte(strings.Repeat("x = 1\n", 1000))})
	at := &source.Range{Filename: "a.tf", Start: position(set.File("a.tf").Bytes, 0), End: position(set.File("a.tf").Bytes, 5999)}
	if n := strings.Count((&Printer{Set: set}).Text(&Message{Summary: "S", At: at}), "x = 1"); n != maxLines {
		t.Errorf("%d lines shown", n)
	}
}

func TestFailedCall(t *testing.T) {
	ctx := &hcl.EvalContext{
		Variables: map[string]cty.Value{"secret": cty.StringVal("hunter2").Mark("sensitive"), "n": cty.NumberIntVal(3)},
		Functions: map[string]function.Function{"format": stdlib.FormatFunc, "core::format": stdlib.FormatFunc},
	}
	for src, want := range map[string]string{
		`format([], n)`:              "while calling format(format, args...)",
		`core::format([], n)`:        "while calling core::format(format, args...)",
		`"${secret}${format([], n)}`: "while calling format(format, args...)",
	} {
		x, _ := hclsyntax.ParseExpression([]byte(src), "a.tf", hcl.InitialPos)
		_, diags := x.Value(ctx.NewChild())
		set := new(source.Set)
		set.Add(&source.File{Path: "a.tf", Bytes: []byte(src)})
		ds := FromHCL(diags)
		var b bytes.Buffer
		if err := (&Printer{Set: set}).Print(&b, ds); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("%s: want %q in %s", src, want, &b)
		}
		js, err := json.Marshal((&JSON{Set: set}).Objects(ds))
		if err != nil {
			t.Fatal(err)
		}
		sig := `"signature":{"name":"format","params":[{"name":"format","type":"string"}],"variadic_param":{"name":"args","is_nullable":true,"type":"dynamic"},"return_type":"string"}`
		if !strings.Contains(string(js), sig) {
			t.Errorf("%s: want %s in %s", src, sig, js)
		}
		if strings.Contains(b.String()+string(js), "hunter2") {
			t.Errorf("%s: a sensitive value is shown: %s %s", src, &b, js)
		}
	}
}

func TestSplit(t *testing.T) {
	ds := List{{Summary: "E"}, {Severity: Warning, Summary: "W"}}
	var out, errs bytes.Buffer
	p := Printer{CompactWarnings: true} // has no effect, since there is an error
	if err := p.Split(&out, &errs, ds); err != nil {
		t.Fatal(err)
	}
	if out.String() != "\nWarning: W\n" || errs.String() != "\nError: E\n" {
		t.Errorf("out %q, errors %q", &out, &errs)
	}
	full := errors.New("full")
	if err := p.Print(failing{full}, ds); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if err := p.Print(failing{full}, nil); err != nil {
		t.Errorf("something was written for no messages: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain é\n\t":                    "plain é\n\t",
		"\x1b[31mred\x1b[0m":             "red",
		"\x1b[38;5;4mblue\x1b[m":         "blue",
		"\x1b]0;title\a":                 `\x1b]0;title\x07`,
		"\x1b[2J":                        `\x1b[2J`,
		"a\r\nb\rc":                      "a\nb" + `\x0dc`,
		"\u009b31m":                      `\x9b31m`,
		"a\u202eb\u200fc":                `a\u202eb` + "\u200fc",
		"broken \xff\xfe utf-8 \x7f end": "broken \xff\xfe utf-8 " + `\x7f` + " end",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// A range that is made from a line and a column has no offsets. It names the block around its line.
func TestRangeWithoutOffsets(t *testing.T) {
	set := new(source.Set)
	set.Add(&source.File{Path: "a.tf", Bytes: []byte("variable \"a\" {}\n\nlocals {\n  b = 1\n}\n")})
	at := source.Range{Filename: "a.tf", Start: hcl.Pos{Line: 4, Column: 7}, End: hcl.Pos{Line: 4, Column: 8}}
	var b bytes.Buffer
	if err := (&Printer{Set: set}).Print(&b, List{&Message{Summary: "S", At: &at}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "on a.tf line 4, in locals:\n   4:   b = 1\n") {
		t.Error(b.String())
	}
	if o := (&JSON{Set: set}).Objects(List{&Message{Summary: "S", At: &at}})[0].Snippet; o.HighlightStartOffset != 6 || o.HighlightEndOffset != 7 {
		t.Errorf("highlight %d to %d", o.HighlightStartOffset, o.HighlightEndOffset)
	}
}

func BenchmarkPrint(b *testing.B) {
	var src strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&src, "resource \"a\" \"r%d\" {\n  x = 1\n}\n", i)
	}
	f := &source.File{Path: "a.tf", Bytes: []byte(src.String())}
	set := new(source.Set)
	set.Add(f)
	var ds List
	for i := range 1000 {
		at := source.Range{Filename: "a.tf", Start: hcl.Pos{Line: i*3 + 2, Column: 3, Byte: f.LineStart(i*3+2) + 2}}
		at.End = hcl.Pos{Line: at.Start.Line, Column: 4, Byte: at.Start.Byte + 1}
		ds = append(ds, &Message{Summary: "S", Detail: "Some detail that is long enough to be wrapped on most terminals, we suppose.", At: &at})
	}
	for b.Loop() {
		var out bytes.Buffer
		_ = (&Printer{Set: set}).Print(&out, ds)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/message")
}
