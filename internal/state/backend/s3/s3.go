// Package s3 is the backend "s3": state in a bucket of S3, or of a service with its
// protocol. Locks are objects next to the state, items of a DynamoDB table, or both.
//
// Main types: Kind opens a bucket, an object is one key of it. The one rule: a write only
// replaces the state that was read, and checks the lock before it. If a service ignores the
// conditions of a request, this is detected by reading back.
package s3

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/net/aws"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/awsargs"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind returns the backend "s3".
func Kind() backend.Kind {
	types := awsargs.Attributes()
	for name, t := range map[string]cty.Type{
		"bucket": cty.String, "key": cty.String, "workspace_key_prefix": cty.String, "acl": cty.String, "encrypt": cty.Bool, "kms_key_id": cty.String,
		"sse_customer_key": cty.String, "state_tags": cty.Map(cty.String), "lock_tags": cty.Map(cty.String), "dynamodb_table": cty.String, "use_lockfile": cty.Bool,
		"skip_s3_checksum": cty.Bool, "endpoint": cty.String, "dynamodb_endpoint": cty.String, "use_path_style": cty.Bool, "force_path_style": cty.Bool,
		"endpoints": cty.Object(map[string]cty.Type{"s3": cty.String, "iam": cty.String, "sts": cty.String, "dynamodb": cty.String}),
	} {
		types[name] = t
	}
	return backend.Kind{Name: "s3", Reached: []string{"endpoints", "endpoint", "bucket"}, Schema: &schema.Block{Attributes: backend.Optional(types, "bucket", "key")}, Open: open, Bootstrap: bootstrapArgs()}
}

type s3Backend struct {
	s       backend.Services
	session *aws.Session
	client  *rest.Client // signs requests to s3
	tables  *rest.Client // signs requests to dynamodb

	bucket, key, prefix string
	base                string                     // the address of the bucket, without a final slash
	at                  func(bucket string) string // the address of a bucket
	custom              bool                       // the service is not AWS
	acl, kmsKey         string
	customerKey         string // base64; "" for none
	encrypt, checksum   bool
	stateTags, lockTags string
	lockfile            bool
	table, tableBase    string

	account func(ctx context.Context) error // returns an error if the account must not be used
	who     string                          // the argument that sets the credentials
}

var regions = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(us|eu|ap|sa|ca|me|af|il|mx|cn|us-gov|us-iso[bf]?|eu-isoe|eusc-[a-z]+)-[a-z]+-\d+$`)
})

// kmsKeys matches IDs, aliases and ARNs of keys, as S3 accepts them.
var kmsKeys = sync.OnceValue(func() *regexp.Regexp {
	const id, alias = `[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|mrk-[0-9a-fA-F]{32}`, `alias/[a-zA-Z0-9/_-]+`
	return regexp.MustCompile(`^(` + id + `|` + alias + `|arn:[a-z-]+:kms:[a-z0-9-]+:\d{12}:(key/(` + id + `)|` + alias + `))$`)
})

// otherKeys matches key names of services other than AWS.
var otherKeys = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9:/_.-]+$`) })

