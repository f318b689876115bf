package lint

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Linter checks modules and unit files. Its methods may be called concurrently.
type Linter struct {
	On   Selection
	Root string // absolute path of the directory that is checked, to which fingerprints are relative

	files   parallel.Cache[[32]byte, *facts]
	earlier atomic.Pointer[Linter] // nil means none
	loads   config.Loads
	local   parallel.Cache[string, localModule] // by directory of a module that a local source names
	failed  sync.Map                            // directories in local whose files have errors, to diag.List
	modules parallel.Cache[any, checkedModule]  // by UnitConfig.Shared
}

// Next returns a linter for the same files after some of them have changed. It takes the facts of the other
// files from l, and forgets the others. l may be nil.
func (l *Linter) Next(on Selection, root string) *Linter {
	next := &Linter{On: on, Root: root}
	if l != nil {
		l.earlier.Store(nil) // otherwise the facts of all changes would stay in memory
		next.earlier.Store(l)
	}
	return next
}

// A Module is a module to check.
type Module struct {
	Config *config.Module
	Files  []File
	Dir    string // absolute path of the directory of the module's files
}

// NewModule returns a module to check. path returns the absolute path of a file in the ranges of m.
func NewModule(m *config.Module, path func(name string) string) *Module {
	out := &Module{Config: m, Dir: path(m.Dir)}
	for _, f := range m.Files {
		if t := m.Set.File(f.Path); t != nil && (f.Role == config.RoleBase || f.Role == config.RoleOverride) {
			out.Files = append(out.Files, File{Path: path(f.Path), Name: f.Path, Text: t.Bytes, Override: f.Role == config.RoleOverride})
		}
	}
	return out
}

// load returns the module of a directory on disk. ok is false if it cannot be read.
func (l *Linter) load(dir string) (m *Module, ok bool) {
	c, ds := l.loads.Load(dir, config.Options{})
	if ds.HasErrors() {
		if !config.Unread(ds) { // a directory that does not exist may be generated
			l.failed.Store(dir, ds.Errors())
		}
		return nil, false
	}
	return NewModule(c, func(name string) string { return name }), true
}

// Errors returns the errors in the files of called modules, which have no findings. The files have absolute
// names.
func (l *Linter) Errors() (out diag.List) {
	byDir := map[string]diag.List{}
	l.failed.Range(func(dir, ds any) bool {
		byDir[dir.(string)] = ds.(diag.List)
		return true
	})
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		out = append(out, byDir[dir]...)
	}
	return out
}

// Module returns the findings in a module and in the modules that it calls by a local path.
func (l *Linter) Module(m *Module) []*finding.Finding {
	first := l.one(m)
	out, seen := first.found, map[string]bool{m.Dir: true}
	for queue := first.calls; len(queue) > 0; queue = queue[1:] {
		dir := queue[0]
		if seen[dir] { // also if a module calls itself
			continue
		}
		seen[dir] = true
		called := l.local.Local(dir, func() (localModule, bool) {
			child, ok := l.load(dir)
			if !ok || len(child.Files) == 0 {
				return localModule{}, true
			}
			return l.one(child), true
		})
		out = append(out, called.found...)
		queue = append(queue, called.calls...)
	}
	return out
}

// A localModule contains the findings in a module, and the directories of the modules that it calls by
// a local path.
type localModule struct {
	found []*finding.Finding
	calls []string
}

// one checks a module without those that it calls.
func (l *Linter) one(m *Module) localModule {
	c := &checker{l: l, m: m}
	for _, f := range m.Files {
		c.files = append(c.files, l.facts(f))
	}
	out := localModule{found: slices.Clip(c.check())}
	for _, name := range slices.Sorted(maps.Keys(m.Config.Calls)) {
		if dir := c.localDir(m.Config.Calls[name]); dir != "" {
			out.calls = append(out.calls, dir)
		}
	}
	out.calls = slices.Clip(out.calls)
	return out
}

// checker checks one module.
type checker struct {
	l     *Linter
	m     *Module
	files []*facts
	uses  map[string]bool
	json  bool // a file is in JSON syntax
	out   []*finding.Finding
}

// localDir returns the directory of a called module if its source is a local path, else "".
func (c *checker) localDir(call *config.Call) string {
	src, ok := constant(call.Source)
	if !ok || !strings.HasPrefix(src, "./") && !strings.HasPrefix(src, "../") {
		return ""
	}
	dir := filepath.Join(c.m.Dir, filepath.FromSlash(src))
	if dir == c.m.Dir {
		return ""
	}
	return dir
}

