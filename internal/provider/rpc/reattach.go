package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Reattach is the address of a plugin that was started by another program, such as a
// debugger or a test.
type Reattach struct {
	Protocol int    // 5 or 6
	Network  string // "unix" or "tcp"
	Address  string
	Pid      int // 0 if it is unknown
}

// ParseReattach parses the value of TF_REATTACH_PROVIDERS, a JSON object with provider
// addresses as keys. It returns nil for "". Source: the plugin protocol's documentation.
func ParseReattach(text string) (map[addr.Provider]Reattach, error) {
	if text == "" {
		return nil, nil
	}
	var in map[string]struct {
		Protocol        string
		ProtocolVersion int
		Pid             int
		Test            bool
		Addr            struct{ Network, String string }
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("the value is not a JSON object of providers: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows the JSON object of providers")
	}
	out := make(map[addr.Provider]Reattach, len(in))
	for name, p := range in {
		a, err := addr.ParseProvider(name)
		if err != nil {
			return nil, err
		}
		if _, twice := out[a]; twice {
			return nil, fmt.Errorf("the provider %s is there twice", a.Display())
		}
		if p.Protocol != "grpc" {
			return nil, fmt.Errorf("the provider %s has Protocol %s, but only \"grpc\" is known", a.Display(), quoteShort(p.Protocol))
		}
		r := Reattach{Protocol: p.ProtocolVersion, Network: p.Addr.Network, Address: p.Addr.String, Pid: p.Pid}
		if r.Protocol == 0 {
			r.Protocol = 5
		}
		if r.Protocol != 5 && r.Protocol != 6 {
			return nil, fmt.Errorf("the provider %s has ProtocolVersion %d, but only 5 and 6 are known", a.Display(), r.Protocol)
		}
		if r.Address == "" || r.Network != "unix" && r.Network != "tcp" {
			return nil, fmt.Errorf("the provider %s needs an Addr with Network \"unix\" or \"tcp\" and String", a.Display())
		}
		out[a] = r
	}
	return out, nil
}

// Attach connects to a plugin that another program started. Close does not end the plugin.
// The fields of o for the start of a process are ignored. The schema is not cached.
func Attach(ctx context.Context, r Reattach, o Options) (provider.Provider, diag.List) {
	fail := func(err error) (provider.Provider, diag.List) {
		code := CodeStart
		if ctx.Err() != nil {
			code = CodeInterrupted
		}
		return nil, diag.List{{
			Code: code, Summary: "Provider could not be reached",
			Detail: fmt.Sprintf("The provider %s should run on its own, at %s, as TF_REATTACH_PROVIDERS has it, but cannot be reached: %s.", o.Addr.Display(), r.Address, diag.Reason(err, r.Address)),
		}}
	}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, r.Network, r.Address)
	}
	first, err := dial(ctx, "") // gRPC's error would come later and contain less
	if err != nil {
		return fail(err)
	}
	_ = first.Close()
	opts := append(dialOptions(), grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	cc, err := grpc.NewClient("passthrough:///plugin", opts...)
	if err != nil {
		return fail(err)
	}
	c := newClient(o, r.Protocol, cc, nil)
	c.conn = cc
	return c, nil
}
