//go:build unix

package provisioner

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"
)

// A server is a real SSH server on 127.0.0.1. It runs commands with /bin/sh in a directory
// of its own and records the requests.
type server struct {
	t    *testing.T
	home string
	addr string
	conf *ssh.ServerConfig
	sink bool // goSink handles scp instead of the program
	deaf bool // accepts connections and never responds

	mu       sync.Mutex
	log      []string // "pty", "exec COMMAND", "forward HOST:PORT", "user NAME METHOD"
	groups   map[int]bool
	open     map[net.Conn]bool
	accepted int
	wg       sync.WaitGroup
}

type serverOption func(*server)

func newSigner(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(pem.EncodeToMemory(block))
}

// startServer starts a server that accepts the user "tester" with the password "let me in",
// unless the options say otherwise.
func startServer(t *testing.T, host ssh.Signer, opts ...serverOption) *server {
	t.Helper()
	s := &server{t: t, home: t.TempDir(), groups: map[int]bool{}, open: map[net.Conn]bool{}}
	s.conf = &ssh.ServerConfig{PasswordCallback: func(c ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
		if c.User() == "tester" && string(password) == "let me in" {
			s.note("user tester password")
			return nil, nil
		}
		return nil, errors.New("wrong password")
	}}
	s.conf.AddHostKey(host)
	for _, o := range opts {
		o(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[c] = true
			s.accepted++
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); s.stop(); s.wg.Wait() })
	return s
}

func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.Close()
	}
	for pid := range s.groups {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

func (s *server) port() string { _, p, _ := net.SplitHostPort(s.addr); return p }

func (s *server) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// asked returns the requests so far.
func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

// running returns the number of commands that have not ended.
func (s *server) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.groups)
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	if s.deaf {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	conn, channels, requests, err := ssh.NewServerConn(c, s.conf)
	if err != nil {
		return
	}
	defer conn.Close()
	s.wg.Go(func() { ssh.DiscardRequests(requests) })
	for nc := range channels {
		switch nc.ChannelType() {
		case "session":
			s.wg.Go(func() { s.session(nc) })
		case "direct-tcpip":
			s.wg.Go(func() { s.forward(nc) })
		default:
			_ = nc.Reject(ssh.UnknownChannelType, "no")
		}
	}
}

func (s *server) forward(nc ssh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		FromHost string
		FromPort uint32
	}
	if err := ssh.Unmarshal(nc.ExtraData(), &to); err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	target := net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port)))
	s.note("forward %s", to.Host)
	out, err := net.Dial("tcp", target)
	if err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	s.mu.Lock()
	s.open[out] = true
	s.mu.Unlock()
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	s.wg.Go(func() { ssh.DiscardRequests(requests) })
	s.wg.Go(func() { _, _ = io.Copy(ch, out); ch.Close() })
	_, _ = io.Copy(out, ch)
	out.Close()
}

func (s *server) session(nc ssh.NewChannel) {
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	pid := 0
	for r := range requests {
		switch r.Type {
		case "pty-req":
			s.note("pty %d", len(r.Payload))
			_ = r.Reply(true, nil)
		case "signal":
			s.note("signal %s", r.Payload[4:])
			if pid != 0 {
				_ = syscall.Kill(-pid, syscall.SIGINT)
			}
		case "exec":
			command := string(r.Payload[4:])
			s.note("exec %s", command)
			_ = r.Reply(true, nil)
			if s.sink && strings.HasPrefix(command, "scp ") {
				s.wg.Go(func() { exit(ch, goSink(ch, s.home, command)) })
				continue
			}
			pid = s.exec(ch, command)
		default:
			s.note("%s", r.Type)
			if r.WantReply {
				_ = r.Reply(false, nil)
			}
		}
	}
	if pid != 0 { // the client is gone: processes of a terminal get a hangup, as from sshd
		s.mu.Lock()
		if s.groups[pid] {
			_ = syscall.Kill(-pid, syscall.SIGHUP)
			_ = syscall.Kill(-pid, syscall.SIGTERM) // nohup ignores a hangup
		}
		s.mu.Unlock()
	}
}

func (s *server) exec(ch ssh.Channel, command string) int {
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir = s.home
	cmd.Env = []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		exit(ch, 126)
		return 0
	}
	if err := cmd.Start(); err != nil {
		exit(ch, 126)
		return 0
	}
	s.mu.Lock()
	s.groups[cmd.Process.Pid] = true
	s.mu.Unlock()
	s.wg.Go(func() { _, _ = io.Copy(in, ch); in.Close() })
	s.wg.Go(func() {
		_ = cmd.Wait()
		s.mu.Lock()
		delete(s.groups, cmd.Process.Pid)
		s.mu.Unlock()
		exit(ch, cmd.ProcessState.ExitCode())
	})
	return cmd.Process.Pid
}

func exit(ch ssh.Channel, code int) {
	_, _ = ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(code)))
	ch.Close()
}

// goSink receives files with the scp protocol, for machines without the scp program.
func goSink(ch ssh.Channel, home, command string) int {
	_, word, _ := strings.Cut(command, " -t ")
	unquoted, _ := exec.Command("/bin/sh", "-c", "printf %s "+word).Output()
	target := string(unquoted)
	if !filepath.IsAbs(target) {
		target = filepath.Join(home, target)
	}
	r := bufio.NewReader(ch)
	fail := func(err error) int { fmt.Fprintf(ch, "\x02scp: %v\n", err); return 1 }
	ok := func() { _, _ = ch.Write([]byte{0}) }
	ok()
	dirs := []string{target}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0
		}
		here := dirs[len(dirs)-1]
		if line == "E\n" {
			dirs = dirs[:len(dirs)-1]
			ok()
			continue
		}
		parts := strings.SplitN(strings.TrimSpace(line[1:]), " ", 3)
		mode, _ := strconv.ParseUint(parts[0], 8, 32)
		size, _ := strconv.ParseInt(parts[1], 10, 64)
		path := here
		if info, err := os.Stat(here); err == nil && info.IsDir() {
			path = filepath.Join(here, parts[2])
		}
		if line[0] == 'D' {
			if err := os.Mkdir(path, os.FileMode(mode)); err != nil && !os.IsExist(err) {
				return fail(err)
			}
			dirs = append(dirs, path)
			ok()
			continue
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, os.FileMode(mode))
		if err != nil {
			return fail(err)
		}
		ok()
		_, err = io.CopyN(f, r, size)
		f.Close()
		if b, err2 := r.ReadByte(); err != nil || err2 != nil || b != 0 {
			return fail(fmt.Errorf("broken transfer"))
		}
		ok()
	}
}
