package randconfig_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// A purpose is a way in which the two differ on purpose. Its function takes the
// difference out of both outcomes, and nothing else.
type purpose struct {
	reason string
	known  func(s at, ours, theirs *outcome)
}

// at is where the two are compared: a command, and the root module.
type at struct {
	args []string
	text string
}

var purposes = []purpose{
	{"both refuse the plan for the same mistake, and Terrace reports others with it", func(_ at, ours, theirs *outcome) {
		if ours.Status != 1 || theirs.Status != 1 {
			return
		}
		refused := slices.Contains(ours.Messages, "Error: Invalid value for variable")
		for _, m := range theirs.Messages {
			// At a refused value Terrace stops at once, OpenTofu goes on with what does not need it.
			if !refused && !slices.Contains(ours.Messages, m) {
				return
			}
		}
		ours.Messages, ours.Planned, theirs.Messages, theirs.Planned = nil, nil, nil, nil
	}},
	{"the precondition of an output is a warning in a refresh-only apply, as in its plan", func(s at, ours, theirs *outcome) {
		refused := "Error: Module output value precondition failed"
		if slices.Contains(s.args, "-refresh-only") && ours.Status == 0 && theirs.Status == 1 && slices.Contains(theirs.Messages, refused) {
			theirs.Status = 0
			theirs.Messages = without(theirs.Messages, refused)
		}
	}},
	{"what a refresh-only plan has told of checks, the apply of the saved plan does not tell again", func(s at, ours, theirs *outcome) {
		if s.args[0] != "apply" || s.args[1] != "p" || !slices.Contains(s.args, "-refresh-only") {
			return
		}
		for _, m := range []string{"Warning: Check block assertion failed", "Warning: Check block assertion known after apply", "Warning: Resource precondition failed", "Warning: Resource postcondition failed"} {
			if !slices.Contains(ours.Messages, m) {
				theirs.Messages = without(theirs.Messages, m)
			}
		}
	}},
	{"-replace with an address that names nothing: a warning", func(_ at, ours, _ *outcome) {
		ours.Messages = without(ours.Messages, "Warning: Resource to replace not found")
	}},
	{"a value that a variable refuses stops with -target and -exclude too, whoever reads it", func(s at, ours, theirs *outcome) {
		if s.has("-target", "-exclude") && slices.Contains(ours.Messages, "Error: Invalid value for variable") && theirs.Status != 1 {
			*ours = *theirs
		}
	}},
	{"a value that a variable refuses does not stop a destroy", func(s at, ours, theirs *outcome) {
		if s.destroys() && ours.Status != 1 && slices.Contains(theirs.Messages, "Error: Invalid value for variable") {
			*ours = *theirs
		}
	}},
	{"destroy keeps what a removed block with destroy = false names", func(s at, ours, theirs *outcome) {
		const kept = "Warning: Resource will be removed from the state"
		if !s.destroys() || !strings.Contains(s.text, "removed {") || !slices.Contains(ours.Messages, kept) || ours.Status != theirs.Status {
			return
		}
		ours.Messages = without(ours.Messages, kept)
		ours.Planned, theirs.Planned, ours.Text, theirs.Text = nil, nil, nil, nil
	}},
	{"a destroy with -target or -exclude leaves the outputs that do not go as they were", func(s at, ours, theirs *outcome) {
		if s.destroys() && s.has("-target", "-exclude") && ours.Status == theirs.Status {
			ours.State, theirs.State = resourcesOf(ours.State), resourcesOf(theirs.State)
		}
	}},
	{"dependencies in state name no resource that has moved away", func(s at, ours, theirs *outcome) {
		for _, m := range movedFrom.FindAllStringSubmatch(s.text, -1) {
			theirs.State = withoutDependency(theirs.State, m[1])
			ours.State = withoutDependency(ours.State, m[1])
		}
	}},
}

var movedFrom = regexp.MustCompile(`moved \{\n  from = (\S+)\n`)

// withoutDependency takes an address out of the dependencies of all objects of a state.
func withoutDependency(state, address string) string {
	return dependencies.ReplaceAllStringFunc(state, func(list string) string {
		var all []string
		if json.Unmarshal([]byte(strings.TrimPrefix(list, `"Dependencies":`)), &all) != nil {
			return list
		}
		all = slices.DeleteFunc(all, func(a string) bool { return a == address })
		if len(all) == 0 {
			all = nil // as where there were none
		}
		text, err := json.Marshal(all)
		if err != nil {
			return list
		}
		return `"Dependencies":` + string(text)
	})
}

var dependencies = regexp.MustCompile(`"Dependencies":\[[^\]]*\]`)

// resourcesOf is a state without its outputs, which are its last line.
func resourcesOf(state string) string {
	lines := strings.Split(strings.TrimSuffix(state, "\n"), "\n")
	return strings.Join(lines[:len(lines)-1], "\n")
}

// without is a list without some text, nil if nothing is left.
func without(all []string, text string) []string {
	left := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == text })
	if len(left) == 0 {
		return nil
	}
	return left
}

func (s at) has(options ...string) bool {
	return slices.ContainsFunc(s.args, func(arg string) bool {
		return slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(arg, o+"=") })
	})
}

func (s at) destroys() bool { return s.args[0] == "destroy" || slices.Contains(s.args, "-destroy") }
