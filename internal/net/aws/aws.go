// Package aws makes signed requests to AWS and to services that speak its protocols,
// with credentials from every place that the tools of AWS look in.
//
// Main types: Options, Session and Services. The one rule: nothing is read from the
// process itself. Profiles, roles, single sign-on, containers and machines are those
// of the environment and the home folder that the caller gives, so that many units
// with different environments can run in one process.
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

// Services are the effects that a session uses. All but Renew are required.
type Services struct {
	Env sys.Env
	// Renew gives the environment again, with keys that do not end before the returned
	// time (zero: while the process lasts); nil: it stays as it is.
	Renew     func(ctx context.Context) (sys.Env, time.Time, error)
	Dir, Home string
	Now       func() time.Time
	Run       func(ctx context.Context, c sys.Command) error
	Transport *http.Transport // used as it is where nothing is set that changes it
}

// Options say whose credentials are used, and how services are reached. The zero
// value takes all of it from the environment.
type Options struct {
	Region                         string
	AccessKey, SecretKey, Token    string
	Profile                        string
	ConfigFiles, CredentialFiles   []string
	AssumeRole                     []Role // one after another
	WebIdentity                    *WebIdentity
	STSEndpoint, STSRegion         string
	SkipMetadata                   *bool // nil: as the environment says
	MetadataEndpoint, MetadataMode string
	Insecure                       bool
	CABundle                       string // a file
	HTTPProxy, HTTPSProxy, NoProxy *string
	MaxRetries                     int
	FIPS, DualStack                bool
}

// A Role is one to assume. The zero value of all but ARN leaves it to the service.
type Role struct {
	ARN, ExternalID, Policy, SessionName string
	Duration                             time.Duration
	PolicyARNs                           []string
	Tags                                 map[string]string
	TransitiveTagKeys                    []string
}

// A WebIdentity is a token of another identity provider, to be traded for a role.
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

// ErrNoRegion says that no place names a region.
var ErrNoRegion = errors.New("no region is set: neither in the configuration nor in AWS_REGION, AWS_DEFAULT_REGION or the profile")

// ErrCABundle is wrapped by errors about the file of certificates.
var ErrCABundle = errors.New("the file of certificates cannot be used")

// Open finds where the credentials come from. Nothing is sent.
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

// expiryWindow is how long before their end credentials are renewed.
const expiryWindow = 2 * time.Minute

// httpClient is a client with the TLS settings and the proxy of the options.
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

// expand replaces a leading "~".
func expand(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		return home + rest
	}
	return path
}

// Credentials are the ones in force, renewed where they are about to expire.
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

// Sign signs a request for a service of a region; sum is the checksum of its body.
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

// Suffix is the domain of the services of a region.
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

// Endpoint is the address of a service in the session's region, unless one is given,
// or named by one of the variables.
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

// AccountID is the account that the credentials belong to.
func (s *Session) AccountID(ctx context.Context) (string, error) {
	client := stsClient(s.o, s.s, s.HTTP, s.Region, s.creds)
	out, err := client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", errors.New(Line(err))
	}
	return awssdk.ToString(out.Account), nil
}

// An APIError is what a service answered in place of a result.
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

// JSONError reads an error of the protocols awsJson1.0 and 1.1.
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

// Line is what an error of the vendor's clients says, in one line: the answer of the
// service where there is one, else the innermost cause.
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
