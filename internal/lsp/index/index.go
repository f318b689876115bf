// Package index lists the names in configuration files: where each is declared, and where it is used.
//
// Main types: File, the names in one file, and Occurrence. The one rule: a File is computed from the
// text of one file alone (and from which files exist above it), without evaluation, so that an edit of a
// file costs the same in a workspace of any size. A name of another module or unit is an Occurrence with
// Via, which the caller resolves by Paths.
package index

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// A Kind is the language of a file.
type Kind uint8

// The kinds of files.
const (
	Other      Kind = iota // a file of another tool or without names
	Module                 // a file of a module in native syntax
	JSON                   // a file of a module in JSON syntax
	Values                 // a variable definitions file, in either syntax
	Unit                   // a unit file, or a file that units read, in either syntax
	UnitValues             // a values file, which a stack generates for a unit
	Stack                  // a stack file
	Rules                  // a file with rules
	Test                   // a file with tests, mocks or queries, in either syntax
	Data                   // a YAML or JSON file, whose keys count where a configuration reads the file
)

// Indexed reports whether all files of the kind are in the index. Others are read when a file uses them.
func (k Kind) Indexed() bool { return k != Other && k != Data }

// KindOf returns the kind of a file with a name.
func KindOf(name string) Kind {
	name = filepath.Base(name)
	is := func(suffixes ...string) bool {
		return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
	}
	switch {
	case is(".tf", ".tofu"):
		return Module
	case is(".tf.json", ".tofu.json"):
		return JSON
	case is(".tfvars", ".tfvars.json"):
		return Values
	case is(".tftest.hcl", ".tofutest.hcl", ".tftest.json", ".tofutest.json"), rules.IsTest(name), IsMocks(name), IsQueries(name):
		return Test
	case is(".tfcomponent.hcl", ".tfstack.hcl", ".tfdeploy.hcl", ".policy.hcl", ".policytest.hcl"): // of other tools
		return Other
	case rules.IsFile(name):
		return Rules
	case name == unit.StackName, name == unit.StackAutoIncludeName:
		return Stack
	case name == ".terraform.lock.hcl":
		return Other
	case name == unit.ValuesName:
		return UnitValues
	case is(".hcl", ".hcl.json"):
		return Unit
	case is(".yaml", ".yml", ".json"):
		return Data
	}
	return Other
}

// IsMocks reports whether a file contains mocks of providers for tests.
func IsMocks(path string) bool {
	return slices.ContainsFunc([]string{".tfmock.hcl", ".tofumock.hcl", ".tfmock.json", ".tofumock.json"}, func(s string) bool { return strings.HasSuffix(path, s) })
}

// IsQueries reports whether a file contains queries.
func IsQueries(path string) bool {
	return strings.HasSuffix(path, ".tfquery.hcl") || strings.HasSuffix(path, ".tfquery.json")
}

// OfModule reports whether files of the kind are merged to a module.
func (k Kind) OfModule() bool { return k == Module || k == JSON }

// Formats reports whether a file is formatted. configuration means that the file has the rules of
// module files.
func Formats(path string) (formats, configuration bool) {
	k := KindOf(path)
	return k.Indexed() && !IsJSON(path), k == Module || k == Values || k == Test
}

// A Role is the role of an occurrence.
type Role uint8

// The roles of occurrences.
const (
	Uses     Role = iota
	Declares      // declares the name: the label of a block, or the name of a local value
	Sets          // gives it a value: an argument of a module call, an input, a line of a variable file
)

// An Occurrence is one name in a file.
type Occurrence struct {
	Addr string // such as "var.size", "aws_instance.web", "dependency.vpc"
	// Via is the address of the module call, dependency, import or include through which the name of
	// another module or file is used: "module.app", "dependency.vpc", "include.root", or "terraform"
	// for the inputs of a unit. "" means the module or file itself. "import.lib dependency.vpc" is the
	// dependency of the imported file.
	Via        string
	Role       Role
	Start, End int // range of the name, in bytes
	// Whole is the range of the declaring block or argument. It is zero for other roles.
	WholeStart, WholeEnd int
	// Part is the path behind the name, such as ".tags.env", if the occurrence uses a part.
	Part string
	Line int // counted from 1
	// History means that a moved or removed block names an object as it was called in the past.
	History bool
}

// An Argument is an argument, or a nested block, of a block with an address.
type Argument struct {
	Addr, Name string
	Start, End int // range of the name
	Line       int
	Nested     bool
	Inner      bool // the key of an object, or an argument of a nested block: Addr is that of the object or block
}

// Address returns the address of the argument, as explain takes it.
func (a *Argument) Address() string {
	if a.Addr == "" {
		return a.Name
	}
	return a.Addr + Step(a.Name)
}

// Step returns the text of a step to a key in an address.
func Step(key string) string {
	if value.IsIdentifier(key) {
		return "." + key
	}
	return "[" + quote(key) + "]"
}

