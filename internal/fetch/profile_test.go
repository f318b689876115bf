package fetch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tokenServer is as much of the token service and of the sign-on portal as is
// asked of it. A role can be assumed with the base key alone, or with that of
// the first role.
func tokenServer(t *testing.T) *httptest.Server {
	const give = "<Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>token</SessionToken></Credentials>"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/federation/credentials" {
			if r.Header.Get("X-Amz-Sso_bearer_token") != "sso" || r.FormValue("role_name") != "reader" || r.FormValue("account_id") != "7" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, `{"roleCredentials":{"accessKeyId":"AKID","secretAccessKey":"s3cr3t/+","sessionToken":"token"}}`)
			return
		}
		with := map[string]awsCredentials{"first": {"BASE", "base", ""}, "arn": {"FIRST", "first", "token"}, "direct": {"BASE", "base", ""}}[r.FormValue("RoleArn")]
		stamp, _ := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		again := r.Clone(context.Background())
		again.Header.Del("Authorization")
		again.URL.Host = r.Host
		signV4(again, with, "eu-test-1", "sts", stamp)
		if r.FormValue("Action") != "AssumeRole" || r.FormValue("ExternalId") != "ext" || again.Header.Get("Authorization") != r.Header.Get("Authorization") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		id, secret := "AKID", "s3cr3t/+"
		if r.FormValue("RoleArn") == "first" {
			id, secret = "FIRST", "first"
		}
		fmt.Fprintf(w, "<AssumeRoleResponse><AssumeRoleResult>"+give+"</AssumeRoleResult></AssumeRoleResponse>", id, secret)
	}))
	t.Cleanup(srv.Close)
	return srv
}

const awsConfig = `
[default]
region = us-nowhere-1

[profile chain]
role_arn = arn
source_profile = first
external_id = ext

[profile first]
role_arn = first
source_profile = base
external_id = ext

[profile  self]
role_arn = direct
source_profile = self
external_id = ext

[profile env]
role_arn = direct
credential_source = Environment
external_id = ext

[profile sso]
sso_session = work
sso_account_id = 7
sso_role_name = reader

[sso-session work]
sso_region = eu-test-1
sso_start_url = https://x.invalid/start

[profile old-sso]
sso_start_url = https://x.invalid/old
sso_region = eu-test-1
sso_account_id = 7
sso_role_name = reader

[profile stale]
sso_start_url = https://x.invalid/stale
sso_region = eu-test-1

[profile never]
sso_start_url = https://x.invalid/never

[profile lost]
sso_session = none

[profile process]
credential_process = printf '{"Version":1,"AccessKeyId":"AKID","SecretAccessKey":"s3cr3t/+","SessionToken":"token"}'

[profile silent]
credential_process = echo nothing

[profile mfa]
role_arn = arn
source_profile = base
mfa_serial = x

[profile circle]
role_arn = arn
source_profile = circle2
[profile circle2]
role_arn = arn
source_profile = circle

[profile alone]
role_arn = arn
`

func TestAWSProfiles(t *testing.T) {
	objects := map[string][]byte{"dir/main.tf": []byte("one")}
	bucket := bucketServer(t, objects, awsCredentials{"AKID", "s3cr3t/+", "token"})
	tokens := tokenServer(t)
	home := t.TempDir()
	put(t, filepath.Join(home, ".aws", "config"), awsConfig)
	put(t, filepath.Join(home, ".aws", "credentials"), "[base]\naws_access_key_id = BASE\naws_secret_access_key = base\n[self]\naws_access_key_id = BASE\naws_secret_access_key = base\n")
	cache := filepath.Join(home, ".aws", "sso", "cache")
	if got := ssoFile("work"); got != "e274eeff768c6396088ec6eb091f4bf4d47ab1e0.json" {
		t.Error(got)
	}
	for key, until := range map[string]string{"work": "2031-01-01T00:00:00Z", "https://x.invalid/old": "2031-01-01T00:00:00Z", "https://x.invalid/stale": "2029-01-01T00:00:00Z"} {
		put(t, filepath.Join(cache, ssoFile(key)), `{"accessToken":"sso","expiresAt":"`+until+`"}`)
	}
	get := func(profile string, env ...string) (*Fetcher, string) {
		f := newFetcher(t)
		f.Home = home
		f.Env = f.Env.With(append(env, "AWS_ENDPOINT_URL_STS="+tokens.URL, "AWS_ENDPOINT_URL_SSO="+tokens.URL, "AWS_REGION=eu-test-1")...)
		return f, "s3::" + bucket.URL + "/bucket/dir?aws_profile=" + profile
	}
	for _, profile := range []string{"chain", "self", "sso", "old-sso", "process"} {
		f, src := get(profile)
		has(t, mustGet(t, f, src), map[string]string{"main.tf": "one"})
	}
	f, src := get("env", "AWS_ACCESS_KEY_ID=BASE", "AWS_SECRET_ACCESS_KEY=base")
	mustGet(t, f, src)
	for profile, want := range map[string]string{
		"stale": "has expired; run \"aws sso login --profile stale\"", "never": "nobody has done so", "lost": "names the sso-session \"none\"", "silent": "wrote no credentials",
		"mfa": "second factor", "circle": "refer to each other in a cycle", "alone": "neither source_profile nor credential_source", "none": "no AWS profile \"none\"",
	} {
		f, src := get(profile)
		getFails(t, f, src, want)
	}
}

