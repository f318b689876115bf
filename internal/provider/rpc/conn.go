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

// conn gives calls of our bindings the names that they have in the plugin's
// protocol. The wire has no other trace of the names of our bindings.
type conn struct {
	grpc.ClientConnInterface
	names map[string]string
	dead  <-chan struct{} // closed when the process has ended; nil if it is not ours
	slow  func(call string)
	after time.Duration // until slow is called; 0 means slowAfter
}

// slowAfter is how long a call may take before the user hears what is waited for.
const slowAfter = 30 * time.Second

// patient are the calls whose progress is reported by others, and those that nobody waits for.
var patient = map[string]bool{"ApplyResourceChange": true, "StopProvider": true, "InvokeAction": true}

// watch tells that a call takes long, until it is done.
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
	var to peer.Peer // stays empty where there was no connection to write to
	err := c.ClientConnInterface.Invoke(ctx, c.names[method], args, reply, append(opts, grpc.Peer(&to))...)
	if err != nil && to.Addr == nil && status.Code(err) == codes.Unavailable {
		return unasked{err}
	}
	return err
}

// unasked is the error of a call that was not sent.
type unasked struct{ error }

func (u unasked) Unwrap() error { return u.error }

func (c conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := c.alive(); err != nil {
		return nil, err
	}
	return c.ClientConnInterface.NewStream(ctx, desc, c.names[method], opts...)
}

// renamed5 are the calls that protocol 5 names differently.
var renamed5 = map[string]string{
	"GetProviderSchema":          "GetSchema",
	"ValidateProviderConfig":     "PrepareProviderConfig",
	"ConfigureProvider":          "Configure",
	"StopProvider":               "Stop",
	"ValidateResourceConfig":     "ValidateResourceTypeConfig",
	"ValidateDataResourceConfig": "ValidateDataSourceConfig",
}

// Service is the name of the service of a protocol on the wire.
func Service(protocol int) string {
	if protocol == 5 {
		return "tfplugin5.Provider"
	}
	return "tfplugin6.Provider"
}

// Method is the name in a protocol of a call that protocol 6 names so.
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
