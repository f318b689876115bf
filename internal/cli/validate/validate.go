// Package validate implements the command validate, which checks the configuration without
// state and values of variables.
package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Command declares validate.
func Command() command.Command {
	return command.Command{
		Name: "validate", Synopsis: "Check whether the configuration is valid", Main: true, Usage: "[options] [DIR]",
		Uses:  command.Providers,
		Units: command.InUnit | command.OverEstate | command.Examines,
		Help: `Validate the configuration files in a directory, referring only to the
configuration and not accessing any remote services such as remote state,
provider APIs, etc.

Validate runs checks that verify whether a configuration is syntactically
valid and internally consistent, regardless of any provided variables or
existing state.`,
		Args: []command.Arg{{Name: "DIR", Help: "The directory to validate, the working directory by default.", Optional: true, Complete: flag.Folders}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &flags.Request{}
			return declare(o), func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 1 {
					return c.UsageError("Too many command line arguments", "Expected at most one positional argument.")
				}
				if len(c.Args) == 1 {
					if err := project.IsDir(c.Path(c.Arg(0))); err != nil {
						return c.UsageError("Invalid directory", fmt.Sprintf("The directory %q cannot be read: %s.", c.Arg(0), diag.Reason(err, c.Path(c.Arg(0)))))
					}
					c.WorkIn(c.Arg(0))
				}
				return runValidate(ctx, c, o)
			}
		},
	}
}

func declare(o *flags.Request) flag.Flags {
	fs := o.Json.Flags()
	fs[1] = fs[1].Hide()
	fs = append(fs, flag.Bool(&o.NoTests, "no-tests", "Do not validate test files."), flags.TestDirectory(&o.TestDirectory),
		flag.Bool(&o.Query, "query", "Validate the query files of the directory too."))
	return append(append(fs, flag.Vars(&o.Vars)...), flag.NoColor())
}

// Over returns the form of validate for many units: it validates the module of each unit, and
// its test files.
func Over() *flags.Over {
	return &flags.Over{Flags: declare, Refused: map[string]string{"query": "validates the query files of one directory"}}
}

func runValidate(ctx context.Context, c *command.Call, o *flags.Request) int {
	ds := validate(ctx, c, o.Vars, o.Query)
	if !o.NoTests {
		root, _ := c.Root() // reported above
		_, more := testrun.Load(c.FilesOf(), o.TestDirectory, c.Report.Set, root)
		ds = append(ds, more...)
	}
	doc, code := validateJSON(c, ds)
	if o.Json.Into != "" {
		if err := os.WriteFile(c.Path(o.Json.Into), append(doc, '\n'), 0o600); err != nil {
			return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Invalid argument", "The file of -json-into cannot be written: %s.", err))
		}
	}
	if !o.Json.On {
		return validateHuman(c, ds)
	}
	fmt.Fprintf(c.Stdout, "%s\n", doc)
	return code
}

// validate checks the configuration. It needs no values of variables.
func validate(ctx context.Context, c *command.Call, flags []workdir.VarFlag, query bool) diag.List {
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: flags, Partial: true, Const: true, Briefly: true, Query: query})
	if p == nil {
		return ds
	}
	defer p.Close()
	more := p.SelectProviders(ctx)
	ds = append(ds, more...)
	if more.HasErrors() {
		return ds
	}
	return append(ds, p.Engine.Validate(ctx)...)
}

func validateHuman(c *command.Call, ds diag.List) int {
	c.Report.Tell(ds)
	if ds.HasErrors() {
		return 1
	}
	c.Report.Human.Good("Success!")
	text := " The configuration is valid.\n"
	if len(ds) > 0 {
		text = " The configuration is valid, but there were some\nvalidation warnings as shown above.\n"
	}
	c.Report.Human.Say(text)
	return 0
}

func validateJSON(c *command.Call, ds diag.List) ([]byte, int) {
	ds = c.Report.Filter(ds)
	j := view.JSONMessages(c.Report.Set, c.Report.Names)
	doc := struct {
		Format   string         `json:"format_version"`
		Valid    bool           `json:"valid"`
		Errors   int            `json:"error_count"`
		Warnings int            `json:"warning_count"`
		Messages []*diag.Object `json:"diagnostics"`
	}{"1.0", !ds.HasErrors(), len(ds.Errors()), len(ds.Warnings()), j.Objects(ds)}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return []byte(`{"format_version":"1.0","valid":false,"error_count":1,"warning_count":0,"diagnostics":[]}`), 1
	}
	if ds.HasErrors() {
		return out, 1
	}
	return out, 0
}
