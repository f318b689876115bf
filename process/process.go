// Package process says what is run outside the program, in plain data: a Command with its
// complete Env.
//
// Main types: Command and Env. The one rule: nothing is started here; who runs a command,
// and whether it may run at all, is up to the program.
package process

import (
	"io"
	"runtime"
	"strings"
	"time"
)

// A Command is a child process to run.
type Command struct {
	Path   string   // the program; without a slash it is looked up in the PATH of Env
	Args   []string // without the program's own name
	Dir    string   // its working folder; must be set
	Env    Env      // its complete environment; nil means an empty one
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer // may be the same as Stdout; then the order of lines is kept

	// Grace is how long the child may take to end after it was interrupted before
	// it is killed; 0 means 5 seconds, below 0 that it is killed at once.
	Grace time.Duration
	// Foreground keeps the child in our own process group, so that it may read
	// from the terminal and gets the terminal's signals itself. Where we have no
	// terminal, it gets a group of its own all the same.
	Foreground bool
}

// Env is an environment, as name=value; where a name stands more than once, the
// last one counts. It is never changed in place.
type Env []string

// Get returns a variable's value, or "" if it is not set.
func (e Env) Get(name string) string {
	v, _ := e.Lookup(name)
	return v
}

// Lookup returns a variable's value and whether it is set.
func (e Env) Lookup(name string) (value string, ok bool) {
	for i := len(e) - 1; i >= 0; i-- {
		if rest, found := strings.CutPrefix(e[i], name); found && strings.HasPrefix(rest, "=") {
			return rest[1:], true
		}
	}
	return "", false
}

// With is the environment with the given name=value pairs added or replaced.
func (e Env) With(pairs ...string) Env {
	out := make(Env, 0, len(e)+len(pairs))
	replaced := make(map[string]bool, len(pairs))
	for _, p := range pairs {
		replaced[nameOf(p)] = true
	}
	for _, p := range e {
		if !replaced[nameOf(p)] {
			out = append(out, p)
		}
	}
	return append(out, pairs...)
}

// Without is the environment without the given variables.
func (e Env) Without(names ...string) Env {
	out := make(Env, 0, len(e))
next:
	for _, p := range e {
		for _, name := range names {
			if nameOf(p) == name {
				continue next
			}
		}
		out = append(out, p)
	}
	return out
}

func nameOf(pair string) string {
	name, _, _ := strings.Cut(pair, "=")
	return name
}

// Home is the user's home folder, or "" if the environment names none.
func (e Env) Home() string {
	if home := e.Get("HOME"); home != "" || runtime.GOOS != "windows" {
		return home
	}
	return e.Get("USERPROFILE")
}
