package cos

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/bucket"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/zclconf/go-cty/cty"
)

// An account is the bucket.Vendor of a bucket.
type account struct {
	own       bucket.Credentials
	region    string
	role      *bucket.Role // nil for none
	temporary bucket.Temporary
	client    *rest.Client
	s         backend.Services
}

func accountOf(a *backend.Args, s backend.Services, region string) *account {
	out := &account{region: region, s: s, own: bucket.Credentials{
		ID:    a.String("secret_id", "", "TENCENTCLOUD_SECRET_ID"),
		Key:   a.String("secret_key", "", "TENCENTCLOUD_SECRET_KEY"),
		Token: a.String("security_token", "", "TENCENTCLOUD_SECURITY_TOKEN"),
	}}
	if out.own.ID == "" || out.own.Key == "" {
		a.Fail("secret_id", "There are no credentials: set %q and %q, or TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY", "secret_id", "secret_key")
	}
	out.client = &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: time.Minute}, Retries: 3, Sleep: s.Sleep, Now: s.Now}
	r := a.Block("assume_role")
	if r == nil && s.Env.Get("TENCENTCLOUD_ASSUME_ROLE_ARN") != "" && s.Env.Get("TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME") != "" {
		r = backend.NewArgs(cty.EmptyObjectVal, s.Env)
	}
	if r != nil {
		out.role = &bucket.Role{
			ARN:     r.Required("role_arn", "TENCENTCLOUD_ASSUME_ROLE_ARN"),
			Session: r.Required("session_name", "TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME"),
			Seconds: r.Int("session_duration", 7200, "TENCENTCLOUD_ASSUME_ROLE_SESSION_DURATION"),
			Policy:  r.String("policy", ""),
		}
		if out.role.Seconds < 0 || out.role.Seconds > 43200 {
			a.Fail("assume_role", "The %q is not between 0 and 43200", "assume_role.session_duration")
		}
	}
	return out
}

// name returns a text that identifies the account.
func (c *account) name() string { return fmt.Sprintf("%q %q %+v", c.own, c.region, c.role) }

// Credentials implements bucket.Vendor.
func (c *account) Credentials(ctx context.Context) (bucket.Credentials, error) {
	if c.role == nil {
		return c.own, nil
	}
	return c.temporary.Get(ctx, c.s.Now(), c.assume)
}

// assume returns the credentials of the role, and their expiry.
func (c *account) assume(ctx context.Context) (bucket.Credentials, time.Time, error) {
	var answer struct {
		ExpiredTime int64
		Credentials struct{ Token, TmpSecretId, TmpSecretKey string }
	}
	in := map[string]any{"RoleArn": c.role.ARN, "RoleSessionName": c.role.Session, "DurationSeconds": c.role.Seconds}
	if c.role.Policy != "" {
		in["Policy"] = url.QueryEscape(c.role.Policy)
	}
	if _, err := c.call(ctx, c.own, "sts", "AssumeRole", "2018-08-13", in, &answer); err != nil {
		err.Argument, err.Summary = "assume_role", "Failed to assume the role"
		return bucket.Credentials{}, time.Time{}, err
	}
	got := answer.Credentials
	return bucket.Credentials{ID: got.TmpSecretId, Key: got.TmpSecretKey, Token: got.Token}, time.Unix(answer.ExpiredTime, 0), nil
}

// checksum is the header with the checksum of an object.
const checksum = "X-Cos-Meta-Md5"

// Checksum implements bucket.Vendor.
func (c *account) Checksum(sum [md5.Size]byte) (header, value string) {
	return checksum, hex.EncodeToString(sum[:])
}

// Verify implements bucket.Vendor.
func (c *account) Verify(key string, h http.Header, sum string) error {
	const advice = "It was damaged or written by another program; bring it back from a version of the bucket or a backup."
	switch h.Get(checksum) {
	case "":
		return &backend.Error{Argument: "key", Answer: fmt.Sprintf("the object %q has no checksum (%s)", key, strings.ToLower(checksum)), Advice: advice}
	case sum:
		return nil
	}
	return &backend.Error{Argument: "key", Answer: fmt.Sprintf("the object %q does not have the checksum that is kept with it", key), Advice: advice}
}

// call calls an action of one of the cloud's APIs. code is the error code if the service
// refuses the request.
func (c *account) call(ctx context.Context, as bucket.Credentials, service, action, version string, in, out any) (code string, e *backend.Error) {
	body, err := json.Marshal(in)
	if err != nil {
		return "", &backend.Error{Answer: diag.Reason(err), Err: err}
	}
	host := service + ".tencentcloudapi.com"
	now := c.s.Now()
	h := http.Header{"Content-Type": {"application/json"}, "X-Tc-Action": {action}, "X-Tc-Version": {version}, "X-Tc-Timestamp": {fmt.Sprint(now.Unix())}, "X-Tc-Region": {c.region},
		"Authorization": {signAPI(service, host, body, as, now)}}
	if as.Token != "" {
		h.Set("X-Tc-Token", as.Token)
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
