package randconfig_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A purpose is an intended difference. Its function removes only this difference from both
// outcomes.
type purpose struct {
	reason string
	known  func(s at, ours, theirs *outcome)
}

// at is the context of a comparison: a command, the root module, and the messages of the
// command that created the saved plan.
type at struct {
	args    []string
	text    string
	planned []string
}

// reloaded is the text in a plan for a data source of a check.
const reloaded = "# (config will be reloaded to verify a check block)"

// checked returns the data sources of checks in the configuration (see
// randconfig.MakeWide), with all possible instances.
func (s at) checked() []string {
	var out []string
	if strings.Contains(s.text, "check \"reads\"") {
		out = append(out, "data.terraform_remote_state.other")
	}
	if strings.Contains(s.text, "module \"checked\"") {
		for _, key := range []string{"", "[0]", "[1]"} {
			out = append(out, "module.checked"+key+".data.terraform_remote_state.inside")
		}
	}
	return out
}

// inState returns the beginning of a data source's instance in the state of an outcome.
func inState(address string) string {
	module, rest, found := strings.Cut(address, ".data.")
	if !found {
		module, rest = "", strings.TrimPrefix(address, "data.")
	}
	typ, name, _ := strings.Cut(rest, ".")
	return module + " data " + typ + " " + name
}

// OpenTofu has a separate summary for undeclared references in replace_triggered_by.
const (
	trigger    = "Error: Undeclared resource in replace_triggered_by"
	undeclared = "Error: Reference to undeclared resource"
)

