// Package gcp gets access tokens of Google Cloud from every source of credentials that its tools
// search: an argument, the application default credentials, or the metadata server. It can
// impersonate another service account.
//
// Main types: Options, and Session, returned by Open. The one rule: nothing is read from the
// process itself; the caller passes the environment, directories and connections.
package gcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// Options selects the credentials.
type Options struct {
	Credentials string   // JSON, or the path of a file that contains it; "" means the application default credentials
	AccessToken string   // used unchanged, instead of Credentials
	Impersonate string   // service account to impersonate; "" for none
	Delegates   []string // chain of service accounts to the impersonated one
	Scopes      []string
	Universe    string // domain of the services; "" means googleapis.com
}

// Services contains the external services that a Session uses. All are required.
type Services struct {
	Env       sys.Env
	Dir       string // directory that paths are relative to
	Home      string // home directory; "" if there is none
	Transport http.RoundTripper
	Now       func() time.Time
	// Run runs programs that print tokens.
	Run func(ctx context.Context, c sys.Command) error
}

// ErrNone means that there are no credentials.
var ErrNone = errors.New(strings.TrimSuffix(None+": "+NoneAdvice, "."))

// Parts of the message of ErrNone.
const (
	None       = "there are no credentials of Google Cloud"
	NoneAdvice = "Set GOOGLE_APPLICATION_CREDENTIALS to a file with a service account's key, or run \"gcloud auth application-default login\"."
)

// A Session gets access tokens. Its methods may be called concurrently.
type Session struct {
	o Options
	s Services

	mu     sync.Mutex
	source oauth2.TokenSource // source of tokens of the credentials themselves
	token  *oauth2.Token      // current token
	from   string             // description of the source of the credentials
}

// Open returns a Session. It sends no requests and reads no files.
func Open(o Options, s Services) *Session { return &Session{o: o, s: s} }

// Token returns an access token. It renews a token before it expires.
func (s *Session) Token(ctx context.Context) (string, error) {
	if s.o.AccessToken != "" && s.o.Impersonate == "" {
		return s.o.AccessToken, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != nil && (s.token.Expiry.IsZero() || s.s.Now().Add(time.Minute).Before(s.token.Expiry)) {
		return s.token.AccessToken, nil
	}
	ctx = context.WithoutCancel(ctx) // the source outlives this call
	if s.source == nil {
		var err error
		if s.source, err = s.find(ctx); err != nil {
			return "", lasting{err}
		}
	}
	t, err := s.source.Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode/100 == 4 && refused.Response.StatusCode != http.StatusTooManyRequests:
		return "", lasting{fmt.Errorf("no access token from Google Cloud: %w", plain(err))}
	case err != nil:
		return "", fmt.Errorf("no access token from Google Cloud: %w", plain(err))
	}
	if s.o.Impersonate != "" {
		if t, err = s.impersonate(ctx, t.AccessToken); err != nil {
			return "", err
		}
	}
	s.token = t
	return t.AccessToken, nil
}

// A lasting error would occur again if the call was repeated.
type lasting struct{ error }

func (l lasting) Unwrap() error { return l.error }

// Lasting reports whether repeating Token or Prepare would return the same error: there are no
// credentials, they are unusable, or they are rejected.
func Lasting(err error) bool {
	var l lasting
	return errors.As(err, &l)
}

// Check gets a token and returns a description of the source of the credentials.
func (s *Session) Check(ctx context.Context) (source string, err error) {
	if _, err := s.Token(ctx); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.AccessToken != "" {
		source = "the access token of the configuration"
	} else {
		source = s.from
	}
	if s.o.Impersonate != "" {
		source += ", acting as " + s.o.Impersonate
	}
	if s.token != nil && !s.token.Expiry.IsZero() {
		source += ", until " + s.token.Expiry.UTC().Format(time.RFC3339)
	}
	return source, nil
}

