package scaffold

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/internal/cli/screen"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A field is one value that the form asks for.
type field struct {
	name        string
	ty          cty.Type // DynamicPseudoType if it is unknown
	shown       string   // the type as text; "" if it is unknown
	description string
	required    bool
	fallback    string // the default as an expression; "" for none
	typed       string // as the user typed it
	value       string // the value as an expression; "" if it is not set
	wrong       string // why typed is not a value
}

// set computes the value from the typed text.
func (f *field) set() {
	f.value, f.wrong = "", ""
	text := strings.TrimSpace(f.typed)
	switch {
	case f.typed == "":
	case f.ty == cty.String, f.ty == cty.DynamicPseudoType && plain(text):
		f.value = quoted(f.typed)
	default:
		f.value, f.wrong = expression(text, f.ty)
	}
}

// plain reports whether text for a value of unknown type is a string. Numbers, true, false,
// null, and text in quotes, brackets or braces are expressions.
func plain(text string) bool {
	if text == "" || strings.ContainsRune(`"[{<`, rune(text[0])) || slices.Contains([]string{"true", "false", "null"}, text) {
		return false
	}
	_, err := cty.ParseNumberVal(text)
	return err != nil
}

// expression checks an expression for a value of a type. References are not evaluated.
func expression(text string, ty cty.Type) (value, wrong string) {
	x, ds := hclsyntax.ParseExpression([]byte(text), "value", hcl.InitialPos)
	if ds.HasErrors() {
		return "", "not an expression: " + ds[0].Summary
	}
	if v, ds := x.Value(nil); !ds.HasErrors() {
		if _, err := convert.Convert(v, ty); err != nil {
			return "", err.Error()
		}
	}
	return text, ""
}

// A form asks for values on a terminal. Only keys change it.
type form struct {
	title     string
	fields    []*field
	at, top   int // positions in the list of shown fields
	editing   bool
	searching bool
	search    string
	note      string // shown until the next key
	canceled  bool
	rows      int // the number of fields that fit the screen
}

const formHelp = "enter edits · x unsets · r resets all · / finds · s writes · ctrl-d writes as it is · esc cancels"

func (f *form) shown() (out []*field) {
	for _, x := range f.fields {
		if strings.Contains(strings.ToLower(x.name), strings.ToLower(f.search)) {
			out = append(out, x)
		}
	}
	return out
}

// focused returns the field under the cursor, or nil.
func (f *form) focused() *field {
	if shown := f.shown(); f.at < len(shown) {
		return shown[f.at]
	}
	return nil
}

// Key implements screen.View.
func (f *form) Key(k string) (done bool) {
	f.note = ""
	switch {
	case k == "ctrl-c":
		f.canceled = true
		return true
	case f.searching:
		f.find(k)
		return false
	case k == "ctrl-d":
		f.editing = false
		return f.valid()
	case f.editing:
		f.edit(k)
		return false
	}
	x := f.focused()
	switch k = screen.Letter(k); {
	case k == "esc":
		f.canceled = true
		return true
	case k == "/":
		f.searching, f.search, f.at = true, "", 0
	case k == "s":
		return f.complete()
	case k == "r":
		for _, x := range f.fields {
			x.typed = ""
			x.set()
		}
	case x != nil && k == "x":
		x.typed = ""
		x.set()
	case x != nil && x.ty == cty.Bool && (k == "enter" || k == "i"):
		x.toggle()
	case x != nil && (k == "enter" || k == "i"):
		f.editing = true
	default:
		f.at = screen.Move(f.at, k, len(f.shown()), f.rows)
	}
	return false
}

func (f *field) toggle() {
	if f.typed == "true" || f.typed == "" && f.fallback == "true" {
		f.typed = "false"
	} else {
		f.typed = "true"
	}
	f.set()
}

// find handles a key of a search for names.
func (f *form) find(k string) {
	switch k {
	case "esc":
		f.searching, f.search = false, ""
	case "enter":
		f.searching = false
	default:
		f.search = typed(f.search, k)
	}
	f.at = 0
}

