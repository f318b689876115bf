package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/fetch"
	"github.com/terrace-iac/terrace/internal/module"
)

type modulesOptions struct {
	json bool
	vars []vars.Flag
}

func modulesCommand(ctx context.Context, s *session, args []string) int {
	var o modulesOptions
	f := newFlags("modules")
	f.BoolVar(&o.json, "json", false, "")
	addVars(f, &o.vars)
	if !s.parse(f, args) {
		return 1
	}
	if f.NArg() > 0 {
		return s.usageError("modules", "Unexpected argument", "Too many command line arguments. Did you mean to use -chdir?")
	}
	p, ds := s.load(ctx, loadOptions{vars: o.vars, partial: true})
	if p == nil {
		return s.fail(ds)
	}
	defer p.close()
	if !o.json {
		s.tell(ds)
		s.human.Say(moduleTree(p.engine.Tree()))
		return 0
	}
	doc, err := json.Marshal(moduleList(p.engine.Tree()))
	if err != nil {
		return 1 // there is nothing in it that cannot be written
	}
	fmt.Fprintf(s.Stdout, "%s\n", doc)
	return 0
}

// A moduleEntry is one call in the list of modules. Key, source and version have
// the names that Terraform gives them.
type moduleEntry struct {
	Key     string      `json:"key"`
	Source  string      `json:"source"`
	Version string      `json:"version"`
	Dir     string      `json:"dir"`
	Caller  string      `json:"caller"` // the key of the module with the call, "" for the root
	Call    modulePlace `json:"call"`
}

// A modulePlace is where a call is written.
type modulePlace struct {
	Filename string `json:"filename"`
	Line     int    `json:"line"`
}

type moduleDocument struct {
	Format  string        `json:"format_version"`
	Modules []moduleEntry `json:"modules"`
}

func moduleList(t *module.Tree) moduleDocument {
	doc := moduleDocument{Format: "1.0", Modules: []moduleEntry{}}
	t.Walk(func(n *module.Node) {
		if n.Parent == nil {
			return
		}
		doc.Modules = append(doc.Modules, moduleEntry{
			Key: n.Path.Key(), Source: sourceOf(n), Version: n.Version, Dir: n.Dir, Caller: n.Parent.Path.Key(),
			Call: modulePlace{n.Call.At.Filename, n.Call.At.Start.Line},
		})
	})
	return doc
}

// moduleTree draws the calls: name, source, version and folder of each below the
// module that makes it.
func moduleTree(t *module.Tree) string {
	if len(t.Root.Calls) == 0 {
		return "No modules are called by this configuration.\n"
	}
	var b strings.Builder
	b.WriteString("\nModules called by configuration:\n.\n")
	drawCalls(&b, t.Root, "")
	b.WriteString("\n")
	return b.String()
}

func drawCalls(b *strings.Builder, n *module.Node, indent string) {
	names := slices.Sorted(maps.Keys(n.Calls))
	for i, name := range names {
		c := n.Calls[name]
		mark, more := branch(i == len(names)-1)
		fmt.Fprintf(b, "%s%smodule.%s [%s]", indent, mark, name, sourceOf(c))
		if c.Version != "" {
			b.WriteString(" " + c.Version)
		}
		b.WriteString(" in " + c.Dir + "\n")
		drawCalls(b, c, indent+more)
	}
}

// sourceOf is a call's source as the list of installed modules has it.
func sourceOf(n *module.Node) string { return fetch.Canonical(n.Source, n.Call.Version != nil) }

// branch is how an entry of a drawn tree begins, and how the lines below it do.
func branch(last bool) (mark, below string) {
	if last {
		return "└── ", "    "
	}
	return "├── ", "│   "
}

func modulesUsage() string {
	return usageText("Usage: "+view.Program+" [global options] modules [options]\n\n"+
		"  Prints the tree of module calls: for each call its source, the version that\n  is installed and the folder that the module is loaded from.",
		option("-json", "Print the calls as a JSON document, each with its caller and the place of the call."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module. May be repeated."),
		option("-var-file=path", "Load variable values from a file. May be repeated."))()
}
