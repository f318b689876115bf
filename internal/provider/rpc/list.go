package rpc

import (
	"context"
	"errors"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

// List lists existing objects of the managed type with the same name. The plugin sends them one
// by one. If each returns false, the call is cancelled.
func (c *Client) List(ctx context.Context, req provider.ListRequest, each func(provider.Listed) bool) diag.List {
	w := call{"list objects of", req.Type}
	s, r, ds := c.lookup(ctx, w, addr.Managed)
	if ds.HasErrors() {
		return ds
	}
	_, l, ds := c.lookup(ctx, w, addr.List)
	if ds.HasErrors() {
		return ds
	}
	var e enc
	msg := &pb6.ListRequest{TypeName: req.Type, Config: e.value("configuration", req.Config, s.codec(l.Block)), IncludeResourceObject: req.Objects, Limit: req.Limit}
	if e.err != nil {
		return c.refused(w, e.err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := c.rpc.ListResource(ctx, msg)
	if err != nil {
		return c.failed(ctx, w, err)
	}
	return receive(ctx, c, w, events, func(ev *pb6.ListEvent) (diag.List, bool) {
		var d dec
		o := provider.Listed{Name: ev.DisplayName, Identity: d.identity(ev.Identity, s, r)}
		if ev.ResourceObject != nil {
			o.Object = d.value("object", ev.ResourceObject, s.codec(r.Block), cty.NilVal)
		}
		ds := c.answer(w, ev.Diagnostics, &d)
		switch {
		case ds.HasErrors():
			return ds, true // others may follow
		case o.Identity == cty.NilVal && o.Object == cty.NilVal && ev.DisplayName == "":
			return ds, true // it only has messages
		}
		return ds, each(o)
	})
}

// GenerateConfig requests a configuration that produces an object with this state.
func (c *Client) GenerateConfig(ctx context.Context, typ string, state cty.Value) (cty.Value, diag.List) {
	w := call{"make a configuration of", typ}
	s, r, ds := c.lookup(ctx, w, addr.Managed)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	ty := r.Block.ImpliedType()
	if !s.caps.GetGenerateResourceConfig() {
		return cty.UnknownVal(ty), c.refused(w, errors.New("it does not say that it can"))
	}
	var e enc
	req := &pb6.GenerateRequest{TypeName: typ, State: e.value("state", state, s.codec(r.Block))}
	if e.err != nil {
		return cty.UnknownVal(ty), c.refused(w, e.err)
	}
	resp, err := c.rpc.GenerateResourceConfig(ctx, req)
	if err != nil {
		return cty.UnknownVal(ty), c.failed(ctx, w, err)
	}
	var d dec
	v := d.value("configuration", resp.Config, s.codec(r.Block), cty.UnknownVal(ty))
	return v, c.answer(w, resp.Diagnostics, &d)
}
