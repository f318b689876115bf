// Package flag declares and parses the flags of commands, for the command line and for the words
// that unit files and the environment add to a command.
//
// Main types: Flag, a declaration that is bound to a variable; Flags; Lock, State and Scope, which
// several commands share. The one rule: a flag with the same meaning in two commands is declared
// here, and everything that reads words reads them with Flags.
package flag

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Flag is one flag, bound to the variable that it sets. Bool, Text, List, Int, Duration and
// Func return flags; methods refine them.
type Flag struct {
	Name     string     // name without dashes
	Value    string     // name of the value in the help; "" for a switch
	Help     string     // description, in sentences
	Default  string     // "" means that the help mentions none
	Short    string     // other name, one letter after one dash
	Env      []string   // environment variables that set the flag; "!" marks those with the opposite meaning
	Choices  []string   // the allowed values; nil allows any
	Complete Completion // kind of candidates for the value
	Repeated bool
	Hidden   bool // left out of the help
	Two      bool // only --name means this flag; -name may be another flag
	Anywhere bool // may follow arguments
	Joined   bool // takes its value only after "=", never from the next word
	WorksIn  bool // its value is the directory in which the command works

	shownTwo bool // the help shows two dashes
	set      func(Setting) error
}

// A Setting is one occurrence of a flag on the command line or in a variable.
type Setting struct {
	Value    string
	Has      bool   // a value was given; false for a switch without one
	First    bool   // first occurrence of the flag
	As       string // the flag with its dashes, or the name of the variable
	Variable bool   // As is a variable
}

// Flags are the flags of a command.
type Flags []Flag

// Completion is the kind of candidates for a value.
type Completion int

const (
	Nothing     Completion = iota
	Files                  // any file
	Folders                // any directory
	VarFiles               // files that set variables
	Workspaces             // workspaces of the working directory
	Addresses              // addresses of objects in configuration and state
	Instances              // addresses of instances in state
	Outputs                // names of outputs
	UnitNames              // units below the working directory
	Commands               // names of commands
	CommandLine            // the name of a command, then its flags and arguments
	Explained              // subjects of explain: addresses in configuration, and parts of a unit
	Codes                  // codes of messages
)

// errParse is the error for a value of the wrong type, with the text of the standard library's
// package flag.
var errParse = errors.New("parse error")

// Bool returns a switch. The current value of the variable is the default.
func Bool(into *bool, name, help string) Flag {
	return Flag{Name: name, Help: help, Default: truth(*into), set: func(s Setting) error {
		b := true
		if s.Has {
			var err error
			if b, err = strconv.ParseBool(s.Value); err != nil {
				return errParse
			}
		}
		*into = b
		return nil
	}}
}

// Off returns a switch that is on unless into is set. It sets into to the opposite of its value.
func Off(into *bool, name, help string) Flag {
	on := !*into
	return Bool(&on, name, help).Then(func(Setting) { *into = !on })
}

