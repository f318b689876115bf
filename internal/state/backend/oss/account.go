package oss

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/bucket"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// metadata is the URL from which a machine of the cloud reads the credentials of its role.
const metadata = "http://100.100.100.200/latest/meta-data/ram/security-credentials/"

// An account returns the credentials that sign requests.
type account struct {
	own         bucket.Credentials
	machineRole string       // the role of the machine; "" for none
	role        *bucket.Role // nil for none
	temporary   bucket.Temporary
	region, sts string
	client      *rest.Client
	s           backend.Services
}

// A profile is a profile in the configuration file of the cloud's command line tool.
type profile struct {
	Name, Mode      string
	AccessKeyID     string `json:"access_key_id"`
	AccessKeySecret string `json:"access_key_secret"`
	Token           string `json:"sts_token"`
	MachineRole     string `json:"ram_role_name"`
	RoleARN         string `json:"ram_role_arn"`
	Session         string `json:"ram_session_name"`
	Seconds         int    `json:"expired_seconds"`
	Region          string `json:"region_id"`
}

func accountOf(a *backend.Args, s backend.Services) *account {
	p := profileOf(a, s)
	out := &account{s: s, own: bucket.Credentials{
		ID:    a.String("access_key", p.AccessKeyID, "ALICLOUD_ACCESS_KEY", "ALICLOUD_ACCESS_KEY_ID"),
		Key:   a.String("secret_key", p.AccessKeySecret, "ALICLOUD_SECRET_KEY", "ALICLOUD_ACCESS_KEY_SECRET"),
		Token: a.String("security_token", p.Token, "ALICLOUD_SECURITY_TOKEN"),
	}}
	out.machineRole = a.String("ecs_role_name", p.MachineRole, "ALICLOUD_ECS_ROLE_NAME")
	out.region = a.String("region", p.Region, "ALICLOUD_REGION", "ALICLOUD_DEFAULT_REGION")
	if out.own.ID == "" && out.machineRole == "" || out.own.ID != "" && out.own.Key == "" {
		a.Fail("access_key", "There are no credentials: set %q and %q, ALICLOUD_ACCESS_KEY and ALICLOUD_SECRET_KEY, %q or %q", "access_key", "secret_key", "ecs_role_name", "profile")
	}
	out.sts = a.String("sts_endpoint", "", "ALICLOUD_STS_ENDPOINT")
	if out.sts == "" {
		out.sts = "sts.aliyuncs.com"
	}
	out.sts = withScheme(out.sts)
	out.client = &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: time.Minute}, Retries: 3, Sleep: s.Sleep, Now: s.Now}
	r := &bucket.Role{
		ARN:     a.String("assume_role_role_arn", p.RoleARN, "ALICLOUD_ASSUME_ROLE_ARN"),
		Session: a.String("assume_role_session_name", p.Session, "ALICLOUD_ASSUME_ROLE_SESSION_NAME"),
		Policy:  a.String("assume_role_policy", ""),
		Seconds: a.Int("assume_role_session_expiration", p.Seconds, "ALICLOUD_ASSUME_ROLE_SESSION_EXPIRATION"),
	}
	if b := a.Block("assume_role"); b != nil {
		r.ARN, r.Session, r.Policy, r.Seconds = b.Required("role_arn", "ALICLOUD_ASSUME_ROLE_ARN"), b.String("session_name", r.Session), b.String("policy", r.Policy), b.Int("session_expiration", r.Seconds)
	}
	if r.Session == "" {
		r.Session = "tofu"
	}
	if r.Seconds == 0 {
		r.Seconds = 3600
	}
	if r.ARN != "" {
		out.role = r
		if r.Seconds < 900 || r.Seconds > 3600 {
			a.Fail("assume_role_session_expiration", "The %q is not between 900 and 3600", "assume_role_session_expiration")
		}
	}
	return out
}

// profileOf reads the selected profile. It returns an empty one if none is selected.
func profileOf(a *backend.Args, s backend.Services) profile {
	name := a.String("profile", "", "ALICLOUD_PROFILE")
	if name == "" {
		return profile{}
	}
	path := a.String("shared_credentials_file", "~/.aliyun/config.json", "ALICLOUD_SHARED_CREDENTIALS_FILE")
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(s.Home, rest)
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	text, err := readfile.Whole(path)
	if err != nil {
		a.Fail("shared_credentials_file", "The file with the profiles cannot be read: %s", err)
		return profile{}
	}
	var file struct{ Profiles []profile }
	if json.Unmarshal(text, &file) != nil {
		a.Fail("shared_credentials_file", "The file with the profiles, %s, is not JSON", path)
		return profile{}
	}
	for _, p := range file.Profiles {
		if p.Name != name {
			continue
		}
		switch p.Mode { // fields of other modes are ignored
		case "AK":
			p.Token, p.MachineRole, p.RoleARN = "", "", ""
		case "StsToken":
			p.MachineRole, p.RoleARN = "", ""
		case "RamRoleArn":
			p.MachineRole = ""
		case "EcsRamRole":
			p.AccessKeyID, p.AccessKeySecret, p.Token, p.RoleARN = "", "", "", ""
		default:
			a.Fail("profile", "The profile %q has the mode %q; AK, StsToken, RamRoleArn and EcsRamRole are known", name, p.Mode)
		}
		return p
	}
	a.Fail("profile", "There is no profile %q in %s", name, path)
	return profile{}
}

