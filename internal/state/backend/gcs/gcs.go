// Package gcs is the backend "gcs": state in a bucket of Google Cloud Storage, with a lock
// object that is created only if there is none.
//
// Main types: Kind opens a bucket, an object is the state of one workspace. The one rule:
// every write is conditional on the generation of the replaced object, and checks the lock
// first.
package gcs

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/net/gcp"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind returns the backend "gcs".
func Kind() backend.Kind {
	return backend.Kind{
		Name:    "gcs",
		Reached: []string{"storage_custom_endpoint", "bucket"},
		Schema: &schema.Block{Attributes: backend.Optional(map[string]cty.Type{
			"bucket":                                cty.String,
			"prefix":                                cty.String,
			"credentials":                           cty.String,
			"access_token":                          cty.String,
			"impersonate_service_account":           cty.String,
			"impersonate_service_account_delegates": cty.List(cty.String),
			"encryption_key":                        cty.String,
			"kms_encryption_key":                    cty.String,
			"storage_custom_endpoint":               cty.String,
			"universe_domain":                       cty.String,
		}, "bucket")},
		Bootstrap: bootstrapArgs(),
		Open:      open,
	}
}

type bucket struct {
	s            backend.Services
	name, prefix string
	who          string // the argument that sets the credentials
	key          []byte // the customer's encryption key; nil for none
	kms          string
	login        *gcp.Session // nil for an emulator
	base, upload string       // URLs of the JSON API
	client       *rest.Client
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	b := &bucket{s: s, who: a.Given("access_token", "credentials"), name: a.Required("bucket"), kms: a.String("kms_encryption_key", "", "GOOGLE_KMS_ENCRYPTION_KEY")}
	if b.prefix = strings.TrimLeft(a.String("prefix", ""), "/"); b.prefix != "" && !strings.HasSuffix(b.prefix, "/") {
		b.prefix += "/"
	}
	b.readKey(a)
	o := gcp.Options{
		Credentials: a.String("credentials", "", "GOOGLE_BACKEND_CREDENTIALS", "GOOGLE_CREDENTIALS"),
		AccessToken: a.String("access_token", "", "GOOGLE_OAUTH_ACCESS_TOKEN"),
		Impersonate: a.String("impersonate_service_account", "", "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"),
		Delegates:   a.Strings("impersonate_service_account_delegates"),
		Universe:    a.String("universe_domain", "", "GOOGLE_BACKEND_UNIVERSE_DOMAIN"),
		Scopes:      []string{"https://www.googleapis.com/auth/devstorage.read_write"},
	}
	if o.Impersonate != "" { // the impersonation needs another scope; the resulting token has the requested ones
		o.Scopes = append(o.Scopes, "https://www.googleapis.com/auth/cloud-platform")
	}
	name := fmt.Sprintf("gcs %+v\x00%s\x00%v", o, s.Dir, s.Env)
	session := s.Shared.Get(name, func() any {
		return gcp.Open(o, gcp.Services{Env: s.Env, Dir: s.Dir, Home: s.Home, Transport: s.Transport, Now: s.Now, Run: s.Run})
	}).(*gcp.Session)
	b.login = session
	endpoint := a.String("storage_custom_endpoint", "", "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT")
	b.client = &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: 10 * time.Minute}, Retries: 5, Sleep: s.Sleep, Now: s.Now, Prepare: rest.Once(session.Prepare, gcp.Lasting)}
	if emulator := s.Env.Get("STORAGE_EMULATOR_HOST"); emulator != "" && endpoint == "" {
		if !strings.Contains(emulator, "://") {
			emulator = "http://" + emulator
		}
		endpoint, b.client.Prepare, b.login = strings.TrimSuffix(emulator, "/")+"/storage/v1/", nil, nil
	}
	if endpoint == "" {
		endpoint = "https://" + session.Host("storage") + "/storage/v1/"
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		a.Fail("storage_custom_endpoint", "The %q is no address such as https://storage.googleapis.com/storage/v1/", "storage_custom_endpoint")
		return nil, a.Err()
	}
	b.base, b.upload = strings.TrimSuffix(endpoint, "/"), u.Scheme+"://"+u.Host+"/upload/storage/v1"
	if err := a.Err(); err != nil {
		return nil, err
	}
	return b, nil
}

