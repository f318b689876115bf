package fetch

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/terrace-iac/terrace/internal/net/oci"
)

// bucketServer implements the parts of S3 that the tests use. It requires the given signature,
// and a path with AWS's escaping.
func bucketServer(t *testing.T, objects map[string][]byte, want string) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != want || strings.ContainsAny(r.URL.EscapedPath()+r.URL.RawQuery, "+ ") {
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
	srv := bucketServer(t, objects, "signed eu-test-1")
	f := newFetcher(t)
	f.Env = f.Env.With("AWS_REGION=eu-test-1")
	var asked []S3Access
	f.S3 = func(_ context.Context, a S3Access) (Signer, error) {
		asked = append(asked, a)
		return func(r *http.Request) error {
			r.Header.Set("Authorization", "signed "+a.Region)
			return nil
		}, nil
	}
	base := "s3::" + srv.URL + "/bucket/"
	has(t, mustGet(t, f, base+"a/mod%20%C3%BC.zip"), map[string]string{"main.tf": "zip"})
	has(t, mustGet(t, f, base+"dir"), map[string]string{"main.tf": "one", "sub": "/", "sub/x.tf": "two"})
	getFails(t, f, base+"none.zip", "404")
	getFails(t, f, base+"none", "there is nothing at none")
	getFails(t, f, base+"bad", "leads out of its directory")
	getFails(t, f, "s3::"+srv.URL+"/bucket", "must have the form")
	getFails(t, newFetcher(t), base+"dir", "403")

	asked = nil
	mustGet(t, f, base+"dir?region=eu-test-1&aws_profile=p")
	mustGet(t, f, base+"dir?region=eu-test-1&aws_access_key_id=AKID&aws_access_key_secret=s3cr3t%2F%2B&aws_access_token=token")
	want := []S3Access{{Region: "eu-test-1", Profile: "p"}, {Region: "eu-test-1", AccessKey: "AKID", SecretKey: "s3cr3t/+", Token: "token"}}
	if !slices.Equal(asked, want) {
		t.Errorf("asked with %+v, want %+v", asked, want)
	}

	public := bucketServer(t, objects, "")
	f = newFetcher(t)
	f.S3 = func(context.Context, S3Access) (Signer, error) { return nil, nil }
	mustGet(t, f, "s3::"+public.URL+"/bucket/dir")
	f = newFetcher(t)
	f.S3 = func(context.Context, S3Access) (Signer, error) { return nil, errors.New("no valid credentials: why") }
	getFails(t, f, "s3::"+public.URL+"/bucket/dir", "no valid credentials: why")
}

func TestGCS(t *testing.T) {
	objects := map[string][]byte{"a/mod.zip": zipped(t, "main.tf=zip"), "dir/main.tf": []byte("one"), "dir/sub/x.tf": []byte("two")}
	want := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != want:
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

	// Requests to Google itself have a token.
	through := &redirected{srv.URL}
	f = newFetcher(t)
	f.Client.HTTP = &http.Client{Transport: through}
	f.GCS = func(context.Context) (string, error) { return "t0ken", nil }
	want = "Bearer t0ken"
	has(t, mustGet(t, f, base+"dir"), map[string]string{"main.tf": "one", "sub": "/", "sub/x.tf": "two"})
	mustGet(t, f, base+"a/mod.zip#7")
	want = ""
	f = newFetcher(t)
	f.Client.HTTP = &http.Client{Transport: through}
	f.GCS = func(context.Context) (string, error) { return "", nil }
	mustGet(t, f, base+"dir")
	f = newFetcher(t)
	f.GCS = func(context.Context) (string, error) { return "", errors.New("no access token: why") }
	getFails(t, f, base+"dir", "no access token: why")
}

// redirected sends all requests to one server.
type redirected struct{ to string }

func (d *redirected) RoundTrip(r *http.Request) (*http.Response, error) {
	u, err := url.Parse(d.to)
	if err != nil || r.URL.Host != "storage.googleapis.com" {
		return nil, fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	again := r.Clone(r.Context())
	again.URL.Scheme, again.URL.Host, again.Host = u.Scheme, u.Host, u.Host
	return http.DefaultTransport.RoundTrip(again)
}

// pushOCI pushes a module package to a registry.
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
	getFails(t, f, base+":1.0", "write "+base+"?tag=1.0")
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
