package fetch

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// sshServer runs git-upload-pack for clients with the key.
func sshServer(t *testing.T, allowed ssh.PublicKey) string {
	_, host, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(host)
	if err != nil {
		t.Fatal(err)
	}
	conf := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != "git" || string(k.Marshal()) != string(allowed.Marshal()) {
			return nil, fmt.Errorf("not allowed")
		}
		return nil, nil
	}}
	conf.AddHostKey(signer)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go serveSSH(c, conf)
		}
	}()
	return ln.Addr().String()
}

func serveSSH(c net.Conn, conf *ssh.ServerConfig) {
	defer c.Close()
	conn, chans, reqs, err := ssh.NewServerConn(c, conf)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(reqs)
	for nc := range chans {
		ch, reqs, err := nc.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range reqs {
				if r.Type != "exec" {
					_ = r.Reply(r.Type == "env", nil)
					continue
				}
				_ = r.Reply(true, nil)
				var p struct{ Command string }
				_ = ssh.Unmarshal(r.Payload, &p)
				path, ok := strings.CutPrefix(p.Command, "git-upload-pack ")
				status := uint32(1)
				if ok {
					cmd := exec.Command("git-upload-pack", strings.Trim(path, "'"))
					if cmd.Err != nil {
						cmd = exec.Command("git", "upload-pack", strings.Trim(path, "'"))
					}
					cmd.Stdin, cmd.Stdout, cmd.Stderr = ch, ch, ch.Stderr()
					if in, err := cmd.StdinPipe(); err == nil {
						go func() { _, _ = io.Copy(in, ch); in.Close() }()
					} else {
						cmd.Stdin = ch
					}
					if cmd.Run() == nil {
						status = 0
					}
				}
				_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ S uint32 }{status}))
				ch.Close()
			}
		}()
	}
}

func TestGitOverSSH(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("there is no ssh program, which git needs")
	}
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sshPub, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		t.Fatal(err)
	}
	key := url.QueryEscape(base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block)))
	dir, _ := repository(t)
	addr := sshServer(t, sshPub)
	f := newFetcher(t)
	known := filepath.Join(t.TempDir(), "known")
	f.Env = f.Env.With("GIT_SSH_COMMAND=ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR -o UserKnownHostsFile="+known, "HOME="+t.TempDir())
	src := "git::ssh://git@" + addr + dir
	if got := files(t, mustGet(t, f, src+"?ref=v1&sshkey="+key).Dir)["main.tf"]; got != "one" {
		t.Error(got)
	}
	getFails(t, f, src+"?ref=v1", "git clone failed")
	getFails(t, f, src+"?sshkey=%21", "not in base64")
}
