package rpc_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	codecs "github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/grpc"
)

// The benchmarks make the calls of an operation on 2,000 resources, ten at a time, with our
// client and with a bare one. The bare client has prepared requests and ignores the
// responses. It turns the plugin's logging off like our client. It is the lower bound for
// any caller: our client should take at most 1.3 times as long. The results include the
// processor time of the caller (own) and of the plugin.
//
//	TERRACE_TEST_PROVIDER_TIME=... go test -run - -bench 'Bare|Client' -count 5

const benchResources, benchParallel = 2000, 10

// benchOps are the calls of each operation.
var benchOps = []struct {
	name  string
	calls []string
}{
	{"plan", []string{"validate", "create"}},
	{"apply", []string{"create", "createNow"}},
	{"noop", []string{"upgrade", "read", "validate", "keep"}},
	{"destroy", []string{"upgrade", "read", "destroy", "destroyNow"}},
}

func benchAll(b *testing.B, calls map[string]func() error) {
	for _, op := range benchOps {
		b.Run(op.name, func(b *testing.B) {
			own, plugins := cpuTimes()
			var failed sync.Once
			for b.Loop() {
				inParallel(benchResources, func() {
					for _, name := range op.calls {
						if err := calls[name](); err != nil {
							failed.Do(func() { b.Error(name, err) })
						}
					}
				})
			}
			ownEnd, pluginsEnd := cpuTimes()
			n := float64(b.N * benchResources)
			b.ReportMetric(float64(b.Elapsed().Microseconds())/n, "µs/resource")
			b.ReportMetric(float64((ownEnd-own).Microseconds())/n, "own-µs/resource")
			b.ReportMetric(float64((pluginsEnd-plugins).Microseconds())/n, "plugin-µs/resource")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func inParallel(n int, do func()) {
	var wg sync.WaitGroup
	work := make(chan struct{})
	for range benchParallel {
		wg.Go(func() {
			for range work {
				do()
			}
		})
	}
	for range n {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
}

func BenchmarkClientTime(b *testing.B) { benchClient(b, timeProvider(b, nil), timeSample) }

func BenchmarkClientTest(b *testing.B) { benchClient(b, launch(b, options(b, 6)), testSample) }

func BenchmarkBareTime(b *testing.B) {
	res := timeSample.resource(b, timeProvider(b, nil))
	cmd := exec.Command(os.Getenv("TERRACE_TEST_PROVIDER_TIME"))
	cmd.Env = append(os.Environ(), "TF_LOG_PROVIDER=off", "TF_LOG=off", "TF_LOG_SDK=off")
	benchBare(b, cmd, 5, res, timeSample, cty.EmptyObjectVal)
}

func BenchmarkBareTest(b *testing.B) {
	o := options(b, 6)
	p := launch(b, o)
	res := testSample.resource(b, p)
	cmd := exec.Command(o.Path)
	cmd.Env = o.Env
	benchBare(b, cmd, 6, res, testSample, coerce(b, schemaOf(b, p).Config, vals{}))
}

// A sample is the benchmarked resource.
type sample struct {
	typ    string
	config vals
}

var (
	timeSample = sample{"time_static", vals{"triggers": cty.MapVal(vals{"a": str("b")})}}
	testSample = sample{"test_object", vals{"name": str("n"), "map": cty.MapVal(vals{"a": str("b")})}}
)

func (s sample) resource(b *testing.B, p provider.Provider) *schema.Resource {
	b.Helper()
	return schemaOf(b, p).Resource(addr.Managed, s.typ)
}

func benchClient(b *testing.B, p provider.Provider, s sample) {
	ctx := context.Background()
	configure(b, p, vals{})
	res := s.resource(b, p)
	block := res.Block
	null, c := cty.NullVal(block.ImpliedType()), coerce(b, block, s.config)
	plan := func(prior, config cty.Value) (provider.PlanResponse, diag.List) {
		proposed := config
		if !config.IsNull() {
			proposed = block.ProposedNew(prior, config)
		}
		return p.Plan(ctx, provider.PlanRequest{Type: s.typ, Prior: prior, Config: config, Proposed: proposed})
	}
	planned, ds := plan(null, c)
	if ds.HasErrors() {
		b.Fatal(ds.Err())
	}
	made, ds := p.Apply(ctx, provider.ApplyRequest{Type: s.typ, Prior: null, Config: c, Planned: planned.Planned, Private: planned.Private})
	if ds.HasErrors() {
		b.Fatal(ds.Err())
	}
	stored := storedJSON(b, made.State)
	written := c.AsValueMap()
	var checked atomic.Int64
	benchAll(b, map[string]func() error{
		"validate": func() error { // each request is new, since the client makes equal ones once
			other, text := maps.Clone(written), str(strconv.FormatInt(checked.Add(1), 10))
			for name, v := range s.config {
				if other[name] = text; v.Type().IsMapType() {
					other[name] = cty.MapVal(vals{"a": text})
				}
			}
			return p.ValidateResource(ctx, addr.Managed, s.typ, cty.ObjectVal(other)).Err()
		},
		"upgrade": func() error {
			_, ds := p.UpgradeState(ctx, provider.UpgradeRequest{Type: s.typ, Version: res.Version, JSON: stored})
			return ds.Err()
		},
		"read": func() error {
			_, ds := p.Read(ctx, provider.ReadRequest{Type: s.typ, Prior: made.State, Private: made.Private})
			return ds.Err()
		},
		"create":  func() error { _, ds := plan(null, c); return ds.Err() },
		"keep":    func() error { _, ds := plan(made.State, c); return ds.Err() },
		"destroy": func() error { _, ds := plan(made.State, null); return ds.Err() },
		"createNow": func() error {
			_, ds := p.Apply(ctx, provider.ApplyRequest{Type: s.typ, Prior: null, Config: c, Planned: planned.Planned, Private: planned.Private})
			return ds.Err()
		},
		"destroyNow": func() error {
			_, ds := p.Apply(ctx, provider.ApplyRequest{Type: s.typ, Prior: made.State, Config: null, Planned: null, Private: made.Private})
			return ds.Err()
		},
	})
}

func storedJSON(b *testing.B, v cty.Value) []byte {
	b.Helper()
	out, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// bareClient returns the connection of go-plugin.
type bareClient struct{ plugin.NetRPCUnsupportedPlugin }

func (bareClient) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (bareClient) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, cc *grpc.ClientConn) (any, error) {
	return cc, nil
}

// connect starts a plugin with go-plugin and returns a function that makes calls.
func connect(b *testing.B, cmd *exec.Cmd, protocol int) (call func(name string, req, resp any) error) {
	b.Helper()
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: rpc.CookieName, MagicCookieValue: rpc.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocol: {"provider": bareClient{}}}, Cmd: cmd, AutoMTLS: true,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
	})
	b.Cleanup(client.Kill)
	proto, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	raw, err := proto.Dispense("provider")
	if err != nil {
		b.Fatal(err)
	}
	return func(name string, req, resp any) error {
		return raw.(*grpc.ClientConn).Invoke(context.Background(), "/"+rpc.Service(protocol)+"/"+rpc.Method(protocol, name), req, resp)
	}
}

func benchBare(b *testing.B, cmd *exec.Cmd, protocol int, res *schema.Resource, s sample, settings cty.Value) {
	block := res.Block
	call := connect(b, cmd, protocol)
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	ty := block.ImpliedType()
	value := func(v cty.Value) *pb6.Value {
		m, err := msgpack.Marshal(v, v.Type())
		must(err)
		return &pb6.Value{Msgpack: m}
	}
	caps := &pb6.ClientCapabilities{WriteOnlyAttributesAllowed: true}
	config := coerce(b, block, s.config)
	c, null := value(config), value(cty.NullVal(ty))
	create := &pb6.PlanRequest{TypeName: s.typ, PriorState: null, ProposedNewState: c, Config: c, ClientCapabilities: caps}
	var planned pb6.PlanResponse
	var made pb6.ApplyResponse
	must(call("GetProviderSchema", &pb6.Empty{}, &pb6.ProviderSchema{}))
	must(call("ConfigureProvider", &pb6.ConfigureRequest{Config: value(settings)}, &pb6.Diagnostics{}))
	must(call("PlanResourceChange", create, &planned))
	createNow := &pb6.ApplyRequest{TypeName: s.typ, PriorState: null, PlannedState: planned.PlannedState, Config: c, PlannedPrivate: planned.PlannedPrivate}
	must(call("ApplyResourceChange", createNow, &made))
	state, err := rpc.Decode(codecs.NewCodec(ty), made.NewState)
	must(err)
	stored := made.NewState
	keep := &pb6.PlanRequest{TypeName: s.typ, PriorState: stored, ProposedNewState: value(block.ProposedNew(state, config)), Config: c, PriorPrivate: made.Private, ClientCapabilities: caps}
	upgrade := &pb6.UpgradeRequest{TypeName: s.typ, Version: res.Version, Raw: &pb6.RawState{Json: storedJSON(b, state)}}
	benchAll(b, map[string]func() error{
		"validate": func() error {
			return call("ValidateResourceConfig", &pb6.ValidateRequest{TypeName: s.typ, Config: c, ClientCapabilities: caps}, &pb6.Diagnostics{})
		},
		"upgrade": func() error { return call("UpgradeResourceState", upgrade, &pb6.UpgradeResponse{}) },
		"read": func() error {
			return call("ReadResource", &pb6.ReadRequest{TypeName: s.typ, CurrentState: stored, Private: made.Private, ClientCapabilities: caps}, &pb6.ReadResponse{})
		},
		"create": func() error { return call("PlanResourceChange", create, &pb6.PlanResponse{}) },
		"keep":   func() error { return call("PlanResourceChange", keep, &pb6.PlanResponse{}) },
		"destroy": func() error {
			return call("PlanResourceChange", &pb6.PlanRequest{TypeName: s.typ, PriorState: stored, ProposedNewState: null, Config: null, PriorPrivate: made.Private, ClientCapabilities: caps}, &pb6.PlanResponse{})
		},
		"createNow": func() error { return call("ApplyResourceChange", createNow, &pb6.ApplyResponse{}) },
		"destroyNow": func() error {
			return call("ApplyResourceChange", &pb6.ApplyRequest{TypeName: s.typ, PriorState: stored, PlannedState: null, Config: null, PlannedPrivate: made.Private}, &pb6.ApplyResponse{})
		},
	})
}
