package planhtml

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/digraph"
	"github.com/terrace-iac/terrace/plan"
)

// document is the data of the page in the form that its script reads. Numbers in lists are
// indices of texts, unless noted otherwise. For lists of lines, see linesOf.
type document struct {
	about
	Texts   []string   `json:"texts"`
	Changes []change   `json:"changes"`
	Causes  [][]int    `json:"causes"` // causes of the lines of changes: line, text, line, text, …; the first list is empty
	Steps   [][6]int   `json:"steps"`  // text, file, line, column, role, 1 if replaced
	Columns []int      `json:"columns"`
	Units   []unitData `json:"units"`
}

// about describes the plan of the page.
type about struct {
	Title    string `json:"title"`
	Command  string `json:"command,omitempty"`
	From     string `json:"from,omitempty"`
	Compares bool   `json:"compares,omitempty"`
	Noun     string `json:"noun,omitempty"`
	Made     string `json:"made,omitempty"`
	Program  string `json:"program,omitempty"`
}

// write writes the document in the form of encoding/json. It writes piece by piece, because
// the document of an estate is large.
func (d *document) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	head, err := json.Marshal(&d.about)
	_, _ = b.Write(bytes.TrimSuffix(head, []byte("}"))) // b keeps the first error
	err = errors.Join(err, table(b, "texts", d.Texts), table(b, "changes", d.Changes), table(b, "causes", d.Causes), table(b, "steps", d.Steps), table(b, "columns", d.Columns), table(b, "units", d.Units))
	_ = b.WriteByte('}')
	return errors.Join(err, b.Flush())
}

func table[T any](b *bufio.Writer, name string, all []T) error {
	_, _ = b.WriteString(`,"` + name + `":[`)
	for i := range all {
		if i > 0 {
			_ = b.WriteByte(',')
		}
		body, err := json.Marshal(&all[i])
		if err != nil {
			return err
		}
		_, _ = b.Write(body)
	}
	return b.WriteByte(']')
}

// change is a change that at least one unit has.
type change struct {
	Kind  Kind   `json:"k,omitempty"`
	Op    string `json:"op,omitempty"`
	Title int    `json:"t"`
	Lines []int  `json:"l"`
}

type unitData struct {
	Name     string  `json:"n"`
	Label    string  `json:"l,omitempty"` // label in the box, if it is not the name
	State    State   `json:"s,omitempty"` // "" for planned
	Summary  int     `json:"t"`
	Counts   []int   `json:"c,omitempty"`
	At       [2]int  `json:"at"` // column and row of the map
	Needs    []int   `json:"needs,omitempty"`
	Messages [][]int `json:"m,omitempty"`
	Errors   []int   `json:"e,omitempty"` // indices of those messages that are errors
	Changes  []int   `json:"x,omitempty"` // indices of changes
	Causes   []int   `json:"z,omitempty"` // for each change, the index of its causes; omitted if there are none
	Waits    []wait  `json:"w,omitempty"`
	Inputs   []input `json:"i,omitempty"`
}

type wait struct {
	What int      `json:"a"`
	Why  int      `json:"y"`
	At   int      `json:"at"`
	For  [][4]int `json:"for,omitempty"` // unit (its index, or -1), ref, input, at
}

type input struct {
	Name  int   `json:"n"`
	Value int   `json:"v"`
	Steps []int `json:"p,omitempty"` // indices of steps
}

// encoder fills the tables of a document.
type encoder struct {
	doc     document
	texts   map[string]int
	changes map[changeKey]int
	causes  map[string]int // indices of lists of causes, by their numbers as text
	steps   map[[6]int]int
	names   map[string]int
}

