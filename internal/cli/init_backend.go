package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/source"
)

// initBackend brings what the data folder knows of the backend in line with
// the configuration, and moves state where the user wants it.
func (i *initializer) initBackend(ctx context.Context, root *config.Module) diag.List {
	cache, ds := i.readBackendCache()
	if ds.HasErrors() && !i.o.reconfigure {
		return ds
	}
	if root.Backend == nil {
		return i.unsetBackend(ctx, cache)
	}
	written, inForce, ds := i.settleBackend(ctx, root.Backend)
	if ds.HasErrors() {
		return ds
	}
	next := cacheOf(inForce, written)
	changed := cache == nil || cache.Type != "local" || cache.Hash != next.Hash ||
		cache.backend() != inForce && (len(i.o.backendConfig) > 0 || i.o.reconfigure)
	if !changed {
		return ds
	}
	if cache != nil && !i.o.reconfigure {
		if !i.o.migrate {
			return append(ds, backendChanged()...)
		}
		i.say("Backend configuration changed!\n\n" + view.Product + " has detected that the configuration specified for the backend\nhas changed. " + view.Product + " will now check for existing state in the backends.\n\n")
	}
	if !i.o.reconfigure {
		from := backend{}
		if cache != nil {
			from = cache.backend()
		}
		more := i.migrateState(ctx, from, inForce)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
	}
	if more := i.writeBackendCache(next); more.HasErrors() {
		return append(ds, more...)
	}
	i.human.Say("\n")
	i.human.Good("Successfully configured the backend \"local\"!")
	i.say(" " + view.Product + " will automatically\nuse this backend unless the backend configuration changes.\n")
	return ds
}

func backendChanged() diag.List {
	return diag.Errorf(nil, "Backend configuration changed", "A change in the backend configuration has been detected, which may require migrating existing state.\n\nIf you wish to attempt automatic migration of the state, use \"%s init -migrate-state\".\nIf you wish to store the current configuration with no changes to the state, use \"%[1]s init -reconfigure\".", view.Program)
}

// unsetBackend goes back to the default place of state.
func (i *initializer) unsetBackend(ctx context.Context, cache *backendCache) diag.List {
	var ds diag.List
	if len(i.o.backendConfig) > 0 {
		ds = diag.Warnf(nil, "Missing backend configuration", "-backend-config was used without a \"backend\" block in the configuration.\n\nIf you intended to override the default local backend configuration, no action is required, but you may add an explicit backend block to your configuration to clear this warning:\n\nterraform {\n  backend \"local\" {}\n}\n\nHowever, if you intended to override a defined backend, please verify that the backend configuration is present and valid.")
	}
	if cache == nil {
		return ds
	}
	switch {
	case i.o.reconfigure:
	case !i.o.migrate:
		return append(ds, backendChanged()...)
	default:
		i.say(fmt.Sprintf("%s has detected you're unconfiguring your previously set %q backend.\n", view.Product, cache.Type))
		more := i.migrateState(ctx, cache.backend(), backend{})
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
	}
	if more := i.writeBackendCache(nil); more.HasErrors() {
		return append(ds, more...)
	}
	i.human.Say("\n\n")
	i.human.Good(fmt.Sprintf("Successfully unset the backend %q.", cache.Type))
	i.say(" " + view.Product + " will now operate locally.\n")
	return ds
}

// settleBackend evaluates the block, and what -backend-config makes of it.
func (i *initializer) settleBackend(ctx context.Context, block *config.Backend) (written, inForce backend, ds diag.List) {
	p, ds := i.loadForBackend(ctx)
	if p == nil {
		return written, inForce, ds
	}
	defer p.close()
	written, ds = p.configured(ctx, block)
	inForce = written
	for _, text := range i.o.backendConfig {
		more := i.override(&inForce, text)
		ds = append(ds, more...)
	}
	return written, inForce, ds
}

// loadForBackend loads the project though modules may not be installed yet:
// what the backend block needs lies in the root module.
func (i *initializer) loadForBackend(ctx context.Context) (*project, diag.List) {
	return i.load(ctx, loadOptions{vars: i.o.vars, input: i.o.input, rootOnly: true})
}

// override applies one -backend-config: key=value, or a file.
func (i *initializer) override(b *backend, text string) diag.List {
	if name, value, ok := strings.Cut(text, "="); ok {
		return b.set(name, value, nil)
	}
	src, err := os.ReadFile(i.Path(text))
	if err != nil {
		return diag.Errorf(nil, "Failed to read file", "The file %q could not be read.", text)
	}
	i.set.Add(&source.File{Path: text, Bytes: src})
	var f *hcl.File
	var diags hcl.Diagnostics
	if strings.HasSuffix(text, ".json") {
		f, diags = json.Parse(src, text)
	} else {
		f, diags = hclsyntax.ParseConfig(src, text, hcl.InitialPos)
	}
	if diags.HasErrors() {
		return diag.FromHCL(diags)
	}
	attrs, diags := f.Body.JustAttributes()
	ds := diag.FromHCL(diags)
	for name, a := range attrs {
		v, diags := a.Expr.Value(nil)
		ds = append(ds, diag.FromHCL(diags)...)
		if diags.HasErrors() {
			continue
		}
		at := a.Expr.Range()
		value, more := backendText(v, name, &at)
		ds = append(ds, more...)
		if !more.HasErrors() {
			ds = append(ds, b.set(name, value, &a.NameRange)...)
		}
	}
	return ds.Sort()
}

func (b *backend) set(name, value string, at *source.Range) diag.List {
	switch name {
	case "path":
		b.path = value
	case "workspace_dir":
		b.workspaceDir = value
	default:
		return diag.Errorf(at, "Invalid backend configuration argument", "The backend configuration argument %q given on the command line is not expected for the selected backend type.", name)
	}
	return nil
}
