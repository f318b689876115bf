// Package unitlog writes log lines about units, in the formats of --log-format and
// --log-custom-format.
//
// Main type: Log. The one rule: a level that is not shown gives no line.
package unitlog

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// # Lines about units
//
// A line begins with the name of its unit. Its format is that of --log-format or
// --log-custom-format, or a short one without these flags. The levels are those of Terragrunt:
// stdout is the output of commands, and info contains messages about the run.

// Levels returns the levels, from the least to the most verbose.
func Levels() []string {
	return []string{"stderr", "stdout", "error", "warn", "info", "debug", "trace"}
}

// A Log formats the lines.
type Log struct {
	level   int
	format  string // "" for the short format
	parts   []logPart
	root    string // directory of the run; "" unless absolute paths are shown
	forward bool
	Command []string
	now     func() time.Time
	start   time.Time
	colors  map[string]string // color of each unit's name, as an escape sequence
}

// A logPart is a part of --log-custom-format: text, or a placeholder.
type logPart struct {
	text, name string
	options    map[string]string
}

// Settings contains the values of the log flags.
type Settings struct {
	Level, Format, Custom  string // "" for the default
	Off, AbsPaths, Forward bool
}

// New returns a log for units below a directory. now may be nil if no line is written.
func New(f Settings, root string, now func() time.Time) (*Log, error) {
	l := &Log{level: slices.Index(Levels(), "info"), format: f.Format, forward: f.Forward, now: now}
	if f.Level != "" {
		l.level = slices.Index(Levels(), f.Level)
	}
	if f.Off {
		l.level = slices.Index(Levels(), "stdout")
		l.forward = true
	}
	if f.AbsPaths {
		l.root = root
	}
	if now != nil {
		l.start = now()
	}
	var err error
	if f.Custom != "" {
		l.format = "custom"
		l.parts, err = parseLogFormat(f.Custom)
	}
	return l, err
}

// palette contains colors that are readable on light and dark backgrounds.
var palette = [...]string{"33", "37", "64", "136", "166", "125", "61", "70", "31", "172", "96", "29"}

// Color assigns a color to the name of each unit, so that adjacent lines can be distinguished.
// Formats for programs have no colors.
func (l *Log) Color(units []string) {
	l.colors = make(map[string]string, len(units))
	for i, name := range units {
		l.colors[name] = "\x1b[38;5;" + palette[i%len(palette)] + "m"
	}
}

// painted returns text in the color of a unit.
func (l *Log) painted(unit, text string) string {
	if c := l.colors[unit]; c != "" {
		return c + text + "\x1b[0m"
	}
	return text
}

// Shows reports whether lines of a level are shown.
func (l *Log) Shows(level string) bool { return slices.Index(Levels(), level) <= l.level }

// Short reports whether the lines have the short format, which --log-format does not select.
func (l *Log) Short() bool { return l.format == "" }

// Lines formats text about a unit. It returns "" if the level is not shown.
func (l *Log) Lines(level, unit, text string) string {
	if !l.Shows(level) {
		return ""
	}
	shown := l.painted(unit, "["+unit+"]")
	if l.root != "" {
		name := unit
		unit = filepath.Join(l.root, filepath.FromSlash(unit))
		shown = l.painted(name, "["+unit+"]")
	}
	text = strings.TrimRight(text, "\n")
	if l.forward && level == "stdout" {
		return text + "\n"
	}
	if l.format == "json" {
		return l.object(level, unit, text)
	}
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		l.line(&b, level, unit, shown, line)
		b.WriteByte('\n')
	}
	return b.String()
}

// line writes one line. shown is the name of the unit as shown to people.
func (l *Log) line(b *strings.Builder, level, unit, shown, line string) {
	now := time.Time{}
	if l.now != nil && l.format != "" {
		now = l.now()
	}
	switch l.format {
	case "":
		b.WriteString(shown + " " + line)
	case "bare":
		fmt.Fprintf(b, "%s[%04d] %s prefix=%s", strings.ToUpper(level), int(now.Sub(l.start).Seconds()), line, unit)
	case "pretty":
		fmt.Fprintf(b, "%s %-6s %s %s", now.Format("15:04:05.000"), strings.ToUpper(level), shown, line)
	case "key-value":
		fmt.Fprintf(b, "time=%s level=%s prefix=%s tf-path=terrace msg=%s", now.UTC().Format(time.RFC3339), level, unit, line)
	default:
		for _, p := range l.parts {
			b.WriteString(l.part(&p, level, unit, line, now))
		}
	}
}

// object returns a line of --log-format json.
func (l *Log) object(level, unit, text string) string {
	doc := struct {
		Time  string   `json:"time"`
		Level string   `json:"level"`
		Dir   string   `json:"working-dir"`
		Path  string   `json:"tf-path"`
		Args  []string `json:"tf-command-args"`
		Msg   string   `json:"msg"`
	}{l.now().UTC().Format(time.RFC3339), level, unit, "terrace", l.Command, text}
	b, err := json.Marshal(doc)
	if err != nil {
		return ""
	}
	return string(b) + "\n"
}

