// Package cos is the backend "cos": state in the object store of Tencent Cloud, with
// a lock object that is guarded by a tag of the account while it is made.
//
// Main types: Kind opens a bucket, an object is the state of one workspace. The one
// rule: what is read has the checksum that is kept with it, and the lock object is
// asked before each write.
package cos

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/bucket"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind is the backend "cos".
func Kind() backend.Kind {
	return backend.Kind{
		Name:    "cos",
		Reached: []string{"bucket"},
		Schema: &schema.Block{
			Attributes: backend.Optional(map[string]cty.Type{
				"secret_id":      cty.String,
				"secret_key":     cty.String,
				"security_token": cty.String,
				"region":         cty.String,
				"bucket":         cty.String,
				"prefix":         cty.String,
				"key":            cty.String,
				"encrypt":        cty.Bool,
				"acl":            cty.String,
				"accelerate":     cty.Bool,
			}, "bucket"),
			Blocks: map[string]*schema.NestedBlock{
				"assume_role": {Nesting: schema.Set, MaxItems: 1, Block: &schema.Block{Attributes: backend.Optional(map[string]cty.Type{
					"role_arn":         cty.String,
					"session_name":     cty.String,
					"session_duration": cty.Number,
					"policy":           cty.String,
				}, "role_arn", "session_name", "session_duration")}},
			},
		},
		Ask:  map[string][]string{"region": {"TENCENTCLOUD_REGION"}},
		Open: open,
	}
}

type cosBackend struct {
	s              backend.Services
	account        *account
	bucket, region string
	layout         bucket.Layout
	encrypt        bool
	acl            string
	base           string
	client         *rest.Client
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	b := &cosBackend{
		s:       s,
		region:  a.Required("region", "TENCENTCLOUD_REGION"),
		bucket:  a.Required("bucket"),
		layout:  bucket.Layout{Prefix: a.String("prefix", ""), Key: a.String("key", "terraform.tfstate")},
		encrypt: a.Bool("encrypt", true),
		acl:     a.String("acl", "private"),
	}
	b.layout.Check(a)
	if b.acl != "private" && b.acl != "public-read" {
		a.Fail("acl", "The %q is neither %q nor %q", "acl", "private", "public-read")
	}
	b.base = "https://" + b.bucket + ".cos." + b.region + ".myqcloud.com"
	if a.Bool("accelerate", false) {
		b.base = "https://" + b.bucket + ".cos.accelerate.myqcloud.com"
	}
	if u, err := url.Parse(b.base); b.bucket != "" && b.region != "" && (err != nil || strings.ContainsAny(b.bucket+b.region, "/?#@:") || u.Host == "") {
		a.Fail("bucket", "The %q and the region make no name of a host", "bucket")
	}
	access := accountOf(a, s, b.region)
	if err := a.Err(); err != nil {
		return nil, err
	}
	b.account = s.Shared.Get("cos "+access.name(), func() any { return access }).(*account)
	b.client = &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: 10 * time.Minute}, Retries: 4, Sleep: s.Sleep, Now: s.Now, Prepare: b.sign}
	return b, nil
}

// sign is the Prepare of requests to the bucket.
func (b *cosBackend) sign(ctx context.Context, r *http.Request, _ func() [sha256.Size]byte) error {
	c, err := b.account.get(ctx)
	if err != nil {
		return err
	}
	if c.token != "" {
		r.Header.Set("x-cos-security-token", c.token)
	}
	r.Header.Set("Authorization", signObject(r, c, b.s.Now()))
	return nil
}

// file is the name of the object that holds the state of a workspace.
func (b *cosBackend) file(workspace string) string { return b.layout.File(workspace) }

func (b *cosBackend) List(ctx context.Context) ([]string, error) {
	return b.layout.Workspaces(ctx, b.list)
}

// list returns the names of all objects with a prefix, in order.
func (b *cosBackend) list(ctx context.Context, prefix string) ([]string, error) {
	return bucket.List(ctx, prefix, func(ctx context.Context, q url.Values) ([]byte, error) {
		resp, err := b.send(ctx, "GET", "", q, nil, nil, true)
		if err == nil && resp.Status != http.StatusOK {
			err = b.refused("", "cos:GetBucket", resp)
		}
		if err != nil {
			return nil, err
		}
		return resp.Body, nil
	})
}