// constant returns the text of a setting that is a quoted string without interpolations.
func constant(s *config.Setting) (string, bool) {
	if s == nil || len(s.Expr.Variables()) > 0 {
		return "", false
	}
	v, diags := s.Expr.Value(nil)
	if diags.HasErrors() || v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return "", false
	}
	return v.AsString(), true
}

func (c *checker) check() []*finding.Finding {
	c.uses = map[string]bool{}
	for _, f := range c.files {
		maps.Copy(c.uses, f.uses)
		c.json = c.json || f.json
		for _, x := range f.found {
			n := *x
			c.out = append(c.out, &n)
		}
	}
	c.providerUses()
	impure := c.impureLocals()
	for i, f := range c.files {
		if f.body == nil || c.m.Files[i].Generated {
			continue
		}
		for _, b := range f.body.Blocks {
			switch b.Type {
			case "variable":
				c.variable(f, b)
			case "locals":
				c.locals(f, b)
			case "resource", "data", "ephemeral", "output", "module":
				c.object(f, b)
				if b.Type == "resource" {
					c.impure(f, b, impure)
				}
				if b.Type == "module" {
					c.pinned(f, b)
				}
			case "provider":
				c.provider(f, b)
			}
			c.comparisons(f, b)
		}
		c.quotedReferences(f)
	}
	c.requiredProviders()
	c.overridden()
	return c.l.selected(c.out, c.files)
}

// providerUses adds the references to provider configurations. The name null is a literal in
// expressions, so that the references of files do not contain null.alias.
func (c *checker) providerUses() {
	m := c.m.Config
	for _, r := range m.Resources {
		if r.Provider != nil {
			c.uses[r.Provider.String()] = true
		}
	}
	for _, call := range m.Calls {
		for _, p := range call.Providers {
			c.uses[p.Parent.String()] = true
		}
	}
	for _, i := range m.Imports {
		if i.Provider != nil {
			c.uses[i.Provider.String()] = true
		}
	}
}

// selected returns the findings of rules that are on, with the exceptions that comments record.
func (l *Linter) selected(all []*finding.Finding, files []*facts) []*finding.Finding {
	var out []*finding.Finding
	for _, f := range all {
		if !l.On[f.Rule] {
			continue
		}
		dir, err := filepath.Rel(l.Root, filepath.Dir(f.At().Filename))
		if err != nil {
			dir = ""
		}
		f.Text = filepath.ToSlash(dir) + "\x00" + f.Text
		for _, x := range files {
			if x.path != f.At().Filename {
				continue
			}
			for _, i := range x.ignores {
				if i.line == f.At().Start.Line && i.reason != "" && i.names(f.Rule) {
					f.Waived = i.reason
				}
			}
		}
		out = append(out, f)
	}
	return out
}

func (i *ignore) names(code string) bool {
	return slices.ContainsFunc(i.codes, func(name string) bool { return name == "all" || strings.TrimPrefix(name, "core:") == code })
}

func (c *checker) report(code, address, path string, at source.Range, text, message string, fix ...finding.Edit) {
	c.out = append(c.out, &finding.Finding{
		Rule: code, Level: rule(code).Level, Verdict: finding.Fail, Message: message, Address: address, Path: path, Text: text, SetAt: c.absolute(at), Fix: fix,
	})
}

func (c *checker) variable(f *facts, b *hclsyntax.Block) {
	if len(b.Labels) != 1 || c.later(f) {
		return
	}
	name := b.Labels[0]
	if !c.uses["var."+name] && !c.uses["var"] {
		c.report(UnusedVariable, "var."+name, "", b.DefRange(), "", fmt.Sprintf("Nothing refers to the variable %q.", name))
	}
	if v := c.m.Config.Variables[name]; v != nil && v.Settings["type"] == nil {
		c.report(NoTypeVariable, "var."+name, "", b.DefRange(), "", fmt.Sprintf("The variable %q has no type.", name))
	}
}

// later reports whether a file is an override file. Its blocks change objects of other files.
func (c *checker) later(f *facts) bool {
	return c.m.Files[slices.Index(c.files, f)].Override
}

func (c *checker) locals(f *facts, b *hclsyntax.Block) {
	if c.later(f) || c.uses["local"] {
		return
	}
	for _, a := range inOrder(b.Body) {
		if !c.uses["local."+a.Name] {
			c.report(UnusedLocal, "local."+a.Name, "", a.NameRange, "", fmt.Sprintf("Nothing refers to the local value %q.", a.Name), f.withoutLocal(a.SrcRange, mayMatter(a.Expr))...)
		}
	}
}

