// Package plantest has what tests of planning and of its neighbors need: module
// trees out of text and a provider of a few types that does what its configuration says.
//
// Main functions: Tree and New. The one rule: nothing here touches the disk or
// starts a process.
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

// Tree builds the module tree of a folder; errors of loading end the test. What
// stands before the first file header is main.tf.
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

// Providers answers for every provider with instances of one script.
type Providers struct{ *fake.Script }

// New is a provider with the resource type x_thing, whose argument new forces
// replacement, and the data source x_thing.
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
