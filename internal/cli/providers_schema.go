package cli

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/internal/planjson"
	"github.com/terrace-iac/terrace/schema"
)

func providersSchemaCommand(ctx context.Context, s *session, args []string) int {
	var flags []vars.Flag
	var asJSON bool
	f := newFlags("providers schema")
	f.BoolVar(&asJSON, "json", false, "")
	addVars(f, &flags)
	if !s.parse(f, args) {
		return 1
	}
	if !asJSON {
		return s.usageError("providers schema", "Output only in json is allowed", "The `"+view.Program+" providers schema` command requires the `-json` flag.")
	}
	if f.NArg() > 0 {
		return s.usageError("providers schema", "Too many command line arguments", "Expected at most zero positional arguments.")
	}
	doc, ds := s.providerSchemas(ctx, flags)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	fmt.Fprintf(s.Stdout, "%s\n", doc)
	return 0
}

// providerSchemas is the document about the providers of configuration and state.
func (s *session) providerSchemas(ctx context.Context, flags []vars.Flag) ([]byte, diag.List) {
	p, ds := s.load(ctx, loadOptions{vars: flags, partial: true})
	if p == nil {
		return nil, ds
	}
	defer p.close()
	st, ds := p.stateShown(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	st = p.translate(st)
	if ds := p.selectProviders(ctx, st); ds.HasErrors() {
		return nil, ds
	}
	req := p.required(st)
	providers := sortedProviders(req)
	type answer struct {
		s  *schema.Provider
		ds diag.List
	}
	answers := parallel.Map(len(providers), 4, func(i int) answer {
		sp, ds := p.engine.Schema(ctx, providers[i])
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
		return nil, append(ds, diag.Errorf(nil, "Failed to marshal provider schemas to json", "The schemas cannot be written: %s.", err)...)
	}
	return doc, ds
}

func providersSchemaUsage() string {
	return usageText("Usage: "+view.Program+" [global options] providers schema [options] -json\n\n"+
		"  Prints the schemas of all providers that configuration and state use, as a\n  JSON document.",
		option("-json", "Required: JSON is the only form that there is."),
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module. May be repeated."),
		option("-var-file=path", "Load variable values from a file. May be repeated."))()
}