// Prepare adds a token to a request.
func (s *Session) Prepare(ctx context.Context, r *http.Request, _ func() [sha256.Size]byte) error {
	t, err := s.Token(ctx)
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+t)
	}
	return err
}

// Host returns the host of a service such as "storage".
func (s *Session) Host(service string) string {
	if s.o.Universe != "" {
		return service + "." + s.o.Universe
	}
	return service + ".googleapis.com"
}

func (s *Session) client() *http.Client {
	return &http.Client{Transport: s.s.Transport, Timeout: time.Minute}
}

// direct returns a client for servers on this machine or its local network, without a proxy.
func (s *Session) direct() *http.Client { return transfer.Direct(s.client()) }

// find searches for credentials.
func (s *Session) find(ctx context.Context) (oauth2.TokenSource, error) {
	if s.o.AccessToken != "" {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: s.o.AccessToken}), nil
	}
	if s.o.Credentials != "" {
		text, err := s.content(s.o.Credentials)
		if err != nil {
			return nil, err
		}
		s.from = "the argument credentials or its variable"
		return s.fromJSON(ctx, text)
	}
	if path := s.s.Env.Get("GOOGLE_APPLICATION_CREDENTIALS"); path != "" {
		text, err := readfile.Whole(s.path(path))
		if err != nil {
			return nil, fmt.Errorf("the file that GOOGLE_APPLICATION_CREDENTIALS names cannot be read: %w", reason(err))
		}
		s.from = "the file of GOOGLE_APPLICATION_CREDENTIALS"
		return s.fromJSON(ctx, text)
	}
	if path := s.wellKnown(); path != "" {
		text, err := readfile.Whole(path)
		if err == nil {
			s.from = "the application default credentials of gcloud"
			return s.fromJSON(ctx, text)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the credentials of gcloud cannot be read: %w", reason(err))
		}
	}
	m := &metadata{s: s}
	if _, err := m.Token(); err != nil {
		return nil, ErrNone
	}
	s.from = "the metadata server of this machine"
	return m, nil
}

// content returns the JSON in an argument, or in the file that the argument names.
func (s *Session) content(text string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return []byte(text), nil
	}
	b, err := readfile.Whole(s.path(text))
	if err != nil {
		return nil, fmt.Errorf("the credentials are neither JSON nor the path of a file that can be read: %w", reason(err))
	}
	return b, nil
}

func (s *Session) path(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"+string(filepath.Separator)); ok && s.s.Home != "" {
		path = filepath.Join(s.s.Home, rest)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.s.Dir, path)
}

// wellKnown returns the path of gcloud's application default credentials, or "" if it is unknown.
func (s *Session) wellKnown() string {
	const name = "application_default_credentials.json"
	if dir := s.s.Env.Get("CLOUDSDK_CONFIG"); dir != "" {
		return filepath.Join(s.path(dir), name)
	}
	if dir := s.s.Env.Get("APPDATA"); dir != "" {
		return filepath.Join(dir, "gcloud", name)
	}
	if s.s.Home == "" {
		return ""
	}
	return filepath.Join(s.s.Home, ".config", "gcloud", name)
}

// fromJSON returns the token source of a credentials file with the given text.
func (s *Session) fromJSON(ctx context.Context, text []byte) (oauth2.TokenSource, error) {
	var head struct{ Type string }
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, errors.New("the credentials are not valid JSON")
	}
	switch t := google.CredentialsType(head.Type); t {
	case google.ServiceAccount, google.AuthorizedUser, google.ExternalAccount, google.ExternalAccountAuthorizedUser, google.ImpersonatedServiceAccount, google.GDCHServiceAccount:
		ctx = context.WithValue(ctx, oauth2.HTTPClient, s.client())
		if t == google.ExternalAccount {
			if source, err := s.external(ctx, text); err != nil || source != nil {
				return source, err
			}
		}
		c, err := google.CredentialsFromJSONWithTypeAndParams(ctx, text, t, google.CredentialsParams{Scopes: s.o.Scopes, UniverseDomain: s.o.Universe})
		if err != nil {
			return nil, fmt.Errorf("the credentials cannot be used: %w", err)
		}
		return c.TokenSource, nil
	}
	return nil, fmt.Errorf("the credentials have the unknown type %q", head.Type)
}

