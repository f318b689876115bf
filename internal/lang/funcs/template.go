package funcs

// Templates call functions of the same table, including templatefile and templatestring. To
// count the nesting, each depth has its own table with the same functions except these two.
// It is built when a template of that depth first runs.

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// below counts the templates that run below one template of an expression.
type below struct {
	runs    atomic.Int64
	endless atomic.Bool // a limit was reached, so that no further template runs
}

// scope is one table and the tables of the templates that it runs.
type scope struct {
	config Config
	max    int
	below  *below // nil outside of templates

	mu     sync.Mutex
	levels []family // indexed by depth
}

const defaultDepth = 1024

// maxRuns is the maximum number of templates that run below one template of an expression:
// templates that each call two others would never end.
const maxRuns = 100000

func newScope(c Config) *scope {
	if c.BaseDir == "" {
		c.BaseDir = "."
	}
	s := &scope{config: c, max: c.TemplateDepth}
	if s.max <= 0 {
		s.max = defaultDepth
	}
	return s
}

// level returns the table for templates of a depth; 0 is the table of expressions.
func (s *scope) level(depth int) family {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.levels) <= depth {
		var fs family
		if len(s.levels) == 0 {
			fs = maps.Clone(shared())
			maps.Copy(fs, own(s))
		} else {
			fs = maps.Clone(s.levels[0])
		}
		addBoth(fs, s.templates(len(s.levels)))
		s.levels = append(s.levels, fs)
	}
	return s.levels[depth]
}

// templates returns the functions that run templates, for calls at a depth.
func (s *scope) templates(depth int) family {
	return family{
		"templatefile":   s.templateFileFunc(depth),
		"templatestring": s.templateStringFunc(depth),
	}
}

// templateFileFunc returns templatefile. Its result is sensitive if any value that the
// template could use is.
func (s *scope) templateFileFunc(depth int) function.Function {
	return function.New(&function.Spec{
		Description: "Renders the template in a file with the given variables.",
		Params:      []function.Parameter{param("path", cty.String), param("vars", cty.DynamicPseudoType)},
		Type:        templateType,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			_, pathMarks := args[0].Unmark()
			_, varMarks := args[1].UnmarkDeep()
			source, err := s.source(args[0])
			if err != nil {
				return cty.NilVal, err
			}
			v, err := s.render(depth, template{source, nameOf(args[0]), args[1]})
			return v.WithMarks(pathMarks, varMarks), err
		},
	})
}

// source returns the text of the file at a path, which may be unknown or marked.
func (s *scope) source(path cty.Value) (cty.Value, error) {
	return quoting(func(c call) (cty.Value, error) {
		text, err := s.readText(c, 0)
		return cty.StringVal(text), err
	})([]cty.Value{path}, cty.String)
}

// nameOf returns a path for messages about the template.
func nameOf(path cty.Value) string {
	bare, marks := path.Unmark()
	if secretMarks(marks) || !bare.IsKnown() {
		return "template"
	}
	return bare.AsString()
}

// templateStringFunc returns templatestring. Its result is sensitive if the template or a
// value that it used is.
func (s *scope) templateStringFunc(depth int) function.Function {
	return function.New(&function.Spec{
		Description: "Renders a string as a template with the given variables.",
		Params:      []function.Parameter{param("data", cty.String), param("vars", cty.DynamicPseudoType)},
		Type:        templateType,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return s.render(depth, template{args[0], "template", args[1]})
		},
	})
}

func templateType(args []cty.Value) (cty.Type, error) {
	ty := args[1].Type()
	if !ty.IsObjectType() && !ty.IsMapType() {
		return cty.NilType, function.NewArgErrorf(1, "invalid vars value: must be a map")
	}
	return cty.DynamicPseudoType, nil // a template of a single interpolation returns its value unchanged
}

// template is a template to render.
type template struct {
	source cty.Value // a string
	name   string    // used as the file name in messages
	vars   cty.Value // a map or an object
}

