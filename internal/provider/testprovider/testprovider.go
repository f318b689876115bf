// Package testprovider is a provider plugin for tests: a process of its own,
// deterministic, and able to misbehave in every way that a caller must survive.
//
// Main types: Main, which a program or a test binary calls to become the plugin,
// and Listen, which serves it inside a test. The one rule: what it answers
// follows from what it is asked alone, so that tests can tell it beforehand;
// only where the provider configuration names a world folder are objects real.
//
// # What it has
//
// Provider configuration: prefix (put before ids and results), record_path (a
// file to which begin and answered lines of calls on test_record are appended),
// answered_delay_ms, delay_ms (every plan, apply, read takes so long), dump_path (a file to which
// the values of plans and applies are appended), world (a
// folder in which objects are kept as files, so that they can drift and vanish),
// misbehave.
//
// Resources test_object (all kinds of attributes and blocks, schema version 2,
// an identity), test_record (for tests that kill the caller), test_old (deprecated), test_group (attributes that may be written as blocks). Data source
// test_data. Ephemeral resource test_secret. Functions echo, fail, join, prefix,
// crash.
//
// # How it misbehaves
//
// The argument misbehave of the provider and of everything else holds one or
// more of "what:call", separated by commas, e.g. "crash:apply". See misbehave.go.
// Before that, the variable TEST_MISBEHAVE makes the start itself fail, see Main.
//
// # Protocols
//
// Protocol 6 has all of it; with protocol 5 there is no nested attribute meta in
// test_object, and the capabilities plan_destroy and get_provider_schema_optional
// are not announced.
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

// Addr is the source address that tests use.
var Addr = addr.Provider{Host: "registry.opentofu.org", Namespace: "terrace", Type: "test"}

// Main serves the plugin of the given protocol, 5 or 6, and returns when it is
// asked to end. It ends the process when the caller's process has gone. The
// variable TEST_MISBEHAVE may be
//
//	exit         end at once, with a message
//	panic        end with a crash before the handshake
//	hang         write no first line, and end after two minutes
//	line=TEXT    write TEXT as the first line and stay
//	deaf         write a good first line for a socket that nobody serves
//	fork         leave a grandchild behind that holds the output open
//	old          listen in the folder of temporary files, as with a go-plugin before 1.5
//	certificate  end at once unless the caller has given its certificate
//	stray        write to the standard output from the first call on
//
// TEST_CALLS names a file for a line of each call, see callLog, and each takes as
// many milliseconds more as TEST_CALL_MS says; those that read as many more as TEST_READ_MS
// says.
func Main(protocol int) {
	signal.Ignore(os.Interrupt)
	debug.SetGCPercent(400) // hardly anything stays from call to call
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
		time.Sleep(2 * time.Minute) // a grandchild may have lost its parent before it knew it
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
		stdout := os.Stdout // which Serve exchanges
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

// Protocol is the protocol that the variable TEST_PROTOCOL asks for, 6 if none.
func Protocol() int {
	if n, err := strconv.Atoi(os.Getenv("TEST_PROTOCOL")); err == nil {
		return n
	}
	return 6
}

// endWithParent keeps killed tests from leaving processes behind.
func endWithParent(parent int) {
	for os.Getppid() == parent {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond) // calls that are under way write their records
	os.Exit(1)
}

func stray(out *os.File) {
	for {
		_, _ = out.WriteString(strings.Repeat("stray output ", 10000) + "\n")
	}
}

// leaveGrandchild starts a process that inherits the output and lives for a while.
func leaveGrandchild() {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	env := append([]string{"TEST_MISBEHAVE=hang"}, os.Environ()...) // the first one counts
	_, err = os.StartProcess(path, os.Args, &os.ProcAttr{Env: env, Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		panic(err)
	}
}

// workers is how many calls are answered on goroutines that stay, whose stacks
// have grown already; further ones get a goroutine each.
const workers = 16

// window is how much a caller may send before we have taken it. One that is fixed
// spares the pings that would find out how large it should be.
const window = 8 << 20

func grpcServer(opts []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.NumStreamWorkers(workers), grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window))...)
}

// served is the plugin as go-plugin wants to have it.
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

// serviceDesc is the service of our bindings with the names of a protocol.
func serviceDesc(protocol int) *grpc.ServiceDesc {
	d := pb6.Provider_ServiceDesc
	d.ServiceName = rpc.Service(protocol)
	d.Methods = append([]grpc.MethodDesc(nil), d.Methods...)
	for i := range d.Methods {
		d.Methods[i].MethodName = rpc.Method(protocol, d.Methods[i].MethodName)
	}
	return &d
}

// Listen serves the plugin on a socket in a folder, for [rpc.Attach]. Calls that
// crash or hang the provider do so to the whole process. stop ends it.
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
