// Package metadata implements commands that describe the language to programs, such as
// editors.
//
// Main function: Commands. The one rule: the output is generated from the function table with
// which expressions are evaluated.
package metadata

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Commands declares the commands of this package.
func Commands() []command.Command {
	return []command.Command{
		{
			Name: "metadata", Synopsis: "Metadata related commands", Usage: "<subcommand> [options] [args]",
			Help:    "Commands that describe the language to programs.",
			Prepare: command.Group,
		},
		{
			Name: "metadata functions", Synopsis: "Show signatures and descriptions for the available functions", Usage: "-json",
			Help: "Print a JSON document of all functions: what they do, their parameters, and\nthe type of their results.",
			Prepare: func() (flag.Flags, command.Run) {
				asJSON := false
				fs := flag.Flags{flag.Bool(&asJSON, "json", "Required: JSON is the only output format.")}
				return fs, func(_ context.Context, c *command.Call) int {
					if !asJSON {
						return c.UsageError("Invalid arguments", "The `"+view.Program+" metadata functions` command requires the `-json` flag.")
					}
					if len(c.Args) > 0 {
						return c.UsageError("Too many command line arguments", "No arguments are expected.")
					}
					return printFunctions(c)
				}
			},
		},
	}
}

type document struct {
	FormatVersion string               `json:"format_version"`
	Signatures    map[string]signature `json:"function_signatures,omitempty"`
}

type signature struct {
	Description string      `json:"description,omitempty"`
	Return      any         `json:"return_type"`
	Parameters  []parameter `json:"parameters,omitempty"`
	Variadic    *parameter  `json:"variadic_parameter,omitempty"`
}

type parameter struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Nullable    bool   `json:"is_nullable,omitempty"`
	Type        any    `json:"type"`
}

func printFunctions(c *command.Call) int {
	doc := document{FormatVersion: "1.0", Signatures: map[string]signature{}}
	for name, f := range funcs.Table(funcs.Config{PureOnly: true}) {
		switch strings.TrimPrefix(name, "core::") {
		case "defaults", "list", "map": // removed functions whose only effect is an error that names the replacement
		default:
			doc.Signatures[name] = signatureOf(strings.TrimPrefix(name, "core::"), f)
		}
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return c.Fail(flags.NotWritten(err))
	}
	if _, err := fmt.Fprintf(c.Stdout, "%s\n", out); err != nil {
		return c.Fail(flags.NotWritten(err))
	}
	return 0
}

func signatureOf(name string, f function.Function) signature {
	out := signature{Description: f.Description()}
	var types []cty.Type
	for _, p := range f.Params() {
		out.Parameters = append(out.Parameters, parameterOf(name, p))
		types = append(types, p.Type)
	}
	if p := f.VarParam(); p != nil {
		v := parameterOf(name, *p)
		out.Variadic = &v
		types = append(types, p.Type)
	}
	ret, err := f.ReturnType(types)
	if err != nil { // the result depends on more than the types of the parameters
		ret = cty.DynamicPseudoType
	}
	out.Return = typeOf(ret)
	return out
}

func parameterOf(function string, p function.Parameter) parameter {
	return parameter{Name: p.Name, Description: cmp.Or(p.Description, parameterHelp(function, p.Name)), Nullable: p.AllowNull, Type: typeOf(p.Type)}
}

// typeOf returns a type in its JSON form. Expressions, which try and can accept, and type constraints
// have the type "dynamic": programs that read the output know no other type.
func typeOf(t cty.Type) any {
	if t.IsCapsuleType() {
		return "dynamic"
	}
	return t
}

// parameterHelp returns the description of a parameter whose name is not sufficient.
func parameterHelp(function, name string) string {

	switch function + " " + name {
	case "bcrypt cost":
		return "How much work the hash takes; 10 without it."
	case "cidrcontains containing_prefix", "cidrhost prefix", "cidrnetmask prefix", "cidrsubnet prefix", "cidrsubnets prefix":
		return "A network as an address and the length of its prefix, such as 10.0.0.0/8."
	case "cidrcontains contained_ip_or_prefix":
		return "An address, or a network as an address and the length of its prefix."
	case "cidrhost hostnum":
		return "The number of the host, which must fit into the bits behind the prefix; a negative one counts from the end."
	case "cidrsubnet newbits":
		return "By how many bits the prefix becomes longer."
	case "cidrsubnet netnum":
		return "The number of the network, which must fit into the bits that newbits adds."
	case "indent spaces":
		return "How many spaces each line but the first gets."
	}
	return ""
}
