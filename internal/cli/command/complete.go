package command

import (
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// A Source returns candidates from a working directory. It returns quickly, with no candidates
// if it cannot.
type Source interface {
	// In returns the source for another directory, which may be relative to this one.
	In(dir string) Source
	// Candidates returns the candidates of a kind. text is the text that is completed. The
	// caller drops candidates that do not begin with text.
	Candidates(what flag.Completion, text string) []string
}

// Candidates are the words that the last word of a command line can become.
type Candidates struct {
	Words     []string        // whole words, sorted
	Paths     flag.Completion // Files or Folders: paths are candidates as well; otherwise Nothing
	Head      string          // the part of the last word before the path, such as "-out="
	Elsewhere bool            // paths are relative to a directory that a flag names

	path string // the part of the last word after Head
	from Source
}

// All returns the words, and the paths as whole words.
func (c *Candidates) All() []string {
	if c.Paths == flag.Nothing {
		return c.Words
	}
	return append(slices.Clone(c.Words), headed(c.Head, matching(c.from.Candidates(c.Paths, c.path), c.path))...)
}

func headed(head string, words []string) []string {
	for i := range words {
		words[i] = head + words[i]
	}
	return words
}

// Complete returns the candidates for the last of words, which are the words after the
// program's name.
func (t *Table) Complete(words []string, from Source) Candidates {
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	global := t.Global()
	lead, before := global.Leading(before)
	out := Candidates{from: from}
	out.enter(global, lead)
	cmd, rest, found := t.Find(before)
	switch {
	case !found && len(before) == 0 && isFlag(last):
		out.flag(global, last)
		return out
	case !found && len(before) == 0:
		out.Words = matching(t.names(""), last)
		return out
	case !found:
		if _, pending, _ := global.Arguments(before); len(before) == 1 && pending != nil {
			out.value(pending, "", last)
		}
		return out
	}
	flags := t.Flags(cmd)
	out.enter(flags, rest)
	if len(cmd.Args) > 0 && cmd.Args[0].Complete == flag.CommandLine {
		if inner := flags.FromArgument(rest); len(inner) > 0 {
			if cmd, rest, found = t.Find(inner); !found {
				return out
			}
			flags = append(t.Flags(cmd), flags.AnyPlace()...)
		}
	}
	args, pending, ended := flags.Arguments(rest)
	switch {
	case pending != nil:
		out.value(pending, "", last)
	case isFlag(last) && !ended:
		if len(args) > 0 && !cmd.Mixed {
			flags = flags.AnyPlace()
		}
		out.flag(flags, last)
	default:
		if len(rest) == 0 {
			out.Words = matching(t.names(cmd.Name+" "), last)
		}
		if arg := cmd.argument(len(args)); arg != nil {
			out.argument(t, arg, args, last)
		}
	}
	return out
}

func isFlag(word string) bool { return strings.HasPrefix(word, "-") }

// argument returns the declaration of the argument with index i, or nil if the command takes
// fewer arguments.
func (c *Command) argument(i int) *Arg {
	if last := len(c.Args) - 1; last >= 0 && i > last && c.Args[last].Repeated {
		i = last
	}
	if i >= len(c.Args) {
		return nil
	}
	return &c.Args[i]
}

// enter changes to the directories that flags among words name.
func (c *Candidates) enter(flags flag.Flags, words []string) {
	for f, value := range flags.Read(words) {
		if f != nil && f.WorksIn && value != "" {
			c.from, c.Elsewhere = c.from.In(value), true
		}
	}
}

// flag adds the candidates for a word that begins with a dash.
func (c *Candidates) flag(flags flag.Flags, word string) {
	_, value, has, _ := flag.Split(word)
	if !has {
		c.Words = matching(flags.Words(strings.HasPrefix(word, "--")), word)
	} else if f := flags.Find(word); f != nil {
		c.value(f, word[:len(word)-len(value)], value)
	}
}

// value adds the candidates for the value of a flag. head is the part of the word before it.
func (c *Candidates) value(f *flag.Flag, head, text string) {
	choices := f.Choices
	if f.Switch() {
		choices = []string{"false", "true"}
	}
	c.add(f.Complete, choices, head, text)
}

// argument adds the candidates for an argument after other arguments.
func (c *Candidates) argument(t *Table, arg *Arg, args []string, text string) {
	switch {
	case arg.Complete == flag.CommandLine:
		c.Words = append(c.Words, matching(t.names(""), text)...)
	case arg.Complete == flag.Commands && len(args) > 0:
		c.Words = append(c.Words, matching(t.names(strings.Join(args, " ")+" "), text)...)
	default:
		c.add(arg.Complete, arg.Choices, "", text)
	}
}

func (c *Candidates) add(what flag.Completion, choices []string, head, text string) {
	switch {
	case len(choices) > 0:
		c.Words = append(c.Words, headed(head, matching(choices, text))...)
	case what == flag.Files || what == flag.Folders:
		c.Paths, c.Head, c.path = what, head, text
	case what != flag.Nothing:
		c.Words = append(c.Words, headed(head, matching(c.from.Candidates(what, text), text))...)
	}
}

// names returns the next word of each command whose name begins with prefix.
func (t *Table) names(prefix string) []string {
	var out []string
	for i := range t.Commands {
		c := &t.Commands[i]
		if rest, ok := strings.CutPrefix(c.Name, prefix); ok && !c.Hidden {
			word, _, _ := strings.Cut(rest, " ")
			out = append(out, word)
		}
	}
	return out
}

// matching returns the words that begin with text, sorted and without duplicates.
func matching(words []string, text string) []string {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, text) {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
