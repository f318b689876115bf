package azure_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/azure"
)

func services(t *testing.T) azure.Services {
	return azure.Services{Dir: t.TempDir(), Transport: &http.Transport{}, Run: sys.NoChildren, Now: func() time.Time { return time.Unix(1e9, 0) }}
}

// The options alone determine the way to log in.
func TestWay(t *testing.T) {
	o := azure.Options{Certificate: "x", Secret: "x", OIDC: true, ServiceConnection: "x", ManagedIdentity: true, WorkloadIdentity: true, Tool: true}
	for _, step := range []struct {
		want string
		next func()
	}{
		{"a client certificate", func() { o.Certificate = "" }},
		{"a client secret", func() { o.Secret = "" }},
		{"OIDC of Azure DevOps", func() { o.ServiceConnection = "" }},
		{"OIDC", func() { o.OIDC = false }},
		{"a managed identity", func() { o.ManagedIdentity = false }},
		{"workload identity", func() { o.WorkloadIdentity = false }},
		{"az", func() { o.Tool = false }},
		{"", func() {}},
	} {
		if got := o.Way(); got != step.want {
			t.Errorf("the way is %q, want %q", got, step.want)
		}
		step.next()
	}
	var e *azure.TokenError
	if _, err := azure.Open(o, services(t)).Token(t.Context(), "https://storage.azure.com"); !errors.Is(err, azure.ErrNone) || !errors.As(err, &e) {
		t.Errorf("without a way the error is %v", err)
	}
}

// az returns a token for each resource, which is cached until two minutes before its expiry.
func TestTool(t *testing.T) {
	s := services(t)
	now := time.Unix(1e9, 0)
	s.Now = func() time.Time { return now }
	var ran [][]string
	var failure error
	s.Run = func(_ context.Context, c sys.Command) error {
		ran = append(ran, append([]string{c.Path}, c.Args...))
		if failure != nil {
			_, _ = io.WriteString(c.Stderr, "Please run az login\nmore")
			return failure
		}
		_, err := io.WriteString(c.Stdout, `{"accessToken":"`+c.Args[5]+`","expires_on":1000003600}`)
		return err
	}
	session := azure.Open(azure.Options{Tool: true, Tenant: "t"}, s)
	for _, step := range []struct {
		resource string
		after    time.Duration
		runs     int
	}{
		{"https://storage.azure.com", 0, 1}, {"https://vault.azure.net/", 0, 2},
		{"https://storage.azure.com", 57 * time.Minute, 2}, {"https://storage.azure.com", 59 * time.Minute, 3},
	} {
		now = time.Unix(1e9, 0).Add(step.after)
		got, err := session.Token(t.Context(), step.resource)
		if want := strings.TrimSuffix(step.resource, "/") + "/.default"; err != nil || got != want || len(ran) != step.runs {
			t.Errorf("%s after %s: %q after %d runs, want %d; %v", step.resource, step.after, got, len(ran), step.runs, err)
		}
	}
	if want := []string{"az", "account", "get-access-token", "--output", "json", "--scope", "https://storage.azure.com/.default", "--tenant", "t"}; !slices.Equal(ran[0], want) {
		t.Error(ran[0])
	}
	failure = errors.New("exit status 1")
	if _, err := session.Token(t.Context(), "other"); !errors.Is(err, azure.ErrNone) || !strings.HasSuffix(err.Error(), "Please run az login)") {
		t.Errorf("%v", err)
	}
}

// The environment of the session determines the endpoint of a managed identity.
func TestManagedIdentity(t *testing.T) {
	status, answer := http.StatusOK, `{"access_token":"token","expires_on":"1000003600"}`
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("WWW-Authenticate", "Basic realm=/etc/secrets/other.key")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	token := func(env ...string) error {
		s := services(t)
		s.Env = env
		text, err := azure.Open(azure.Options{ManagedIdentity: true, Client: "me"}, s).Token(t.Context(), "https://storage.azure.com")
		if err == nil && text != "token" {
			t.Errorf("the token is %q", text)
		}
		return err
	}
	service := []string{"IDENTITY_ENDPOINT=" + server.URL, "IDENTITY_HEADER=proof"}
	if err := token(service...); err != nil {
		t.Fatal(err)
	}
	if q := got.URL.Query(); got.Header.Get("X-Identity-Header") != "proof" || q.Get("resource") != "https://storage.azure.com" || q.Get("client_id") != "me" {
		t.Errorf("%v %v", got.Header, got.URL)
	}
	status, answer = http.StatusTooManyRequests, `{"error_description":"wait"}`
	if err := token(service...); !errors.Is(err, azure.ErrBusy) {
		t.Errorf("a busy service: %v", err)
	}
	status = http.StatusBadRequest
	if err := token(service...); err == nil || errors.Is(err, azure.ErrBusy) || !strings.Contains(err.Error(), "400 wait") {
		t.Errorf("a service that refuses: %v", err)
	}
	// The agent of Azure Arc names a file with a secret. Only files in its own directory are
	// accepted.
	if err := token("IDENTITY_ENDPOINT="+server.URL, "IMDS_ENDPOINT="+server.URL); err == nil || !strings.Contains(err.Error(), "not its own") {
		t.Errorf("a file anywhere is sent: %v", err)
	}
}

// An error of an unanswered request contains the host and wraps the network error.
func TestNoAnswer(t *testing.T) {
	s := services(t)
	broken := errors.New("broken")
	s.Transport = unreachable{broken}
	var e *azure.NetworkError
	_, err := azure.Open(azure.Options{Tenant: "t", Client: "c", Secret: "planted", Login: "login.example.com"}, s).Token(t.Context(), "https://storage.azure.com")
	if !errors.As(err, &e) || e.Host != "login.example.com" || !errors.Is(err, broken) || strings.Contains(err.Error(), "planted") {
		t.Errorf("%v", err)
	}
}

type unreachable struct{ err error }

func (u unreachable) RoundTrip(*http.Request) (*http.Response, error) { return nil, u.err }