func (b *cosBackend) Delete(ctx context.Context, workspace string) error {
	o := &object{b: b, file: b.file(workspace)}
	if err := b.delete(ctx, o.file); err != nil {
		return err
	}
	return backend.DeleteBlobs(ctx, o)
}

func (b *cosBackend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	if workspace == "" {
		workspace = store.Default
	}
	file := b.file(workspace)
	return backend.NewStore(&object{b: b, file: file}, "cos:"+b.bucket+"/"+file, o, b.s), nil
}

func (b *cosBackend) address(key string) string {
	return b.base + (&url.URL{Path: "/" + key}).EscapedPath()
}

func (b *cosBackend) send(ctx context.Context, method, key string, q url.Values, h http.Header, body []byte, repeat bool) (*rest.Response, error) {
	address := b.address(key)
	if len(q) > 0 {
		address += "?" + strings.ReplaceAll(q.Encode(), "+", "%20")
	}
	return b.do(ctx, rest.Request{Method: method, URL: address, Header: h, Body: body, Repeat: repeat})
}

func (b *cosBackend) do(ctx context.Context, r rest.Request) (*rest.Response, error) {
	resp, err := b.client.Do(ctx, r)
	if err != nil {
		if e, ok := err.(*backend.Error); ok { // from the credentials
			return nil, e
		}
		return nil, &backend.Error{Argument: "bucket", Answer: diag.Reason(err), Advice: rest.Reach(err, "SSL_CERT_FILE", "Check bucket and region, and that the service can be reached from here, through its proxy if there is one."), Err: err}
	}
	return resp, nil
}

// read returns an object, nil if it is not there.
func (b *cosBackend) read(ctx context.Context, key string) ([]byte, error) {
	var all bytes.Buffer
	found, err := b.fetch(ctx, key, backend.Fill(&all))
	if err != nil || !found {
		return nil, err
	}
	return append([]byte{}, all.Bytes()...), nil
}

// fetch gives an object to take and reports whether it is there.
func (b *cosBackend) fetch(ctx context.Context, key string, take func(io.Reader) error) (found bool, err error) {
	sum := md5.New()
	resp, err := b.do(ctx, rest.Request{Method: "GET", URL: b.address(key), Repeat: true, Into: func(r io.Reader) error {
		sum.Reset()
		return take(backend.Tee(r, sum))
	}})
	if err != nil {
		return false, err
	}
	switch {
	case resp.Status == http.StatusOK:
	case resp.Status == http.StatusNotFound && !strings.Contains(string(resp.Body), "NoSuchBucket"):
		return false, nil
	default:
		return false, b.refused("", "cos:GetObject", resp)
	}
	const advice = "It was damaged or written by another program; bring it back from a version of the bucket or a backup."
	want := resp.Header.Get("x-cos-meta-md5")
	if want == "" {
		return false, &backend.Error{Argument: "key", Answer: fmt.Sprintf("the object %q has no checksum (x-cos-meta-md5)", key), Advice: advice}
	}
	if hex.EncodeToString(sum.Sum(nil)) != want {
		return false, &backend.Error{Argument: "key", Answer: fmt.Sprintf("the object %q does not have the checksum that is kept with it", key), Advice: advice}
	}
	return true, nil
}

// write replaces an object; fresh refuses to if there is one.
func (b *cosBackend) write(ctx context.Context, key string, t *backend.Text, fresh bool) (*rest.Response, error) {
	sum := t.MD5()
	h := http.Header{"Content-Type": {"application/json"}, "X-Cos-Meta-Md5": {hex.EncodeToString(sum[:])}, "X-Cos-Acl": {b.acl}}
	if b.encrypt {
		h.Set("X-Cos-Server-Side-Encryption", "AES256")
	}
	if fresh {
		h.Set("X-Cos-Forbid-Overwrite", "true")
	}
	return b.do(ctx, rest.Request{Method: "PUT", URL: b.address(key), Header: h, Content: t, Repeat: !fresh})
}

func (b *cosBackend) delete(ctx context.Context, key string) error {
	resp, err := b.send(ctx, "DELETE", key, nil, nil, nil, true)
	if err != nil {
		return err
	}
	if resp.Status != http.StatusOK && resp.Status != http.StatusNoContent && resp.Status != http.StatusNotFound {
		return b.refused("", "cos:DeleteObject", resp)
	}
	return nil
}

