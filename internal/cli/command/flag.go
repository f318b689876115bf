package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Flag is one flag, bound to the variable that it sets: make it with Bool, Text,
// List, Int, Duration or Func, and refine it with the methods.
type Flag struct {
	Name     string     // without dashes
	Value    string     // how the help names the value, "" for a switch
	Help     string     // sentences
	Default  string     // "" for none worth a word
	Short    string     // another name of one letter, which takes one dash
	Env      []string   // the variables that stand for it, those that say the opposite with a !
	Choices  []string   // the values that there are; nil for any
	Complete Completion // of the value
	Repeated bool
	Hidden   bool // not in the help
	Two      bool // it is meant only with two dashes: with one, another flag may have the name
	Anywhere bool // it may stand behind arguments too
	Joined   bool // the value stands behind "=" alone, never as the next word

	shownTwo bool // the help writes it with two dashes
	set      func(Setting) error
}

// A Setting is a flag as it stands on the command line or in a variable.
type Setting struct {
	Value    string
	Has      bool   // a value was given; false for a bare switch
	First    bool   // the flag did not stand there before
	As       string // how it was written: with its dashes, or the variable
	Variable bool   // As is a variable
}

// Flags are the flags of a command.
type Flags []Flag

// Completion says what the candidates for a value are.
type Completion int

const (
	Nothing    Completion = iota
	Files                 // any file
	Folders               // any folder
	VarFiles              // files with values of variables
	Workspaces            // the workspaces of the folder
	Addresses             // the addresses of objects in configuration and state
	Instances             // the addresses of instances in state
	Outputs               // the names of outputs
	UnitNames             // the units below the folder
	Commands              // the names of commands
	Explained             // what has an explanation: addresses in configuration, and parts of a unit
	Codes                 // the codes of messages
)

// errParse is the error that package flag of the standard library has for a value
// of the wrong type.
var errParse = errors.New("parse error")

// Bool is a switch. The value that the variable has now is the default.
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

func truth(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// Also has a switch take one more value beside true and false, which sets another one.
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

// Text is a flag with a value, which value names in the help.
func Text(into *string, name, value, help string) Flag {
	return Flag{Name: name, Value: value, Help: help, Default: *into, set: func(s Setting) error {
		*into = s.Value
		return nil
	}}
}

// List is a flag that may be repeated.
func List(into *[]string, name, value, help string) Flag {
	return Flag{Name: name, Value: value, Help: help, Repeated: true, set: func(s Setting) error {
		if s.First {
			*into = nil
		}
		*into = append(*into, s.Value)
		return nil
	}}
}

// Int is a flag with a whole number.
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

// AtLeast is a flag with a whole number from least on.
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

// Duration is a flag with a length of time, such as 10s.
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

// Func is a flag whose values a function takes, in their order.
func Func(take func(value string) error, name, value, help string) Flag {
	return Flag{Name: name, Value: value, Help: help, Repeated: true, set: func(s Setting) error { return take(s.Value) }}
}

// Ignored is a flag that is taken and does nothing, as the peers' scripts have it.
// value is "" for a switch.
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

// Among says which values there are.
func (f Flag) Among(choices ...string) Flag {
	f.Choices = choices
	return f.Checked(func(s Setting) error {
		if !slices.Contains(choices, s.Value) {
			return fmt.Errorf("it must be one of %s", strings.Join(choices, ", "))
		}
		return nil
	})
}

// Checked has a function look at each setting before it is taken over.
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

// Then calls a function with each setting that was taken over.
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

// Completes says what candidates for the value there are.
func (f Flag) Completes(c Completion) Flag { f.Complete = c; return f }

// Hide leaves the flag out of the help.
func (f Flag) Hide() Flag { f.Hidden = true; return f }

// Or gives the flag another name of one letter.
func (f Flag) Or(short string) Flag { f.Short = short; return f }

// Variables names the environment variables that stand for the flag.
func (f Flag) Variables(names ...string) Flag { f.Env = names; return f }

// WithTwoDashes says that only --name means this flag, and that it may stand behind
// arguments too.
func (f Flag) WithTwoDashes() Flag { f.Two, f.Anywhere = true, true; return f }

// InAnyPlace says that the flag may stand behind arguments too.
func (f Flag) InAnyPlace() Flag { f.Anywhere = true; return f }

// WithEquals says that the value stands behind "=" alone; the next word is never it.
func (f Flag) WithEquals() Flag { f.Joined = true; return f }

// Switch reports whether the flag takes no value.
func (f *Flag) Switch() bool { return f.Value == "" }

// Shown is the flag as the help writes it.
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

// Hide leaves all of some flags out of the help.
func (fs Flags) Hide() Flags {
	for i := range fs {
		fs[i].Hidden = true
	}
	return fs
}

// Show puts some of the flags into the help.
func (fs Flags) Show(names ...string) Flags {
	for i := range fs {
		if slices.Contains(names, fs[i].Name) {
			fs[i].Hidden = false
		}
	}
	return fs
}

// Named is the flag of a name, nil if there is none.
func (fs Flags) Named(name string) *Flag {
	for i := range fs {
		if fs[i].Name == name {
			return &fs[i]
		}
	}
	return nil
}

// WithTwoDashesShown has the help show the flags with two dashes, as those of units
// are, though one does too.
func (fs Flags) WithTwoDashesShown() Flags {
	for i := range fs {
		fs[i].shownTwo = true
	}
	return fs
}