// A File contains the names in one file.
type File struct {
	Path     string
	Kind     Kind
	Override bool // an override file
	Broken   bool // the file has a syntax error
	// Last is the last version without a syntax error, for a Broken file. Its positions are outdated.
	// nil means that there was none.
	Last      *File
	Names     []Occurrence
	Arguments []Argument
	// Paths contains the literal paths of sources and files, by the address of their block. A path that
	// is not constant is "". A relative path in a file that units include is relative to each unit.
	Paths map[string]string
	// Merges contains the addresses of the include and import blocks of a unit that merge their file, in the
	// order of the text.
	Merges []string
	Links  []Link
	// Reads contains the files that functions read, other than those whose keys are names of the file.
	Reads []Read
	// Wholes are the uses of all names of another file at once.
	Wholes []Whole
	// Objects are the values whose names the index does not know, where each name sets something.
	Objects []Object
	// Aliases means that parts of a YAML file repeat other parts, so that one key may have several paths.
	Aliases bool
	// Finds contains the names of files that read_terragrunt_config reads where find_in_parent_folders finds them, by the
	// address of the local value. In a file that units include, the search begins at each unit.
	Finds map[string]string
	// Searched contains the names of files that were searched in parent directories. Paths depends on
	// where such files exist.
	Searched []string
}

// A Whole is a use of all names that another file has of one kind: "locals", "inputs", "outputs" or "values", or "file"
// for all of them.
type Whole struct {
	Names, Via string
	Line       int // counted from 1
}

// An Object is a value with names that the index does not know, such as a local value that is merged into the inputs.
type Object struct {
	Prefix string // of the addresses of the names: "var.", "output." or "values."
	Via    string // as in Occurrence
	Line   int    // counted from 1
}

// A Read is a call of a function that reads a file.
type Read struct {
	Path string // absolute, or relative to the directory of the file; "" if it is not constant
	// End is the constant text at the end of a path that is not constant, or "".
	End  string
	Line int // counted from 1
}

// A Link is a text in the file that names another file or directory.
type Link struct {
	Start, End int
	Text       string // the path; "" if it is not constant
	Via        string // the address of the path in File.Paths; "" means that it has none
}

// MaxSize is the size, in bytes, above which the names of a file are not read. Such a File is Broken.
const MaxSize = 8 << 20

// Of returns the names in a file.
//
// exists reports whether a file exists, for functions that search parent directories; nil means on disk.
func Of(path string, text []byte, exists func(path string) bool) *File {
	f := &File{Path: path, Kind: KindOf(path), Paths: map[string]string{}}
	if f.Kind == Other {
		return f
	}
	if len(text) > MaxSize {
		f.Broken = true
		return f
	}
	if f.Kind == Data {
		f.keys(text)
		return f
	}
	if f.Kind.OfModule() {
		base := strings.TrimSuffix(filepath.Base(path), ".json")
		base = strings.TrimSuffix(strings.TrimSuffix(base, ".tf"), ".tofu")
		f.Override = base == "override" || strings.HasSuffix(base, "_override")
	}
	body, broken := Parse(path, text)
	f.Broken = broken
	if body == nil {
		return f
	}
	w := &walker{File: f, text: text, exists: exists, root: body, keyed: map[*hclsyntax.FunctionCallExpr]bool{}, continued: map[hclsyntax.Node]bool{}}
	if exists == nil {
		w.exists = func(path string) bool {
			_, err := os.Stat(path)
			return err == nil
		}
	}
	w.decoded(body)
	switch f.Kind {
	case Module, JSON, Test:
		w.module(body)
	case Values:
		for _, a := range body.Attributes {
			w.add(Occurrence{Addr: "var." + a.Name, Role: Sets}, a.NameRange)
			w.expression(a.Expr)
		}
	case Unit, Stack, Rules:
		w.unit(body)
	case UnitValues:
		for _, a := range body.Attributes {
			w.add(Occurrence{Addr: "values." + a.Name, Role: Declares, WholeStart: a.SrcRange.Start.Byte, WholeEnd: a.SrcRange.End.Byte}, a.NameRange)
			w.expression(a.Expr)
		}
	}
	slices.SortFunc(f.Names, func(a, b Occurrence) int {
		return cmp.Or(a.Start-b.Start, a.End-b.End, strings.Compare(a.Via, b.Via), strings.Compare(a.Addr, b.Addr))
	})
	slices.SortFunc(f.Links, func(a, b Link) int { return a.Start - b.Start })
	slices.SortFunc(f.Arguments, func(a, b Argument) int { return a.Start - b.Start })
	return f
}

// Parse parses a text as far as possible. body is nil if nothing can be parsed. For a file in JSON
// syntax, it is the equivalent body with the ranges in the JSON text.
func Parse(path string, text []byte) (body *hclsyntax.Body, broken bool) {
	if _, deep := source.TooDeep(path, text); deep {
		return nil, true
	}
	if IsJSON(path) {
		return jsonBody(path, text)
	}
	parsed, diags := hclnative.ParseConfig(text, path)
	if parsed == nil {
		return nil, true
	}
	body, _ = parsed.Body.(*hclsyntax.Body)
	return body, diags.HasErrors()
}

// At returns the occurrence at an offset, the innermost first, or nil.
func (f *File) At(offset int) *Occurrence {
	var best *Occurrence
	for i := range f.Names {
		if n := &f.Names[i]; n.Start <= offset && offset <= n.End && (best == nil || n.End-n.Start <= best.End-best.Start) {
			if best != nil && best.Start == n.Start && best.Via != "" {
				continue // the name in the other module is the better answer
			}
			best = n
		}
	}
	return best
}