// refused is the error of an answer that is not a success.
func (b *cosBackend) refused(summary, permission string, resp *rest.Response) error {
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		return &backend.Error{Summary: summary, Argument: "bucket", Answer: answer, Advice: advice}
	}
	e := &backend.Error{Summary: summary, Argument: "bucket", Answer: fmt.Sprintf("COS answered %d %s", resp.Status, http.StatusText(resp.Status))}
	var said struct{ Code, Message string }
	if xml.Unmarshal(resp.Body, &said) == nil && said.Code != "" {
		e.Answer += ": " + said.Code + ": " + rest.Line([]byte(said.Message))
	}
	switch {
	case said.Code == "NoSuchBucket":
		e.Advice = fmt.Sprintf("There is no bucket %q in the region %q: create it, or check the name, which ends with the number of the account (APPID), and the region.", b.bucket, b.region)
	case said.Code == "InvalidAccessKeyId", said.Code == "SignatureDoesNotMatch":
		e.Argument, e.Advice = "secret_id", "Check secret_id and secret_key, or TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY."
	case said.Code == "RequestTimeTooSkewed", said.Code == "RequestIsExpired":
		e.Advice = "Check the clock of this machine."
	case resp.Status == http.StatusForbidden:
		e.Permission = permission
		e.Advice = fmt.Sprintf("The account needs the permission %s; for all of this backend: cos:GetObject, cos:PutObject, cos:DeleteObject, cos:GetBucket, tag:CreateTag, tag:DeleteTag and tag:DescribeTags.", permission)
	default:
		e.Advice = backend.AdviceOn(resp.Status)
	}
	return e
}

// Check implements backend.Checker.
func (b *cosBackend) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	who := "the key of secret_id"
	if b.account.role != nil {
		who = "the role " + b.account.role.arn
	}
	report(backend.Finding{What: "credentials", OK: true, Detail: who}) // the state was read with them
	report(backend.Finding{What: "conditional writes", OK: true, Detail: "the service has none: the state is read before each write"})
	resp, err := b.send(ctx, "GET", "", url.Values{"versioning": {""}}, nil, nil, true)
	if err == nil && resp.Status != http.StatusOK {
		err = b.refused("", "cos:GetBucketVersioning", resp)
	}
	if err != nil {
		report(backend.Failed("versioning", err))
	} else {
		var v struct{ Status string }
		_ = xml.Unmarshal(resp.Body, &v) // what is not said is off
		backend.CheckVersioning(v.Status == "Enabled", report)
	}
	report(backend.Finding{What: "encryption at rest", OK: b.encrypt, Detail: map[bool]string{true: "AES256", false: "encrypt is false"}[b.encrypt]})
	backend.CheckClock(b.client, report)
}

// credentials sign requests.
type credentials struct{ id, key, token string }

// An account gives credentials, those of a role anew before they end.
type account struct {
	own    credentials
	region string
	role   *role
	client *rest.Client
	s      backend.Services

	mu    sync.Mutex
	got   credentials
	until time.Time
}

type role struct {
	arn, session, policy string
	seconds              int
}

func accountOf(a *backend.Args, s backend.Services, region string) *account {
	out := &account{region: region, s: s, own: credentials{
		id:    a.String("secret_id", "", "TENCENTCLOUD_SECRET_ID"),
		key:   a.String("secret_key", "", "TENCENTCLOUD_SECRET_KEY"),
		token: a.String("security_token", "", "TENCENTCLOUD_SECURITY_TOKEN"),
	}}
	if out.own.id == "" || out.own.key == "" {
		a.Fail("secret_id", "There are no credentials: set %q and %q, or TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY", "secret_id", "secret_key")
	}
	out.client = &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: time.Minute}, Retries: 3, Sleep: s.Sleep, Now: s.Now}
	r := a.Block("assume_role")
	if r == nil && s.Env.Get("TENCENTCLOUD_ASSUME_ROLE_ARN") != "" && s.Env.Get("TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME") != "" {
		r = backend.NewArgs(cty.EmptyObjectVal, s.Env)
	}
	if r != nil {
		out.role = &role{
			arn:     r.Required("role_arn", "TENCENTCLOUD_ASSUME_ROLE_ARN"),
			session: r.Required("session_name", "TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME"),
			seconds: r.Int("session_duration", 7200, "TENCENTCLOUD_ASSUME_ROLE_SESSION_DURATION"),
			policy:  r.String("policy", ""),
		}
		if out.role.seconds < 0 || out.role.seconds > 43200 {
			a.Fail("assume_role", "The %q is not between 0 and 43200", "assume_role.session_duration")
		}
	}
	return out
}