func TestGoogleExternalAccounts(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "text"), "subject\n")
	put(t, filepath.Join(dir, "doc"), `{"inner":"subject"}`)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/subject" && r.Header.Get("Metadata") == "yes":
			fmt.Fprint(w, `{"inner":"subject"}`)
		case r.URL.Path == "/exchange" && r.FormValue("subject_token") == "subject" && r.FormValue("audience") == "aud":
			fmt.Fprint(w, `{"access_token":"federated"}`)
		case r.URL.Path == "/user" && r.FormValue("refresh_token") == "refresh":
			fmt.Fprint(w, `{"access_token":"federated"}`)
		case r.URL.Path == "/impersonate" && r.Header.Get("Authorization") == "Bearer federated" && r.Header.Get("Content-Type") == "application/json":
			fmt.Fprint(w, `{"accessToken":"account"}`)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer srv.Close()
	program := map[string]any{"executable": map[string]any{"command": `printf '{"success":true,"id_token":"subject"}'`}}
	type doc = map[string]any
	for name, c := range map[string]struct {
		doc   doc
		want  string
		allow bool
	}{
		"file":           {doc: doc{"credential_source": doc{"file": filepath.Join(dir, "text")}}, want: "federated"},
		"json":           {doc: doc{"credential_source": doc{"file": filepath.Join(dir, "doc"), "format": doc{"type": "json", "subject_token_field_name": "inner"}}}, want: "federated"},
		"url":            {doc: doc{"credential_source": doc{"url": srv.URL + "/subject", "headers": doc{"Metadata": "yes"}, "format": doc{"type": "json", "subject_token_field_name": "inner"}}}, want: "federated"},
		"impersonated":   {doc: doc{"credential_source": doc{"file": filepath.Join(dir, "text")}, "service_account_impersonation_url": srv.URL + "/impersonate"}, want: "account"},
		"program":        {doc: doc{"credential_source": program}, want: "federated", allow: true},
		"not allowed":    {doc: doc{"credential_source": program}, want: "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"},
		"aws":            {doc: doc{"credential_source": doc{"environment_id": "aws1"}}, want: "GOOGLE_OAUTH_ACCESS_TOKEN"},
		"no file":        {doc: doc{"credential_source": doc{"file": filepath.Join(dir, "none")}}, want: "no such file"},
		"other field":    {doc: doc{"credential_source": doc{"file": filepath.Join(dir, "doc"), "format": doc{"type": "json", "subject_token_field_name": "x"}}}, want: "has no \"x\""},
		"no source":      {doc: doc{}, want: "neither a file nor a URL nor a program"},
		"user as source": {doc: doc{"type": "impersonated_service_account", "service_account_impersonation_url": srv.URL + "/impersonate", "source_credentials": doc{"type": "authorized_user", "refresh_token": "refresh", "token_uri": srv.URL + "/user"}}, want: "account"},
		"itself":         {doc: doc{"type": "impersonated_service_account", "service_account_impersonation_url": "x", "source_credentials": doc{"type": "impersonated_service_account"}}, want: "cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			full := doc{"type": "external_account", "audience": "aud", "subject_token_type": "jwt", "token_url": srv.URL + "/exchange"}
			for k, v := range c.doc {
				full[k] = v
			}
			text, err := json.Marshal(full)
			if err != nil {
				t.Fatal(err)
			}
			w := &work{Fetcher: newFetcher(t)}
			if c.allow {
				w.Env = w.Env.With("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1")
			}
			got, err := w.googleExchange(t.Context(), text)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
