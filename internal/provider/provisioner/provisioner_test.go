//go:build unix

package provisioner

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

type object map[string]cty.Value

func str(s string) cty.Value { return cty.StringVal(s) }

func strs(list ...string) cty.Value {
	vals := make([]cty.Value, len(list))
	for i, s := range list {
		vals[i] = str(s)
	}
	return cty.ListVal(vals)
}

// fill returns a value of type ty. Attributes that are not given are null.
func fill(t *testing.T, ty cty.Type, given object) cty.Value {
	t.Helper()
	out := make(map[string]cty.Value)
	for name, at := range ty.AttributeTypes() {
		out[name] = cty.NullVal(at)
	}
	for name, v := range given {
		if !ty.HasAttribute(name) {
			t.Fatalf("no argument %q", name)
		}
		out[name] = v
	}
	return cty.ObjectVal(out)
}

// A run is a request with its output.
type run struct {
	Request
	mu    sync.Mutex
	lines []string
}

func (r *run) output() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

func (r *run) has(line string) bool { return slices.Contains(r.output(), line) }

func newRun(t *testing.T, typ string, config object) *run {
	t.Helper()
	r := &run{Request: Request{
		Type: typ, Config: fill(t, Schema(typ).ImpliedType(), config),
		Dir: t.TempDir(), Env: sys.Env{"PATH=" + os.Getenv("PATH"), "BASE=1"}, Exec: sys.Run,
	}}
	r.Output = func(line string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lines = append(r.lines, line)
	}
	return r
}

// over sets the run's connection. given replaces attributes of the connection that logs in
// to s.
func (r *run) over(t *testing.T, s *server, given object) *run {
	t.Helper()
	conn := object{
		"host": str("127.0.0.1"), "port": cty.MustParseNumberVal(s.port()), "user": str("tester"),
		"password": str("let me in"), "timeout": str("1m"), "script_path": str(s.home + "/script_%RAND%.sh"),
	}
	for name, v := range given {
		conn[name] = v
	}
	r.Connection = fill(t, ConnectionSchema().ImpliedType(), conn)
	return r
}

func (r *run) must(t *testing.T) *run {
	t.Helper()
	if ds := Run(t.Context(), r.Request); len(ds) > 0 {
		t.Fatalf("%s: %s\n%s", ds[0].Summary, ds[0].Detail, strings.Join(r.output(), "\n"))
	}
	return r
}

func (r *run) fails(t *testing.T, want ...string) {
	t.Helper()
	wantError(t, Run(t.Context(), r.Request), want...)
}

// refused checks that a connection fails for a reason. It interrupts the run when the
// second attempt begins, because the failure is retried.
func (r *run) refused(t *testing.T, want ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tries, output := 0, r.Output
	r.Output = func(line string) {
		if output(line); strings.HasPrefix(line, "Connecting to remote host") {
			if tries++; tries == 2 {
				cancel()
			}
		}
	}
	wantError(t, Run(ctx, r.Request), append(want, "interrupted: ")...)
}

func wantError(t *testing.T, ds diag.List, want ...string) {
	t.Helper()
	if !ds.HasErrors() {
		t.Fatal("no error")
	}
	for _, w := range want {
		if text := ds[0].Summary + ": " + ds[0].Detail; !strings.Contains(text, w) {
			t.Errorf("%q is not in: %s", w, text)
		}
	}
}

