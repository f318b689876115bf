// Package modules implements the command modules, which prints the tree of module calls.
package modules

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
)

// Command declares modules.
func Command() command.Command {
	return command.Command{
		Name: "modules", Synopsis: "Show the tree of module calls", Usage: "[options]",
		Help: `Prints the tree of module calls: for each call its source, the version that
is installed and the directory that the module is loaded from.`,
		Prepare: func() (flag.Flags, command.Run) {
			o := &modulesOptions{}
			fs := flag.Flags{flag.Bool(&o.json, "json", "Print the calls as a JSON document, each with its caller and the place of the call.")}
			return append(fs, flag.Vars(&o.vars)...), func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Unexpected argument", c.NoArguments())
				}
				return runModules(ctx, c, o)
			}
		},
	}
}

func runModules(ctx context.Context, c *command.Call, o *modulesOptions) int {
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: o.vars, Partial: true})
	if p == nil {
		return c.Fail(ds)
	}
	defer p.Close()
	if !o.json {
		c.Report.Tell(ds)
		c.Report.Human.Copy(moduleTree(p.Engine.Tree()))
		return 0
	}
	doc, err := json.Marshal(moduleList(p.Engine.Tree()))
	if err != nil {
		return 1 // cannot happen: all fields have a JSON form
	}
	fmt.Fprintf(c.Stdout, "%s\n", doc)
	return 0
}

type modulesOptions struct {
	json bool
	vars []workdir.VarFlag
}

// A moduleEntry is one call in the list of modules. The names of Key, Source and Version are
// those of Terraform's output.
type moduleEntry struct {
	Key     string      `json:"key"`
	Source  string      `json:"source"`
	Version string      `json:"version"`
	Dir     string      `json:"dir"`
	Caller  string      `json:"caller"` // key of the module that contains the call; "" for the root
	Call    modulePlace `json:"call"`
}

// A modulePlace is the source range of a call.
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

// moduleTree draws the calls below their modules, with name, source, version and directory.
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
		mark, more := view.Branch(i == len(names)-1)
		fmt.Fprintf(b, "%s%smodule.%s [%s]", indent, mark, name, sourceOf(c))
		if c.Version != "" {
			b.WriteString(" " + c.Version)
		}
		b.WriteString(" in " + c.Dir + "\n")
		drawCalls(b, c, indent+more)
	}
}

// sourceOf returns the source of a call as the manifest of installed modules contains it,
// without credentials.
func sourceOf(n *module.Node) string {
	return source.HideCredentials(fetch.Canonical(n.Source, n.Call.Version != nil))
}