func open(ctx context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	o := awsargs.Options(a)
	b := &s3Backend{
		s: s, bucket: a.Required("bucket"), key: a.Required("key"), prefix: a.String("workspace_key_prefix", "env:"), acl: a.String("acl", ""),
		encrypt: a.Bool("encrypt", false), kmsKey: a.String("kms_key_id", ""), checksum: !a.Bool("skip_s3_checksum", false),
		stateTags: tags(a.Map("state_tags")), lockTags: tags(a.Map("lock_tags")), lockfile: a.Bool("use_lockfile", false), table: a.String("dynamodb_table", ""),
	}
	for _, name := range []string{"key", "workspace_key_prefix"} {
		if v := a.String(name, ""); strings.HasPrefix(v, "/") || strings.HasSuffix(v, "/") {
			a.Fail(name, "The %q must not begin or end with a slash", name)
		}
	}
	b.who = a.Given("access_key", "assume_role", "role_arn", "assume_role_with_web_identity", "shared_credentials_files", "shared_credentials_file", "profile")
	b.customer(a)
	endpoints := a.Block("endpoints")
	endpoint := func(service, old string, env ...string) string {
		given := ""
		if endpoints != nil {
			given = endpoints.String(service, "")
		}
		if a.IsSet(old) {
			if given != "" {
				a.Fail(old, "%q cannot be set beside %q, which has taken its place", old, "endpoints."+service)
			}
			given = a.String(old, "")
		}
		for _, n := range env {
			if given == "" {
				given = s.Env.Get(n)
			}
		}
		return given
	}
	s3Endpoint := endpoint("s3", "endpoint", "AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT")
	table := endpoint("dynamodb", "dynamodb_endpoint", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_DYNAMODB_ENDPOINT")
	o.STSEndpoint = endpoint("sts", "sts_endpoint", "AWS_ENDPOINT_URL_STS", "AWS_STS_ENDPOINT")
	endpoint("iam", "iam_endpoint")
	if a.IsSet("use_path_style") && a.IsSet("force_path_style") {
		a.Fail("force_path_style", "%q cannot be set beside %q, which has taken its place", "force_path_style", "use_path_style")
	}
	if own := s3Endpoint == "" && s.Env.Get("AWS_ENDPOINT_URL") == ""; b.kmsKey != "" && !kmsKeys().MatchString(b.kmsKey) && (own || !otherKeys().MatchString(b.kmsKey)) {
		a.Fail("kms_key_id", "The %q is neither the ID nor the alias (alias/NAME) nor the ARN of a KMS key", "kms_key_id")
	}
	pathStyle := a.Bool("use_path_style", a.Bool("force_path_style", false))
	skipRegion := a.Bool("skip_region_validation", false)
	allowed, forbidden := a.Strings("allowed_account_ids"), a.Strings("forbidden_account_ids")
	if err := a.Err(); err != nil {
		return nil, err
	}

	session, err := aws.Open(ctx, o, aws.Services{Env: s.Env, Renew: s.Renew, Dir: s.Dir, Home: s.Home, Now: s.Now, Run: s.Run, Transport: s.Transport})
	switch {
	case errors.Is(err, aws.ErrNoRegion):
		return nil, &backend.Error{Argument: "region", Code: diag.CodeBackendConfigArgument, Summary: "Invalid backend configuration", Answer: diag.Reason(err), Err: err}
	case errors.Is(err, aws.ErrCABundle):
		return nil, &backend.Error{Argument: "custom_ca_bundle", Code: diag.CodeBackendConfigArgument, Summary: "Invalid backend configuration", Answer: diag.Reason(err), Err: err}
	case err != nil:
		return nil, &backend.Error{Argument: "profile", Code: diag.CodeBackendNoValidCredentials, Summary: "No valid credentials", Answer: diag.Reason(err), Err: err}
	case !skipRegion && !regions().MatchString(session.Region):
		return nil, &backend.Error{Argument: "region", Code: diag.CodeBackendConfigArgument, Summary: "Invalid backend configuration", Answer: fmt.Sprintf("%q is not a region of AWS", session.Region), Advice: "For a service that is not AWS's own, set skip_region_validation."}
	}
	b.session = session
	b.account = accounts(session, allowed, forbidden)
	b.address(s3Endpoint, pathStyle, o)
	if b.table != "" {
		b.tableBase = session.Endpoint("dynamodb", table)
	}
	b.client = b.signing("s3", o.MaxRetries)
	b.tables = b.signing("dynamodb", o.MaxRetries)
	return b, nil
}

// customer reads the customer's encryption key, and checks arguments that exclude it.
func (b *s3Backend) customer(a *backend.Args) {
	b.customerKey = a.String("sse_customer_key", "", "AWS_SSE_CUSTOMER_KEY")
	if b.customerKey == "" {
		return
	}
	if raw, err := base64.StdEncoding.DecodeString(b.customerKey); err != nil || len(b.customerKey) != 44 || len(raw) != 32 {
		a.Fail("sse_customer_key", "The %q is not 44 characters of base64", "sse_customer_key")
	}
	if b.kmsKey != "" {
		a.Fail("kms_key_id", "Only one of %q and %q (or AWS_SSE_CUSTOMER_KEY) can be set", "kms_key_id", "sse_customer_key")
	}
}

// address sets the address of the bucket. The bucket's name is in the host name, unless
// path-style addresses are configured or the name does not match a certificate.
func (b *s3Backend) address(endpoint string, pathStyle bool, o aws.Options) {
	host := "s3"
	switch {
	case o.FIPS && o.DualStack:
		host = "s3-fips.dualstack"
	case o.FIPS:
		host = "s3-fips"
	case o.DualStack:
		host = "s3.dualstack"
	}
	where := b.session.Endpoint("s3", endpoint)
	if endpoint == "" && b.s.Env.Get("AWS_ENDPOINT_URL") == "" {
		where = "https://" + host + "." + b.session.Region + "." + aws.Suffix(b.session.Region)
	} else {
		b.custom = true
	}
	b.at = func(bucket string) string {
		if pathStyle || strings.Contains(bucket, ".") {
			return where + "/" + url.PathEscape(bucket)
		}
		scheme, rest, _ := strings.Cut(where, "://")
		return scheme + "://" + bucket + "." + rest
	}
	b.base = b.at(b.bucket)
}

// unsigned is the error of a request that could not be signed, for lack of credentials.
type unsigned struct{ err error }

func (e *unsigned) Error() string { return e.err.Error() }
func (e *unsigned) Unwrap() error { return e.err }

// signing returns a client that signs each attempt.
func (b *s3Backend) signing(service string, retries int) *rest.Client {
	return &rest.Client{
		HTTP: b.session.HTTP, Retries: retries, Sleep: b.s.Sleep, Now: b.s.Now,
		Prepare: func(ctx context.Context, r *http.Request, sum func() [sha256.Size]byte) error {
			if err := b.account(ctx); err != nil {
				return rest.Final(err)
			}
			err := b.session.Sign(ctx, r, sum(), service, b.session.Region)
			switch {
			case errors.Is(err, aws.ErrNoCredentials):
				return rest.Final(&unsigned{err})
			case err != nil:
				return &unsigned{err}
			}
			return nil
		},
	}
}

// accounts returns a function that checks once that the credentials belong to an allowed
// account.
func accounts(session *aws.Session, allowed, forbidden []string) func(context.Context) error {
	if len(allowed)+len(forbidden) == 0 {
		return func(context.Context) error { return nil }
	}
	var mu sync.Mutex
	var done bool
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return nil
		}
		id, err := session.AccountID(ctx)
		switch {
		case err != nil:
			return &backend.Error{Argument: "allowed_account_ids", Code: diag.CodeBackendAccountNotKnown, Summary: "Account not known", Answer: "the account of the credentials cannot be asked for: " + diag.Reason(err), Advice: "It is asked for since allowed_account_ids or forbidden_account_ids is set: check the credentials, and that the service of AWS for tokens (STS) can be reached."}
		case len(allowed) > 0 && !slices.Contains(allowed, id):
			return &backend.Error{Argument: "allowed_account_ids", Code: diag.CodeBackendAccountNotAllowed, Summary: "Account not allowed", Answer: fmt.Sprintf("the credentials belong to the account %s, which is none of those that are allowed", id), Advice: "Use credentials of another account, or add this one."}
		case slices.Contains(forbidden, id):
			return &backend.Error{Argument: "forbidden_account_ids", Code: diag.CodeBackendAccountNotAllowed, Summary: "Account not allowed", Answer: fmt.Sprintf("the credentials belong to the account %s, which is forbidden", id), Advice: "Use credentials of another account."}
		}
		done = true
		return nil
	}
}

