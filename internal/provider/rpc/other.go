package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// ReadData reads a data source.
func (c *Client) ReadData(ctx context.Context, typ string, config, meta cty.Value) (cty.Value, diag.List) {
	w := call{"read the data source", typ}
	s, r, ds := c.lookup(ctx, w, addr.Data)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	ty := r.Block.ImpliedType()
	var e enc
	msg := &pb6.ReadDataRequest{TypeName: typ, Config: e.value("configuration", config, s.codec(r.Block)), ProviderMeta: e.meta(meta, s), ClientCapabilities: deferrable(ctx)}
	if e.err != nil {
		return cty.UnknownVal(ty), c.refused(w, e.err)
	}
	resp, err := c.rpc.ReadDataSource(ctx, msg)
	if err != nil {
		return cty.UnknownVal(ty), c.failed(ctx, w, err)
	}
	if off, ds := c.deferred(ctx, w, resp.Deferred); off {
		return cty.UnknownVal(ty), ds
	}
	var d dec
	v := d.value("result", resp.State, s.codec(r.Block), cty.UnknownVal(ty))
	return v, c.answer(w, resp.Diagnostics, &d)
}

// OpenEphemeral opens an ephemeral resource.
func (c *Client) OpenEphemeral(ctx context.Context, typ string, config cty.Value) (provider.Opened, diag.List) {
	w := call{"open the ephemeral resource", typ}
	out := provider.Opened{Result: cty.DynamicVal}
	s, r, ds := c.lookup(ctx, w, addr.Ephemeral)
	if ds.HasErrors() {
		return out, ds
	}
	ty := r.Block.ImpliedType()
	out.Result = cty.UnknownVal(ty)
	var e enc
	msg := &pb6.OpenRequest{TypeName: typ, Config: e.value("configuration", config, s.codec(r.Block)), ClientCapabilities: deferrable(ctx)}
	if e.err != nil {
		return out, c.refused(w, e.err)
	}
	resp, err := c.rpc.OpenEphemeralResource(ctx, msg)
	if err != nil {
		return out, c.failed(ctx, w, err)
	}
	if off, ds := c.deferred(ctx, w, resp.Deferred); off {
		return out, ds
	}
	var d dec
	out.Result = d.value("result", resp.Result, s.codec(r.Block), out.Result)
	out.Private, out.Renew = resp.Private, toTime(resp.RenewAt)
	return out, c.answer(w, resp.Diagnostics, &d)
}

func toTime(t *timestamppb.Timestamp) time.Time {
	if t == nil || t.CheckValid() != nil {
		return time.Time{}
	}
	return t.AsTime()
}

// RenewEphemeral renews an open ephemeral resource.
func (c *Client) RenewEphemeral(ctx context.Context, typ string, private []byte) (provider.Renewal, diag.List) {
	w := call{"renew the ephemeral resource", typ}
	resp, err := c.rpc.RenewEphemeralResource(ctx, &pb6.PrivateRequest{TypeName: typ, Private: private})
	if err != nil {
		return provider.Renewal{Private: private}, c.failed(ctx, w, err)
	}
	return provider.Renewal{Private: resp.Private, Renew: toTime(resp.RenewAt)}, c.messages(w, resp.Diagnostics)
}

// CloseEphemeral closes an open ephemeral resource.
func (c *Client) CloseEphemeral(ctx context.Context, typ string, private []byte) diag.List {
	w := call{"close the ephemeral resource", typ}
	resp, err := c.rpc.CloseEphemeralResource(ctx, &pb6.PrivateRequest{TypeName: typ, Private: private})
	if err != nil {
		return c.failed(ctx, w, err)
	}
	return c.messages(w, resp.Diagnostics)
}

// Functions returns the functions of the configured provider. For a plugin without this
// call, they are those of the schema.
func (c *Client) Functions(ctx context.Context) (map[string]*schema.Function, diag.List) {
	w := call{what: "tell its functions"}
	s, ds := c.schemas(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	resp, err := c.rpc.GetFunctions(ctx, &pb6.Empty{})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return s.provider.Functions, nil
	case err != nil:
		return nil, c.failed(ctx, w, err)
	}
	ds = c.messages(w, resp.Diagnostics)
	fs, err := toFunctions(resp.Functions)
	if err != nil {
		return nil, append(ds, c.nonsense(w, "its functions cannot be used: %s", err)...)
	}
	c.functions.Store(&fs)
	return fs, ds
}

// function returns the signature of a function: from the configured provider, else from
// the schema.
func (c *Client) function(ctx context.Context, name string) (*schema.Function, error) {
	if fs := c.functions.Load(); fs != nil && (*fs)[name] != nil {
		return (*fs)[name], nil
	}
	s, ds := c.schemas(ctx)
	if ds.HasErrors() {
		return nil, ds.Err()
	}
	if f := s.provider.Functions[name]; f != nil {
		return f, nil
	}
	fs, ds := c.Functions(ctx)
	if ds.HasErrors() {
		return nil, ds.Err()
	}
	if f := fs[name]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("the provider %s has no function %s", c.addr.Display(), quoteShort(name))
}

// CallFunction calls a function of the provider.
func (c *Client) CallFunction(ctx context.Context, name string, args []cty.Value) (cty.Value, error) {
	f, err := c.function(ctx, name)
	if err != nil {
		return cty.DynamicVal, err
	}
	w := call{"call its function", name}
	msg := &pb6.CallRequest{Name: name, Arguments: make([]*pb6.Value, len(args))}
	for i, arg := range args {
		p := f.Variadic
		if i < len(f.Params) {
			p = &f.Params[i]
		}
		if p == nil {
			return cty.UnknownVal(f.Return), &provider.ArgError{Arg: i, Msg: fmt.Sprintf("the function takes %d arguments only", len(f.Params))}
		}
		if msg.Arguments[i], err = Encode(value.NewCodec(p.Type), arg); err != nil {
			return cty.UnknownVal(f.Return), &provider.ArgError{Arg: i, Msg: err.Error()}
		}
	}
	resp, err := c.rpc.CallFunction(ctx, msg)
	if err != nil {
		return cty.UnknownVal(f.Return), c.failed(ctx, w, err).Err()
	}
	if e := resp.Error; e != nil {
		if n := e.FunctionArgument; n != nil && *n >= 0 && *n < int64(len(args)) {
			return cty.UnknownVal(f.Return), &provider.ArgError{Arg: int(*n), Msg: e.Text}
		}
		return cty.UnknownVal(f.Return), errors.New(e.Text)
	}
	v, err := Decode(value.NewCodec(f.Return), resp.Result)
	if err != nil {
		return cty.UnknownVal(f.Return), c.nonsense(w, "the result cannot be used: %s", err).Err()
	}
	return v, nil
}
