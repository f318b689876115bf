package rpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-plugin"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Client is a provider that runs as a plugin. provider.Provider documents its methods. If a
// call fails, the response contains the prior value of the request, if there is one.
type Client struct {
	addr     addr.Provider
	protocol int
	version  string
	rpc      pb6.ProviderClient

	plugin *plugin.Client // nil for an attached plugin
	proc   *process       // nil if the plugin runs on its own
	tls    bool
	out    *tail
	conn   io.Closer // the connection to an attached plugin

	cache      *SchemaCache
	key        string
	packageKey string // see packageKey
	kept       func() // called when the schemas of the package are kept; may be nil
	loading    sync.Mutex
	loaded     atomic.Pointer[schemas]

	checks checks

	functions atomic.Pointer[map[string]*schema.Function] // the functions of the configured provider

	closed    atomic.Bool
	closeOnce sync.Once
}

var _ provider.Provider = (*Client)(nil)

func newClient(o Options, protocol int, cc grpc.ClientConnInterface, dead <-chan struct{}) *Client {
	a, version := o.Addr, o.Version
	if version == "" {
		version = defaultVersion
	}
	return &Client{addr: a, protocol: protocol, version: version, rpc: pb6.NewProviderClient(conn{ClientConnInterface: cc, names: methodNames(protocol), dead: dead, slow: o.Slow, after: o.SlowAfter})}
}

// Ended reports whether the plugin's process has ended. It returns false for an attached
// plugin.
func (c *Client) Ended() bool {
	if c.proc == nil {
		return false
	}
	select {
	case <-c.proc.done:
		return true
	default:
		return false
	}
}

// TLS reports whether the calls use TLS. It returns false for an attached plugin.
func (c *Client) TLS() bool { return c.tls }

// Memory returns the memory of the plugin's process in bytes, or 0 if it is unknown.
func (c *Client) Memory() int64 {
	if c.proc == nil || c.Ended() {
		return 0
	}
	return sys.Memory(c.proc.cmd.Process.Pid)
}

// Protocol returns the version of the plugin's protocol, 5 or 6.
func (c *Client) Protocol() int { return c.protocol }

// capabilities returns our capabilities for plugins. They must not be changed.
func capabilities() *pb6.ClientCapabilities {
	return &pb6.ClientCapabilities{WriteOnlyAttributesAllowed: true}
}

// deferrable returns our capabilities in a call that the plugin may defer if ctx allows it.
func deferrable(ctx context.Context) *pb6.ClientCapabilities {
	c := capabilities()
	c.DeferralAllowed = provider.DeferralOf(ctx) != nil
	return c
}

// Schema returns what the provider declares.
func (c *Client) Schema(ctx context.Context) (*schema.Provider, diag.List) {
	s, ds := c.schemas(ctx)
	if s == nil {
		return &schema.Provider{Config: &schema.Block{}, Decode: func(addr.Mode, string) *schema.Resource { return nil }}, ds
	}
	return s.provider, ds
}

// lookup returns the schema of a type.
func (c *Client) lookup(ctx context.Context, w call, mode addr.Mode) (*schemas, *schema.Resource, diag.List) {
	s, ds := c.schemas(ctx)
	if ds.HasErrors() {
		return nil, nil, ds
	}
	r, err := s.resource(mode, w.typ)
	if err != nil {
		return nil, nil, c.refused(w, err)
	}
	return s, r, nil
}

// enc encodes the values of a request and keeps the first error.
type enc struct{ err error }

func (e *enc) value(name string, v cty.Value, c *value.Codec) *pb6.Value {
	out, err := Encode(c, v)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("the %s cannot be sent: %w", name, err)
	}
	return out
}

func (e *enc) meta(v cty.Value, s *schemas) *pb6.Value {
	if v == cty.NilVal || s.provider.Meta == nil {
		return nil
	}
	return e.value("provider_meta", v, s.codec(s.provider.Meta))
}

func (e *enc) identity(v cty.Value, s *schemas, r *schema.Resource) *pb6.IdentityData {
	if v == cty.NilVal || v.IsNull() || r.Identity == nil {
		return nil
	}
	return &pb6.IdentityData{IdentityData: e.value("identity", v, s.codec(r.Identity))}
}

// dec decodes the values of a response and keeps the first error.
type dec struct{ err error }

func (d *dec) value(name string, in *pb6.Value, c *value.Codec, fallback cty.Value) cty.Value {
	v, err := Decode(c, in)
	if err != nil {
		if d.err == nil {
			d.err = fmt.Errorf("the %s in its answer cannot be used: %w", name, err)
		}
		return fallback
	}
	return v
}

// sent is a value of a request and its encoding.
type sent struct {
	raw *pb6.Value
	v   cty.Value
}

// object decodes a value that often equals a value of the request. Then it returns that
// value without decoding.
func (d *dec) object(name string, in *pb6.Value, c *value.Codec, fallback cty.Value, had ...sent) cty.Value {
	for _, s := range had {
		if b := in.GetMsgpack(); len(b) > 0 && bytes.Equal(b, s.raw.GetMsgpack()) {
			return s.v
		}
	}
	return d.value(name, in, c, fallback)
}

// identity decodes an identity. It returns NilVal without one.
func (d *dec) identity(in *pb6.IdentityData, s *schemas, r *schema.Resource) cty.Value {
	if in.GetIdentityData() == nil {
		return cty.NilVal
	}
	if r.Identity == nil {
		if d.err == nil {
			d.err = fmt.Errorf("its answer has an identity, but its schema has none")
		}
		return cty.NilVal
	}
	v := d.value("identity", in.IdentityData, s.codec(r.Identity), cty.NilVal)
	if v != cty.NilVal && v.IsNull() {
		return cty.NilVal
	}
	return v
}

