package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sso"
	"github.com/aws/aws-sdk-go-v2/service/ssooidc"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
)

// # Sources of credentials
//
// In order: the configuration, the environment, the profile (keys, a role with the credentials of
// another profile, web identity, single sign-on, a program), the container, and the machine. Then
// the roles are assumed one after another. AWS's own providers are used, but not its chain,
// because that reads the environment of the process.
// https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html

// ErrNoCredentials means that no source has credentials.
var ErrNoCredentials = errors.New("no credentials were found: neither in the configuration, the environment, the profile, nor from a container or a machine")

type chain struct {
	o    Options
	s    Services
	http *http.Client
}

func (c *chain) env(names ...string) string {
	for _, n := range names {
		if v := c.s.Env.Get(n); v != "" {
			return v
		}
	}
	return ""
}

// resolve returns the provider of the credentials, and the region.
func (c *chain) resolve(ctx context.Context) (awssdk.CredentialsProvider, string, error) {
	region := first(c.o.Region, c.env("AWS_REGION", "AWS_DEFAULT_REGION"))
	shared, err := c.profile(ctx)
	if err != nil {
		return nil, "", err
	}
	if shared != nil && region == "" {
		region = shared.Region
	}
	if region == "" {
		return nil, "", ErrNoRegion
	}
	base, err := c.base(shared, region)
	if err != nil {
		return nil, "", err
	}
	if w := c.o.WebIdentity; w != nil {
		if base, err = c.webIdentity(*w, region); err != nil {
			return nil, "", err
		}
	}
	for _, r := range c.o.AssumeRole {
		base = c.role(r, awssdk.NewCredentialsCache(base), region)
	}
	return base, region, nil
}

// base returns the provider of the credentials before the roles of the configuration are assumed.
func (c *chain) base(shared *config.SharedConfig, region string) (awssdk.CredentialsProvider, error) {
	if c.o.AccessKey != "" || c.o.SecretKey != "" {
		return credentials.NewStaticCredentialsProvider(c.o.AccessKey, c.o.SecretKey, c.o.Token), nil
	}
	if c.o.Profile == "" {
		if id := c.env("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY"); id != "" {
			return renewed{c}, nil
		}
		if file, role := c.env("AWS_WEB_IDENTITY_TOKEN_FILE"), c.env("AWS_ROLE_ARN"); file != "" && role != "" {
			return c.webIdentity(WebIdentity{Role: Role{ARN: role, SessionName: c.env("AWS_ROLE_SESSION_NAME")}, TokenFile: file}, region)
		}
	}
	if shared != nil {
		p, err := c.fromProfile(shared, region)
		if p != nil || err != nil {
			return p, err
		}
	}
	return c.ambient(shared)
}

// renewed provides the keys in the environment, and requests new ones before they expire.
type renewed struct{ c *chain }

func (r renewed) Retrieve(ctx context.Context) (awssdk.Credentials, error) {
	now := *r.c
	var until time.Time
	if now.s.Renew != nil {
		var err error
		if now.s.Env, until, err = now.s.Renew(ctx); err != nil {
			return awssdk.Credentials{}, err
		}
	}
	static := credentials.NewStaticCredentialsProvider(now.env("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY"), now.env("AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"), now.env("AWS_SESSION_TOKEN"))
	out, err := static.Retrieve(ctx)
	if !until.IsZero() {
		out.CanExpire, out.Expires = true, until.Add(expiryWindow)
	}
	return out, err
}

// ambient returns the provider of the container or, without one, of the machine.
func (c *chain) ambient(shared *config.SharedConfig) (awssdk.CredentialsProvider, error) {
	if p, err := c.container(); p != nil || err != nil {
		return p, err
	}
	return c.machine(shared)
}

// profile returns the selected profile. It returns nil if none was named and there is no default
// profile.
func (c *chain) profile(ctx context.Context) (*config.SharedConfig, error) {
	name := first(c.o.Profile, c.env("AWS_PROFILE", "AWS_DEFAULT_PROFILE"))
	files, creds := c.files(c.o.ConfigFiles, "AWS_CONFIG_FILE", "config"), c.files(c.o.CredentialFiles, "AWS_SHARED_CREDENTIALS_FILE", "credentials")
	shared, err := config.LoadSharedConfigProfile(ctx, first(name, "default"), func(o *config.LoadSharedConfigOptions) { o.ConfigFiles, o.CredentialsFiles = files, creds })
	var missing config.SharedConfigProfileNotExistError
	switch {
	case errors.As(err, &missing) && name == "":
		return nil, nil
	case errors.As(err, &missing):
		return nil, fmt.Errorf("there is no profile %q in %s", name, strings.Join(slices.Concat(files, creds), " or "))
	case err != nil:
		return nil, errors.New(Line(err))
	}
	return &shared, nil
}

