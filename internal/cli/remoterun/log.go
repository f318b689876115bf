package remoterun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/command"
)

// A log prints the lines of a run's log as they arrive. It prints text unchanged, and
// translates structured lines into text.
type log struct {
	c          *command.Call
	structured bool
	rest       []byte // an incomplete line

	holds   bool     // hold back messages about the plan
	held    []string // text of the messages that are held back
	changes bool     // a planned change is among them
}

func (l *log) write(text []byte) {
	l.rest = append(l.rest, text...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return
		}
		l.rest = rest
		l.line(line)
	}
}

// end prints the last line if it has no end of line.
func (l *log) end() {
	if len(l.rest) > 0 {
		l.line(l.rest)
		l.rest = nil
	}
}

// A message is a line of a structured log.
type message struct {
	Level      string `json:"@level"`
	Text       string `json:"@message"`
	Type       string `json:"type"`
	Diagnostic *struct {
		Severity, Summary, Detail, Address string
		Range                              *struct {
			Filename string
			Start    struct{ Line int }
		}
	}
	Change *struct {
		Resource struct{ Addr string }
		Action   string
		Reason   string
	}
	Outputs map[string]struct {
		Sensitive bool
		Action    string
		Value     json.RawMessage
	}
}

func (l *log) line(line []byte) {
	var m message
	if !l.structured || len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &m) != nil || m.Type == "" && m.Text == "" {
		l.c.Report.Human.Copy(string(line) + "\n")
		if text := strings.TrimSpace(string(line)); text != "" {
			l.c.Report.Stream.Log(text)
		}
		return
	}
	if l.c.Report.Stream != nil {
		var more map[string]any
		if json.Unmarshal(line, &more) == nil {
			for name := range more {
				if strings.HasPrefix(name, "@") || name == "type" {
					delete(more, name)
				}
			}
			if m.Level == "error" {
				l.c.Report.Stream.TypedError(m.Text, m.Type, more)
			} else {
				l.c.Report.Stream.Typed(m.Text, m.Type, more)
			}
		}
	}
	text := m.words()
	switch {
	case text == "":
	case l.holds && slices.Contains([]string{"planned_change", "resource_drift", "change_summary", "outputs"}, m.Type):
		l.held = append(l.held, text)
		l.changes = l.changes || m.Type == "planned_change"
	default:
		l.c.Report.Human.Copy(text + "\n")
	}
}

// actions are the texts for planned actions.
var actions = map[string]string{
	"create": "will be created", "read": "will be read during apply", "update": "will be updated in-place", "delete": "will be destroyed",
	"replace": "must be replaced", "move": "has moved", "import": "will be imported", "forget": "will be removed from the state", "noop": "",
}

// words returns the text of a message, or "" if it has none.
func (m *message) words() string {
	switch m.Type {
	case "diagnostic":
		if d := m.Diagnostic; d != nil {
			severity := "Error"
			if d.Severity == "warning" {
				severity = "Warning"
			}
			text := "\n" + severity + ": " + d.Summary
			if d.Range != nil {
				text += fmt.Sprintf("\n\n  on %s line %d", d.Range.Filename, d.Range.Start.Line)
			}
			if d.Detail != "" {
				text += "\n\n" + d.Detail
			}
			return text
		}
	case "planned_change", "resource_drift":
		if m.Change == nil {
			return m.Text
		}
		what := actions[m.Change.Action]
		if m.Type == "resource_drift" {
			what = map[string]string{"update": "has changed", "delete": "has been deleted"}[m.Change.Action]
		}
		if what == "" {
			return ""
		}
		return "  # " + m.Change.Resource.Addr + " " + what
	case "change_summary":
		return "\n" + m.Text
	case "outputs":
		var lines []string
		for _, name := range sortedKeys(m.Outputs) {
			o := m.Outputs[name]
			value := string(o.Value)
			if o.Sensitive {
				value = "<sensitive>"
			}
			if value != "" {
				lines = append(lines, "  "+name+" = "+value)
			}
		}
		if len(lines) == 0 {
			return ""
		}
		return "\nOutputs:\n\n" + strings.Join(lines, "\n")
	case "version", "log":
		return m.Text
	}
	return m.Text
}