func TestLocalExec(t *testing.T) {
	tests := []struct {
		name   string
		config object
		lines  []string
		err    string
	}{
		{"default shell", object{"command": str("echo out; echo $BASE $X >&2"), "environment": cty.MapVal(object{"X": str("x"), "N": cty.NullVal(cty.String)})},
			[]string{`Executing: ["/bin/sh" "-c" "echo out; echo $BASE $X >&2"]`, "out", "1 x"}, ""},
		{"interpreter", object{"command": str("y"), "interpreter": strs("/bin/echo", "x")}, []string{`Executing: ["/bin/echo" "x" "y"]`, "x y"}, ""},
		{"empty interpreter", object{"command": str(":"), "interpreter": cty.ListValEmpty(cty.String)}, []string{`Executing: ["/bin/sh" "-c" ":"]`}, ""},
		{"quiet", object{"command": str("echo a"), "quiet": cty.True}, []string{"local-exec: Executing: Suppressed by quiet=true", "a"}, ""},
		{"lines", object{"command": str(`printf 'a\r\nb\rc\n\nd'`), "quiet": cty.True}, []string{"local-exec: Executing: Suppressed by quiet=true", "a", "b", "c", "", "d"}, ""},
		{"environment wins", object{"command": str("echo $BASE"), "quiet": cty.True, "environment": cty.MapVal(object{"BASE": str("2")})}, []string{"local-exec: Executing: Suppressed by quiet=true", "2"}, ""},
		{"status", object{"command": str("echo hi; exit 3"), "quiet": cty.True}, nil, "Error running command 'echo hi; exit 3': exit status 3. Output: hi"},
		{"no program", object{"command": str("x"), "interpreter": strs("nonesuch-program")}, nil, `"nonesuch-program": executable file not found`},
		{"no directory", object{"command": str("x"), "working_dir": str("nowhere")}, nil, "nowhere: no such file or directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRun(t, "local-exec", tt.config)
			if tt.err != "" {
				r.fails(t, "local-exec provisioner error", tt.err)
				return
			}
			r.must(t)
			if d := cmp.Diff(tt.lines, r.output()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLocalExecFolder(t *testing.T) {
	r := newRun(t, "local-exec", object{"command": str("pwd"), "quiet": cty.True, "working_dir": str("sub")})
	if err := os.Mkdir(filepath.Join(r.Dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r.must(t); !r.has(filepath.Join(r.Dir, "sub")) {
		t.Error(r.output())
	}
}

func TestConceal(t *testing.T) {
	host, _ := newSigner(t)
	s := startServer(t, host)
	for _, r := range []*run{
		newRun(t, "local-exec", object{"command": str("echo s3cret; exit 4")}),
		newRun(t, "remote-exec", object{"inline": strs("echo s3cret; exit 4")}).over(t, s, object{"script_path": str(s.home + "/s3cret")}),
	} {
		ds := Run(t.Context(), r.Request)
		if got := ds[0].Extra.(concealed).Concealed(); strings.Contains(got, "s3cret") || !strings.Contains(got, "status 4") {
			t.Error(got)
		}
		if !strings.Contains(ds[0].Detail, "s3cret") {
			t.Error("no detail:", ds[0].Detail)
		}
	}
	r := newRun(t, "local-exec", object{"command": str("x"), "working_dir": str("s3cret")})
	if got := Run(t.Context(), r.Request)[0].Extra.(concealed).Concealed(); strings.Contains(got, "s3cret") {
		t.Error(got)
	}
}

func TestLocalExecCancel(t *testing.T) {
	r := newRun(t, "local-exec", object{"command": str("echo started; exec sleep 600")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for !r.has("started") {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	start := time.Now()
	wantError(t, Run(ctx, r.Request), "signal: interrupt")
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

func TestPartialLine(t *testing.T) {
	r := newRun(t, "local-exec", object{"command": str("printf 'Password: '; read x </dev/null; until test -e seen; do sleep 0.05; done; echo"), "quiet": cty.True})
	done := make(chan struct{})
	go func() { defer close(done); r.must(t) }()
	for start := time.Now(); !r.has("Password: ") && !t.Failed(); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Error("a prompt does not show before its line ends")
		}
	}
	if err := os.WriteFile(filepath.Join(r.Dir, "seen"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-done
}

func TestLinerKeepsMemory(t *testing.T) {
	n, longest := 0, 0
	l := newLiner(func(s string) { n += len(s); longest = max(longest, len(s)) })
	for range 100 {
		_, _ = l.Write([]byte(strings.Repeat("x", 5000)))
	}
	l.close()
	if n != 500_000 || longest > maxLine {
		t.Error(n, longest)
	}
}

func TestTail(t *testing.T) {
	x := &tail{n: 4}
	for i := range 1000 {
		fmt.Fprint(x, i)
	}
	if x.String() != "8999" || cap(x.buf) > 100 {
		t.Errorf("%q, %d", x.String(), cap(x.buf))
	}
}

func TestRemoteExecInline(t *testing.T) {
	host, _ := newSigner(t)
	s := startServer(t, host)
	r := newRun(t, "remote-exec", object{"inline": strs("echo one", "cat $0", "ls -l $0 | cut -c1-10", "echo two >&2")}).over(t, s, nil).must(t)
	lines := r.output()
	at := slices.Index(lines, "Connected!")
	if d := cmp.Diff([]string{
		"Connecting to remote host via SSH...", "  Host: 127.0.0.1", "  User: tester", "  Password: true", "  Private key: false",
		"  Certificate: false", "  SSH Agent: false", "  Checking Host Key: false", "  Target Platform: unix", "Connected!",
	}, lines[:at+1]); d != "" {
		t.Error(d)
	}
	got := slices.DeleteFunc(lines[at+1:], func(l string) bool { return l == "two" }) // the order between streams is not defined
	if d := cmp.Diff([]string{"one", "#!/bin/sh", "echo one", "cat $0", "ls -l $0 | cut -c1-10", "echo two >&2", "-rwx------"}, got); d != "" {
		t.Error(d)
	}
	if left, _ := filepath.Glob(s.home + "/*"); len(left) != 0 {
		t.Error("left behind:", left)
	}
	if !slices.Contains(s.asked(), "pty 45") {
		t.Error("no terminal was asked for:", s.asked())
	}
}

func TestRemoteExecScripts(t *testing.T) {
	host, _ := newSigner(t)
	s := startServer(t, host)
	dir := t.TempDir()
	for name, text := range map[string]string{"a.sh": "#!/bin/sh\necho a\n", "b.sh": "#!/bin/bash\necho b $BASH\nexit 7\n", "c.sh": "echo c\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := newRun(t, "remote-exec", object{"scripts": strs("a.sh", "b.sh", "c.sh")}).over(t, s, object{"script_path": str(s.home + "/it's a %RAND%.sh")})
	r.Dir = dir
	r.fails(t, "remote-exec provisioner error", "the copy of b.sh", "Process exited with status 7")
	if !r.has("a") || !r.has("b /bin/bash") && !r.has("b /usr/bin/bash") || r.has("c") {
		t.Error(r.output())
	}
	if left, _ := filepath.Glob(s.home + "/*"); len(left) != 0 {
		t.Error("left behind:", left)
	}
	r = newRun(t, "remote-exec", object{"script": str("nosuch")}).over(t, s, nil)
	r.fails(t, "Failed to open script 'nosuch'")
}

func TestRemoteExecStreams(t *testing.T) {
	host, _ := newSigner(t)
	s := startServer(t, host)
	fifo := filepath.Join(s.home, "fifo")
	r := newRun(t, "remote-exec", object{"inline": strs("mkfifo "+fifo, "echo ready", "cat "+fifo)}).over(t, s, nil)
	done := make(chan struct{})
	go func() { defer close(done); r.must(t) }()
	for !r.has("ready") { // printed before the command has ended
		time.Sleep(5 * time.Millisecond)
	}
	if err := os.WriteFile(fifo, []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	<-done
	if !r.has("go") {
		t.Error(r.output())
	}
}

func TestRemoteExecCancel(t *testing.T) {
	host, _ := newSigner(t)
	s := startServer(t, host)
	r := newRun(t, "remote-exec", object{"inline": strs("echo started", "sleep 600")}).over(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for !r.has("started") {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	start := time.Now()
	wantError(t, Run(ctx, r.Request), "interrupted")
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	for s.running() > 0 {
		if time.Since(start) > 2*time.Minute {
			t.Fatal("the command runs on")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A deafConn is an ended connection on which opening a channel never returns.
type deafConn struct {
	ssh.Conn
	hang chan struct{}
}

func (c deafConn) Wait() error  { return io.EOF }
func (c deafConn) Close() error { return nil }
func (c deafConn) OpenChannel(string, []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	<-c.hang
	return nil, nil, io.EOF
}

func TestChannelAfterTheEnd(t *testing.T) {
	conn := deafConn{hang: make(chan struct{})}
	defer close(conn.hang)
	c := &client{Client: ssh.NewClient(conn, nil, nil)}
	c.watch()
	if err := c.run(t.Context(), "true", io.Discard, io.Discard); err == nil || err.Error() != "the connection was lost" {
		t.Error(err)
	}
}

func TestLostConnection(t *testing.T) {
	host, _ := newSigner(t)
	s := startServer(t, host)
	r := newRun(t, "remote-exec", object{"inline": strs("echo started", "sleep 600")}).over(t, s, nil)
	go func() {
		for !r.has("started") {
			time.Sleep(5 * time.Millisecond)
		}
		s.stop()
	}()
	r.fails(t, "the connection was lost")
}

func TestAuthentication(t *testing.T) {
	host, _ := newSigner(t)
	user, userText := newSigner(t)
	other, otherText := newSigner(t)
	authority, _ := newSigner(t)
	cert := &ssh.Certificate{Key: user.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"tester"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(zeros{}, authority); err != nil {
		t.Fatal(err)
	}
	certText := string(ssh.MarshalAuthorizedKey(cert))
	accept := func(key ssh.PublicKey) serverOption {
		return func(s *server) {
			s.conf.PasswordCallback = nil
			checker := ssh.CertChecker{IsUserAuthority: func(k ssh.PublicKey) bool { return equal(k, authority.PublicKey()) && key == nil }}
			s.conf.PublicKeyCallback = func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
				if key != nil && equal(k, key) {
					s.note("key %s", k.Type())
					return nil, nil
				}
				return checker.Authenticate(c, k)
			}
		}
	}
	interactive := func(s *server) {
		s.conf.PasswordCallback = nil
		s.conf.KeyboardInteractiveCallback = func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			answers, err := ask("", "", []string{"Password: "}, []bool{false})
			if err != nil || len(answers) != 1 || answers[0] != "let me in" {
				return nil, fmt.Errorf("no: %v %v", answers, err)
			}
			return nil, nil
		}
	}
	none := cty.NullVal(cty.String)
	tests := []struct {
		name   string
		server serverOption
		conn   object
		agent  []ssh.Signer
		keys   []string
		err    string
	}{
		{"key", accept(user.PublicKey()), object{"password": none, "private_key": str(userText)}, nil, nil, ""},
		{"wrong key", accept(user.PublicKey()), object{"password": none, "private_key": str(otherText)}, nil, nil, "unable to authenticate"},
		{"certificate", accept(nil), object{"password": none, "private_key": str(userText), "certificate": str(certText)}, nil, nil, ""},
		{"no certificate", accept(nil), object{"password": none, "private_key": str(userText)}, nil, nil, "unable to authenticate"},
		{"foreign certificate", accept(nil), object{"private_key": str(otherText), "certificate": str(certText)}, nil, nil, "does not belong to the private key"},
		{"keyboard", interactive, nil, nil, nil, ""},
		{"wrong password", nil, object{"password": str("guess")}, nil, nil, "SSH login failed (tester@127.0.0.1"},
		{"agent", accept(user.PublicKey()), object{"password": none}, []ssh.Signer{other, user}, []string{otherText, userText}, ""},
		{"agent refused", accept(user.PublicKey()), object{"password": none, "agent": cty.False}, []ssh.Signer{user}, []string{userText}, "unable to authenticate"},
		{"agent and key", accept(user.PublicKey()), object{"password": none, "private_key": str(userText)}, []ssh.Signer{other}, []string{otherText}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var opts []serverOption
			if tt.server != nil {
				opts = append(opts, tt.server)
			}
			s := startServer(t, host, opts...)
			r := newRun(t, "remote-exec", object{"inline": strs("echo in")}).over(t, s, tt.conn)
			if tt.keys != nil {
				r.Env = r.Env.With("SSH_AUTH_SOCK=" + startAgent(t, tt.keys))
			}
			if tt.err != "" {
				r.refused(t, tt.err)
				return
			}
			if r.must(t); !r.has("in") {
				t.Error(r.output())
			}
			if tt.agent != nil && (!r.has("  SSH Agent: true") || !slices.Contains(s.asked(), "auth-agent-req@openssh.com")) {
				t.Error(r.output(), s.asked())
			}
		})
	}
}

func TestAgentIdentity(t *testing.T) {
	host, _ := newSigner(t)
	a, aText := newSigner(t)
	b, bText := newSigner(t)
	pub := filepath.Join(t.TempDir(), "id.pub")
	if err := os.WriteFile(pub, ssh.MarshalAuthorizedKey(b.PublicKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := startAgent(t, []string{aText, bText})
	for _, identity := range []string{"key 1", ssh.FingerprintSHA256(b.PublicKey()), string(ssh.MarshalAuthorizedKey(b.PublicKey())), pub, strings.TrimSuffix(pub, ".pub"), "unknown"} {
		var mu sync.Mutex
		var first ssh.PublicKey
		s := startServer(t, host, func(s *server) {
			s.conf.PublicKeyCallback = func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = k
				}
				return nil, nil
			}
		})
		r := newRun(t, "remote-exec", object{"inline": strs(":")}).over(t, s, object{"agent_identity": str(identity)})
		r.Env = r.Env.With("SSH_AUTH_SOCK=" + socket)
		r.must(t)
		want := b.PublicKey()
		if identity == "unknown" {
			want = a.PublicKey()
		}
		if !equal(first, want) {
			t.Errorf("%s: the wrong key comes first", identity)
		}
	}
}

func TestHostKey(t *testing.T) {
	host, _ := newSigner(t)
	other, _ := newSigner(t)
	authority, _ := newSigner(t)
	line := func(s ssh.Signer) string { return string(ssh.MarshalAuthorizedKey(s.PublicKey())) }
	certified := func(name string) ssh.Signer {
		cert := &ssh.Certificate{Key: host.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{name}, ValidBefore: ssh.CertTimeInfinity}
		if err := cert.SignCert(zeros{}, authority); err != nil {
			t.Fatal(err)
		}
		s, err := ssh.NewCertSigner(cert, host)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	with := func(more ssh.Signer) serverOption { return func(s *server) { s.conf.AddHostKey(more) } }
	tests := []struct {
		name string
		key  string
		more ssh.Signer
		err  string
	}{
		{"right", line(host), nil, ""},
		{"wrong", line(other), nil, "its host key is not the expected one"},
		{"authority", line(authority), certified("127.0.0.1"), ""},
		{"certificate for another", line(authority), certified("example.com"), "its host key is not the expected one"},
		{"plain key though certified", line(host), certified("127.0.0.1"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var opts []serverOption
			if tt.more != nil {
				opts = append(opts, with(tt.more))
			}
			s := startServer(t, host, opts...)
			conn := object{"host_key": str(tt.key)}
			r := newRun(t, "remote-exec", object{"inline": strs("echo in")}).over(t, s, conn)
			if tt.err != "" {
				r.refused(t, tt.err)
				if slices.Contains(s.asked(), "user tester password") {
					t.Error("the password was told to a machine that is not the expected one")
				}
				return
			}
			if r.must(t); !r.has("  Checking Host Key: true") {
				t.Error(r.output())
			}
		})
	}
}

func TestBastion(t *testing.T) {
	host, _ := newSigner(t)
	jump, _ := newSigner(t)
	target, bastion := startServer(t, host), startServer(t, jump)
	conn := object{
		"bastion_host": str("127.0.0.1"), "bastion_port": cty.MustParseNumberVal(bastion.port()),
		"host_key": str(string(ssh.MarshalAuthorizedKey(host.PublicKey()))), "bastion_host_key": str(string(ssh.MarshalAuthorizedKey(jump.PublicKey()))),
	}
	r := newRun(t, "remote-exec", object{"inline": strs("echo behind")}).over(t, target, conn).must(t)
	if !r.has("behind") || !r.has("Using configured bastion host...") {
		t.Error(r.output())
	}
	if !slices.Contains(bastion.asked(), "forward 127.0.0.1") {
		t.Error(bastion.asked())
	}
	conn["bastion_password"] = str("wrong")
	newRun(t, "remote-exec", object{"inline": strs("echo behind")}).over(t, target, conn).refused(t, "bastion host: SSH login failed")
}

func TestTimeouts(t *testing.T) {
	host, _ := newSigner(t)
	deaf := startServer(t, host, func(s *server) { s.deaf = true })
	tests := []struct {
		name string
		port cty.Value
		want string
	}{
		{"nobody listens", cty.NumberIntVal(1), "connection refused"},
		{"nobody answers", cty.MustParseNumberVal(deaf.port()), "did not complete the handshake in time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			newRun(t, "file", object{"content": str("x"), "destination": str("y")}).over(t, deaf, object{"port": tt.port, "timeout": str("2s")}).
				fails(t, "file provisioner error", "timeout - last error: ", tt.want)
			if took := time.Since(start); took < 1900*time.Millisecond || took > time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestComesUpLate(t *testing.T) {
	host, _ := newSigner(t)
	refusals := 0
	s := startServer(t, host)
	r := newRun(t, "remote-exec", object{"inline": strs("echo up")}).over(t, s, nil)
	var d net.Dialer
	r.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if refusals++; refusals < 3 {
			return nil, fmt.Errorf("not yet")
		}
		return d.DialContext(ctx, network, address)
	}
	if r.must(t); !r.has("up") || refusals != 3 {
		t.Error(r.output(), refusals)
	}
}

func TestCancelWhileConnecting(t *testing.T) {
	host, _ := newSigner(t)
	deaf := startServer(t, host, func(s *server) { s.deaf = true })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r := newRun(t, "remote-exec", object{"inline": strs("echo up")}).over(t, deaf, object{"timeout": str("1h")})
	start := time.Now()
	wantError(t, Run(ctx, r.Request), "interrupted")
	if time.Since(start) > time.Minute {
		t.Error("too late")
	}
}

func TestProxies(t *testing.T) {
	host, _ := newSigner(t)
	for scheme, refusal := range map[string]string{"http": "407 Proxy Authentication Required", "socks5": "username/password authentication failed"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, host)
			addr, used := startProxy(t, scheme)
			h, p, _ := net.SplitHostPort(addr)
			conn := object{
				"proxy_scheme": str(scheme), "proxy_host": str(h), "proxy_port": cty.MustParseNumberVal(p),
				"proxy_user_name": str("u"), "proxy_user_password": str("p"),
			}
			r := newRun(t, "remote-exec", object{"inline": strs("echo through")}).over(t, s, conn).must(t)
			if got := <-used; got != s.addr || !r.has("through") || !r.has("Using configured proxy host...") {
				t.Error(got, r.output())
			}
			conn["proxy_user_password"] = str("wrong")
			r = newRun(t, "remote-exec", object{"inline": strs("echo through")}).over(t, s, conn)
			r.refused(t, refusal)
		})
	}
}

// startProxy starts a proxy for user u with password p. used receives the addresses that it
// connected to.
func startProxy(t *testing.T, scheme string) (addr string, used <-chan string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ch := make(chan string, 10)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				var target string
				if scheme == "http" {
					target = acceptHTTP(c)
				} else {
					target = acceptSOCKS(c)
				}
				if target == "" {
					return
				}
				ch <- target
				out, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer out.Close()
				wg.Go(func() { _, _ = io.Copy(c, out); c.Close() })
				_, _ = io.Copy(out, c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String(), ch
}

func acceptHTTP(c net.Conn) string {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return ""
	}
	if req.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("u:p")) {
		fmt.Fprint(c, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
		return ""
	}
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
	return req.Host
}

// acceptSOCKS is the server side of RFC 1928 and 1929, as far as our client needs it.
func acceptSOCKS(c net.Conn) string {
	r := bufio.NewReader(c)
	next := func(n int) []byte {
		p := make([]byte, n)
		_, _ = io.ReadFull(r, p)
		return p
	}
	next(int(next(2)[1]))
	_, _ = c.Write([]byte{5, 2})
	user := string(next(int(next(2)[1])))
	password := string(next(int(next(1)[0])))
	if user != "u" || password != "p" {
		_, _ = c.Write([]byte{1, 1})
		return ""
	}
	_, _ = c.Write([]byte{1, 0})
	head := next(4)
	if head[3] != 1 {
		return ""
	}
	ip, port := net.IP(next(4)), next(2)
	_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	return fmt.Sprintf("%s:%d", ip, int(port[0])<<8|int(port[1]))
}

func TestFile(t *testing.T) {
	host, _ := newSigner(t)
	sinks := map[string]bool{"go": true}
	if _, err := exec.LookPath("scp"); err == nil {
		sinks["scp"] = false
	}
	for name, sink := range sinks {
		t.Run(name, func(t *testing.T) { testFile(t, host, sink) })
	}
}

func testFile(t *testing.T, host ssh.Signer, sink bool) {
	big := strings.Repeat("0123456789abcdef", 1<<16)
	tests := []struct {
		name   string
		config object
		want   string // a file that exists afterwards
		text   string
		err    string
	}{
		{"content", object{"content": str("abc"), "destination": str("c")}, "c", "abc", ""},
		{"empty content", object{"content": str(""), "destination": str("c")}, "c", "", ""},
		{"content into a directory", object{"content": str("abc"), "destination": str("dest")}, "dest/tf-file-content", "abc", ""},
		{"much content", object{"content": str(big), "destination": str("c")}, "c", big, ""},
		{"replaces", object{"content": str("new"), "destination": str("old")}, "old", "new", ""},
		{"odd name", object{"content": str("abc"), "destination": str("it's $HOME \"x\"")}, "it's $HOME \"x\"", "abc", ""},
		{"file", object{"source": str("d/f"), "destination": str("g")}, "g", "f", ""},
		{"file into a directory", object{"source": str("d/f"), "destination": str("dest/")}, "dest/f", "f", ""},
		{"folder", object{"source": str("d"), "destination": str("dest")}, "dest/d/sub/g.sh", "g", ""},
		{"contents of a directory", object{"source": str("d/"), "destination": str("dest")}, "dest/sub/g.sh", "g", ""},
		{"directory that is not there", object{"source": str("d"), "destination": str("newdest")}, "newdest/sub/g.sh", "g", ""},
		{"link", object{"source": str("d"), "destination": str("dest")}, "dest/d/link", "f", ""},
		{"no parent", object{"content": str("abc"), "destination": str("nodir/x")}, "", "", "o such file or directory"},
		{"no source", object{"source": str("nosuch"), "destination": str("x")}, "", "", "nosuch: no such file or directory"},
		{"loop", object{"source": str("loop"), "destination": str("dest")}, "", "", "leads back into a directory that contains it"},
	}
	if !sink {
		tests = append(tests, []struct {
			name   string
			config object
			want   string
			text   string
			err    string
		}{
			{"contents into nothing", object{"source": str("d/"), "destination": str("newdest")}, "", "", "newdest"},
			{"home", object{"content": str("abc"), "destination": str("~/in home")}, "in home", "abc", ""},
			{"dash", object{"content": str("abc"), "destination": str("-r")}, "-r", "abc", ""},
		}...)
	}
	dir := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "d/sub"), 0o755))
	must(os.MkdirAll(filepath.Join(dir, "loop/in"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "d/f"), []byte("f"), 0o600))
	must(os.WriteFile(filepath.Join(dir, "d/sub/g.sh"), []byte("g"), 0o755))
	must(os.Symlink("f", filepath.Join(dir, "d/link")))
	must(os.Symlink("..", filepath.Join(dir, "loop/in/back")))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startServer(t, host, func(s *server) { s.sink = sink })
			must(os.Mkdir(filepath.Join(s.home, "dest"), 0o755))
			must(os.WriteFile(filepath.Join(s.home, "old"), []byte("longer than new"), 0o644))
			r := newRun(t, "file", tt.config).over(t, s, nil)
			r.Dir = dir
			if tt.err != "" {
				r.fails(t, "file provisioner error", tt.err)
				return
			}
			r.must(t)
			got, err := os.ReadFile(filepath.Join(s.home, tt.want))
			if err != nil || string(got) != tt.text {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if len(r.output()) > 0 {
				t.Error(r.output())
			}
		})
	}
}

func TestNoSCP(t *testing.T) {
	host, _ := newSigner(t)
	t.Setenv("PATH", t.TempDir()) // for the server's commands
	s := startServer(t, host)
	newRun(t, "file", object{"content": str("x"), "destination": str("y")}).over(t, s, nil).fails(t, "does not have the program scp")
}

func TestWindows(t *testing.T) {
	host, _ := newSigner(t)
	s := startServer(t, host, func(s *server) { s.sink = true })
	r := newRun(t, "remote-exec", object{"inline": strs("echo a", "echo b")}).over(t, s, object{"target_platform": str("windows"), "script_path": str(`x%RAND%.cmd`)})
	r.fails(t, "Process exited with status 127") // there is no such shell here; only the request is checked
	asked := strings.Join(s.asked(), "\n")
	if strings.Contains(asked, "pty") || strings.Contains(asked, "chmod") || !strings.Contains(asked, "exec del x") {
		t.Error(asked)
	}
	if !r.has("  Target Platform: windows") {
		t.Error(r.output())
	}
}

func TestQuote(t *testing.T) {
	tests := []struct {
		path    string
		windows bool
		want    string
	}{
		{"/tmp/x.sh", false, "/tmp/x.sh"},
		{"~/x y", false, "~/'x y'"},
		{"~/", false, "~/"},
		{"~", false, "'~'"},
		{"it's", false, `'it'\''s'`},
		{"", false, "''"},
		{"-x", false, "./-x"},
		{"$(reboot)", false, "'$(reboot)'"},
		{`C:\Program Files\x`, true, `"C:/Program Files/x"`},
		{"C:/windows/temp/x.cmd", true, "C:/windows/temp/x.cmd"},
	}
	for _, tt := range tests {
		if got := (connection{windows: tt.windows}).quote(tt.path); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.path, got, tt.want)
		}
	}
}

// zeros is a source of zero bytes in place of randomness, for signatures in tests.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func equal(a, b ssh.PublicKey) bool { return a != nil && string(a.Marshal()) == string(b.Marshal()) }

// startAgent starts an SSH agent with keys that have the comments "key 0", "key 1", ….
func startAgent(t *testing.T, keys []string) (socket string) {
	t.Helper()
	ring := agent.NewKeyring()
	for i, text := range keys {
		key, err := ssh.ParseRawPrivateKey([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := ring.Add(agent.AddedKey{PrivateKey: key, Comment: fmt.Sprintf("key %d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "agent") // the path from t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { _ = agent.ServeAgent(ring, c); c.Close() })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait(); os.RemoveAll(dir) })
	return socket
}
