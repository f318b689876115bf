package sys

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// lineEditor edits lines on the terminal. The terminal is in raw mode only while a line is
// read, so that other output is printed normally and an interrupt is a signal.
type lineEditor struct {
	fd    int
	width func() int
	t     *term.Terminal
}

func newLineEditor(fd int, width func() int, complete Completer) *lineEditor {
	e := &lineEditor{fd: fd, width: width, t: term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{os.Stdin, os.Stdout}, "")}
	e.t.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		line, pos, choices := complete(line, pos)
		if len(choices) > 0 {
			_, _ = io.WriteString(e.t, strings.Join(choices, "  ")+"\n")
		}
		return line, pos, true
	}
	return e
}

// ReadLine implements LineEditor.
func (e *lineEditor) ReadLine(prompt string) (string, error) {
	old, err := term.MakeRaw(e.fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(e.fd, old) }()
	if w := e.width(); w > 0 {
		_ = e.t.SetSize(w, 25) // only the width matters
	}
	e.t.SetPrompt(prompt)
	line, err := e.t.ReadLine()
	if err == term.ErrPasteIndicator {
		err = nil
	}
	return line, err
}
