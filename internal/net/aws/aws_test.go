package aws_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/aws"
)

func services(t *testing.T, env ...string) aws.Services {
	return aws.Services{Env: env, Dir: t.TempDir(), Home: t.TempDir(), Now: time.Now, Run: sys.NoChildren, Transport: &http.Transport{}}
}

func open(t *testing.T, o aws.Options, s aws.Services) *aws.Session {
	t.Helper()
	session, err := aws.Open(t.Context(), o, s)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// Keys and the region come from the first source that has them: the options, the environment, the
// profile.
func TestOrderOfPlaces(t *testing.T) {
	s := services(t, "AWS_ACCESS_KEY_ID=environment", "AWS_SECRET_ACCESS_KEY=x", "AWS_REGION=eu-west-1", "AWS_EC2_METADATA_DISABLED=true")
	profile := filepath.Join(s.Home, ".aws", "credentials")
	if err := os.Mkdir(filepath.Dir(profile), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(profile, []byte("[default]\naws_access_key_id = profile\naws_secret_access_key = x\nregion = eu-west-2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := aws.Options{AccessKey: "options", SecretKey: "x", Region: "eu-west-3"}
	for _, step := range []struct {
		key, region string
		next        func()
	}{
		{"options", "eu-west-3", func() { o = aws.Options{} }},
		{"environment", "eu-west-1", func() { s.Env = sys.Env{"AWS_EC2_METADATA_DISABLED=true"} }},
		{"profile", "eu-west-2", func() { o.Region, o.ConfigFiles, o.CredentialFiles = "eu-west-1", []string{"none"}, []string{"none"} }},
	} {
		session := open(t, o, s)
		c, err := session.Credentials(t.Context())
		if err != nil || c.AccessKeyID != step.key || session.Region != step.region {
			t.Errorf("the key of %s in %s, want that of %s in %s; %v", c.AccessKeyID, session.Region, step.key, step.region, err)
		}
		step.next()
	}
	if _, err := open(t, o, s).Credentials(t.Context()); !errors.Is(err, aws.ErrNoCredentials) {
		t.Errorf("without credentials the error is %v", err)
	}
	o.Region = ""
	if _, err := aws.Open(t.Context(), o, s); !errors.Is(err, aws.ErrNoRegion) {
		t.Errorf("without a region the error is %v", err)
	}
	o.Profile = "other"
	if _, err := aws.Open(t.Context(), o, s); err == nil || !strings.Contains(err.Error(), `no profile "other"`) {
		t.Errorf("without the profile the error is %v", err)
	}
}

// The program of a profile runs in the environment and directory of the session.
func TestCredentialProcess(t *testing.T) {
	s := services(t, "AWS_CONFIG_FILE=config", "WHO=me")
	if err := os.WriteFile(filepath.Join(s.Dir, "config"), []byte("[default]\nregion = eu-west-1\ncredential_process = give keys\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := `{"Version":1,"AccessKeyId":"id","SecretAccessKey":"planted"}`
	s.Run = func(_ context.Context, c sys.Command) error {
		if c.Dir != s.Dir || sys.Env(c.Env).Get("WHO") != "me" || c.Args[len(c.Args)-1] != "give keys" {
			t.Errorf("%+v", c)
		}
		_, err := io.WriteString(c.Stdout, answer)
		return err
	}
	if c, err := open(t, aws.Options{}, s).Credentials(t.Context()); err != nil || c.AccessKeyID != "id" {
		t.Errorf("%s, %v", c.AccessKeyID, err)
	}
	answer = `{"Version":2,"AccessKeyId":"id","SecretAccessKey":"planted"}`
	if _, err := open(t, aws.Options{}, s).Credentials(t.Context()); err == nil || strings.Contains(err.Error(), "planted") {
		t.Errorf("an answer of another version: %v", err)
	}
}

// Keys of an environment that expires are requested again before they expire.
func TestRenewed(t *testing.T) {
	s := services(t, "AWS_ACCESS_KEY_ID=first", "AWS_SECRET_ACCESS_KEY=x", "AWS_REGION=eu-west-1")
	n := 0
	s.Renew = func(context.Context) (sys.Env, time.Time, error) {
		n++
		end := time.Now().Add(time.Hour)
		if n == 1 {
			end = time.Now().Add(-time.Second)
		}
		return sys.Env{"AWS_ACCESS_KEY_ID=" + []string{"second", "third"}[n-1], "AWS_SECRET_ACCESS_KEY=x"}, end, nil
	}
	session := open(t, aws.Options{}, s)
	for _, want := range []string{"second", "third", "third"} {
		if c, err := session.Credentials(t.Context()); err != nil || c.AccessKeyID != want {
			t.Errorf("%s, want %s; %v", c.AccessKeyID, want, err)
		}
	}
}

// The request and its signature are the example "GET Object" of the service's documentation.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
func TestSign(t *testing.T) {
	s := services(t)
	s.Now = func() time.Time { return time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC) }
	session := open(t, aws.Options{AccessKey: "AKIAIOSFODNN7EXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", Region: "us-east-1"}, s)
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://examplebucket.s3.amazonaws.com/test.txt", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Range", "bytes=0-9")
	if err := session.Sign(t.Context(), r, sha256.Sum256(nil), "s3", "us-east-1"); err != nil {
		t.Fatal(err)
	}
	want := "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
	if got := r.Header.Get("Authorization"); got != want {
		t.Error(got)
	}
}

// The URL of a service is the given one, the one in a variable, or that of the region.
func TestEndpoint(t *testing.T) {
	for _, tt := range []struct {
		o     aws.Options
		given string
		env   []string
		want  string
	}{
		{aws.Options{Region: "eu-west-1"}, "", nil, "https://dynamodb.eu-west-1.amazonaws.com"},
		{aws.Options{Region: "cn-north-1"}, "", nil, "https://dynamodb.cn-north-1.amazonaws.com.cn"},
		{aws.Options{Region: "us-gov-west-1", FIPS: true}, "", nil, "https://dynamodb-fips.us-gov-west-1.amazonaws.com"},
		{aws.Options{Region: "eu-west-1", DualStack: true}, "", nil, "https://dynamodb.eu-west-1.api.aws"},
		{aws.Options{Region: "eu-west-1"}, "", []string{"AWS_ENDPOINT_URL=http://all/"}, "http://all"},
		{aws.Options{Region: "eu-west-1"}, "", []string{"AWS_ENDPOINT_URL=http://all", "AWS_ENDPOINT_URL_DYNAMODB=http://one"}, "http://one"},
		{aws.Options{Region: "eu-west-1"}, "given:80", []string{"AWS_ENDPOINT_URL=http://all"}, "https://given:80"},
	} {
		tt.o.AccessKey, tt.o.SecretKey = "a", "b"
		if got := open(t, tt.o, services(t, tt.env...)).Endpoint("dynamodb", tt.given); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// A token of another system is exchanged for the keys of a role, returned as environment
// variables.
func TestAssume(t *testing.T) {
	var form []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form = []string{r.FormValue("Action"), r.FormValue("RoleArn"), r.FormValue("WebIdentityToken"), r.FormValue("RoleSessionName")}
		_, _ = io.WriteString(w, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>id</AccessKeyId><SecretAccessKey>key</SecretAccessKey><SessionToken>token</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
	}))
	defer server.Close()
	s := services(t, "AWS_ENDPOINT_URL_STS="+server.URL)
	file := filepath.Join(s.Dir, "token")
	if err := os.WriteFile(file, []byte("in a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{"as text": "as text", file: "in a file"} {
		got, err := aws.Assume(t.Context(), aws.Role{ARN: "arn:aws:iam::1:role/r", SessionName: "me"}, token, aws.Options{}, s)
		if err != nil || !slices.Equal(got, []string{"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=key", "AWS_SESSION_TOKEN=token", "AWS_SECURITY_TOKEN=token"}) {
			t.Errorf("%v, %v", got, err)
		}
		if !slices.Equal(form, []string{"AssumeRoleWithWebIdentity", "arn:aws:iam::1:role/r", want, "me"}) {
			t.Error(form)
		}
	}
}

// An error response of a service has a code, which is that of its status if it contains none.
func TestJSONError(t *testing.T) {
	for body, want := range map[string]string{
		`{"__type":"com.amazonaws.dynamodb#ResourceNotFoundException","message":"no table"}`: "ResourceNotFoundException: no table",
		`{"__type":"AccessDenied","Message":"no"}`:                                           "AccessDenied: no",
		"<html>": "Bad Request",
	} {
		if e := aws.JSONError(http.StatusBadRequest, []byte(body)); e.Error() != want || e.Status != http.StatusBadRequest {
			t.Errorf("%s: %v", body, e)
		}
	}
}