// ArgumentAt returns the argument whose name is at an offset, or nil.
func (f *File) ArgumentAt(offset int) *Argument {
	for i := range f.Arguments {
		if a := &f.Arguments[i]; a.Start <= offset && offset <= a.End {
			return a
		}
	}
	return nil
}

type walker struct {
	*File
	text  []byte
	root  *hclsyntax.Body
	keyed map[*hclsyntax.FunctionCallExpr]bool // the calls that read the files whose keys are names
	// continued contains the expressions behind which a reference continues, and the calls that are local values.
	continued map[hclsyntax.Node]bool
	// order means that references of an argument are about an order or a target, and not about values.
	order  bool
	exists func(path string) bool
	// provider means that traversals are provider configurations.
	provider bool
	history  bool // the body of a moved or removed block is read
	// other is the address of the run whose body is read, if it is about another module, or "".
	other string
}

func (w *walker) add(o Occurrence, at hcl.Range) {
	o.Start, o.End, o.Line = at.Start.Byte, at.End.Byte, at.Start.Line
	if o.End-o.Start >= 2 && w.text[o.Start] == '"' && w.text[o.End-1] == '"' {
		o.Start, o.End = o.Start+1, o.End-1
	}
	if kind, _, _ := strings.Cut(o.Addr, "."); w.other != "" && kind != "run" && kind != "provider" {
		if o.Via == "" {
			o.Via = w.other
		} else if !strings.HasPrefix(o.Via, "run.") {
			o.Via = "other." + o.Via // a call in the other module
		}
	}
	o.History = w.history
	w.Names = append(w.Names, o)
}

// declare adds the declaration of a block. The name is its last label.
func (w *walker) declare(addr string, b *hclsyntax.Block) {
	if len(b.LabelRanges) == 0 {
		return
	}
	whole := b.Range()
	w.add(Occurrence{Addr: addr, Role: Declares, WholeStart: whole.Start.Byte, WholeEnd: whole.End.Byte}, b.LabelRanges[len(b.LabelRanges)-1])
	w.arguments(addr, b.Body)
}

func (w *walker) arguments(addr string, b *hclsyntax.Body) { w.argumentsIn(addr, b, false) }

func (w *walker) argumentsIn(addr string, b *hclsyntax.Body, inner bool) {
	for _, a := range b.Attributes {
		w.Arguments = append(w.Arguments, Argument{Addr: addr, Name: a.Name, Start: a.NameRange.Start.Byte, End: a.NameRange.End.Byte, Line: a.NameRange.Start.Line, Inner: inner})
		w.inner(addr+"."+a.Name, a.Expr, 0)
	}
	count := map[string]int{}
	for _, n := range b.Blocks {
		w.Arguments = append(w.Arguments, Argument{Addr: addr, Name: n.Type, Start: n.TypeRange.Start.Byte, End: n.TypeRange.End.Byte, Line: n.TypeRange.Start.Line, Nested: true, Inner: inner})
		switch {
		case n.Type == "dynamic" || n.Type == "provisioner" || n.Type == "connection":
		case w.Kind == Unit || w.Kind == Stack: // a label selects the block
			w.argumentsIn(strings.Join(append([]string{addr, n.Type}, n.Labels...), "."), n.Body, true)
		case n.Type == "lifecycle" || addr == "terraform":
			w.argumentsIn(addr+"."+n.Type, n.Body, true)
		default:
			w.argumentsIn(fmt.Sprintf("%s.%s[%d]", addr, n.Type, count[n.Type]), n.Body, true)
			count[n.Type]++
		}
	}
}

// maxInner is the number of nested objects whose keys are read.
const maxInner = 10

// inner adds the keys of the objects in the value of an address.
func (w *walker) inner(addr string, x hclsyntax.Expression, depth int) {
	if depth > maxInner {
		return
	}
	switch x := x.(type) {
	case *hclsyntax.ObjectConsExpr:
		for _, item := range x.Items {
			name := hcl.ExprAsKeyword(item.KeyExpr)
			if name == "" {
				name = w.constant(item.KeyExpr)
			}
			if name == "" {
				continue
			}
			at := item.KeyExpr.Range()
			w.Arguments = append(w.Arguments, Argument{Addr: addr, Name: name, Start: at.Start.Byte, End: at.End.Byte, Line: at.Start.Line, Inner: true})
			w.inner(addr+Step(name), item.ValueExpr, depth+1)
		}
	case *hclsyntax.TupleConsExpr:
		for i, item := range x.Exprs {
			w.inner(fmt.Sprintf("%s[%d]", addr, i), item, depth+1)
		}
	case *hclsyntax.FunctionCallExpr:
		if x.Name == "merge" {
			for _, a := range x.Args {
				w.inner(addr, a, depth+1)
			}
		}
	case *hclsyntax.ConditionalExpr:
		w.inner(addr, x.TrueResult, depth+1)
		w.inner(addr, x.FalseResult, depth+1)
	case *hclsyntax.ParenthesesExpr:
		w.inner(addr, x.Expression, depth+1)
	case *hclsyntax.TemplateWrapExpr:
		w.inner(addr, x.Wrapped, depth+1)
	}
}

// locals adds the declarations of a locals block.
func (w *walker) locals(b *hclsyntax.Block) {
	for _, a := range b.Body.Attributes {
		w.add(Occurrence{Addr: "local." + a.Name, Role: Declares, WholeStart: a.SrcRange.Start.Byte, WholeEnd: a.SrcRange.End.Byte}, a.NameRange)
		w.inner("local."+a.Name, a.Expr, 0)
	}
}

