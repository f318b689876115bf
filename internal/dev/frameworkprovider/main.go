// Command frameworkprovider is a provider plugin on HashiCorp's plugin framework, for tests of
// everything that the newest framework can send. It is a module of its own, so that Terrace does not
// depend on the framework.
//
// The provider fw stores its objects as files of the directory in its argument dir. It has the
// resource fw_item, with an identity and a list resource, the data source fw_item, the ephemeral
// resource fw_token, the action fw_touch and the function shout. The variable TERRACE_TEST_FW_PROTOCOL is 5 or
// 6, the default.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/action"
	actionschema "github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dataschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	ephemeralschema "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	listschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func main() {
	o := providerserver.ServeOpts{Address: "registry.opentofu.org/terrace/fw", ProtocolVersion: 6}
	if os.Getenv("TERRACE_TEST_FW_PROTOCOL") == "5" {
		o.ProtocolVersion = 5
	}
	if err := providerserver.Serve(context.Background(), func() provider.Provider { return &fw{} }, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fw is the provider.
type fw struct{}

type providerModel struct {
	Dir types.String `tfsdk:"dir"`
}

func (*fw) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "fw", "1.0.0"
}

func (*fw) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = providerschema.Schema{Attributes: map[string]providerschema.Attribute{
		"dir": providerschema.StringAttribute{Required: true, Description: "The directory of the objects."},
	}}
}

func (*fw) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	d := directory(m.Dir.ValueString())
	resp.ResourceData, resp.DataSourceData, resp.ListResourceData, resp.ActionData, resp.EphemeralResourceData = d, d, d, d, d
}

func (*fw) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &items{} }}
}

func (*fw) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return &itemData{} }}
}

func (*fw) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{func() list.ListResource { return &itemList{} }}
}

func (*fw) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &token{} }}
}

func (*fw) Actions(context.Context) []func() action.Action {
	return []func() action.Action{func() action.Action { return &touch{} }}
}

func (*fw) Functions(context.Context) []func() function.Function {
	return []func() function.Function{func() function.Function { return shout{} }}
}

// A directory contains the objects, each in a file ID.json.
type directory string

// stored is an object in its file.
type stored struct {
	Name   string            `json:"name"`
	Size   int64             `json:"size"`
	Labels map[string]string `json:"labels,omitempty"`
	Secret *string           `json:"secret,omitempty"`
	Color  *string           `json:"color,omitempty"`
	Digest string            `json:"digest"`
}

func (d directory) file(id string) string { return filepath.Join(string(d), filepath.Base(id)+".json") }

// read returns nil if there is no such object.
func (d directory) read(id string) (*stored, error) {
	b, err := os.ReadFile(d.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out stored
	return &out, json.Unmarshal(b, &out)
}

func (d directory) write(id string, o *stored) error {
	o.Digest = fmt.Sprintf("%s-%d-%d", o.Name, o.Size, len(o.Labels))
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return err
	}
	return os.WriteFile(d.file(id), b, 0o600)
}

// ids returns the ids of all objects, sorted.
func (d directory) ids() ([]string, error) {
	files, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, f := range files {
		if id, ok := strings.CutSuffix(f.Name(), ".json"); ok {
			out = append(out, id)
		}
	}
	sort.Strings(out)
	return out, nil
}

// model is the state of fw_item.
type model struct {
	ID     types.String `tfsdk:"id"`
	Name   types.String `tfsdk:"name"`
	Size   types.Int64  `tfsdk:"size"`
	Labels types.Map    `tfsdk:"labels"`
	Secret types.String `tfsdk:"secret"`
	Digest types.String `tfsdk:"digest"`
	Style  *style       `tfsdk:"style"`
}

// style is the block style of fw_item.
type style struct {
	Color types.String `tfsdk:"color"`
}

type identity struct {
	ID types.String `tfsdk:"id"`
}

func modelOf(ctx context.Context, id string, o *stored) model {
	m := model{ID: types.StringValue(id), Name: types.StringValue(o.Name), Size: types.Int64Value(o.Size), Digest: types.StringValue(o.Digest)}
	m.Labels = types.MapNull(types.StringType)
	if len(o.Labels) > 0 {
		m.Labels, _ = types.MapValueFrom(ctx, types.StringType, o.Labels)
	}
	m.Secret = types.StringPointerValue(o.Secret)
	if o.Color != nil {
		m.Style = &style{types.StringPointerValue(o.Color)}
	}
	return m
}

func (m model) stored(ctx context.Context) *stored {
	o := &stored{Name: m.Name.ValueString(), Size: m.Size.ValueInt64(), Secret: m.Secret.ValueStringPointer()}
	_ = m.Labels.ElementsAs(ctx, &o.Labels, false) // wholly known in an apply
	if m.Style != nil {
		o.Color = m.Style.Color.ValueStringPointer()
	}
	return o
}

// items is the resource fw_item.
type items struct{ dir directory }

func (*items) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "fw_item"
}

func (*items) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		Version: 1,
		Attributes: map[string]schema.Attribute{
			"id":     schema.StringAttribute{Computed: true, PlanModifiers: keep},
			"name":   schema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
			"size":   schema.Int64Attribute{Optional: true, Computed: true, Default: int64default.StaticInt64(1)},
			"labels": schema.MapAttribute{ElementType: types.StringType, Optional: true},
			"secret": schema.StringAttribute{Optional: true, Sensitive: true},
			"digest": schema.StringAttribute{Computed: true, MarkdownDescription: "Computed from *all* arguments."},
		},
		Blocks: map[string]schema.Block{
			"style": schema.SingleNestedBlock{Attributes: map[string]schema.Attribute{"color": schema.StringAttribute{Optional: true}}},
		},
	}
}

