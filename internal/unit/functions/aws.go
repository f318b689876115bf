package functions

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/process"
)

// # The identity at AWS
//
// If the environment contains keys, one signed request returns the identity. Otherwise
// Terrace runs the aws program, which supports profiles, single sign-on and machine roles.
// Nothing runs before a unit file calls one of the functions.

// identity returns a field of the caller's identity.
func (k *call) identity(field string) (string, error) {
	env, err := k.environ()
	if err != nil {
		return "", err
	}
	key := k.unitKey() + "sts"
	r := k.answer(key, func() runResult {
		if env.Get("AWS_ACCESS_KEY_ID") != "" && env.Get("AWS_SECRET_ACCESS_KEY") != "" && k.Do != nil && k.Machine.Now != nil {
			return k.stsIdentity(env)
		}
		return k.program(k.Task().Context(), k.Dir(), env, "aws", "sts", "get-caller-identity", "--output", "json")
	})
	if r.err != nil {
		return "", &noCredentials{"cannot tell the AWS identity", r.err}
	}
	return jsonField(r.out, field)
}

// accountAlias returns the first alias of the account, or "" if it has none.
func (k *call) accountAlias() (string, error) {
	env, err := k.environ()
	if err != nil {
		return "", err
	}
	key := k.unitKey() + "alias"
	r := k.answer(key, func() runResult {
		return k.program(k.Task().Context(), k.Dir(), env, "aws", "iam", "list-account-aliases", "--output", "json")
	})
	if r.err != nil {
		return "", &noCredentials{"cannot tell the AWS account's alias", r.err}
	}
	var answer struct{ AccountAliases []string }
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil {
		return "", errors.New("the answer of the aws program is not a JSON object")
	}
	if len(answer.AccountAliases) == 0 {
		return "", nil
	}
	return answer.AccountAliases[0], nil
}

const stsQuery = "Action=GetCallerIdentity&Version=2011-06-15"

// stsIdentity requests the identity from the security token service.
func (l *Library) stsIdentity(env process.Env) runResult {
	req, err := stsRequest(env, l.Machine.Now())
	if err != nil {
		return runResult{err: err}
	}
	resp, err := l.Do(req)
	if err != nil {
		return runResult{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return runResult{err: err}
	}
	if resp.StatusCode != http.StatusOK {
		return runResult{err: fmt.Errorf("%s answered %s", req.URL.Host, resp.Status)}
	}
	var answer struct {
		Result struct{ Arn, UserId, Account string } `xml:"GetCallerIdentityResult"`
	}
	if err := xml.Unmarshal(body, &answer); err != nil {
		return runResult{err: errors.New("the answer cannot be read")}
	}
	out, err := json.Marshal(answer.Result)
	return runResult{out: string(out), err: err}
}

// stsRequest returns the signed request (AWS Signature Version 4).
func stsRequest(env process.Env, now time.Time) (*http.Request, error) {
	region := env.Get("AWS_REGION")
	if region == "" {
		region = env.Get("AWS_DEFAULT_REGION")
	}
	if region == "" {
		region = "us-east-1"
	}
	endpoint := "https://sts." + region + ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		endpoint += ".cn"
	}
	for _, name := range [...]string{"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"} {
		if u := env.Get(name); u != "" {
			endpoint = strings.TrimSuffix(u, "/")
			break
		}
	}
	req, err := http.NewRequest(http.MethodPost, endpoint+"/", strings.NewReader(stsQuery))
	if err != nil {
		return nil, err
	}
	now = now.UTC()
	stamp, day := now.Format("20060102T150405Z"), now.Format("20060102")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Amz-Date", stamp)
	names := "content-type;host;x-amz-date"
	canonical := "content-type:application/x-www-form-urlencoded\nhost:" + req.URL.Host + "\nx-amz-date:" + stamp + "\n"
	if token := env.Get("AWS_SESSION_TOKEN"); token != "" {
		req.Header.Set("X-Amz-Security-Token", token)
		names += ";x-amz-security-token"
		canonical += "x-amz-security-token:" + token + "\n"
	}
	sum := func(s string) string {
		h := sha256.Sum256([]byte(s))
		return hex.EncodeToString(h[:])
	}
	mac := func(key []byte, s string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(s))
		return h.Sum(nil)
	}
	scope := day + "/" + region + "/sts/aws4_request"
	toSign := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" +
		sum("POST\n/\n\n"+canonical+"\n"+names+"\n"+sum(stsQuery))
	key := mac(mac(mac(mac([]byte("AWS4"+env.Get("AWS_SECRET_ACCESS_KEY")), day), region), "sts"), "aws4_request")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+env.Get("AWS_ACCESS_KEY_ID")+"/"+scope+
		", SignedHeaders="+names+", Signature="+hex.EncodeToString(mac(key, toSign)))
	return req, nil
}

func jsonField(text, name string) (string, error) {
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return "", errors.New("the answer is not a JSON object")
	}
	s, ok := m[name].(string)
	if !ok {
		return "", fmt.Errorf("the answer has no %s", name)
	}
	return s, nil
}