// module adds the names of a module or test file.
func (w *walker) module(body *hclsyntax.Body) {
	w.body(body)
	for _, b := range body.Blocks {
		n := len(b.Labels)
		switch {
		case (b.Type == "variable" || b.Type == "output") && n == 1:
			w.declare(map[string]string{"variable": "var.", "output": "output."}[b.Type]+b.Labels[0], b)
		case b.Type == "locals" && n == 0:
			w.locals(b)
		case b.Type == "module" && n == 1:
			addr := "module." + b.Labels[0]
			w.declare(addr, b)
			for _, a := range b.Body.Attributes {
				switch a.Name {
				case "source":
					s := w.constant(a.Expr)
					w.Paths[addr] = s
					if s != "" {
						w.link(a.Expr, s, addr)
					}
				case "version", "count", "for_each", "providers", "depends_on", "enabled":
				default:
					w.add(Occurrence{Addr: "var." + a.Name, Via: addr, Role: Sets}, a.NameRange)
				}
			}
		case b.Type == "resource" && n == 2:
			w.declare(b.Labels[0]+"."+b.Labels[1], b)
		case (b.Type == "data" || b.Type == "ephemeral") && n == 2:
			w.declare(b.Type+"."+b.Labels[0]+"."+b.Labels[1], b)
		case w.Kind == Test && b.Type == "variables" && n == 0:
			w.sets(b.Body, "")
		case w.Kind == Test && b.Type == "run" && n == 1:
			w.run(b)
		case b.Type == "check" && n == 1:
			w.declare("check."+b.Labels[0], b)
			for _, d := range b.Body.Blocks {
				if d.Type == "data" && len(d.Labels) == 2 {
					w.declare("data."+d.Labels[0]+"."+d.Labels[1], d)
				}
			}
		case b.Type == "list" && n == 2:
			w.declare("list."+b.Labels[0]+"."+b.Labels[1], b)
		case (b.Type == "provider" || b.Type == "mock_provider") && n == 1:
			addr := "provider." + b.Labels[0]
			if a := b.Body.Attributes["source"]; a != nil && b.Type == "mock_provider" {
				if s := w.constant(a.Expr); s != "" {
					w.Paths["mock_"+addr] = s
					w.link(a.Expr, s, "mock_"+addr)
				}
			}
			if a := b.Body.Attributes["alias"]; a != nil {
				if s := w.constant(a.Expr); s != "" {
					addr += "." + s
				}
			}
			w.declare(addr, b)
		case b.Type == "terraform" && n == 0:
			w.arguments("terraform", b.Body)
		}
	}
}

// sets adds the variables that a body gives values to.
func (w *walker) sets(b *hclsyntax.Body, via string) {
	for _, a := range b.Attributes {
		w.add(Occurrence{Addr: "var." + a.Name, Via: via, Role: Sets}, a.NameRange)
	}
}

// run adds the names of a run of a test. A run with a module block is about another module.
func (w *walker) run(b *hclsyntax.Block) {
	addr, via := "run."+b.Labels[0], ""
	w.declare(addr, b)
	for _, n := range b.Body.Blocks {
		if a := n.Body.Attributes["source"]; n.Type == "module" && a != nil {
			via = addr
			s := w.constant(a.Expr)
			w.Paths[addr] = s
			if s != "" {
				w.link(a.Expr, s, addr)
			}
		}
	}
	for _, n := range b.Body.Blocks {
		if n.Type == "variables" {
			w.sets(n.Body, via)
		}
	}
}

