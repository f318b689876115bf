package rpc

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc"
)

// Kind is a kind of type that plugins can provide besides resources, data sources,
// ephemeral resources, list resources and functions.
type Kind uint8

// The kinds.
const (
	Action     Kind = iota
	StateStore      // protocol 6 only
)

func (k Kind) String() string {
	return [...]string{"action", "state store"}[k]
}

// Others returns the types of a kind, sorted.
func (c *Client) Others(ctx context.Context, k Kind) ([]string, diag.List) {
	s, ds := c.schemas(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	return s.entries.Names(k.String()), nil
}

// OtherSchema returns the configuration schema of a type of a kind.
func (c *Client) OtherSchema(ctx context.Context, k Kind, typ string) (*schema.Block, diag.List) {
	w := call{"tell the schema of the " + k.String(), typ}
	s, ds := c.schemas(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	raw, err := s.entries.Entry(k.String(), typ)
	switch {
	case err != nil:
		return nil, c.refused(w, err)
	case raw == nil:
		return nil, c.refused(w, errors.New("it has no such type"))
	}
	b, err := s.block(raw)
	if err != nil {
		return nil, c.nonsense(w, "the schema cannot be used: %s", err)
	}
	return b, nil
}

// config encodes the configuration of a type of a kind.
func (c *Client) config(ctx context.Context, w call, k Kind, config cty.Value) (*pb6.Value, diag.List) {
	b, ds := c.OtherSchema(ctx, k, w.typ)
	if ds.HasErrors() {
		return nil, ds
	}
	var e enc
	v := e.value("configuration", config, value.NewCodec(b.ImpliedType()))
	if e.err != nil {
		return nil, c.refused(w, e.err)
	}
	return v, nil
}

// ValidateOther checks the configuration of a type of a kind.
func (c *Client) ValidateOther(ctx context.Context, k Kind, typ string, config cty.Value) diag.List {
	w := call{"check the configuration of the " + k.String(), typ}
	v, ds := c.config(ctx, w, k, config)
	if ds.HasErrors() {
		return ds
	}
	var resp *pb6.Diagnostics
	var err error
	switch k {
	case Action:
		resp, err = c.rpc.ValidateActionConfig(ctx, &pb6.ValidateRequest{TypeName: typ, Config: v})
	default:
		resp, err = c.rpc.ValidateStateStoreConfig(ctx, &pb6.ValidateRequest{TypeName: typ, Config: v})
	}
	if err != nil {
		return c.failed(ctx, w, err)
	}
	return c.messages(w, resp.Diagnostics)
}

// receive calls each for the events of a stream until each returns false.
func receive[T any](ctx context.Context, c *Client, w call, events grpc.ServerStreamingClient[T], each func(*T) (diag.List, bool)) diag.List {
	var ds diag.List
	for {
		ev, err := events.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return ds
		case err != nil:
			return append(ds, c.failed(ctx, w, err)...)
		}
		more, goOn := each(ev)
		if ds = append(ds, more...); !goOn {
			return ds
		}
	}
}

// PlanAction asks the provider whether an action can be invoked.
func (c *Client) PlanAction(ctx context.Context, typ string, config cty.Value) diag.List {
	w := call{"plan the action", typ}
	v, ds := c.config(ctx, w, Action, config)
	if ds.HasErrors() {
		return ds
	}
	resp, err := c.rpc.PlanAction(ctx, &pb6.ActionRequest{ActionType: typ, Config: v, ClientCapabilities: capabilities()})
	if err != nil {
		return c.failed(ctx, w, err)
	}
	if off, ds := c.deferred(ctx, w, resp.Deferred); off {
		return ds
	}
	return c.messages(w, resp.Diagnostics)
}

// InvokeAction invokes an action. It calls progress for every progress message.
func (c *Client) InvokeAction(ctx context.Context, typ string, config cty.Value, progress func(string)) diag.List {
	w := call{"invoke the action", typ}
	v, ds := c.config(ctx, w, Action, config)
	if ds.HasErrors() {
		return ds
	}
	events, err := c.rpc.InvokeAction(ctx, &pb6.ActionRequest{ActionType: typ, Config: v, ClientCapabilities: capabilities()})
	if err != nil {
		return c.failed(ctx, w, err)
	}
	completed := false
	ds = receive(ctx, c, w, events, func(ev *pb6.ActionEvent) (diag.List, bool) {
		switch e := ev.Type.(type) {
		case *pb6.ActionEvent_Progress:
			progress(e.Progress.GetMessage())
		case *pb6.ActionEvent_Completed:
			completed = true
			return c.messages(w, e.Completed.GetDiagnostics()), true
		}
		return nil, true
	})
	if !completed && !ds.HasErrors() {
		return append(ds, c.nonsense(w, "its answer ended without saying that the action is complete")...)
	}
	return ds
}

// Store is a configured state store of a plugin.
type Store struct {
	c     *Client
	typ   string
	chunk int64
}

const defaultChunk = 8 << 20

// ConfigureStore configures a state store.
func (c *Client) ConfigureStore(ctx context.Context, typ string, config cty.Value) (*Store, diag.List) {
	w := call{"configure the state store", typ}
	v, ds := c.config(ctx, w, StateStore, config)
	if ds.HasErrors() {
		return nil, ds
	}
	resp, err := c.rpc.ConfigureStateStore(ctx, &pb6.ConfigureStoreRequest{TypeName: typ, Config: v, Capabilities: &pb6.StoreCapabilities{ChunkSize: defaultChunk}})
	if err != nil {
		return nil, c.failed(ctx, w, err)
	}
	ds = c.messages(w, resp.Diagnostics)
	chunk := resp.GetCapabilities().GetChunkSize()
	if ds.HasErrors() {
		return nil, ds
	}
	if chunk <= 0 || chunk > maxMessage/2 {
		return nil, append(ds, c.nonsense(w, "it wants the state in pieces of %d bytes", chunk)...)
	}
	return &Store{c, typ, chunk}, ds
}

func (s *Store) call(what string) call { return call{what + " the state store", s.typ} }

// Read reads a state. It returns nil if there is none.
func (s *Store) Read(ctx context.Context, id string) ([]byte, diag.List) {
	w := s.call("read from")
	chunks, err := s.c.rpc.ReadStateBytes(ctx, &pb6.StateRequest{TypeName: s.typ, StateId: id})
	if err != nil {
		return nil, s.c.failed(ctx, w, err)
	}
	var out []byte
	ds := receive(ctx, s.c, w, chunks, func(ch *pb6.StateChunk) (diag.List, bool) {
		ds := s.c.messages(w, ch.Diagnostics)
		n := int64(len(out))
		if r := ch.Range; !ds.HasErrors() && len(ch.Bytes) > 0 && (r.GetStart() != n || r.GetEnd() != n+int64(len(ch.Bytes))-1 && r.GetEnd() != n+int64(len(ch.Bytes)) || n+int64(len(ch.Bytes)) > ch.TotalLength) {
			ds = append(ds, s.c.nonsense(w, "the pieces of the state do not fit together")...)
		}
		out = append(out, ch.Bytes...)
		return ds, !ds.HasErrors()
	})
	if ds.HasErrors() {
		return nil, ds
	}
	return out, ds
}

// Write replaces a state.
func (s *Store) Write(ctx context.Context, id string, state []byte) diag.List {
	w := s.call("write to")
	stream, err := s.c.rpc.WriteStateBytes(ctx)
	if err != nil {
		return s.c.failed(ctx, w, err)
	}
	total := int64(len(state))
	for start := int64(0); start == 0 || start < total; start += s.chunk {
		end := min(start+s.chunk, total)
		ch := &pb6.WriteChunk{Bytes: state[start:end], TotalLength: total, Range: &pb6.ByteRange{Start: start, End: max(end-1, 0)}}
		if start == 0 {
			ch.Meta = &pb6.StateRequest{TypeName: s.typ, StateId: id}
		}
		if err := stream.Send(ch); err != nil {
			break // CloseAndRecv returns the error
		}
	}
	resp, err := stream.CloseAndRecv()
	if err != nil {
		return s.c.failed(ctx, w, err)
	}
	return s.c.messages(w, resp.Diagnostics)
}

// Lock locks a state and returns the lock's id.
func (s *Store) Lock(ctx context.Context, id, operation string) (string, diag.List) {
	w := s.call("lock a state in")
	resp, err := s.c.rpc.LockState(ctx, &pb6.LockRequest{TypeName: s.typ, StateId: id, Operation: operation})
	if err != nil {
		return "", s.c.failed(ctx, w, err)
	}
	ds := s.c.messages(w, resp.Diagnostics)
	if resp.LockId == "" && !ds.HasErrors() {
		return "", append(ds, s.c.nonsense(w, "it gave the lock no id")...)
	}
	return resp.LockId, ds
}

// Unlock releases a lock.
func (s *Store) Unlock(ctx context.Context, id, lock string) diag.List {
	w := s.call("unlock a state in")
	resp, err := s.c.rpc.UnlockState(ctx, &pb6.UnlockRequest{TypeName: s.typ, StateId: id, LockId: lock})
	if err != nil {
		return s.c.failed(ctx, w, err)
	}
	return s.c.messages(w, resp.Diagnostics)
}

// States returns the states in the store, sorted.
func (s *Store) States(ctx context.Context) ([]string, diag.List) {
	w := s.call("list the states in")
	resp, err := s.c.rpc.GetStates(ctx, &pb6.StatesRequest{TypeName: s.typ})
	if err != nil {
		return nil, s.c.failed(ctx, w, err)
	}
	return slices.Sorted(slices.Values(resp.StateIds)), s.c.messages(w, resp.Diagnostics)
}

// Delete deletes a state.
func (s *Store) Delete(ctx context.Context, id string) diag.List {
	w := s.call("delete a state in")
	resp, err := s.c.rpc.DeleteState(ctx, &pb6.StateRequest{TypeName: s.typ, StateId: id})
	if err != nil {
		return s.c.failed(ctx, w, err)
	}
	return s.c.messages(w, resp.Diagnostics)
}

// Metadata returns the names of all types and functions of a plugin, by their kind in the
// protocol. It is cheaper than the schema if the plugin supports the call.
func (c *Client) Metadata(ctx context.Context) (map[string][]string, diag.List) {
	w := call{what: "tell what it has"}
	resp, err := c.rpc.GetMetadata(ctx, &pb6.Empty{})
	if err != nil {
		return nil, c.failed(ctx, w, err)
	}
	out := make(map[string][]string)
	for what, list := range map[string][]*pb6.Named{
		"resources": resp.Resources, "data_sources": resp.DataSources, "ephemeral_resources": resp.EphemeralResources, "functions": resp.Functions,
		"list_resources": resp.ListResources, "actions": resp.Actions, "state_stores": resp.StateStores,
	} {
		for _, n := range list {
			out[what] = append(out[what], n.GetName())
		}
		slices.Sort(out[what])
	}
	return out, c.messages(w, resp.Diagnostics)
}