func (c *chain) files(given []string, variable, name string) []string {
	if len(given) == 0 {
		if v := c.env(variable); v != "" {
			given = []string{v}
		}
	}
	if len(given) == 0 {
		return []string{filepath.Join(c.s.Home, ".aws", name)}
	}
	out := make([]string, len(given))
	for i, f := range given {
		out[i] = under(c.s.Dir, expand(f, c.s.Home))
	}
	return out
}

// fromProfile returns the provider of a profile, or nil if the profile has no credentials.
func (c *chain) fromProfile(p *config.SharedConfig, region string) (awssdk.CredentialsProvider, error) {
	var base awssdk.CredentialsProvider
	var err error
	switch {
	case p.Source != nil:
		base, err = c.fromProfile(p.Source, region)
	case p.Credentials.HasKeys():
		base = credentials.StaticCredentialsProvider{Value: p.Credentials}
	case p.SSOSession != nil || p.SSOStartURL != "":
		base, err = c.sso(p)
	case p.WebIdentityTokenFile != "":
		return c.webIdentity(WebIdentity{Role: Role{ARN: p.RoleARN, SessionName: p.RoleSessionName}, TokenFile: expand(p.WebIdentityTokenFile, c.s.Home)}, region)
	case p.CredentialProcess != "":
		base = process{c, p.CredentialProcess}
	case p.CredentialSource != "":
		switch p.CredentialSource {
		case "Environment":
			base = credentials.NewStaticCredentialsProvider(c.env("AWS_ACCESS_KEY_ID"), c.env("AWS_SECRET_ACCESS_KEY"), c.env("AWS_SESSION_TOKEN"))
		case "EcsContainer":
			base, err = c.container()
		case "Ec2InstanceMetadata":
			base, err = c.machine(p)
		default:
			err = fmt.Errorf("the profile %q has the credential_source %q, which is none of Environment, EcsContainer and Ec2InstanceMetadata", p.Profile, p.CredentialSource)
		}
	}
	if err != nil || p.RoleARN == "" {
		return base, err
	}
	if base == nil {
		return nil, fmt.Errorf("the profile %q assumes a role, and nothing says with whose credentials", p.Profile)
	}
	if p.MFASerial != "" {
		return nil, fmt.Errorf("the profile %q assumes a role with a second factor (mfa_serial), which nobody can type here; get credentials for the session first, for example with \"aws configure export-credentials\"", p.Profile)
	}
	r := Role{ARN: p.RoleARN, ExternalID: p.ExternalID, SessionName: p.RoleSessionName}
	if p.RoleDurationSeconds != nil {
		r.Duration = *p.RoleDurationSeconds
	}
	return c.role(r, awssdk.NewCredentialsCache(base), region), nil
}

func stsClient(o Options, s Services, client *http.Client, region string, creds awssdk.CredentialsProvider) *sts.Client {
	so := sts.Options{Region: first(o.STSRegion, region), HTTPClient: client, Credentials: creds, Retryer: retryer(o)}
	if so.Credentials == nil {
		so.Credentials = awssdk.AnonymousCredentials{}
	}
	if o.FIPS {
		so.EndpointOptions.UseFIPSEndpoint = awssdk.FIPSEndpointStateEnabled
	}
	where := o.STSEndpoint
	for _, n := range []string{"AWS_ENDPOINT_URL_STS", "AWS_STS_ENDPOINT", "AWS_ENDPOINT_URL"} {
		where = first(where, s.Env.Get(n))
	}
	if where != "" {
		if !strings.Contains(where, "://") {
			where = "https://" + where
		}
		so.BaseEndpoint = &where
	}
	return sts.New(so)
}

func retryer(o Options) awssdk.Retryer {
	n := o.MaxRetries
	if n == 0 {
		n = 5
	}
	return retry.AddWithMaxAttempts(retry.NewStandard(), n+1)
}

