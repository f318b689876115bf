package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/provider/builtin"
	"github.com/terrace-iac/terrace/internal/provider/manager"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty/function"
)

// functions returns the functions that expressions may call.
func (e *Engine) functions(planTime time.Time, pure bool) map[string]function.Function {
	if e.plain && pure && planTime.IsZero() { // the console, which evaluates other expressions too, has a time
		return funcs.Plain()
	}
	e.tables.Lock()
	defer e.tables.Unlock()
	if pure && e.planFns != nil && e.planTime.Equal(planTime) {
		return e.planFns
	}
	c := e.files()
	c.Home, c.Now, c.PlanTime, c.PureOnly, c.TemplateDepth = e.home, e.o.Now, planTime, pure, e.templateDepth()
	t := funcs.Table(c)
	if pure {
		e.planFns, e.planTime = t, planTime
	}
	return t
}

// files returns the configuration of functions that read files. Explanations use it, too.
func (e *Engine) files() funcs.Config {
	c := funcs.Config{BaseDir: e.dir, ReadFile: e.o.ReadFile, Stat: e.o.Stat, ReadDir: e.o.ReadDir}
	if files := e.folder(); files != nil {
		c.Folder, c.OnDisk = unmade{files}, e.o.FilesOnDisk
		if a, ok := files.(config.Above); ok {
			c.Above = a.Above()
		}
	}
	return c
}

// folder returns the files of the engine's directory for functions. nil means those on disk. They are
// not on disk, or may be outdated there, for a unit that has not run since its files changed.
func (e *Engine) folder() config.FS {
	files := e.o.Files
	if files != nil || e.o.Sources == nil {
		return files
	}
	if files = e.o.Sources.FS; files == nil {
		return nil
	}
	if _, err := os.Stat(e.dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return files
}

// templateDepth returns the maximum depth of nested template calls from
// TF_TEMPLATE_RECURSION_DEPTH, or 0.
func (e *Engine) templateDepth() int {
	n, err := strconv.Atoi(e.getenv("TF_TEMPLATE_RECURSION_DEPTH"))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

func (e *Engine) home() (string, error) {
	if h := e.getenv("HOME"); h != "" {
		return h, nil
	}
	return "", errors.New("the home directory is not known: the environment variable HOME is not set")
}

func (e *Engine) getenv(name string) string {
	for i := len(e.o.Environ) - 1; i >= 0; i-- {
		if kv := e.o.Environ[i]; len(kv) > len(name) && kv[:len(name)] == name && kv[len(name)] == '=' {
			return kv[len(name)+1:]
		}
	}
	return ""
}

// sources adds the built-in provider to the provider source of the options.
type sources struct{ e *Engine }

// Factory implements manager.Source.
func (s sources) Factory(a addr.Provider) (provider.Factory, diag.List) {
	f, ds := s.plain(a)
	if ds.HasErrors() || s.e.o.Decorate == nil {
		return f, ds
	}
	if other := s.e.o.Decorate(a, f); other != nil {
		f = other
	}
	return f, ds
}

// plain returns the factory of a provider before Decorate.
func (s sources) plain(a addr.Provider) (provider.Factory, diag.List) {
	if a.IsBuiltIn() {
		return builtin.Factory(s.e.o.ReadState.builtin(), s.e.storesData()), nil
	}
	if s.e.o.Providers == nil {
		return nil, diag.Errorf(diag.CodeProviderNotInstalled, nil, "Required plugins are not installed", "The provider %s is needed, but none is installed. Run \"terrace init\" to install all providers that configuration requires.", a)
	}
	return s.e.o.Providers.Factory(a)
}

// ExpectStates prepares the engine for states that contain objects with the store block of
// terraform_data, which the built-in provider only has if it is used. Methods with a state call it; a
// caller that decodes states with the schemas of an engine calls it before it reads schemas.
func (e *Engine) ExpectStates(states ...*state.State) {
	for _, s := range states {
		if s == nil || e.stores.Load() {
			continue
		}
		for _, r := range s.Resources {
			if r.Addr.Resource.Mode != addr.Managed || r.Addr.Resource.Type != "terraform_data" {
				continue
			}
			for _, i := range r.Instances {
				e.stores.Store(e.stores.Load() || hasStore(i.Current))
				for _, o := range i.Deposed {
					e.stores.Store(e.stores.Load() || hasStore(o))
				}
			}
		}
	}
}

// hasStore reports whether the stored attributes of an object contain a store block.
func hasStore(o *state.Object) bool {
	if o == nil || !bytes.Contains(o.JSON, []byte(`"store":{`)) {
		return false
	}
	var attrs struct {
		Store json.RawMessage `json:"store"`
	}
	return json.Unmarshal(o.JSON, &attrs) == nil && len(attrs.Store) > 0
}

// storesData reports whether the configuration or an expected state has a terraform_data with a store
// block.
func (e *Engine) storesData() bool {
	blocks := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "store"}, {Type: "dynamic", LabelNames: []string{"type"}}}}
	found := e.stores.Load()
	e.tree.Walk(func(n *config.Node) {
		for a, r := range n.Config.Resources {
			if found || a.Mode != addr.Managed || a.Type != "terraform_data" {
				continue
			}
			content, _, _ := r.Body.PartialContent(blocks)
			found = content != nil && slices.ContainsFunc(content.Blocks, func(b *hcl.Block) bool {
				return b.Type == "store" || b.Labels[0] == "store"
			})
		}
	})
	return found
}

// Program describes the executable of a provider. The built-in provider belongs to its engine
// and is not shared.
func (s sources) Program(ctx context.Context, a addr.Provider) (manager.Program, diag.List) {
	if p, ok := s.e.o.Providers.(provider.ProgramSource); ok && !a.IsBuiltIn() && !s.decorated(a) {
		return p.Program(ctx, a)
	}
	return manager.Program{}, nil
}

// decorated reports whether Decorate replaces a provider's factory.
func (s sources) decorated(a addr.Provider) bool {
	if s.e.o.Decorate == nil {
		return false
	}
	f, ds := s.plain(a)
	return ds.HasErrors() || s.e.o.Decorate(a, f) != nil
}

// typeSchemas returns the schemas of resource types for the analysis of relevant attributes. It
// returns nil for unavailable schemas, which were reported before.
type typeSchemas struct {
	ctx context.Context
	e   *Engine
}

// Resource implements relevantattrs.Schemas.
func (s typeSchemas) Resource(a addr.Provider, mode addr.Mode, typ string) *schema.Resource {
	if p, _ := s.e.Schema(s.ctx, a); p != nil {
		return p.Resource(mode, typ)
	}
	return nil
}