// unit adds the names of a unit file.
func (w *walker) unit(body *hclsyntax.Body) {
	for _, b := range body.Blocks {
		for _, a := range b.Body.Attributes {
			if call := readCall(a.Expr); b.Type == "locals" && call != nil {
				w.continued[call] = true // the uses of the local value are found
			}
		}
	}
	w.body(body)
	for _, b := range body.Blocks {
		label := ""
		if len(b.Labels) > 0 {
			label = b.Labels[0]
		}
		path := func(name, addr string) {
			if a := b.Body.Attributes[name]; a != nil {
				s := w.path(a.Expr, body)
				w.Paths[addr] = s
				w.link(a.Expr, s, addr)
			}
		}
		switch b.Type {
		case "locals":
			w.locals(b)
			for _, a := range b.Body.Attributes {
				if s := w.read(a.Expr, body); s != "" {
					w.Paths["local."+a.Name] = s
				}
				if s := w.finds(a.Expr); s != "" {
					if w.Finds == nil {
						w.Finds = map[string]string{}
					}
					w.Finds["local."+a.Name] = s
				}
			}
		case "dependency", "include", "import", "feature", "module", "unit", "stack":
			if label == "" {
				if b.Type == "include" {
					path("path", "include.")
					w.merges("include.", b)
				}
				continue
			}
			addr := b.Type + "." + label
			w.declare(addr, b)
			w.merges(addr, b)
			path(map[string]string{"include": "path", "module": "source", "unit": "source", "stack": "source"}[b.Type], addr)
			path("config_path", addr)
			if a := b.Body.Attributes["mock_outputs"]; a != nil && b.Type == "dependency" {
				w.keys(a.Expr, Occurrence{Via: addr, Addr: "output.", Role: Sets})
			}
			if a := b.Body.Attributes["inputs"]; a != nil && b.Type == "module" {
				w.keys(a.Expr, Occurrence{Via: addr, Addr: "var.", Role: Sets})
			}
			if b.Type == "module" {
				for _, a := range b.Body.Attributes {
					if !slices.Contains(ModuleArguments, a.Name) {
						w.add(Occurrence{Addr: "var." + a.Name, Via: addr, Role: Sets}, a.NameRange)
					}
				}
			}
			if a := b.Body.Attributes["values"]; a != nil && w.Kind == Stack {
				w.keys(a.Expr, Occurrence{Via: addr, Addr: "values.", Role: Sets})
			}
		case "terraform":
			path("source", "terraform")
			w.variableFiles(b.Body)
			w.arguments(b.Type, b.Body)
		case "dependencies":
			if a := b.Body.Attributes["paths"]; a != nil {
				w.list(a.Expr, body)
			}
		case "generate":
			w.arguments(strings.Join(append([]string{b.Type}, b.Labels...), "."), b.Body)
		case "remote_state", "exclude", "errors", "engine", "catalog":
			w.arguments(b.Type, b.Body)
		}
	}
	if w.Kind == Unit {
		for _, a := range body.Attributes {
			at := a.NameRange
			w.Arguments = append(w.Arguments, Argument{Name: a.Name, Start: at.Start.Byte, End: at.End.Byte, Line: at.Start.Line, Inner: true})
			w.inner(a.Name, a.Expr, 0)
		}
	}
	if a := body.Attributes["inputs"]; a != nil && w.Kind == Unit {
		w.keys(a.Expr, Occurrence{Via: "terraform", Addr: "var.", Role: Sets})
		w.keys(a.Expr, Occurrence{Addr: "input.", Role: Declares})
	}
}

// ModuleArguments are the arguments of a module block in an environment file that are not inputs.
var ModuleArguments = []string{"source", "version", "depends_on", "for_each", "enabled", "inputs"}

// variableFiles adds the paths of the variable files in the extra_arguments blocks of a terraform block, and the
// variables that their environment sets.
func (w *walker) variableFiles(b *hclsyntax.Body) {
	for _, n := range b.Blocks {
		if a := n.Body.Attributes["env_vars"]; a != nil {
			w.environment(a.Expr)
		}
		for _, name := range []string{"required_var_files", "optional_var_files"} {
			a := n.Body.Attributes[name]
			if a == nil {
				continue
			}
			list, ok := a.Expr.(*hclsyntax.TupleConsExpr)
			if !ok {
				continue
			}
			for _, x := range list.Exprs {
				if s := w.path(x, w.root); s != "" {
					w.Paths["variables."+s] = s
				}
			}
		}
	}
}

// environment adds the variables that an object with environment variables sets.
func (w *walker) environment(x hclsyntax.Expression) {
	o, ok := x.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return
	}
	const prefix = "TF_VAR_"
	for _, item := range o.Items {
		key := hcl.ExprAsKeyword(item.KeyExpr)
		if key == "" {
			key = w.constant(item.KeyExpr)
		}
		name, ok := strings.CutPrefix(key, prefix)
		at := item.KeyExpr.Range()
		if w.text[at.Start.Byte] == '"' {
			at.Start.Byte++
			at.End.Byte--
		}
		if ok && hclsyntax.ValidIdentifier(name) && string(w.text[at.Start.Byte:at.End.Byte]) == key {
			at.Start.Byte += len(prefix)
			w.add(Occurrence{Addr: "var." + name, Via: "terraform", Role: Sets}, at)
		}
	}
}

// list records the paths in the elements of a list, as dependencies.0, dependencies.1 and so on.
func (w *walker) list(x hclsyntax.Expression, body *hclsyntax.Body) {
	list, ok := x.(*hclsyntax.TupleConsExpr)
	if !ok {
		return
	}
	for i, item := range list.Exprs {
		addr := fmt.Sprintf("dependencies.%d", i)
		w.Paths[addr] = w.path(item, body)
		w.link(item, w.Paths[addr], addr)
	}
}

// merges records an include or import block that merges its file.
func (w *walker) merges(addr string, b *hclsyntax.Block) {
	given := func(name string) bool { // a value that is not constant may be true
		a := b.Body.Attributes[name]
		if a == nil {
			return false
		}
		v, diags := a.Expr.Value(nil)
		return diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.Bool || v.True()
	}
	switch b.Type {
	case "include":
		if a := b.Body.Attributes["merge_strategy"]; a == nil || w.constant(a.Expr) != "no_merge" {
			w.Merges = append(w.Merges, addr)
		}
	case "import":
		if given("merge") || given("deep_merge") {
			w.Merges = append(w.Merges, addr)
		}
	}
}