// removal returns the edit that removes the argument in a range with its line. It returns nil if the line, or
// the line above, has a comment, which the edit would lose or leave without what it is about.
func (x *facts) removal(at source.Range) []finding.Edit {
	from, to := at.Start.Byte, at.End.Byte
	for from > 0 && (x.text[from-1] == ' ' || x.text[from-1] == '\t') {
		from--
	}
	for to < len(x.text) && (x.text[to] == ' ' || x.text[to] == '\t' || x.text[to] == '\r') {
		to++
	}
	if from > 0 && x.text[from-1] != '\n' || to < len(x.text) && x.text[to] != '\n' || strings.ContainsAny(comments(x.text[from:to]), "#") {
		return nil
	}
	above := x.text[:max(from-1, 0)]
	if i := strings.LastIndexByte(string(above), '\n'); i >= 0 {
		above = above[i+1:]
	}
	if line := strings.TrimSpace(string(above)); strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//") || strings.HasSuffix(line, "*/") {
		return nil
	}
	if to < len(x.text) {
		to++
	}
	// Empty lines between the argument and the beginning or the end of its block go too, and one of two
	// empty lines on both sides of it.
	before, rest := bytes.TrimRight(x.text[:from], " \t\r\n"), bytes.TrimLeft(x.text[to:], " \t\r\n")
	if !bytes.HasSuffix(before, []byte("{")) {
		empty := bytes.Count(x.text[len(before):from], []byte("\n")) > 1
		next := bytes.TrimLeft(x.text[to:], " \t")
		if empty && len(next) > 0 && strings.ContainsRune("}\r\n", rune(next[0])) {
			from = len(before) + bytes.IndexByte(x.text[len(before):], '\n') + 1
		}
	} else if after := x.text[to : len(x.text)-len(rest)]; bytes.ContainsRune(after, '\n') {
		to += bytes.LastIndexByte(after, '\n') + 1
	}
	at.Start.Byte, at.End.Byte = from, to
	return []finding.Edit{{At: at}}
}

// withoutLocal returns the edit that removes an unused local value, or nil if its evaluation may
// matter.
func (x *facts) withoutLocal(at source.Range, matters bool) []finding.Edit {
	if matters {
		return nil
	}
	return x.removal(at)
}

// mayMatter reports whether the evaluation of an expression may fail by intent, or have an effect.
// Local values are evaluated even if nothing refers to them, and some only exist to check other
// values: a for expression whose keys must differ, or a call such as regex or tobool("message"). In
// unit files, a call can run a program.
func mayMatter(x hclsyntax.Expression) (matters bool) {
	_ = hclsyntax.VisitAll(x, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.ForExpr:
			matters = matters || n.KeyExpr != nil && !n.Group
		case *hclsyntax.FunctionCallExpr:
			matters = matters || !slices.Contains(harmlessFunctions(), strings.TrimPrefix(n.Name, "core::"))
		}
		return nil
	})
	return matters
}

// harmlessFunctions fail only for values of a wrong type, and have no effect.
func harmlessFunctions() []string {
	return []string{
		"abs", "basename", "base64encode", "base64gzip", "can", "ceil", "chomp", "compact", "concat", "contains", "dirname", "distinct",
		"endswith", "flatten", "floor", "format", "formatlist", "indent", "join", "jsonencode", "keys", "length", "lower", "md5", "merge",
		"nonsensitive", "replace", "reverse", "sensitive", "setintersection", "setsubtract", "setunion", "sha1", "sha256", "sha512",
		"sort", "split", "startswith", "strrev", "substr", "title", "transpose", "trim", "trimprefix", "trimspace",
		"trimsuffix", "try", "upper", "urlencode", "values", "yamlencode",
		"get_terragrunt_dir", "get_original_terragrunt_dir", "get_parent_terragrunt_dir", "path_relative_to_include", "path_relative_from_include",
	}
}

// comments returns "#" if a text contains a comment, else "".
func comments(text []byte) string {
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)
	for _, t := range tokens {
		if t.Type == hclsyntax.TokenComment {
			return "#"
		}
	}
	return ""
}

