package rpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/provider"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// Options configures the start of a plugin.
type Options struct {
	Addr addr.Provider // for messages
	Path string        // the program
	Args []string      // its arguments; most plugins have none
	Env  []string      // its complete environment, without the variables of the handshake
	Dir  string        // its working directory; required

	Stderr       io.Writer     // receives the plugin's output, from several goroutines, one at a time; may be nil
	StartTimeout time.Duration // the limit of the start; 0 means one minute
	DisableTLS   bool          // never use TLS (TF_DISABLE_PLUGIN_TLS)
	Version      string        // the language version sent to the plugin; "" means 1.12.6

	// Slow is called for a call that takes longer than SlowAfter (0 means 30 seconds), with
	// its name in protocol 6, and for a start that does, with "the handshake". It may be
	// called concurrently. It may be nil.
	Slow      func(call string)
	SlowAfter time.Duration

	Cache *SchemaCache // nil disables the cache
	Name  string       // the key of the program in the cache; "" means its path
	// Package identifies the package of the program by its verified hash. "" means that schemas
	// are not kept for later commands.
	Package string
	// Release is the version of the package, under which its schemas are found without the package;
	// see SchemaCache.Release. "" means that it is not known.
	Release string
}

// The variable by which a plugin recognizes that it was not started by hand, its value, and
// the default language version. Source: the plugin protocol's documentation.
const (
	CookieName     = "TF_PLUGIN_MAGIC_COOKIE"
	CookieValue    = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"
	defaultVersion = "1.12.6"
)

// maxMessage is the maximum size of a message from a plugin, in bytes.
const maxMessage = 256 << 20

// Launch starts a plugin and returns when it is ready for calls. If the plugin does not
// become ready, Launch kills it and returns the reason, with CodeInterrupted if ctx ended.
// ctx only affects the start. Close ends the process.
func Launch(ctx context.Context, o Options) (provider.Provider, diag.List) {
	if o.StartTimeout <= 0 {
		o.StartTimeout = time.Minute
	}
	program := cacheKey(cmp.Or(o.Name, o.Path), o.Args, 0)
	secured := withTLS
	switch {
	case o.DisableTLS:
		secured = inTheClear
	case privateSockets && !o.Cache.needsTLS(program):
		secured = byFolder
	}
	c, again, ds := launch(ctx, o, secured)
	if again && secured == byFolder && ctx.Err() == nil {
		if c, _, ds = launch(ctx, o, withTLS); c != nil {
			o.Cache.setNeedsTLS(program)
		}
	}
	if c == nil {
		return nil, ds
	}
	return c, nil
}

// security is the protection of the connection to a plugin.
//
// TLS costs two thirds of a start, because plugins create a certificate on the curve P-521,
// and a part of each call. A socket in a directory that only our user can enter protects
// equally well, so a plugin is first started without TLS. A plugin that creates its socket
// elsewhere (its go-plugin does not support PLUGIN_UNIX_SOCKET_DIR), or that ends without a
// certificate, is started again with TLS.
type security int

const (
	withTLS    security = iota
	byFolder            // without TLS over a socket in our directory
	inTheClear          // without TLS over any address
)

// privateSockets reports whether a plugin can listen in our directory. On Windows, plugins
// listen on TCP.
const privateSockets = runtime.GOOS != "windows"

// launch starts the plugin once. again reports that a start with TLS may succeed.
func launch(ctx context.Context, o Options, secured security) (c *Client, again bool, ds diag.List) {
	out := &tail{out: o.Stderr}
	if ctx.Err() != nil {
		return nil, false, startGivenUp(o, out)
	}
	cmd, err := sys.Prepare(sys.Command{Path: o.Path, Args: o.Args, Dir: o.Dir, Env: quiet(o.Env)})
	if err != nil {
		return nil, false, startFailed(o, out, "its program cannot be run: "+diag.Reason(err))
	}
	s := &start{opts: o, cmd: cmd, out: out, security: secured}
	if secured == withTLS {
		conf, cert, err := clientTLS()
		if err != nil {
			return nil, false, startFailed(o, out, "no certificate for it could be made: "+diag.Reason(err))
		}
		s.tls = conf
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], certName+"="+cert)
	}
	s.client = plugin.NewClient(s.config())
	cc, ds := s.run(ctx)
	if s.proc == nil { // the system could not create pipes
		return nil, false, ds
	}
	h, err := s.proc.handshakeResult()
	switch {
	case errors.Is(err, errNotPrivate):
		s.unlink() // the plugin was killed before it could delete its socket
		return nil, true, ds
	case ds != nil: // a plugin that printed nothing until the limit would do so with TLS, too
		return nil, errors.Is(err, errNoLine) && ds[0].Code != provider.CodeSlow, ds
	}
	c = newClient(o, h.Protocol, cc, s.proc.done)
	c.plugin, c.proc, c.out, c.tls = s.client, s.proc, out, s.tls != nil
	c.cache, c.key = o.Cache, cacheKey(cmp.Or(o.Name, cmd.Path), o.Args, h.Protocol)
	c.packageKey, c.kept = packageKey(o), func() { o.Cache.note(o) }
	return c, false, nil
}

// start is the state of one call of launch.
type start struct {
	opts     Options
	cmd      *exec.Cmd
	out      *tail
	security security
	tls      *tls.Config // nil: without TLS
	client   *plugin.Client
	proc     *process
	folder   string // the directory of the plugin's socket; "" if it has none
}

