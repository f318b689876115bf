// Package oss is the backend "oss": state in the object store of Alibaba Cloud, with
// locks and checksums in a table of Tablestore.
//
// Main types: Kind opens a bucket, an object is the state of one workspace. The one
// rule: what is read has the checksum that the table holds, and the row of the lock is
// asked before each write.
package oss

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/bucket"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind is the backend "oss".
func Kind() backend.Kind {
	return backend.Kind{
		Name:    "oss",
		Reached: []string{"endpoint", "bucket"},
		Schema: &schema.Block{
			Attributes: backend.Optional(map[string]cty.Type{
				"access_key":                     cty.String,
				"secret_key":                     cty.String,
				"security_token":                 cty.String,
				"ecs_role_name":                  cty.String,
				"region":                         cty.String,
				"sts_endpoint":                   cty.String,
				"tablestore_endpoint":            cty.String,
				"endpoint":                       cty.String,
				"bucket":                         cty.String,
				"prefix":                         cty.String,
				"key":                            cty.String,
				"tablestore_table":               cty.String,
				"encrypt":                        cty.Bool,
				"acl":                            cty.String,
				"shared_credentials_file":        cty.String,
				"profile":                        cty.String,
				"assume_role_role_arn":           cty.String,
				"assume_role_session_name":       cty.String,
				"assume_role_policy":             cty.String,
				"assume_role_session_expiration": cty.Number,
			}, "bucket"),
			Blocks: map[string]*schema.NestedBlock{
				"assume_role": {Nesting: schema.Set, MaxItems: 1, Block: &schema.Block{Attributes: backend.Optional(map[string]cty.Type{
					"role_arn":           cty.String,
					"session_name":       cty.String,
					"policy":             cty.String,
					"session_expiration": cty.Number,
				}, "role_arn")}},
			},
		},
		Open: open,
	}
}

type ossBackend struct {
	s       backend.Services
	account *account
	bucket  string
	layout  bucket.Layout
	encrypt bool
	acl     string
	base    string // the address of the bucket, without a final slash
	client  *rest.Client
	table   *table // nil: no locks
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	b := &ossBackend{
		s:       s,
		bucket:  a.Required("bucket"),
		layout:  bucket.Layout{Prefix: a.String("prefix", "env:"), Key: a.String("key", "terraform.tfstate")},
		encrypt: a.Bool("encrypt", false),
		acl:     a.String("acl", ""),
	}
	b.layout.Check(a)
	if b.acl != "" && b.acl != "private" && b.acl != "public-read" && b.acl != "public-read-write" {
		a.Fail("acl", "The %q is none of private, public-read and public-read-write", "acl")
	}
	access := accountOf(a, s)
	endpoint := a.String("endpoint", "", "ALICLOUD_OSS_ENDPOINT", "OSS_ENDPOINT")
	if endpoint == "" {
		if access.region == "" {
			a.Fail("region", "There is no %q, no ALICLOUD_REGION and no %q", "region", "endpoint")
		}
		endpoint = "oss-" + access.region + ".aliyuncs.com"
	}
	u, err := url.Parse(withScheme(endpoint))
	switch {
	case err != nil || u.Host == "" || strings.ContainsAny(b.bucket, "/?#@:"):
		a.Fail("endpoint", "The %q and the bucket make no address", "endpoint")
	case net.ParseIP(u.Hostname()) != nil:
		b.base = u.Scheme + "://" + u.Host + "/" + b.bucket
	default:
		b.base = u.Scheme + "://" + b.bucket + "." + u.Host
	}
	b.client = &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: 5 * time.Minute}, Retries: 4, Sleep: s.Sleep, Now: s.Now, Prepare: b.sign}
	tableEndpoint, name := a.String("tablestore_endpoint", "", "ALICLOUD_TABLESTORE_ENDPOINT"), a.String("tablestore_table", "")
	if name != "" {
		u, err := url.Parse(withScheme(tableEndpoint))
		if tableEndpoint == "" || err != nil || u.Host == "" {
			a.Fail("tablestore_endpoint", "A %q needs a %q, an address like https://INSTANCE.cn-hangzhou.ots.aliyuncs.com", "tablestore_table", "tablestore_endpoint")
		} else {
			instance, _, _ := strings.Cut(u.Hostname(), ".")
			b.table = &table{name: name, base: u.Scheme + "://" + u.Host, instance: instance, now: s.Now,
				client: &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: time.Minute}, Retries: 4, Sleep: s.Sleep, Now: s.Now}}
		}
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	b.account = s.Shared.Get("oss "+access.name(), func() any { return access }).(*account)
	if b.table != nil {
		b.table.account = b.account
	}
	return b, nil
}

func withScheme(address string) string {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	return strings.TrimSuffix(address, "/")
}

// signed are the parameters of the URL that are a part of what is signed.
var signed = []string{"acl", "versioning", "versionId", "location"}

