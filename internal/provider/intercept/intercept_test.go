package intercept_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider/intercept"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// through is a provider whose calls are handled by a function.
type through struct {
	intercept.Calls
	handle func(ctx context.Context, c intercept.Call) diag.List
}

var _ provider.Provider = (*through)(nil)

func (t *through) Handle(ctx context.Context, c intercept.Call) diag.List { return t.handle(ctx, c) }
func (t *through) Stop(context.Context) error                             { return nil }
func (t *through) Close() error                                           { return nil }

func intercepted(handle func(ctx context.Context, c intercept.Call) diag.List) provider.Provider {
	t := &through{handle: handle}
	t.Calls = intercept.Calls{Handler: t}
	return t
}

// recorder is a provider that records the arguments of its last call. Its answers name the
// method.
type recorder struct {
	got []any
}

func (r *recorder) record(method string, args ...any) diag.List {
	r.got = append([]any{method}, args...)
	return diag.List{{Code: "x", Severity: diag.Warning, Summary: method}}
}

func (r *recorder) Schema(ctx context.Context) (*schema.Provider, diag.List) {
	return &schema.Provider{Types: map[addr.Mode][]string{addr.Managed: {"answer"}}}, r.record("Schema", ctx)
}

func (r *recorder) ValidateConfig(ctx context.Context, config cty.Value) (cty.Value, diag.List) {
	return cty.StringVal("answer"), r.record("ValidateConfig", ctx, config)
}

func (r *recorder) Configure(ctx context.Context, config cty.Value) diag.List {
	return r.record("Configure", ctx, config)
}

func (r *recorder) ValidateResource(ctx context.Context, mode addr.Mode, typ string, config cty.Value) diag.List {
	return r.record("ValidateResource", ctx, mode, typ, config)
}

func (r *recorder) UpgradeState(ctx context.Context, req provider.UpgradeRequest) (cty.Value, diag.List) {
	return cty.StringVal("answer"), r.record("UpgradeState", ctx, req)
}

func (r *recorder) UpgradeIdentity(ctx context.Context, typ string, version int64, json []byte) (cty.Value, diag.List) {
	return cty.StringVal("answer"), r.record("UpgradeIdentity", ctx, typ, version, json)
}

func (r *recorder) Read(ctx context.Context, req provider.ReadRequest) (provider.ReadResponse, diag.List) {
	return provider.ReadResponse{State: cty.StringVal("answer"), Private: []byte("p")}, r.record("Read", ctx, req)
}

func (r *recorder) Plan(ctx context.Context, req provider.PlanRequest) (provider.PlanResponse, diag.List) {
	return provider.PlanResponse{Planned: cty.StringVal("answer"), Legacy: true}, r.record("Plan", ctx, req)
}

func (r *recorder) Apply(ctx context.Context, req provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
	return provider.ApplyResponse{State: cty.StringVal("answer"), Legacy: true}, r.record("Apply", ctx, req)
}

func (r *recorder) Import(ctx context.Context, req provider.ImportRequest) ([]provider.Imported, diag.List) {
	return []provider.Imported{{Type: "answer"}}, r.record("Import", ctx, req)
}

func (r *recorder) Move(ctx context.Context, req provider.MoveRequest) (provider.MoveResponse, diag.List) {
	return provider.MoveResponse{State: cty.StringVal("answer")}, r.record("Move", ctx, req)
}

func (r *recorder) ReadData(ctx context.Context, typ string, config, meta cty.Value) (cty.Value, diag.List) {
	return cty.StringVal("answer"), r.record("ReadData", ctx, typ, config, meta)
}

func (r *recorder) OpenEphemeral(ctx context.Context, typ string, config cty.Value) (provider.Opened, diag.List) {
	return provider.Opened{Result: cty.StringVal("answer")}, r.record("OpenEphemeral", ctx, typ, config)
}

func (r *recorder) RenewEphemeral(ctx context.Context, typ string, private []byte) (provider.Renewal, diag.List) {
	return provider.Renewal{Private: []byte("answer")}, r.record("RenewEphemeral", ctx, typ, private)
}

func (r *recorder) List(ctx context.Context, req provider.ListRequest, _ func(provider.Listed) bool) diag.List {
	return r.record("List", ctx, req)
}

func (r *recorder) GenerateConfig(ctx context.Context, typ string, state cty.Value) (cty.Value, diag.List) {
	return cty.True, r.record("GenerateConfig", ctx, typ, state)
}

func (r *recorder) CloseEphemeral(ctx context.Context, typ string, private []byte) diag.List {
	return r.record("CloseEphemeral", ctx, typ, private)
}

func (r *recorder) Functions(ctx context.Context) (map[string]*schema.Function, diag.List) {
	return map[string]*schema.Function{"answer": nil}, r.record("Functions", ctx)
}

func (r *recorder) CallFunction(ctx context.Context, name string, args []cty.Value) (cty.Value, error) {
	r.record("CallFunction", ctx, name, args)
	return cty.StringVal("answer"), &provider.ArgError{Arg: 1, Msg: "answer"}
}

func (r *recorder) Stop(context.Context) error { return nil }
func (r *recorder) Close() error               { return nil }

