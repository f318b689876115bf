package catalog

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate/catalog"
)

// A writer writes the components found.
type writer interface {
	entry(e *catalog.Component) error
	end(sources int) error
}

// lines writes one object per line.
type lines struct{ w io.Writer }

func (l *lines) entry(e *catalog.Component) error {
	enc := json.NewEncoder(l.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(e)
}

func (l *lines) end(int) error { return nil }

// table writes a table for people.
type table struct {
	w *tabwriter.Writer
	n int
}

func (t *table) entry(e *catalog.Component) error {
	if t.n++; t.n == 1 {
		fmt.Fprintln(t.w, "KIND\tTITLE\tSOURCE")
	}
	_, err := fmt.Fprintf(t.w, "%s\t%s\t%s\n", e.Kind, wrap.OneLine(e.Title), wrap.OneLine(e.ComponentSource))
	return err
}

func (t *table) end(sources int) error {
	if t.n == 0 {
		_, err := fmt.Fprintf(t.w, "Nothing found in %s.\n", view.Numbered(sources, "source"))
		return orFlush(t.w, err)
	}
	return t.w.Flush()
}

func orFlush(w *tabwriter.Writer, err error) error {
	if err != nil {
		return err
	}
	return w.Flush()
}

// document writes all components as one Markdown text.
type document struct {
	w     io.Writer
	index []string
	err   error
}

func (d *document) put(format string, args ...any) {
	if d.err == nil {
		_, d.err = fmt.Fprintf(d.w, format, args...)
	}
}

func (d *document) head() {
	d.put("# Catalog\n\nA section for each component, with its README in a fenced block. The table at the end lists all of them; a document without it is not complete.\n")
}

func (d *document) entry(e *catalog.Component) error {
	if d.index == nil {
		d.head()
	}
	title := wrap.OneLine(e.Title)
	d.put("\n## %s\n\n", title)
	if e.Description != "" {
		d.put("%s\n\n", wrap.OneLine(e.Description))
	}
	d.put("| Field | Value |\n| --- | --- |\n| Kind | `%s` |\n", e.Kind)
	for _, row := range [...][2]string{{"Source", e.Source}, {"Directory", e.Dir}, {"Version", e.Version}} {
		if row[1] != "" {
			d.put("| %s | `%s` |\n", row[0], cell(row[1]))
		}
	}
	if e.URL != "" {
		d.put("| URL | <%s> |\n", cell(e.URL))
	}
	d.put("| Component source | `%s` |\n", cell(e.ComponentSource))
	for i, tag := range e.Tags {
		if i == 0 {
			d.put("\n| Tag |\n| --- |\n")
		}
		d.put("| `%s` |\n", cell(tag))
	}
	if e.Doc != "" {
		fence := "```"
		for strings.Contains(e.Doc, fence) {
			fence += "`"
		}
		kind := ""
		if e.Markdown {
			kind = "markdown"
		}
		d.put("\n%s%s\n%s\n%s\n", fence, kind, strings.TrimSuffix(printable(e.Doc), "\n"), fence)
	}
	d.index = append(d.index, fmt.Sprintf("| %s | `%s` | `%s` |\n", cell(title), e.Kind, cell(e.ComponentSource)))
	return d.err
}

func (d *document) end(sources int) error {
	if d.index == nil {
		d.head()
	} else {
		d.put("\n---\n\n| Component | Kind | Component source |\n| --- | --- | --- |\n%s", strings.Join(d.index, ""))
	}
	d.put("\nDiscovered %s from %s.\n", view.Numbered(len(d.index), "component"), view.Numbered(sources, "source"))
	return d.err
}

func cell(text string) string { return strings.ReplaceAll(wrap.OneLine(text), "|", `\|`) }

// printable returns text without control characters, which a terminal would execute.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, text)
}
