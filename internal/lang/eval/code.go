package eval

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// code is the preprocessed configuration of a module before any instance is evaluated. It is
// created once for a directory, even if several calls refer to it.
type code struct {
	cfg       *config.Module
	variables []*varCode
	locals    []*localCode
	outputs   []*outputCode
	calls     []*callCode
	resources []*resourceCode
	checks    []*checkCode

	varIndex, localIndex, outputIndex, callIndex map[string]int
	resourceIndex                                map[addr.Resource]int
	lists                                        bool // there are list blocks
}

type varCode struct {
	cfg        *config.Variable
	own, other []*ruleCode // validations that refer to this variable only, and all others
}

func (v *varCode) hasRules() bool { return len(v.own)+len(v.other) > 0 }

type localCode struct {
	cfg  *config.Local
	expr *lang.Expr
	// fixed is the value of an expression without references after it was computed. It is the
	// same for all instances of the module, in validation and planning.
	fixed atomic.Pointer[cty.Value]
}

type outputCode struct {
	cfg   *config.Output
	expr  *lang.Expr
	pre   []*ruleCode
	after []refCode
}

type callCode struct {
	cfg    *config.Call
	repeat repeatCode
	inputs map[string]*lang.Expr
	ds     diag.List // messages about the inputs
	after  []refCode
}

type resourceCode struct {
	cfg       *config.Resource
	repeat    repeatCode
	pre, post []*ruleCode
	after     []refCode
	provision []refCode // references of provisioners that run after a create
	prevent   *lang.Expr
	listing   *listingCode // nil unless it is a list block
	triggers  []*lang.Expr
	ofCheck   bool

	once   sync.Once
	inBody []refCode // references of the arguments; see bodyRefs
}

// bodyRefs returns the references of the block's own arguments.
func (r *resourceCode) bodyRefs() []refCode {
	r.once.Do(func() { r.inBody = compileRefs(config.References(r.cfg.Body)) })
	return r.inBody
}

type checkCode struct {
	cfg     *config.Check
	asserts []*ruleCode
}

type ruleCode struct {
	cfg       *config.Rule
	cond, msg *lang.Expr
}

type repeatCode struct {
	count, forEach, enabled *lang.Expr
}

func (r repeatCode) none() bool { return r.count == nil && r.forEach == nil && r.enabled == nil }

// refCode is one element of depends_on.
type refCode struct{ lang.Ref }

func compileRefs(in []hcl.Traversal) []refCode {
	out := make([]refCode, len(in))
	for i, t := range in {
		out[i] = refCode{lang.Ref{Traversal: t, At: t.SourceRange()}}
	}
	return out
}

func compileRules(in []*config.Rule) []*ruleCode {
	out := make([]*ruleCode, len(in))
	for i, r := range in {
		out[i] = &ruleCode{r, lang.Compile(r.Condition), lang.Compile(r.ErrorMessage)}
	}
	return out
}

func compileSetting(s *config.Setting) *lang.Expr {
	if s == nil {
		return nil
	}
	return lang.Compile(s.Expr)
}

func compileRepeat(r config.Repeat) repeatCode {
	return repeatCode{compileSetting(r.Count), compileSetting(r.ForEach), compileSetting(r.Enabled)}
}

// Compiled caches preprocessed configuration. The zero value is empty and usable.
type Compiled struct {
	// Keep keeps the bodies of blocks that validation decodes for the plan that follows.
	Keep bool
	// Shared keeps the bodies of blocks for other evaluations.
	Shared bool

	mu     sync.Mutex
	codes  map[*config.Module]*code
	bodies map[bodyKey]*body
	loose  map[any]func() *LooseBody // by the block; see Module.Loose
}

// code returns the preprocessed form of a module's configuration.
func (ev *Evaluator) code(cfg *config.Module) *code {
	all := ev.compiled
	all.mu.Lock()
	defer all.mu.Unlock()
	c := all.codes[cfg]
	if c == nil {
		c = compile(cfg)
		if all.codes == nil {
			all.codes = map[*config.Module]*code{}
		}
		all.codes[cfg] = c
	}
	return c
}