func truth(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// Also adds a value to true and false. The switch then sets *into and becomes true.
func (f Flag) Also(value string, into *bool) Flag {
	set := f.set
	f.set = func(s Setting) error {
		if s.Value == value {
			*into, s.Value = true, "true"
		}
		return set(s)
	}
	return f
}

// Text returns a flag with any text as its value. The help shows value as the name of the
// value. The current value of the variable is the default.
func Text(into *string, name, value, help string) Flag {
	return Flag{Name: name, Value: value, Help: help, Default: *into, set: func(s Setting) error {
		*into = s.Value
		return nil
	}}
}

// List returns a flag that may be repeated. Each occurrence appends its value.
func List(into *[]string, name, value, help string) Flag {
	return Flag{Name: name, Value: value, Help: help, Repeated: true, set: func(s Setting) error {
		if s.First {
			*into = nil
		}
		*into = append(*into, s.Value)
		return nil
	}}
}

// Int returns a flag with an integer as its value.
func Int(into *int, name, value, help string) Flag {
	return Flag{Name: name, Value: value, Help: help, set: func(s Setting) error {
		n, err := strconv.ParseInt(s.Value, 0, strconv.IntSize)
		if err != nil {
			return errParse
		}
		*into = int(n)
		return nil
	}}
}

// AtLeast returns a flag with an integer as its value, which must be least or more.
func AtLeast(into *int, least int, name, value, help string) Flag {
	return Flag{Name: name, Value: value, Help: help, set: func(s Setting) error {
		n, err := strconv.Atoi(s.Value)
		if err != nil || n < least {
			return fmt.Errorf("it must be a whole number from %d on", least)
		}
		*into = n
		return nil
	}}
}

// Duration returns a flag with a duration as its value, such as 10s.
func Duration(into *time.Duration, name, value, help string) Flag {
	return Flag{Name: name, Value: value, Help: help, set: func(s Setting) error {
		d, err := time.ParseDuration(s.Value)
		if err != nil {
			return errParse
		}
		*into = d
		return nil
	}}
}

// Func returns a flag that may be repeated and calls take with each value, in order.
func Func(take func(value string) error, name, value, help string) Flag {
	return Flag{Name: name, Value: value, Help: help, Repeated: true, set: func(s Setting) error { return take(s.Value) }}
}

// Ignored returns a flag without effect, which scripts for OpenTofu and Terragrunt pass. value
// is "" for a switch.
func Ignored(name, value, help string) Flag {
	f := Flag{Name: name, Value: value, Help: help, Hidden: help == "", set: func(Setting) error { return nil }}
	if value == "" {
		return f.Checked(func(s Setting) error {
			if _, err := strconv.ParseBool(s.Value); s.Has && err != nil {
				return errParse
			}
			return nil
		})
	}
	return f
}

// Among restricts the values to choices.
func (f Flag) Among(choices ...string) Flag {
	f.Choices = choices
	return f.Checked(func(s Setting) error {
		if !slices.Contains(choices, s.Value) {
			return fmt.Errorf("it must be one of %s", strings.Join(choices, ", "))
		}
		return nil
	})
}

// Checked calls check before each setting takes effect. An error rejects the setting.
func (f Flag) Checked(check func(Setting) error) Flag {
	set := f.set
	f.set = func(s Setting) error {
		if err := check(s); err != nil {
			return err
		}
		return set(s)
	}
	return f
}

// Set sets the flag to a value, as an occurrence that is not the first one.
func (f *Flag) Set(value string) error {
	return f.set(Setting{Value: value, Has: true, As: "-" + f.Name})
}

// Then calls do after each setting that took effect.
func (f Flag) Then(do func(Setting)) Flag {
	set := f.set
	f.set = func(s Setting) error {
		err := set(s)
		if err == nil {
			do(s)
		}
		return err
	}
	return f
}

// Completes sets the kind of candidates for the value.
func (f Flag) Completes(c Completion) Flag { f.Complete = c; return f }

// Hide hides the flag from the help.
func (f Flag) Hide() Flag { f.Hidden = true; return f }

// Or adds a name of one letter.
func (f Flag) Or(short string) Flag { f.Short = short; return f }

// Variables sets the environment variables that set the flag. "!" before a name marks the
// opposite meaning.
func (f Flag) Variables(names ...string) Flag { f.Env = names; return f }

// WithTwoDashes makes only --name mean this flag, and allows it after arguments.
func (f Flag) WithTwoDashes() Flag { f.Two, f.Anywhere = true, true; return f }

// InAnyPlace allows the flag after arguments.
func (f Flag) InAnyPlace() Flag { f.Anywhere = true; return f }

// WithEquals makes the flag take its value only after "=", never from the next word.
func (f Flag) WithEquals() Flag { f.Joined = true; return f }

// IsWorkingDir marks a flag whose value is the directory in which the command works.
func (f Flag) IsWorkingDir() Flag { f.Complete, f.WorksIn = Folders, true; return f }

// Switch reports whether the flag takes no value.
func (f *Flag) Switch() bool { return f.Value == "" }

// Shown returns the flag as the help shows it.
func (f *Flag) Shown() string {
	dashes := "-"
	if f.Two || f.shownTwo {
		dashes = "--"
	}
	text := dashes + f.Name
	switch {
	case !f.Switch() && strings.HasPrefix(f.Value, "'"):
		text += " " + f.Value
	case !f.Switch():
		text += "=" + f.Value
	case f.Default == "true":
		text += "=false"
	}
	if f.Short != "" {
		text += ", -" + f.Short
	}
	return text
}

// Hide hides all of the flags from the help.
func (fs Flags) Hide() Flags {
	for i := range fs {
		fs[i].Hidden = true
	}
	return fs
}

// Show makes the named flags visible in the help.
func (fs Flags) Show(names ...string) Flags {
	for i := range fs {
		if slices.Contains(names, fs[i].Name) {
			fs[i].Hidden = false
		}
	}
	return fs
}

// Words returns the flags as a user types them. With two, all have two dashes.
func (fs Flags) Words(two bool) []string {
	var out []string
	for i := range fs {
		f := &fs[i]
		if f.Hidden && !f.Two {
			continue
		}
		dashes := "-"
		if f.Two || f.shownTwo || two {
			dashes = "--"
		}
		text := dashes + f.Name
		if !f.Switch() {
			text += "="
		}
		out = append(out, text)
	}
	return out
}

// After returns the flags with more after the named one.
func (fs Flags) After(name string, more ...Flag) Flags {
	at := slices.IndexFunc(fs, func(f Flag) bool { return f.Name == name })
	return slices.Insert(slices.Clone(fs), at+1, more...)
}

// Named returns the flag with the name, or nil.
func (fs Flags) Named(name string) *Flag {
	for i := range fs {
		if fs[i].Name == name {
			return &fs[i]
		}
	}
	return nil
}

// WithTwoDashesShown makes the help show the flags with two dashes, as it shows flags of
// units, and allows them after arguments, as Terragrunt does. One dash is accepted too.
func (fs Flags) WithTwoDashesShown() Flags {
	for i := range fs {
		fs[i].shownTwo, fs[i].Anywhere = true, true
	}
	return fs
}
