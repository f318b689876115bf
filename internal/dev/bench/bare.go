package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// A Call is one call of a plugin, as it was recorded.
type Call struct {
	Method  string // the full gRPC method, such as /tfplugin5.Provider/PlanResourceChange
	Request []byte
}

// bytesCodec passes messages on as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string                  { return "proto" }
func (bytesCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

// bareClient returns the connection of go-plugin.
type bareClient struct{ plugin.NetRPCUnsupportedPlugin }

func (bareClient) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (bareClient) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}

// A Plugin is a running provider without a client that understands it.
type Plugin struct {
	Protocol int // 5 or 6
	client   *plugin.Client
	conn     *grpc.ClientConn
}

// StartPlugin starts a provider with go-plugin.
func StartPlugin(program string) (*Plugin, error) {
	sets := map[int]plugin.PluginSet{5: {"provider": bareClient{}}, 6: {"provider": bareClient{}}}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: "TF_PLUGIN_MAGIC_COOKIE", MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"},
		VersionedPlugins: sets, Cmd: exec.Command(program), AutoMTLS: true, AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
	})
	proto, err := client.Client()
	if err != nil {
		client.Kill()
		return nil, err
	}
	raw, err := proto.Dispense("provider")
	if err != nil {
		client.Kill()
		return nil, err
	}
	return &Plugin{client.NegotiatedVersion(), client, raw.(*grpc.ClientConn)}, nil
}

// Call makes a call and returns the response's bytes.
func (p *Plugin) Call(ctx context.Context, c Call) ([]byte, error) {
	var out []byte
	err := p.conn.Invoke(ctx, c.Method, &c.Request, &out, grpc.ForceCodec(bytesCodec{}), grpc.MaxCallRecvMsgSize(1<<30))
	return out, err
}

// End ends the provider and waits for its process.
func (p *Plugin) End() { p.client.Kill() }

// Record runs a command of a program in a directory and returns the calls that it makes to a
// provider. The provider is started here, and the program reaches it through
// TF_REATTACH_PROVIDERS. source is the provider's address, such as hashicorp/aws.
func Record(ctx context.Context, provider, source, dir, program string, args ...string) ([]Call, error) {
	p, err := StartPlugin(provider)
	if err != nil {
		return nil, err
	}
	defer p.End()
	var mu sync.Mutex
	var calls []Call
	server := grpc.NewServer(grpc.ForceServerCodec(bytesCodec{}), grpc.MaxRecvMsgSize(1<<30), grpc.MaxSendMsgSize(1<<30),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			c := Call{Method: method}
			if err := stream.RecvMsg(&c.Request); err != nil {
				return err
			}
			out, err := p.Call(stream.Context(), c)
			if err != nil {
				return err
			}
			if name := path.Base(method); name != "Stop" && name != "StopProvider" {
				mu.Lock()
				calls = append(calls, c)
				mu.Unlock()
			}
			return stream.SendMsg(&out)
		}))
	tmp, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	socket := filepath.Join(tmp, "provider")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	go server.Serve(l) // ends with server.Stop
	defer server.Stop()
	reattach, err := json.Marshal(map[string]any{source: map[string]any{"Protocol": "grpc", "ProtocolVersion": p.Protocol,
		"Pid": os.Getpid(), "Test": true, "Addr": map[string]string{"Network": "unix", "String": socket}}})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TF_REATTACH_PROVIDERS="+string(reattach))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, tail(string(out), 2000))
	}
	return calls, nil
}

// Repeat makes recorded calls to a new process of the provider, ten at a time, and ignores the
// responses. The calls that configure the provider come first, one after another. Calls for
// schemas are left out, since a caller can keep schemas. Repeat returns the number of calls.
func Repeat(ctx context.Context, provider string, calls []Call) (n int, err error) {
	p, err := StartPlugin(provider)
	if err != nil {
		return 0, err
	}
	defer p.End()
	var rest []Call
	for _, c := range calls {
		switch path.Base(c.Method) {
		case "GetProviderSchema", "GetSchema", "GetMetadata", "GetResourceIdentitySchemas":
		case "PrepareProviderConfig", "ValidateProviderConfig", "Configure", "ConfigureProvider":
			if _, err := p.Call(ctx, c); err != nil {
				return 0, fmt.Errorf("%s: %w", c.Method, err)
			}
			n++
		default:
			rest = append(rest, c)
		}
	}
	work, errs := make(chan Call), make(chan error)
	for range 10 {
		go func() { // ends when work is closed
			var failed error
			for c := range work {
				if _, err := p.Call(ctx, c); err != nil {
					failed = fmt.Errorf("%s: %w", c.Method, err)
				}
			}
			errs <- failed
		}()
	}
	for _, c := range rest {
		work <- c
	}
	close(work)
	for range 10 {
		if e := <-errs; e != nil {
			err = e
		}
	}
	return n + len(rest), err
}