// object checks a block with the arguments that objects have in common: depends_on, count,
// provider and ignore_changes.
func (c *checker) object(f *facts, b *hclsyntax.Block) {
	in := subject(b)
	if a := b.Body.Attributes["depends_on"]; a != nil {
		c.dependsOn(f, b, a, in)
	}
	if a := b.Body.Attributes["count"]; a != nil && b.Type != "output" {
		if x, ok := a.Expr.(*hclsyntax.ConditionalExpr); ok && isNumber(x.TrueResult, 1) && isNumber(x.FalseResult, 0) || ok && isNumber(x.TrueResult, 0) && isNumber(x.FalseResult, 1) {
			c.report(CountInsteadEnabled, in, "count", a.SrcRange, f.source(a.SrcRange), "count chooses between one instance and none. lifecycle.enabled says so, without an index in the address.")
		}
	}
	unquote := func(path string, x hclsyntax.Expression) {
		text, ok := literal(x)
		if !ok || !strings.HasPrefix(f.source(x.Range()), `"`) {
			return
		}
		if _, diags := hclsyntax.ParseTraversalAbs([]byte(text), "", hcl.InitialPos); diags.HasErrors() {
			return
		}
		c.report(DeprecatedQuotes, in, path, x.Range(), text, "The reference is in quotes. Write it without quotes.", finding.Edit{At: x.Range(), Text: text})
	}
	list := func(path string, a *hclsyntax.Attribute) {
		if a == nil {
			return
		}
		if t, ok := a.Expr.(*hclsyntax.TupleConsExpr); ok {
			for _, x := range t.Exprs {
				unquote(path, x)
			}
		}
	}
	list("depends_on", b.Body.Attributes["depends_on"])
	if a := b.Body.Attributes["provider"]; a != nil && b.Type != "output" && b.Type != "module" {
		unquote("provider", a.Expr)
	}
	if a := b.Body.Attributes["providers"]; a != nil && b.Type == "module" {
		if o, ok := a.Expr.(*hclsyntax.ObjectConsExpr); ok {
			for _, item := range o.Items {
				unquote("providers", item.ValueExpr)
			}
		}
	}
	for _, life := range b.Body.Blocks {
		if life.Type == "lifecycle" && b.Type == "resource" {
			list("lifecycle.ignore_changes", life.Body.Attributes["ignore_changes"])
		}
	}
}

func isNumber(x hclsyntax.Expression, n int64) bool {
	l, ok := x.(*hclsyntax.LiteralValueExpr)
	return ok && l.Val.Type() == cty.Number && l.Val.RawEquals(cty.NumberIntVal(n))
}

// resourceOf returns the address of the resource to which a reference refers, or "".
func resourceOf(t hcl.Traversal) string {
	switch root := t.RootName(); root {
	case "var", "local", "module", "path", "terraform", "tofu", "each", "count", "self", "provider", "ephemeral":
		return ""
	case "data":
		if step(t, 1) == "" || step(t, 2) == "" {
			return ""
		}
		return "data." + step(t, 1) + "." + step(t, 2)
	case "resource":
		if step(t, 1) == "" || step(t, 2) == "" {
			return ""
		}
		return step(t, 1) + "." + step(t, 2)
	default:
		if step(t, 1) == "" {
			return ""
		}
		return root + "." + step(t, 1)
	}
}

// dependsOn reports elements of depends_on that change nothing. A reference to an output of a
// module waits for that output only, and depends_on of a data source delays its read: both mean
// more than a reference, so only resources in resources and outputs count.
func (c *checker) dependsOn(f *facts, b *hclsyntax.Block, a *hclsyntax.Attribute, in string) {
	t, ok := a.Expr.(*hclsyntax.TupleConsExpr)
	if !ok || c.later(f) {
		return
	}
	refers := map[string]bool{}
	if b.Type == "resource" || b.Type == "output" {
		add := func(x hclsyntax.Expression) {
			for _, t := range x.Variables() {
				if r := resourceOf(t); r != "" {
					refers[r] = true
				}
			}
		}
		var body func(b *hclsyntax.Body)
		body = func(b *hclsyntax.Body) {
			for _, x := range b.Attributes {
				if x != a {
					add(x.Expr)
				}
			}
			for _, n := range b.Blocks {
				if n.Type != "lifecycle" && n.Type != "provisioner" && n.Type != "connection" && n.Type != "precondition" {
					body(n.Body)
				}
			}
		}
		body(b.Body)
	}
	if c.overrides(b) {
		refers = nil // an override file may replace the reference
	}
	seen := map[string]bool{}
	for i, x := range t.Exprs {
		s, ok := x.(*hclsyntax.ScopeTraversalExpr)
		if !ok {
			continue
		}
		text := f.source(s.SrcRange)
		r := resourceOf(s.Traversal)
		switch {
		case seen[text]:
			c.report(UnusedDeps, in, "depends_on", s.SrcRange, text, fmt.Sprintf("depends_on contains %s twice.", text), f.element(a, t, i)...)
		case r != "" && refers[r]:
			c.report(UnusedDeps, in, "depends_on", s.SrcRange, text, fmt.Sprintf("The block refers to %s anyway, so that this element of depends_on changes nothing.", text), f.element(a, t, i)...)
		}
		seen[text] = true
	}
}