// keys adds the keys of an object, and of the objects that merge combines.
func (w *walker) keys(x hclsyntax.Expression, o Occurrence) {
	switch x := x.(type) {
	case *hclsyntax.ObjectConsExpr:
		for _, item := range x.Items {
			name := hcl.ExprAsKeyword(item.KeyExpr)
			if name == "" {
				name = w.constant(item.KeyExpr)
			}
			if name == "" {
				w.object(item.KeyExpr, o)
			} else {
				n := o
				n.Addr += name
				if n.Role == Declares {
					n.WholeStart, n.WholeEnd = item.KeyExpr.Range().Start.Byte, item.ValueExpr.Range().End.Byte
				}
				w.add(n, item.KeyExpr.Range())
			}
		}
	case *hclsyntax.FunctionCallExpr:
		if x.Name != "merge" && x.Name != "deep_merge" {
			w.object(x, o)
			break
		}
		for _, a := range x.Args {
			w.keys(a, o)
		}
	case *hclsyntax.ConditionalExpr:
		w.keys(x.TrueResult, o)
		w.keys(x.FalseResult, o)
	case *hclsyntax.ParenthesesExpr:
		w.keys(x.Expression, o)
	case *hclsyntax.TemplateWrapExpr:
		w.keys(x.Wrapped, o)
	default:
		w.object(x, o)
	}
}

// object adds a value whose names are not known.
func (w *walker) object(x hclsyntax.Expression, o Occurrence) {
	if o.Role == Sets {
		w.Objects = append(w.Objects, Object{o.Addr, o.Via, x.Range().Start.Line})
	}
}

// link adds a link for the text of an expression that names a local path.
func (w *walker) link(x hclsyntax.Expression, path, via string) {
	r := x.Range()
	w.Links = append(w.Links, Link{Start: r.Start.Byte, End: r.End.Byte, Text: path, Via: via})
}

// constant returns the value of a constant string, or "".
func (w *walker) constant(x hcl.Expression) string {
	if len(x.Variables()) > 0 {
		return ""
	}
	v, diags := x.Value(nil)
	if diags.HasErrors() || !isString(v) {
		return ""
	}
	return v.AsString()
}

// ordering are the arguments whose references are about an order or a target, and not about values.
var ordering = []string{"depends_on", "replace_triggered_by", "target", "expect_failures", "replace", "from", "to"}

// body adds the references in a body.
func (w *walker) body(b *hclsyntax.Body) {
	for _, a := range b.Attributes {
		switch {
		case !w.Kind.OfModule() && w.Kind != Test:
			w.expression(a.Expr)
		case a.Name == "provider" || a.Name == "providers" || a.Name == "configuration_aliases":
			w.provider = true
			w.expression(a.Expr)
			w.provider = false
		case slices.Contains(ordering, a.Name):
			w.order = true
			w.expression(a.Expr)
			w.order = false
		case a.Name == "ignore_changes", a.Name == "type":
			if a.Name == "type" && len(a.Expr.Variables()) > 0 && !isType(a.Expr) {
				w.expression(a.Expr)
			}
		default:
			w.expression(a.Expr)
		}
	}
	for _, n := range b.Blocks {
		w.history = w.Kind.OfModule() && (n.Type == "moved" || n.Type == "removed")
		outer := w.other
		if w.Kind == Test && n.Type == "run" && len(n.Labels) == 1 && slices.ContainsFunc(n.Body.Blocks, func(b *hclsyntax.Block) bool { return b.Type == "module" }) {
			w.other = "run." + n.Labels[0]
		} else if n.Type == "variables" {
			w.other = "" // the values are computed for the file
		}
		w.body(n.Body)
		w.other = outer
	}
	w.history = false
}

// isType reports whether all references of an expression are single words, as in type constraints.
func isType(x hclsyntax.Expression) bool {
	return !slices.ContainsFunc(x.Variables(), func(t hcl.Traversal) bool { return len(t) > 1 })
}

// expression adds the references in an expression.
func (w *walker) expression(x hclsyntax.Expression) {
	_ = hclsyntax.VisitAll(x, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.ScopeTraversalExpr:
			w.reference(n.Traversal)
			if !w.continued[n] && !w.order && !w.provider {
				w.whole(n.Traversal)
			}
		case *hclsyntax.RelativeTraversalExpr:
			w.through(n.Source, n.Traversal)
		case *hclsyntax.SplatExpr:
			if each, ok := n.Each.(*hclsyntax.RelativeTraversalExpr); ok {
				w.through(n.Source, each.Traversal)
			}
		case *hclsyntax.FunctionCallExpr:
			if len(n.Args) > 0 && (n.Name == "file" || n.Name == "read_terragrunt_config") {
				if s := w.constant(n.Args[0]); s != "" {
					w.link(n.Args[0], s, "")
				}
			}
			w.call(n)
			if n.Name == "read_terragrunt_config" && len(n.Args) > 0 && !w.continued[n] {
				w.addWhole("file", w.readVia(n), n.NameRange.Start.Line)
			}
		}
		return nil
	})
}

// labelFunctions are the functions of unit files whose argument is the label of an include or import block.
var labelFunctions = map[string]string{
	"path_relative_to_include": "include", "path_relative_from_include": "include", "get_parent_terragrunt_dir": "include",
	"path_relative_to_import": "import", "path_relative_from_import": "import",
}

// call adds the file that a function reads, or the label that it names.
func (w *walker) call(n *hclsyntax.FunctionCallExpr) {
	if len(n.Args) == 0 {
		return
	}
	if block := labelFunctions[n.Name]; block != "" && w.Kind == Unit {
		if label := w.constant(n.Args[0]); hclsyntax.ValidIdentifier(label) {
			if text, _, ok := Literal(n.Args[0]); ok {
				w.add(Occurrence{Addr: block + "." + label}, text)
			}
		}
		return
	}
	if w.keyed[n] || n.Name == "read_terragrunt_config" || !slices.Contains(readers, n.Name) {
		return
	}
	r := Read{Path: w.path(n.Args[0], w.root), Line: n.NameRange.Start.Line}
	if r.Path == "" {
		r.End = constantEnd(n.Args[0])
	}
	w.Reads = append(w.Reads, r)
}

