// Package prompt asks the user questions: on the terminal, or of what stands on
// standard input.
//
// Main type: Prompter. The one rule: whoever asks has looked at May first, since
// with -json, -input=false or TF_INPUT=0 there is nobody to ask.
package prompt

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/cli/report"
)

// A Prompter asks. New makes one.
type Prompter struct {
	report *report.Reporter
	input  *bufio.Reader // Stdin, once something was read
}

// New makes a prompter that writes its questions to the view for people and reads the
// answers from the reporter's system.
func New(r *report.Reporter) *Prompter {
	return &Prompter{report: r}
}

// A Question is asked once.
type Question struct {
	Title  string // a line
	Text   string // may be "" and have several lines
	Prompt string // "" means "Enter a value:"
	Secret bool   // the answer is not shown
}

var errNoAnswer = errors.New("the input ended before the question was answered")

// Variable is the title of the question for a variable.
func Variable(v *config.Variable) string {
	if v.Ephemeral {
		return "var." + v.Name + " (ephemeral)"
	}
	return "var." + v.Name
}

// May reports whether questions may be asked; input is what the flag -input says.
func (p *Prompter) May(input bool) bool {
	if p.report.Human == nil {
		return false
	}
	if v, ok := p.report.System.Env.Lookup("TF_INPUT"); ok && (v == "0" || strings.EqualFold(v, "false")) {
		return false
	}
	return input
}

// Ask returns the answer without the blanks around it. The end of the input
// before an answer, or of the context, is an error.
func (p *Prompter) Ask(ctx context.Context, q Question) (string, error) {
	var b strings.Builder
	b.WriteString(q.Title + "\n")
	if q.Text != "" {
		for _, line := range strings.Split(strings.TrimSpace(q.Text), "\n") {
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
