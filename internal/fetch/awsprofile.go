package fetch

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/sys"
)

// # Profiles of the AWS tools
//
// A profile is a section of the shared files: keys, a role to assume with the
// credentials of another profile or of the machine, a single sign-on, or a
// program to ask. https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html

// awsProfile is what a profile gives. wanted says that the user named it; trail
// are the profiles whose roles need it.
func (w *work) awsProfile(ctx context.Context, name string, wanted bool, trail []string) (awsCredentials, error) {
	p, found, err := w.awsSettings(name)
	if err != nil {
		return awsCredentials{}, err
	}
	if !found {
		if wanted {
			return awsCredentials{}, fmt.Errorf("there is no AWS profile %q in the shared configuration files", name)
		}
		return awsCredentials{}, nil
	}
	static := awsCredentials{p["aws_access_key_id"], p["aws_secret_access_key"], p["aws_session_token"]}
	itself := len(trail) > 0 && trail[len(trail)-1] == name // a role may name its own profile for the keys
	switch {
	case p["role_arn"] != "" && !itself:
		if slices.Contains(trail, name) {
			return awsCredentials{}, fmt.Errorf("the AWS profiles %s refer to each other in a cycle", strings.Join(append(trail, name), ", "))
		}
		return w.awsRole(ctx, name, p, append(slices.Clone(trail), name))
	case static.id != "":
		return static, nil
	case p["sso_session"] != "" || p["sso_start_url"] != "":
		return w.awsSSO(ctx, name, p)
	case p["credential_process"] != "":
		return w.awsProcess(ctx, name, p["credential_process"])
	}
	return awsCredentials{}, nil
}

// awsSettings are the arguments of a profile in both files; what the credentials
// file says goes first.
func (w *work) awsSettings(profile string) (out map[string]string, found bool, err error) {
	out = map[string]string{}
	section := profile
	if profile != "default" {
		section = "profile " + profile
	}
	for _, file := range []struct{ env, name, section string }{
		{"AWS_SHARED_CREDENTIALS_FILE", "credentials", profile},
		{"AWS_CONFIG_FILE", "config", section},
	} {
		s, ok, err := w.awsSection(file.env, file.name, file.section)
		if err != nil {
			return nil, false, err
		}
		found = found || ok
		for k, v := range s {
			if out[k] == "" {
				out[k] = v
			}
		}
	}
	return out, found, nil
}

// awsSection reads a section of one of the shared files.
func (w *work) awsSection(env, name, section string) (map[string]string, bool, error) {
	where := w.Env.Get(env)
	if where == "" && w.Home != "" {
		where = filepath.Join(w.Home, ".aws", name)
	}
	if where == "" {
		return nil, false, nil
	}
	text, err := os.ReadFile(where)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot read credentials: %w", err)
	}
	s, ok := iniSection(string(text), section)
	return s, ok, nil
}

// awsRole assumes the role of a profile.
func (w *work) awsRole(ctx context.Context, name string, p map[string]string, trail []string) (awsCredentials, error) {
	if p["mfa_serial"] != "" {
		return awsCredentials{}, fmt.Errorf("the AWS profile %q wants a code of a second factor, which cannot be asked for here; get credentials with a tool that asks, for example \"aws configure export-credentials\"", name)
	}
	var base awsCredentials
	var err error
	switch {
	case p["web_identity_token_file"] != "":
		return w.awsWebIdentity(ctx, p["web_identity_token_file"], p["role_arn"], p["role_session_name"], p["region"])
	case p["source_profile"] != "":
		base, err = w.awsProfile(ctx, p["source_profile"], true, trail)
	case strings.EqualFold(p["credential_source"], "Environment"):
		base = awsCredentials{w.Env.Get("AWS_ACCESS_KEY_ID"), w.Env.Get("AWS_SECRET_ACCESS_KEY"), w.Env.Get("AWS_SESSION_TOKEN")}
	case strings.EqualFold(p["credential_source"], "EcsContainer"):
		base, err = w.awsContainer(ctx)
	case strings.EqualFold(p["credential_source"], "Ec2InstanceMetadata"):
		base, err = w.awsMachine(ctx)
	default:
		err = fmt.Errorf("the AWS profile %q has a role, but neither source_profile nor credential_source says whose credentials assume it", name)
	}
	if err != nil {
		return awsCredentials{}, err
	}
	if base.id == "" {
		return awsCredentials{}, fmt.Errorf("there are no credentials to assume the role of the AWS profile %q with", name)
	}
	return w.assumeRole(ctx, base, p)
}

