package rpc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/provider/testprovider"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// TestMain runs the test provider if a test starts the test binary as a plugin.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_PROVIDER") != "" {
		testprovider.Main(testprovider.Protocol())
		return
	}
	os.Exit(m.Run())
}

func options(t testing.TB, protocol int, env ...string) rpc.Options {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env = append([]string{"TEST_PROVIDER=1", fmt.Sprintf("TEST_PROTOCOL=%d", protocol), "TMPDIR=" + os.TempDir()}, env...)
	return rpc.Options{Addr: testprovider.Addr, Path: exe, Env: env, Dir: t.TempDir()}
}

func launch(t testing.TB, o rpc.Options) *rpc.Client {
	t.Helper()
	p, ds := rpc.Launch(context.Background(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	t.Cleanup(func() { _ = p.Close() })
	return p.(*rpc.Client)
}

func configure(t testing.TB, p provider.Provider, attrs vals) {
	t.Helper()
	v := coerce(t, schemaOf(t, p).Config, attrs)
	if ds := p.Configure(context.Background(), v); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
}

type vals = map[string]cty.Value

func schemaOf(t testing.TB, p provider.Provider) *schema.Provider {
	t.Helper()
	s, ds := p.Schema(context.Background())
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return s
}

func coerce(t testing.TB, b *schema.Block, v vals) cty.Value {
	t.Helper()
	out, err := b.Coerce(cty.ObjectVal(v))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func str(s string) cty.Value { return cty.StringVal(s) }

// object is a managed type that is tested.
type object struct {
	t   testing.TB
	p   provider.Provider
	typ string
	b   *schema.Block
}

func managed(t testing.TB, p provider.Provider, typ string) object {
	t.Helper()
	r := schemaOf(t, p).Resource(addr.Managed, typ)
	if r == nil {
		t.Fatalf("no type %s", typ)
	}
	return object{t, p, typ, r.Block}
}

func (o object) null() cty.Value { return cty.NullVal(o.b.ImpliedType()) }

func (o object) plan(prior cty.Value, config vals) (provider.PlanRequest, provider.PlanResponse, diag.List) {
	c := coerce(o.t, o.b, config)
	req := provider.PlanRequest{Type: o.typ, Prior: prior, Config: c, Proposed: o.b.ProposedNew(prior, c)}
	resp, ds := o.p.Plan(context.Background(), req)
	return req, resp, ds
}

// apply plans and applies. An error of the plan ends the test.
func (o object) apply(prior cty.Value, config vals) (provider.ApplyResponse, diag.List) {
	o.t.Helper()
	req, plan, ds := o.plan(prior, config)
	if ds.HasErrors() {
		o.t.Fatal(ds.Err())
	}
	return o.p.Apply(context.Background(), provider.ApplyRequest{
		Type: o.typ, Prior: prior, Planned: plan.Planned, Config: req.Config, Private: plan.Private, PlannedIdentity: plan.Identity,
	})
}

func (o object) create(config vals) provider.ApplyResponse {
	o.t.Helper()
	out, ds := o.apply(o.null(), config)
	if ds.HasErrors() {
		o.t.Fatal(ds.Err())
	}
	return out
}

func noErrors(t *testing.T, ds diag.List) {
	t.Helper()
	if ds.HasErrors() {
		t.Error(ds.Err())
	}
}

// wantError checks that there is exactly one error, with the code and the words.
func wantError(t *testing.T, ds diag.List, code string, words ...string) {
	t.Helper()
	errs := ds.Errors()
	if len(errs) != 1 {
		t.Fatalf("%d errors, want one: %v", len(errs), ds.Err())
	}
	if errs[0].Code != code {
		t.Errorf("code %q, want %q: %v", errs[0].Code, code, ds.Err())
	}
	text := errs[0].Summary + ": " + errs[0].Detail
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in:\n%s", w, text)
		}
	}
}

// TestSuite runs with both protocols, with a child process and with an attached plugin.
func TestSuite(t *testing.T) {
	for _, protocol := range []int{5, 6} {
		t.Run(fmt.Sprintf("protocol %d", protocol), func(t *testing.T) {
			t.Parallel()
			suite(t, protocol, func(t *testing.T) provider.Provider { return launch(t, options(t, protocol)) })
		})
		t.Run(fmt.Sprintf("protocol %d attached", protocol), func(t *testing.T) {
			t.Parallel()
			suite(t, protocol, func(t *testing.T) provider.Provider { return attach(t, protocol) })
		})
	}
}

func attach(t *testing.T, protocol int) provider.Provider {
	t.Helper()
	dir, err := os.MkdirTemp("", "attach") // names of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r, stop, err := testprovider.Listen(dir, protocol)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	p, ds := rpc.Attach(context.Background(), r, rpc.Options{Addr: testprovider.Addr})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func suite(t *testing.T, protocol int, start func(*testing.T) provider.Provider) {
	p := start(t)
	t.Run("schema", func(t *testing.T) { testSchema(t, p, protocol) })
	configure(t, p, vals{"prefix": str("p-")})
	t.Run("validate", func(t *testing.T) { testValidate(t, p) })
	t.Run("life", func(t *testing.T) { testLife(t, p, protocol) })
	t.Run("upgrade", func(t *testing.T) { testUpgrade(t, p) })
	t.Run("import", func(t *testing.T) { testImport(t, p) })
	t.Run("move", func(t *testing.T) { testMove(t, p) })
	t.Run("data", func(t *testing.T) { testData(t, p) })
	t.Run("ephemeral", func(t *testing.T) { testEphemeral(t, p) })
	t.Run("functions", func(t *testing.T) { testFunctions(t, p) })
	t.Run("nonsense", func(t *testing.T) { testNonsense(t, p) })
	t.Run("stop", func(t *testing.T) { testStop(t, p) })
	t.Run("close", func(t *testing.T) { testClosed(t, p) })
}

func testSchema(t *testing.T, p provider.Provider, protocol int) {
	s := schemaOf(t, p)
	if d := cmp.Diff(map[addr.Mode][]string{addr.Managed: {"test_group", "test_object", "test_old", "test_record"}, addr.Data: {"test_data"}, addr.Ephemeral: {"test_secret"}, addr.List: {"test_object"}}, s.Types); d != "" {
		t.Error(d)
	}
	if want := (schema.Capabilities{PlanDestroy: protocol == 6, SchemaOptional: protocol == 6, MoveResourceState: true, GenerateConfig: true}); s.Capabilities != want {
		t.Errorf("capabilities %+v", s.Capabilities)
	}
	if !s.Config.Attributes["token"].Sensitive {
		t.Error("token is not sensitive")
	}
	r := s.Resource(addr.Managed, "test_object")
	if r.Version != 2 || r.IdentityVersion != 1 || !r.Identity.Attributes["id"].Required || !r.Identity.Attributes["region"].Optional {
		t.Errorf("resource %+v", r)
	}
	b := r.Block
	if (b.Attributes["meta"] != nil) != (protocol == 6) {
		t.Error("nested attribute meta")
	}
	if a := b.Attributes["old"]; a.Deprecated != "use name" || !b.Attributes["wo"].WriteOnly || !b.Attributes["secret"].Sensitive {
		t.Error("attributes lost what they are")
	}
	if b.Blocks["item"].Nesting != schema.List || b.Blocks["tag"].Nesting != schema.Set || b.Blocks["setting"].Nesting != schema.Single {
		t.Error("nesting modes")
	}
	if !b.HasWriteOnly() || s.Resource(addr.Managed, "test_nothing") != nil || s.Resource(addr.Data, "test_data") == nil {
		t.Error("types")
	}
	f := s.Functions["echo"]
	if f == nil || f.Return != cty.DynamicPseudoType || !f.Params[0].AllowNull || !f.Params[0].AllowUnknown || s.Functions["join"].Variadic == nil {
		t.Errorf("function %+v", f)
	}
}

func testValidate(t *testing.T, p provider.Provider) {
	ctx := context.Background()
	s := schemaOf(t, p)
	config := coerce(t, s.Config, vals{"prefix": str("invalid")})
	got, ds := p.ValidateConfig(ctx, config)
	wantError(t, ds, rpc.CodeMessage, "Invalid prefix")
	if !got.RawEquals(config) || ds[0].Attr == nil || schema.PathString(ds[0].Attr) != "prefix" {
		t.Errorf("config %#v, attribute %#v", got, ds[0].Attr)
	}
	for mode, typ := range map[addr.Mode]string{addr.Managed: "test_object", addr.Data: "test_data", addr.Ephemeral: "test_secret"} {
		b := s.Resource(mode, typ).Block
		noErrors(t, p.ValidateResource(ctx, mode, typ, coerce(t, b, vals{"name": str("x")})))
		noErrors(t, p.ValidateResource(ctx, mode, typ, coerce(t, b, vals{"name": cty.UnknownVal(cty.String).RefineNotNull()})))
		wantError(t, p.ValidateResource(ctx, mode, typ, coerce(t, b, vals{"name": str("invalid")})), rpc.CodeMessage, "Invalid name")
		ds := p.ValidateResource(ctx, mode, typ, coerce(t, b, vals{"name": str("x"), "misbehave": str("warn:validate")}))
		if len(ds) != 1 || ds[0].Severity != diag.Warning {
			t.Errorf("%s: %v", typ, ds)
		}
	}
	b := s.Resource(addr.Managed, "test_object").Block
	noErrors(t, p.ValidateResource(ctx, addr.Managed, "test_object", coerce(t, b, vals{"wo": str("x")})))
	wantError(t, p.ValidateResource(ctx, addr.Managed, "test_nothing", config), rpc.CodeCall, "terrace/test", "it has no type test_nothing")
	wantError(t, p.ValidateResource(ctx, addr.Managed, "test_object", str("x")), rpc.CodeCall, "the configuration cannot be sent")
	wantError(t, p.ValidateResource(ctx, addr.Managed, "test_object", coerce(t, b, vals{"name": str("x").Mark("m")})), rpc.CodeCall, "the configuration cannot be sent")
}

func testLife(t *testing.T, p provider.Provider, protocol int) {
	ctx := context.Background()
	o := managed(t, p, "test_object")
	config := vals{
		"name": str("n"), "any": cty.TupleVal([]cty.Value{cty.True, str("x")}), "map": cty.MapVal(vals{"k": str("v")}),
		"wo": str("four"), "wo_version": cty.NumberIntVal(1), "secret": str("s"), "force_new": str("a"),
		"item":    cty.ListVal([]cty.Value{cty.ObjectVal(vals{"key": str("i"), "wo": str("w")})}),
		"tag":     cty.SetVal([]cty.Value{cty.ObjectVal(vals{"key": str("t")}), cty.ObjectVal(vals{"key": str("u")})}),
		"setting": cty.ObjectVal(vals{"enabled": cty.True, "password": str("pw")}),
	}
	if protocol == 6 {
		config["meta"] = cty.ListVal([]cty.Value{cty.ObjectVal(vals{"key": str("abc")})})
	}
	req, plan, ds := o.plan(o.null(), config)
	noErrors(t, ds)
	if errs := schema.AssertPlanValid(o.b, req.Prior, req.Config, plan.Planned, false); errs != nil {
		t.Error(errs)
	}
	if plan.Planned.GetAttr("id").IsKnown() || plan.RequiresReplace != nil || len(plan.Private) == 0 || plan.Legacy {
		t.Errorf("plan %#v", plan)
	}
	got, ds := p.Apply(ctx, provider.ApplyRequest{Type: o.typ, Prior: req.Prior, Planned: plan.Planned, Config: req.Config, Private: plan.Private})
	noErrors(t, ds)
	if errs := schema.AssertObjectCompatible(o.b, plan.Planned, got.State); errs != nil {
		t.Error(errs)
	}
	if err := schema.AssertUsable(o.b, got.State, true); err != nil {
		t.Error(err)
	}
	if v := got.State; !v.GetAttr("id").RawEquals(str("p-id-n")) || !v.GetAttr("wo_length").RawEquals(cty.NumberIntVal(4)) || !v.GetAttr("wo").IsNull() {
		t.Errorf("state %#v", v)
	}
	wantID := cty.ObjectVal(vals{"id": str("p-id-n"), "region": cty.NullVal(cty.String)})
	if !got.Identity.RawEquals(wantID) {
		t.Errorf("identity %#v", got.Identity)
	}
	read, ds := p.Read(ctx, provider.ReadRequest{Type: o.typ, Prior: got.State, Private: got.Private, Identity: got.Identity})
	noErrors(t, ds)
	if !read.State.RawEquals(got.State) || !read.Identity.RawEquals(wantID) || string(read.Private) != string(got.Private) {
		t.Errorf("read %#v", read)
	}
	config["force_new"] = str("b")
	config["name"] = str("m")
	_, plan, ds = o.plan(got.State, config)
	noErrors(t, ds)
	if len(plan.RequiresReplace) != 1 || schema.PathString(plan.RequiresReplace[0]) != "force_new" {
		t.Errorf("requires replace %v", plan.RequiresReplace)
	}
	config["force_new"] = str("a")
	upd, ds := o.apply(got.State, config)
	noErrors(t, ds)
	if !upd.State.GetAttr("out").RawEquals(str("p-out-m")) || !upd.State.GetAttr("id").RawEquals(str("p-id-n")) {
		t.Errorf("updated %#v", upd.State)
	}
	del, ds := p.Apply(ctx, provider.ApplyRequest{Type: o.typ, Prior: upd.State, Planned: o.null(), Config: o.null(), Private: upd.Private})
	noErrors(t, ds)
	if !del.State.IsNull() || del.Identity != cty.NilVal {
		t.Errorf("destroyed %#v", del)
	}
}

func testUpgrade(t *testing.T, p provider.Provider) {
	ctx := context.Background()
	for _, tt := range []struct {
		req  provider.UpgradeRequest
		attr string
		want cty.Value
	}{
		{provider.UpgradeRequest{Version: 0, JSON: []byte(`{"title":"x","gone":1}`)}, "name", str("x")},
		{provider.UpgradeRequest{Version: 1, JSON: []byte(`{"number":true}`)}, "number", cty.NumberIntVal(1)},
		{provider.UpgradeRequest{Version: 2, JSON: []byte(`{"name":"y","map":{"a":"b"}}`)}, "map", cty.MapVal(vals{"a": str("b")})},
		{provider.UpgradeRequest{Version: 2, Flat: map[string]string{"name": "z", "tag.#": "0"}}, "name", str("z")},
	} {
		tt.req.Type = "test_object"
		v, ds := p.UpgradeState(ctx, tt.req)
		noErrors(t, ds)
		if !v.GetAttr(tt.attr).RawEquals(tt.want) {
			t.Errorf("%+v: %#v", tt.req, v)
		}
	}
	_, ds := p.UpgradeState(ctx, provider.UpgradeRequest{Type: "test_object", Version: 3, JSON: []byte(`{}`)})
	wantError(t, ds, rpc.CodeMessage, "State is too new")
	id, ds := p.UpgradeIdentity(ctx, "test_object", 0, []byte(`{"key":"k"}`))
	noErrors(t, ds)
	if !id.GetAttr("id").RawEquals(str("k")) {
		t.Errorf("identity %#v", id)
	}
	_, ds = p.UpgradeIdentity(ctx, "test_record", 0, []byte(`{}`))
	wantError(t, ds, rpc.CodeCall, "has no identity")
}

func testImport(t *testing.T, p provider.Provider) {
	ctx := context.Background()
	got, ds := p.Import(ctx, provider.ImportRequest{Type: "test_object", ID: "i"})
	noErrors(t, ds)
	if len(got) != 1 || got[0].Type != "test_object" || !got[0].State.GetAttr("id").RawEquals(str("i")) || len(got[0].Private) == 0 {
		t.Fatalf("imported %#v", got)
	}
	again, ds := p.Import(ctx, provider.ImportRequest{Type: "test_object", Identity: got[0].Identity})
	noErrors(t, ds)
	if len(again) != 1 || !again[0].State.RawEquals(got[0].State) {
		t.Errorf("by identity: %#v", again)
	}
	none, ds := p.Import(ctx, provider.ImportRequest{Type: "test_object", ID: "none"})
	noErrors(t, ds)
	if len(none) != 0 {
		t.Errorf("none: %#v", none)
	}
	_, ds = p.Import(ctx, provider.ImportRequest{Type: "test_object", ID: "missing"})
	wantError(t, ds, rpc.CodeMessage, "No such object")
	_, ds = p.Import(ctx, provider.ImportRequest{Type: "test_object", ID: "strange"})
	wantError(t, ds, rpc.CodeNonsense, "test_strange", "import test_object")
}

func testMove(t *testing.T, p provider.Provider) {
	ctx := context.Background()
	req := provider.MoveRequest{
		SourceProvider: addr.DefaultProvider("null"), SourceType: "null_resource", TargetType: "test_object",
		SourceJSON: []byte(`{"id":"7"}`), SourcePrivate: []byte("private"),
	}
	got, ds := p.Move(ctx, req)
	noErrors(t, ds)
	if !got.State.GetAttr("id").RawEquals(str("7")) || string(got.Private) != "private" || got.Identity == cty.NilVal {
		t.Errorf("moved %#v", got)
	}
	req.SourceType = "other_thing"
	_, ds = p.Move(ctx, req)
	wantError(t, ds, rpc.CodeMessage, "A other_thing cannot become a test_object")
}

func testData(t *testing.T, p provider.Provider) {
	ctx := context.Background()
	b := schemaOf(t, p).Resource(addr.Data, "test_data").Block
	got, ds := p.ReadData(ctx, "test_data", coerce(t, b, vals{"name": str("d"), "any": cty.True}), cty.NilVal)
	noErrors(t, ds)
	if !got.GetAttr("result").RawEquals(str("p-d")) || !got.GetAttr("any").RawEquals(cty.True) {
		t.Errorf("data %#v", got)
	}
	_, ds = p.ReadData(ctx, "test_data", coerce(t, b, vals{"name": str("d"), "misbehave": str("type:read")}), cty.NilVal)
	wantError(t, ds, rpc.CodeNonsense, "read the data source test_data", "the result in its answer cannot be used")
}

func testEphemeral(t *testing.T, p provider.Provider) {
	ctx := context.Background()
	b := schemaOf(t, p).Resource(addr.Ephemeral, "test_secret").Block
	before := time.Now()
	got, ds := p.OpenEphemeral(ctx, "test_secret", coerce(t, b, vals{"name": str("e"), "renew_ms": cty.NumberIntVal(60000)}))
	noErrors(t, ds)
	if !got.Result.GetAttr("value").RawEquals(str("p-secret-e")) || got.Renew.Before(before) {
		t.Errorf("opened %#v", got)
	}
	again, ds := p.RenewEphemeral(ctx, "test_secret", got.Private)
	noErrors(t, ds)
	if again.Renew.Before(before) || string(again.Private) != string(got.Private) {
		t.Errorf("renewed %#v", again)
	}
	noErrors(t, p.CloseEphemeral(ctx, "test_secret", again.Private))
	wantError(t, p.CloseEphemeral(ctx, "test_secret", nil), rpc.CodeMessage, "Unknown secret")
	never, ds := p.OpenEphemeral(ctx, "test_secret", coerce(t, b, vals{"name": str("e")}))
	noErrors(t, ds)
	if !never.Renew.IsZero() {
		t.Errorf("renew at %v", never.Renew)
	}
}

func testFunctions(t *testing.T, p provider.Provider) {
	ctx := context.Background()
	fs, ds := p.Functions(ctx)
	noErrors(t, ds)
	if fs["configured"] == nil || fs["echo"] == nil || fs["fail"].Deprecated == "" {
		t.Errorf("functions %v", fs)
	}
	for _, v := range []cty.Value{str("x"), cty.NullVal(cty.String), cty.UnknownVal(cty.Number), cty.ObjectVal(vals{"a": cty.ListVal([]cty.Value{cty.True})})} {
		got, err := p.CallFunction(ctx, "echo", []cty.Value{v})
		if err != nil || !got.RawEquals(v) {
			t.Errorf("echo %#v: %#v, %v", v, got, err)
		}
	}
	got, err := p.CallFunction(ctx, "join", []cty.Value{str("-"), str("a"), str("b")})
	if err != nil || !got.RawEquals(str("a-b")) {
		t.Errorf("join: %#v, %v", got, err)
	}
	if got, err := p.CallFunction(ctx, "configured", nil); err != nil || !got.True() {
		t.Errorf("configured: %#v, %v", got, err)
	}
	_, err = p.CallFunction(ctx, "fail", []cty.Value{str("no"), cty.NumberIntVal(0)})
	if ae, ok := err.(*provider.ArgError); !ok || ae.Arg != 0 || ae.Msg != "no" {
		t.Errorf("fail: %#v", err)
	}
	for name, tt := range map[string]struct {
		args []cty.Value
		want string
	}{
		"fail":    {[]cty.Value{str("no"), cty.NumberIntVal(99)}, "no"},
		"prefix":  {[]cty.Value{str("x")}, "takes 0 arguments"},
		"join":    {[]cty.Value{cty.EmptyObjectVal}, "string"},
		"missing": {nil, `has no function "missing"`},
		"liar":    {nil, "the result cannot be used"},
	} {
		if _, err := p.CallFunction(ctx, name, tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// testNonsense makes calls whose responses violate the protocol.
func testNonsense(t *testing.T, p provider.Provider) {
	o := managed(t, p, "test_object")
	state := o.create(vals{"name": str("n")}).State
	for _, tt := range []struct {
		misbehave, code string
		words           []string
	}{
		{"nil:plan", rpc.CodeNonsense, []string{"terrace/test", "plan test_object", "planned state", "no value"}},
		{"garbage:plan", rpc.CodeNonsense, []string{"cut off"}},
		{"type:plan", rpc.CodeNonsense, []string{"does not have the form"}},
		{"defer:plan", rpc.CodeNonsense, []string{"put the request off", "does not exist yet"}},
		{"status:plan", rpc.CodeCall, []string{"told to fail the call"}},
		{"error:plan", rpc.CodeMessage, []string{"Told to fail"}},
		{"nil:create", rpc.CodeNonsense, []string{"create test_object"}},
		{"garbage:create", rpc.CodeNonsense, nil},
		{"type:create", rpc.CodeNonsense, nil},
		{"error:create", rpc.CodeMessage, []string{"Told to fail"}},
		{"partial:create", rpc.CodeMessage, []string{"Told to fail"}},
		{"nil:update", rpc.CodeNonsense, []string{"update test_object"}},
	} {
		t.Run(tt.misbehave, func(t *testing.T) {
			o.t = t
			prior, config := o.null(), vals{"name": str("n"), "misbehave": str(tt.misbehave)}
			if strings.HasSuffix(tt.misbehave, "update") {
				prior = state
			}
			if strings.HasSuffix(tt.misbehave, ":plan") {
				_, got, ds := o.plan(prior, config)
				wantError(t, ds, tt.code, tt.words...)
				if !got.Planned.RawEquals(prior) {
					t.Errorf("planned %#v", got.Planned)
				}
				return
			}
			got, ds := o.apply(prior, config)
			wantError(t, ds, tt.code, tt.words...)
			if partial := strings.HasPrefix(tt.misbehave, "partial"); partial == got.State.RawEquals(prior) {
				t.Errorf("state %#v", got.State)
			}
		})
	}
	got, ds := o.apply(o.null(), vals{"name": str("n"), "misbehave": str("unknown:create")})
	noErrors(t, ds)
	if err := schema.AssertUsable(o.b, got.State, true); err == nil {
		t.Error("an unknown value after an apply is not found")
	}
	req, plan, ds := o.plan(o.null(), vals{"name": str("n"), "misbehave": str("legacy:plan")})
	noErrors(t, ds)
	if !plan.Legacy || schema.AssertPlanValid(o.b, req.Prior, req.Config, plan.Planned, false) == nil {
		t.Error("a changed plan is not found")
	}
	if read, ds := p.Read(context.Background(), provider.ReadRequest{Type: o.typ, Prior: withAttr(state, "misbehave", "gone:read")}); ds != nil || !read.State.IsNull() {
		t.Errorf("gone: %#v, %v", read.State, ds.Err())
	}
}

func withAttr(obj cty.Value, name, v string) cty.Value {
	m := obj.AsValueMap()
	m[name] = str(v)
	return cty.ObjectVal(m)
}

func testStop(t *testing.T, p provider.Provider) {
	o := managed(t, p, "test_record")
	done := make(chan diag.List)
	go func() {
		_, ds := o.apply(o.null(), vals{"name": str("slow"), "sleep_ms": cty.NumberIntVal(60000)})
		done <- ds
	}()
	time.Sleep(50 * time.Millisecond)
	if err := p.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	wantError(t, <-done, rpc.CodeMessage, "Stopped")
}

func testClosed(t *testing.T, p provider.Provider) {
	o := managed(t, p, "test_object")
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	_, _, ds := o.plan(o.null(), vals{})
	wantError(t, ds, rpc.CodeClosed, "terrace/test", "plan test_object", "after it had been closed")
	_, err := p.CallFunction(context.Background(), "prefix", nil)
	if err == nil || p.Stop(context.Background()) == nil {
		t.Error("calls after Close do not fail")
	}
}

func TestRecordAndWorld(t *testing.T) {
	p := launch(t, options(t, 6))
	dir := t.TempDir()
	record := filepath.Join(dir, "record")
	configure(t, p, vals{"record_path": str(record), "world": str(dir)})
	o := managed(t, p, "test_record")
	got := o.create(vals{"name": str("a")})
	if _, ds := o.apply(got.State, vals{"name": str("a"), "value": str("v")}); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if err := os.Remove(filepath.Join(dir, "test_record.id-a.json")); err != nil {
		t.Fatal(err)
	}
	read, ds := p.Read(context.Background(), provider.ReadRequest{Type: o.typ, Prior: got.State})
	noErrors(t, ds)
	if !read.State.IsNull() {
		t.Errorf("read %#v", read.State)
	}
	b, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	want := "begin\tcreate\ta\nanswered\tcreate\ta\nbegin\tupdate\ta\nanswered\tupdate\ta\nbegin\tread\ta\nanswered\tread\ta\n"
	if d := cmp.Diff(want, string(b)); d != "" {
		t.Error(d)
	}
}
