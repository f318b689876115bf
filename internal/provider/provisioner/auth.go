package provisioner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// An agentConn is a connection to the user's SSH agent; nil if there is none.
type agentConn struct {
	agent.ExtendedAgent
	close func()
}

// dialAgent connects to the agent in the environment. It returns nil if there is none, or
// if it does not respond: other authentication methods may succeed.
func dialAgent(ctx context.Context, r Request, c connection) *agentConn {
	if !c.agent {
		return nil
	}
	conn, err := openAgent(ctx, r)
	if err != nil || conn == nil {
		return nil
	}
	return &agentConn{agent.NewClient(conn), func() { conn.Close() }}
}

// config returns the configuration for logging in to a machine. The agent's keys and the
// block's own key must be one method, because a client tries each method once.
func (h hop) config(ag *agentConn, identity, dir string) (*ssh.ClientConfig, error) {
	var own []ssh.Signer
	if h.key != "" {
		signer, err := parseKey(h.key)
		if err != nil {
			return nil, err
		}
		if h.cert != "" {
			cert, err := parseCert(h.cert)
			if err != nil {
				return nil, err
			}
			certified, err := ssh.NewCertSigner(cert, signer)
			if err != nil {
				return nil, fmt.Errorf("the certificate does not belong to the private key: %w", err)
			}
			own = append(own, certified)
		}
		own = append(own, signer)
	}
	conf := &ssh.ClientConfig{User: h.user, ClientVersion: "SSH-2.0-Terrace"}
	conf.Auth = append(conf.Auth, ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
		return append(slices.Clip(own), ag.signers(identity, dir)...), nil
	}))
	if h.password != "" {
		conf.Auth = append(conf.Auth, ssh.Password(h.password), ssh.KeyboardInteractive(
			func(_, _ string, questions []string, _ []bool) ([]string, error) {
				return slices.Repeat([]string{h.password}, len(questions)), nil
			}))
	}
	return conf, nil
}

// signers returns the keys of the agent, the preferred one first.
func (a *agentConn) signers(identity, dir string) []ssh.Signer {
	if a == nil {
		return nil
	}
	keys, err := a.List()
	if err != nil {
		return nil
	}
	signers, err := a.Signers()
	if err != nil || identity == "" {
		return signers
	}
	var first, rest []ssh.Signer
	for _, s := range signers {
		blob := s.PublicKey().Marshal()
		i := slices.IndexFunc(keys, func(k *agent.Key) bool { return bytes.Equal(k.Blob, blob) })
		if i >= 0 && isIdentity(keys[i], identity, dir) {
			first = append(first, s)
		} else {
			rest = append(rest, s)
		}
	}
	return append(first, rest...)
}

// isIdentity reports whether a key is the one that the user selected: by its comment, its
// fingerprint, the public key itself, or the path of a file that contains it (".pub" may be
// omitted).
func isIdentity(k *agent.Key, identity, dir string) bool {
	if k.Comment == identity || ssh.FingerprintSHA256(k) == identity || "MD5:"+ssh.FingerprintLegacyMD5(k) == identity {
		return true
	}
	same := func(text []byte) bool {
		pub, _, _, _, err := ssh.ParseAuthorizedKey(text)
		return err == nil && bytes.Equal(pub.Marshal(), k.Blob)
	}
	if same([]byte(identity)) {
		return true
	}
	for _, name := range []string{identity, identity + ".pub"} {
		if text, err := readfile.Whole(within(dir, name)); err == nil && same(text) {
			return true
		}
	}
	return false
}

var errHostKey = errors.New("its host key is not the expected one")

// hostKeyTries returns the ways to check a machine's host key. Without an expected key
// there is one, which accepts any key. With an expected key there are two: the expected key
// may be the machine's own, or that of a certificate authority. The algorithms that the
// client requests determine which of the two the machine presents.
func (h hop) hostKeyTries() ([]hostKeyTry, error) {
	if h.hostKey == "" {
		return []hostKeyTry{{check: ssh.InsecureIgnoreHostKey()}}, nil //nolint:gosec // the documented default
	}
	want, err := parseHostKey(h.hostKey)
	if err != nil {
		return nil, err
	}
	same := func(key ssh.PublicKey) bool { return bytes.Equal(key.Marshal(), want.Marshal()) }
	checker := &ssh.CertChecker{
		IsHostAuthority: func(key ssh.PublicKey, _ string) bool { return same(key) },
		HostKeyFallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if !same(key) {
				return fmt.Errorf("%w: it has %s, and host_key is %s", errHostKey, ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(want))
			}
			return nil
		},
	}
	check := func(host string, at net.Addr, key ssh.PublicKey) error {
		err := checker.CheckHostKey(host, at, key)
		if err != nil && !errors.Is(err, errHostKey) {
			err = fmt.Errorf("%w: %w", errHostKey, err)
		}
		return err
	}
	return []hostKeyTry{{check, plainAlgorithms(want.Type())}, {check, certAlgorithms()}}, nil
}

type hostKeyTry struct {
	check      ssh.HostKeyCallback
	algorithms []string // nil for the default
}

// plainAlgorithms returns the signature algorithms of a key type.
func plainAlgorithms(typ string) []string {
	if typ == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{typ}
}

func certAlgorithms() (out []string) {
	for _, name := range append(ssh.SupportedAlgorithms().HostKeys, ssh.InsecureAlgorithms().HostKeys...) {
		if strings.Contains(name, "-cert-") {
			out = append(out, name)
		}
	}
	return out
}
