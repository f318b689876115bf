// Package aws sends signed requests to AWS and to services with its protocols, with credentials
// from every source that the tools of AWS search.
//
// Main types: Options, Session and Services. The one rule: nothing is read from the process
// itself. Profiles, roles, single sign-on, containers and machines are those of the environment
// and the home directory that the caller passes, so that units with different environments can
// run in one process.
package aws

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"golang.org/x/net/http/httpproxy"
)

// Services contains the external services that a session uses. All except Renew are required.
type Services struct {
	Env sys.Env
	// Renew returns the current environment, and the time until which its keys are valid; zero
	// means until the process ends. nil means that Env does not change.
	Renew     func(ctx context.Context) (sys.Env, time.Time, error)
	Dir, Home string
	Now       func() time.Time
	Run       func(ctx context.Context, c sys.Command) error
	Transport *http.Transport // used unchanged unless an option changes it
}

// Options configures the credentials and the connections. The zero value takes all of them from
// the environment.
type Options struct {
	Region                         string
	AccessKey, SecretKey, Token    string
	Profile                        string
	ConfigFiles, CredentialFiles   []string
	AssumeRole                     []Role // assumed one after another
	WebIdentity                    *WebIdentity
	STSEndpoint, STSRegion         string
	SkipMetadata                   *bool // nil means that the environment decides
	MetadataEndpoint, MetadataMode string
	Insecure                       bool
	CABundle                       string // path of a file
	HTTPProxy, HTTPSProxy, NoProxy *string
	MaxRetries                     int
	FIPS, DualStack                bool
}

// A Role is a role to assume. Zero values of fields other than ARN are the service's defaults.
type Role struct {
	ARN, ExternalID, Policy, SessionName string
	Duration                             time.Duration
	PolicyARNs                           []string
	Tags                                 map[string]string
	TransitiveTagKeys                    []string
}

// A WebIdentity is a token of another identity provider, which is exchanged for a role.
type WebIdentity struct {
	Role
	Token, TokenFile string
}

// A Session has a region and credentials, which it renews. Its methods may be called
// concurrently.
type Session struct {
	Region string
	HTTP   *http.Client

	o      Options
	s      Services
	creds  *awssdk.CredentialsCache
	signer *v4.Signer
}

// ErrNoRegion means that no source specifies a region.
var ErrNoRegion = errors.New("no region is set: neither in the configuration nor in AWS_REGION, AWS_DEFAULT_REGION or the profile")

// ErrCABundle is wrapped by errors about the CA bundle.
var ErrCABundle = errors.New("the file of certificates cannot be used")

// Open determines the source of the credentials. It sends no requests.
func Open(ctx context.Context, o Options, s Services) (*Session, error) {
	client, err := httpClient(o, s)
	if err != nil {
		return nil, err
	}
	out := &Session{o: o, s: s, HTTP: client}
	out.signer = v4.NewSigner(func(so *v4.SignerOptions) { so.DisableURIPathEscaping = true })
	c := chain{o: o, s: s, http: client}
	provider, region, err := c.resolve(ctx)
	if err != nil {
		return nil, err
	}
	out.Region = region
	out.creds = awssdk.NewCredentialsCache(provider, func(co *awssdk.CredentialsCacheOptions) { co.ExpiryWindow = expiryWindow })
	return out, nil
}

// expiryWindow is the time before their expiry at which credentials are renewed.
const expiryWindow = 2 * time.Minute

// httpClient returns a client with the TLS settings and the proxy of the options.
func httpClient(o Options, s Services) (*http.Client, error) {
	bundle := o.CABundle
	if bundle == "" {
		bundle = s.Env.Get("AWS_CA_BUNDLE")
	}
	if bundle == "" && !o.Insecure && o.HTTPProxy == nil && o.HTTPSProxy == nil && o.NoProxy == nil {
		return &http.Client{Transport: s.Transport}, nil
	}
	t := s.Transport.Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.Insecure}
	if bundle != "" {
		pem, err := readfile.Whole(under(s.Dir, expand(bundle, s.Home)))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCABundle, err)
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: there is no certificate in PEM form in it", ErrCABundle)
		}
	}
	if o.HTTPProxy != nil || o.HTTPSProxy != nil || o.NoProxy != nil {
		get := func(set *string, names ...string) string {
			if set != nil {
				return *set
			}
			for _, n := range names {
				if v := s.Env.Get(n); v != "" {
					return v
				}
			}
			return ""
		}
		p := httpproxy.Config{
			HTTPProxy:  get(o.HTTPProxy, "HTTP_PROXY", "http_proxy"),
			HTTPSProxy: get(o.HTTPSProxy, "HTTPS_PROXY", "https_proxy"),
			NoProxy:    get(o.NoProxy, "NO_PROXY", "no_proxy"),
		}
		f := p.ProxyFunc()
		t.Proxy = func(r *http.Request) (*url.URL, error) { return f(r.URL) }
	}
	return &http.Client{Transport: t}, nil
}