var purposes = []purpose{
	{"local modules are found without init", func(_ at, ours, theirs *outcome) {
		if theirs.Status == 1 && slices.Contains(theirs.Messages, "Error: Module not installed") {
			*ours = *theirs
		}
	}},
	{"a resource that refers to itself is an error of every plan but one to destroy, which does not need it", func(s at, ours, theirs *outcome) {
		const refers = "Error: Self-referential block"
		switch {
		case s.destroys() && ours.Status != 1 && onlyError(theirs.Messages, refers),
			ours.Status == 1 && theirs.Status == 1 && onlyError(ours.Messages, refers) && onlyError(theirs.Messages, refers),
			s.has("-target", "-exclude") && theirs.Status != 1 && slices.Contains(ours.Messages, refers):
			*ours = *theirs
		}
	}},
	{"-replace with an address that names nothing: a warning", func(_ at, ours, _ *outcome) {
		ours.Messages = without(ours.Messages, "Warning: Resource to replace not found")
	}},
	{"an output that a failed postcondition keeps from being computed stays as it was", func(s at, ours, theirs *outcome) {
		if s.args[0] == "apply" && ours.Status == 1 && theirs.Status == 1 && slices.Contains(ours.Messages, "Error: Resource postcondition failed") {
			ours.State, theirs.State = resourcesOf(ours.State), resourcesOf(theirs.State)
		}
	}},
	{"both refuse the plan for the same mistake, and Terrace reports others with it", func(_ at, ours, theirs *outcome) {
		if ours.Status != 1 || theirs.Status != 1 {
			return
		}
		if slices.Contains(theirs.Messages, trigger) && slices.Contains(ours.Messages, undeclared) {
			theirs.Messages = append(without(theirs.Messages, trigger), undeclared)
		}
		const value = "Error: Invalid value for variable"
		if !slices.ContainsFunc(theirs.Messages, func(m string) bool { return strings.HasPrefix(m, "Error: ") && slices.Contains(ours.Messages, m) }) {
			return
		}
		for _, m := range theirs.Messages {
			// After a rejected value Terrace stops, but OpenTofu evaluates independent
			// parts.
			if !slices.Contains(ours.Messages, m) && !(slices.Contains(ours.Messages, value) && slices.Contains(found, m)) {
				return
			}
		}
		for _, m := range ours.Messages {
			// OpenTofu stops after the first stage with an error.
			if !slices.Contains(theirs.Messages, m) && m != value && !slices.Contains(found, m) && !slices.Contains(static, m) {
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
			if reported := "Warning: Module output value precondition failed"; !slices.Contains(theirs.Messages, reported) {
				ours.Messages = without(ours.Messages, reported)
			}
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
	{"with -exclude, as with -target, no check is evaluated, so what checks alone read is not read", func(s at, ours, theirs *outcome) {
		if !s.has("-exclude") || ours.Status != theirs.Status {
			return
		}
		for _, read := range s.checked() {
			theirs.Planned = without(without(theirs.Planned, reloaded), "# "+read+" will be read during apply")
			theirs.Text = withoutBlock(theirs.Text, "  # "+read+" will be read during apply")
			for _, o := range []*outcome{ours, theirs} {
				o.State = withoutInstance(o.State, inState(read))
				withoutElements(o.Document, read)
				withoutEntries(o.Document, "checks", func(c map[string]any) bool {
					of, _ := c["address"].(map[string]any)
					return of["kind"] == "check"
				})
				withoutEntries(o.Document, "prior_state", func(r map[string]any) bool { return r["address"] == read })
			}
		}
	}},
	{"data sources of checks are read while planning where nothing else changes", func(s at, ours, theirs *outcome) {
		all := s.checked()
		if s.args[0] == "show" && strings.Contains(theirs.Document["resource_changes"], "read_because_check_nested") && !strings.Contains(ours.Document["resource_changes"], "read_because_check_nested") {
			for _, read := range all {
				withoutElements(ours.Document, read)
				withoutElements(theirs.Document, read)
			}
			return
		}
		detailed := slices.Contains(s.args, "-detailed-exitcode") && ours.Status == 0 && theirs.Status == 2
		if ours.Status != theirs.Status && !detailed || !slices.Equal(ours.Planned, []string{"No changes."}) || len(all) == 0 {
			return
		}
		for _, line := range theirs.Planned {
			read := strings.TrimSuffix(strings.TrimPrefix(line, "# "), " will be read during apply")
			if line != reloaded && line != "Plan: 0 to add, 0 to change, 0 to destroy." && !slices.Contains(all, read) {
				return
			}
		}
		ours.Planned, theirs.Planned, ours.Text, theirs.Text = nil, nil, nil, nil
		theirs.Status = ours.Status
		for _, read := range all {
			withoutElements(ours.Document, read)
			withoutElements(theirs.Document, read)
		}
	}},
	{"with -target and -exclude, mistakes in what is left out are ignored", func(s at, ours, theirs *outcome) {
		if s.has("-target", "-exclude") && (ours.Status != 1 || onlyError(ours.Messages, "Error: Moved resource instances excluded by targeting")) && theirs.Status == 1 && onlyStatic(theirs.Messages) {
			*ours = *theirs
		}
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
	{"a mistake in what a destroy does not need is a warning", func(s at, ours, theirs *outcome) {
		if !s.destroys() || ours.Status == 1 || theirs.Status != 1 || theirs.Messages == nil {
			return
		}
		for _, m := range theirs.Messages {
			if m == trigger {
				m = undeclared
			}
			if slices.Contains(ours.Messages, m) { // a warning of both programs
				continue
			}
			if what, is := strings.CutPrefix(m, "Error: "); !is || !slices.Contains(ours.Messages, "Warning: "+what) {
				return
			}
		}
		*ours = *theirs
	}},
	{"destroy keeps what a removed block with destroy = false names", func(s at, ours, theirs *outcome) {
		const kept = "Warning: Resource will be removed from the state"
		if s.args[0] == "show" && s.destroys() {
			for _, m := range removedFrom.FindAllStringSubmatch(s.text, -1) {
				withoutElements(ours.Document, m[1])
				withoutElements(theirs.Document, m[1])
			}
			return
		}
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
			for _, o := range []*outcome{ours, theirs} {
				if text, ok := o.Document["prior_state"]; ok {
					o.Document["prior_state"] = withoutElement(text, m[1], m[2])
				}
			}
		}
	}},
	{"in a refresh-only plan an index of what is not made yet is unknown", func(s at, ours, theirs *outcome) {
		if slices.Contains(s.args, "-refresh-only") && ours.Status != 1 && onlyError(theirs.Messages, "Error: Invalid index") {
			*ours = *theirs
		}
	}},
	{"what a plan with -target does besides the target, its apply carries out", func(s at, ours, theirs *outcome) {
		if s.args[0] != "apply" || !s.has("-target") || ours.Status != theirs.Status || !slices.Equal(ours.Planned, theirs.Planned) {
			return
		}
		done := slices.Concat(ours.Planned, s.planned)
		ours.State, theirs.State = withoutPlanned(ours.State, done), withoutPlanned(theirs.State, done)
	}},
	{"an object is destroyed after what depended on it was changed, and stays if that fails", func(s at, ours, theirs *outcome) {
		if s.args[0] == "apply" && ours.Status == 1 && theirs.Status == 1 && slices.Equal(ours.Messages, theirs.Messages) {
			for _, i := range instances(ours.State) {
				if !strings.Contains(theirs.State, i[0]+"\n") && len(instances(ours.State)) > len(instances(theirs.State)) {
					ours.State = withoutInstance(ours.State, i[0])
				}
			}
		}
	}},
	{"a plan that OpenTofu cannot carry out since its actions close a cycle is carried out", func(_ at, ours, theirs *outcome) {
		cycle := func(m string) bool { return strings.HasPrefix(m, "Error: Cycle: ") }
		if ours.Status != 1 && theirs.Status == 1 && slices.ContainsFunc(theirs.Messages, cycle) {
			*ours = *theirs
		}
	}},
	{"a plan to destroy shows outputs and data sources as they are, not as another plan would make them", func(s at, ours, theirs *outcome) {
		if !s.destroys() || ours.Status != theirs.Status {
			return
		}
		ours.Text, theirs.Text = untilOutputs(ours.Text), untilOutputs(theirs.Text)
		for _, o := range []*outcome{ours, theirs} {
			delete(o.Document, "output_changes")
			delete(o.Document, "relevant_attributes") // made from both
			if text, ok := o.Document["prior_state"]; ok {
				o.Document["prior_state"] = managedOf(text)
			}
		}
	}},
	{"destroy -target takes objects along that were left behind and depend on the target", func(s at, ours, theirs *outcome) {
		deposed := func(line string) bool { return strings.Contains(line, "(deposed object)") }
		if !s.destroys() || !s.has("-target") || ours.Status != theirs.Status || !slices.ContainsFunc(ours.Planned, deposed) {
			return
		}
		for _, line := range theirs.Planned {
			if !strings.HasPrefix(line, "Plan: ") && !slices.Contains(ours.Planned, line) {
				return
			}
		}
		ours.State, theirs.State = withoutPlanned(ours.State, ours.Planned), withoutPlanned(theirs.State, ours.Planned)
		ours.Planned, theirs.Planned = nil, nil
	}},
}

// found are messages from evaluation, and static messages from the text of the
// configuration. Which of them are reported together with another error depends on how far
// each program continues.
var (
	found = []string{
		"Error: Resource precondition failed", "Error: Resource postcondition failed", "Error: Module output value precondition failed",
		"Warning: Check block assertion failed", "Warning: Check block assertion known after apply", "Warning: Resource targeting is in effect",
		"Warning: Resource will be removed from the state", "Error: Invalid index",
	}
	static = []string{
		"Error: Cycle", "Error: Missing required argument", "Error: Unsupported argument", "Error: Reference to \"each\" in context without for_each",
		"Error: Self-referencing local value", "Error: Reference to undeclared input variable", "Error: Reference to undeclared local value", "Error: Reference to undeclared module", "Error: Reference to undeclared resource",
	}
)

// onlyError reports whether a message is the only error among messages.
func onlyError(messages []string, message string) bool {
	errors := slices.DeleteFunc(slices.Clone(messages), func(m string) bool { return !strings.HasPrefix(m, "Error: ") })
	return slices.Equal(errors, []string{message})
}

// onlyStatic reports whether all errors come from the text of the configuration.
func onlyStatic(messages []string) bool {
	errors := slices.DeleteFunc(slices.Clone(messages), func(m string) bool { return !strings.HasPrefix(m, "Error: ") })
	return len(errors) > 0 && !slices.ContainsFunc(errors, func(m string) bool {
		return m != trigger && !slices.Contains(static, m)
	})
}

// withoutElement removes texts from the lists of a document. All commas must be at the end
// of lines.
func withoutElement(document string, texts ...string) string {
	var left []string
	for line := range strings.Lines(document) {
		line = strings.TrimRight(line, ",\n")
		if !slices.ContainsFunc(texts, func(t string) bool { return strings.TrimSpace(line) == strconv.Quote(t) }) {
			left = append(left, line)
		}
	}
	return strings.Join(left, "\n")
}

// instances returns the instances in a state, two lines each.
func instances(state string) [][2]string {
	lines := strings.Split(state, "\n")
	var out [][2]string
	for i := 0; i+1 < len(lines) && !strings.HasPrefix(lines[i], "{"); i += 2 {
		out = append(out, [2]string{lines[i], lines[i+1]})
	}
	return out
}

// withoutInstance removes the instances of a resource from a state.
func withoutInstance(state, resource string) string {
	var b strings.Builder
	for _, i := range instances(state) {
		if i[0] != resource {
			b.WriteString(i[0] + "\n" + i[1] + "\n")
		}
	}
	return b.String() + state[strings.LastIndex(strings.TrimSuffix(state, "\n"), "\n")+1:]
}

// withoutBlock removes the block below a heading from the text of a plan, and the entry in
// the legend if the block was the only one of its kind.
func withoutBlock(text []string, heading string) []string {
	at := slices.Index(text, heading)
	if at < 1 {
		return text
	}
	end := at + slices.Index(text[at:], "    }") + 1
	text = slices.Concat(text[:at-1], text[end:])
	if !slices.ContainsFunc(text, func(line string) bool { return strings.HasPrefix(line, " <= data ") }) {
		text = without(text, " <= read (data resources)")
	}
	return text
}

// carriedOut are the beginnings of descriptions, in the text of a plan, of the action on an
// instance.
var carriedOut = []string{"will be created", "will be destroyed", "must be replaced", "is tainted", "will be replaced", "will be updated", "will be read during apply"}

// withoutPlanned removes the instances that a plan creates, changes, replaces, destroys or
// reads from a state.
func withoutPlanned(state string, planned []string) string {
	var b strings.Builder
	for _, i := range instances(state) {
		var rest struct {
			Key any `json:"index_key"`
		}
		if json.Unmarshal([]byte(i[1]), &rest) != nil {
			return state
		}
		parts := strings.Split(i[0], " ") // module, mode, type, name
		address := strings.Join(parts[2:], ".")
		if parts[1] == "data" {
			address = "data." + address
		}
		if parts[0] != "" {
			address = parts[0] + "." + address
		}
		if rest.Key != nil {
			key, err := json.Marshal(rest.Key)
			if err != nil {
				return state
			}
			address += "[" + string(key) + "]"
		}
		if !slices.ContainsFunc(planned, func(p string) bool {
			what, ok := strings.CutPrefix(p, "# "+address+" ")
			return ok && slices.ContainsFunc(carriedOut, func(how string) bool { return strings.HasPrefix(what, how) })
		}) {
			b.WriteString(i[0] + "\n" + i[1] + "\n")
		}
	}
	return b.String()
}

// untilOutputs returns the text of a plan before its outputs.
func untilOutputs(text []string) []string {
	if i := slices.Index(text, "Changes to Outputs:"); i >= 0 {
		return text[:i]
	}
	return text
}

// managedOf returns the addresses of the managed objects in the state of a document.
func managedOf(state string) string {
	return strings.Join(slices.DeleteFunc(addresses.FindAllString(state, -1), func(a string) bool { return strings.Contains(a, "data.") }), "\n")
}

var addresses = regexp.MustCompile(`"address": ".*"`)

// withoutElements removes an address from the changes and the planned values of a document.
func withoutElements(document map[string]string, address string) {
	var changes []map[string]any
	if json.Unmarshal([]byte(document["resource_changes"]), &changes) != nil {
		return
	}
	changes = slices.DeleteFunc(changes, func(c map[string]any) bool { return c["address"] == address })
	if text, err := json.Marshal(changes); err == nil {
		document["resource_changes"] = string(text)
	}
	var planned struct {
		Root plannedModule `json:"root_module"`
	}
	if json.Unmarshal([]byte(document["planned_values"]), &planned) != nil {
		return
	}
	planned.Root.drop(address)
	if text, err := json.Marshal(planned); err == nil {
		document["planned_values"] = string(text)
	}
}

// A plannedModule is a module in the planned values of a document.
type plannedModule struct {
	Address   string           `json:"address,omitempty"`
	Resources []map[string]any `json:"resources"`
	Children  []*plannedModule `json:"child_modules"`
}

// drop removes an address, and modules that become empty.
func (m *plannedModule) drop(address string) {
	m.Resources = slices.DeleteFunc(m.Resources, func(r map[string]any) bool { return r["address"] == address })
	if len(m.Resources) == 0 {
		m.Resources = nil
	}
	for _, child := range m.Children {
		child.drop(address)
	}
	m.Children = slices.DeleteFunc(m.Children, func(c *plannedModule) bool { return c.Resources == nil && c.Children == nil })
	if len(m.Children) == 0 {
		m.Children = nil
	}
}

// withoutEntries removes objects from all lists in a property of a document.
func withoutEntries(document map[string]string, property string, drop func(map[string]any) bool) {
	var value any
	if json.Unmarshal([]byte(document[property]), &value) != nil {
		return
	}
	var clean func(v any) any
	clean = func(v any) any {
		switch v := v.(type) {
		case []any:
			var left []any
			for _, x := range v {
				if m, ok := x.(map[string]any); !ok || !drop(m) {
					left = append(left, clean(x))
				}
			}
			if len(left) == 0 {
				return nil
			}
			return left
		case map[string]any:
			for name, x := range v {
				if x = clean(x); x == nil {
					delete(v, name)
				} else {
					v[name] = x
				}
			}
		}
		return v
	}
	if text, err := json.MarshalIndent(clean(value), "", " "); err == nil {
		document[property] = string(text)
	}
}

var removedFrom = regexp.MustCompile(`removed \{\n  from = (\S+)\n  lifecycle \{\n    destroy = false`)

var movedFrom = regexp.MustCompile(`moved \{\n  from = (\S+)\n  to   = (\S+)\n`)

// withoutDependency removes an address from the dependencies of all objects of a state.
func withoutDependency(state, address string) string {
	return dependencies.ReplaceAllStringFunc(state, func(list string) string {
		var all []string
		if json.Unmarshal([]byte(strings.TrimPrefix(list, `"Dependencies":`)), &all) != nil {
			return list
		}
		all = slices.DeleteFunc(all, func(a string) bool { return a == address })
		if len(all) == 0 {
			all = nil // as if there were none
		}
		text, err := json.Marshal(all)
		if err != nil {
			return list
		}
		return `"Dependencies":` + string(text)
	})
}

var dependencies = regexp.MustCompile(`"Dependencies":\[[^\]]*\]`)

// resourcesOf returns a state without its outputs, which are its last line.
func resourcesOf(state string) string {
	lines := strings.Split(strings.TrimSuffix(state, "\n"), "\n")
	return strings.Join(lines[:len(lines)-1], "\n")
}

// without returns a list without a text; nil if it becomes empty.
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
