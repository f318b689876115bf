package workdir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// A VarFlag is one -var or -var-file of the command line.
type VarFlag struct {
	File  bool // -var-file
	Value string
	At    *source.Range // what added it to the command line; nil: whoever wrote that
}

// VarSources are the sources of values for variables. A later source replaces the value of an
// earlier one as a whole: TF_VAR_*, then terraform.tfvars, then terraform.tfvars.json, then
// *.auto.tfvars and *.auto.tfvars.json by name, then -var and -var-file in the order of the
// command line. The zero value contains no values.
type VarSources struct {
	Dir   string         // the directory of the root module, absolute; automatic files are looked for there
	FS    config.FS      // reads the automatic files by their names; nil: those of Dir on disk
	Under string         // the directory of the automatic files, relative to FS; "" for its own
	Files string         // what relative names of -var-file count from; "" means Dir
	Env   sys.Env        // nil: no environment
	Flags []VarFlag      // in the order of the command line
	Set   *source.Set    // gets the text of the files; nil for nobody
	Read  *readfile.Kept // reads the files but for those of FS; nil: each is read anew
}

// Variables are values by variable name.
type Variables map[string]engine.InputValue

// CollectVariables gathers what there is for the declared variables: Gather and For at once.
func CollectVariables(from VarSources, declared map[string]*config.Variable) (Variables, diag.List) {
	g, ds := GatherVariables(from)
	v, more := g.For(declared)
	return v, append(ds, more...)
}

// A GivenVariables is everything that was found, whatever variables there are.
type GivenVariables struct{ items []item }

// Word is the flag as a word of a command line.
func (f VarFlag) Word() string {
	if f.File {
		return "-var-file=" + f.Value
	}
	return "-var=" + f.Value
}

// An item is one value that was found.
type item struct {
	name  string
	value engine.InputValue
	added *source.Range // of a flag, what added it; nil: the user
}

// GatherVariables finds values without knowing which variables there are. Only what
// cannot be read is an error.
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

// All are the values of all names, the winning one each.
func (g *GivenVariables) All() Variables {
	out := make(Variables, len(g.items))
	for _, i := range g.items {
		out[i.name] = i.value
	}
	return out
}

// For picks the values of the declared variables. A value for a variable that
// is not declared is an error if it stands on the command line, a warning in a
// file, and nothing in the environment. Whether a value fits its variable, and
// whether one is missing, is not checked.
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

// MissingErrors says that variables have no value, in the order of their declarations.
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

// automatic lists the files that are read without being named.
func (c *collector) automatic() []string {
	if c.Dir == "" {
		return nil
	}
	list := os.ReadDir
	dir := c.Dir
	if c.FS != nil {
		list, dir = c.FS.ReadDir, cmp.Or(c.Under, ".")
	}
	entries, err := list(dir)
	if err != nil {
		return nil // whoever loads the module says so
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

// ignored reports whether a name is that of an editor's file.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
}

// given reads a file that a flag names.
func (c *collector) given(f VarFlag) {
	path := f.Value
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmp.Or(c.Files, c.Dir), path)
	}
	c.read(&source.Layer{Kind: source.VarFile, Name: f.Value}, f.At, func() ([]byte, error) { return c.Read.Given(path) })
}

// flag reads the -var option with a number, counted from 1. A message about it does not quote its
// text, which may be a value.
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

// read reads a variable file. The name of its layer is shown in messages. at is the argument that
// names the file; nil means the command line.
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

// tellStrangers warns of the first two undeclared variables and counts the others.
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
