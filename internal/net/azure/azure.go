// Package azure gets access tokens of Azure in each way that the provider and the backend of that
// name support.
//
// Main types: Options, and Session, returned by Open. The one rule: the options alone determine
// the way to log in, so that a configuration has the same meaning on all machines.
package azure

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
)

// Options configures the login. If several ways are configured, the first of these is used:
// certificate, secret, pipeline, OIDC, managed identity, workload identity, az.
type Options struct {
	Tenant, Client string
	Login          string // host of the authority; "" for that of the public cloud

	Certificate, CertificatePath, CertificatePassword string // PKCS#12, in base64 or as a file
	Secret                                            string

	OIDC                                    bool
	OIDCToken, OIDCTokenPath                string
	OIDCURL, OIDCBearer                     string // endpoint of a CI system for tokens, and its bearer token
	ServiceConnection                       string // service connection of a pipeline of Azure DevOps
	Audience                                string // audience of tokens of CI systems
	ManagedIdentity, WorkloadIdentity, Tool bool
	ManagedEndpoint                         string // replaces MSI_ENDPOINT
	IdentityResource                        string // resource ID of a user-assigned managed identity, instead of Client
}

// Services contains the external services that a Session uses. All are required.
type Services struct {
	Env       sys.Env
	Dir       string
	Transport http.RoundTripper
	Run       func(ctx context.Context, c sys.Command) error
	Now       func() time.Time
}

// ErrNone means that no way to log in is configured.
var ErrNone = errors.New("there are no credentials of Azure")

// ErrBusy means that the token service is overloaded, so that the request may be retried.
var ErrBusy = errors.New("it has too much to do")

// A TokenError is the reason why there is no token. It wraps ErrNone, ErrBusy or the network
// error, if one of them is the cause.
type TokenError struct{ Err error }

func (e *TokenError) Error() string { return "no access token from Azure: " + e.Err.Error() }
func (e *TokenError) Unwrap() error { return e.Err }

// A NetworkError means that a login server did not answer.
type NetworkError struct {
	Host string
	Err  error
}

func (e *NetworkError) Error() string { return e.Host + ": " + e.Err.Error() }
func (e *NetworkError) Unwrap() error { return e.Err }

// NoneAdvice is the advice to the user for ErrNone.
const NoneAdvice = "Set access_key or sas_token, a client with a secret, a certificate or use_oidc, or use_msi, or log in with \"az login\"."

// A Session gets access tokens. Its methods may be called concurrently.
type Session struct {
	o Options
	s Services

	mu     sync.Mutex
	source func(ctx context.Context, scope string) (azcore.AccessToken, error)
	failed error // network error of the last request; nil if it was answered
	got    map[string]azcore.AccessToken
}

// Open returns a Session. It sends no requests and reads no files.
func Open(o Options, s Services) *Session {
	return &Session{o: o, s: s, got: map[string]azcore.AccessToken{}}
}

// Token returns an access token for a resource such as https://storage.azure.com. It renews a
// token before it expires.
func (s *Session) Token(ctx context.Context, resource string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.got[resource]; ok && s.s.Now().Add(2*time.Minute).Before(t.ExpiresOn) {
		return t.Token, nil
	}
	if s.source == nil {
		var err error
		if s.source, err = s.find(); err != nil {
			return "", &TokenError{err}
		}
	}
	s.failed = nil
	t, err := s.source(ctx, strings.TrimSuffix(resource, "/")+"/.default")
	if err != nil {
		if !errors.Is(err, ErrNone) && !errors.Is(err, ErrBusy) {
			err = s.plain(err)
		}
		return "", &TokenError{err}
	}
	s.got[resource] = t
	return t.Token, nil
}

func (s *Session) client() *http.Client {
	return &http.Client{Transport: s.s.Transport, Timeout: time.Minute}
}

// remembering is the transport of the login library. It records network errors, since the library
// only returns their text. The session is locked while it is used.
type remembering struct{ s *Session }

// RoundTrip implements http.RoundTripper.
func (r remembering) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.s.s.Transport.RoundTrip(req)
	if r.s.failed = nil; err != nil {
		r.s.failed = &NetworkError{req.URL.Host, err}
	}
	return resp, err
}

// plain returns an error of the login in one line.
func (s *Session) plain(err error) error {
	if s.failed != nil {
		return s.failed
	}
	return plain(err)
}

// Way returns the name of the way to log in, or "" for none.
func (o Options) Way() string {
	switch {
	case o.Certificate != "" || o.CertificatePath != "":
		return "a client certificate"
	case o.Secret != "":
		return "a client secret"
	case o.OIDC && o.ServiceConnection != "":
		return "OIDC of Azure DevOps"
	case o.OIDC:
		return "OIDC"
	case o.ManagedIdentity:
		return "a managed identity"
	case o.WorkloadIdentity:
		return "workload identity"
	case o.Tool:
		return "az"
	}
	return ""
}