// element returns the edit that removes element i of a list in an argument, or the argument if
// the list has no other.
func (x *facts) element(a *hclsyntax.Attribute, t *hclsyntax.TupleConsExpr, i int) []finding.Edit {
	if len(t.Exprs) == 1 {
		return x.removal(a.SrcRange)
	}
	at := t.Exprs[i].Range()
	if i+1 < len(t.Exprs) {
		at.End = t.Exprs[i+1].Range().Start
	} else {
		at.Start = t.Exprs[i-1].Range().End
	}
	if comments(at.SliceBytes(x.text)) != "" {
		return nil
	}
	return []finding.Edit{{At: at}}
}

// overrides reports whether an override file contains a block with the type and labels of b.
func (c *checker) overrides(b *hclsyntax.Block) bool {
	for i, f := range c.files {
		if !c.m.Files[i].Override {
			continue
		}
		if f.body == nil {
			return true
		}
		for _, o := range f.body.Blocks {
			if o.Type == b.Type && slices.Equal(o.Labels, b.Labels) {
				return true
			}
		}
	}
	return false
}

// impureFunctions return another value at each plan.
func impureFunctions() []string { return []string{"timestamp", "plantimestamp", "uuid", "bcrypt"} }

// impureCall returns the impure function that an expression calls, itself or through a local value,
// or "".
func impureCall(x hclsyntax.Expression, locals map[string]string) (found string) {
	_ = hclsyntax.VisitAll(x, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.FunctionCallExpr:
			if slices.Contains(impureFunctions(), n.Name) && found == "" {
				found = n.Name
			}
		case *hclsyntax.ScopeTraversalExpr:
			if n.Traversal.RootName() == "local" && found == "" {
				found = locals[step(n.Traversal, 1)]
			}
		}
		return nil
	})
	return found
}

// impureLocals returns the local values whose value differs at each plan, with the function.
func (c *checker) impureLocals() map[string]string {
	out := map[string]string{}
	if !slices.ContainsFunc(c.files, func(f *facts) bool {
		return slices.ContainsFunc(impureFunctions(), func(name string) bool { return f.funcs[name] })
	}) {
		return out
	}
	for again := true; again; {
		again = false
		for _, f := range c.files {
			if f.body == nil {
				continue
			}
			for _, b := range f.body.Blocks {
				if b.Type != "locals" {
					continue
				}
				for name, a := range b.Body.Attributes {
					if by := impureCall(a.Expr, out); by != "" && out[name] == "" {
						out[name], again = by, true
					}
				}
			}
		}
	}
	return out
}

// impure reports arguments of a resource that differ at each plan.
func (c *checker) impure(f *facts, b *hclsyntax.Block, locals map[string]string) {
	if len(b.Labels) != 2 || len(locals) == 0 && !slices.ContainsFunc(impureFunctions(), func(name string) bool { return f.funcs[name] }) {
		return
	}
	r := c.m.Config.Resources[addr.Resource{Mode: addr.Managed, Type: b.Labels[0], Name: b.Labels[1]}]
	if r == nil || r.Lifecycle.IgnoreAll {
		return
	}
	ignored := map[string]bool{}
	for _, t := range r.Lifecycle.IgnoreChanges {
		for _, s := range t[:1] {
			switch s := s.(type) {
			case hcl.TraverseAttr:
				ignored[s.Name] = true
			case hcl.TraverseRoot:
				ignored[s.Name] = true
			}
		}
	}
	switch b.Labels[0] {
	case "null_resource": // these arguments exist to run something at each apply
		ignored["triggers"] = true
	case "terraform_data":
		ignored["triggers_replace"] = true
	}
	switch typ := b.Labels[0]; { // those of the providers random and time, to make a value anew
	case strings.HasPrefix(typ, "random_"):
		ignored["keepers"] = true
	case strings.HasPrefix(typ, "time_"):
		ignored["triggers"] = true
	}
	var body func(in string, top string, x *hclsyntax.Body)
	body = func(in, top string, x *hclsyntax.Body) {
		for _, a := range inOrder(x) {
			if in == "" && slices.Contains([]string{"count", "for_each", "depends_on", "provider"}, a.Name) || ignored[a.Name] && in == "" || ignored[top] {
				continue
			}
			if by := impureCall(a.Expr, locals); by != "" {
				c.report(ImpureFunc, subject(b), in+a.Name, a.SrcRange, f.source(a.SrcRange), fmt.Sprintf("%s() has another result each time, so that every plan changes this argument.", by))
			}
		}
		for _, n := range x.Blocks {
			if in == "" && slices.Contains([]string{"lifecycle", "provisioner", "connection"}, n.Type) {
				continue
			}
			name := n.Type
			if n.Type == "dynamic" && len(n.Labels) == 1 {
				name = n.Labels[0]
			}
			first := top
			if first == "" {
				first = name
			}
			body(in+name+".", first, n.Body)
		}
	}
	body("", "", b.Body)
}

