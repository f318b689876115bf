package view

import (
	"io"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/wrap"
)

// A Human prints progress, messages and other text for people. Its methods may be called
// concurrently. A nil Human prints nothing.
type Human struct {
	Out, Errs io.Writer
	Style     Style
	Printer   *diag.Printer
	Concise   bool // print no lines about progress
	Joined    bool // Out and Errs are the same terminal

	mu       sync.Mutex
	applying bool
	column   int // columns of the last line that Say and Copy wrote, if it has no line break yet
}

// errs returns the writer for errors. If Out and Errs are the same terminal, errors go to Out,
// so that they do not damage a status line there.
func (h *Human) errs() io.Writer {
	if h.Joined {
		return h.Out
	}
	return h.Errs
}

// Applying marks the beginning of the apply of a plan.
func (h *Human) Applying() {
	if h != nil {
		h.mu.Lock()
		h.applying = true
		h.mu.Unlock()
	}
}

// Event prints an event.
func (h *Human) Event(e event.Event) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Kind == event.Message && e.Diag != nil {
		_ = h.Printer.Split(h.Out, h.errs(), diag.List{e.Diag})
		return
	}
	if h.Concise && e.Kind != event.ProvisionOutput {
		return
	}
	s := Text(e, h.applying)
	if s == "" {
		return
	}
	if h.Style.Color && e.Kind != event.ProvisionOutput {
		s = bold + s + reset
	}
	_, _ = io.WriteString(h.Out, s+"\n")
}

// Messages prints messages: warnings to Out, errors to Errs.
func (h *Human) Messages(ds diag.List) {
	if h == nil || len(ds) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.Printer.Split(h.Out, h.errs(), ds)
}

// With is Messages with another printer.
func (h *Human) With(p *diag.Printer, ds diag.List) {
	if h == nil || len(ds) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = p.Split(h.Out, h.errs(), ds)
}

// AboveStatus writes text about the run, which is not part of the command's output, to Errs.
func (h *Human) AboveStatus(text string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = io.WriteString(h.errs(), text)
}

// WithAside prints messages with another printer, all of them to Errs.
func (h *Human) WithAside(p *diag.Printer, ds diag.List) {
	if h == nil || len(ds) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = p.Print(h.errs(), ds)
}

// Say writes sentences for people, wrapped at the width of the terminal.
func (h *Human) Say(text string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.out(wrap.Fit(text, h.Style.Width, h.column))
}

// Copy writes text unchanged: values, tables, and text that is already wrapped.
func (h *Human) Copy(text string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.out(text)
}

// out writes text to Out.
func (h *Human) out(text string) {
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		h.column = wrap.Columns(text[i+1:])
	} else {
		h.column += wrap.Columns(text)
	}
	_, _ = io.WriteString(h.Out, text)
}

// Complain writes sentences for people to Errs, wrapped at the width of the terminal.
func (h *Human) Complain(text string) {
	if h != nil {
		h.AboveStatus(wrap.Fit(text, h.Style.Width, 0))
	}
}

// Good writes text in the style of a success.
func (h *Human) Good(text string) {
	if h != nil {
		h.Say(h.dress(bold+green, text))
	}
}

// Colors for Paint.
const (
	Green = green
	Red   = red
	Gray  = "\x1b[90m"
)

// Paint writes text in a color.
func (h *Human) Paint(color, text string) {
	if h != nil {
		h.Say(h.dress(color, text))
	}
}

// Strong writes bold text.
func (h *Human) Strong(text string) {
	if h != nil {
		h.Say(h.dress(bold, text))
	}
}

func (h *Human) dress(style, text string) string {
	if h.Style.Color {
		return style + text + reset
	}
	return text
}
