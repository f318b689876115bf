package markdown

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

func written(t *testing.T, d *Document, limit int) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, d, limit); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hostile is a text that must stay text.
const hostile = "</code></summary>\n```\n# @admin [x](http://example.com) | `` <img src=x> -->"

// Text from outside only occurs as code, and a fence is longer than any in its text.
func TestEscaped(t *testing.T) {
	d := &Document{
		Mark: hostile, Title: "Plan", Subjects: []string{hostile},
		Messages: []Message{{Error: true, Title: hostile, Text: "Error: " + hostile, Of: []string{hostile}}},
		Causes:   []Cause{{Place: hostile, What: hostile, Units: []string{hostile}, Was: hostile}},
		Table:    Table{Columns: []Column{{Name: "Unit"}}, Rows: [][]Cell{{{hostile, true}}}},
		Details:  []Detail{{Title: hostile, Text: hostile, Diff: true}},
	}
	source := []byte(written(t, d, 0))
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	found := 0
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan, *ast.FencedCodeBlock:
			found++
			return ast.WalkSkipChildren, nil
		case *ast.Link, *ast.Image, *ast.AutoLink, *ast.RawHTML:
			t.Errorf("a text becomes a %s", n.Kind())
		case *ast.Text:
			if s := string(n.Segment.Value(source)); strings.ContainsAny(s, "@<[") {
				t.Errorf("this is not code: %s", s)
			}
		case *ast.Heading:
			if n.Level == 1 {
				t.Error("a text becomes a heading")
			}
		case *ast.HTMLBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				if s := string(line.Value(source)); strings.Contains(s, "<img") || strings.Count(s, "-->") > 1 {
					t.Errorf("a text becomes markup: %s", s)
				}
			}
		case *east.TableRow:
			if n.ChildCount() != 1 {
				t.Errorf("a cell ends early: %d cells", n.ChildCount())
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil || found != 10 {
		t.Errorf("%d texts are code, want 10 (%v):\n%s", found, err, source)
	}
}

// A bar in a cell does not end it, also after a backslash. Characters that a browser would follow are
// shown as codes.
func TestBarsAndControls(t *testing.T) {
	d := &Document{
		Mark: "plan", Title: "Plan", Table: Table{Columns: []Column{{Name: "Unit"}, {Name: "Add"}}, Rows: [][]Cell{{{"a|b", true}, {"1", false}}, {{`a\|b*c*`, true}, {"2", false}}}},
		Details: []Detail{{Title: "a", Text: "x\u202ey \x1b[31mred"}},
	}
	source := written(t, d, 0)
	for _, want := range []string{"| `a\\|b` | 1 |\n", "| <code>a&#92;&#124;b&#42;c&#42;</code> | 2 |\n", "x\\u202ey \\x1b[31mred"} {
		if !strings.Contains(source, want) {
			t.Errorf("%q is missing:\n%s", want, source)
		}
	}
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader([]byte(source)))
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if n.Kind() == east.KindTableRow && n.ChildCount() != 2 {
			t.Errorf("a row has %d cells", n.ChildCount())
		}
		return ast.WalkContinue, nil
	})
}

// A document is not larger than its limit, and says what it leaves out.
func TestLimit(t *testing.T) {
	d := &Document{Mark: "plan", Title: "Plan", Table: Table{Columns: []Column{{Name: "Unit"}, {Name: "Add", Right: true}}}, More: "See the log."}
	for i := range 400 {
		name := fmt.Sprintf("unit-%03d", i)
		d.Table.Rows = append(d.Table.Rows, []Cell{{name, true}, {"1", false}})
		d.Details = append(d.Details, Detail{Title: name, Text: strings.Repeat("  + x = 1\n", i), Diff: true})
		d.Messages = append(d.Messages, Message{Title: "a warning " + name, Text: "Warning: a warning " + name + "\n\nwith a text"})
		d.Causes = append(d.Causes, Cause{Place: "a.hcl:1", What: name, Count: 2})
	}
	whole := written(t, d, 0)
	if strings.Contains(whole, "Not shown") {
		t.Error("a document without a limit is cut")
	}
	if !strings.Contains(whole, "- `unit-029` of 2 objects: `a.hcl:1`\n- and 370 more\n") {
		t.Error("the causes are not shortened")
	}
	for limit := MinLimit; limit < len(whole); limit = limit*5/4 + 1 {
		out := written(t, d, limit)
		if len(out) > limit {
			t.Errorf("limit %d: %d bytes", limit, len(out))
		}
		if !strings.HasSuffix(out, "See the log.\n") || !strings.Contains(out, "Not shown, because") {
			t.Errorf("limit %d: there is no note:\n%s", limit, out[max(0, len(out)-300):])
		}
		if strings.Count(out, "<details>") != strings.Count(out, "</details>") || strings.Count(out, "```")%2 != 0 {
			t.Errorf("limit %d: markup is cut", limit)
		}
	}
}