// part formats one part of a custom format.
func (l *Log) part(p *logPart, level, unit, line string, now time.Time) string {
	s := ""
	switch p.name {
	case "":
		return p.text
	case "time":
		s = now.Format(timeLayout(p.options["format"]))
	case "interval":
		s = fmt.Sprintf("%04d", int(now.Sub(l.start).Seconds()))
	case "level":
		s = level
		switch p.options["format"] {
		case "short":
			s = level[:min(4, len(level))]
		case "tiny":
			s = level[:1]
		}
	case "prefix":
		s = unit
	case "tf-path":
		s = "terrace"
	case "tf-command":
		s = strings.Join(l.Command[:min(1, len(l.Command))], "")
	case "tf-command-args":
		s = strings.Join(l.Command, " ")
	case "msg":
		s = line
	case "t":
		return "\t"
	case "n":
		return "\n"
	}
	if c := p.options["content"]; c != "" {
		s = c
	}
	return decorate(s, p.options)
}

// decorate applies the options of a placeholder.
func decorate(s string, o map[string]string) string {
	switch o["case"] {
	case "upper":
		s = strings.ToUpper(s)
	case "lower":
		s = strings.ToLower(s)
	case "capitalize":
		if s != "" {
			s = strings.ToUpper(s[:1]) + s[1:]
		}
	}
	if o["escape"] == "json" {
		if b, err := json.Marshal(s); err == nil {
			s = string(b[1 : len(b)-1])
		}
	}
	if width, err := strconv.Atoi(o["width"]); err == nil && width > 0 {
		pad := max(0, width-len(s))
		switch o["align"] {
		case "right":
			s = strings.Repeat(" ", pad) + s
		case "center":
			s = strings.Repeat(" ", pad/2) + s + strings.Repeat(" ", pad-pad/2)
		default:
			s += strings.Repeat(" ", pad)
		}
	}
	if s == "" {
		return ""
	}
	return o["prefix"] + s + o["suffix"]
}

// timeLayout returns the Go layout of a time format: a name, or letters as in Y-m-d H:i:s.
func timeLayout(format string) string {
	switch format {
	case "":
		return "15:04:05.000"
	case "rfc3339":
		return time.RFC3339
	case "rfc3339-nano":
		return time.RFC3339Nano
	case "date-time":
		return time.DateTime
	case "date-only":
		return time.DateOnly
	case "time-only":
		return time.TimeOnly
	}
	return strings.NewReplacer("Y", "2006", "y", "06", "m", "01", "n", "1", "M", "Jan", "d", "02", "j", "2", "D", "Mon",
		"H", "15", "h", "03", "g", "3", "i", "04", "s", "05", "v", "000", "u", "000000", "A", "PM", "a", "pm", "T", "MST", "P", "-07:00", "O", "-0700").Replace(format)
}

// parseLogFormat parses a custom format: text with %name or %name(option=value,…).
func parseLogFormat(s string) ([]logPart, error) {
	var out []logPart
	for s != "" {
		at := strings.IndexByte(s, '%')
		if at < 0 {
			return append(out, logPart{text: s}), nil
		}
		if at > 0 {
			out = append(out, logPart{text: s[:at]})
		}
		p, rest, err := parsePlaceholder(s[at+1:])
		if err != nil {
			return nil, err
		}
		out = append(out, p)
		s = rest
	}
	return out, nil
}

func parsePlaceholder(s string) (p logPart, rest string, err error) {
	if strings.HasPrefix(s, "%") {
		return logPart{text: "%"}, s[1:], nil
	}
	best := ""
	for _, name := range [...]string{"time", "interval", "level", "prefix", "tf-path", "tf-command", "tf-command-args", "msg", "t", "n"} {
		if strings.HasPrefix(s, name) && len(name) > len(best) {
			best = name
		}
	}
	if best == "" {
		return p, "", fmt.Errorf("invalid value for flag --log-custom-format: there is no placeholder at %q; there are time, interval, level, prefix, tf-path, tf-command, tf-command-args, msg, t and n", "%"+s)
	}
	p.name, rest = best, s[len(best):]
	inner, after, ok := strings.Cut(strings.TrimPrefix(rest, "("), ")")
	if !strings.HasPrefix(rest, "(") {
		return p, rest, nil
	}
	if !ok {
		return p, "", fmt.Errorf("invalid value for flag --log-custom-format: the options of %%%s are never closed", best)
	}
	p.options = map[string]string{}
	for option := range strings.SplitSeq(inner, ",") {
		name, value, _ := strings.Cut(option, "=")
		name = strings.TrimSpace(name)
		switch name {
		case "content", "prefix", "suffix", "escape", "case", "width", "align", "format", "color", "path", "":
			p.options[name] = strings.Trim(strings.TrimSpace(value), `'"`)
		default:
			return p, "", fmt.Errorf("invalid value for flag --log-custom-format: %%%s has no option %q", best, name)
		}
	}
	return p, after, nil
}
