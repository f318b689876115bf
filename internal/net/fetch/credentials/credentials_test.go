package credentials

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/net/transfer"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	f, err := z.Create("main.tf")
	if err == nil {
		_, err = f.Write([]byte("zip"))
	}
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return out.String()
}

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func clouds(t *testing.T, env sys.Env, home string, now func() time.Time) *Clouds {
	env = env.With("PATH=" + os.Getenv("PATH"))
	if env.Get("AWS_EC2_METADATA_SERVICE_ENDPOINT") == "" {
		env = env.With("AWS_EC2_METADATA_DISABLED=true")
	}
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &Clouds{Env: env, Dir: t.TempDir(), Home: home, Now: now, Run: sys.Run, Transport: tr}
}

// fetcher returns a fetcher that uses an environment and a home directory.
func fetcher(t *testing.T, env sys.Env, home string, now func() time.Time) *fetch.Fetcher {
	c := clouds(t, env, home, now)
	return &fetch.Fetcher{
		Dir: t.TempDir(), WorkDir: c.Dir, Home: home, Env: c.Env, Run: c.Run, Now: now, S3: c.S3, GCS: c.GCS,
		Client: &transfer.Client{HTTP: &http.Client{Transport: c.Transport}, Backoff: time.Millisecond},
	}
}

func get(t *testing.T, f *fetch.Fetcher, src string) error {
	t.Helper()
	a, err := fetch.Detect(src, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Get(t.Context(), fetch.Request{Address: a})
	return err
}

// signed reports whether a request has the signature that AWS's own library computes with the
// credentials.
func signed(r *http.Request, c awssdk.Credentials, service string) bool {
	body := new(bytes.Buffer)
	body.ReadFrom(r.Body)
	r.PostForm, _ = url.ParseQuery(body.String())
	r.Body = io.NopCloser(bytes.NewReader(body.Bytes()))
	stamp, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
	if err != nil {
		return false
	}
	_, names, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	for _, n := range strings.Split(names, ";") {
		if v := r.Header.Get(n); v != "" {
			again.Header.Set(n, v)
		}
	}
	again.ContentLength = r.ContentLength
	sum := sha256.Sum256(body.Bytes())
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = service == "s3" })
	if signer.SignHTTP(context.Background(), c, again, hex.EncodeToString(sum[:]), service, "eu-test-1", stamp) != nil {
		return false
	}
	return again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

var secret = awssdk.Credentials{AccessKeyID: "AKID", SecretAccessKey: "s3cr3t/+", SessionToken: "token"}