// assumeRole trades credentials for those of a role, which is told as in a profile.
func (w *work) assumeRole(ctx context.Context, base awsCredentials, p map[string]string) (awsCredentials, error) {
	q := url.Values{
		"Action": {"AssumeRole"}, "Version": {"2011-06-15"}, "RoleArn": {p["role_arn"]},
		"RoleSessionName": {firstOf(p["role_session_name"], w.Env.Get("AWS_ROLE_SESSION_NAME"), "terrace")},
	}
	for arg, key := range map[string]string{"ExternalId": "external_id", "DurationSeconds": "duration_seconds"} {
		if p[key] != "" {
			q.Set(arg, p[key])
		}
	}
	where, region := w.stsEndpoint(p["region"])
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, where+"?"+awsQuery(q), nil)
	if err != nil {
		return awsCredentials{}, err
	}
	if w.Now == nil {
		return awsCredentials{}, errors.New("requests to AWS cannot be signed without a clock")
	}
	signV4(r, base, region, "sts", w.Now())
	body, _, err := w.Client.Get(ctx, r.URL.String(), r.Header, 1<<20)
	return stsAnswer("AssumeRole", p["role_arn"], body, err)
}

// stsEndpoint is where the token service is asked, and its region.
func (w *work) stsEndpoint(region string) (where, shown string) {
	shown = firstOf(w.Env.Get("AWS_REGION"), w.Env.Get("AWS_DEFAULT_REGION"), region)
	where = w.Env.Get("AWS_ENDPOINT_URL_STS")
	switch {
	case where != "":
	case shown == "":
		where = "https://sts.amazonaws.com"
	default:
		where = "https://sts." + shown + ".amazonaws.com"
	}
	return strings.TrimSuffix(where, "/") + "/", firstOf(shown, "us-east-1")
}

// stsAnswer reads what the token service answered to an action.
func stsAnswer(action, role string, body []byte, err error) (awsCredentials, error) {
	if err != nil {
		return awsCredentials{}, fmt.Errorf("cannot get credentials for role %s: %w", role, err)
	}
	type result struct {
		C struct{ AccessKeyId, SecretAccessKey, SessionToken string } `xml:"Credentials"`
	}
	var out struct {
		Role result `xml:"AssumeRoleResult"`
		Web  result `xml:"AssumeRoleWithWebIdentityResult"`
	}
	if xml.Unmarshal(body, &out) != nil {
		return awsCredentials{}, fmt.Errorf("cannot get credentials for role %s: the answer is not XML", role)
	}
	c := out.Role.C
	if action == "AssumeRoleWithWebIdentity" {
		c = out.Web.C
	}
	if c.AccessKeyId == "" {
		return awsCredentials{}, fmt.Errorf("cannot get credentials for role %s: the answer holds none", role)
	}
	return awsCredentials{c.AccessKeyId, c.SecretAccessKey, c.SessionToken}, nil
}

