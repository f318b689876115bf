package flag

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/lang"
)

// # Syntax of command lines
//
// A flag has one dash or two. Its value follows after "=" or as the next word. A switch takes
// a value only after "=". The word -- ends the flags. Two flags may share a name if one of
// them requires two dashes: --parallelism limits units, and -parallelism limits calls of
// providers.

// Parse sets the flags, first from environment variables, then from the words of a command
// line. It accepts flags with Anywhere up to a --, and others before the first argument. With
// mixed, it accepts all flags between arguments too. It returns the arguments, and the names
// of the flags among the words.
func (fs Flags) Parse(words []string, env sys.Env, mixed bool) (args []string, given map[string]bool, err error) {
	if err := fs.FromEnv(env); err != nil {
		return nil, nil, err
	}
	given = map[string]bool{}
	anywhere := fs.AnyPlace()
	if len(anywhere) > 0 {
		if words, err = anywhere.take(words, true, given); err != nil {
			return nil, given, err
		}
	}
	for len(words) > 0 {
		word := words[0]
		if word == "--" {
			return append(args, words[1:]...), given, nil
		}
		name, value, has, isFlag := Split(word)
		if !isFlag {
			if i := slices.Index(words, "--"); !mixed && len(anywhere) > 0 && i >= 0 {
				words = slices.Delete(slices.Clone(words), i, i+1) // it has ended the flags that may follow arguments
			}
			if !mixed {
				return append(args, words...), given, nil
			}
			args, words = append(args, word), words[1:]
			continue
		}
		if name == "" || name[0] == '-' || name[0] == '=' {
			return nil, given, fmt.Errorf("bad flag syntax: %s", word)
		}
		f := fs.find(word, name)
		if f == nil {
			return nil, given, UnknownError{word, fs.Near(name), name}
		}
		if words, err = f.take(words, value, has, given); err != nil {
			return nil, given, err
		}
	}
	return args, given, nil
}

// An UnknownError is the error for a word that names no flag.
type UnknownError struct {
	Word string
	Near string // a flag with a similar name, with its dashes; "" if there is none

	name string
}

func (e UnknownError) Error() string {
	text := "flag provided but not defined: -" + e.name
	if e.Near != "" {
		text += "; did you mean " + e.Near + "?"
	}
	return text
}

// AnyPlace returns the flags that may follow arguments.
func (fs Flags) AnyPlace() Flags {
	var out Flags
	for _, f := range fs {
		if f.Anywhere {
			out = append(out, f)
		}
	}
	return out
}

// Take sets the flags of fs that it finds before a --, and returns the other words. With keep,
// the returned words include the --.
func (fs Flags) Take(words []string, keep bool) (rest []string, err error) {
	return fs.take(words, keep, map[string]bool{})
}