// edit handles a key while a value is typed.
func (f *form) edit(k string) {
	x := f.focused()
	step := map[string]int{"tab": 1, "shift-tab": -1}[k]
	switch {
	case k == "enter" && x.ty == cty.Bool:
		x.toggle()
	case k == "esc", k == "enter":
		f.editing = false
	case step != 0:
		f.at = max(0, min(f.at+step, len(f.shown())-1))
	case x.ty != cty.Bool:
		x.typed = typed(x.typed, k)
		x.set()
	}
}

// typed returns text after a key.
func typed(text, k string) string {
	switch r := []rune(text); {
	case k == "backspace" && len(r) > 0:
		return string(r[:len(r)-1])
	case k == "ctrl-u":
		return ""
	case len([]rune(k)) == 1 && unicode.IsPrint([]rune(k)[0]):
		return text + k
	}
	return text
}

// valid reports whether no value is invalid. Otherwise it moves to the first one that is.
func (f *form) valid() bool {
	return f.none(func(x *field) bool { return x.wrong != "" }, "invalid")
}

// complete reports whether all required values are set.
func (f *form) complete() bool {
	return f.valid() && f.none(func(x *field) bool { return x.required && x.value == "" }, "missing; ctrl-d writes the others")
}

// none reports whether no field is faulty. Otherwise it moves to the first one that is.
func (f *form) none(faulty func(*field) bool, kind string) bool {
	count := 0
	for i, x := range f.fields {
		if faulty(x) {
			if count++; count == 1 {
				f.search, f.at = "", i
			}
		}
	}
	if count > 0 {
		f.note = fmt.Sprintf("%d of %d values: %s", count, len(f.fields), kind)
	}
	return count == 0
}

// Draw implements screen.View.
func (f *form) Draw(width, height int) string {
	f.rows = max(1, (height-3)/2) // each field has two lines
	shown := f.shown()
	f.at = screen.Move(f.at, "", len(shown), f.rows)
	f.top = max(0, min(f.top, f.at), f.at-f.rows+1)
	head := ""
	if f.searching {
		head = "/" + f.search + "█"
	} else if f.search != "" {
		head = "/" + f.search
	}
	rows := []string{screen.Bold(screen.Fit(wrap.OneLine(f.title), width)), screen.Fit(head, width)}
	for i := f.top; i < min(len(shown), f.top+f.rows); i++ {
		x := shown[i]
		line := x.name + " = " + x.text(f.editing && i == f.at)
		about := x.about()
		if i == f.at {
			rows = append(rows, screen.Bold(screen.Fit("> "+line, width)))
		} else {
			rows = append(rows, screen.Fit("  "+line, width))
		}
		rows = append(rows, screen.Faint(screen.Fit("    "+about, width)))
	}
	last := formHelp
	switch {
	case f.note != "":
		last = f.note
	case f.editing:
		last = "enter or esc ends · tab next · ctrl-u deletes all · ctrl-d writes as it is"
	case f.searching:
		last = "enter ends · esc shows all"
	}
	return screen.Page(rows, last, width, height)
}

// text returns the text beside the name of a field. Of long values it shows the end while they
// are typed.
func (f *field) text(editing bool) string {
	text := wrap.OneLine(f.typed)
	switch {
	case editing:
		if r := []rune(text); len(r) > 40 {
			text = "…" + string(r[len(r)-39:])
		}
		return text + "█"
	case text != "":
		return text
	case f.required:
		return "(required)"
	case f.fallback != "":
		return "(default: " + wrap.OneLine(f.fallback) + ")"
	}
	return "(not set)"
}

// about returns the second line of a field: its error, or its type and description.
func (f *field) about() string {
	if f.wrong != "" {
		return "invalid: " + wrap.OneLine(f.wrong)
	}
	return strings.Trim(wrap.OneLine(f.shown+" · "+f.description), " ·")
}