// name tells accounts apart.
func (c *account) name() string { return fmt.Sprintf("%q %q %+v", c.own, c.region, c.role) }

func (c *account) get(ctx context.Context) (credentials, error) {
	if c.role == nil {
		return c.own, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.got.id != "" && c.s.Now().Before(c.until) {
		return c.got, nil
	}
	var answer struct {
		ExpiredTime int64
		Credentials struct{ Token, TmpSecretId, TmpSecretKey string }
	}
	in := map[string]any{"RoleArn": c.role.arn, "RoleSessionName": c.role.session, "DurationSeconds": c.role.seconds}
	if c.role.policy != "" {
		in["Policy"] = url.QueryEscape(c.role.policy)
	}
	if _, err := c.call(ctx, c.own, "sts", "AssumeRole", "2018-08-13", in, &answer); err != nil {
		err.Argument, err.Summary = "assume_role", "Failed to assume the role"
		return credentials{}, err
	}
	got := answer.Credentials
	c.got = credentials{got.TmpSecretId, got.TmpSecretKey, got.Token}
	c.until = time.Unix(answer.ExpiredTime, 0).Add(-5 * time.Minute)
	return c.got, nil
}

// call calls an action of an interface of the cloud. code is that of a refusal.
func (c *account) call(ctx context.Context, as credentials, service, action, version string, in, out any) (code string, e *backend.Error) {
	body, err := json.Marshal(in)
	if err != nil {
		return "", &backend.Error{Answer: diag.Reason(err), Err: err}
	}
	host := service + ".tencentcloudapi.com"
	now := c.s.Now()
	h := http.Header{"Content-Type": {"application/json"}, "X-Tc-Action": {action}, "X-Tc-Version": {version}, "X-Tc-Timestamp": {fmt.Sprint(now.Unix())}, "X-Tc-Region": {c.region},
		"Authorization": {signAPI(service, host, body, as, now)}}
	if as.token != "" {
		h.Set("X-Tc-Token", as.token)
	}
	resp, err := c.client.Do(ctx, rest.Request{Method: "POST", URL: "https://" + host + "/", Header: h, Body: body})
	if err != nil {
		return "", &backend.Error{Answer: diag.Reason(err), Advice: rest.Reach(err, "SSL_CERT_FILE", "Check that the service can be reached from here, through its proxy if there is one."), Err: err}
	}
	var answer struct {
		Response json.RawMessage
	}
	var failure struct {
		Error *struct{ Code, Message string }
	}
	if json.Unmarshal(resp.Body, &answer) != nil || json.Unmarshal(answer.Response, &failure) != nil {
		return "", &backend.Error{Answer: fmt.Sprintf("%s answered %d and no JSON", host, resp.Status), Advice: "Check whether a proxy stands in between."}
	}
	if f := failure.Error; f != nil {
		e := &backend.Error{Argument: "secret_id", Answer: fmt.Sprintf("%s of %s: %s: %s", action, host, f.Code, rest.Line([]byte(f.Message)))}
		switch {
		case strings.HasPrefix(f.Code, "UnauthorizedOperation") || strings.HasPrefix(f.Code, "AuthFailure.Unauthorized"):
			e.Advice = fmt.Sprintf("The account needs the permission %s:%s.", service, action)
		case strings.HasPrefix(f.Code, "AuthFailure"):
			e.Advice = "Check secret_id and secret_key, and the clock of this machine."
		default:
			e.Advice = backend.AdviceOn(resp.Status)
		}
		return f.Code, e
	}
	if out != nil && json.Unmarshal(answer.Response, out) != nil {
		return "", &backend.Error{Answer: host + " answered something else than it should", Advice: "Check whether a proxy stands in between."}
	}
	return "", nil
}
