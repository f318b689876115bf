package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// # Google external accounts
//
// Workload identity federation: a token of another identity provider, which a
// file, a URL or a program gives, is traded for one of Google, and that may be
// traded for one of a service account.
// https://google.aip.dev/auth/4117

// readScope is what modules need.
const readScope = "https://www.googleapis.com/auth/devstorage.read_only"

// externalAccount is the part of a credentials file about federation.
type externalAccount struct {
	Audience    string          `json:"audience"`
	SubjectType string          `json:"subject_token_type"`
	TokenURL    string          `json:"token_url"`
	Impersonate string          `json:"service_account_impersonation_url"`
	Source      json.RawMessage `json:"source_credentials"` // of an impersonated service account
	From        struct {
		Environment string            `json:"environment_id"`
		File        string            `json:"file"`
		URL         string            `json:"url"`
		Headers     map[string]string `json:"headers"`
		Executable  *struct {
			Command string `json:"command"`
			Output  string `json:"output_file"`
		} `json:"executable"`
		Format struct {
			Type  string `json:"type"`
			Field string `json:"subject_token_field_name"`
		} `json:"format"`
	} `json:"credential_source"`
}

// googleExternal gets a token by way of another identity provider.
func (w *work) googleExternal(ctx context.Context, text []byte) (string, error) {
	var a externalAccount
	if err := json.Unmarshal(text, &a); err != nil {
		return "", errors.New("the file with Google credentials is not valid JSON")
	}
	subject, err := w.subjectToken(ctx, &a)
	if err != nil {
		return "", fmt.Errorf("cannot get the token of the identity provider that the Google credentials name: %w", err)
	}
	scope := readScope
	if a.Impersonate != "" {
		scope = "https://www.googleapis.com/auth/cloud-platform"
	}
	body, err := w.Client.PostForm(ctx, firstOf(a.TokenURL, "https://sts.googleapis.com/v1/token"), url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "audience": {a.Audience}, "scope": {scope},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		"subject_token":        {subject}, "subject_token_type": {a.SubjectType},
	}, 1<<20)
	token, err := googleAnswer(body, err)
	if err != nil || a.Impersonate == "" {
		return token, err
	}
	return w.googleImpersonate(ctx, a.Impersonate, token)
}

// googleImpersonated gets a token of a service account with the credentials of
// another account.
func (w *work) googleImpersonated(ctx context.Context, text []byte) (string, error) {
	var a externalAccount
	if err := json.Unmarshal(text, &a); err != nil || len(a.Source) == 0 || a.Impersonate == "" {
		return "", errors.New("the file with Google credentials names no account to impersonate one with")
	}
	var source googleKey
	if json.Unmarshal(a.Source, &source) != nil || source.Type == "impersonated_service_account" {
		return "", errors.New("the credentials to impersonate a Google account with cannot be used")
	}
	token, err := w.googleExchange(ctx, a.Source)
	if err != nil {
		return "", err
	}
	return w.googleImpersonate(ctx, a.Impersonate, token)
}

func (w *work) googleImpersonate(ctx context.Context, where, token string) (string, error) {
	h := http.Header{"Authorization": {"Bearer " + token}}
	body, err := w.Client.PostJSON(ctx, where, h, map[string]any{"scope": []string{readScope}, "lifetime": "3600s"}, 1<<20)
	if err != nil {
		return "", fmt.Errorf("cannot get a token for the Google service account: %w", err)
	}
	var out struct {
		Token string `json:"accessToken"`
	}
	if json.Unmarshal(body, &out) != nil || out.Token == "" {
		return "", errors.New("cannot get a token for the Google service account: the answer holds none")
	}
	return out.Token, nil
}

// subjectToken is the token of the other identity provider.
func (w *work) subjectToken(ctx context.Context, a *externalAccount) (string, error) {
	from := &a.From
	var text []byte
	var err error
	switch {
	case from.Environment != "":
		return "", fmt.Errorf("the source %q cannot be used for modules; set GOOGLE_OAUTH_ACCESS_TOKEN to a token, for example that of \"gcloud auth print-access-token\"", from.Environment)
	case from.File != "":
		text, err = os.ReadFile(from.File)
	case from.URL != "":
		h := http.Header{}
		for k, v := range from.Headers {
			h.Set(k, v)
		}
		text, _, err = w.Client.Get(ctx, from.URL, h, 1<<20)
	case from.Executable != nil:
		return w.subjectProgram(ctx, a)
	default:
		return "", errors.New("they name neither a file nor a URL nor a program")
	}
	if err != nil {
		return "", err
	}
	if from.Format.Type != "json" {
		return strings.TrimSpace(string(text)), nil
	}
	var doc map[string]any
	if json.Unmarshal(text, &doc) != nil {
		return "", errors.New("what was read is not JSON")
	}
	token, _ := doc[from.Format.Field].(string)
	if token == "" {
		return "", fmt.Errorf("what was read has no %q", from.Format.Field)
	}
	return token, nil
}

// subjectProgram asks a program for the token, which the user must have allowed.
func (w *work) subjectProgram(ctx context.Context, a *externalAccount) (string, error) {
	if w.Env.Get("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES") != "1" {
		return "", errors.New("they name a program, which is only run if GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES is set to 1")
	}
	text, err := w.shell(ctx, a.From.Executable.Command,
		"GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE="+a.Audience, "GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE="+a.SubjectType,
		"GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE=0", "GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE="+a.From.Executable.Output)
	if err != nil {
		return "", err
	}
	var out struct {
		Success       bool   `json:"success"`
		IDToken       string `json:"id_token"`
		SAML          string `json:"saml_response"`
		Code, Message string
	}
	if json.Unmarshal(text, &out) != nil {
		return "", errors.New("the program wrote no JSON")
	}
	if token := firstOf(out.IDToken, out.SAML); out.Success && token != "" {
		return token, nil
	}
	return "", fmt.Errorf("the program gave no token: %s", strings.TrimSpace(out.Code+" "+out.Message))
}