func tags(m map[string]string) string {
	q := url.Values{}
	for k, v := range m {
		q.Set(k, v)
	}
	return q.Encode()
}

// stateKey returns the key of a workspace.
func (b *s3Backend) stateKey(workspace string) string {
	if workspace == "" || workspace == store.Default {
		return b.key
	}
	if b.prefix == "" {
		return workspace + "/" + b.key
	}
	return b.prefix + "/" + workspace + "/" + b.key
}

func (b *s3Backend) object(workspace string) *object {
	return &object{b: b, key: b.stateKey(workspace)}
}

func (b *s3Backend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	obj := b.object(workspace)
	return backend.NewStore(obj, "s3://"+b.bucket+"/"+obj.key, o, b.s), nil
}

func (b *s3Backend) List(ctx context.Context) ([]string, error) {
	names := []string{store.Default}
	prefix := ""
	if b.prefix != "" {
		prefix = b.prefix + "/"
	}
	err := b.keys(ctx, prefix, func(key string) {
		ws, ok := strings.CutSuffix(strings.TrimPrefix(key, prefix), "/"+b.key)
		if ok && ws != "" && ws != store.Default && !strings.Contains(ws, "/") {
			names = append(names, ws)
		}
	})
	var e *backend.Error
	if errors.As(err, &e) && errors.Is(err, errDenied) {
		return names, nil // without permission to list, there is only the default workspace, as in OpenTofu and Terraform
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names[1:])
	return names, nil
}

