package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/terrace-iac/terrace/config"
)

// A question is asked on the terminal, or of what stands on standard input.
type question struct {
	title  string // a line
	text   string // may be "" and have several lines
	prompt string // "" means "Enter a value:"
	secret bool   // the answer is not shown
}

var errNoAnswer = errors.New("there is no answer to be had: the input has ended")

// askedFor is the title of the question for a variable.
func askedFor(v *config.Variable) string {
	if v.Ephemeral {
		return "var." + v.Name + " (ephemeral)"
	}
	return "var." + v.Name
}

// ask returns the answer without the blanks around it. The end of the input
// before an answer, or of the context, is an error.
func (s *session) ask(ctx context.Context, q question) (string, error) {
	var b strings.Builder
	b.WriteString(q.title + "\n")
	if q.text != "" {
		for _, line := range strings.Split(strings.TrimSpace(q.text), "\n") {
			b.WriteString("  " + line + "\n")
		}
		b.WriteString("\n")
	}
	prompt := q.prompt
	if prompt == "" {
		prompt = "Enter a value:"
	}
	b.WriteString("  " + prompt + " ")
	s.human.Say(b.String())
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // waits for the user; without an answer it ends with the process
		text, err := s.readAnswer(q.secret)
		got <- answer{text, err}
	}()
	select {
	case a := <-got:
		s.human.Say("\n")
		return strings.TrimSpace(a.text), a.err
	case <-ctx.Done():
		s.human.Say("\n")
		return "", context.Cause(ctx)
	}
}

func (s *session) readAnswer(secret bool) (string, error) {
	if secret && s.Terminal.In {
		return s.Terminal.ReadSecret()
	}
	if s.input == nil {
		s.input = bufio.NewReader(s.Stdin)
	}
	text, err := s.input.ReadString('\n')
	if errors.Is(err, io.EOF) {
		if text != "" {
			return text, nil
		}
		return "", errNoAnswer
	}
	return text, err
}