// The symbols of a plan become those of a diff, and the columns stay aligned.
func TestDiff(t *testing.T) {
	const in = `  # test.a will be updated in-place
  ~ resource "test" "a" {
      ~ size = 1 -> 2
      + tag  = "x"
      - old  = 1 -> null
        same = 1
    }

  # test.b must be replaced
-/+ resource "test" "b" {
    }
`
	const want = ` # test.a will be updated in-place
!  resource "test" "a" {
!      size = 1 -> 2
+      tag  = "x"
-      old  = 1 -> null
       same = 1
   }
 
 # test.b must be replaced
!-/+ resource "test" "b" {
   }
`
	if got := asDiff(in); got != want {
		t.Errorf("got:\n%s", got)
	}
}

// The lines of a text are not taken for changes, and comments are aligned with what they are about.
func TestDiffOfTexts(t *testing.T) {
	plan := `  # x.a will be updated in-place
  ~ resource "x" "a" {
        id    = "1"
      # main.tf:3
      + added = <<-EOT
            - item
            + EOT
              ~ deeper

        EOT
        # (2 unchanged attributes hidden)
      ~ text  = <<-EOT # forces replacement
            - an item
          - - old
          + ~ new
            EOT
        EOT
        same  = <<-EOT
            - item
        EOT
      - name  = "EOT" -> null
    }
`
	want := ` # x.a will be updated in-place
!  resource "x" "a" {
       id    = "1"
       # main.tf:3
+      added = <<-EOT
+          - item
+          + EOT
+            ~ deeper

       EOT
       # (2 unchanged attributes hidden)
!      text  = <<-EOT # forces replacement
           - an item
-          - old
+          ~ new
           EOT
       EOT
       same  = <<-EOT
           - item
       EOT
-      name  = "EOT" -> null
   }
`
	if got := asDiff(plan); got != want {
		t.Errorf("asDiff returns\n%s\nwant\n%s", got, want)
	}
}

// A section does not take the whole size if there are others.
func TestShares(t *testing.T) {
	t.Parallel()
	d := &Document{Mark: "plan", Title: "Plan", Table: Table{Columns: []Column{{Name: "Unit"}}}}
	for i := range 1000 {
		name := fmt.Sprintf("unit-%03d", i)
		d.Messages = append(d.Messages, Message{Title: "Warning: " + name, Of: []string{name}})
		d.Causes = append(d.Causes, Cause{What: name, Place: "a.tf:1"})
		d.Table.Rows = append(d.Table.Rows, []Cell{{name, true}})
		d.Details = append(d.Details, Detail{Title: name, Text: strings.Repeat("text\n", 100)})
	}
	got := written(t, d, 20000)
	for what, least := range map[string]int{":warning:": 50, ": `a.tf:1`": 30, "| `unit-": 200, "<details>": 12} {
		if n := strings.Count(got, what); n < least || n >= 1000 {
			t.Errorf("the document contains %q %d times", what, n)
		}
	}
	if len(got) > 20000 || len(got) < 17000 {
		t.Errorf("the document has %d bytes", len(got))
	}
	d.Causes, d.Table.Rows, d.Details = nil, nil, nil
	if got := written(t, d, 20000); len(got) < 19000 {
		t.Errorf("the only section has %d bytes", len(got))
	}
}

// The title of a message is shown where its text is too long for the limit.
func TestLongMessage(t *testing.T) {
	d := &Document{Mark: "m", Title: "Plan failed", Messages: []Message{{Error: true, Title: "Error: No", Text: strings.Repeat("long ", 1000)}, {Title: "Warning: Odd", Text: "Odd."}}}
	out := written(t, d, 2000)
	for _, want := range []string{":x: `Error: No`\n", ":warning: `Warning: Odd`\n\n```\nOdd.\n```", "1 message text."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// Lists are shown however many messages precede them. Other texts after the first messages are not.
func TestLists(t *testing.T) {
	d := &Document{Mark: "m", Title: "Check failed"}
	for i := range mostMessages + 2 {
		d.Messages = append(d.Messages, Message{Title: fmt.Sprint("Warning: ", i), Text: fmt.Sprint("text ", i), List: i == mostMessages})
	}
	out := written(t, d, 0)
	for i := range d.Messages {
		if got, want := strings.Contains(out, fmt.Sprintf("text %d\n", i)), i <= mostMessages; got != want {
			t.Errorf("the text of message %d is shown: %v, want %v", i, got, want)
		}
	}
}