func (s *start) config() *plugin.ClientConfig {
	set := plugin.PluginSet{"provider": grpcPlugin{}}
	return &plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: CookieName, MagicCookieValue: CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{5: set, 6: set},
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, folder string) (runner.Runner, error) {
			s.folder = folder
			if s.security == byFolder {
				s.proc.private = folder
			}
			s.cmd.Env = append(s.cmd.Env[:len(s.cmd.Env):len(s.cmd.Env)], spec.Env...)
			return s.proc, nil
		},
		SkipHostEnv:      true,
		StartTimeout:     s.opts.StartTimeout + time.Minute, // run enforces the limit
		Stderr:           s.out,
		SyncStdout:       s.out,
		SyncStderr:       s.out,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		TLSConfig:        s.tls,
		GRPCDialOptions:  dialOptions(),
	}
}

// window is the size of gRPC's flow control window. A fixed size avoids the pings that
// measure the best one.
const window = 8 << 20

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0), // see unlink
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(math.MaxInt32)),
	}
}

// grpcPlugin returns the connection itself.
type grpcPlugin struct{ plugin.NetRPCUnsupportedPlugin }

func (grpcPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("this is the calling side")
}

func (grpcPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, cc *grpc.ClientConn) (any, error) {
	return cc, nil
}

// run waits for the plugin in a goroutine, because go-plugin ignores contexts, and its
// timeout while it connects. If ctx ends or the limit is reached, run kills the process,
// which ends the goroutine.
func (s *start) run(ctx context.Context) (grpc.ClientConnInterface, diag.List) {
	var err error
	if s.proc, err = newProcess(s.cmd, s.out); err != nil {
		return nil, startFailed(s.opts, s.out, diag.Reason(err))
	}
	type result struct {
		cc  grpc.ClientConnInterface
		err error
	}
	ready := make(chan result, 1)
	go func() { // ends with the process, which is killed below after the limit
		cc, err := s.connect(ctx)
		ready <- result{cc, err}
	}()
	limit := time.NewTimer(s.opts.StartTimeout)
	defer limit.Stop()
	defer conn{slow: s.opts.Slow, after: s.opts.SlowAfter}.watch(shaking)()
	var ds diag.List
	select {
	case r := <-ready:
		if r.err == nil {
			return r.cc, nil
		}
		ds = startFailed(s.opts, s.out, s.why(r.err))
	case <-ctx.Done():
		ds = startGivenUp(s.opts, s.out)
	case <-limit.C:
		ds = startFailed(s.opts, s.out, fmt.Sprintf("it was not ready %s after its start", s.opts.StartTimeout))
		ds[0].Code = provider.CodeSlow
	}
	_ = s.proc.Kill(ctx)
	end(s.client, s.proc) // deletes the directory of its socket
	return nil, ds
}

func (s *start) connect(ctx context.Context) (grpc.ClientConnInterface, error) {
	proto, err := s.client.Client()
	if err != nil {
		return nil, err
	}
	raw, err := proto.Dispense("provider")
	if err != nil {
		return nil, err
	}
	cc := raw.(*grpc.ClientConn)
	if s.ready(ctx, cc) {
		s.unlink()
	}
	return cc, nil
}

// ready waits until a connection is ready. It returns false if the process has ended, or if the
// connection is closed or cannot be made, which the first call reports.
func (s *start) ready(ctx context.Context, cc *grpc.ClientConn) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends when ready returns
		select {
		case <-s.proc.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		switch state := cc.GetState(); state {
		case connectivity.Ready:
			return true
		case connectivity.Shutdown, connectivity.TransientFailure:
			return false
		default:
			cc.Connect()
			if !cc.WaitForStateChange(ctx, state) {
				return false
			}
		}
	}
}

// unlink deletes the plugin's socket from the file system, so that nothing is left behind
// if we are killed. The only connection is already open. It must stay open while it is
// idle, because no new connection is possible.
func (s *start) unlink() {
	h, _ := s.proc.handshakeResult()
	if info, err := os.Lstat(h.Address); h.Network == "unix" && err == nil && info.Mode().Type() == os.ModeSocket {
		_ = os.Remove(h.Address)
	}
	if s.folder != "" {
		_ = os.Remove(s.folder)
	}
}

// why converts an error of go-plugin to a clause for a message.
func (s *start) why(err error) string {
	_, shakeErr := s.proc.handshakeResult()
	s.proc.mu.Lock()
	started := s.proc.started
	s.proc.mu.Unlock()
	switch {
	case !started:
		return "its program cannot be run: " + diag.Reason(err)
	case shakeErr != nil && !errors.Is(shakeErr, errNoLine):
		return shakeErr.Error()
	case s.proc.ended(lingering):
		return fmt.Sprintf("it ended before it was ready (%s)", s.proc.how())
	case shakeErr != nil:
		return shakeErr.Error()
	}
	return diag.Reason(err)
}

func startFailed(o Options, out *tail, why string) diag.List {
	detail := fmt.Sprintf("The provider %s (%s) could not be started: %s.", o.Addr.Display(), o.Path, why)
	return diag.List{{Code: CodeStart, Summary: "Provider could not be started", Detail: detail + out.ending()}}
}

// startGivenUp returns the message if the caller stopped waiting for the plugin. The output
// of the plugin may contain the reason for the delay.
func startGivenUp(o Options, out *tail) diag.List {
	detail := fmt.Sprintf("The provider %s (%s) was being started, but that was given up before it was ready.", o.Addr.Display(), o.Path)
	return diag.List{{Code: CodeInterrupted, Summary: "Provider start interrupted", Detail: detail + out.ending()}}
}
