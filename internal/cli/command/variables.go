package command

import (
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/wrap"
)

// A Variable is an environment variable, or a family of them.
type Variable struct {
	Name   string // the name in documents
	Help   string // one or more sentences
	Group  string // the heading in the help topic environment
	Family string // common prefix of the names of a family; "" for a single variable

	// Readers reports whether a command reads the variable. nil means that every command does.
	Readers func(c *Command) bool
	// For returns the variable of a family that a command reads. nil means that a command
	// reads several, or that this is a single variable.
	For func(c *Command) string
}

// Means reports whether name is the variable or belongs to the family.
func (v *Variable) Means(name string) bool {
	return name == v.Name || v.Family != "" && strings.HasPrefix(name, v.Family)
}

// Uses is a set of resources that a command uses. It determines which environment variables
// the command reads.
type Uses uint

const (
	// Backends commands access the backend of the working directory or of a unit.
	Backends Uses = 1 << iota
	// State commands read or write a state or a saved plan. They access the backend too.
	State
	// Applies commands write the state repeatedly while they run.
	Applies
	// Providers commands start providers.
	Providers
	// Modules commands download modules.
	Modules
	// Packages commands download packages of providers.
	Packages
	// Temporal commands connect to a Temporal server, if one is configured.
	Temporal
	// Browser commands open a page in a web browser.
	Browser
)

// HasAny reports whether u and of have a property in common.
func (u Uses) HasAny(of Uses) bool { return u&of != 0 }

// Variables returns the environment variables that the command reads, except those that every
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

// CommonVariables returns the environment variables that every command reads.
func (t *Table) CommonVariables() []Variable {
	return slices.DeleteFunc(slices.Clone(t.Environment), func(v Variable) bool { return v.Readers != nil })
}

// EnvironmentTopic returns the help topic on environment variables. note is its last
// paragraph.
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
		b.WriteString(entry(v.Name, v.Help, column, lineWidth))
	}
	b.WriteString("\n" + wrap.Words(note, lineWidth))
	return Topic{Name: "environment", Synopsis: title, Text: b.String()}
}