// keys yields the keys with a prefix.
func (b *s3Backend) keys(ctx context.Context, prefix string, yield func(string)) error {
	for token := ""; ; {
		q := url.Values{"list-type": {"2"}, "prefix": {prefix}}
		if token != "" {
			q.Set("continuation-token", token)
		}
		resp, err := b.send(ctx, "GET", "", q, nil, nil, true)
		if err != nil {
			return err
		}
		if resp.Status != http.StatusOK {
			return b.refused("", resp, "s3:ListBucket")
		}
		var page struct {
			Contents              []struct{ Key string }
			IsTruncated           bool
			NextContinuationToken string
		}
		if err := xml.Unmarshal(resp.Body, &page); err != nil {
			return &backend.Error{Argument: "endpoints", Answer: "the answer to a listing is not one of S3", Advice: "Check endpoints, and whether a proxy stands in between."}
		}
		for _, c := range page.Contents {
			yield(c.Key)
		}
		if !page.IsTruncated || page.NextContinuationToken == "" {
			return nil
		}
		token = page.NextContinuationToken
	}
}

// Delete deletes the state, its digest and the objects next to it, but not the lock.
func (b *s3Backend) Delete(ctx context.Context, workspace string) error {
	o := b.object(workspace)
	if err := b.remove(ctx, o.key); err != nil {
		return err
	}
	if b.table != "" {
		if err := b.deleteItem(ctx, o.digestID(), ""); err != nil {
			return err
		}
	}
	names, err := o.ListBlobs(ctx, "")
	if errors.Is(err, errDenied) {
		return nil
	}
	for _, name := range names {
		if err := o.DeleteBlob(ctx, name); err != nil {
			return err
		}
	}
	return err
}

func (b *s3Backend) remove(ctx context.Context, key string) error {
	resp, err := b.send(ctx, "DELETE", key, nil, nil, nil, true)
	if err != nil {
		return err
	}
	if resp.Status/100 != 2 && resp.Status != http.StatusNotFound {
		return b.refused("", resp, "s3:DeleteObject")
	}
	return nil
}

// send sends a request about a key, or about the bucket if key is "".
func (b *s3Backend) send(ctx context.Context, method, key string, q url.Values, header http.Header, body []byte, repeat bool) (*rest.Response, error) {
	where := b.base
	if key != "" {
		where += "/" + escape(key)
	} else {
		where += "/"
	}
	if len(q) > 0 {
		where += "?" + strings.ReplaceAll(q.Encode(), "+", "%20")
	}
	return b.do(ctx, rest.Request{Method: method, URL: where, Header: header, Body: body, Repeat: repeat})
}

