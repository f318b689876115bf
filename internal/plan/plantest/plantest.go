// Package plantest contains helpers for tests of planning and related packages: module trees
// from text, and a provider with a few types whose behaviour the configuration controls.
//
// Main functions: Tree and New. The one rule: it neither reads the disk nor starts processes.
package plantest

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/provider/fake"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"
)

// Tree returns the module tree of a directory in txtar form. Loading errors end the test. Text
// before the first file header is main.tf.
func Tree(t testing.TB, text string) *module.Tree {
	t.Helper()
	a := txtar.Parse([]byte(text))
	fsys := fstest.MapFS{"main.tf": {Data: a.Comment}}
	for _, f := range a.Files {
		fsys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	tree, ds := module.Build(t.Context(), ".", module.Options{Config: config.Options{FS: fsys, Set: &source.Set{}}})
	if ds.HasErrors() {
		t.Fatalf("%s: %s", ds.Errors()[0].Summary, ds.Errors()[0].Detail)
	}
	return tree
}

// Providers returns instances of one script for every provider.
type Providers struct{ *fake.Script }

// New returns a provider with the resource type x_thing, whose argument new forces replacement,
// and the data source x_thing.
func New() Providers {
	block := func() *schema.Resource {
		return &schema.Resource{Block: &schema.Block{Attributes: map[string]*schema.Attribute{
			"id": {Type: cty.String, Computed: true}, "name": {Type: cty.String, Optional: true}, "new": {Type: cty.String, Optional: true},
			"tags": {Type: cty.Map(cty.String), Optional: true}, "secret": {Type: cty.String, Optional: true, Sensitive: true},
			"old": {Type: cty.String, Optional: true, Deprecated: "use name"},
		}}}
	}
	return Providers{&fake.Script{
		Managed: map[string]*fake.Type{"x_thing": {Schema: block(), Replace: []string{"new"}}},
		Data:    map[string]*fake.Data{"x_thing": {Schema: block()}},
	}}
}

// Schema implements resourceclient.Providers.
func (p Providers) Schema(ctx context.Context, a addr.Provider) (*schema.Provider, diag.List) {
	return p.New().Schema(ctx)
}

// Any implements resourceclient.Providers.
func (p Providers) Any(context.Context, addr.Provider) (provider.Provider, diag.List) {
	return p.New(), nil
}

// Configured implements resourceclient.Providers.
func (p Providers) Configured(ctx context.Context, _ addr.ProviderConfig, v cty.Value) (provider.Provider, diag.List) {
	one := p.New()
	return one, one.Configure(ctx, v)
}
