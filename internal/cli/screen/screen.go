// Package screen fills the terminal with a view that keys change, such as a list or a form.
//
// Main types: Screen, returned by Open, and View. The one rule: Close restores the terminal,
// however a view ends.
package screen

import (
	"context"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A View is the content of a screen.
type View interface {
	// Draw returns the whole content, from Page, for a terminal of this size.
	Draw(width, height int) string
	// Key handles a key and reports whether the view ends. key is a character, or the name
	// of a key such as "enter", "up" or "ctrl-c". Other keys, such as F1, are not passed.
	Key(key string) (done bool)
}

// A Screen is a terminal that shows one view at a time. It is used by one goroutine.
type Screen struct {
	terminal sys.Terminal
	out      io.Writer
	keys     <-chan string
	restore  func() error
	pending  string   // an incomplete key
	typed    []string // keys that the last view did not handle
}

// Open switches the terminal to an empty screen. It can be called once in a process, and only
// if the standard input and output are terminals.
func Open(s *sys.System, out io.Writer) (*Screen, error) {
	keys, restore, err := s.Terminal.Keys()
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(out, "\x1b[?1049h\x1b[?25l\x1b[?7l") // alternate screen, no cursor, no wrapping
	sc := &Screen{terminal: s.Terminal, out: out, keys: keys, restore: restore}
	if err != nil {
		_ = sc.Close() // the first error counts
		return nil, err
	}
	return sc, nil
}

// Close restores the terminal.
func (s *Screen) Close() error {
	_, err := io.WriteString(s.out, "\x1b[?7h\x1b[?25h\x1b[?1049l")
	if e := s.restore(); e != nil {
		err = e
	}
	return err
}

// Show shows a view until it ends. ended is false if the input or ctx ended first.
func (s *Screen) Show(ctx context.Context, v View) (ended bool, err error) {
	for {
		for len(s.typed) > 0 {
			k := s.typed[0]
			s.typed = s.typed[1:]
			if v.Key(k) {
				return true, nil
			}
		}
		if _, err := io.WriteString(s.out, v.Draw(max(s.terminal.Width(), 20), max(s.terminal.Height(), 6))); err != nil {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case typed, ok := <-s.keys:
			if !ok {
				return false, nil
			}
			s.typed, s.pending = split(s.pending + typed)
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
// outside of text input.
type keyNames struct{ controls, sequences, letters map[string]string }

func names() keyNames {
	return keyNames{
		controls: map[string]string{
			"\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\b": "backspace", "\x03": "ctrl-c",
			"\x0e": "down", "\x10": "up", "\x16": "pgdn", "\x01": "home", "\x05": "end", "\x15": "ctrl-u", "\x04": "ctrl-d",
		},
		sequences: map[string]string{
			"A": "up", "B": "down", "C": "pgdn", "D": "pgup", "H": "home", "F": "end", "Z": "shift-tab",
			"1~": "home", "4~": "end", "5~": "pgup", "6~": "pgdn", "7~": "home", "8~": "end",
		},
		letters: map[string]string{"j": "down", "k": "up", "l": "pgdn", "h": "pgup", "alt-v": "pgup", "G": "end", "g": "home", "q": "esc"},
	}
}

// Letter returns the key for which a letter can be typed where no text is entered: "down" for j. It
// returns other keys unchanged.
func Letter(k string) string {
	if name := names().letters[k]; name != "" {
		return name
	}
	return k
}

// Move returns the position in a list to which a key leads. all is the length of the list, and
// page the number of visible rows.
func Move(at int, k string, all, page int) int {
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

// Page returns the content of a screen: rows from the top, and one line at the bottom.
func Page(rows []string, last string, width, height int) string {
	var out strings.Builder
	out.WriteString("\x1b[H")
	for i := range height - 1 {
		if i < len(rows) {
			out.WriteString(rows[i])
		}
		out.WriteString("\x1b[K\r\n")
	}
	out.WriteString(Faint(Fit(last, width)) + "\x1b[K")
	return out.String()
}

// Fit truncates a line to a width.
func Fit(line string, width int) string {
	if r := []rune(line); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return line
}

// Bold returns text in bold.
func Bold(text string) string { return "\x1b[1m" + text + "\x1b[0m" }

// Faint returns text in a faint color.
func Faint(text string) string { return "\x1b[2m" + text + "\x1b[0m" }