// encode returns the data of a page.
func encode(p *Page) (*document, error) {
	e := &encoder{texts: map[string]int{}, changes: map[changeKey]int{}, causes: map[string]int{}, steps: map[[6]int]int{}, names: map[string]int{}}
	e.doc = document{
		about: about{Title: digraph.Clean(p.Title), Command: digraph.Clean(p.Command), From: digraph.Clean(p.From), Compares: p.Compares, Noun: p.Noun, Made: digraph.Clean(p.Made), Program: digraph.Clean(p.Program)},
		Texts: []string{}, Changes: []change{}, Causes: [][]int{{}}, Steps: [][6]int{}, Columns: []int{}, Units: make([]unitData, len(p.Units)),
	}
	e.text("")
	for i := range p.Units {
		u := &p.Units[i]
		e.names[u.Name] = i
		for _, n := range u.Needs {
			if n < 0 || n >= len(p.Units) {
				return nil, fmt.Errorf("unit %s needs number %d of %d", u.Name, n, len(p.Units))
			}
		}
	}
	e.place(p.Units)
	for i := range p.Units {
		e.unit(&e.doc.Units[i], &p.Units[i])
	}
	return &e.doc, nil
}

// place computes the layout of the map: columns from left to right, each with one layer of
// units.
func (e *encoder) place(units []Box) {
	nodes := make([]digraph.Node, len(units))
	prefix := sharedFolder(units)
	for i := range units {
		nodes[i] = digraph.Node{Name: strings.TrimPrefix(units[i].Name, prefix), Needs: units[i].Needs}
	}
	spots, _, _ := digraph.Layout(nodes)
	first := []int{} // number of columns before each layer
	for _, s := range spots {
		for len(first) <= s.Layer+1 {
			first = append(first, 0)
		}
		first[s.Layer+1] = max(first[s.Layer+1], s.Column+1)
	}
	for layer := 1; layer < len(first); layer++ {
		for range first[layer] {
			e.doc.Columns = append(e.doc.Columns, layer-1)
		}
		first[layer] += first[layer-1]
	}
	for i, s := range spots {
		u := &e.doc.Units[i]
		u.At = [2]int{first[s.Layer] + s.Column, s.Row}
		if label := digraph.Clean(digraph.Shown(nodes[i].Name)); label != digraph.Clean(units[i].Name) {
			u.Label = label
		}
	}
}

// sharedFolder returns the directory, with a slash at its end, that contains all units.
func sharedFolder(units []Box) string {
	if len(units) < 2 {
		return ""
	}
	shared := ""
	for i, u := range units {
		dir := path.Dir(u.Name) + "/"
		if i == 0 {
			shared = dir
		}
		for shared != "" && !strings.HasPrefix(dir, shared) {
			shared = shared[:strings.LastIndexByte(strings.TrimSuffix(shared, "/"), '/')+1]
		}
	}
	if shared == "./" || shared == "../" {
		return ""
	}
	return shared
}

func (e *encoder) unit(out *unitData, u *Box) {
	out.Name, out.Summary, out.Needs = digraph.Clean(u.Name), e.text(u.Summary), u.Needs
	if u.State != Planned {
		out.State = u.State
	}
	if (u.Counts != plan.Counts{}) {
		out.Counts = []int{u.Counts.Add, u.Counts.Change, u.Counts.Destroy, u.Counts.Import, u.Counts.Forget}
	}
	for i, m := range u.Messages {
		out.Messages = append(out.Messages, e.lines(m.Text))
		if m.Error {
			out.Errors = append(out.Errors, i)
		}
	}
	some := false
	for _, c := range u.Changes {
		out.Changes = append(out.Changes, e.change(c))
		out.Causes = append(out.Causes, e.causesOf(c))
		some = some || len(c.Causes) > 0
	}
	if !some {
		out.Causes = nil
	}
	for _, w := range u.Waits {
		x := wait{What: e.text(w.What), Why: e.text(w.Why), At: e.text(w.At)}
		for _, s := range w.For {
			i, ok := e.names[s.Unit]
			if !ok {
				i = -1
			}
			x.For = append(x.For, [4]int{i, e.text(s.Ref), e.text(s.Input), e.text(s.At)})
		}
		out.Waits = append(out.Waits, x)
	}
	for _, in := range u.Inputs {
		x := input{Name: e.text(in.Name), Value: e.text(in.Value)}
		for _, s := range in.Steps {
			x.Steps = append(x.Steps, e.step(s))
		}
		out.Inputs = append(out.Inputs, x)
	}
}

