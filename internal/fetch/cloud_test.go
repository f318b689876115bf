package fetch

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"fmt"
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

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/terrace-iac/terrace/internal/oci"
)

// The example of the AWS documentation, "Authenticating Requests: Using the
// Authorization Header (AWS Signature Version 4)", GET object.
func TestSignV4(t *testing.T) {
	r, err := http.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com/test.txt", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Range", "bytes=0-9")
	signV4(r, awsCredentials{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""}, "us-east-1", "s3", time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
	if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41") {
		t.Error(got)
	}
	r, _ = http.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", nil)
	signV4(r, awsCredentials{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""}, "us-east-1", "s3", time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
	if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7") {
		t.Error(got)
	}
}

// bucketServer is as much of S3 as is asked of it. It checks each signature by
// making it again, and wants the given key.
func bucketServer(t *testing.T, objects map[string][]byte, want awsCredentials) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want.id != "" {
			stamp, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			copy := r.Clone(context.Background())
			copy.Header.Del("Authorization")
			copy.URL.Host = r.Host
			signV4(copy, want, "eu-test-1", "s3", stamp)
			if err != nil || copy.Header.Get("Authorization") != r.Header.Get("Authorization") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
		} else if r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		key := strings.TrimPrefix(r.URL.Path, "/bucket/")
		if r.URL.Query().Get("list-type") == "2" {
			type object struct {
				Key  string
				Size int
			}
			var page struct {
				XMLName  xml.Name `xml:"ListBucketResult"`
				Contents []object
				Next     string `xml:"NextContinuationToken,omitempty"`
			}
			for k, v := range objects {
				if strings.HasPrefix(k, r.URL.Query().Get("prefix")) {
					page.Contents = append(page.Contents, object{k, len(v)})
				}
			}
			if r.URL.Query().Get("continuation-token") == "" {
				page.Contents, page.Next = nil, "more of it"
			}
			_ = xml.NewEncoder(w).Encode(page)
			return
		}
		body, ok := objects[key]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestS3(t *testing.T) {
	objects := map[string][]byte{"a/mod ü.zip": zipped(t, "main.tf=zip"), "dir/main.tf": []byte("one"), "dir/sub/x.tf": []byte("two"), "dir/": nil, "bad/../x": []byte("x")}
	secret := awsCredentials{"AKID", "s3cr3t/+", "token"}
	srv := bucketServer(t, objects, secret)
	f := newFetcher(t)
	f.Env = f.Env.With("AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=s3cr3t/+", "AWS_SESSION_TOKEN=token", "AWS_REGION=eu-test-1")
	base := "s3::" + srv.URL + "/bucket/"
	has(t, mustGet(t, f, base+"a/mod%20%C3%BC.zip"), map[string]string{"main.tf": "zip"})
	has(t, mustGet(t, f, base+"dir"), map[string]string{"main.tf": "one", "sub": "/", "sub/x.tf": "two"})
	getFails(t, f, base+"none.zip", "404")
	getFails(t, f, base+"none", "there is nothing at none")
	getFails(t, f, base+"bad", "leads out of its folder")
	getFails(t, f, "s3::"+srv.URL+"/bucket", "must have the form")

	// The other places where credentials come from.
	home := t.TempDir()
	put(t, filepath.Join(home, ".aws", "credentials"), "[default]\naws_access_key_id = no\n\n[p]\naws_access_key_id = AKID\naws_secret_access_key=s3cr3t/+\naws_session_token = token\n")
	src := base + "dir?region=eu-test-1"
	f = newFetcher(t)
	f.Home = home
	getFails(t, f, src, "403")
	f = newFetcher(t)
	f.Home = home
	f.Env = f.Env.With("AWS_PROFILE=p")
	mustGet(t, f, src)
	f = newFetcher(t)
	f.Home = home
	mustGet(t, f, src+"&aws_profile=p")
	put(t, filepath.Join(home, ".aws", "config"), "[profile q]\naws_access_key_id = AKID\naws_secret_access_key = s3cr3t/+\naws_session_token = token\n")
	mustGet(t, f, src+"&aws_profile=q")
	mustGet(t, newFetcher(t), src+"&aws_access_key_id=AKID&aws_access_key_secret=s3cr3t%2F%2B&aws_access_token=token")

	meta := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const doc = `{"AccessKeyId":"AKID","SecretAccessKey":"s3cr3t/+","Token":"token"}`
		switch {
		case r.URL.Path == "/container" && r.Header.Get("Authorization") == "ct":
			fmt.Fprint(w, doc)
		case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut:
			fmt.Fprint(w, "imds")
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") == "imds" && strings.HasSuffix(r.URL.Path, "/security-credentials/"):
			fmt.Fprint(w, "role")
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") == "imds" && strings.HasSuffix(r.URL.Path, "/role"):
			fmt.Fprint(w, doc)
		case r.Method == http.MethodPost && r.FormValue("WebIdentityToken") == "wit" && r.FormValue("RoleArn") == "arn":
			fmt.Fprint(w, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>AKID</AccessKeyId><SecretAccessKey>s3cr3t/+</SecretAccessKey><SessionToken>token</SessionToken></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer meta.Close()
	put(t, filepath.Join(home, "wit"), "wit\n")
	for _, env := range [][]string{
		{"AWS_CONTAINER_CREDENTIALS_FULL_URI=" + meta.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN=ct"},
		{"AWS_EC2_METADATA_DISABLED=false", "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + meta.URL},
		{"AWS_WEB_IDENTITY_TOKEN_FILE=" + filepath.Join(home, "wit"), "AWS_ROLE_ARN=arn", "AWS_ENDPOINT_URL_STS=" + meta.URL},
	} {
		f := newFetcher(t)
		f.Env = f.Env.With(env...)
		mustGet(t, f, src)
	}
	public := bucketServer(t, objects, awsCredentials{})
	mustGet(t, newFetcher(t), "s3::"+public.URL+"/bucket/dir")
}

// TestS3Server asks a real server that speaks the protocol of S3, versitygw.
func TestS3Server(t *testing.T) {
	program := os.Getenv("TERRACE_TEST_VERSITYGW")
	if program == "" {
		t.Skip("TERRACE_TEST_VERSITYGW names no S3 server to test with")
	}
	root := t.TempDir()
	put(t, filepath.Join(root, "bucket", "a b", "mod.zip"), string(zipped(t, "main.tf=zip")))
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
	f := newFetcher(t)
	f.Now = time.Now
	f.Env = f.Env.With("AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=s3cr3t", "AWS_REGION=eu-test-1")
	for range 600 {
		if resp, err := http.Get("http://" + port); err == nil {
			resp.Body.Close()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	has(t, mustGet(t, f, "s3::http://"+port+"/bucket/a%20b/mod.zip"), map[string]string{"main.tf": "zip"})
	has(t, mustGet(t, f, "s3::http://"+port+"/bucket/dir"), map[string]string{"main.tf": "one"})
	f.Env = f.Env.With("AWS_SECRET_ACCESS_KEY=wrong")
	getFails(t, f, "s3::http://"+port+"/bucket/a%20b/mod.zip?region=eu-test-1", "403")
}

func TestGCS(t *testing.T) {
	objects := map[string][]byte{"a/mod.zip": zipped(t, "main.tf=zip"), "dir/main.tf": []byte("one"), "dir/sub/x.tf": []byte("two")}
	want := "token"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			if r.FormValue("refresh_token") != "refresh" && strings.Count(r.FormValue("assertion"), ".") != 2 {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, `{"access_token":"token"}`)
		case r.Header.Get("Authorization") != "" && r.Header.Get("Authorization") != "Bearer "+want:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/storage/v1/b/bucket/o":
			var items []map[string]string
			for k := range objects {
				if strings.HasPrefix(k, r.URL.Query().Get("prefix")) {
					items = append(items, map[string]string{"name": k})
				}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"items": items})
		default:
			key, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/storage/v1/b/bucket/o/"))
			body, ok := objects[key]
			if !ok || r.URL.Query().Get("alt") != "media" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = w.Write(body)
		}
	}))
	defer srv.Close()
	f := newFetcher(t)
	f.Env = f.Env.With("STORAGE_EMULATOR_HOST=" + srv.URL)
	const base = "gcs::https://www.googleapis.com/storage/v1/bucket/"
	has(t, mustGet(t, f, base+"a/mod.zip"), map[string]string{"main.tf": "zip"})
	has(t, mustGet(t, f, base+"dir"), map[string]string{"main.tf": "one", "sub": "/", "sub/x.tf": "two"})
	getFails(t, f, base+"none.zip", "404")
	getFails(t, f, base+"none", "there is nothing at none")
	getFails(t, f, "gcs::https://www.googleapis.com/storage/v1/bucket", "must have the form")

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pemText := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	for _, doc := range []map[string]string{
		{"type": "service_account", "client_email": "a@b", "private_key": pemText, "token_uri": srv.URL + "/token"},
		{"type": "authorized_user", "client_id": "id", "client_secret": "s", "refresh_token": "refresh", "token_uri": srv.URL + "/token"},
	} {
		text, _ := json.Marshal(doc)
		w := &work{Fetcher: newFetcher(t)}
		got, err := w.googleExchange(context.Background(), text)
		if got != "token" || err != nil {
			t.Error(doc["type"], got, err)
		}
	}
	w := &work{Fetcher: newFetcher(t)}
	if _, err := w.googleExchange(context.Background(), []byte(`{"type":"gdch_service_account"}`)); err == nil || !strings.Contains(err.Error(), "GOOGLE_OAUTH_ACCESS_TOKEN") {
		t.Error(err)
	}
	w.Env = w.Env.With("GOOGLE_OAUTH_ACCESS_TOKEN=x")
	if got, err := w.googleToken(context.Background()); got != "x" || err != nil {
		t.Error(got, err)
	}
}

// pushOCI puts a module package into a registry.
func pushOCI(t *testing.T, base, repo, tag string, body []byte, edit func(*oci.Manifest)) string {
	t.Helper()
	send := func(method, where, kind string, body []byte) {
		req, err := http.NewRequest(method, where, strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode >= 300 {
			t.Fatal(where, resp.Status)
		}
	}
	digest := "sha256:" + sumOf(body)
	empty := "sha256:" + sumOf([]byte("{}"))
	for d, b := range map[string][]byte{digest: body, empty: []byte("{}")} {
		send(http.MethodPost, base+"/v2/"+repo+"/blobs/uploads/?digest="+d, "application/octet-stream", b)
	}
	m := &oci.Manifest{SchemaVersion: 2, MediaType: oci.ManifestType, ArtifactType: moduleArtifact, Config: oci.Descriptor{MediaType: "application/vnd.oci.empty.v1+json", Digest: empty, Size: 2}, Layers: []oci.Descriptor{{MediaType: zipLayer, Digest: digest, Size: int64(len(body))}}}
	if edit != nil {
		edit(m)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	send(http.MethodPut, base+"/v2/"+repo+"/manifests/"+tag, m.MediaType, text)
	return "sha256:" + sumOf(text)
}

func TestOCI(t *testing.T) {
	reg := registry.New()
	auth := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			if u, p, _ := r.BasicAuth(); u+p != "mepw" || r.URL.Query().Get("scope") != "repository:a/mod:pull" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, `{"token":"t0ken"}`)
			return
		}
		if auth != "" && r.Header.Get("Authorization") != auth {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="x",scope="repository:a/mod:pull"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		reg.ServeHTTP(w, r)
	}))
	defer srv.Close()
	host := strings.TrimPrefix(srv.URL, "http://")
	content := map[string]string{"main.tf": "oci", "sub": "/", "sub/x.tf": "x"}
	body := zipped(t, "main.tf=oci", "sub/x.tf=x")
	pushOCI(t, srv.URL, "a/mod", "latest", body, nil)
	digest := pushOCI(t, srv.URL, "a/mod", "1.0", body, nil)
	pushOCI(t, srv.URL, "a/mod", "image", body, func(m *oci.Manifest) { m.ArtifactType = "application/x" })
	pushOCI(t, srv.URL, "a/mod", "two", body, func(m *oci.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) })
	pushOCI(t, srv.URL, "a/mod", "short", body, func(m *oci.Manifest) { m.Layers[0].Size-- })
	f := newFetcher(t)
	base := "oci://" + host + "/a/mod"
	has(t, mustGet(t, f, base), content)
	has(t, mustGet(t, f, base+"//sub?tag=1.0"), content)
	has(t, mustGet(t, f, base+"?digest="+digest), content)
	getFails(t, f, base+"?tag=image", "artifact type")
	getFails(t, f, base+"?tag=two", "exactly one layer")
	getFails(t, f, base+"?tag=short", "")
	getFails(t, f, base+"?tag=none", "404")
	getFails(t, f, base+"?tag=1.0&digest="+digest, "either a tag or a digest")
	getFails(t, f, base+"?foo=1", "cannot have the parameter")
	auth = "Bearer t0ken"
	f = newFetcher(t)
	getFails(t, f, base, "cannot get a token")
	f = newFetcher(t)
	f.OCI = func(_ context.Context, h, repo string) (OCICredentials, error) {
		if h != host || repo != "a/mod" {
			t.Error(h, repo)
		}
		return OCICredentials{Username: "me", Password: "pw"}, nil
	}
	has(t, mustGet(t, f, base), content)
}
