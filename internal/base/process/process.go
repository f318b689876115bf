// Package process describes child processes as plain data: a Command with its complete Env.
//
// Main types: Command and Env. The one rule: this package starts nothing. The program
// decides whether and how a command runs.
package process

import (
	"io"
	"runtime"
	"strings"
	"time"
)

// Command is a child process to run.
type Command struct {
	Path   string   // the program; a name without a slash is looked up in the PATH of Env
	Args   []string // without the program's name
	Dir    string   // the working directory; required
	Env    Env      // the complete environment; nil means an empty one
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer // if it equals Stdout, the order of lines is kept

	// Grace is the time between the interrupt and the kill of the child. 0 means 5
	// seconds; a negative value kills it immediately.
	Grace time.Duration
	// Foreground keeps the child in our process group, so that it can read from the
	// terminal and receives its signals. Without a terminal, Foreground has no effect.
	Foreground bool
}

// Env is an environment as NAME=VALUE pairs. The last pair of a name counts. An Env is
// never changed in place.
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

// With returns the environment with the given NAME=VALUE pairs added or replaced.
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

// Without returns the environment without the given variables.
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

// Home returns the user's home directory, or "" if the environment names none.
func (e Env) Home() string {
	if home := e.Get("HOME"); home != "" || runtime.GOOS != "windows" {
		return home
	}
	return e.Get("USERPROFILE")
}