// example returns a value of a type that differs from every value returned before.
func example(t reflect.Type, n *int) reflect.Value {
	*n++
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[cty.Value]():
		v.Set(reflect.ValueOf(cty.NumberIntVal(int64(*n))))
	case t.Kind() == reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case v.CanInt():
		v.SetInt(int64(*n))
	case v.CanUint():
		v.SetUint(uint64(*n))
	case t.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, example(t.Elem(), n), example(t.Elem(), n)))
	case t.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(example(t.Key(), n), example(t.Elem(), n))
	case t.Kind() == reflect.Func:
		v.SetZero()
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(example(t.Field(i).Type, n))
		}
	default:
		panic("no example of " + t.String())
	}
	return v
}

// methods calls f with each method of a provider that has a result, and with arguments for
// it.
func methods(t *testing.T, f func(t *testing.T, name string, args []reflect.Value)) {
	all := reflect.TypeFor[provider.Provider]()
	n := 0
	for i := range all.NumMethod() {
		m := all.Method(i)
		if m.Name == "Stop" || m.Name == "Close" {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for k := 1; k < m.Type.NumIn(); k++ {
			args = append(args, example(m.Type.In(k), &n))
		}
		t.Run(m.Name, func(t *testing.T) { f(t, m.Name, args) })
	}
}

func results(p provider.Provider, method string, args []reflect.Value) (out []any) {
	for _, v := range reflect.ValueOf(p).MethodByName(method).Call(args) {
		out = append(out, v.Interface())
	}
	return out
}

// A handler that only carries out calls has no effect: the provider behind it gets the same
// arguments, and the caller the same answers and messages.
func TestCallsArePassedOn(t *testing.T) {
	methods(t, func(t *testing.T, name string, args []reflect.Value) {
		direct, behind := &recorder{}, &recorder{}
		var method string
		p := intercepted(func(ctx context.Context, c intercept.Call) diag.List {
			method = c.Method()
			return c.Do(ctx, behind)
		})
		want, got := results(direct, name, args), results(p, name, args)
		if method != name {
			t.Errorf("the call is named %s", method)
		}
		if !reflect.DeepEqual(direct.got, behind.got) {
			t.Errorf("the provider got %#v, want %#v", behind.got, direct.got)
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("the caller got %#v, want %#v", got, want)
		}
	})
}

// Messages of a handler that does not carry out a call reach the caller of every method.
func TestMessagesOfTheHandler(t *testing.T) {
	methods(t, func(t *testing.T, name string, args []reflect.Value) {
		got := results(intercepted(func(context.Context, intercept.Call) diag.List {
			return diag.Errorf("x", nil, "Refused", "Not today.")
		}), name, args)
		switch last := got[len(got)-1].(type) {
		case diag.List:
			if len(last) != 1 || last[0].Summary != "Refused" {
				t.Errorf("the messages are %v", last)
			}
		case error:
			if last.Error() != "Refused: Not today." {
				t.Errorf("the error is %v", last)
			}
		default:
			t.Errorf("the handler's message is lost: %v", got)
		}
	})
}

// An object keeps its value if the call about it fails before it reaches a provider.
func TestAnswersOfFailedCalls(t *testing.T) {
	p := intercepted(func(context.Context, intercept.Call) diag.List { return diag.Errorf("x", nil, "Refused", "Not today.") })
	prior, id, private := cty.StringVal("prior"), cty.StringVal("id"), []byte("private")
	read, _ := p.Read(t.Context(), provider.ReadRequest{Prior: prior, Private: private, Identity: id})
	plan, _ := p.Plan(t.Context(), provider.PlanRequest{Prior: prior, Proposed: cty.True, Private: private, PriorIdentity: id})
	apply, _ := p.Apply(t.Context(), provider.ApplyRequest{Prior: prior, Planned: cty.True, Private: private, PlannedIdentity: id})
	raw := cmp.Comparer(func(a, b cty.Value) bool { return a == b || a != cty.NilVal && b != cty.NilVal && a.RawEquals(b) })
	for _, diff := range []string{
		cmp.Diff(provider.ReadResponse{State: prior, Private: private, Identity: id}, read, raw),
		cmp.Diff(provider.PlanResponse{Planned: prior, Private: private, Identity: id}, plan, raw),
		cmp.Diff(provider.ApplyResponse{State: prior, Private: private, Identity: id}, apply, raw),
	} {
		if diff != "" {
			t.Error(diff)
		}
	}
}

// A handler distinguishes requests by the type of the call, and may answer a call itself.
func TestHandlerAnswers(t *testing.T) {
	broken := errors.New("broken")
	p := intercepted(func(_ context.Context, c intercept.Call) diag.List {
		switch c := c.(type) {
		case *intercept.ReadData:
			c.Answer = c.Request.Config
		case *intercept.CallFunction:
			c.Answer.Err = broken
		}
		return nil
	})
	if v, ds := p.ReadData(t.Context(), "x", cty.StringVal("config"), cty.NilVal); len(ds) > 0 || !v.RawEquals(cty.StringVal("config")) {
		t.Errorf("%#v, %v", v, ds)
	}
	if _, err := p.CallFunction(t.Context(), "f", nil); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if v, ds := p.UpgradeState(t.Context(), provider.UpgradeRequest{}); len(ds) > 0 || v.IsKnown() {
		t.Errorf("%#v, %v", v, ds)
	}
}
