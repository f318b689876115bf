package rpc_test

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/grpc"
)

// The two benchmarks make the same calls on the same provider: 2,000 resources
// validated, planned and applied, ten at a time. The bare client has its requests
// ready and looks at nothing in the answers but what it must send back, and keeps
// the plugin from logging as our client does: it is the floor below which no caller
// can come. The client of this package should take at
// most 1.3 times as long.
//
//	TERRACE_TEST_PROVIDER_TIME=... go test -run - -bench 'Bare|Client' -count 5

const benchResources, benchParallel = 2000, 10

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

func BenchmarkClientTime(b *testing.B) {
	p := timeProvider(b, nil)
	benchClient(b, p, "time_static", vals{"triggers": cty.MapVal(vals{"a": str("b")})})
}

func BenchmarkClientTest(b *testing.B) {
	benchClient(b, launch(b, options(b, 6)), "test_object", vals{"name": str("n"), "map": cty.MapVal(vals{"a": str("b")})})
}

func benchClient(b *testing.B, p provider.Provider, typ string, config vals) {
	ctx := context.Background()
	s := schemaOf(b, p)
	configure(b, p, vals{})
	block := s.Resource(addr.Managed, typ).Block
	null := cty.NullVal(block.ImpliedType())
	for b.Loop() {
		inParallel(benchResources, func() {
			c := coerce(b, block, config)
			if ds := p.ValidateResource(ctx, addr.Managed, typ, c); ds.HasErrors() {
				b.Error(ds.Err())
			}
			plan, ds := p.Plan(ctx, provider.PlanRequest{Type: typ, Prior: null, Config: c, Proposed: block.ProposedNew(null, c)})
			if ds.HasErrors() {
				b.Error(ds.Err())
			}
			_, ds = p.Apply(ctx, provider.ApplyRequest{Type: typ, Prior: null, Config: c, Planned: plan.Planned, Private: plan.Private})
			if ds.HasErrors() {
				b.Error(ds.Err())
			}
		})
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*benchResources), "µs/resource")
}

func BenchmarkBareTime(b *testing.B) {
	path := os.Getenv("TERRACE_TEST_PROVIDER_TIME")
	if path == "" {
		b.Skip("SKIP: TERRACE_TEST_PROVIDER_TIME does not name the binary of hashicorp/time")
	}
	config := cty.ObjectVal(vals{"id": cty.NullVal(cty.String), "triggers": cty.MapVal(vals{"a": str("b")})})
	for _, name := range []string{"rfc3339"} {
		config = withAttrValue(config, name, cty.NullVal(cty.String))
	}
	for _, name := range []string{"day", "hour", "minute", "month", "second", "unix", "year"} {
		config = withAttrValue(config, name, cty.NullVal(cty.Number))
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "TF_LOG_PROVIDER=off", "TF_LOG=off", "TF_LOG_SDK=off")
	benchBare(b, cmd, 5, "time_static", cty.EmptyObjectVal, config)
}

func BenchmarkBareTest(b *testing.B) {
	o := options(b, 6)
	cmd := exec.Command(o.Path)
	cmd.Env = append(cmd.Env, o.Env...)
	p := launch(b, o)
	s := schemaOf(b, p)
	block := s.Resource(addr.Managed, "test_object").Block
	benchBare(b, cmd, 6, "test_object", coerce(b, s.Config, vals{}), coerce(b, block, vals{"name": str("n"), "map": cty.MapVal(vals{"a": str("b")})}))
}

func withAttrValue(obj cty.Value, name string, v cty.Value) cty.Value {
	m := obj.AsValueMap()
	m[name] = v
	return cty.ObjectVal(m)
}

// bare hands out the connection of go-plugin.
type bare struct{ plugin.NetRPCUnsupportedPlugin }

func (bare) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (bare) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, cc *grpc.ClientConn) (any, error) {
	return cc, nil
}

func benchBare(b *testing.B, cmd *exec.Cmd, protocol int, typ string, settings, config cty.Value) {
	ctx := context.Background()
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: rpc.CookieName, MagicCookieValue: rpc.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocol: {"provider": bare{}}}, Cmd: cmd, AutoMTLS: true,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
	})
	defer client.Kill()
	proto, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	raw, err := proto.Dispense("provider")
	if err != nil {
		b.Fatal(err)
	}
	cc := raw.(*grpc.ClientConn)
	call := func(name string, req, resp any) {
		if err := cc.Invoke(ctx, "/"+rpc.Service(protocol)+"/"+rpc.Method(protocol, name), req, resp); err != nil {
			b.Error(err)
		}
	}
	value := func(v cty.Value, ty cty.Type) *pb6.Value {
		m, err := msgpack.Marshal(v, ty)
		if err != nil {
			b.Fatal(err)
		}
		return &pb6.Value{Msgpack: m}
	}
	var schema pb6.ProviderSchema
	call("GetProviderSchema", &pb6.Empty{}, &schema)
	call("ConfigureProvider", &pb6.ConfigureRequest{Config: value(settings, settings.Type())}, &pb6.Diagnostics{})
	caps := &pb6.ClientCapabilities{WriteOnlyAttributesAllowed: true}
	c, null := value(config, config.Type()), value(cty.NullVal(config.Type()), config.Type())
	for b.Loop() {
		inParallel(benchResources, func() {
			call("ValidateResourceConfig", &pb6.ValidateRequest{TypeName: typ, Config: c, ClientCapabilities: caps}, &pb6.Diagnostics{})
			var plan pb6.PlanResponse
			call("PlanResourceChange", &pb6.PlanRequest{TypeName: typ, PriorState: null, ProposedNewState: c, Config: c, ClientCapabilities: caps}, &plan)
			var out pb6.ApplyResponse
			call("ApplyResourceChange", &pb6.ApplyRequest{TypeName: typ, PriorState: null, PlannedState: plan.PlannedState, Config: c, PlannedPrivate: plan.PlannedPrivate}, &out)
			if len(plan.Diagnostics)+len(out.Diagnostics) > 0 || len(out.NewState.GetMsgpack()) == 0 {
				b.Error(plan.Diagnostics, out.Diagnostics)
			}
		})
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*benchResources), "µs/resource")
}
