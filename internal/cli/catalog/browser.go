package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/internal/cli/screen"
	"github.com/terrace-iac/terrace/internal/estate/catalog"
)

// A tab lists components of one kind, or with "" of all kinds.
type tab struct {
	name string
	kind catalog.Kind
}

const tabCount = 5

func tabs() [tabCount]tab {
	return [...]tab{{"All", ""}, {"Templates", catalog.Template}, {"Stacks", catalog.Stack}, {"Units", catalog.Unit}, {"Modules", catalog.Module}}
}

// A browser is the content of the screen. Only keys change it.
type browser struct {
	all           []catalog.Component
	tab           int
	lists         [tabCount]list
	searching     bool
	help          bool
	reading       *catalog.Component // the component whose README is shown; nil shows the list
	line          int                // the first visible line of the README
	note          string             // shown until the next key
	skip          bool               // the component is used without a form
	width, height int
}

// A list is the position in the list of a tab.
type list struct {
	at, top int
	search  string
}

// keyHelp describes every key.
const keyHelp = `  ↓ j ctrl-n          down            ↑ k ctrl-p        up
  → l page down       next page       ← h page up       page before
  home ctrl-a         first           end ctrl-e        last
  enter               read            s                 use it as scaffold does
  tab, shift-tab      other kinds     /                 search, esc ends it
  ctrl-d              use it without the form
  q, esc              leave           ctrl-c            leave at once`

// show shows the browser until the user chooses a component, the user quits (chosen is nil), or
// ctx ends.
func (b *browser) show(ctx context.Context, sc *screen.Screen) (chosen *catalog.Component, err error) {
	ended, err := sc.Show(ctx, b)
	if !ended || err != nil {
		return nil, err
	}
	return b.chosen(), nil
}

// Key implements screen.View.
func (b *browser) Key(k string) (done bool) {
	b.note = ""
	return b.key(k)
}

// key handles a key. done means that the browser ends.
func (b *browser) key(k string) (done bool) {
	if k == "ctrl-c" {
		b.all, b.reading = nil, nil
		return true
	}
	l := &b.lists[b.tab]
	if b.searching {
		b.search(l, k)
		return false
	}
	k = screen.Letter(k)
	switch {
	case b.help:
		b.help = false
	case k == "?":
		b.help = true
	case k == "s", k == "ctrl-d":
		b.skip = k == "ctrl-d"
		return b.choose()
	case b.reading != nil:
		b.read(k)
	case k == "esc":
		b.all = nil
		return true
	case k == "/":
		b.searching = true
	case k == "tab":
		b.tab = (b.tab + 1) % tabCount
	case k == "shift-tab":
		b.tab = (b.tab + tabCount - 1) % tabCount
	case k == "enter":
		b.reading, b.line = b.chosen(), 0
	default:
		l.at = screen.Move(l.at, k, len(b.shown()), b.rows())
	}
	return false
}

// search handles a key of a search.
func (b *browser) search(l *list, k string) {
	switch k {
	case "esc":
		b.searching, l.search = false, ""
	case "enter":
		b.searching = false
	case "up", "down":
		l.at = screen.Move(l.at, k, len(b.shown()), b.rows())
		return
	case "backspace":
		if r := []rune(l.search); len(r) > 0 {
			l.search = string(r[:len(r)-1])
		}
	case "ctrl-u":
		l.search = ""
	default:
		if len([]rune(k)) != 1 || printable(k) != k {
			return
		}
		l.search += k
	}
	l.at = 0
}

// read handles a key while a README is shown.
func (b *browser) read(k string) {
	if k == "esc" {
		b.reading = nil
		return
	}
	all, rows := len(b.text()), b.height-3
	switch k {
	case "up":
		b.line--
	case "down":
		b.line++
	case "home":
		b.line = 0
	case "end":
		b.line = all
	case "pgup":
		b.line -= rows
	case "pgdn", " ":
		b.line += rows
	}
	b.line = max(0, min(b.line, all-rows))
}

// choose reports whether the chosen component can be used.
func (b *browser) choose() bool {
	e := b.chosen()
	if e == nil {
		return false
	}
	if e.Kind == catalog.Template {
		b.note = "Templates are not rendered: use the tool that they are written for."
		return false
	}
	return true
}

// chosen returns the component under the cursor, or nil.
func (b *browser) chosen() *catalog.Component {
	if b.reading != nil {
		return b.reading
	}
	shown := b.shown()
	if at := b.lists[b.tab].at; at < len(shown) {
		return shown[at]
	}
	return nil
}

