package oss

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// metadata is where a machine of the cloud finds the credentials of its role.
const metadata = "http://100.100.100.200/latest/meta-data/ram/security-credentials/"

// credentials sign requests.
type credentials struct{ id, key, token string }

// An account gives credentials, those that end anew before they do.
type account struct {
	own         credentials
	machineRole string // of the machine; "" for none
	role        *role
	region, sts string
	client      *rest.Client
	s           backend.Services

	mu    sync.Mutex
	got   credentials
	until time.Time
}

type role struct {
	arn, session, policy string
	seconds              int
}

// A profile is one of the file that the command line tool of the cloud keeps.
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
	out := &account{s: s, own: credentials{
		id:    a.String("access_key", p.AccessKeyID, "ALICLOUD_ACCESS_KEY", "ALICLOUD_ACCESS_KEY_ID"),
		key:   a.String("secret_key", p.AccessKeySecret, "ALICLOUD_SECRET_KEY", "ALICLOUD_ACCESS_KEY_SECRET"),
		token: a.String("security_token", p.Token, "ALICLOUD_SECURITY_TOKEN"),
	}}
	out.machineRole = a.String("ecs_role_name", p.MachineRole, "ALICLOUD_ECS_ROLE_NAME")
	out.region = a.String("region", p.Region, "ALICLOUD_REGION", "ALICLOUD_DEFAULT_REGION")
	if out.own.id == "" && out.machineRole == "" || out.own.id != "" && out.own.key == "" {
		a.Fail("access_key", "There are no credentials: set %q and %q, ALICLOUD_ACCESS_KEY and ALICLOUD_SECRET_KEY, %q or %q", "access_key", "secret_key", "ecs_role_name", "profile")
	}
	out.sts = a.String("sts_endpoint", "", "ALICLOUD_STS_ENDPOINT")
	if out.sts == "" {
		out.sts = "sts.aliyuncs.com"
	}
	out.sts = withScheme(out.sts)
	out.client = &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: time.Minute}, Retries: 3, Sleep: s.Sleep, Now: s.Now}
	r := &role{
		arn:     a.String("assume_role_role_arn", p.RoleARN, "ALICLOUD_ASSUME_ROLE_ARN"),
		session: a.String("assume_role_session_name", p.Session, "ALICLOUD_ASSUME_ROLE_SESSION_NAME"),
		policy:  a.String("assume_role_policy", ""),
		seconds: a.Int("assume_role_session_expiration", p.Seconds, "ALICLOUD_ASSUME_ROLE_SESSION_EXPIRATION"),
	}
	if b := a.Block("assume_role"); b != nil {
		r.arn, r.session, r.policy, r.seconds = b.Required("role_arn", "ALICLOUD_ASSUME_ROLE_ARN"), b.String("session_name", r.session), b.String("policy", r.policy), b.Int("session_expiration", r.seconds)
	}
	if r.session == "" {
		r.session = "tofu"
	}
	if r.seconds == 0 {
		r.seconds = 3600
	}
	if r.arn != "" {
		out.role = r
		if r.seconds < 900 || r.seconds > 3600 {
			a.Fail("assume_role_session_expiration", "The %q is not between 900 and 3600", "assume_role_session_expiration")
		}
	}
	return out
}

