package gcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/gcp"
)

// cloud answers requests instead of Google Cloud. For a refresh token it returns an access token
// with the same name.
type cloud struct {
	requests []string // METHOD HOST/PATH BEARER
	machine  bool     // the metadata server exists
}

func (c *cloud) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests = append(c.requests, strings.TrimSpace(r.Method+" "+r.URL.Host+r.URL.Path+" "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
	status, body := http.StatusOK, ""
	switch {
	case r.URL.Host == "oauth2.googleapis.com":
		if err := r.ParseForm(); err != nil {
			return nil, err
		}
		if body = fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, r.Form.Get("refresh_token")); r.Form.Get("refresh_token") == "revoked" {
			status, body = http.StatusBadRequest, `{"error":"invalid_grant","error_description":"gone"}`
		}
	case r.URL.Host == "iamcredentials.googleapis.com":
		body = `{"accessToken":"of another","expireTime":"2001-09-09T02:46:40Z"}`
	case r.URL.Host == "169.254.169.254" && c.machine:
		body = `{"access_token":"of the machine","expires_in":3600}`
	default:
		return nil, errors.New("nobody there")
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// account returns the text of a credentials file of a user.
func account(token string) string {
	return fmt.Sprintf(`{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":%q}`, token)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func services(t *testing.T, c *cloud) gcp.Services {
	return gcp.Services{Dir: t.TempDir(), Home: t.TempDir(), Transport: c, Now: func() time.Time { return time.Unix(1e9, 0) }, Run: sys.NoChildren}
}

// The first source that has credentials is used: the argument, the file in the variable, gcloud's
// own file, the metadata server.
func TestOrderOfPlaces(t *testing.T) {
	c := &cloud{machine: true}
	s := services(t, c)
	s.Env = sys.Env{"GOOGLE_APPLICATION_CREDENTIALS=named.json"}
	write(t, filepath.Join(s.Dir, "named.json"), account("of the variable"))
	gcloud := write(t, filepath.Join(s.Home, ".config/gcloud/application_default_credentials.json"), account("of gcloud"))
	o := gcp.Options{Credentials: account("of the argument"), AccessToken: "as it is"}
	for _, step := range []struct {
		want string
		next func()
	}{
		{"as it is", func() { o.AccessToken = "" }},
		{"of the argument", func() { o.Credentials = "" }},
		{"of the variable", func() { s.Env = nil }},
		{"of gcloud", func() { _ = os.Remove(gcloud) }},
		{"of the machine", func() { c.machine = false }},
	} {
		got, err := gcp.Open(o, s).Token(t.Context())
		if err != nil || got != step.want {
			t.Errorf("the token is %q, want %q; %v", got, step.want, err)
		}
		step.next()
	}
	if _, err := gcp.Open(o, s).Token(t.Context()); !errors.Is(err, gcp.ErrNone) || !gcp.Lasting(err) {
		t.Errorf("without credentials the error is %v", err)
	}
}

// A token is used until one minute before its expiry.
func TestTokenIsKept(t *testing.T) {
	c := &cloud{machine: true}
	s := services(t, c)
	now := time.Unix(1e9, 0)
	s.Now = func() time.Time { return now }
	session := gcp.Open(gcp.Options{}, s)
	asked := func() int {
		t.Helper()
		before := len(c.requests)
		if _, err := session.Token(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(c.requests) - before
	}
	if asked() == 0 {
		t.Error("nobody was asked for the first token")
	}
	if now = now.Add(58 * time.Minute); asked() != 0 {
		t.Error("a token that lasts was asked for again")
	}
	if now = now.Add(90 * time.Second); asked() == 0 {
		t.Error("a token that ends was not renewed")
	}
}

// The token of the credentials is used to impersonate another service account.
func TestImpersonation(t *testing.T) {
	c := &cloud{}
	session := gcp.Open(gcp.Options{Credentials: account("mine"), Impersonate: "robot@example.com"}, services(t, c))
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://example.com", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Prepare(t.Context(), r, nil); err != nil || r.Header.Get("Authorization") != "Bearer of another" {
		t.Errorf("%v, %v", r.Header, err)
	}
	if last := c.requests[len(c.requests)-1]; last != "POST iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/robot@example.com:generateAccessToken mine" {
		t.Error(last)
	}
}

// Rejected or unreadable credentials are not retried, and their text is not shown.
func TestLasting(t *testing.T) {
	for _, credentials := range []string{account("revoked"), `{"type":"secret-thing"`, `{"type":"unknown"}`, "no-such-file"} {
		_, err := gcp.Open(gcp.Options{Credentials: credentials}, services(t, &cloud{})).Token(t.Context())
		if !gcp.Lasting(err) || strings.Contains(err.Error(), "secret-thing") {
			t.Errorf("%s: %v", credentials, err)
		}
	}
}

// A program that prints tokens only runs if the environment of the session allows it.
func TestProgramsAreAllowed(t *testing.T) {
	credentials := `{"type":"external_account","audience":"me","subject_token_type":"urn:ietf:params:oauth:token-type:id_token","token_url":"https://sts.googleapis.com/v1/token","credential_source":{"executable":{"command":"give tokens"}}}`
	for env, want := range map[string]bool{"": false, "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1": true} {
		ran := false
		s := services(t, &cloud{})
		s.Env = sys.Env{env}
		s.Run = func(_ context.Context, c sys.Command) error {
			ran = c.Path == "give" && sys.Env(c.Env).Get("GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE") == "me"
			return errors.New("enough")
		}
		if _, err := gcp.Open(gcp.Options{Credentials: credentials}, s).Token(t.Context()); err == nil || ran != want {
			t.Errorf("with %q the program ran: %v; %v", env, ran, err)
		}
	}
}