var (
	registrySource = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?)/)?[A-Za-z0-9_-]+/[A-Za-z0-9_-]+/[A-Za-z0-9_-]+(?://.*)?$`)
	})
	branches = []string{"main", "master", "head", "develop", "trunk", "default"}
)

// unpinned returns why a module's source does not determine the module, or "".
func unpinned(src string, version bool) string {
	switch kind := kindOf(src); {
	case kind == "registry" && !version:
		return "The module is from a registry, and no version is given."
	case kind != "repository":
		return ""
	}
	_, query, _ := strings.Cut(src, "?")
	for _, p := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(p, "=")
		if name != "ref" && name != "rev" && name != "tag" && name != "digest" || value == "" {
			continue
		}
		if slices.Contains(branches, strings.ToLower(strings.TrimPrefix(value, "refs/heads/"))) || strings.HasPrefix(value, "refs/heads/") {
			return fmt.Sprintf("The module is from a repository, and %s=%s is a branch.", name, value)
		}
		return ""
	}
	return "The module is from a repository, and no tag or commit is given."
}

// kindOf returns "registry", "repository" or "other".
func kindOf(src string) string {
	switch {
	case strings.HasPrefix(src, "./"), strings.HasPrefix(src, "../"), strings.HasPrefix(src, "/"), src == ".", src == "..":
		return "other"
	case strings.HasPrefix(src, "git::"), strings.HasPrefix(src, "hg::"), strings.HasPrefix(src, "git@"), strings.HasPrefix(src, "github.com/"), strings.HasPrefix(src, "gitlab.com/"), strings.HasPrefix(src, "bitbucket.org/"), strings.HasPrefix(src, "oci://"):
		return "repository"
	case strings.Contains(src, "::"), strings.Contains(src, "://"):
		return "other"
	case registrySource().MatchString(src):
		return "registry"
	}
	return "other"
}

func (c *checker) pinned(f *facts, b *hclsyntax.Block) {
	if len(b.Labels) != 1 || c.later(f) {
		return
	}
	call := c.m.Config.Calls[b.Labels[0]]
	a := b.Body.Attributes["source"]
	if call == nil || a == nil {
		return
	}
	src, ok := constant(call.Source)
	if !ok {
		return
	}
	if why := unpinned(src, call.Version != nil); why != "" {
		c.report(UnpinnedModule, subject(b), "source", a.SrcRange, source.HideCredentials(src), why)
	}
}

func (c *checker) provider(f *facts, b *hclsyntax.Block) {
	if len(b.Labels) != 1 || c.later(f) {
		return
	}
	name := b.Labels[0]
	if a := b.Body.Attributes["version"]; a != nil {
		c.report(DeprecatedProviderVersion, "provider."+name, "version", a.SrcRange, f.source(a.Expr.Range()), "A version constraint in a provider block is deprecated. Write it in required_providers.")
	}
	a := b.Body.Attributes["alias"]
	if a == nil || c.json {
		return
	}
	if alias, ok := literal(a.Expr); ok && !c.uses[name+"."+alias] && !slices.ContainsFunc(c.files, func(f *facts) bool { return f.funcs["provider::"+name+"::"] }) {
		c.report(UnusedProvider, "provider."+name+"."+alias, "", b.DefRange(), "", fmt.Sprintf("Nothing uses the provider configuration %s.%s.", name, alias))
	}
}