func (b *s3Backend) do(ctx context.Context, r rest.Request) (*rest.Response, error) {
	resp, err := b.client.Do(ctx, r)
	if err != nil {
		return nil, b.unreachable(err)
	}
	return resp, nil
}

func (b *s3Backend) unreachable(err error) error {
	var known *backend.Error
	if errors.As(err, &known) {
		return known
	}
	argument, advice := "region", rest.Reach(err, "custom_ca_bundle", "Check region, endpoints and the proxy, and that the service can be reached from here.")
	if b.custom {
		argument = "endpoints"
	}
	if unsigned := (*unsigned)(nil); errors.As(err, &unsigned) {
		argument, advice = b.who, "Set access_key and secret_key, a profile, or the variables of the AWS tools; \"aws sts get-caller-identity\" shows what they find."
	}
	return &backend.Error{Argument: argument, Answer: diag.Reason(err), Advice: advice, Err: err}
}

// escape escapes a key for a path, in the same way as signatures.
func escape(key string) string {
	var sb strings.Builder
	for _, c := range []byte(key) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~/", c) >= 0:
			sb.WriteByte(c)
		default:
			fmt.Fprintf(&sb, "%%%02X", c)
		}
	}
	return sb.String()
}

var (
	errDenied  = errors.New("access denied")
	errMissing = errors.New("no such object")
)

// answered is the body of an error response of S3.
type answered struct {
	Code, Message, Region string
}

func answerOf(resp *rest.Response) answered {
	var out answered
	_ = xml.Unmarshal(resp.Body, &out) // the response to a HEAD has no body
	if out.Code == "" {
		out.Code = http.StatusText(resp.Status)
	}
	return out
}

// refused returns the error for a response. permission is the required permission.
func (b *s3Backend) refused(summary string, resp *rest.Response, permission string) error {
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		argument := "region"
		if b.custom {
			argument = "endpoints"
		}
		return &backend.Error{Summary: summary, Argument: argument, Answer: answer, Advice: advice}
	}
	a := answerOf(resp)
	e := &backend.Error{Summary: summary, Argument: "bucket", Answer: fmt.Sprintf("the service answered %d %s", resp.Status, a.Code)}
	if a.Message != "" {
		e.Answer += ": " + strings.TrimSuffix(rest.Line([]byte(a.Message)), ".")
	}
	region := a.Region
	if region == "" {
		region = resp.Header.Get("x-amz-bucket-region")
	}
	switch {
	case a.Code == "NoSuchBucket":
		e.Advice = fmt.Sprintf("There is no bucket %q: make it (for a unit \"backend bootstrap\" does), or correct its name.", b.bucket)
	case region != "" && region != b.session.Region:
		e.Argument, e.Advice = "region", fmt.Sprintf("The bucket is in the region %s: set region to it.", region)
	case slices.Contains([]string{"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"}, a.Code):
		e.Argument, e.Advice = b.who, "The credentials are not valid (any more); \"aws sts get-caller-identity\" shows which ones are found."
	case a.Code == "RequestTimeTooSkewed":
		e.Argument, e.Advice = "", "The clock of this machine is wrong by more than fifteen minutes: set it."
	case a.Code == "AccessDenied" || resp.Status == http.StatusForbidden:
		e.Permission = permission
		e.Err, e.Advice = errDenied, fmt.Sprintf("The credentials need %s on the bucket %s.", permission, b.bucket)
	case resp.Status == http.StatusNotFound:
		e.Err, e.Advice = errMissing, "Check the names of bucket and key, and the endpoints."
	default:
		e.Advice = backend.AdviceOn(resp.Status)
	}
	return e
}