// name returns a text that identifies the account.
func (c *account) name() string {
	return fmt.Sprintf("%q %q %+v %q %q", c.own, c.machineRole, c.role, c.region, c.sts)
}

// Credentials implements bucket.Vendor.
func (c *account) Credentials(ctx context.Context) (bucket.Credentials, error) {
	if c.role == nil && c.own.ID != "" {
		return c.own, nil
	}
	return c.temporary.Get(ctx, c.s.Now(), c.renew)
}

// renew returns the credentials of the role, or of the machine, with their expiry.
func (c *account) renew(ctx context.Context) (got bucket.Credentials, end time.Time, err error) {
	got = c.own
	if got.ID == "" {
		got, end, err = c.ofMachine(ctx)
	}
	if err == nil && c.role != nil {
		got, end, err = c.assume(ctx, got)
	}
	return got, end, err
}

// issued is the response with temporary credentials.
type issued struct {
	AccessKeyId, AccessKeySecret, SecurityToken string
	Expiration                                  time.Time
}

func (t issued) credentials() bucket.Credentials {
	return bucket.Credentials{ID: t.AccessKeyId, Key: t.AccessKeySecret, Token: t.SecurityToken}
}

func (c *account) ofMachine(ctx context.Context) (bucket.Credentials, time.Time, error) {
	fail := func(why string) (bucket.Credentials, time.Time, error) {
		return bucket.Credentials{}, time.Time{}, &backend.Error{Argument: "ecs_role_name", Code: diag.CodeBackendNoCredentials, Summary: "No credentials", Answer: "the metadata of the machine gave no credentials: " + why, Advice: "This works on machines of the cloud with a role alone."}
	}
	direct := c.s.Transport.Clone() // a proxy cannot reach this address
	direct.Proxy, direct.DisableKeepAlives = nil, true
	client := &rest.Client{HTTP: &http.Client{Transport: direct, Timeout: time.Minute}, Retries: 3, Sleep: c.s.Sleep, Now: c.s.Now}
	resp, err := client.Do(ctx, rest.Request{Method: "GET", URL: metadata + url.PathEscape(c.machineRole), Repeat: true})
	if err != nil {
		return fail(err.Error())
	}
	var t issued
	if resp.Status != http.StatusOK || json.Unmarshal(resp.Body, &t) != nil || t.AccessKeyId == "" {
		return fail(fmt.Sprintf("the answer was %d", resp.Status))
	}
	return t.credentials(), t.Expiration, nil
}

// assume requests the credentials of the role, with the signature of RPC-style calls
// (version 1.0, HMAC-SHA1).
func (c *account) assume(ctx context.Context, own bucket.Credentials) (bucket.Credentials, time.Time, error) {
	q := url.Values{
		"Action": {"AssumeRole"}, "Format": {"JSON"}, "Version": {"2015-04-01"}, "AccessKeyId": {own.ID},
		"SignatureMethod": {"HMAC-SHA1"}, "SignatureVersion": {"1.0"}, "SignatureNonce": {store.NewID()},
		"Timestamp": {c.s.Now().UTC().Format("2006-01-02T15:04:05Z")},
		"RoleArn":   {c.role.ARN}, "RoleSessionName": {c.role.Session}, "DurationSeconds": {fmt.Sprint(c.role.Seconds)},
	}
	if own.Token != "" {
		q.Set("SecurityToken", own.Token)
	}
	if c.role.Policy != "" {
		q.Set("Policy", c.role.Policy)
	}
	percent := strings.NewReplacer("+", "%20", "*", "%2A", "%7E", "~")
	text := percent.Replace(q.Encode())
	q.Set("Signature", mac(own.Key+"&", "GET&%2F&"+percent.Replace(url.QueryEscape(text))))
	resp, err := c.client.Do(ctx, rest.Request{Method: "GET", URL: c.sts + "/?" + percent.Replace(q.Encode())})
	fail := func(why string) (bucket.Credentials, time.Time, error) {
		return bucket.Credentials{}, time.Time{}, &backend.Error{Argument: "assume_role_role_arn", Code: diag.CodeBackendAssumeRole, Summary: "Failed to assume the role", Answer: why, Advice: "Check the ARN of the role, and that the account may assume it (sts:AssumeRole)."}
	}
	if err != nil {
		return fail(err.Error())
	}
	var answer struct {
		Credentials   issued
		Code, Message string
	}
	if json.Unmarshal(resp.Body, &answer) != nil || resp.Status != http.StatusOK || answer.Credentials.AccessKeyId == "" {
		return fail(fmt.Sprintf("the service answered %d: %s: %s", resp.Status, answer.Code, rest.Line([]byte(answer.Message))))
	}
	return answer.Credentials.credentials(), answer.Credentials.Expiration, nil
}
