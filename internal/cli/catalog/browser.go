package catalog

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/internal/cli/command"
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
  q, esc              leave           ctrl-c            leave at once`

// run shows the browser until the user chooses a component, the user quits (chosen is nil), or
// ctx ends.
func (b *browser) run(ctx context.Context, c *command.Call) (chosen *catalog.Component, err error) {
	keys, restore, err := c.System.Terminal.Keys()
	if err != nil {
		return nil, err
	}
	out := c.System.Stdout
	_, _ = io.WriteString(out, "\x1b[?1049h\x1b[?25l\x1b[?7l") // alternate screen, no cursor, no wrapping
	defer func() {
		_, _ = io.WriteString(out, "\x1b[?7h\x1b[?25h\x1b[?1049l")
		if e := restore(); err == nil {
			err = e
		}
	}()
	pending := ""
	for {
		b.width, b.height = max(c.System.Terminal.Width(), 20), max(c.System.Terminal.Height(), 6)
		if _, err := io.WriteString(out, b.screen()); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case typed, ok := <-keys:
			if !ok {
				return nil, nil
			}
			var pressed []string
			pressed, pending = split(pending + typed)
			for _, k := range pressed {
				if b.note = ""; b.key(k) {
					return b.chosen(), nil
				}
			}
		}
	}
}

// split splits the input from a terminal into keys. rest is an incomplete key.
func split(typed string) (keys []string, rest string) {
	names := names()
	for typed != "" {
		if typed[0] != '\x1b' {
			r := []rune(typed)[0]
			k := string(r)
			if name := names.controls[k]; name != "" {
				k = name
			}
			keys, typed = append(keys, k), typed[len(string(r)):]
			continue
		}
		if typed == "\x1b" || typed[1] == '\x1b' {
			keys, typed = append(keys, "esc"), typed[1:]
			continue
		}
		if typed[1] != '[' && typed[1] != 'O' {
			keys, typed = append(keys, "alt-"+typed[1:2]), typed[2:]
			continue
		}
		end := 2
		for end < len(typed) && (typed[end] < '@' || typed[end] > '~') {
			end++
		}
		if end == len(typed) {
			return keys, typed
		}
		if name := names.sequences[typed[2:end+1]]; name != "" {
			keys = append(keys, name)
		}
		typed = typed[end+1:]
	}
	return keys, ""
}

// keyNames maps input to names of keys: control characters, sequences after ESC [, and letters
// outside of a search.
type keyNames struct{ controls, sequences, letters map[string]string }

func names() keyNames {
	return keyNames{
		controls: map[string]string{
			"\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\b": "backspace", "\x03": "ctrl-c",
			"\x0e": "down", "\x10": "up", "\x16": "pgdn", "\x01": "home", "\x05": "end", "\x15": "ctrl-u",
		},
		sequences: map[string]string{
			"A": "up", "B": "down", "C": "pgdn", "D": "pgup", "H": "home", "F": "end", "Z": "shift-tab",
			"1~": "home", "4~": "end", "5~": "pgup", "6~": "pgdn", "7~": "home", "8~": "end",
		},
		letters: map[string]string{"j": "down", "k": "up", "l": "pgdn", "h": "pgup", "alt-v": "pgup", "G": "end", "g": "home", "q": "esc"},
	}
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
	if name := names().letters[k]; name != "" {
		k = name
	}
	switch {
	case b.help:
		b.help = false
	case k == "?":
		b.help = true
	case k == "s":
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
		l.at = move(l.at, k, len(b.shown()), b.rows())
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
		l.at = move(l.at, k, len(b.shown()), b.rows())
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

// move returns the position in a list to which a key leads.
func move(at int, k string, all, page int) int {
	switch k {
	case "up":
		at--
	case "down":
		at++
	case "pgup":
		at -= page
	case "pgdn":
		at += page
	case "home":
		at = 0
	case "end":
		at = all
	}
	return max(0, min(at, all-1))
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

// screen returns the content of the whole screen.
func (b *browser) screen() string {
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
		rows = append(rows, bold(b.fit(wrap.OneLine(b.reading.Title)+"  ·  "+wrap.OneLine(b.reading.ComponentSource))), "")
		end := min(len(text), b.line+b.height-3)
		rows = append(rows, text[min(b.line, end):end]...)
		last = fmt.Sprintf("%d to %d of %d lines · s uses it · esc goes back", min(b.line+1, end), end, len(text))
	default:
		rows, last = b.listing()
	}
	if b.note != "" {
		last = b.note
	}
	var out strings.Builder
	out.WriteString("\x1b[H")
	for i := range b.height - 1 {
		if i < len(rows) {
			out.WriteString(rows[i])
		}
		out.WriteString("\x1b[K\r\n")
	}
	out.WriteString(faint(b.fit(last)) + "\x1b[K")
	return out.String()
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
	l.at = move(l.at, "", len(shown), page)
	l.top = max(0, min(l.top, l.at), l.at-page+1)
	if len(shown) == 0 {
		rows = append(rows, "  Nothing here.")
	}
	for i := l.top; i < min(len(shown), l.top+page); i++ {
		e := shown[i]
		mark, title := "  ", b.fit(fmt.Sprintf("  %-8s  %s", e.Kind, wrap.OneLine(e.Title)))[2:]
		if i == l.at {
			mark, title = "> ", bold(title)
		}
		about := e.Description
		if about == "" {
			about = e.ComponentSource
		}
		if len(e.Tags) > 0 {
			about = "[" + strings.Join(e.Tags, ", ") + "] " + about
		}
		rows = append(rows, mark+title, faint(b.fit("            "+wrap.OneLine(about))))
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
func (b *browser) fit(line string) string {
	if r := []rune(line); len(r) > b.width {
		return string(r[:b.width-1]) + "…"
	}
	return line
}

func bold(text string) string  { return "\x1b[1m" + text + "\x1b[0m" }
func faint(text string) string { return "\x1b[2m" + text + "\x1b[0m" }