// constantEnd returns the constant text at the end of a template, or "".
func constantEnd(x hclsyntax.Expression) string {
	if t, ok := x.(*hclsyntax.TemplateExpr); ok && len(t.Parts) > 0 {
		if last, ok := t.Parts[len(t.Parts)-1].(*hclsyntax.LiteralValueExpr); ok && isString(last.Val) {
			return last.Val.AsString()
		}
	}
	return ""
}

// through adds the name that follows an index of a module call, module.a[each.key].id, or the name in a file that a
// function reads, read_terragrunt_config(PATH).locals.x.
func (w *walker) through(from hclsyntax.Expression, rest hcl.Traversal) {
	for {
		switch x := from.(type) {
		case *hclsyntax.IndexExpr:
			from = x.Collection
			continue
		case *hclsyntax.ScopeTraversalExpr:
			if t := x.Traversal; len(t) == 2 && (t.RootName() == "module" || t.RootName() == "dependency" || t.RootName() == "run") {
				w.continued[x] = true
				all := append(slices.Clone(t), rest...)
				w.reference(all)
				w.whole(all)
			}
		case *hclsyntax.FunctionCallExpr:
			if x.Name == "read_terragrunt_config" && len(x.Args) > 0 {
				w.continued[x] = true
				w.further(rest, 0, w.readVia(x))
				w.wholeOf(rest, 0, w.readVia(x))
			}
		}
		return
	}
}

// readVia returns the address of the file that a call reads, or "".
func (w *walker) readVia(call *hclsyntax.FunctionCallExpr) string {
	path := w.path(call.Args[0], w.root)
	if path == "" {
		return ""
	}
	via := "read." + path
	w.Paths[via] = path
	return via
}

func (w *walker) addWhole(names, via string, line int) {
	if via != "" {
		w.Wholes = append(w.Wholes, Whole{names, via, line})
	}
}

// whole adds the use of all names of another file, if a reference ends before a name.
func (w *walker) whole(t hcl.Traversal) {
	root, line := t.RootName(), t[0].SourceRange().Start.Line
	second, ok := attr(t, 1)
	switch {
	case root == "values" && !ok && w.Kind != Rules && !w.Kind.OfModule():
		w.Paths["values"] = unit.ValuesName
		w.addWhole("values", "values", line)
	case !ok:
	case root == "module" || root == "run" && w.Kind == Test || root == "dependency":
		i, out := nextAttr(t, 2)
		if out == "outputs" && !w.Kind.OfModule() && w.Kind != Test {
			_, out = nextAttr(t, i+1)
		}
		if out == "" {
			w.addWhole("outputs", root+"."+second, line)
		}
	case w.Kind != Unit && w.Kind != Stack:
	case root == "include" && (second == "locals" || second == "inputs"):
		w.wholeOf(t, 1, "include.")
	case root == "include" || root == "import" || root == "local":
		w.wholeOf(t, 2, root+"."+second)
	}
}

// wholeOf is whole for a reference to another unit file, from step i.
func (w *walker) wholeOf(t hcl.Traversal, i int, via string) {
	line := 0
	if len(t) > 0 {
		line = t[0].SourceRange().Start.Line
	}
	kind, ok := attr(t, i)
	switch kind {
	case "locals", "inputs":
		if _, ok := attr(t, i+1); !ok {
			w.addWhole(kind, via, line)
		}
	case "dependency", "module":
		name, ok := attr(t, i+1)
		if !ok {
			w.addWhole("file", via, line)
			return
		}
		j, out := nextAttr(t, i+2)
		if out == "outputs" {
			_, out = nextAttr(t, j+1)
		}
		if out == "" {
			w.addWhole("outputs", via+" "+kind+"."+name, line)
		}
	default:
		if !ok {
			w.addWhole("file", via, line)
		}
	}
}

// reference adds the names in a reference.
func (w *walker) reference(t hcl.Traversal) {
	root := t.RootName()
	if w.provider {
		addr, at := "provider."+root, t[0].SourceRange()
		if a, ok := attr(t, 1); ok {
			addr, at = addr+"."+a, name(t[1])
		}
		w.add(Occurrence{Addr: addr}, at)
		return
	}
	second, ok := attr(t, 1)
	if !ok {
		return
	}
	if w.Kind == Unit || w.Kind == Stack || w.Kind == Rules {
		w.unitReference(t, root, second)
		return
	}
	switch root {
	case "var", "local", "output", "check":
		w.add(Occurrence{Addr: root + "." + second, Part: part(t, 2)}, name(t[1]))
		if root == "local" {
			w.keyReference(t, root+"."+second)
		}
	case "module":
		w.add(Occurrence{Addr: "module." + second, Part: part(t, 2)}, name(t[1]))
		if i, out := nextAttr(t, 2); out != "" {
			w.add(Occurrence{Addr: "output." + out, Via: "module." + second, Part: part(t, i+1)}, name(t[i]))
		}
	case "data", "ephemeral":
		if third, ok := attr(t, 2); ok {
			w.add(Occurrence{Addr: root + "." + second + "." + third, Part: part(t, 3)}, name(t[2]))
		}
		if third, _ := attr(t, 2); second == "terraform_remote_state" {
			if i, out := nextAttr(t, 3); out == "outputs" {
				if j, of := nextAttr(t, i+1); of != "" {
					w.add(Occurrence{Addr: "output." + of, Via: "data." + second + "." + third}, name(t[j]))
				}
			}
		}
	case "run":
		w.add(Occurrence{Addr: "run." + second, Part: part(t, 2)}, name(t[1]))
		if i, out := nextAttr(t, 2); out != "" && w.Kind == Test {
			w.add(Occurrence{Addr: "output." + out, Via: "run." + second, Part: part(t, i+1)}, name(t[i]))
		}
	case "each", "count", "self", "path", "terraform", "tofu", "provider":
	default:
		w.add(Occurrence{Addr: root + "." + second, Part: part(t, 2)}, name(t[1]))
	}
}

