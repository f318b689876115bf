package provisioner

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const defaultTimeout = 5 * time.Minute

// A connection is a connection block with defaults.
type connection struct {
	target     hop
	bastion    *hop // nil for none
	proxy      *proxyServer
	timeout    time.Duration
	windows    bool
	scriptPath string // contains %RAND%
	agent      bool
	identity   string // the key of the agent to try first
}

// A hop is one machine to log in to.
type hop struct {
	host     string
	port     int
	user     string
	password string
	key      string
	cert     string
	hostKey  string
}

func (h hop) addr() string { return net.JoinHostPort(h.host, strconv.Itoa(h.port)) }

// readConnection applies the defaults of OpenTofu's documentation. The block must be valid.
func readConnection(a attributes) connection {
	c := connection{
		target: hop{
			host:     unbracket(a.text("host")),
			port:     cmp.Or(a.port("port"), 22),
			user:     cmp.Or(a.text("user"), "root"),
			password: a.text("password"),
			key:      a.text("private_key"),
			cert:     a.text("certificate"),
			hostKey:  a.text("host_key"),
		},
		timeout:    defaultTimeout,
		windows:    a.text("target_platform") == "windows",
		scriptPath: a.text("script_path"),
		agent:      a.flag("agent", true),
		identity:   a.text("agent_identity"),
	}
	if d, err := time.ParseDuration(a.text("timeout")); err == nil {
		c.timeout = d
	}
	if c.scriptPath == "" {
		c.scriptPath = "/tmp/terraform_%RAND%.sh"
		if c.windows {
			c.scriptPath = "C:/windows/temp/terraform_%RAND%.cmd"
		}
	}
	if host := a.text("bastion_host"); host != "" {
		c.bastion = &hop{
			host:     unbracket(host),
			port:     cmp.Or(a.port("bastion_port"), c.target.port),
			user:     cmp.Or(a.text("bastion_user"), c.target.user),
			password: cmp.Or(a.text("bastion_password"), c.target.password),
			key:      cmp.Or(a.text("bastion_private_key"), c.target.key),
			cert:     a.text("bastion_certificate"),
			hostKey:  a.text("bastion_host_key"),
		}
		if c.bastion.cert == "" && a.text("bastion_private_key") == "" {
			c.bastion.cert = c.target.cert // it belongs to the key that is used
		}
	}
	if host := a.text("proxy_host"); host != "" {
		c.proxy = &proxyServer{
			scheme:   cmp.Or(a.text("proxy_scheme"), "http"),
			addr:     net.JoinHostPort(unbracket(host), strconv.Itoa(cmp.Or(a.port("proxy_port"), 80))),
			user:     a.text("proxy_user_name"),
			password: a.text("proxy_user_password"),
		}
	}
	return c
}

// unbracket removes the brackets of an IPv6 address, as in URLs.
func unbracket(host string) string {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return host[1 : len(host)-1]
	}
	return host
}

// newScriptPath returns a path for a script, with a new random number each time.
func (c connection) newScriptPath() string {
	return strings.ReplaceAll(c.scriptPath, "%RAND%", strconv.FormatInt(rand.Int64N(1<<31), 10))
}

// describe prints the parameters of the connection, without secrets.
func (c connection) describe(say func(string), haveAgent bool) {
	say("Connecting to remote host via SSH...")
	c.target.describe(say, haveAgent)
	platform := "unix"
	if c.windows {
		platform = "windows"
	}
	say("  Target Platform: " + platform)
	if c.bastion != nil {
		say("Using configured bastion host...")
		c.bastion.describe(say, haveAgent)
	}
	if c.proxy != nil {
		say("Using configured proxy host...")
		say("  ProxyHost: " + c.proxy.addr)
		say("  ProxyUserName: " + c.proxy.user)
		say(fmt.Sprintf("  ProxyUserPassword: %t", c.proxy.password != ""))
	}
}

func (h hop) describe(say func(string), haveAgent bool) {
	say("  Host: " + h.host)
	say("  User: " + h.user)
	say(fmt.Sprintf("  Password: %t", h.password != ""))
	say(fmt.Sprintf("  Private key: %t", h.key != ""))
	say(fmt.Sprintf("  Certificate: %t", h.cert != ""))
	say(fmt.Sprintf("  SSH Agent: %t", haveAgent))
	say(fmt.Sprintf("  Checking Host Key: %t", h.hostKey != ""))
}

// A problem is an error in one attribute.
type problem struct{ attr, text string }

// keyProblems returns the keys and certificates that cannot be parsed.
func keyProblems(a attributes) (out []problem) {
	for _, prefix := range []string{"", "bastion_"} {
		name := prefix + "private_key"
		if key := a.text(name); key != "" {
			if _, err := parseKey(key); err != nil {
				out = append(out, problem{name, fmt.Sprintf("The private key cannot be used: %s.", err)})
			}
		}
		name = prefix + "certificate"
		if cert := a.text(name); cert != "" {
			if _, err := parseCert(cert); err != nil {
				out = append(out, problem{name, fmt.Sprintf("The certificate cannot be used: %s.", err)})
			}
			if v, ok := a.known(prefix + "private_key"); ok && (v.IsNull() || v.AsString() == "") {
				out = append(out, problem{name, fmt.Sprintf("A certificate needs the private key that it was made for: set %sprivate_key too.", prefix)})
			}
		}
		name = prefix + "host_key"
		if key := a.text(name); key != "" {
			if _, err := parseHostKey(key); err != nil {
				out = append(out, problem{name, fmt.Sprintf("The host key cannot be used: %s. Give it as one line such as \"ssh-ed25519 AAAA...\".", err)})
			}
		}
	}
	return out
}

func parseKey(text string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey([]byte(text))
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, errors.New("it is protected by a passphrase, so decrypt it or give it to the SSH agent")
	case err != nil && !strings.Contains(text, "-----BEGIN"):
		return nil, errors.New("there is no key in it. It must be the contents of a key file, not its path: see the function file")
	}
	return signer, err
}

func parseCert(text string) (*ssh.Certificate, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, err
	}
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		return nil, errors.New("it is a plain public key")
	}
	return cert, nil
}

func parseHostKey(text string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	return key, err
}