// render runs a template at a depth. The result has the marks of the template, of vars
// itself, and of the values that the template used.
func (s *scope) render(depth int, t template) (cty.Value, error) {
	source, marks := t.source.Unmark()
	vars, varMarks := t.vars.Unmark()
	if !source.IsKnown() || !vars.IsKnown() {
		return cty.DynamicVal.WithMarks(marks, varMarks), nil
	}
	v, err := s.run(depth, template{source, t.name, vars})
	if err != nil {
		// A secret value that the template uses is marked, so its functions can refuse it. The
		// text of the template and the names of variables have no marks.
		if secretMarks(marks) || secretMarks(varMarks) {
			err = hidden(err)
		}
		return cty.NilVal, err
	}
	return v.WithMarks(marks, varMarks), nil
}

// run is like render, for a known template without marks.
func (s *scope) run(depth int, t template) (cty.Value, error) {
	if err := s.endless(depth); err != nil {
		return cty.NilVal, err
	}
	vars := make(map[string]cty.Value)
	for key, v := range t.vars.Elements() {
		name := key.AsString()
		if !hclsyntax.ValidIdentifier(name) {
			return cty.NilVal, function.NewArgErrorf(1, "invalid template variable name %q: must start with a letter, followed by zero or more letters, digits, underscores and dashes", name)
		}
		vars[name] = v
	}
	if _, deep := source.TooDeep("", []byte(t.source.AsString())); deep {
		return cty.NilVal, errors.New("the template is nested too deeply")
	}
	x, ds := hclsyntax.ParseTemplate([]byte(t.source.AsString()), t.name, hcl.InitialPos)
	if ds.HasErrors() {
		return cty.NilVal, diagnosed(ds)
	}
	hclnative.ResolveTypes(x)
	for _, ref := range x.Variables() {
		if _, ok := vars[ref.RootName()]; !ok {
			return cty.NilVal, function.NewArgErrorf(1, "vars map does not contain key %q, referenced at %s", ref.RootName(), ref[0].SourceRange())
		}
	}
	in := s
	if s.below == nil && callsTemplates(x) {
		in = &scope{config: s.config, max: s.max, below: new(below)}
	}
	ctx := &hcl.EvalContext{Variables: vars, Functions: in.level(depth + 1)}
	if err := value.LoopsOf(x).Bounded(ctx); err != nil {
		return cty.NilVal, fmt.Errorf("the template cannot be worked with: %w", err)
	}
	v, ds := x.Value(ctx)
	if ds.HasErrors() {
		return cty.NilVal, diagnosed(ds)
	}
	return v, nil
}

// endless returns the reason why no further template runs at a depth, or nil.
func (s *scope) endless(depth int) error {
	switch {
	case s.below == nil:
		return nil
	case depth >= s.max:
		s.below.endless.Store(true)
		return fmt.Errorf("templates call each other more than %d deep", s.max)
	case s.below.runs.Add(1) > maxRuns:
		s.below.endless.Store(true)
		return fmt.Errorf("templates call each other more than %d times", maxRuns)
	case s.below.endless.Load():
		return errors.New("templates call each other without end")
	}
	return nil
}

// callsTemplates reports whether a template calls other templates.
func callsTemplates(x hclsyntax.Expression) bool {
	found := false
	_ = hclsyntax.VisitAll(x, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok {
			name := strings.TrimPrefix(call.Name, corePrefix)
			found = found || name == "templatefile" || name == "templatestring"
		}
		return nil
	})
	return found
}

// diagnosed returns the first error in ds with its range.
func diagnosed(ds hcl.Diagnostics) error {
	for _, d := range ds {
		if d.Severity != hcl.DiagError {
			continue
		}
		detail := strings.TrimSuffix(d.Detail, ".") // the caller continues the sentence
		if d.Subject == nil {
			return fmt.Errorf("%s; %s", d.Summary, detail)
		}
		return fmt.Errorf("%s: %s; %s", d.Subject, d.Summary, detail)
	}
	return errors.New("the template cannot be rendered")
}