func mac(key, text string) string {
	m := hmac.New(sha1.New, []byte(key))
	m.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// sign is the Prepare of requests to the bucket: the signature in the Authorization
// header, version 1.
func (b *ossBackend) sign(ctx context.Context, r *http.Request, _ func() [sha256.Size]byte) error {
	c, err := b.account.get(ctx)
	if err != nil {
		return err
	}
	r.Header.Set("Date", b.s.Now().UTC().Format(http.TimeFormat))
	if c.token != "" {
		r.Header.Set("X-Oss-Security-Token", c.token)
	}
	var own []string
	for k, vs := range r.Header {
		if k = strings.ToLower(k); strings.HasPrefix(k, "x-oss-") {
			own = append(own, k+":"+strings.TrimSpace(vs[0])+"\n")
		}
	}
	slices.Sort(own)
	key := r.URL.Path
	if rest, ok := strings.CutPrefix(key, "/"+b.bucket+"/"); ok && strings.HasSuffix(b.base, "/"+b.bucket) {
		key = "/" + rest
	}
	resource := "/" + b.bucket + key
	sep := "?"
	q := r.URL.Query()
	for _, name := range signed {
		if q.Has(name) {
			resource += sep + name
			if v := q.Get(name); v != "" {
				resource += "=" + v
			}
			sep = "&"
		}
	}
	text := r.Method + "\n" + r.Header.Get("Content-Md5") + "\n" + r.Header.Get("Content-Type") + "\n" + r.Header.Get("Date") + "\n" + strings.Join(own, "") + resource
	r.Header.Set("Authorization", "OSS "+c.id+":"+mac(c.key, text))
	return nil
}

// file is the name of the object that holds the state of a workspace.
func (b *ossBackend) file(workspace string) string { return b.layout.File(workspace) }

func (b *ossBackend) List(ctx context.Context) ([]string, error) {
	return b.layout.Workspaces(ctx, b.list)
}

// list returns the names of all objects with a prefix, in order.
func (b *ossBackend) list(ctx context.Context, prefix string) ([]string, error) {
	return bucket.List(ctx, prefix, func(ctx context.Context, q url.Values) ([]byte, error) {
		resp, err := b.send(ctx, "GET", "", q, nil, nil, true)
		if err == nil && resp.Status != http.StatusOK {
			err = b.refused("", "oss:ListObjects", resp)
		}
		if err != nil {
			return nil, err
		}
		return resp.Body, nil
	})
}

func (b *ossBackend) Delete(ctx context.Context, workspace string) error {
	o := &object{b: b, file: b.file(workspace)}
	if err := b.delete(ctx, o.file); err != nil {
		return err
	}
	if b.table != nil {
		if err := b.table.remove(ctx, o.id()+digestSuffix); err != nil {
			return err
		}
	}
	return backend.DeleteBlobs(ctx, o)
}

func (b *ossBackend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	if workspace == "" {
		workspace = store.Default
	}
	file := b.file(workspace)
	return backend.NewStore(&object{b: b, file: file}, "oss://"+b.bucket+"/"+file, o, b.s), nil
}

func (b *ossBackend) address(key string) string {
	return b.base + (&url.URL{Path: "/" + key}).EscapedPath()
}

func (b *ossBackend) send(ctx context.Context, method, key string, q url.Values, h http.Header, body []byte, repeat bool) (*rest.Response, error) {
	address := b.address(key)
	if len(q) > 0 {
		address += "?" + strings.ReplaceAll(q.Encode(), "+", "%20")
	}
	return b.do(ctx, rest.Request{Method: method, URL: address, Header: h, Body: body, Repeat: repeat})
}

func (b *ossBackend) do(ctx context.Context, r rest.Request) (*rest.Response, error) {
	resp, err := b.client.Do(ctx, r)
	if err != nil {
		if e, ok := err.(*backend.Error); ok { // from the credentials
			return nil, e
		}
		return nil, &backend.Error{Argument: "endpoint", Answer: diag.Reason(err), Advice: rest.Reach(err, "SSL_CERT_FILE", "Check bucket, region and endpoint, and that the service can be reached from here, through its proxy if there is one."), Err: err}
	}
	return resp, nil
}

// read returns an object, nil if it is not there.
func (b *ossBackend) read(ctx context.Context, key string) ([]byte, error) {
	var all bytes.Buffer
	found, err := b.fetch(ctx, key, backend.Fill(&all))
	if err != nil || !found {
		return nil, err
	}
	return append([]byte{}, all.Bytes()...), nil
}

// fetch gives an object to take and reports whether it is there.
func (b *ossBackend) fetch(ctx context.Context, key string, take func(io.Reader) error) (found bool, err error) {
	resp, err := b.do(ctx, rest.Request{Method: "GET", URL: b.address(key), Repeat: true, Into: take})
	switch {
	case err != nil:
		return false, err
	case resp.Status == http.StatusOK:
		return true, nil
	case resp.Status == http.StatusNotFound && !strings.Contains(string(resp.Body), "NoSuchBucket"):
		return false, nil
	}
	return false, b.refused("", "oss:GetObject", resp)
}

func (b *ossBackend) write(ctx context.Context, key string, t *backend.Text) error {
	sum := t.MD5()
	h := http.Header{"Content-Type": {"application/json"}, "Content-Md5": {base64.StdEncoding.EncodeToString(sum[:])}}
	if b.encrypt {
		h.Set("X-Oss-Server-Side-Encryption", "AES256")
	}
	if b.acl != "" {
		h.Set("X-Oss-Object-Acl", b.acl)
	}
	resp, err := b.do(ctx, rest.Request{Method: "PUT", URL: b.address(key), Header: h, Content: t, Repeat: true})
	if err == nil && resp.Status != http.StatusOK {
		err = b.refused("Failed to write", "oss:PutObject", resp)
	}
	return err
}

func (b *ossBackend) delete(ctx context.Context, key string) error {
	resp, err := b.send(ctx, "DELETE", key, nil, nil, nil, true)
	if err == nil && resp.Status != http.StatusOK && resp.Status != http.StatusNoContent && resp.Status != http.StatusNotFound {
		err = b.refused("", "oss:DeleteObject", resp)
	}
	return err
}

// refused is the error of an answer that is not a success.
func (b *ossBackend) refused(summary, permission string, resp *rest.Response) error {
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		return &backend.Error{Summary: summary, Argument: "endpoint", Answer: answer, Advice: advice}
	}
	e := &backend.Error{Summary: summary, Argument: "bucket", Answer: fmt.Sprintf("OSS answered %d %s", resp.Status, http.StatusText(resp.Status))}
	var said struct{ Code, Message, Endpoint string }
	if xml.Unmarshal(resp.Body, &said) == nil && said.Code != "" {
		e.Answer += ": " + said.Code + ": " + rest.Line([]byte(said.Message))
	}
	switch {
	case said.Code == "NoSuchBucket":
		e.Advice = fmt.Sprintf("There is no bucket %q there: create it, or check its name, the region and the endpoint.", b.bucket)
	case said.Code == "InvalidAccessKeyId", said.Code == "SignatureDoesNotMatch":
		e.Argument, e.Advice = "access_key", "Check access_key and secret_key, or ALICLOUD_ACCESS_KEY and ALICLOUD_SECRET_KEY."
	case said.Code == "RequestTimeTooSkewed":
		e.Advice = "Check the clock of this machine."
	case said.Endpoint != "" && strings.Contains(said.Message, "endpoint"):
		e.Argument, e.Advice = "endpoint", fmt.Sprintf("The bucket is in another region: set endpoint to %s, or the region of it.", said.Endpoint)
	case resp.Status == http.StatusForbidden:
		e.Permission = permission
		e.Advice = fmt.Sprintf("The account needs the permission %s; for all of this backend: oss:GetObject, oss:PutObject, oss:DeleteObject and oss:ListObjects; for locks ots:GetRow, ots:PutRow, ots:DeleteRow and ots:DescribeTable.", permission)
	default:
		e.Advice = backend.AdviceOn(resp.Status)
	}
	return e
}