// bucket is a server with one object, for requests with the secret.
func bucket(t *testing.T) string {
	text := zipped(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/bucket/a b/mod.zip" || !signed(r, secret, "s3") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(srv.Close)
	return "s3::" + srv.URL + "/bucket/a%20b/mod.zip?region=eu-test-1"
}

// tokens implements the parts of the token service, the sign-on portal, a container's endpoint
// and a machine's metadata service that the tests use. A role can be assumed with the base key,
// or with the key of the first role.
func tokens(t *testing.T) string {
	const give = "<%[1]sResponse><%[1]sResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>token</SessionToken><Expiration>2040-01-01T00:00:00Z</Expiration></Credentials></%[1]sResult></%[1]sResponse>"
	const doc = `{"Code":"Success","AccessKeyId":"AKID","SecretAccessKey":"s3cr3t/+","Token":"token","Expiration":"2040-01-01T00:00:00Z"}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p := r.URL.Path; {
		case p == "/federation/credentials":
			if r.Header.Get("X-Amz-Sso_bearer_token") != "sso" || r.FormValue("role_name") != "reader" || r.FormValue("account_id") != "7" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, `{"roleCredentials":{"accessKeyId":"AKID","secretAccessKey":"s3cr3t/+","sessionToken":"token","expiration":2208988800000}}`)
		case p == "/container" && r.Header.Get("Authorization") == "ct":
			fmt.Fprint(w, doc)
		case p == "/latest/api/token" && r.Method == http.MethodPut:
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
			fmt.Fprint(w, "imds")
		case strings.HasPrefix(p, "/latest/meta-data/iam/security-credentials/") && r.Header.Get("X-Aws-Ec2-Metadata-Token") == "imds":
			if strings.HasSuffix(p, "/machine") {
				fmt.Fprint(w, doc)
			} else {
				fmt.Fprint(w, "machine")
			}
		case p == "/":
			base := awssdk.Credentials{AccessKeyID: "BASE", SecretAccessKey: "base"}
			ok := signed(r, base, "sts")
			with := r.PostForm
			if with.Get("Action") == "AssumeRoleWithWebIdentity" {
				ok = with.Get("WebIdentityToken") == "wit"
			} else if with.Get("RoleArn") == "arn" {
				ok = signed(r, awssdk.Credentials{AccessKeyID: "FIRST", SecretAccessKey: "first", SessionToken: "token"}, "sts")
			}
			if !ok || with.Get("Action") == "AssumeRole" && with.Get("ExternalId") != "ext" {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not allowed to assume</Message></Error></ErrorResponse>")
				return
			}
			id, secret := "AKID", "s3cr3t/+"
			if with.Get("RoleArn") == "first" {
				id, secret = "FIRST", "first"
			}
			fmt.Fprintf(w, give, with.Get("Action"), id, secret)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
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

[profile failing]
credential_process = echo s3cr3t; echo no luck >&2; exit 3

[profile denied]
role_arn = arn
source_profile = base
external_id = ext

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

// Modules can use credentials from every source that the tools of AWS search.
func TestAWS(t *testing.T) {
	src, where, home := bucket(t), tokens(t), t.TempDir()
	put(t, filepath.Join(home, ".aws", "config"), awsConfig)
	put(t, filepath.Join(home, ".aws", "credentials"), "[base]\naws_access_key_id = BASE\naws_secret_access_key = base\n[self]\naws_access_key_id = BASE\naws_secret_access_key = base\n[keys]\naws_access_key_id = AKID\naws_secret_access_key=s3cr3t/+\naws_session_token = token\n")
	for key, until := range map[string]string{"work": "2041-01-01T00:00:00Z", "https://x.invalid/old": "2041-01-01T00:00:00Z", "https://x.invalid/stale": "2001-01-01T00:00:00Z"} {
		sum := sha1.Sum([]byte(key))
		put(t, filepath.Join(home, ".aws", "sso", "cache", hex.EncodeToString(sum[:])+".json"), `{"accessToken":"sso","expiresAt":"`+until+`"}`)
	}
	put(t, filepath.Join(home, "wit"), "wit")
	put(t, filepath.Join(home, "ct"), "ct\n")
	services := sys.Env{"AWS_ENDPOINT_URL_STS=" + where, "AWS_ENDPOINT_URL_SSO=" + where, "AWS_REGION=eu-test-1"}
	const key, base = "AWS_ACCESS_KEY_ID=AKID AWS_SECRET_ACCESS_KEY=s3cr3t/+ AWS_SESSION_TOKEN=token", "AWS_ACCESS_KEY_ID=BASE AWS_SECRET_ACCESS_KEY=base"
	for _, c := range []struct {
		name, env, query, wrong string
	}{
		{name: "environment", env: key},
		{name: "address", query: "&aws_access_key_id=AKID&aws_access_key_secret=s3cr3t%2F%2B&aws_access_token=token", env: base},
		{name: "profile in the address", query: "&aws_profile=keys", env: base},
		{name: "profile in the environment", env: "AWS_PROFILE=keys"},
		{name: "role of a role", query: "&aws_profile=chain"},
		{name: "role of the profile's own keys", query: "&aws_profile=self"},
		{name: "role of the environment's keys", query: "&aws_profile=env", env: base},
		{name: "sign-on by session", query: "&aws_profile=sso"},
		{name: "sign-on", query: "&aws_profile=old-sso"},
		{name: "program", query: "&aws_profile=process"},
		{name: "web identity", env: "AWS_ROLE_ARN=web AWS_WEB_IDENTITY_TOKEN_FILE=" + filepath.Join(home, "wit")},
		{name: "container", env: "AWS_CONTAINER_CREDENTIALS_FULL_URI=" + where + "/container AWS_CONTAINER_AUTHORIZATION_TOKEN=ct"},
		{name: "container with a file", env: "AWS_CONTAINER_CREDENTIALS_FULL_URI=" + where + "/container AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=" + filepath.Join(home, "ct")},
		{name: "machine", env: "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + where},

		{name: "nobody", wrong: "403"},
		{name: "no machine of AWS", env: "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1", wrong: "403"},
		{name: "sign-on that ended", query: "&aws_profile=stale", wrong: "aws sso login --profile stale"},
		{name: "sign-on that nobody did", query: "&aws_profile=never", wrong: "aws sso login --profile never"},
		{name: "sign-on without its session", query: "&aws_profile=lost", wrong: "none"},
		{name: "program without credentials", query: "&aws_profile=silent", wrong: "did not write credentials"},
		{name: "program that fails", query: "&aws_profile=failing", wrong: "no luck"},
		{name: "second factor", query: "&aws_profile=mfa", wrong: "second factor"},
		{name: "cycle", query: "&aws_profile=circle", wrong: "circle"},
		{name: "role alone", query: "&aws_profile=alone", wrong: "alone"},
		{name: "no such profile", query: "&aws_profile=none", wrong: "no profile \"none\""},
		{name: "role that is not allowed", query: "&aws_profile=denied", wrong: "AccessDenied: not allowed to assume"},
		{name: "container that refuses", env: "AWS_CONTAINER_CREDENTIALS_FULL_URI=" + where + "/container", wrong: "no valid credentials"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := get(t, fetcher(t, services.With(strings.Fields(c.env)...), home, func() time.Time { return noon }), src+c.query)
			switch {
			case c.wrong == "" && err != nil:
				t.Error(err)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("%v, want %q", err, c.wrong)
			}
			for _, s := range []string{"s3cr3t", "base\n"} {
				if err != nil && strings.Contains(err.Error(), s) {
					t.Errorf("a secret is shown: %v", err)
				}
			}
		})
	}
}

// Modules can use every kind of credentials of Google Cloud.
func TestGoogle(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "text"), "subject")
	put(t, filepath.Join(dir, "doc"), `{"inner":"subject"}`)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		const token = `{"access_token":"%s","token_type":"Bearer","expires_in":3600,"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}`
		switch {
		case r.URL.Path == "/subject" && r.Header.Get("Metadata") == "yes":
			fmt.Fprint(w, `{"inner":"subject"}`)
		case r.URL.Path == "/exchange" && r.FormValue("subject_token") == "subject" && r.FormValue("audience") == "aud":
			fmt.Fprintf(w, token, "federated")
		case r.URL.Path == "/user" && (r.FormValue("refresh_token") == "refresh" || strings.Count(r.FormValue("assertion"), ".") == 2):
			fmt.Fprintf(w, token, "user")
		case strings.HasSuffix(r.URL.Path, ":generateAccessToken") && (r.Header.Get("Authorization") == "Bearer federated" || r.Header.Get("Authorization") == "Bearer user"):
			fmt.Fprint(w, `{"accessToken":"account","expireTime":"2040-01-01T00:00:00Z"}`)
		case r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token" && r.Header.Get("Metadata-Flavor") == "Google":
			fmt.Fprintf(w, token, "machine")
		default:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"not that one"}`)
		}
	}))
	t.Cleanup(srv.Close)
	type doc = map[string]any
	external := doc{"type": "external_account", "audience": "aud", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": srv.URL + "/exchange"}
	user := doc{"type": "authorized_user", "client_id": "id", "client_secret": "s", "refresh_token": "refresh", "token_uri": srv.URL + "/user"}
	with := func(more ...any) doc {
		out := doc{}
		for k, v := range external {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i].(string)] = more[i+1]
		}
		return out
	}
	metadata := strings.TrimPrefix(srv.URL, "http://")
	for _, c := range []struct {
		name string
		doc  doc
		env  []string
		want string
	}{
		{name: "a token in the environment", env: []string{"GOOGLE_OAUTH_ACCESS_TOKEN=given"}, want: "given"},
		{name: "service account", doc: doc{"type": "service_account", "client_email": "a@b", "private_key": private, "token_uri": srv.URL + "/user"}, want: "user"},
		{name: "user", doc: user, want: "user"},
		{name: "impersonated", doc: doc{"type": "impersonated_service_account", "service_account_impersonation_url": srv.URL + "/x:generateAccessToken", "source_credentials": user}, want: "account"},
		{name: "file", doc: with("credential_source", doc{"file": filepath.Join(dir, "text")}), want: "federated"},
		{name: "field of a file", doc: with("credential_source", doc{"file": filepath.Join(dir, "doc"), "format": doc{"type": "json", "subject_token_field_name": "inner"}}), want: "federated"},
		{name: "url", doc: with("credential_source", doc{"url": srv.URL + "/subject", "headers": doc{"Metadata": "yes"}, "format": doc{"type": "json", "subject_token_field_name": "inner"}}), want: "federated"},
		{name: "external that impersonates", doc: with("credential_source", doc{"file": filepath.Join(dir, "text")}, "service_account_impersonation_url", srv.URL+"/x:generateAccessToken"), want: "account"},
		{name: "machine", env: []string{"GCE_METADATA_HOST=" + metadata}, want: "machine"},
		{name: "nobody", env: []string{"GCE_METADATA_HOST=" + metadata + "/none"}, want: ""},

		{name: "unknown type", doc: doc{"type": "x"}, want: "unknown type \"x\""},
		{name: "no file", doc: with("credential_source", doc{"file": filepath.Join(dir, "none")}), want: "none"},
		{name: "refused", doc: doc{"type": "authorized_user", "client_id": "id", "client_secret": "s", "refresh_token": "other", "token_uri": srv.URL + "/user"}, want: "invalid_grant: not that one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env, home := sys.Env(c.env), t.TempDir()
			if c.doc != nil {
				text, err := json.Marshal(c.doc)
				if err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(home, "credentials.json"), string(text))
				env = env.With("GOOGLE_APPLICATION_CREDENTIALS=" + filepath.Join(home, "credentials.json"))
			}
			got, err := clouds(t, env, home, func() time.Time { return noon }).GCS(t.Context())
			if err != nil {
				got = err.Error()
			}
			if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestS3Server uses versitygw, a real server with the protocol of S3.
func TestS3Server(t *testing.T) {
	program := os.Getenv("TERRACE_TEST_VERSITYGW")
	if program == "" {
		t.Skip("TERRACE_TEST_VERSITYGW names no S3 server to test with")
	}
	root := t.TempDir()
	put(t, filepath.Join(root, "bucket", "a b", "mod.zip"), zipped(t))
	put(t, filepath.Join(root, "bucket", "dir", "main.tf"), "one")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().String()
	free.Close()
	cmd := exec.Command(program, "--port", port, "--access", "AKID", "--secret", "s3cr3t", "--region", "eu-test-1", "posix", root)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	f := fetcher(t, sys.Env{"AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=s3cr3t", "AWS_REGION=eu-test-1"}, "", time.Now)
	for range 600 {
		if resp, err := http.Get("http://" + port); err == nil {
			resp.Body.Close()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, src := range []string{"a%20b/mod.zip", "dir"} {
		if err := get(t, f, "s3::http://"+port+"/bucket/"+src); err != nil {
			t.Error(err)
		}
	}
	f = fetcher(t, sys.Env{"AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=wrong"}, "", time.Now)
	if err := get(t, f, "s3::http://"+port+"/bucket/a%20b/mod.zip?region=eu-test-1"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("with a wrong key: %v", err)
	}
}