func compile(cfg *config.Module) *code {
	c := &code{
		cfg: cfg, varIndex: map[string]int{}, localIndex: map[string]int{}, outputIndex: map[string]int{},
		callIndex: map[string]int{}, resourceIndex: map[addr.Resource]int{},
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Variables)) {
		c.varIndex[name] = len(c.variables)
		c.variables = append(c.variables, compileVariable(cfg.Variables[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Locals)) {
		c.localIndex[name] = len(c.locals)
		l := cfg.Locals[name]
		c.locals = append(c.locals, &localCode{cfg: l, expr: compileSetting(l.Value)})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Outputs)) {
		c.outputIndex[name] = len(c.outputs)
		o := cfg.Outputs[name]
		c.outputs = append(c.outputs, &outputCode{o, compileSetting(o.Value), compileRules(o.Preconditions), compileRefs(o.DependsOn)})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Calls)) {
		c.callIndex[name] = len(c.calls)
		call := cfg.Calls[name]
		c.calls = append(c.calls, &callCode{cfg: call, repeat: compileRepeat(call.Repeat), after: compileRefs(call.DependsOn)})
	}
	for _, a := range slices.SortedFunc(maps.Keys(cfg.Resources), addr.Resource.Compare) {
		c.resourceIndex[a] = len(c.resources)
		c.lists = c.lists || a.Mode == addr.List
		c.resources = append(c.resources, compileResource(cfg.Resources[a]))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Checks)) {
		c.checks = append(c.checks, &checkCode{cfg.Checks[name], compileRules(cfg.Checks[name].Asserts)})
	}
	return c
}

func compileVariable(v *config.Variable) *varCode {
	out := &varCode{cfg: v}
	for _, r := range compileRules(v.Validations) {
		if onlyOwn(r.cond, v.Name) && onlyOwn(r.msg, v.Name) {
			out.own = append(out.own, r)
		} else {
			out.other = append(out.other, r)
		}
	}
	return out
}

func onlyOwn(x *lang.Expr, name string) bool {
	if x == nil {
		return true
	}
	for _, ref := range x.Refs() {
		if !isAttr(ref.Traversal, "var", name) {
			return false
		}
	}
	return true
}

func isAttr(t hcl.Traversal, root, name string) bool {
	if len(t) < 2 || t.RootName() != root {
		return false
	}
	a, ok := t[1].(hcl.TraverseAttr)
	return ok && a.Name == name
}

// dependsOn returns the depends_on of a block. A reference to the block itself is ignored, as
// in OpenTofu.
func dependsOn(r *config.Resource) []hcl.Traversal {
	return slices.DeleteFunc(slices.Clone(r.DependsOn), func(ref hcl.Traversal) bool {
		a, _, ok := resourceOf(ref)
		return ok && a == r.Addr
	})
}

func compileResource(r *config.Resource) *resourceCode {
	out := &resourceCode{
		cfg: r, repeat: compileRepeat(r.Repeat), pre: compileRules(r.Pre), post: compileRules(r.Post),
		after: compileRefs(dependsOn(r)), prevent: compileSetting(r.Lifecycle.PreventDestroy), ofCheck: r.Check != "",
	}
	out.provision = provisionRefs(r)
	if r.Listing != nil {
		out.listing = &listingCode{compileSetting(r.Listing.IncludeResource), compileSetting(r.Listing.Limit)}
	}
	for _, x := range r.Lifecycle.ReplaceTriggeredBy {
		out.triggers = append(out.triggers, lang.Compile(x))
	}
	return out
}

