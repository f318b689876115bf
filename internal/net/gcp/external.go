package gcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google/externalaccount"
)

// An externalFile is a credentials file of the type external_account.
// https://google.aip.dev/auth/4117
type externalFile struct {
	Audience         string `json:"audience"`
	SubjectTokenType string `json:"subject_token_type"`
	TokenURL         string `json:"token_url"`
	TokenInfoURL     string `json:"token_info_url"`
	ImpersonationURL string `json:"service_account_impersonation_url"`
	Impersonation    struct {
		Lifetime int `json:"token_lifetime_seconds"`
	} `json:"service_account_impersonation"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	QuotaProject string `json:"quota_project_id"`
	UserProject  string `json:"workforce_pool_user_project"`
	Universe     string `json:"universe_domain"`
	Source       struct {
		EnvironmentID string      `json:"environment_id"`
		Executable    *executable `json:"executable"`
	} `json:"credential_source"`
}

// An executable is a program that prints tokens.
type executable struct {
	Command    string `json:"command"`
	Timeout    int    `json:"timeout_millis"`
	OutputFile string `json:"output_file"`
}

// external returns the token source of a file whose tokens come from a program or from AWS keys
// in the environment. The library would use the environment of the process instead of the
// session's. For other files it returns nil.
func (s *Session) external(ctx context.Context, text []byte) (oauth2.TokenSource, error) {
	var f externalFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, errors.New("the credentials of an external account do not have their form")
	}
	c := externalaccount.Config{
		Audience: f.Audience, SubjectTokenType: f.SubjectTokenType, TokenURL: f.TokenURL, TokenInfoURL: f.TokenInfoURL,
		ServiceAccountImpersonationURL: f.ImpersonationURL, ServiceAccountImpersonationLifetimeSeconds: f.Impersonation.Lifetime,
		ClientID: f.ClientID, ClientSecret: f.ClientSecret, QuotaProjectID: f.QuotaProject, WorkforcePoolUserProject: f.UserProject,
		UniverseDomain: f.Universe, Scopes: s.o.Scopes,
	}
	if s.o.Universe != "" {
		c.UniverseDomain = s.o.Universe
	}
	switch keys := (awsKeys{s.s.Env}); {
	case f.Source.Executable != nil:
		c.SubjectTokenSupplier = &program{s: s, file: f}
	case strings.HasPrefix(f.Source.EnvironmentID, "aws") && keys.set():
		c.AwsSecurityCredentialsSupplier = keys
	default:
		return nil, nil
	}
	return externalaccount.NewTokenSource(ctx, c)
}

// awsKeys provides the AWS keys in an environment.
type awsKeys struct{ env sys.Env }

func (k awsKeys) region() string {
	if r := k.env.Get("AWS_REGION"); r != "" {
		return r
	}
	return k.env.Get("AWS_DEFAULT_REGION")
}

func (k awsKeys) set() bool {
	return k.region() != "" && k.env.Get("AWS_ACCESS_KEY_ID") != "" && k.env.Get("AWS_SECRET_ACCESS_KEY") != ""
}

func (k awsKeys) AwsRegion(context.Context, externalaccount.SupplierOptions) (string, error) {
	return k.region(), nil
}

func (k awsKeys) AwsSecurityCredentials(context.Context, externalaccount.SupplierOptions) (*externalaccount.AwsSecurityCredentials, error) {
	return &externalaccount.AwsSecurityCredentials{AccessKeyID: k.env.Get("AWS_ACCESS_KEY_ID"), SecretAccessKey: k.env.Get("AWS_SECRET_ACCESS_KEY"), SessionToken: k.env.Get("AWS_SESSION_TOKEN")}, nil
}

// A program gets tokens from a program that it runs in the environment of the session.
type program struct {
	s    *Session
	file externalFile
}

// allow is the environment variable that allows such programs.
const allow = "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"

// SubjectToken implements externalaccount.SubjectTokenSupplier.
func (p *program) SubjectToken(ctx context.Context, _ externalaccount.SupplierOptions) (string, error) {
	x := p.file.Source.Executable
	if p.s.s.Env.Get(allow) != "1" {
		return "", fmt.Errorf("the credentials name a program that gives tokens, and programs run only with %s=1", allow)
	}
	if x.OutputFile != "" {
		if b, err := readfile.Whole(p.s.path(x.OutputFile)); err == nil {
			if token, err := p.token(b); err == nil {
				return token, nil
			}
		}
	}
	args := strings.Fields(x.Command)
	if len(args) == 0 {
		return "", errors.New("the credentials name a program that gives tokens without its name")
	}
	env := p.s.s.Env.With("GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE="+p.file.Audience, "GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE="+p.file.SubjectTokenType, "GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE=0")
	if _, account, ok := strings.Cut(p.file.ImpersonationURL, "serviceAccounts/"); ok {
		env = env.With("GOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL=" + strings.TrimSuffix(account, ":generateAccessToken"))
	}
	if x.OutputFile != "" {
		env = env.With("GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE=" + x.OutputFile)
	}
	limit := 30 * time.Second
	if x.Timeout > 0 {
		limit = time.Duration(x.Timeout) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out bytes.Buffer
	if err := p.s.s.Run(ctx, sys.Command{Path: args[0], Args: args[1:], Dir: p.s.s.Dir, Env: env, Stdout: &out}); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("the program %s that gives tokens did not end within %s", args[0], limit)
		}
		return "", fmt.Errorf("the program %s that gives tokens failed: %w", args[0], err)
	}
	return p.token(out.Bytes())
}

// token returns the token in the answer of the program.
func (p *program) token(answer []byte) (string, error) {
	var out struct {
		Version int    `json:"version"`
		Success bool   `json:"success"`
		Type    string `json:"token_type"`
		Expires int64  `json:"expiration_time"`
		IDToken string `json:"id_token"`
		SAML    string `json:"saml_response"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	err := json.Unmarshal(answer, &out)
	token := out.IDToken
	if strings.HasSuffix(out.Type, ":saml2") {
		token = out.SAML
	}
	switch {
	case err != nil || out.Version != 1:
		return "", errors.New("what the program that gives tokens answered is not JSON of version 1")
	case !out.Success:
		return "", fmt.Errorf("the program that gives tokens gave none: %s %s", out.Code, out.Message)
	case out.Expires != 0 && out.Expires < p.s.s.Now().Unix():
		return "", errors.New("the program that gives tokens gave one that has ended")
	case token == "":
		return "", errors.New("the program that gives tokens answered without one")
	}
	return token, nil
}