// shown returns the components of the tab that match the search.
func (b *browser) shown() (out []*catalog.Component) {
	words := strings.Fields(strings.ToLower(b.lists[b.tab].search))
next:
	for i := range b.all {
		e := &b.all[i]
		if k := tabs()[b.tab].kind; k != "" && !e.Is(k) {
			continue
		}
		text := strings.ToLower(strings.Join(append([]string{e.Title, e.Description, e.ComponentSource, string(e.Kind)}, e.Tags...), "\n"))
		for _, w := range words {
			if !strings.Contains(text, w) {
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}

// rows returns the number of components that fit the screen. Each needs two lines, below the
// tabs and above the last line.
func (b *browser) rows() int { return max(1, (b.height-4)/2) }

// Draw implements screen.View.
func (b *browser) Draw(width, height int) string {
	b.width, b.height = width, height
	var rows []string
	var last string
	switch {
	case b.help:
		for _, line := range strings.Split(keyHelp, "\n") {
			rows = append(rows, b.fit(line))
		}
		last = "any key goes back"
	case b.reading != nil:
		text := b.text()
		rows = append(rows, screen.Bold(b.fit(wrap.OneLine(b.reading.Title)+"  ·  "+wrap.OneLine(b.reading.ComponentSource))), "")
		end := min(len(text), b.line+b.height-3)
		rows = append(rows, text[min(b.line, end):end]...)
		last = fmt.Sprintf("%d to %d of %d lines · s uses it · esc goes back", min(b.line+1, end), end, len(text))
	default:
		rows, last = b.listing()
	}
	if b.note != "" {
		last = b.note
	}
	return screen.Page(rows, last, b.width, b.height)
}

func (b *browser) listing() (rows []string, last string) {
	var titles []string
	width := 0
	for i, t := range tabs() {
		if width += len(t.name) + 3; width > b.width {
			break
		}
		if i == b.tab {
			titles = append(titles, "\x1b[7m "+t.name+" \x1b[0m")
		} else {
			titles = append(titles, " "+t.name+" ")
		}
	}
	l := &b.lists[b.tab]
	head := ""
	switch {
	case b.searching:
		head = b.fit("/" + l.search + "█")
	case l.search != "":
		head = b.fit("/" + l.search)
	}
	rows = append(rows, strings.Join(titles, " "), head)
	shown, page := b.shown(), b.rows()
	l.at = screen.Move(l.at, "", len(shown), page)
	l.top = max(0, min(l.top, l.at), l.at-page+1)
	if len(shown) == 0 {
		rows = append(rows, "  Nothing here.")
	}
	for i := l.top; i < min(len(shown), l.top+page); i++ {
		e := shown[i]
		mark, title := "  ", b.fit(fmt.Sprintf("  %-8s  %s", e.Kind, wrap.OneLine(e.Title)))[2:]
		if i == l.at {
			mark, title = "> ", screen.Bold(title)
		}
		about := e.Description
		if about == "" {
			about = e.ComponentSource
		}
		if len(e.Tags) > 0 {
			about = "[" + strings.Join(e.Tags, ", ") + "] " + about
		}
		rows = append(rows, mark+title, screen.Faint(b.fit("            "+wrap.OneLine(about))))
	}
	at := 0
	if len(shown) > 0 {
		at = l.at + 1
	}
	return rows, fmt.Sprintf("%d of %d · enter reads · s uses it · / searches · tab changes the kind · ? all keys · q leaves", at, len(shown))
}

// text returns the README of a component, in lines as wide as the screen.
func (b *browser) text() []string {
	e := b.reading
	doc := printable(e.Doc)
	if doc == "" {
		doc = "There is no README."
	}
	var out []string
	for _, line := range strings.Split(strings.TrimRight(doc, "\n"), "\n") {
		out = append(out, folded(strings.ReplaceAll(line, "\t", "    "), b.width)...)
	}
	return out
}

// folded breaks a line at spaces.
func folded(line string, width int) (out []string) {
	r := []rune(line)
	for len(r) > width {
		at := width
		for i := width; i > width/2; i-- {
			if r[i] == ' ' {
				at = i
				break
			}
		}
		out = append(out, string(r[:at]))
		r = r[at:]
		if r[0] == ' ' {
			r = r[1:]
		}
	}
	return append(out, string(r))
}

// fit truncates a line to the width of the screen.
func (b *browser) fit(line string) string { return screen.Fit(line, b.width) }