// readKey reads the customer's encryption key: base64, or the path of a file that contains
// it.
func (b *bucket) readKey(a *backend.Args) {
	text := a.String("encryption_key", "", "GOOGLE_ENCRYPTION_KEY")
	if text == "" {
		return
	}
	if b.kms != "" {
		a.Fail("encryption_key", "Only one of %q and %q can be set", "encryption_key", "kms_encryption_key")
	}
	path := text
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.s.Dir, path)
	}
	if content, err := readfile.Whole(path); err == nil {
		text = string(content)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != 32 {
		a.Fail("encryption_key", "The %q is neither 32 bytes in base64 nor the path of a file with them", "encryption_key")
		return
	}
	b.key = key
}

const suffix, lockSuffix = ".tfstate", ".tflock"

func (b *bucket) List(ctx context.Context) ([]string, error) {
	all, err := b.list(ctx, b.prefix, "/")
	if err != nil {
		return nil, err
	}
	names := []string{store.Default}
	for _, name := range all {
		name, ok := strings.CutSuffix(strings.TrimPrefix(name, b.prefix), suffix)
		if ok && name != store.Default && store.ValidWorkspace(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names, nil
}

// list returns the names of objects with a prefix. With a delimiter, names that contain it
// after the prefix are omitted.
func (b *bucket) list(ctx context.Context, prefix, delimiter string) ([]string, error) {
	var out []string
	for token := ""; ; {
		q := url.Values{"prefix": {prefix}, "fields": {"items/name,nextPageToken"}}
		if delimiter != "" {
			q.Set("delimiter", delimiter)
		}
		if token != "" {
			q.Set("pageToken", token)
		}
		resp, err := b.send(ctx, rest.Request{Method: "GET", URL: b.objects() + "?" + q.Encode(), Repeat: true})
		if err != nil {
			return nil, err
		}
		if resp.Status != http.StatusOK {
			return nil, b.refused("", "storage.objects.list", resp)
		}
		var page struct {
			Items         []struct{ Name string }
			NextPageToken string
		}
		if err := json.Unmarshal(resp.Body, &page); err != nil {
			return nil, odd()
		}
		for _, i := range page.Items {
			out = append(out, i.Name)
		}
		if token = page.NextPageToken; token == "" {
			return out, nil
		}
	}
}

func (b *bucket) Delete(ctx context.Context, workspace string) error {
	o := b.object(workspace)
	if err := b.delete(ctx, o.file, ""); err != nil {
		return err
	}
	return backend.DeleteBlobs(ctx, o)
}

func (b *bucket) object(workspace string) *object {
	if workspace == "" {
		workspace = store.Default
	}
	return &object{b: b, file: b.prefix + workspace + suffix, lock: b.prefix + workspace + lockSuffix}
}

func (b *bucket) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	obj := b.object(workspace)
	return backend.NewStore(obj, "gs://"+b.name+"/"+obj.file, o, b.s), nil
}

func (b *bucket) objects() string { return b.base + "/b/" + url.PathEscape(b.name) + "/o" }

func (b *bucket) send(ctx context.Context, r rest.Request) (*rest.Response, error) {
	resp, err := b.client.Do(ctx, r)
	if err != nil {
		return nil, b.unreachable(err)
	}
	return resp, nil
}

// unreachable returns the error of a request without a response.
func (b *bucket) unreachable(err error) error {
	if errors.Is(err, gcp.ErrNone) {
		return &backend.Error{Argument: b.who, Answer: gcp.None, Advice: gcp.NoneAdvice, Err: err}
	}
	return &backend.Error{Argument: "bucket", Answer: diag.Reason(err), Advice: rest.Reach(err, "SSL_CERT_FILE", "Check the credentials, and that the service can be reached from here, through its proxy if there is one."), Err: err}
}

// customer adds the customer's encryption key to headers.
func (b *bucket) customer(h http.Header) http.Header {
	if b.key != nil {
		sum := sha256.Sum256(b.key)
		h["X-Goog-Encryption-Algorithm"] = []string{"AES256"}
		h["X-Goog-Encryption-Key"] = []string{base64.StdEncoding.EncodeToString(b.key)}
		h["X-Goog-Encryption-Key-Sha256"] = []string{base64.StdEncoding.EncodeToString(sum[:])}
	}
	return h
}

// read returns an object and its generation; nil if there is none.
func (b *bucket) read(ctx context.Context, name string, h http.Header) (data []byte, generation string, err error) {
	var all bytes.Buffer
	generation, err = b.fetch(ctx, name, h, backend.Fill(&all))
	if err != nil || generation == "" {
		return nil, "", err
	}
	return append([]byte{}, all.Bytes()...), generation, nil
}

// fetch passes the content of an object to take and returns its generation; "" if there is
// none.
func (b *bucket) fetch(ctx context.Context, name string, h http.Header, take func(io.Reader) error) (generation string, err error) {
	hash := md5.New()
	resp, err := b.send(ctx, rest.Request{Method: "GET", URL: b.objects() + "/" + url.PathEscape(name) + "?alt=media", Header: h, Repeat: true, Into: func(r io.Reader) error {
		hash.Reset()
		return take(backend.Tee(r, hash))
	}})
	switch {
	case err != nil:
		return "", err
	case resp.Status == http.StatusNotFound && !noBucket(resp):
		return "", nil
	case resp.Status != http.StatusOK:
		return "", b.refused("", "storage.objects.get", resp)
	}
	for _, v := range resp.Header.Values("X-Goog-Hash") {
		for part := range strings.SplitSeq(v, ",") {
			want, ok := strings.CutPrefix(strings.TrimSpace(part), "md5=")
			if ok && want != base64.StdEncoding.EncodeToString(hash.Sum(nil)) {
				return "", &backend.Error{Argument: "bucket", Answer: "what came is not what the service holds: the checksums differ", Advice: "It was damaged on the way: run the command again, and if that lasts, look at the proxy in between."}
			}
		}
	}
	return resp.Header.Get("X-Goog-Generation"), nil
}

// noBucket reports whether the bucket was not found.
func noBucket(resp *rest.Response) bool {
	return strings.Contains(strings.ToLower(string(resp.Body)), "bucket does not exist")
}

// write writes an object. If generation is set, the object must have it; "0" means that it
// must not exist.
func (b *bucket) write(ctx context.Context, name string, t *backend.Text, generation string, h http.Header) (now string, resp *rest.Response, err error) {
	q := url.Values{"uploadType": {"media"}, "name": {name}}
	if generation != "" {
		q.Set("ifGenerationMatch", generation)
	}
	if b.kms != "" {
		q.Set("kmsKeyName", b.kms)
	}
	h.Set("Content-Type", "application/json")
	resp, err = b.send(ctx, rest.Request{Method: "POST", URL: b.upload + "/b/" + url.PathEscape(b.name) + "/o?" + q.Encode(), Header: h, Content: t, Repeat: true})
	if err != nil || resp.Status != http.StatusOK {
		return "", resp, err
	}
	var meta struct{ Generation string }
	if err := json.Unmarshal(resp.Body, &meta); err != nil || meta.Generation == "" {
		return "", resp, odd()
	}
	return meta.Generation, resp, nil
}

// delete deletes an object. If generation is set, the object must have it. A missing object
// is not an error.
func (b *bucket) delete(ctx context.Context, name, generation string) error {
	where := b.objects() + "/" + url.PathEscape(name)
	if generation != "" {
		where += "?ifGenerationMatch=" + url.QueryEscape(generation)
	}
	resp, err := b.send(ctx, rest.Request{Method: "DELETE", URL: where, Repeat: true})
	if err == nil && resp.Status != http.StatusNoContent && resp.Status != http.StatusOK && (resp.Status != http.StatusNotFound || noBucket(resp)) {
		err = b.refused("", "storage.objects.delete", resp)
	}
	return err
}

// odd returns the error for a response that the service never sends.
func odd() error {
	return &backend.Error{Argument: "bucket", Answer: "the answer is not one of Cloud Storage", Advice: "Check storage_custom_endpoint, and whether a proxy stands in between."}
}

// refused returns the error for an unsuccessful response.
func (b *bucket) refused(summary, permission string, resp *rest.Response) error {
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		return &backend.Error{Summary: summary, Argument: "bucket", Answer: answer, Advice: advice}
	}
	e := &backend.Error{Summary: summary, Argument: "bucket", Answer: strings.TrimSpace(fmt.Sprintf("Cloud Storage answered %d %s: %s", resp.Status, http.StatusText(resp.Status), gcp.Message(resp.Body)))}
	switch {
	case noBucket(resp):
		e.Advice = fmt.Sprintf("There is no bucket %q: create it (for a unit \"backend bootstrap\" does), or check the name.", b.name)
	case resp.Status == http.StatusUnauthorized:
		e.Argument, e.Advice = b.who, "The credentials are not accepted: check them, or log in again."
	case resp.Status == http.StatusForbidden:
		e.Permission = permission
		e.Advice = fmt.Sprintf("The credentials need the permission %s; for all of this backend: storage.objects.get, create, delete and list (role Storage Object Admin).", permission)
	case resp.Status == http.StatusBadRequest && strings.Contains(string(resp.Body), "ncrypt"):
		e.Argument, e.Advice = "encryption_key", "The object is encrypted with a customer's key: set encryption_key to the one that it was written with."
	default:
		e.Advice = backend.AdviceOn(resp.Status)
	}
	return e
}