// profileOf reads the profile that is named, an empty one if none is.
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
		switch p.Mode { // what another mode would use counts for nothing
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

// name tells accounts apart.
func (c *account) name() string {
	return fmt.Sprintf("%q %q %+v %q %q", c.own, c.machineRole, c.role, c.region, c.sts)
}

func (c *account) get(ctx context.Context) (credentials, error) {
	if c.role == nil && c.own.id != "" {
		return c.own, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.got.id != "" && c.s.Now().Before(c.until) {
		return c.got, nil
	}
	own, until := c.own, time.Time{}
	if own.id == "" {
		var err error
		if own, until, err = c.ofMachine(ctx); err != nil {
			return own, err
		}
	}
	if c.role != nil {
		var err error
		if own, until, err = c.assume(ctx, own); err != nil {
			return own, err
		}
	}
	c.got, c.until = own, until.Add(-5*time.Minute)
	return own, nil
}

// temporary is how the cloud gives credentials that end.
type temporary struct {
	AccessKeyId, AccessKeySecret, SecurityToken string
	Expiration                                  time.Time
}

func (t temporary) credentials() credentials {
	return credentials{t.AccessKeyId, t.AccessKeySecret, t.SecurityToken}
}

func (c *account) ofMachine(ctx context.Context) (credentials, time.Time, error) {
	fail := func(why string) (credentials, time.Time, error) {
		return credentials{}, time.Time{}, &backend.Error{Argument: "ecs_role_name", Code: diag.CodeBackendNoCredentials, Summary: "No credentials", Answer: "the metadata of the machine gave no credentials: " + why, Advice: "This works on machines of the cloud with a role alone."}
	}
	direct := c.s.Transport.Clone() // no proxy leads there
	direct.Proxy, direct.DisableKeepAlives = nil, true
	client := &rest.Client{HTTP: &http.Client{Transport: direct, Timeout: time.Minute}, Retries: 3, Sleep: c.s.Sleep, Now: c.s.Now}
	resp, err := client.Do(ctx, rest.Request{Method: "GET", URL: metadata + url.PathEscape(c.machineRole), Repeat: true})
	if err != nil {
		return fail(err.Error())
	}
	var t temporary
	if resp.Status != http.StatusOK || json.Unmarshal(resp.Body, &t) != nil || t.AccessKeyId == "" {
		return fail(fmt.Sprintf("the answer was %d", resp.Status))
	}
	return t.credentials(), t.Expiration, nil
}

// assume asks for the credentials of the role, by the signature of calls in the RPC
// style (version 1.0, HMAC-SHA1).
func (c *account) assume(ctx context.Context, own credentials) (credentials, time.Time, error) {
	q := url.Values{
		"Action": {"AssumeRole"}, "Format": {"JSON"}, "Version": {"2015-04-01"}, "AccessKeyId": {own.id},
		"SignatureMethod": {"HMAC-SHA1"}, "SignatureVersion": {"1.0"}, "SignatureNonce": {store.NewID()},
		"Timestamp": {c.s.Now().UTC().Format("2006-01-02T15:04:05Z")},
		"RoleArn":   {c.role.arn}, "RoleSessionName": {c.role.session}, "DurationSeconds": {fmt.Sprint(c.role.seconds)},
	}
	if own.token != "" {
		q.Set("SecurityToken", own.token)
	}
	if c.role.policy != "" {
		q.Set("Policy", c.role.policy)
	}
	percent := strings.NewReplacer("+", "%20", "*", "%2A", "%7E", "~")
	text := percent.Replace(q.Encode())
	q.Set("Signature", mac(own.key+"&", "GET&%2F&"+percent.Replace(url.QueryEscape(text))))
	resp, err := c.client.Do(ctx, rest.Request{Method: "GET", URL: c.sts + "/?" + percent.Replace(q.Encode())})
	fail := func(why string) (credentials, time.Time, error) {
		return credentials{}, time.Time{}, &backend.Error{Argument: "assume_role_role_arn", Code: diag.CodeBackendAssumeRole, Summary: "Failed to assume the role", Answer: why, Advice: "Check the ARN of the role, and that the account may assume it (sts:AssumeRole)."}
	}
	if err != nil {
		return fail(err.Error())
	}
	var answer struct {
		Credentials   temporary
		Code, Message string
	}
	if json.Unmarshal(resp.Body, &answer) != nil || resp.Status != http.StatusOK || answer.Credentials.AccessKeyId == "" {
		return fail(fmt.Sprintf("the service answered %d: %s: %s", resp.Status, answer.Code, rest.Line([]byte(answer.Message))))
	}
	return answer.Credentials.credentials(), answer.Credentials.Expiration, nil
}