func (c *chain) role(r Role, base awssdk.CredentialsProvider, region string) awssdk.CredentialsProvider {
	return stscreds.NewAssumeRoleProvider(stsClient(c.o, c.s, c.http, region, base), r.ARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = first(r.SessionName, fmt.Sprintf("terrace-%d", c.s.Now().UnixNano()))
		o.ExternalID, o.Policy = pointer(r.ExternalID), pointer(r.Policy)
		if r.Duration > 0 {
			o.Duration = r.Duration
		}
		o.PolicyARNs, o.TransitiveTagKeys = policies(r.PolicyARNs), r.TransitiveTagKeys
		for _, k := range sortedKeys(r.Tags) {
			v := r.Tags[k]
			o.Tags = append(o.Tags, types.Tag{Key: &k, Value: &v})
		}
	})
}

func (c *chain) webIdentity(w WebIdentity, region string) (awssdk.CredentialsProvider, error) {
	w.ARN = first(w.ARN, c.env("AWS_ROLE_ARN"))
	if w.ARN == "" {
		return nil, errors.New("a web identity needs a role_arn")
	}
	return stscreds.NewWebIdentityRoleProvider(stsClient(c.o, c.s, c.http, region, nil), w.ARN, identity{w.Token, under(c.s.Dir, w.TokenFile)}, func(o *stscreds.WebIdentityRoleOptions) {
		o.RoleSessionName = first(w.SessionName, c.env("AWS_ROLE_SESSION_NAME"), fmt.Sprintf("terrace-%d", c.s.Now().UnixNano()))
		o.Policy, o.PolicyARNs = pointer(w.Policy), policies(w.PolicyARNs)
		if w.Duration > 0 {
			o.Duration = w.Duration
		}
	}), nil
}

// An identity is a token, or the path of a file that contains it. The file is read each time.
type identity struct{ token, file string }

func (i identity) GetIdentityToken() ([]byte, error) {
	if i.token != "" {
		return []byte(i.token), nil
	}
	return readfile.Whole(i.file)
}

func (c *chain) sso(p *config.SharedConfig) (awssdk.CredentialsProvider, error) {
	start, region, key := p.SSOStartURL, p.SSORegion, p.SSOStartURL
	if p.SSOSession != nil {
		start, region, key = p.SSOSession.SSOStartURL, p.SSOSession.SSORegion, p.SSOSession.Name
	}
	file, err := ssocreds.StandardCachedTokenFilepath(key)
	if err != nil {
		return nil, errors.New(Line(err))
	}
	file = filepath.Join(c.s.Home, ".aws", "sso", "cache", filepath.Base(file)) // AWS's function uses the home directory of the process
	oo := ssooidc.Options{Region: region, HTTPClient: c.http, Retryer: retryer(c.o)}
	so := sso.Options{Region: region, HTTPClient: c.http, Retryer: retryer(c.o)}
	if where := c.env("AWS_ENDPOINT_URL_SSO", "AWS_SSO_ENDPOINT"); where != "" {
		so.BaseEndpoint = &where
	}
	if where := c.env("AWS_ENDPOINT_URL_SSO_OIDC"); where != "" {
		oo.BaseEndpoint = &where
	}
	return signOn{p.Profile, ssocreds.New(sso.New(so), p.SSOAccountID, p.SSORoleName, start, func(o *ssocreds.Options) {
		o.CachedTokenFilepath = file
		if p.SSOSession != nil {
			o.SSOTokenProvider = ssocreds.NewSSOTokenProvider(ssooidc.New(oo), file)
		}
	})}, nil
}

// A signOn provides the credentials of a profile with single sign-on, for which the user has to
// log in with a browser.
type signOn struct {
	profile string
	role    awssdk.CredentialsProvider
}

func (o signOn) Retrieve(ctx context.Context) (awssdk.Credentials, error) {
	c, err := o.role.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("the single sign-on of the profile %q gives no credentials (%s); sign on with \"aws sso login --profile %[1]s\"", o.profile, Line(err))
	}
	return c, err
}

// container returns the provider for the endpoint that ECS and EKS offer to containers, or nil if
// there is none.
func (c *chain) container() (awssdk.CredentialsProvider, error) {
	where := c.env("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if rel := c.env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); rel != "" {
		where = "http://169.254.170.2" + rel
	}
	if where == "" {
		return nil, nil
	}
	return endpointcreds.New(where, func(o *endpointcreds.Options) {
		o.HTTPClient, o.Retryer = c.http, retryer(c.o)
		o.AuthorizationToken = c.env("AWS_CONTAINER_AUTHORIZATION_TOKEN")
		if file := c.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
			o.AuthorizationTokenProvider = endpointcreds.TokenProviderFunc(func() (string, error) {
				b, err := readfile.Whole(file)
				return string(bytes.TrimSpace(b)), err
			})
		}
	}), nil
}