// requiredProviders reports unused entries of required_providers, and providers without a version.
func (c *checker) requiredProviders() {
	m := c.m.Config
	if c.json {
		return
	}
	used := map[string]bool{}
	for _, r := range m.Resources {
		used[r.LocalProvider()] = true
	}
	for _, p := range m.Providers {
		used[p.Name] = true
	}
	for name := range m.ProviderMetas {
		used[name] = true
	}
	for _, call := range m.Calls {
		for _, p := range call.Providers {
			used[p.Parent.Name] = true
		}
	}
	for _, i := range m.Imports {
		if i.Provider != nil {
			used[i.Provider.Name] = true
		}
	}
	for _, f := range c.files {
		for name := range f.funcs {
			if parts := strings.Split(name, "::"); len(parts) > 2 && parts[0] == "provider" {
				used[parts[1]] = true
			}
		}
	}
	below, whole := c.below(c.m, nil)
	for _, name := range slices.Sorted(maps.Keys(m.RequiredProviders)) {
		rp := m.RequiredProviders[name]
		if used[name] || !whole || below[m.Source(name)] || len(rp.Aliases) > 0 || c.generated(rp.At) {
			continue
		}
		c.report(UnusedProvider, "provider."+name, "", rp.At, "", fmt.Sprintf("No resource, module or function uses the required provider %q.", name))
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		rp := m.RequiredProviders[name]
		if name == "terraform" || rp != nil && (len(rp.Version) > 0 || rp.VersionExpr != nil || c.generated(rp.At)) || slices.ContainsFunc(slices.Collect(maps.Values(m.Providers)), func(p *config.Provider) bool { return p.Name == name && len(p.Version) > 0 }) {
			continue
		}
		if at, ok := c.providerAt(name, rp); ok {
			c.report(UnpinnedProvider, "provider."+name, "", at, "", fmt.Sprintf("The provider %q has no version constraint in required_providers.", name))
		}
	}
}

// providerAt returns where an entry of required_providers is, or should be: at the first object
// that uses the provider.
func (c *checker) providerAt(name string, rp *config.RequiredProvider) (at source.Range, ok bool) {
	if rp != nil {
		return rp.At, true
	}
	add := func(r source.Range) {
		if r.Filename != "" && !c.generated(r) && (!ok || r.Filename < at.Filename || r.Filename == at.Filename && r.Start.Byte < at.Start.Byte) {
			at, ok = r, true
		}
	}
	for _, r := range c.m.Config.Resources {
		if r.LocalProvider() == name {
			add(c.absolute(r.At))
		}
	}
	for _, p := range c.m.Config.Providers {
		if p.Name == name {
			add(c.absolute(p.At))
		}
	}
	return at, ok
}

// absolute returns a range of the module's configuration with the path of its file.
func (c *checker) absolute(at source.Range) source.Range {
	for _, f := range c.m.Files {
		if f.Name == at.Filename {
			at.Filename = f.Path
			break
		}
	}
	return at
}

// generated reports whether a range is in a generated file.
func (c *checker) generated(at source.Range) bool {
	at = c.absolute(at)
	return slices.ContainsFunc(c.m.Files, func(f File) bool { return f.Path == at.Filename && f.Generated })
}

// below returns the providers that the called modules use. whole is false if one of them was not
// read.
func (c *checker) below(m *Module, callers []string) (out map[addr.Provider]bool, whole bool) {
	out = map[addr.Provider]bool{}
	for _, call := range m.Config.Calls {
		dir := (&checker{m: m}).localDir(call)
		if dir == "" || slices.Contains(callers, dir) || len(callers) > 50 {
			return out, false
		}
		child, ok := c.l.load(dir)
		if !ok {
			return out, false
		}
		for name, rp := range child.Config.RequiredProviders {
			if rp.SourceExpr != nil {
				return out, false // its source depends on the call
			}
			out[child.Config.Source(name)] = true
		}
		for _, r := range child.Config.Resources {
			out[child.Config.Source(r.LocalProvider())] = true
		}
		more, whole := c.below(child, append(slices.Clone(callers), dir))
		if !whole {
			return out, false
		}
		maps.Copy(out, more)
	}
	return out, true
}

// comparisons reports comparisons of a variable with a value of another type.
func (c *checker) comparisons(f *facts, b *hclsyntax.Block) {
	_ = hclsyntax.VisitAll(b.Body, func(n hclsyntax.Node) hcl.Diagnostics {
		x, ok := n.(*hclsyntax.BinaryOpExpr)
		if !ok || x.Op != hclsyntax.OpEqual && x.Op != hclsyntax.OpNotEqual {
			return nil
		}
		left, right := c.typeOf(x.LHS), c.typeOf(x.RHS)
		if left == "" || right == "" || left == right {
			return nil
		}
		hint := ""
		if right == "tuple" && f.source(x.RHS.Range()) == "[]" {
			hint = " Compare the length with 0."
		}
		c.report(IneffEq, subject(b), "", x.SrcRange, f.source(x.SrcRange), fmt.Sprintf("A %s is never equal to a %s, so that the result is always %t.%s", left, right, x.Op == hclsyntax.OpNotEqual, hint))
		return nil
	})
}