// answer returns the messages of a response, and an error if its values are invalid. If the
// provider reports errors, values may be missing.
func (c *Client) answer(w call, in []*pb6.Diagnostic, d *dec) diag.List {
	ds := c.messages(w, in)
	if d.err != nil && !ds.HasErrors() {
		ds = append(ds, c.nonsense(w, "%s", d.err)...)
	}
	return ds
}

// ValidateConfig checks a provider configuration and returns it unchanged. A plugin of
// protocol 5 may return a changed configuration, which is ignored, as by OpenTofu.
func (c *Client) ValidateConfig(ctx context.Context, config cty.Value) (cty.Value, diag.List) {
	w := call{what: "check its configuration"}
	s, ds := c.schemas(ctx)
	if ds.HasErrors() {
		return config, ds
	}
	var e enc
	req := &pb6.ValidateProviderRequest{Config: e.value("configuration", config, s.codec(s.provider.Config))}
	if e.err != nil {
		return config, c.refused(w, e.err)
	}
	found, err := c.checks.do(ctx, checkOf("provider", "", req.Config), func() ([]*pb6.Diagnostic, error) {
		resp, err := c.rpc.ValidateProviderConfig(ctx, req)
		return resp.GetDiagnostics(), err
	})
	if err != nil {
		return config, c.failed(ctx, w, err)
	}
	return config, c.messages(w, found)
}

// Configure configures the provider. If ctx allows deferral, as it does for single calls, the
// provider may defer later calls.
func (c *Client) Configure(ctx context.Context, config cty.Value) diag.List {
	w := call{what: "take its configuration"}
	s, ds := c.schemas(ctx)
	if ds.HasErrors() {
		return ds
	}
	var e enc
	req := &pb6.ConfigureRequest{
		Version: c.version, Config: e.value("configuration", config, s.codec(s.provider.Config)), ClientCapabilities: deferrable(ctx),
	}
	if e.err != nil {
		return c.refused(w, e.err)
	}
	resp, err := c.rpc.ConfigureProvider(ctx, req)
	if err != nil {
		return c.failed(ctx, w, err)
	}
	return c.messages(w, resp.Diagnostics)
}

// ValidateResource checks the configuration of a resource, data source, ephemeral resource or
// list resource. The other arguments of a list resource count as unknown.
func (c *Client) ValidateResource(ctx context.Context, mode addr.Mode, typ string, config cty.Value) diag.List {
	w := call{"check the configuration of", typ}
	s, r, ds := c.lookup(ctx, w, mode)
	if ds.HasErrors() {
		return ds
	}
	var e enc
	req := &pb6.ValidateRequest{TypeName: typ, Config: e.value("configuration", config, s.codec(r.Block))}
	if e.err != nil {
		return c.refused(w, e.err)
	}
	found, err := c.checks.do(ctx, checkOf(mode.String(), typ, req.Config), func() ([]*pb6.Diagnostic, error) {
		var resp *pb6.Diagnostics
		var err error
		switch mode {
		case addr.Data:
			resp, err = c.rpc.ValidateDataResourceConfig(ctx, req)
		case addr.Ephemeral:
			resp, err = c.rpc.ValidateEphemeralResourceConfig(ctx, req)
		case addr.List:
			resp, err = c.rpc.ValidateListResourceConfig(ctx, &pb6.ValidateListRequest{
				TypeName: typ, Config: req.Config,
				IncludeResourceObject: e.value("include_resource", cty.UnknownVal(cty.Bool), value.NewCodec(cty.Bool)),
				Limit:                 e.value("limit", cty.UnknownVal(cty.Number), value.NewCodec(cty.Number)),
			})
		default:
			req.ClientCapabilities = capabilities()
			resp, err = c.rpc.ValidateResourceConfig(ctx, req)
		}
		return resp.GetDiagnostics(), err
	})
	if err != nil {
		return c.failed(ctx, w, err)
	}
	return c.messages(w, found)
}

// Stop asks the plugin to end running calls. It returns when the plugin has confirmed, or
// when it does not respond.
func (c *Client) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resp, err := c.rpc.StopProvider(ctx, &pb6.Empty{})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil
	case err != nil:
		return fmt.Errorf("the provider %s could not be asked to stop: %s", c.addr.Display(), status.Convert(err).Message())
	case resp.Error != "":
		return fmt.Errorf("the provider %s cannot stop: %s", c.addr.Display(), resp.Error)
	}
	return nil
}

// closeGrace is the time that a plugin has to end after Close.
const closeGrace = 3 * time.Second

// Close ends the plugin's process. An attached plugin keeps running. Running calls fail.
func (c *Client) Close() error {
	c.closeOnce.Do(func() {
		c.closed.Store(true)
		if c.plugin == nil {
			_ = c.conn.Close()
			return
		}
		end(c.plugin, c.proc)
	})
	return nil
}

// end ends a plugin and cleans up after it.
func end(p *plugin.Client, proc *process) {
	ended := make(chan struct{})
	go func() { // waited for below
		defer close(ended)
		p.Kill()
	}()
	t := time.NewTimer(closeGrace)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C: // go-plugin waits for the plugin's response without a limit
		_ = proc.Kill(context.Background())
		<-ended
	}
}