// md5Of returns the checksum for the headers about a customer's key.
func md5Of(b []byte) string {
	sum := md5.Sum(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// readers returns the headers of requests that read or write an object with the customer's
// key.
func (b *s3Backend) readers() http.Header {
	h := http.Header{}
	if b.customerKey != "" {
		raw, _ := base64.StdEncoding.DecodeString(b.customerKey) // checked when it was read
		h.Set("X-Amz-Server-Side-Encryption-Customer-Algorithm", "AES256")
		h.Set("X-Amz-Server-Side-Encryption-Customer-Key", b.customerKey)
		h.Set("X-Amz-Server-Side-Encryption-Customer-Key-Md5", md5Of(raw))
	}
	return h
}

// WhyNoLocks implements backend.Lockless.
func (b *s3Backend) WhyNoLocks() string {
	return "neither use_lockfile nor dynamodb_table is set, so there is no lock"
}

// Check implements backend.Checker.
func (b *s3Backend) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	if c, err := b.session.Credentials(ctx); err != nil {
		report(backend.Finding{What: "credentials", Detail: diag.Reason(err)})
		return
	} else {
		detail := "from " + c.Source
		if c.CanExpire {
			detail += ", until " + c.Expires.UTC().Format(time.RFC3339)
		}
		report(backend.Finding{What: "credentials", OK: true, Detail: detail})
	}
	backend.CheckClock(b.client, report)
	report(b.checkConditions(ctx))
	if err := b.keys(ctx, b.key, func(string) {}); errors.Is(err, errDenied) { // List ignores this error
		f := backend.Failed("right to list", err)
		f.Detail += " Without it no workspace is found but \"default\", nor a journal in the store."
		report(f)
	}
	look := func(what, query, permission string, good func(body string) (bool, string)) {
		resp, err := b.send(ctx, "GET", "", url.Values{query: {""}}, nil, nil, true)
		switch {
		case err != nil:
			report(backend.Failed(what, err))
		case resp.Status == http.StatusForbidden:
			report(backend.Finding{What: what, Detail: "cannot be asked for", Permission: permission})
		case resp.Status != http.StatusOK && resp.Status != http.StatusNotFound:
			report(backend.Finding{What: what, Detail: "the service answered " + answerOf(resp).Code})
		default:
			ok, detail := good(string(resp.Body))
			report(backend.Finding{What: what, OK: ok, Detail: detail})
		}
	}
	look("versioning", "versioning", "s3:GetBucketVersioning", func(body string) (bool, string) {
		if strings.Contains(body, "<Status>Enabled</Status>") {
			return true, "older states can be brought back"
		}
		return false, "it is off: a state that was overwritten or deleted cannot be brought back"
	})
	look("encryption at rest", "encryption", "s3:GetEncryptionConfiguration", func(body string) (bool, string) {
		if strings.Contains(body, "SSEAlgorithm") || b.encrypt {
			return true, "on"
		}
		return false, "the bucket has no default encryption, and encrypt is not set"
	})
	look("public access", "publicAccessBlock", "s3:GetBucketPublicAccessBlock", func(body string) (bool, string) {
		if strings.Count(body, ">true<") >= 4 {
			return true, "blocked"
		}
		return false, "not blocked wholly: a policy or an ACL could make the state public"
	})
}

// checkConditions checks, with an object next to the state, whether the service honours
// conditional writes.
func (b *s3Backend) checkConditions(ctx context.Context) backend.Finding {
	const what = "conditional writes"
	o := b.object("")
	key := o.blobKey("doctor/" + store.NewID())
	defer func() { _ = b.remove(context.WithoutCancel(ctx), key) }() // a remaining object is harmless
	for _, again := range []bool{false, true} {
		resp, err := o.put(ctx, key, backend.Bytes([]byte("probe")), b.stateTags, http.Header{"If-None-Match": {"*"}})
		switch {
		case err != nil:
			return backend.Failed(what, err)
		case again && resp.Status == http.StatusPreconditionFailed:
			return backend.Finding{What: what, OK: true, Detail: "the service keeps them"}
		case resp.Status/100 != 2:
			return backend.Failed(what, b.refused("", resp, "s3:PutObject"))
		}
	}
	return backend.Finding{What: what, Detail: "the service ignores them (If-None-Match): a state that changed is found by reading it before each write, and a lock by reading it back, which is weaker"}
}