func (fs Flags) take(words []string, keep bool, given map[string]bool) (rest []string, err error) {
	for len(words) > 0 {
		word := words[0]
		if word == "--" {
			if !keep {
				words = words[1:]
			}
			return append(rest, words...), nil
		}
		name, value, has, isFlag := Split(word)
		var f *Flag
		if isFlag {
			f = fs.find(word, name)
		}
		if f == nil {
			rest, words = append(rest, word), words[1:]
			continue
		}
		if words, err = f.take(words, value, has, given); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// Leading splits words after the last flag of fs at the front. It sets nothing.
func (fs Flags) Leading(words []string) (flags, rest []string) {
	for len(words) > 0 {
		name, _, has, isFlag := Split(words[0])
		var f *Flag
		if isFlag {
			f = fs.find(words[0], name)
		}
		n := 1
		if f != nil && !f.Switch() && !has && !f.Joined {
			n = 2
		}
		if f == nil || len(words) < n {
			break
		}
		flags, words = append(flags, words[:n]...), words[n:]
	}
	return flags, words
}

// Read iterates over words up to a --, without setting anything. It yields each flag of fs
// with its value, "true" for a switch without one. It yields each other word, including
// unknown flags, with a nil flag.
func (fs Flags) Read(words []string) iter.Seq2[*Flag, string] {
	return func(yield func(*Flag, string) bool) {
		for len(words) > 0 && words[0] != "--" {
			word := words[0]
			words = words[1:]
			name, value, has, isFlag := Split(word)
			var f *Flag
			if isFlag {
				f = fs.find(word, name)
			}
			switch {
			case f == nil:
				value = word
			case has:
			case f.Switch():
				value = "true"
			case !f.Joined && len(words) > 0:
				value, words = words[0], words[1:]
			}
			if !yield(f, value) {
				return
			}
		}
	}
}

// Asks reports whether words turn a switch on. It sets nothing.
func (fs Flags) Asks(words []string, name string) (on bool) {
	for f, value := range fs.Read(words) {
		if f != nil && f.Name == name {
			on, _ = strconv.ParseBool(value)
		}
	}
	return on
}

// Stands reports whether words contain the switch, without a value, before a --. It also matches a
// word that is the value of another flag.
func (f *Flag) Stands(words []string) bool {
	for _, word := range words {
		if word == "--" {
			return false
		}
		if name, _, has, isFlag := Split(word); isFlag && !has && (Flags{*f}).find(word, name) != nil {
			return true
		}
	}
	return false
}

// FromEnv sets the flags from their environment variables.
func (fs Flags) FromEnv(env sys.Env) error {
	for i := range fs {
		f := &fs[i]
		value, name := f.variable(env)
		if value == "" {
			continue
		}
		values := []string{value}
		if f.Repeated {
			values = strings.Split(value, ",")
		}
		for i, v := range values {
			if err := f.set(Setting{Value: v, Has: true, First: i == 0, As: name, Variable: true}); err != nil {
				return fmt.Errorf("invalid value %q for the environment variable %s: %w", v, name, f.reason(err))
			}
		}
	}
	return nil
}

// variable returns the value of the first variable in f.Env that is set, and its name.
func (f *Flag) variable(env sys.Env) (value, name string) {
	for _, name := range f.Env {
		name, opposite := strings.CutPrefix(name, "!")
		v := env.Get(name)
		if v == "" {
			continue
		}
		if on, err := strconv.ParseBool(v); opposite && err == nil {
			v = strconv.FormatBool(!on)
		}
		return v, name
	}
	return "", ""
}

// Split parses a word. has reports whether it contains a value. ok is false if the word is not a
// flag.
func Split(word string) (name, value string, has, ok bool) {
	if len(word) < 2 || word[0] != '-' {
		return "", "", false, false
	}
	name = word[1:]
	if name[0] == '-' {
		name = name[1:]
	}
	name, value, has = strings.Cut(name, "=")
	if name == "" && has {
		name = "="
	}
	return name, value, has, true
}

// Find returns the flag that a word names, or nil.
func (fs Flags) Find(word string) *Flag {
	name, _, _, ok := Split(word)
	if !ok {
		return nil
	}
	return fs.find(word, name)
}

// find returns the flag that a word names, or nil. After two dashes, a flag with Two has
// precedence.
func (fs Flags) find(word, name string) *Flag {
	two := strings.HasPrefix(word, "--")
	var found *Flag
	for i := range fs {
		f := &fs[i]
		switch {
		case f.Short == name && !two:
			return f
		case f.Name != name || f.Two && !two:
		case f.Two:
			return f
		case found == nil:
			found = f
		}
	}
	return found
}

// take sets a flag from the first of words, and returns the words after it.
func (f *Flag) take(words []string, value string, has bool, given map[string]bool) ([]string, error) {
	dashes := "-"
	if f.Two {
		dashes = "--"
	}
	words = words[1:]
	if !f.Switch() && !has && !f.Joined {
		if len(words) == 0 {
			return nil, fmt.Errorf("flag needs an argument: %s%s", dashes, f.Name)
		}
		value, has, words = words[0], true, words[1:]
	}
	if err := f.set(Setting{Value: value, Has: has, First: !given[f.Name], As: dashes + f.Name}); err != nil {
		if f.Switch() && errors.Is(err, errParse) && !f.Two {
			return nil, fmt.Errorf("invalid boolean value %q for -%s: %w", value, f.Name, err)
		}
		return nil, fmt.Errorf("invalid value %q for flag %s%s: %w", value, dashes, f.Name, f.reason(err))
	}
	given[f.Name] = true
	return words, nil
}

// reason returns a more specific error for a switch with Two.
func (f *Flag) reason(err error) error {
	if f.Two && f.Switch() && errors.Is(err, errParse) {
		return errors.New("it must be true or false")
	}
	return err
}

// Near returns the flag whose name is most similar to a wrong one, with its dashes, or "" if
// none is similar.
func (fs Flags) Near(name string) string {
	shown := map[string]string{}
	for i := range fs {
		if f := &fs[i]; !f.Hidden {
			dashes := "-"
			if f.Two {
				dashes = "--"
			}
			shown[f.Name] = dashes + f.Name
		}
	}
	return shown[lang.Nearest(name, shown)]
}

// Without returns the flags except those with the given names.
func (fs Flags) Without(names ...string) Flags {
	return slices.DeleteFunc(slices.Clone(fs), func(f Flag) bool { return slices.Contains(names, f.Name) })
}

// Arguments returns the arguments among words. pending is the flag whose value would be the
// next word, or nil. ended reports whether a -- ends the flags. It sets nothing.
func (fs Flags) Arguments(words []string) (args []string, pending *Flag, ended bool) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if word == "--" {
			return append(args, words...), nil, true
		}
		_, _, has, isFlag := Split(word)
		if !isFlag {
			args = append(args, word)
			continue
		}
		if f := fs.Find(word); f != nil && !f.Switch() && !f.Joined && !has {
			if len(words) == 0 {
				return args, f, false
			}
			words = words[1:]
		}
	}
	return args, nil, false
}

// FromArgument returns the words from the first argument on.
func (fs Flags) FromArgument(words []string) []string {
	for i := range words {
		if args, _, _ := fs.Arguments(words[:i+1]); len(args) > 0 {
			return words[i:]
		}
	}
	return nil
}