// WhyNoLocks implements backend.Lockless.
func (b *ossBackend) WhyNoLocks() string { return "there is no tablestore_table" }

// Check implements backend.Checker.
func (b *ossBackend) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	who := "the key of access_key or of the profile"
	switch {
	case b.account.role != nil:
		who = "the role " + b.account.role.arn
	case b.account.own.id == "":
		who = "the role " + b.account.machineRole + " of this machine"
	}
	report(backend.Finding{What: "credentials", OK: true, Detail: who}) // the state was read with them
	report(backend.Finding{What: "conditional writes", OK: true, Detail: "the state is read before each write: the service compares nothing when an object is replaced"})
	resp, err := b.send(ctx, "GET", "", url.Values{"versioning": {""}}, nil, nil, true)
	if err == nil && resp.Status != http.StatusOK {
		err = b.refused("", "oss:GetBucketVersioning", resp)
	}
	if err != nil {
		report(backend.Failed("versioning", err))
	} else {
		var v struct{ Status string }
		_ = xml.Unmarshal(resp.Body, &v) // what is not said is off
		backend.CheckVersioning(v.Status == "Enabled", report)
	}
	report(backend.Finding{What: "encryption at rest", OK: b.encrypt, Detail: map[bool]string{true: "AES256", false: "encrypt is false"}[b.encrypt]})
	if b.table != nil {
		if err := b.table.describe(ctx); err != nil {
			f := backend.Failed("table of the locks", err)
			f.Permission = "ots:DescribeTable"
			report(f)
		} else {
			report(backend.Finding{What: "table of the locks", OK: true, Detail: b.table.name})
		}
	}
	backend.CheckClock(b.client, report)
}
