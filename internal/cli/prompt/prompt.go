// Package prompt asks the user questions, on the terminal or on standard input.
//
// Main type: Prompter. The one rule: the caller checks May before it asks, because the user cannot
// answer with -json, -input=false or TF_INPUT=0.
package prompt

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/internal/cli/report"
)

// A Prompter asks questions. New returns one.
type Prompter struct {
	report *report.Reporter
	input  *bufio.Reader // buffer for Stdin; nil before the first read
}

// New returns a prompter that writes questions to the reporter's view for people and reads
// answers from its system.
func New(r *report.Reporter) *Prompter {
	return &Prompter{report: r}
}

// A Question is a question to the user.
type Question struct {
	Title  string // one line
	Text   string // may be empty or have several lines
	Prompt string // "" means "Enter a value:"
	Secret bool   // do not show the answer
}

var errNoAnswer = errors.New("the input ended before the question was answered")

// Variable returns the title of the question for a variable.
func Variable(v *config.Variable) string {
	if v.Ephemeral {
		return "var." + v.Name + " (ephemeral)"
	}
	return "var." + v.Name
}

// May reports whether questions are allowed. input is the value of the flag -input.
func (p *Prompter) May(input bool) bool {
	if p.report.Human == nil {
		return false
	}
	if v, ok := p.report.System.Env.Lookup("TF_INPUT"); ok && (v == "0" || strings.EqualFold(v, "false")) {
		return false
	}
	return input
}

// Ask returns the answer without white space around it. It returns an error if the input ends
// before an answer, or if ctx is canceled.
func (p *Prompter) Ask(ctx context.Context, q Question) (string, error) {
	var b strings.Builder
	b.WriteString(q.Title + "\n")
	if q.Text != "" {
		for _, line := range strings.Split(wrap.Fit(strings.TrimSpace(q.Text), p.room(), 0), "\n") {
			b.WriteString("  " + line + "\n")
		}
		b.WriteString("\n")
	}
	prompt := q.Prompt
	if prompt == "" {
		prompt = "Enter a value:"
	}
	b.WriteString("  " + prompt + " ")
	p.report.Human.Say(b.String())
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // waits for the user; without an answer it ends with the process
		text, err := p.read(q.Secret)
		got <- answer{text, err}
	}()
	select {
	case a := <-got:
		p.report.Human.Say("\n")
		return strings.TrimSpace(a.text), a.err
	case <-ctx.Done():
		p.report.Human.Say("\n")
		return "", context.Cause(ctx)
	}
}

// room returns the columns of the terminal for text that is indented by two spaces; 0 if the
// output is not a terminal.
func (p *Prompter) room() int {
	return max(p.report.Human.Style.Width-2, 0)
}

func (p *Prompter) read(secret bool) (string, error) {
	if secret && p.report.System.Terminal.In {
		return p.report.System.Terminal.ReadSecret()
	}
	if p.input == nil {
		p.input = bufio.NewReader(p.report.System.Stdin)
	}
	text, err := p.input.ReadString('\n')
	if errors.Is(err, io.EOF) {
		if text != "" {
			return text, nil
		}
		return "", errNoAnswer
	}
	return text, err
}
