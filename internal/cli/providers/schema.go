package providers

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/schema"
)

// Schema declares providers schema.
func Schema() command.Command {
	return command.Command{
		Name: "providers schema", Synopsis: "Show schemas for the providers used in the configuration", Usage: "[options] -json", Uses: command.Providers,
		Units: command.InUnit | command.OnlyReads,
		Help: `Prints the schemas of all providers that configuration and state use, as a
JSON document.`,
		Prepare: func() (flag.Flags, command.Run) {
			var given []workdir.VarFlag
			asJSON := false
			fs := flag.Flags{flag.Bool(&asJSON, "json", "Required: JSON is the only output format.")}
			return append(fs, flag.Vars(&given)...), func(ctx context.Context, c *command.Call) int {
				if !asJSON {
					return c.UsageError("Output only in json is allowed", "The `"+view.Program+" providers schema` command requires the `-json` flag.")
				}
				if len(c.Args) > 0 {
					return c.UsageError("Too many command line arguments", "Expected at most zero positional arguments.")
				}
				doc, ds := providerSchemas(ctx, c, given)
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				fmt.Fprintf(c.Stdout, "%s\n", doc)
				return 0
			}
		},
	}
}

// providerSchemas returns the JSON document about the providers of configuration and state.
func providerSchemas(ctx context.Context, c *command.Call, flags []workdir.VarFlag) ([]byte, diag.List) {
	p, ds := project.Load(ctx, c, workdir.LoadOptions{Vars: flags, Partial: true})
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	st, ds := p.CurrentState(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	st = p.Translate(st)
	if ds := p.SelectProviders(ctx, st); ds.HasErrors() {
		return nil, ds
	}
	req := p.Required(st)
	providers := workdir.SortedProviders(req)
	type answer struct {
		s  *schema.Provider
		ds diag.List
	}
	answers := parallel.Map(len(providers), 4, func(i int) answer {
		sp, ds := p.Engine.Schema(ctx, providers[i])
		return answer{sp, ds}
	})
	all := make(map[addr.Provider]*schema.Provider, len(providers))
	for i, a := range answers {
		ds = append(ds, a.ds...)
		if a.s != nil {
			all[providers[i]] = a.s
		}
	}
	if ds.HasErrors() {
		return nil, ds
	}
	doc, err := planjson.ProviderSchemas(all)
	if err != nil {
		return nil, append(ds, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to marshal provider schemas to json", "The schemas cannot be written: %s.", err)...)
	}
	return doc, ds
}