// awsSSO trades the token that "aws sso login" left for credentials.
// https://docs.aws.amazon.com/singlesignon/latest/PortalAPIReference/API_GetRoleCredentials.html
func (w *work) awsSSO(ctx context.Context, name string, p map[string]string) (awsCredentials, error) {
	key, region, login := p["sso_start_url"], p["sso_region"], "aws sso login --profile "+name
	if session := p["sso_session"]; session != "" {
		s, ok, err := w.awsSection("AWS_CONFIG_FILE", "config", "sso-session "+session)
		if err != nil {
			return awsCredentials{}, err
		}
		if !ok {
			return awsCredentials{}, fmt.Errorf("the AWS profile %q names the sso-session %q, which does not exist", name, session)
		}
		key, region = session, firstOf(s["sso_region"], region)
	}
	text, err := os.ReadFile(filepath.Join(w.Home, ".aws", "sso", "cache", ssoFile(key)))
	var cached struct {
		AccessToken string    `json:"accessToken"`
		ExpiresAt   time.Time `json:"expiresAt"`
	}
	if err != nil || json.Unmarshal(text, &cached) != nil || cached.AccessToken == "" {
		return awsCredentials{}, fmt.Errorf("the AWS profile %q signs on through a browser and nobody has done so; run %q", name, login)
	}
	if w.Now != nil && w.Now().After(cached.ExpiresAt) {
		return awsCredentials{}, fmt.Errorf("the sign-on of the AWS profile %q has expired; run %q", name, login)
	}
	where := firstOf(w.Env.Get("AWS_ENDPOINT_URL_SSO"), "https://portal.sso."+region+".amazonaws.com")
	q := url.Values{"role_name": {p["sso_role_name"]}, "account_id": {p["sso_account_id"]}}
	h := http.Header{"X-Amz-Sso_bearer_token": {cached.AccessToken}}
	body, _, err := w.Client.Get(ctx, strings.TrimSuffix(where, "/")+"/federation/credentials?"+q.Encode(), h, 1<<20)
	if err != nil {
		return awsCredentials{}, fmt.Errorf("cannot get the credentials of the AWS profile %q: %w", name, err)
	}
	var out struct {
		C struct {
			ID     string `json:"accessKeyId"`
			Secret string `json:"secretAccessKey"`
			Token  string `json:"sessionToken"`
		} `json:"roleCredentials"`
	}
	if json.Unmarshal(body, &out) != nil || out.C.ID == "" {
		return awsCredentials{}, fmt.Errorf("cannot get the credentials of the AWS profile %q: the answer holds none", name)
	}
	return awsCredentials{out.C.ID, out.C.Secret, out.C.Token}, nil
}

// ssoFile is the name under which the AWS tools keep the token of a session or
// of a start URL.
func ssoFile(key string) string {
	sum := sha1.Sum([]byte(key))
	return hex.EncodeToString(sum[:]) + ".json"
}

// awsProcess asks the program that a profile names.
// https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html
func (w *work) awsProcess(ctx context.Context, name, line string) (awsCredentials, error) {
	text, err := w.shell(ctx, line)
	if err != nil {
		return awsCredentials{}, fmt.Errorf("the credential_process of the AWS profile %q: %w", name, err)
	}
	var out struct {
		Version                                    int
		AccessKeyId, SecretAccessKey, SessionToken string
	}
	if json.Unmarshal(text, &out) != nil || out.Version != 1 || out.AccessKeyId == "" {
		return awsCredentials{}, fmt.Errorf("the credential_process of the AWS profile %q wrote no credentials in version 1 of its format", name)
	}
	return awsCredentials{out.AccessKeyId, out.SecretAccessKey, out.SessionToken}, nil
}

// shell runs a line of the user's own settings and returns what it writes. What
// it writes is not part of the error, since it may be a secret.
func (w *work) shell(ctx context.Context, line string, env ...string) ([]byte, error) {
	if w.Run == nil {
		return nil, errors.New("programs cannot be started here")
	}
	var out, problem bytes.Buffer
	c := sys.Command{Path: "sh", Args: []string{"-c", line}, Dir: w.WorkDir, Env: w.Env.With(env...), Stdout: &out, Stderr: &problem}
	if filepath.Separator == '\\' {
		c.Path, c.Args = "cmd.exe", []string{"/C", line}
	}
	if err := w.Run(ctx, c); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(problem.String()))
	}
	return out.Bytes(), nil
}