// provisionRefs returns the references of provisioners that run after a create, and of their
// connections, in source order. It keeps references to variables, locals, modules and other
// resources that are not ephemeral.
func provisionRefs(r *config.Resource) []refCode {
	var refs []hcl.Traversal
	for _, p := range r.Provisioners {
		if p.OnDestroy {
			continue
		}
		refs = append(refs, config.References(p.Body)...)
		switch {
		case p.Connection != nil:
			refs = append(refs, config.References(p.Connection.Body)...)
		case r.Connection != nil:
			refs = append(refs, config.References(r.Connection.Body)...)
		}
	}
	refs = slices.DeleteFunc(refs, func(ref hcl.Traversal) bool {
		switch ref.RootName() {
		case "var", "local", "module":
			return false
		}
		a, _, ok := resourceOf(ref)
		return !ok || a.Mode == addr.Ephemeral || a == r.Addr
	})
	slices.SortStableFunc(refs, func(a, b hcl.Traversal) int { return a.SourceRange().Start.Byte - b.SourceRange().Start.Byte })
	return compileRefs(refs)
}

// read decodes the arguments of a call by the variables of the called module.
func (c *callCode) read(child *config.Module) {
	hs := &hcl.BodySchema{}
	for name := range child.Variables {
		hs.Attributes = append(hs.Attributes, hcl.AttributeSchema{Name: name})
	}
	content, diags := lang.Content(c.cfg.Body, hs)
	c.ds = diag.FromHCL(diags)
	for _, m := range c.ds {
		m.Notes = append(m.Notes, diag.Note{Text: "the module's variables are declared in " + child.Dir})
	}
	c.inputs = make(map[string]*lang.Expr, len(content.Attributes))
	for name, a := range content.Attributes {
		c.inputs[name] = lang.Compile(a.Expr)
	}
	for _, name := range slices.Sorted(maps.Keys(content.Attributes)) {
		c.ds = append(c.ds, config.IgnoredAttributes(content.Attributes[name].Expr, child.Variables[name].Type, "the variable "+name+" of the module")...)
	}
	for name, v := range child.Variables {
		if v.Required() && c.inputs[name] == nil {
			at := c.cfg.Body.MissingItemRange()
			c.ds = append(c.ds, diag.Errorf(diag.CodeLangMissingArgument, &at, "Missing required argument", "The argument %q is required, but no definition was found.", name).Note(&v.At, "the variable is declared here")...)
		}
	}
}

// bodyKey identifies a block and the schema with which it was decoded.
type bodyKey struct {
	body   any
	schema *schema.Block
}

// body is a decoded body. If it is small, a body from validation is kept for the plan.
// Otherwise the garbage collector may remove it when it is not used, and it is decoded again.
type body struct {
	mu    sync.Mutex
	kept  *lang.Body // nil if it may be removed
	b     weak.Pointer[lang.Body]
	small bool
	read  bool
	ds    diag.List // messages of the first decoding; they are always the same
}

// get returns the decoded body. more means that another evaluation will need it again.
func (b *body) get(src hcl.Body, s *schema.Block, more bool) *lang.Body {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.b.Value()
	if out == nil {
		var ds diag.List
		out, ds = lang.CompileBody(src, s)
		b.b, b.small = weak.Make(out), more && out.Small()
		if !b.read {
			b.ds, b.read = ds, true
		}
	}
	if b.kept = nil; more && b.small {
		b.kept = out
	}
	return out
}

// compileBody decodes a body with a schema. Only the first caller gets the messages.
func (ev *Evaluator) compileBody(owner any, src hcl.Body, s *schema.Block) (*lang.Body, diag.List) {
	k := bodyKey{owner, s}
	all := ev.compiled
	all.mu.Lock()
	b := all.bodies[k]
	if b == nil {
		b = &body{}
		if all.bodies == nil {
			all.bodies = map[bodyKey]*body{}
		}
		all.bodies[k] = b
	}
	all.mu.Unlock()
	out := b.get(src, s, all.Shared || all.Keep && ev.o.Validating)
	if len(b.ds) > 0 {
		if _, again := ev.reported.LoadOrStore(b, true); !again {
			return out, slices.Clone(b.ds)
		}
	}
	return out, nil
}

// bodyFailed reports whether decoding the body of a block had errors.
func (ev *Evaluator) bodyFailed(owner any, s *schema.Block) bool {
	all := ev.compiled
	all.mu.Lock()
	b := all.bodies[bodyKey{owner, s}]
	all.mu.Unlock()
	return b != nil && b.ds.HasErrors()
}