// impersonate gets a token of the impersonated service account.
func (s *Session) impersonate(ctx context.Context, token string) (*oauth2.Token, error) {
	var delegates []string
	for _, d := range s.o.Delegates {
		delegates = append(delegates, "projects/-/serviceAccounts/"+d)
	}
	in := map[string]any{"scope": s.o.Scopes, "lifetime": "3600s"}
	if len(delegates) > 0 {
		in["delegates"] = delegates
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	where := "https://" + s.Host("iamcredentials") + "/v1/projects/-/serviceAccounts/" + url.PathEscape(s.o.Impersonate) + ":generateAccessToken"
	var out struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
	}
	h := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	if err := s.get(ctx, s.client(), "POST", where, h, body, &out); err != nil {
		return nil, fmt.Errorf("the service account %s cannot be impersonated: %w; the credentials need iam.serviceAccounts.getAccessToken on it (role Service Account Token Creator)", s.o.Impersonate, err)
	}
	return &oauth2.Token{AccessToken: out.AccessToken, Expiry: out.ExpireTime}, nil
}

// get sends a request and decodes the JSON in the response.
func (s *Session) get(ctx context.Context, client *http.Client, method, where string, h http.Header, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, where, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address is not valid")
	}
	req.Header = h
	resp, err := client.Do(req)
	if err != nil {
		return plain(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the service answered %d %s", resp.StatusCode, Message(text))
	}
	return json.Unmarshal(text, out)
}

// Message returns the error message in a response of a service, in one line.
func Message(body []byte) string {
	var doc struct {
		Error struct{ Message string } `json:"error"`
	}
	text := string(body)
	if json.Unmarshal(body, &doc) == nil && doc.Error.Message != "" {
		text = doc.Error.Message
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// metadata gets tokens from the metadata server of the machine.
type metadata struct{ s *Session }

func (m *metadata) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	host := m.s.s.Env.Get("GCE_METADATA_HOST")
	if host == "" {
		host = "169.254.169.254"
	}
	var out struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	where := "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token"
	if len(m.s.o.Scopes) > 0 {
		where += "?scopes=" + url.QueryEscape(strings.Join(m.s.o.Scopes, ","))
	}
	if err := m.s.get(ctx, m.s.direct(), "GET", where, http.Header{"Metadata-Flavor": {"Google"}}, nil, &out); err != nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: out.AccessToken, Expiry: m.s.s.Now().Add(time.Duration(out.ExpiresIn) * time.Second)}, nil
}

// plain returns an error without the URL and the content of the response, which may be secret.
func plain(err error) error {
	var r *oauth2.RetrieveError
	if errors.As(err, &r) {
		if r.ErrorCode != "" {
			return fmt.Errorf("%s: %s", r.ErrorCode, r.ErrorDescription)
		}
		return fmt.Errorf("the service answered %s", r.Response.Status)
	}
	for u := (*url.Error)(nil); errors.As(err, &u); {
		err = u.Err
	}
	// Google's clients include the text of one error in the next.
	text := err.Error()
	if i := strings.LastIndex(text, "\": "); i >= 0 {
		text = text[i+3:]
	}
	text = strings.TrimPrefix(text, "oauth2/google: ")
	if status, body, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(status, "status code ") {
		return fmt.Errorf("the service answered %s %s", strings.TrimPrefix(status, "status code "), Message([]byte(body)))
	}
	if line := Message([]byte(text)); line != err.Error() {
		return errors.New(line)
	}
	return err
}

// reason is an error of the operating system without the path.
func reason(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
