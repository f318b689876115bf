package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opentofu/svchost"
)

// # Login
//
// A host offers its login service, login.v1, as an OAuth 2.0 server for public clients. The
// client uses the authorization code grant with PKCE (RFC 7636): it opens the host's page in the
// user's browser, the host redirects the browser to a port on this machine with a code, and the
// client exchanges the code for a token.

const loginService = "login.v1"

// A Login is a host's description of its login service.
type Login struct {
	Host             string
	Client           string
	Authz, Token     *url.URL
	MinPort, MaxPort int
	Scopes           []string
}

// LoginService reads the description of a host's login service.
func (c *Client) LoginService(ctx context.Context, host string) (*Login, error) {
	hs, err := c.discover(ctx, host)
	if err != nil {
		return nil, err
	}
	shown := svchost.ForDisplay(host)
	raw, ok := hs.m[loginService]
	if !ok {
		return nil, &ServiceError{Host: shown, Service: loginService, Kind: "a login service; make a token in its web interface and store it in a credentials block of the CLI configuration"}
	}
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Client       string
		Authz, Token string
		Ports        []int
		Scopes       []string
		Grants       []string `json:"grant_types"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("host %s describes its login service wrongly: %w", shown, err)
	}
	l := &Login{Host: shown, Client: doc.Client, Scopes: doc.Scopes, MinPort: 1024, MaxPort: 65535}
	if len(doc.Grants) > 0 && !slices.Contains(doc.Grants, "authz_code") {
		return nil, fmt.Errorf("the login service of host %s offers the grants %s only, but authz_code is needed", shown, strings.Join(doc.Grants, ", "))
	}
	if doc.Client == "" {
		return nil, fmt.Errorf("host %s describes its login service without a client", shown)
	}
	for _, f := range []struct {
		name, text string
		to         **url.URL
	}{{"authz", doc.Authz, &l.Authz}, {"token", doc.Token, &l.Token}} {
		u, err := hs.base.Parse(f.text)
		if err != nil || f.text == "" || u.Scheme != "https" {
			return nil, fmt.Errorf("host %s describes its login service with %q as %s, which is not an https URL", shown, f.text, f.name)
		}
		*f.to = u
	}
	if len(doc.Ports) == 2 && doc.Ports[0] >= 1024 && doc.Ports[0] <= doc.Ports[1] && doc.Ports[1] <= 65535 {
		l.MinPort, l.MaxPort = doc.Ports[0], doc.Ports[1]
	} else if len(doc.Ports) > 0 {
		return nil, fmt.Errorf("host %s describes its login service with the ports %v; there must be a lower and an upper one from 1024 to 65535", shown, doc.Ports)
	}
	return l, nil
}

// LoginWith gets a token with the user's browser. It calls show with the URL that the browser has
// to open, and waits until the browser is redirected back or ctx ends.
func (c *Client) LoginWith(ctx context.Context, l *Login, show func(url string)) (string, error) {
	ln, err := listen(l.MinPort, l.MaxPort)
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return "", err
	}
	redirect := "http://localhost:" + port + "/login"
	state, verifier := random(), random()
	challenge := sha256.Sum256([]byte(verifier))
	q := l.Authz.Query()
	for k, v := range map[string]string{
		"response_type": "code", "client_id": l.Client, "redirect_uri": redirect, "state": state,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		q.Set(k, v)
	}
	if len(l.Scopes) > 0 {
		q.Set("scope", strings.Join(l.Scopes, " "))
	}
	u := *l.Authz
	u.RawQuery = q.Encode()
	code, err := waitForCode(ctx, ln, state, func() { show(u.String()) })
	if err != nil {
		return "", err
	}
	body, err := c.http().PostForm(ctx, l.Token.String(), url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {l.Client}, "redirect_uri": {redirect}, "code_verifier": {verifier},
	}, 1<<20)
	if err != nil {
		return "", fmt.Errorf("the login service of %s did not give a token: %w", l.Host, err)
	}
	var doc struct {
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(body, &doc) != nil || doc.AccessToken == "" {
		return "", fmt.Errorf("the login service of %s did not give a token", l.Host)
	}
	return doc.AccessToken, nil
}

func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

func listen(lo, hi int) (net.Listener, error) {
	var last error
	for port := lo; port <= hi && port < lo+200; port++ {
		ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return ln, nil
		}
		last = err
	}
	return nil, fmt.Errorf("no port from %d to %d on this machine is free for the browser to come back to: %w", lo, hi, last)
}

// waitForCode serves the page to which the browser is redirected, and returns the code.
func waitForCode(ctx context.Context, ln net.Listener, state string, ready func()) (string, error) {
	type answer struct {
		code string
		err  error
	}
	got := make(chan answer, 1)
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/login" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			http.NotFound(w, r)
			return
		}
		a := answer{code: q.Get("code")}
		text := "You are logged in. You can close this page and go back to the terminal."
		if a.code == "" {
			a.err = fmt.Errorf("the login was refused: %s", strings.TrimSpace(q.Get("error")+" "+q.Get("error_description")))
			text = "The login did not succeed. Go back to the terminal for more."
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintln(w, text)
		select {
		case got <- a:
		default:
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln) // ends by Shutdown
	}()
	ready()
	var a answer
	select {
	case a = <-got:
	case <-ctx.Done():
		a.err = errors.New("the login was called off")
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if srv.Shutdown(end) != nil {
		_ = srv.Close()
	}
	<-done
	return a.code, a.err
}
