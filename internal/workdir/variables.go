package workdir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
)

// A VarFlag is one -var or -var-file flag.
type VarFlag struct {
	File  bool // -var-file
	Value string
	At    *source.Range // argument of a unit file that added the flag; nil means the command line
}

// VarSources are the sources of values for variables. A later source replaces the value of an
// earlier one as a whole: TF_VAR_*, then terraform.tfvars, then terraform.tfvars.json, then
// *.auto.tfvars and *.auto.tfvars.json by name, then -var and -var-file in the order of the
// command line. The zero value contains no values.
type VarSources struct {
	Dir   string         // absolute directory of the root module, which contains the automatic files
	FS    config.FS      // file system of the automatic files; nil means Dir on disk
	Under string         // directory of the automatic files, relative to FS; "" means its root
	Files string         // directory to which names of -var-file are relative; "" means Dir
	Env   sys.Env        // nil means no environment
	Flags []VarFlag      // in the order of the command line
	Set   *source.Set    // receives the text of the files; may be nil
	Read  *readfile.Kept // reads files that are not in FS; nil reads them without a cache
}

// Variables contains values by the names of their variables.
type Variables map[string]engine.InputValue

// CollectVariables returns the values of the declared variables. It calls GatherVariables and For.
func CollectVariables(from VarSources, declared map[string]*config.Variable) (Variables, diag.List) {
	g, ds := GatherVariables(from)
	v, more := g.For(declared)
	return v, append(ds, more...)
}

// A GivenVariables contains the values from all sources, including those for undeclared variables.
type GivenVariables struct{ items []item }

// Word returns the flag as a word of a command line.
func (f VarFlag) Word() string {
	if f.File {
		return "-var-file=" + f.Value
	}
	return "-var=" + f.Value
}

// An item is one value from one source.
type item struct {
	name  string
	value engine.InputValue
	added *source.Range // argument that added the flag; nil for other sources and the command line
}

// GatherVariables reads the values from all sources. It does not need the declared variables. It
// returns an error for each source that cannot be read.
func GatherVariables(from VarSources) (*GivenVariables, diag.List) {
	c := &collector{VarSources: from}
	c.environment()
	for _, name := range c.automatic() {
		c.read(&source.Layer{Kind: source.VarFile, Name: name, Auto: true}, nil, func() ([]byte, error) {
			if from.FS != nil {
				return from.FS.ReadFile(name)
			}
			return from.Read.Whole(filepath.Join(from.Dir, name))
		})
	}
	number := 0 // of -var
	for _, f := range from.Flags {
		if f.File {
			c.given(f)
		} else {
			number++
			c.flag(f, number)
		}
	}
	return &c.out, c.ds
}

// All returns the value with the highest precedence for each name.
func (g *GivenVariables) All() Variables {
	out := make(Variables, len(g.items))
	for _, i := range g.items {
		out[i.name] = i.value
	}
	return out
}

// For returns the values of the declared variables. A value for an undeclared variable is an error if
// it comes from a flag, and a warning if it comes from a file. In the environment it is ignored. For
// does not check types, and does not report missing values.
func (g *GivenVariables) For(declared map[string]*config.Variable) (Variables, diag.List) {
	out := make(Variables)
	var ds diag.List
	var strangers []item
	for _, i := range g.items {
		if _, ok := declared[i.name]; ok {
			out[i.name] = i.value
			continue
		}
		switch i.value.From.Kind {
		case source.Flag:
			where := "on the command line"
			if i.added != nil {
				where = "by an argument that is added to the command line"
			}
			ds = append(ds, &diag.Message{
				Code:    diag.CodeVarsUndeclaredFlag,
				Summary: "Value for undeclared variable",
				Detail:  fmt.Sprintf("A variable named %q was assigned %s, but the root module does not declare a variable of that name.%s To use this value, add a \"variable\" block to the configuration.", i.name, where, lang.Suggest(i.name, declared)),
				At:      i.added,
			})
		case source.VarFile:
			strangers = append(strangers, i)
		}
	}
	return out, append(ds, tellStrangers(strangers, declared)...)
}

// MissingErrors returns an error for each variable, in the order of their declarations. The variables
// have no value.
func MissingErrors(missing []*config.Variable) diag.List {
	var ds diag.List
	for _, d := range missing {
		ds = append(ds, &diag.Message{
			Code:    diag.CodeVarsMissing,
			Summary: "No value for required variable",
			Detail:  fmt.Sprintf("The root module input variable %q is not set, and has no default value. Use a -var or -var-file command line argument to provide a value for this variable.", d.Name),
			At:      &d.At,
		})
	}
	return ds.Sort()
}

type collector struct {
	VarSources
	out GivenVariables
	ds  diag.List
}

func (c *collector) found(name string, v engine.InputValue) {
	c.out.items = append(c.out.items, item{name: name, value: v})
}