// typeOf returns the kind of the type of an expression: that of a literal or of a variable. It
// returns "" if it is not certain, or null.
func (c *checker) typeOf(x hclsyntax.Expression) string {
	switch x := x.(type) {
	case *hclsyntax.ParenthesesExpr:
		return c.typeOf(x.Expression)
	case *hclsyntax.LiteralValueExpr:
		if x.Val.IsNull() {
			return ""
		}
		return kindOfType(x.Val.Type())
	case *hclsyntax.TemplateExpr:
		return "string"
	case *hclsyntax.TupleConsExpr:
		return "tuple"
	case *hclsyntax.ObjectConsExpr:
		return "object"
	case *hclsyntax.ScopeTraversalExpr:
		v := c.m.Config.Variables[step(x.Traversal, 1)]
		if x.Traversal.RootName() != "var" || v == nil {
			return ""
		}
		ty := v.Type
		for i := 2; i < len(x.Traversal); i++ {
			name := step(x.Traversal, i)
			if name == "" || !ty.IsObjectType() || !ty.HasAttribute(name) {
				return ""
			}
			ty = ty.AttributeType(name)
		}
		return kindOfType(ty)
	}
	return ""
}

func kindOfType(ty cty.Type) string {
	switch {
	case ty == cty.DynamicPseudoType:
		return ""
	case ty.IsPrimitiveType():
		return ty.FriendlyName()
	case ty.IsListType():
		return "list"
	case ty.IsSetType():
		return "set"
	case ty.IsMapType():
		return "map"
	case ty.IsObjectType():
		return "object"
	case ty.IsTupleType():
		return "tuple"
	}
	return ""
}

// quotedReferences reports texts that are the address of an object of the module.
func (c *checker) quotedReferences(f *facts) {
	for _, q := range f.quoted {
		t, diags := hclsyntax.ParseTraversalAbs([]byte(q.text), "", hcl.InitialPos)
		if diags.HasErrors() || !c.declares(t) {
			continue
		}
		c.report(QuotedRef, q.in, "", q.at, q.text, fmt.Sprintf("The text %q is an address of this module. If the value is meant, write it without quotes.", q.text))
	}
}

// declares reports whether the module declares the object to which a reference to a value refers. The
// address of a resource alone, without an attribute, is a name that is meant as text: no argument
// takes a whole resource as a text.
func (c *checker) declares(t hcl.Traversal) bool {
	m, name := c.m.Config, step(t, 1)
	attribute := func(after int) bool {
		return len(t) > after && slices.ContainsFunc(t[after:], func(s hcl.Traverser) bool { _, ok := s.(hcl.TraverseAttr); return ok })
	}
	switch t.RootName() {
	case "var":
		return m.Variables[name] != nil
	case "local":
		return m.Locals[name] != nil
	case "module":
		return m.Calls[name] != nil && attribute(2)
	case "data":
		return m.Resources[addr.Resource{Mode: addr.Data, Type: name, Name: step(t, 2)}] != nil && attribute(3)
	}
	return m.Resources[addr.Resource{Mode: addr.Managed, Type: t.RootName(), Name: name}] != nil && attribute(2)
}

// overridden reports arguments that an override file replaces.
func (c *checker) overridden() {
	for i, over := range c.files {
		if !c.m.Files[i].Override || over.body == nil {
			continue
		}
		for _, o := range over.body.Blocks {
			for j, base := range c.files[:i] {
				if base.body == nil || c.m.Files[j].Override || c.m.Files[j].Generated {
					continue
				}
				for _, b := range base.body.Blocks {
					if b.Type != o.Type || !slices.Equal(b.Labels, o.Labels) {
						continue
					}
					for _, a := range inOrder(b.Body) {
						by := o.Body.Attributes[a.Name]
						if by == nil {
							continue
						}
						in, path := subject(b), a.Name
						if b.Type == "locals" {
							in, path = "local."+a.Name, ""
						}
						c.report(OverriddenValue, in, path, a.SrcRange, base.source(a.SrcRange), fmt.Sprintf("%s:%d replaces this argument.", filepath.Base(over.path), by.NameRange.Start.Line))
					}
				}
			}
		}
	}
}
