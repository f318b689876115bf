package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/run"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate/discovery"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// stackOutputOptions contains the flags of stack output.
type stackOutputOptions struct {
	json, raw bool
	format    string
}

// An outputTree contains the outputs of a stack. A node is either a value or has subs: the
// parts of a stack, or the outputs of a unit.
type outputTree struct {
	name  string
	value *state.Output
	subs  []*outputTree
}

// runStackOutput prints the outputs of stacks.
func runStackOutput(ctx context.Context, c *command.Call, f *unitflags.Flags, o *stackOutputOptions) int {
	format := o.format
	switch {
	case o.json:
		format = "json"
	case o.raw:
		format = "raw"
	}
	if !slices.Contains([]string{"default", "json", "raw"}, format) {
		return c.UsageError("Invalid format", "The formats are default, json and raw.")
	}
	if len(c.Args) > 1 {
		return c.UsageError("Too many command line arguments", "The command takes at most one name.")
	}
	tree, code := stackOutputs(ctx, c, f)
	if code != 0 {
		return code
	}
	if len(c.Args) == 1 {
		if ds := tree.keep(outputPath(c.Arg(0)), c.Arg(0)); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	return writeOutputs(c, tree, format)
}

// outputPath returns the names in an argument, such as app["web"].role or shard[0].
func outputPath(text string) []string {
	ref, diags := hclsyntax.ParseTraversalAbs([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		return strings.Split(text, ".")
	}
	var path []string
	for _, step := range ref {
		name := addr.StepName(step)
		if i, ok := step.(hcl.TraverseIndex); ok {
			key, err := convert.Convert(i.Key, cty.String)
			if err != nil {
				return strings.Split(text, ".")
			}
			name = key.AsString()
		}
		path = append(path, name)
	}
	return path
}

// stackOutputs reads the outputs of all stacks below the working directory.
func stackOutputs(ctx context.Context, c *command.Call, f *unitflags.Flags) (*outputTree, int) {
	o, ds := units.Options(c, f, "output", nil, nil)
	if ds.HasErrors() {
		return nil, c.Fail(ds)
	}
	c.Report.AboveStatus(ds)
	o.Discovery.Generate = !f.NoStackGenerate
	e, ds := units.OpenLeniently(ctx, c, o) // ignore errors in units that are not part of a stack
	defer e.Close(ctx)
	if ds.HasErrors() {
		return nil, units.FailWith(c, e, ds)
	}
	parts, ds := e.StackParts(ctx)
	if ds.HasErrors() {
		return nil, units.FailWith(c, e, ds)
	}
	inStack := map[string]bool{}
	note(inStack, c.Dir, parts)
	all, results := e.Outputs(ctx, func(u *discovery.Unit) bool { return inStack[u.Name] })
	if ds = run.Messages(results); ds.HasErrors() {
		return nil, units.FailWith(c, e, ds)
	}
	root := &outputTree{}
	root.add(c.Dir, parts, all, func(dir string) bool {
		u := e.Found.ByID(dir)
		return u != nil && u.Excluded != ""
	})
	return root, 0
}

// note adds the names of all units in parts to names.
func note(names map[string]bool, dir string, parts []estate.StackPart) {
	for _, p := range parts {
		if rel, err := filepath.Rel(dir, p.Dir); err == nil && !p.Stack {
			names[filepath.ToSlash(rel)] = true
		}
		note(names, dir, p.Parts)
	}
}

// add adds the outputs of a stack's parts, except units that an exclude block excludes.
func (t *outputTree) add(dir string, parts []estate.StackPart, all map[string]map[string]*state.Output, excluded func(dir string) bool) {
	for _, p := range parts {
		if !p.Stack && excluded(p.Dir) {
			continue
		}
		sub, under := &outputTree{name: p.Name}, t
		if p.Key != (addr.Key{}) {
			key, _ := convert.Convert(p.Key.Value(), cty.String) // a number or a string
			sub.name, under = key.AsString(), t.sub(p.Name)
		}
		if p.Stack {
			sub.add(dir, p.Parts, all, excluded)
		} else if rel, err := filepath.Rel(dir, p.Dir); err == nil {
			outputs := all[filepath.ToSlash(rel)]
			for _, name := range slices.Sorted(maps.Keys(outputs)) {
				sub.subs = append(sub.subs, &outputTree{name: name, value: outputs[name]})
			}
		}
		under.subs = append(under.subs, sub)
	}
	slices.SortStableFunc(t.subs, func(a, b *outputTree) int { return strings.Compare(a.name, b.name) })
}

// sub returns the part of that name. It adds the part if there is none.
func (t *outputTree) sub(name string) *outputTree {
	for _, s := range t.subs {
		if s.name == name {
			return s
		}
	}
	s := &outputTree{name: name}
	t.subs = append(t.subs, s)
	return s
}

// keep removes all outputs except those at a path.
func (t *outputTree) keep(path []string, text string) diag.List {
	for at := t; len(path) > 0; path = path[1:] {
		i := slices.IndexFunc(at.subs, func(s *outputTree) bool { return s.name == path[0] })
		if i < 0 {
			var have []string
			for _, s := range at.subs {
				have = append(have, s.name)
			}
			return diag.Errorf(diag.CodeCLINoSuchOutput, nil, "No such output", "There is no %q in the outputs of the stack, of which %q is asked for. There are: %s.", path[0], text, strings.Join(have, ", "))
		}
		at.subs = at.subs[i : i+1]
		at = at.subs[0]
	}
	return nil
}

// values returns the values in the tree.
func (t *outputTree) values() []*state.Output {
	if t.value != nil {
		return []*state.Output{t.value}
	}
	var out []*state.Output
	for _, s := range t.subs {
		out = append(out, s.values()...)
	}
	return out
}

func writeOutputs(c *command.Call, tree *outputTree, format string) int {
	switch format {
	case "raw":
		return rawOutput(c, tree)
	case "json":
		doc, err := tree.json()
		if err == nil {
			var b []byte
			if b, err = json.MarshalIndent(doc, "", "  "); err == nil {
				fmt.Fprintf(c.Stdout, "%s\n", b)
				return 0
			}
		}
		return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write outputs", "The outputs cannot be written as JSON: %s.", err))
	}
	var b strings.Builder
	for _, sub := range tree.subs {
		sub.text(&b)
	}
	fmt.Fprintf(c.Stdout, "%s", hclwrite.Format([]byte(b.String())))
	return 0
}

func rawOutput(c *command.Call, tree *outputTree) int {
	all := tree.values()
	if len(all) != 1 {
		return c.Fail(diag.Errorf(diag.CodeCLIOneOutput, nil, "One output expected", "With --raw one output is printed, but what was named has %d. Name one, as in \"stack output --raw UNIT.OUTPUT\".", len(all)))
	}
	text, err := convert.Convert(all[0].Value, cty.String)
	if err != nil || text.IsNull() {
		return c.Fail(diag.Errorf(diag.CodeCLIRawOutput, nil, "Unsupported value for raw output", "With --raw an output must be a string, a number or a bool. Use --json for others."))
	}
	plain, _ := text.Unmark()
	fmt.Fprint(c.Stdout, plain.AsString())
	return 0
}

func (t *outputTree) json() (any, error) {
	if t.value != nil {
		v, _ := t.value.Value.UnmarkDeep()
		b, err := ctyjson.Marshal(v, v.Type())
		return json.RawMessage(b), err
	}
	m := map[string]any{}
	for _, s := range t.subs {
		v, err := s.json()
		if err != nil {
			return nil, err
		}
		m[s.name] = v
	}
	return m, nil
}

// text writes the tree in the syntax of unit files. The caller must format it.
func (t *outputTree) text(b *strings.Builder) {
	name := t.name
	if !hclsyntax.ValidIdentifier(name) {
		name = addr.Quote(name)
	}
	switch {
	case t.value == nil && len(t.subs) == 0:
		b.WriteString(name + " = {}\n")
	case t.value == nil:
		b.WriteString(name + " = {\n")
		for _, s := range t.subs {
			s.text(b)
		}
		b.WriteString("}\n")
	case t.value.Sensitive:
		b.WriteString(name + " = (sensitive value)\n")
	default:
		v, _ := t.value.Value.UnmarkDeep()
		fmt.Fprintf(b, "%s = %s\n", name, hclwrite.TokensForValue(v).Bytes())
	}
}