func (c *collector) environment() {
	for _, pair := range c.Env {
		rest, ok := strings.CutPrefix(pair, "TF_VAR_")
		if !ok {
			continue
		}
		name, text, _ := strings.Cut(rest, "=")
		c.found(name, engine.InputValue{Text: &text, From: source.Layer{Kind: source.Environment, Name: "TF_VAR_" + name}})
	}
}

// automatic returns the names of the files that are read without a flag, in the order of their
// precedence, lowest first.
func (c *collector) automatic() []string {
	if c.Dir == "" {
		return nil
	}
	list := c.Read.ReadDir
	dir := c.Dir
	if c.FS != nil {
		list, dir = c.FS.ReadDir, cmp.Or(c.Under, ".")
	}
	entries, err := list(dir)
	if err != nil {
		return nil // loading the module reports the error
	}
	var first, auto []string
	for _, e := range entries { // sorted by name
		switch name := e.Name(); {
		case e.IsDir():
		case name == "terraform.tfvars" || name == "terraform.tfvars.json":
			first = append(first, name)
		case (strings.HasSuffix(name, ".auto.tfvars") || strings.HasSuffix(name, ".auto.tfvars.json")) && !ignored(name):
			auto = append(auto, name)
		}
	}
	all := append(first, auto...)
	for i, name := range all {
		all[i] = path.Join(c.Under, name)
	}
	return all
}

// ignored reports whether a name is that of a hidden file or of an editor's temporary file.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
}

// given reads the file that a -var-file flag names.
func (c *collector) given(f VarFlag) {
	path := f.Value
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmp.Or(c.Files, c.Dir), path)
	}
	c.read(&source.Layer{Kind: source.VarFile, Name: f.Value}, f.At, func() ([]byte, error) { return c.Read.Given(path) })
}

// flag parses a -var flag. number is its position among the -var flags, from 1. Messages contain the
// number, not the text of the flag, because the text may be a secret.
func (c *collector) flag(f VarFlag, number int) {
	name, value, ok := strings.Cut(f.Value, "=")
	if !ok {
		c.ds = append(c.ds, &diag.Message{
			Code:    diag.CodeVarsFlag,
			Summary: "Invalid -var option",
			Detail:  fmt.Sprintf("The -var option number %d is not correctly specified. It must be a variable name and a value separated by an equals sign, like -var=\"key=value\".", number),
			At:      f.At,
		})
		return
	}
	c.found(name, engine.InputValue{Text: &value, From: source.Layer{Kind: source.Flag, Name: "-var"}})
	c.out.items[len(c.out.items)-1].added = f.At
}

// read reads a variable file. Messages contain the name of its layer. at is the argument that names
// the file; nil means the command line or an automatic file.
func (c *collector) read(layer *source.Layer, at *source.Range, text func() ([]byte, error)) {
	show := layer.Name
	src, err := text()
	if err != nil {
		m := &diag.Message{Code: diag.CodeVarsReadFile, Summary: "Failed to read variables file", At: at}
		if errors.Is(err, fs.ErrNotExist) {
			m.Detail = fmt.Sprintf("Given variables file %s does not exist.", show)
		} else {
			m.Detail = fmt.Sprintf("Error while reading %s: %s.", show, diag.Reason(err, show))
		}
		c.ds = append(c.ds, m)
		return
	}
	if c.Set != nil {
		c.Set.Add(&source.File{Path: show, Bytes: src, Layer: layer})
	}
	entries, ds := parse(src, show)
	c.ds = append(c.ds, ds...)
	for _, e := range entries {
		at := e.at
		c.found(e.name, engine.InputValue{Value: e.value, At: &at, From: *layer})
	}
}

// tellStrangers returns warnings for the first two undeclared variables, and one with the number of
// the others.
func tellStrangers(strangers []item, declared map[string]*config.Variable) diag.List {
	const most = 2
	var ds diag.List
	for i, s := range strangers {
		if i == most {
			return append(ds, &diag.Message{
				Code:     diag.CodeVarsUndeclaredMore,
				Severity: diag.Warning,
				Alone:    true,
				Summary:  "Values for undeclared variables",
				Detail:   fmt.Sprintf("In addition to the other similar warnings shown, %d other variable(s) defined without being declared.", len(strangers)-most),
			})
		}
		ds = append(ds, &diag.Message{
			Code:     diag.CodeVarsUndeclared,
			Severity: diag.Warning,
			Alone:    true,
			Summary:  "Value for undeclared variable",
			Detail: fmt.Sprintf("The root module does not declare a variable named %q but a value was found in file %q.%s If you meant to use this value, add a \"variable\" block to the configuration.\n\n"+
				"To silence these warnings, use TF_VAR_... environment variables to provide certain \"global\" settings to all configurations in your organization. To reduce the verbosity of these warnings, use the -compact-warnings option.", s.name, s.value.From.Name, lang.Suggest(s.name, declared)),
			At: s.value.At,
		})
	}
	return ds
}
