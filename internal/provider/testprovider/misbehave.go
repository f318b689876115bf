package testprovider

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Misbehaviors, as "what:call" in the argument misbehave. The calls are validate,
// configure, upgrade, read, plan, plandestroy, create, update, destroy, import, move, open,
// renew, close and apply, which means create, update and destroy.
//
//	crash    end with a panic             exit     end without a message
//	hang     never respond                error    return an error
//	warn     return a warning             status   fail the call itself
//	nil      omit the value               garbage  a value that is not MessagePack
//	type     a value of another type      unknown  a value with an unknown part
//	changed  a value that contradicts the plan or the configuration
//	legacy   the same, with the legacy type system flag
//	partial  half of the work and an error  gone   report that the object does not exist
//	defer    defer the request
//	awaitID  until the provider's world contains an object with this ID: defer the request if
//	         the client allows that, otherwise return an error
//	deferrable  when it is configured: an error unless the client allows to defer calls
//	mutateN  change a part of the value, with the seed N; see mutate.go
const (
	mCrash   = "crash"
	mExit    = "exit"
	mHang    = "hang"
	mError   = "error"
	mWarn    = "warn"
	mStatus  = "status"
	mNil     = "nil"
	mGarbage = "garbage"
	mType    = "type"
	mUnknown = "unknown"
	mChanged = "changed"
	mLegacy  = "legacy"
	mPartial = "partial"
	mGone    = "gone"
	mDefer   = "defer"

	mDeferrable = "deferrable"
)

// A mischief is the misbehavior of one call; "" for none.
type mischief string

// fault returns the misbehave argument of an object, with that of the provider.
func (s *server) fault(obj cty.Value) string {
	of, all := text(obj, "misbehave"), s.settings().misbehave
	if of == "" || all == "" {
		return of + all
	}
	return of + "," + all
}

// misbehavior returns the misbehavior for a call with any of the names.
func misbehavior(all string, calls ...string) mischief {
	if all == "" {
		return ""
	}
	for _, one := range strings.Split(all, ",") {
		what, call, _ := strings.Cut(strings.TrimSpace(one), ":")
		for _, c := range calls {
			if c == call {
				return mischief(what)
			}
		}
	}
	return ""
}

// before applies misbehavior that prevents a response.
func (m mischief) before() error {
	switch m {
	case mCrash:
		crash()
	case mExit:
		os.Exit(7)
	case mHang:
		select {}
	case mStatus:
		return status.Error(codes.Internal, "the test provider was told to fail the call")
	}
	return nil
}

// crash panics in a new goroutine, so that nothing can recover.
func crash() {
	go func() { panic("the test provider was told to crash") }()
	select {}
}

func (m mischief) diagnostics() []*pb6.Diagnostic {
	switch m {
	case mError, mPartial:
		return problem("Told to fail", "The test provider was told to answer with an error.", "misbehave")
	case mWarn:
		return []*pb6.Diagnostic{diagnostic(pb6.Diagnostic_WARNING, "Told to warn", "The test provider was told to answer with a warning.", "misbehave")}
	}
	return nil
}

// value applies misbehavior to an object of a response.
func (m mischief) value(v cty.Value, of *value.Codec) *pb6.Value {
	switch m {
	case mNil, mError:
		return nil
	case mGarbage:
		return &pb6.Value{Msgpack: []byte{0xdd, 0xff, 0xff, 0xff, 0xff, 0xc1}}
	case mType:
		return encodeValue(cty.StringVal("not an object"), value.NewCodec(cty.String))
	case mGone:
		return null
	case mUnknown:
		return encodeValue(with(v, "id", cty.UnknownVal(cty.String)), of)
	case mChanged, mLegacy:
		return encodeValue(with(v, "name", cty.StringVal("changed by the provider")), of)
	}
	if n, ok := strings.CutPrefix(string(m), "mutate"); ok && !v.IsNull() {
		seed, _ := strconv.ParseUint(n, 10, 64)
		return encodeValue(mutate(v, seed), of)
	}
	return encodeValue(v, of)
}

// awaited returns the misbehavior of a call about something that may not exist in the world yet.
func (s *server) awaited(m mischief, caps *pb6.ClientCapabilities) mischief {
	id, ok := strings.CutPrefix(string(m), "await")
	if !ok {
		return m
	}
	found, _ := filepath.Glob(filepath.Join(s.settings().world, "*."+id+".json")) // the pattern is valid
	switch {
	case len(found) > 0:
		return ""
	case caps.GetDeferralAllowed():
		return mDefer
	}
	return mError
}

func (m mischief) deferred() *pb6.Deferred {
	if m == mDefer {
		return &pb6.Deferred{Reason: pb6.Deferred_ABSENT_PREREQ}
	}
	return nil
}

// with returns an object with one attribute changed, if it has that attribute.
func with(obj cty.Value, name string, v cty.Value) cty.Value {
	if obj.IsNull() || !obj.IsKnown() || !obj.Type().HasAttribute(name) {
		return obj
	}
	m := obj.AsValueMap()
	m[name] = v
	return cty.ObjectVal(m)
}

// schemaMischief applies the misbehavior in TEST_MISBEHAVE to the schema.
func schemaMischief(what string, s *pb6.ProviderSchema) (*pb6.ProviderSchema, error) {
	switch what {
	case "schema-crash":
		crash()
	case "schema-hang":
		select {}
	case "schema-error":
		s.Diagnostics = problem("Told to fail", "The test provider was told to have no schema.")
	case "schema-garbage": // for one type only
		s.ResourceSchemas["test_object"] = []byte{0xff, 0xff, 0xff}
	case "schema-provider":
		s.Provider = []byte{0xff, 0xff, 0xff}
	case "schema-invalid":
		s.ResourceSchemas["test_object"] = must(proto.Marshal(&pb6.Schema{Block: &pb6.Block{Attributes: []*pb6.Attribute{{Name: "id", Type: []byte(`"strin"`), Optional: true}}}}))
	case "schema-functions":
		s.Functions["bad"] = &pb6.Function{}
	}
	return s, nil
}