// unitReference adds the names in a reference of a unit file.
func (w *walker) unitReference(t hcl.Traversal, root, second string) {
	addr := root + "." + second
	switch root {
	case "local", "feature":
		w.add(Occurrence{Addr: addr, Part: part(t, 2)}, name(t[1]))
		w.further(t, 2, addr)
		if kind, _ := attr(t, 2); root == "local" && kind != "locals" && kind != "inputs" {
			w.keyReference(t, addr)
		}
	case "dependency":
		w.add(Occurrence{Addr: addr, Part: part(t, 2)}, name(t[1]))
		if i, out := nextAttr(t, 2); out == "outputs" {
			if j, of := nextAttr(t, i+1); of != "" {
				w.add(Occurrence{Addr: "output." + of, Via: addr, Part: part(t, j+1)}, name(t[j]))
			}
		}
	case "include", "import":
		if root == "include" && (second == "locals" || second == "inputs") {
			w.further(t, 1, "include.")
			return
		}
		w.add(Occurrence{Addr: addr, Part: part(t, 2)}, name(t[1]))
		w.further(t, 2, addr)
	case "values":
		w.Paths["values"] = unit.ValuesName
		w.add(Occurrence{Addr: addr, Via: "values", Part: part(t, 2)}, name(t[1]))
	case "module", "unit", "stack":
		w.add(Occurrence{Addr: addr}, name(t[1]))
		if i, out := nextAttr(t, 2); root == "module" && out != "" {
			if out == "outputs" {
				if i, out = nextAttr(t, i+1); out == "" {
					return
				}
			}
			w.add(Occurrence{Addr: "output." + out, Via: addr, Part: part(t, i+1)}, name(t[i]))
		}
	}
}

// further adds the names of another file behind a reference: .locals.x, .inputs.x, .dependency.x or
// .module.x at step i, and the output behind the last two.
func (w *walker) further(t hcl.Traversal, i int, via string) {
	kind, _ := attr(t, i)
	x, ok := attr(t, i+1)
	if !ok {
		return
	}
	switch kind {
	case "locals", "inputs":
		w.add(Occurrence{Addr: strings.TrimSuffix(kind, "s") + "." + x, Via: via, Part: part(t, i+2)}, name(t[i+1]))
	case "dependency", "module":
		w.add(Occurrence{Addr: kind + "." + x, Via: via, Part: part(t, i+2)}, name(t[i+1]))
		if j, out := nextAttr(t, i+2); out == "outputs" {
			if k, of := nextAttr(t, j+1); of != "" {
				w.add(Occurrence{Addr: "output." + of, Via: via + " " + kind + "." + x, Part: part(t, k+1)}, name(t[k]))
			}
		}
	}
}

// attr returns the attribute name at step i.
func attr(t hcl.Traversal, i int) (string, bool) {
	if i >= len(t) {
		return "", false
	}
	a, ok := t[i].(hcl.TraverseAttr)
	return a.Name, ok
}

// nextAttr returns the first attribute name from step i, behind an index.
func nextAttr(t hcl.Traversal, i int) (int, string) {
	if i < len(t) {
		if _, ok := t[i].(hcl.TraverseIndex); ok {
			i++
		}
	}
	a, _ := attr(t, i)
	return i, a
}

// name returns the range of the name in a step, without the dot.
func name(s hcl.Traverser) hcl.Range {
	r := s.SourceRange()
	if a, ok := s.(hcl.TraverseAttr); ok {
		if n := r.End.Byte - r.Start.Byte - len(a.Name); n > 0 {
			r.Start.Byte += n
			r.Start.Column += n
		}
	}
	return r
}

// part returns the text of the steps from i.
func part(t hcl.Traversal, i int) string {
	if i >= len(t) {
		return ""
	}
	var b strings.Builder
	for _, s := range t[i:] {
		switch s := s.(type) {
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			if isString(s.Key) {
				b.WriteString("[" + quote(s.Key.AsString()) + "]")
			} else if n := s.Key; n.IsKnown() && !n.IsNull() && n.Type().FriendlyName() == "number" {
				b.WriteString("[" + n.AsBigFloat().String() + "]")
			}
		}
	}
	return b.String()
}

// Overrides reports whether file b is loaded after file a of the same directory, so that its arguments
// replace those of a.
func Overrides(b, a *File) bool {
	return b.Override && (!a.Override || a.Path < b.Path)
}