// find returns the function that gets tokens.
func (s *Session) find() (func(ctx context.Context, scope string) (azcore.AccessToken, error), error) {
	// The callers of Token retry too. More retries here would multiply the time that the user
	// waits.
	o := azcore.ClientOptions{Transport: &http.Client{Transport: remembering{s}, Timeout: time.Minute}, Retry: policy.RetryOptions{MaxRetries: 2, RetryDelay: 500 * time.Millisecond, MaxRetryDelay: 5 * time.Second}}
	if s.o.Login != "" {
		host := s.o.Login
		if !strings.Contains(host, "://") {
			host = "https://" + host
		}
		o.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: host + "/", Services: map[cloud.ServiceName]cloud.ServiceConfiguration{}}
	}
	const direct = true // the public authority need not know the configured one
	of := func(c azcore.TokenCredential, err error) (func(context.Context, string) (azcore.AccessToken, error), error) {
		if err != nil {
			return nil, plain(err)
		}
		return func(ctx context.Context, scope string) (azcore.AccessToken, error) {
			return c.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}, TenantID: s.o.Tenant})
		}, nil
	}
	switch {
	case s.o.Certificate != "" || s.o.CertificatePath != "":
		raw, err := s.certificate()
		if err != nil {
			return nil, err
		}
		certs, key, err := azidentity.ParseCertificates(raw, []byte(s.o.CertificatePassword))
		if err != nil {
			return nil, errors.New("the client certificate cannot be read: is it PKCS#12, and the password right?")
		}
		return of(azidentity.NewClientCertificateCredential(s.o.Tenant, s.o.Client, certs, key, &azidentity.ClientCertificateCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: direct}))
	case s.o.Secret != "":
		return of(azidentity.NewClientSecretCredential(s.o.Tenant, s.o.Client, s.o.Secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: direct}))
	case s.o.OIDC, s.o.WorkloadIdentity:
		return of(azidentity.NewClientAssertionCredential(s.o.Tenant, s.o.Client, s.assertion, &azidentity.ClientAssertionCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: direct}))
	case s.o.ManagedIdentity:
		return s.managed, nil
	case s.o.Tool:
		return s.tool, nil
	}
	return nil, ErrNone
}

func (s *Session) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.s.Dir, path)
}

func (s *Session) certificate() ([]byte, error) {
	if s.o.Certificate != "" {
		raw, err := base64.StdEncoding.DecodeString(s.o.Certificate)
		if err != nil {
			return nil, errors.New("the client certificate is not valid base64")
		}
		return raw, nil
	}
	raw, err := readfile.Whole(s.path(s.o.CertificatePath))
	if err != nil {
		return nil, errors.New("the file of the client certificate cannot be read")
	}
	return raw, nil
}

// assertion returns the token of another system that proves the client's identity.
func (s *Session) assertion(ctx context.Context) (string, error) {
	path := s.o.OIDCTokenPath
	if s.o.WorkloadIdentity && path == "" {
		path = s.s.Env.Get("AZURE_FEDERATED_TOKEN_FILE")
	}
	switch {
	case s.o.OIDCToken != "":
		return s.o.OIDCToken, nil
	case path != "":
		b, err := readfile.Whole(s.path(path))
		if err != nil {
			return "", errors.New("the file with the OIDC token cannot be read")
		}
		return strings.TrimSpace(string(b)), nil
	case s.o.OIDCURL == "" || s.o.OIDCBearer == "":
		return "", errors.New("there is no OIDC token: set oidc_token, oidc_token_file_path, or oidc_request_url with oidc_request_token")
	}
	where, err := url.Parse(s.o.OIDCURL)
	if err != nil {
		return "", errors.New("the oidc_request_url is not valid")
	}
	q, method := where.Query(), http.MethodGet
	if s.o.ServiceConnection != "" {
		q.Set("api-version", "7.1")
		q.Set("serviceConnectionId", s.o.ServiceConnection)
		method = http.MethodPost
	} else if q.Get("audience") == "" {
		q.Set("audience", s.o.Audience)
	}
	where.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, method, where.String(), http.NoBody)
	if err != nil {
		return "", errors.New("the oidc_request_url is not valid")
	}
	req.Header = http.Header{"Authorization": {"Bearer " + s.o.OIDCBearer}, "Accept": {"application/json"}, "Content-Type": {"application/json"}}
	resp, err := s.client().Do(req)
	if err != nil {
		return "", plain(err)
	}
	defer resp.Body.Close()
	var out struct{ Value, OIDCToken string }
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(body, &out) != nil || out.Value+out.OIDCToken == "" {
		return "", fmt.Errorf("the CI system gives no OIDC token: it answered %d", resp.StatusCode)
	}
	return out.Value + out.OIDCToken, nil
}

// tool gets a token from the program az.
func (s *Session) tool(ctx context.Context, scope string) (azcore.AccessToken, error) {
	var out, wrong bytes.Buffer
	args := []string{"account", "get-access-token", "--output", "json", "--scope", scope}
	if s.o.Tenant != "" {
		args = append(args, "--tenant", s.o.Tenant)
	}
	if err := s.s.Run(ctx, sys.Command{Path: "az", Args: args, Dir: s.s.Dir, Env: s.s.Env, Stdout: &out, Stderr: &wrong}); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(wrong.String()), "\n")
		return azcore.AccessToken{}, fmt.Errorf("%w (az: %w %s)", ErrNone, err, line)
	}
	var t struct {
		AccessToken string `json:"accessToken"`
		ExpiresOn   int64  `json:"expires_on"`
	}
	if err := json.Unmarshal(out.Bytes(), &t); err != nil || t.AccessToken == "" {
		return azcore.AccessToken{}, errors.New("az has answered something else than a token")
	}
	until := s.s.Now().Add(5 * time.Minute)
	if t.ExpiresOn > 0 {
		until = time.Unix(t.ExpiresOn, 0)
	}
	return azcore.AccessToken{Token: t.AccessToken, ExpiresOn: until}, nil
}

// plain returns an error in one line, without the content of the response.
func plain(err error) error {
	var failed *azidentity.AuthenticationFailedError
	if errors.As(err, &failed) && failed.RawResponse != nil {
		var doc struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		body, _ := io.ReadAll(io.LimitReader(failed.RawResponse.Body, 1<<16)) // the status suffices
		_ = json.Unmarshal(body, &doc)
		line, _, _ := strings.Cut(doc.Description, "\n")
		return fmt.Errorf("the login answered %d %s %s", failed.RawResponse.StatusCode, doc.Error, strings.TrimSpace(line))
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	text, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return errors.New(text)
}