func (*items) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"id": identityschema.StringAttribute{RequiredForImport: true, Description: "The name of the file without its extension."},
	}}
}

func (r *items) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.dir, _ = req.ProviderData.(directory)
}

func (r *items) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	id := "item-" + m.Name.ValueString()
	o := m.stored(ctx)
	if err := r.dir.write(id, o); err != nil {
		resp.Diagnostics.AddError("Cannot write the object", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, modelOf(ctx, id, o))...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{types.StringValue(id)})...)
}

func (r *items) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var id types.String
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("id"), &id)...)
	o, err := r.dir.read(id.ValueString())
	switch {
	case err != nil:
		resp.Diagnostics.AddError("Cannot read the object", err.Error())
	case o == nil:
		resp.State.RemoveResource(ctx)
	default:
		resp.Diagnostics.Append(resp.State.Set(ctx, modelOf(ctx, id.ValueString(), o))...)
		resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{id})...)
	}
}

func (r *items) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	o := m.stored(ctx)
	if err := r.dir.write(m.ID.ValueString(), o); err != nil {
		resp.Diagnostics.AddError("Cannot write the object", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, modelOf(ctx, m.ID.ValueString(), o))...)
}

func (r *items) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var id types.String
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("id"), &id)...)
	if err := os.Remove(r.dir.file(id.ValueString())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		resp.Diagnostics.AddError("Cannot delete the object", err.Error())
	}
}

func (*items) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("id"), path.Root("id"), req, resp)
}

// itemData is the data source fw_item.
type itemData struct{ dir directory }

type dataModel struct {
	ID     types.String `tfsdk:"id"`
	Digest types.String `tfsdk:"digest"`
}

func (*itemData) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "fw_item"
}

func (*itemData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dataschema.Schema{Attributes: map[string]dataschema.Attribute{
		"id":     dataschema.StringAttribute{Required: true},
		"digest": dataschema.StringAttribute{Computed: true},
	}}
}

func (d *itemData) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.dir, _ = req.ProviderData.(directory)
}

func (d *itemData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m dataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	o, err := d.dir.read(m.ID.ValueString())
	if err != nil || o == nil {
		resp.Diagnostics.AddError("Cannot read the object", fmt.Sprintf("The object %s does not exist or cannot be read.", m.ID.ValueString()))
		return
	}
	m.Digest = types.StringValue(o.Digest)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// itemList is the list resource fw_item.
type itemList struct{ items }

type listModel struct {
	Prefix types.String `tfsdk:"prefix"`
}

func (*itemList) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = listschema.Schema{Attributes: map[string]listschema.Attribute{
		"prefix": listschema.StringAttribute{Optional: true, Description: "The beginning of the names."},
	}}
}

func (l *itemList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var m listModel
	if ds := req.Config.Get(ctx, &m); ds.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(ds)
		return
	}
	stream.Results = func(push func(list.ListResult) bool) {
		ids, err := l.dir.ids()
		if err != nil {
			r := req.NewListResult(ctx)
			r.Diagnostics.AddError("Cannot list the objects", err.Error())
			push(r)
			return
		}
		n := int64(0)
		for _, id := range ids {
			o, err := l.dir.read(id)
			if err != nil || o == nil || !strings.HasPrefix(o.Name, m.Prefix.ValueString()) {
				continue
			}
			if n++; req.Limit > 0 && n > req.Limit {
				return
			}
			r := req.NewListResult(ctx)
			r.DisplayName = o.Name
			r.Diagnostics.Append(r.Identity.Set(ctx, identity{types.StringValue(id)})...)
			if req.IncludeResource {
				r.Diagnostics.Append(r.Resource.Set(ctx, modelOf(ctx, id, o))...)
			}
			if !push(r) {
				return
			}
		}
	}
}

// token is the ephemeral resource fw_token.
type token struct{}

type tokenModel struct {
	Name  types.String `tfsdk:"name"`
	Value types.String `tfsdk:"value"`
}

func (*token) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = "fw_token"
}

func (*token) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = ephemeralschema.Schema{Attributes: map[string]ephemeralschema.Attribute{
		"name":  ephemeralschema.StringAttribute{Required: true},
		"value": ephemeralschema.StringAttribute{Computed: true, Sensitive: true},
	}}
}

func (*token) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m tokenModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.Value = types.StringValue("token of " + m.Name.ValueString())
	resp.Diagnostics.Append(resp.Result.Set(ctx, m)...)
}

// touch is the action fw_touch.
type touch struct{ dir directory }

func (*touch) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = "fw_touch"
}

func (*touch) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = actionschema.Schema{Attributes: map[string]actionschema.Attribute{
		"id": actionschema.StringAttribute{Required: true, Description: "The object to touch."},
	}}
}

func (t *touch) Configure(_ context.Context, req action.ConfigureRequest, _ *action.ConfigureResponse) {
	t.dir, _ = req.ProviderData.(directory)
}

func (t *touch) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var id types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("id"), &id)...)
	if _, err := t.dir.read(id.ValueString()); err != nil {
		resp.Diagnostics.AddError("Cannot touch the object", err.Error())
	}
}

// shout is the function shout.
type shout struct{}

func (shout) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "shout"
}

func (shout) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Converts a text to upper case", Parameters: []function.Parameter{function.StringParameter{Name: "text"}}, Return: function.StringReturn{},
	}
}

func (shout) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	if resp.Error = req.Arguments.Get(ctx, &text); resp.Error == nil {
		resp.Error = resp.Result.Set(ctx, strings.ToUpper(text))
	}
}
