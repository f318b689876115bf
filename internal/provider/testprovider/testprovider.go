// Package testprovider is a provider plugin for tests. It runs as its own process, is
// deterministic, and can misbehave in every way that a caller must survive.
//
// Main types: Main, which a program or a test binary calls to become the plugin, and
// Listen, which serves it inside a test. The one rule: its responses depend only on the
// requests, so that tests can predict them; objects are only stored if the provider
// configuration contains a world directory.
//
// # Contents
//
// Provider configuration: prefix (prepended to IDs and results), record_path (a file to
// which begin and answered lines of calls on test_record are appended), answered_delay_ms,
// delay_ms (the duration of every plan, apply and read), dump_path (a file to which the
// values of plans and applies are appended), world (a directory in which objects are stored
// as files, so that they can drift and disappear), misbehave.
//
// Resources test_object (all kinds of attributes and blocks, schema version 2, an
// identity), test_record (for tests that kill the caller), test_old (deprecated),
// test_group (attributes that may be written as blocks). Data source test_data. Ephemeral
// resource test_secret. Functions echo, fail, join, count, prefix,
// crash.
//
// # Misbehavior
//
// The argument misbehave of the provider and of all types contains "what:call", several
// separated by commas, for example "crash:apply". See misbehave.go. The variable
// TEST_MISBEHAVE makes the start itself fail, see Main.
//
// # Protocols
//
// Protocol 6 has all features. With protocol 5, test_object has no nested attribute meta,
// and the capabilities plan_destroy and get_provider_schema_optional are not announced.
package testprovider

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"google.golang.org/grpc"
)

// Addr is the provider's address in tests.
var Addr = addr.Provider{Host: "registry.opentofu.org", Namespace: "terrace", Type: "test"}

// Main serves the plugin with the given protocol, 5 or 6, and returns when the caller ends
// it. It ends the process when the caller's process has ended. The variable TEST_MISBEHAVE
// may be
//
//	exit         end immediately, with a message
//	panic        end with a crash before the handshake
//	hang         write no first line, and end after two minutes
//	line=TEXT    write TEXT as the first line and keep running
//	deaf         write a valid first line for a socket without a server
//	fork         leave a grandchild that keeps the output open
//	old          listen in the directory of temporary files, as a go-plugin before 1.5
//	certificate  end immediately if the caller sent no certificate
//	stray        write to the standard output from the first call on
//
// TEST_CALLS is a file for a log of all calls, see callLog. TEST_CALL_MS delays each call
// by that many milliseconds, and TEST_READ_MS delays reads in addition. TEST_TYPES is a
// number of generated resource types to serve in addition, see generateTypes.
func Main(protocol int) {
	signal.Ignore(os.Interrupt)
	debug.SetGCPercent(400) // little memory is live between calls
	go endWithParent(os.Getppid())
	s := newServer(protocol)
	calls := &callLog{path: os.Getenv("TEST_CALLS")}
	calls.started()
	defer calls.write("exit")
	switch what, arg, _ := strings.Cut(os.Getenv("TEST_MISBEHAVE"), "="); what {
	case "exit":
		_, _ = os.Stderr.WriteString("the test provider was told to exit\n")
		os.Exit(3)
	case "panic":
		panic("the test provider was told to crash")
	case "hang":
		time.Sleep(2 * time.Minute) // a grandchild may have lost its parent already
		os.Exit(1)
	case "line":
		_, _ = os.Stdout.WriteString(strings.ReplaceAll(arg, `\n`, "\n") + "\n")
		select {}
	case "deaf":
		_, _ = fmt.Fprintf(os.Stdout, "1|%d|unix|%s|grpc\n", protocol, filepath.Join(os.TempDir(), "nobody-serves-this"))
		select {}
	case "old":
		_ = os.Unsetenv(plugin.EnvUnixSocketDir)
	case "certificate":
		if os.Getenv("PLUGIN_CLIENT_CERT") == "" {
			os.Exit(4)
		}
	case "stray":
		stdout := os.Stdout // Serve replaces it
		s.asked = func() { go stray(stdout) }
	case "fork":
		leaveGrandchild()
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{ProtocolVersion: uint(protocol), MagicCookieKey: rpc.CookieName, MagicCookieValue: rpc.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocol: {"provider": served{srv: s}}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpcServer(append(opts, calls.options(s)...))
		},
		Logger: hclog.NewNullLogger(),
	})
}

// Protocol returns the protocol in the variable TEST_PROTOCOL. The default is 6.
func Protocol() int {
	if n, err := strconv.Atoi(os.Getenv("TEST_PROTOCOL")); err == nil {
		return n
	}
	return 6
}

// endWithParent ends the process when its parent has ended, so that killed tests leave no
// processes behind.
func endWithParent(parent int) {
	for os.Getppid() == parent {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond) // running calls write their records
	os.Exit(1)
}

func stray(out *os.File) {
	for {
		_, _ = out.WriteString(strings.Repeat("stray output ", 10000) + "\n")
	}
}

// leaveGrandchild starts a process that inherits the output and runs for a while.
func leaveGrandchild() {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	env := append([]string{"TEST_MISBEHAVE=hang"}, os.Environ()...) // the first one is used
	_, err = os.StartProcess(path, os.Args, &os.ProcAttr{Env: env, Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		panic(err)
	}
}

// workers is the number of goroutines that serve calls and are reused, with their grown
// stacks. Further calls get a goroutine each.
const workers = 16

// window is the size of gRPC's flow control window, in bytes. A fixed size avoids the pings
// that measure the best one.
const window = 8 << 20

func grpcServer(opts []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.NumStreamWorkers(workers), grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window))...)
}

// served is the plugin for go-plugin.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	srv *server
}

func (p served) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(serviceDesc(p.srv.protocol), p.srv)
	return nil
}

func (served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("this is the serving side")
}

// serviceDesc returns the service of our bindings with the method names of a protocol.
func serviceDesc(protocol int) *grpc.ServiceDesc {
	d := pb6.Provider_ServiceDesc
	d.ServiceName = rpc.Service(protocol)
	d.Methods = append([]grpc.MethodDesc(nil), d.Methods...)
	for i := range d.Methods {
		d.Methods[i].MethodName = rpc.Method(protocol, d.Methods[i].MethodName)
	}
	return &d
}

// Listen serves the plugin on a socket in a directory, for [rpc.Attach]. Calls that crash
// or hang the provider affect the whole process. stop ends it.
func Listen(dir string, protocol int) (r rpc.Reattach, stop func(), err error) {
	path := filepath.Join(dir, "provider.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		return rpc.Reattach{}, nil, err
	}
	g := grpcServer(nil)
	g.RegisterService(serviceDesc(protocol), newServer(protocol))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(l)
	}()
	return rpc.Reattach{Protocol: protocol, Network: "unix", Address: path}, func() { g.Stop(); <-done }, nil
}