// changeKey identifies a change without its causes.
type changeKey struct {
	kind     Kind
	op, text string
}

// change returns the index of a change. Equal changes of all units share an index.
func (e *encoder) change(c Change) int {
	key := changeKey{c.Kind, c.Op, c.Text}
	if i, ok := e.changes[key]; ok {
		return i
	}
	lines := strings.Split(strings.Trim(c.Text, "\n"), "\n")
	title, op := titleOf(c, lines)
	x := change{Kind: c.Kind, Op: op, Title: e.text(title)}
	x.Lines = e.linesOf(lines)
	i := len(e.doc.Changes)
	e.doc.Changes = append(e.doc.Changes, x)
	e.changes[key] = i
	return i
}

// causesOf returns the index of the causes of a change. Equal causes of all units share an index.
func (e *encoder) causesOf(of Change) int {
	if len(of.Causes) == 0 {
		return 0
	}
	above := len(of.Text) - len(strings.TrimLeft(of.Text, "\n")) // empty lines that the page leaves out
	var list []int
	for _, c := range of.Causes {
		list = append(list, max(c.Line-above, 0), e.text(c.Text))
	}
	key := fmt.Sprint(list)
	i, ok := e.causes[key]
	if !ok {
		i = len(e.doc.Causes)
		e.doc.Causes = append(e.doc.Causes, list)
		e.causes[key] = i
	}
	return i
}

// titleOf returns a short form of a change, from its text: "ADDRESS will be created" for a
// resource, and the name for an output. op is the symbol of the operation.
func titleOf(c Change, lines []string) (title, op string) {
	title = strings.TrimSpace(lines[0])
	switch c.Kind {
	case Drift:
		return "objects changed outside", c.Op
	case Output:
		sign, rest, _ := strings.Cut(title, " ")
		name, _, _ := strings.Cut(rest, " = ")
		return strings.TrimSpace(name), map[string]string{"+": "create", "-": "delete", "~": "update"}[sign]
	}
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "# ") }); i >= 0 {
		title = strings.TrimPrefix(strings.TrimSpace(lines[i]), "# ")
	}
	return title, c.Op
}

func (e *encoder) step(s Step) int {
	x := [6]int{e.text(s.Text), e.text(s.File), s.Line, s.Column, e.text(s.Role), 0}
	if s.Replaced {
		x[5] = 1
	}
	i, ok := e.steps[x]
	if !ok {
		i = len(e.doc.Steps)
		e.doc.Steps = append(e.doc.Steps, x)
		e.steps[x] = i
	}
	return i
}

func (e *encoder) lines(text string) []int {
	return e.linesOf(strings.Split(strings.Trim(text, "\n"), "\n"))
}

// linesOf returns the indices of lines. A negative number n means the -n texts that follow the
// previous one in the table. So a long text that many units share, with few differences, needs
// little space.
func (e *encoder) linesOf(lines []string) []int {
	var out []int
	last, run := -1, false
	for _, l := range lines {
		i := e.text(l)
		switch {
		case len(out) > 0 && i == last+1 && run:
			out[len(out)-1]--
		case len(out) > 0 && i == last+1:
			out, run = append(out, -1), true
		default:
			out, run = append(out, i), false
		}
		last = i
	}
	return out
}

// text returns the index of a text.
func (e *encoder) text(s string) int {
	i, ok := e.texts[s]
	if !ok {
		i = len(e.doc.Texts)
		e.doc.Texts = append(e.doc.Texts, digraph.Clean(s))
		e.texts[s] = i
	}
	return i
}
