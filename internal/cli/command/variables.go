package command

import (
	"slices"
	"strings"
)

// A Variable is an environment variable, or a family of them.
type Variable struct {
	Name   string // as documents write it
	Help   string // a sentence or more
	Group  string // the heading that it stands under in the topic environment
	Family string // what all names of a family begin with; "" for a variable alone

	// Readers tells which commands read it; nil for every command.
	Readers func(c *Command) bool
	// For is the one of a family that a command reads, nil if that is no single one.
	For func(c *Command) string
}

// Means reports whether a name is that of the variable, or of one of the family.
func (v *Variable) Means(name string) bool {
	return name == v.Name || v.Family != "" && strings.HasPrefix(name, v.Family)
}

// Uses says what a command works with, on which it depends which variables it reads.
type Uses uint

const (
	// Backends commands reach the backend of the working folder or of a unit.
	Backends Uses = 1 << iota
	// State commands read or write a state, or a saved plan. They reach the backend, too.
	State
	// Applies commands write a state again and again while they run.
	Applies
	// Providers commands start providers.
	Providers
	// Modules commands download modules.
	Modules
	// Packages commands download packages of providers.
	Packages
	// Temporal commands reach a Temporal server, where one is named.
	Temporal
	// Browser commands open a page in a web browser.
	Browser
)

// HasAny reports whether one of some properties holds.
func (u Uses) HasAny(of Uses) bool { return u&of != 0 }

// Variables are the environment variables that a command reads, without those that every
// command reads.
func (t *Table) Variables(c *Command) []Variable {
	var out []Variable
	for _, v := range t.Environment {
		if v.Readers != nil && v.Readers(c) {
			if v.For != nil {
				v.Name = v.For(c)
			}
			out = append(out, v)
		}
	}
	return out
}

// CommonVariables are the environment variables that every command reads.
func (t *Table) CommonVariables() []Variable {
	return slices.DeleteFunc(slices.Clone(t.Environment), func(v Variable) bool { return v.Readers != nil })
}

// EnvironmentTopic is the page of help on environment variables, with a note at its end.
func EnvironmentTopic(all []Variable, note string) Topic {
	const title = "Environment variables"
	var b strings.Builder
	b.WriteString(title + "\n")
	group := ""
	for _, v := range all {
		if v.Group != group {
			group = v.Group
			b.WriteString("\n" + group + ":\n")
		}
		b.WriteString(entry(v.Name, v.Help, column))
	}
	b.WriteString("\n" + wrap(note, lineWidth))
	return Topic{Name: "environment", Synopsis: title, Text: b.String()}
}