// Check implements backend.Checker.
func (b *bucket) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	if b.login == nil {
		report(backend.Finding{What: "credentials", OK: true, Detail: "none: STORAGE_EMULATOR_HOST names an emulator"})
	} else if source, err := b.login.Check(ctx); err != nil {
		report(backend.Failed("credentials", b.unreachable(err)))
		return
	} else {
		report(backend.Finding{What: "credentials", OK: true, Detail: source})
	}
	const permission = "storage.buckets.get"
	resp, err := b.send(ctx, rest.Request{Method: "GET", URL: b.base + "/b/" + url.PathEscape(b.name) + "?fields=versioning,encryption,iamConfiguration", Repeat: true})
	if err == nil && resp.Status != http.StatusOK {
		err = b.refused("", permission, resp)
	}
	if err != nil {
		report(backend.Failed("versioning", err))
	} else {
		var v struct {
			Versioning       struct{ Enabled bool }
			IAMConfiguration struct{ PublicAccessPrevention string }
		}
		_ = json.Unmarshal(resp.Body, &v) // a missing setting is off
		backend.CheckVersioning(v.Versioning.Enabled, report)
		f := backend.Finding{What: "public access", OK: v.IAMConfiguration.PublicAccessPrevention == "enforced", Detail: "prevented"}
		if !f.OK {
			f.Detail = "prevention is not enforced on the bucket"
		}
		report(f)
	}
	detail := "keys of Google"
	switch {
	case b.key != nil:
		detail = "a key of the customer"
	case b.kms != "":
		detail = b.kms
	}
	report(backend.Finding{What: "encryption at rest", OK: true, Detail: detail})
	backend.CheckClock(b.client, report)
}
