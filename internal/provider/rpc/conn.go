package rpc

import (
	"cmp"
	"context"
	"path"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// conn renames the methods of our bindings to the names of the plugin's protocol. Only
// method names appear on the wire.
type conn struct {
	grpc.ClientConnInterface
	names map[string]string
	dead  <-chan struct{} // closed when the process has ended; nil for an attached plugin
	slow  func(call string)
	after time.Duration // the delay of the call of slow; 0 means slowAfter
}

// slowAfter is the duration after which a call is reported to the user.
const slowAfter = 30 * time.Second

// shaking is the name of a start in reports: the plugin prints a line when it is ready.
const shaking = "the handshake"

// patient contains the calls without a slow report: their progress is reported elsewhere,
// or no user waits for them.
var patient = map[string]bool{"ApplyResourceChange": true, "StopProvider": true, "InvokeAction": true}

// watch reports a slow call until done is called.
func (c conn) watch(method string) (done func()) {
	call := path.Base(method)
	if c.slow == nil || patient[call] {
		return func() {}
	}
	timer := time.AfterFunc(cmp.Or(c.after, slowAfter), func() { c.slow(call) })
	return func() { timer.Stop() }
}

var errDead = unasked{status.Error(codes.Unavailable, "its process has ended")}

func (c conn) alive() error {
	select {
	case <-c.dead:
		return errDead
	default:
		return nil
	}
}

func (c conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if err := c.alive(); err != nil {
		return err
	}
	defer c.watch(method)()
	var to peer.Peer // stays empty if there was no connection
	err := c.ClientConnInterface.Invoke(ctx, c.names[method], args, reply, append(opts, grpc.Peer(&to))...)
	if err != nil && to.Addr == nil && status.Code(err) == codes.Unavailable {
		return unasked{err}
	}
	return err
}

// unasked is the error of a call that never reached the plugin.
type unasked struct{ error }

func (u unasked) Unwrap() error { return u.error }

func (c conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := c.alive(); err != nil {
		return nil, err
	}
	return c.ClientConnInterface.NewStream(ctx, desc, c.names[method], opts...)
}

// renamed5 contains the calls with another name in protocol 5.
var renamed5 = map[string]string{
	"GetProviderSchema":          "GetSchema",
	"ValidateProviderConfig":     "PrepareProviderConfig",
	"ConfigureProvider":          "Configure",
	"StopProvider":               "Stop",
	"ValidateResourceConfig":     "ValidateResourceTypeConfig",
	"ValidateDataResourceConfig": "ValidateDataSourceConfig",
}

// Service returns the gRPC service name of a protocol.
func Service(protocol int) string {
	if protocol == 5 {
		return "tfplugin5.Provider"
	}
	return "tfplugin6.Provider"
}

// Method returns the name in a protocol of a method of protocol 6.
func Method(protocol int, name string) string {
	if other, ok := renamed5[name]; ok && protocol == 5 {
		return other
	}
	return name
}

var methods5 = sync.OnceValue(func() map[string]string { return methods(5) })
var methods6 = sync.OnceValue(func() map[string]string { return methods(6) })

func methodNames(protocol int) map[string]string {
	if protocol == 5 {
		return methods5()
	}
	return methods6()
}

func methods(protocol int) map[string]string {
	desc := &pb6.Provider_ServiceDesc
	out := make(map[string]string, len(desc.Methods)+len(desc.Streams))
	add := func(name string) {
		out["/"+desc.ServiceName+"/"+name] = "/" + Service(protocol) + "/" + Method(protocol, name)
	}
	for _, m := range desc.Methods {
		add(m.MethodName)
	}
	for _, s := range desc.Streams {
		add(s.StreamName)
	}
	return out
}