func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// expand replaces a leading "~" by the home directory.
func expand(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		return home + rest
	}
	return path
}

// Credentials returns the current credentials. It renews them if they are about to expire.
func (s *Session) Credentials(ctx context.Context) (awssdk.Credentials, error) {
	c, err := s.creds.Retrieve(ctx)
	if errors.Is(err, ErrNoCredentials) {
		return c, ErrNoCredentials
	}
	if err != nil {
		return c, fmt.Errorf("no valid credentials: %s", Line(err))
	}
	return c, nil
}

// Sign signs a request for a service in a region. sum is the checksum of the request's body.
func (s *Session) Sign(ctx context.Context, r *http.Request, sum [sha256.Size]byte, service, region string) error {
	c, err := s.Credentials(ctx)
	if err != nil {
		return err
	}
	hash := hex.EncodeToString(sum[:])
	if service == "s3" {
		r.Header.Set("X-Amz-Content-Sha256", hash)
	}
	return s.signer.SignHTTP(ctx, c, r, hash, service, region, s.s.Now(), func(so *v4.SignerOptions) { so.DisableURIPathEscaping = service == "s3" })
}

// Suffix returns the domain of the services in a region.
func Suffix(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "amazonaws.com.cn"
	case strings.HasPrefix(region, "us-iso-"):
		return "c2s.ic.gov"
	case strings.HasPrefix(region, "us-isob-"):
		return "sc2s.sgov.gov"
	case strings.HasPrefix(region, "eu-isoe-"):
		return "cloud.adc-e.uk"
	case strings.HasPrefix(region, "us-isof-"):
		return "csp.hci.ic.gov"
	case strings.HasPrefix(region, "eusc-"):
		return "amazonaws.eu"
	}
	return "amazonaws.com"
}

// Endpoint returns the URL of a service in the session's region. A given URL and one in the
// environment variables env take precedence.
func (s *Session) Endpoint(service, given string, env ...string) string {
	for _, n := range append(env, "AWS_ENDPOINT_URL_"+strings.ToUpper(service), "AWS_ENDPOINT_URL") {
		if given == "" {
			given = s.s.Env.Get(n)
		}
	}
	if given != "" {
		if !strings.Contains(given, "://") {
			given = "https://" + given
		}
		return strings.TrimSuffix(given, "/")
	}
	if s.o.FIPS {
		service += "-fips"
	}
	suffix := Suffix(s.Region)
	if s.o.DualStack {
		suffix = "api.aws"
	}
	return "https://" + service + "." + s.Region + "." + suffix
}

// AccountID returns the account of the credentials.
func (s *Session) AccountID(ctx context.Context) (string, error) {
	client := stsClient(s.o, s.s, s.HTTP, s.Region, s.creds)
	out, err := client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", errors.New(Line(err))
	}
	return awssdk.ToString(out.Account), nil
}

// An APIError is an error response of a service.
type APIError struct {
	Status  int
	Code    string
	Message string
}

func (e *APIError) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

// JSONError parses an error of the protocols awsJson1.0 and 1.1.
func JSONError(status int, body []byte) *APIError {
	var doc struct {
		Type     string `json:"__type"`
		Message  string `json:"message"`
		Message2 string `json:"Message"`
	}
	e := &APIError{Status: status, Code: http.StatusText(status)}
	if json.Unmarshal(body, &doc) == nil && doc.Type != "" {
		_, code, ok := strings.Cut(doc.Type, "#")
		if !ok {
			code = doc.Type
		}
		e.Code, e.Message = code, doc.Message+doc.Message2
	}
	return e
}

// Line returns the message of an error of AWS's clients in one line: the response of the service,
// or otherwise the innermost cause.
func Line(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode() + ": " + api.ErrorMessage()
	}
	for {
		next := errors.Unwrap(err)
		if next == nil || next.Error() == "" {
			break
		}
		err = next
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