// machine returns the provider for the metadata service, which only machines of AWS have.
func (c *chain) machine(p *config.SharedConfig) (awssdk.CredentialsProvider, error) {
	off := strings.EqualFold(c.env("AWS_EC2_METADATA_DISABLED"), "true")
	if c.o.SkipMetadata != nil {
		off = *c.o.SkipMetadata
	}
	if off {
		return missing{}, nil
	}
	client := *c.http
	if t, ok := client.Transport.(*http.Transport); ok { // the service is not reachable by a proxy
		t = t.Clone()
		t.Proxy, t.DisableKeepAlives = nil, true
		client.Transport = t
	}
	io := imds.Options{HTTPClient: &client, ClientEnableState: imds.ClientEnabled}
	if c.http.Transport == c.s.Transport { // on other machines the request must fail quickly
		client.Timeout = 2 * time.Second
		io.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 2, 300*time.Millisecond })
	}
	io.Endpoint = first(c.o.MetadataEndpoint, c.env("AWS_EC2_METADATA_SERVICE_ENDPOINT"))
	mode := first(c.o.MetadataMode, c.env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"))
	if io.Endpoint == "" && p != nil {
		io.Endpoint = p.EC2IMDSEndpoint
		if mode == "" {
			io.EndpointMode = p.EC2IMDSEndpointMode
		}
	}
	if mode != "" {
		if err := io.EndpointMode.SetFromString(mode); err != nil {
			return nil, errors.New(Line(err))
		}
	}
	return machine{ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = imds.New(io) })}, nil
}

// A machine provides the credentials of the machine's role. On other machines nothing answers, or
// another server does, so every error means that there are no credentials.
type machine struct{ role awssdk.CredentialsProvider }

func (m machine) Retrieve(ctx context.Context) (awssdk.Credentials, error) {
	c, err := m.role.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		err = ErrNoCredentials
	}
	return c, err
}

// missing is a provider without credentials.
type missing struct{}

func (missing) Retrieve(context.Context) (awssdk.Credentials, error) {
	return awssdk.Credentials{}, ErrNoCredentials
}

// A process provides the credentials of the program in credential_process.
// https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html
type process struct {
	c       *chain
	command string
}

func (p process) Retrieve(ctx context.Context) (awssdk.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var out, wrong bytes.Buffer
	fail := func(why string) (awssdk.Credentials, error) {
		return awssdk.Credentials{}, fmt.Errorf("the credential_process of the profile %s", why)
	}
	command := sys.Command{Path: "/bin/sh", Args: []string{"-c", p.command}, Dir: p.c.s.Dir, Env: p.c.s.Env, Stdout: &out, Stderr: &wrong}
	if filepath.Separator == '\\' {
		command.Path, command.Args = "cmd.exe", []string{"/C", p.command}
	}
	if err := p.c.s.Run(ctx, command); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(wrong.String()), "\n")
		return fail(strings.TrimSpace("failed: " + err.Error() + " " + line))
	}
	var doc struct {
		Version                                    int
		AccessKeyId, SecretAccessKey, SessionToken string
		Expiration                                 *time.Time
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || doc.Version != 1 || doc.AccessKeyId == "" || doc.SecretAccessKey == "" {
		return fail("did not write credentials as JSON of version 1")
	}
	creds := awssdk.Credentials{AccessKeyID: doc.AccessKeyId, SecretAccessKey: doc.SecretAccessKey, SessionToken: doc.SessionToken, Source: "credential_process"}
	if doc.Expiration != nil {
		creds.CanExpire, creds.Expires = true, *doc.Expiration
	}
	return creds, nil
}

func policies(arns []string) []types.PolicyDescriptorType {
	var out []types.PolicyDescriptorType
	for _, a := range arns {
		out = append(out, types.PolicyDescriptorType{Arn: &a})
	}
	return out
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func pointer(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func first(ss ...string) string {
	for _, s := range ss {
		if s != "" {
			return s
		}
	}
	return ""
}
