package rpc_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

func TestOthers(t *testing.T) {
	ctx := context.Background()
	for _, protocol := range []int{5, 6} {
		t.Run(fmt.Sprint(protocol), func(t *testing.T) {
			t.Parallel()
			p := launch(t, options(t, protocol))
			if p.Protocol() != protocol {
				t.Errorf("protocol %d", p.Protocol())
			}
			want := map[rpc.Kind][]string{rpc.Action: {"test_action"}, rpc.StateStore: nil}
			if protocol == 6 {
				want[rpc.StateStore] = []string{"test_store"}
			}
			for k, types := range want {
				got, ds := p.Others(ctx, k)
				if d := cmp.Diff(types, got); d != "" || ds.HasErrors() {
					t.Error(k, d, ds)
				}
			}
			meta, ds := p.Metadata(ctx)
			noErrors(t, ds)
			if d := cmp.Diff([]string{"test_group", "test_object", "test_old", "test_record"}, meta["resources"]); d != "" {
				t.Error(d)
			}
			t.Run("list", func(t *testing.T) { testList(t, p) })
			t.Run("action", func(t *testing.T) { testAction(t, p) })
			o := managed(t, p, "test_object")
			state := o.create(vals{"name": str("n")}).State
			config, ds := p.GenerateConfig(ctx, "test_object", state)
			noErrors(t, ds)
			if !config.GetAttr("id").IsNull() || !config.GetAttr("name").RawEquals(str("n")) {
				t.Errorf("%#v", config)
			}
		})
	}
}

func testList(t *testing.T, p *rpc.Client) {
	ctx := context.Background()
	config := func(misbehave string) cty.Value {
		return cty.ObjectVal(vals{"name": cty.NullVal(cty.String), "number": cty.NullVal(cty.Number), "misbehave": str(misbehave)})
	}
	noErrors(t, p.ValidateResource(ctx, addr.List, "test_object", config("")))
	s, ds := p.Schema(ctx)
	noErrors(t, ds)
	if d := cmp.Diff([]string{"test_object"}, s.Types[addr.List]); d != "" || s.Resource(addr.List, "test_object").Block.Attributes["number"] == nil || !s.Capabilities.GenerateConfig {
		t.Error(d, "wrong schema of list resources")
	}
	list := func(objects bool, limit int64, stop int) []string {
		var got []string
		noErrors(t, p.List(ctx, provider.ListRequest{Type: "test_object", Config: config(""), Objects: objects, Limit: limit}, func(l provider.Listed) bool {
			got = append(got, fmt.Sprintf("%s %s %t", l.Name, l.Identity.GetAttr("id").AsString(), l.Object != cty.NilVal))
			return len(got) != stop
		}))
		return got
	}
	if d := cmp.Diff([]string{"object 0 id-0 false", "object 1 id-1 false", "object 2 id-2 false"}, list(false, 0, 0)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"object 0 id-0 true", "object 1 id-1 true"}, list(true, 2, 0)); d != "" {
		t.Error(d)
	}
	if got := list(false, 0, 1); len(got) != 1 {
		t.Errorf("stopped after %v", got)
	}
	failing := provider.ListRequest{Type: "test_object", Config: config("error")}
	wantError(t, p.List(ctx, failing, nil), rpc.CodeMessage, "List failed")
	wantError(t, p.List(ctx, provider.ListRequest{Type: "test_record", Config: config("")}, nil), rpc.CodeCall, "no type list.test_record")
}

func testAction(t *testing.T, p *rpc.Client) {
	ctx := context.Background()
	config := cty.ObjectVal(vals{"name": str("go")})
	noErrors(t, p.ValidateOther(ctx, rpc.Action, "test_action", config))
	noErrors(t, p.PlanAction(ctx, "test_action", config))
	var reported []string
	noErrors(t, p.InvokeAction(ctx, "test_action", config, func(s string) { reported = append(reported, s) }))
	if d := cmp.Diff([]string{"step 1 of go", "step 2 of go"}, reported); d != "" {
		t.Error(d)
	}
	ds := p.InvokeAction(ctx, "test_action", cty.ObjectVal(vals{"name": str("fail")}), func(string) {})
	wantError(t, ds, rpc.CodeMessage, "Action failed")
}

func TestStateStore(t *testing.T) {
	ctx := context.Background()
	p := launch(t, options(t, 6))
	config := cty.ObjectVal(vals{"folder": str(t.TempDir())})
	noErrors(t, p.ValidateOther(ctx, rpc.StateStore, "test_store", config))
	s, ds := p.ConfigureStore(ctx, "test_store", config)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if got, ds := s.Read(ctx, "a"); len(got) != 0 || ds.HasErrors() {
		t.Errorf("read nothing: %q %v", got, ds.Err())
	}
	for _, state := range []string{"", "short", strings.Repeat("0123456789abcdef", 3), strings.Repeat("long ", 1000)} {
		noErrors(t, s.Write(ctx, "a", []byte(state)))
		got, ds := s.Read(ctx, "a")
		noErrors(t, ds)
		if !bytes.Equal(got, []byte(state)) {
			t.Errorf("%d bytes became %d", len(state), len(got))
		}
	}
	noErrors(t, s.Write(ctx, "torn", bytes.Repeat([]byte("x"), 100)))
	_, ds = s.Read(ctx, "torn")
	wantError(t, ds, rpc.CodeNonsense, "do not fit together")
	if ids, ds := s.States(ctx); !cmp.Equal(ids, []string{"a", "torn"}) || ds.HasErrors() {
		t.Errorf("states %v, %v", ids, ds.Err())
	}
	lock, ds := s.Lock(ctx, "a", "apply")
	noErrors(t, ds)
	_, ds = s.Lock(ctx, "a", "apply")
	wantError(t, ds, rpc.CodeMessage, "State is locked")
	noErrors(t, s.Unlock(ctx, "a", lock))
	wantError(t, s.Unlock(ctx, "a", lock), rpc.CodeMessage, "not locked")
	noErrors(t, s.Delete(ctx, "torn"))
	wantError(t, s.Delete(ctx, "torn"), rpc.CodeMessage, "No such state")
}
