package testprovider

import (
	"context"
	"fmt"
	"time"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func (s *server) ReadDataSource(ctx context.Context, req *pb6.ReadDataRequest) (*pb6.ReadDataResponse, error) {
	b := s.dataBlock(req.TypeName)
	of := s.codec(b)
	v, err := decodeValue(req.Config, of)
	if err != nil {
		return nil, err
	}
	m := s.awaited(misbehavior(text(v, "misbehave")+","+s.settings().misbehave, "read"), req.ClientCapabilities)
	if err := m.before(); err != nil {
		return nil, err
	}
	if !s.sleep(ctx, v) {
		return &pb6.ReadDataResponse{Diagnostics: problem("Stopped", "The test provider was stopped.")}, nil
	}
	if s.datas[req.TypeName] != nil {
		v = realizeThing(b, planThing(b, cty.NullVal(v.Type()), v))
		return &pb6.ReadDataResponse{State: m.value(v, of), Diagnostics: m.diagnostics(), Deferred: m.deferred()}, nil
	}
	name := text(v, "name")
	v = with(v, "id", cty.StringVal("data-"+name))
	v = with(v, "result", cty.StringVal(s.settings().prefix+name))
	v = with(v, "secret", cty.StringVal("secret-"+name))
	return &pb6.ReadDataResponse{State: m.value(v, of), Diagnostics: m.diagnostics(), Deferred: m.deferred()}, nil
}

// now returns the time, the only result of this provider that varies.
func now() time.Time { return time.Now() }

func renewAt(v cty.Value) *timestamppb.Timestamp {
	ms := number(v, "renew_ms")
	if ms == 0 {
		return nil
	}
	return timestamppb.New(now().Add(time.Duration(ms) * time.Millisecond))
}

func (s *server) OpenEphemeralResource(_ context.Context, req *pb6.OpenRequest) (*pb6.OpenResponse, error) {
	of := s.codec(s.secret)
	v, err := decodeValue(req.Config, of)
	if err != nil {
		return nil, err
	}
	name := text(v, "name")
	defer s.recorded("open", name)()
	m := s.awaited(misbehavior(text(v, "misbehave"), "open"), req.ClientCapabilities)
	if err := m.before(); err != nil {
		return nil, err
	}
	v = with(v, "value", cty.StringVal(s.settings().prefix+"secret-"+name))
	out := &pb6.OpenResponse{Result: m.value(v, of), Diagnostics: m.diagnostics(), Deferred: m.deferred(), RenewAt: renewAt(v)}
	out.Private = fmt.Appendf(nil, "%d:%s", number(v, "renew_ms"), name)
	return out, nil
}

func splitPrivate(b []byte) (ms int64, name string) {
	_, _ = fmt.Sscanf(string(b), "%d:%s", &ms, &name)
	return ms, name
}

func (s *server) RenewEphemeralResource(_ context.Context, req *pb6.PrivateRequest) (*pb6.RenewResponse, error) {
	ms, name := splitPrivate(req.Private)
	if name == "" {
		return &pb6.RenewResponse{Diagnostics: problem("Unknown secret", "There is no private data.")}, nil
	}
	defer s.recorded("renew", name)()
	return &pb6.RenewResponse{Private: req.Private, RenewAt: timestamppb.New(now().Add(time.Duration(ms) * time.Millisecond))}, nil
}

func (s *server) CloseEphemeralResource(_ context.Context, req *pb6.PrivateRequest) (*pb6.Diagnostics, error) {
	_, name := splitPrivate(req.Private)
	if name == "" {
		return &pb6.Diagnostics{Diagnostics: problem("Unknown secret", "There is no private data.")}, nil
	}
	defer s.recorded("close", name)()
	return &pb6.Diagnostics{}, nil
}

func functionList() map[string]*pb6.Function {
	str, dyn := typeJSON(cty.String), typeJSON(cty.DynamicPseudoType)
	return map[string]*pb6.Function{
		"echo": {
			Summary: "Returns its argument", Return: &pb6.Return{Type: dyn},
			Parameters: []*pb6.Parameter{{Name: "value", Type: dyn, AllowNullValue: true, AllowUnknownValues: true}},
		},
		"fail": {
			Summary: "Fails", Return: &pb6.Return{Type: str}, DeprecationMessage: "it only fails",
			Parameters: []*pb6.Parameter{{Name: "text", Type: str}, {Name: "argument", Type: typeJSON(cty.Number)}},
		},
		"join": {
			Summary: "Joins strings", Return: &pb6.Return{Type: str},
			Parameters:        []*pb6.Parameter{{Name: "separator", Type: str}},
			VariadicParameter: &pb6.Parameter{Name: "parts", Type: str},
		},
		"count": {
			Summary: "Counts the elements of a map", Return: &pb6.Return{Type: typeJSON(cty.Number)},
			Parameters: []*pb6.Parameter{{Name: "values", Type: typeJSON(cty.Map(cty.String))}},
		},
		"prefix": {Summary: "Returns the configured prefix", Return: &pb6.Return{Type: str}},
		"crash":  {Summary: "Ends the provider", Return: &pb6.Return{Type: str}},
		"liar":   {Summary: "Returns another type than it says", Return: &pb6.Return{Type: typeJSON(cty.Number)}},
	}
}

// GetFunctions returns one more function if the provider is configured with a prefix.
func (s *server) GetFunctions(context.Context, *pb6.Empty) (*pb6.FunctionList, error) {
	fs := functionList()
	if s.settings().prefix != "" {
		fs["configured"] = &pb6.Function{Summary: "Exists in a configured provider", Return: &pb6.Return{Type: typeJSON(cty.Bool)}}
	}
	return &pb6.FunctionList{Functions: fs}, nil
}

func (s *server) CallFunction(_ context.Context, req *pb6.CallRequest) (*pb6.CallResponse, error) {
	str := func(v cty.Value) *pb6.CallResponse {
		return &pb6.CallResponse{Result: encodeValue(v, value.NewCodec(cty.String))}
	}
	args := make([]string, len(req.Arguments))
	for i, a := range req.Arguments {
		if v, err := decodeValue(a, value.NewCodec(cty.String)); err == nil && v.IsKnown() && !v.IsNull() {
			args[i] = v.AsString()
		}
	}
	switch req.Name {
	case "echo":
		return &pb6.CallResponse{Result: req.Arguments[0]}, nil
	case "fail":
		v, err := decodeValue(req.Arguments[1], value.NewCodec(cty.Number))
		if err != nil {
			return nil, err
		}
		n, _ := v.AsBigFloat().Int64()
		e := &pb6.FunctionError{Text: args[0]}
		if n >= 0 {
			e.FunctionArgument = &n
		}
		return &pb6.CallResponse{Error: e}, nil
	case "join":
		out := ""
		for i, part := range args[1:] {
			if i > 0 {
				out += args[0]
			}
			out += part
		}
		return str(cty.StringVal(out)), nil
	case "count":
		v, err := decodeValue(req.Arguments[0], value.NewCodec(cty.Map(cty.String)))
		if err != nil {
			return nil, err
		}
		if !v.IsWhollyKnown() {
			return &pb6.CallResponse{Error: &pb6.FunctionError{Text: "cannot count unknown values", FunctionArgument: new(int64)}}, nil
		}
		return &pb6.CallResponse{Result: encodeValue(cty.NumberIntVal(int64(v.LengthInt())), value.NewCodec(cty.Number))}, nil
	case "prefix":
		return str(cty.StringVal(s.settings().prefix)), nil
	case "configured":
		return &pb6.CallResponse{Result: encodeValue(cty.True, value.NewCodec(cty.Bool))}, nil
	case "crash":
		crash()
	case "liar":
		return str(cty.StringVal("no number")), nil
	}
	return &pb6.CallResponse{Error: &pb6.FunctionError{Text: "there is no function " + req.Name}}, nil
}

func (s *server) PlanAction(context.Context, *pb6.ActionRequest) (*pb6.PlanActionResponse, error) {
	return &pb6.PlanActionResponse{}, nil
}

// InvokeAction reports two steps and ends. An action named fail ends with an error.
func (s *server) InvokeAction(req *pb6.ActionRequest, out grpc.ServerStreamingServer[pb6.ActionEvent]) error {
	v, err := decodeValue(req.Config, s.codec(s.action))
	if err != nil {
		return err
	}
	for i := range 2 {
		ev := &pb6.ActionEvent{Type: &pb6.ActionEvent_Progress{Progress: &pb6.ActionProgress{Message: fmt.Sprintf("step %d of %s", i+1, text(v, "name"))}}}
		if err := out.Send(ev); err != nil {
			return err
		}
	}
	done := &pb6.Diagnostics{}
	if text(v, "name") == "fail" {
		done.Diagnostics = problem("Action failed", "The action was told to fail.", "name")
	}
	return out.Send(&pb6.ActionEvent{Type: &pb6.ActionEvent_Completed{Completed: done}})
}
