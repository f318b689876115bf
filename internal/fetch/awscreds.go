package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// awsCredentials looks in the places that the AWS tools look in. No credentials
// are none, for public buckets.
func (w *work) awsCredentials(ctx context.Context, q url.Values) (awsCredentials, error) {
	if id := q.Get("aws_access_key_id"); id != "" {
		return awsCredentials{id, q.Get("aws_access_key_secret"), q.Get("aws_access_token")}, nil
	}
	profile := q.Get("aws_profile")
	if id := w.Env.Get("AWS_ACCESS_KEY_ID"); id != "" && profile == "" {
		return awsCredentials{id, w.Env.Get("AWS_SECRET_ACCESS_KEY"), w.Env.Get("AWS_SESSION_TOKEN")}, nil
	}
	named := firstOf(profile, w.Env.Get("AWS_PROFILE"))
	c, err := w.awsProfile(ctx, firstOf(named, "default"), named != "", nil)
	if err != nil || c.id != "" {
		return c, err
	}
	environment := func(ctx context.Context) (awsCredentials, error) {
		return w.awsWebIdentity(ctx, w.Env.Get("AWS_WEB_IDENTITY_TOKEN_FILE"), w.Env.Get("AWS_ROLE_ARN"), "", "")
	}
	for _, ask := range []func(context.Context) (awsCredentials, error){environment, w.awsContainer, w.awsMachine} {
		if c, err := ask(ctx); err != nil || c.id != "" {
			return c, err
		}
	}
	return awsCredentials{}, nil
}

// iniSection reads a section of a file in the style of the AWS tools; ok is false
// if there is none.
func iniSection(text, section string) (out map[string]string, ok bool) {
	out = make(map[string]string)
	in := false
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if name, head := strings.CutPrefix(line, "["); head {
			in = strings.Join(strings.Fields(strings.TrimSuffix(name, "]")), " ") == section
			ok = ok || in
			continue
		}
		if k, v, has := strings.Cut(line, "="); has && in && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			out[strings.ToLower(strings.TrimSpace(k))] = strings.TrimSpace(v)
		}
	}
	return out, ok
}

// awsContainer asks the endpoint that ECS and EKS give to containers.
func (w *work) awsContainer(ctx context.Context) (awsCredentials, error) {
	where := w.Env.Get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if rel := w.Env.Get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); rel != "" {
		where = "http://169.254.170.2" + rel
	}
	if where == "" {
		return awsCredentials{}, nil
	}
	h := http.Header{}
	token := w.Env.Get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := w.Env.Get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return awsCredentials{}, fmt.Errorf("cannot read credentials: %w", err)
		}
		token = strings.TrimSpace(string(raw))
	}
	if token != "" {
		h.Set("Authorization", token)
	}
	body, _, err := w.Client.With(1, 2*time.Second).Get(ctx, where, h, 1<<20)
	if err != nil {
		return awsCredentials{}, fmt.Errorf("cannot get credentials: %w", err)
	}
	var out struct{ AccessKeyId, SecretAccessKey, Token string }
	if err := json.Unmarshal(body, &out); err != nil {
		return awsCredentials{}, errors.New("cannot get credentials: the answer is not JSON")
	}
	return awsCredentials{out.AccessKeyId, out.SecretAccessKey, out.Token}, nil
}

// awsWebIdentity trades the token of a CI system or a cluster for credentials.
// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
func (w *work) awsWebIdentity(ctx context.Context, file, role, session, region string) (awsCredentials, error) {
	if file == "" || role == "" {
		return awsCredentials{}, nil
	}
	token, err := os.ReadFile(file)
	if err != nil {
		return awsCredentials{}, fmt.Errorf("cannot read credentials: %w", err)
	}
	return w.webIdentity(ctx, strings.TrimSpace(string(token)), map[string]string{"role_arn": role, "role_session_name": session, "region": region})
}

// webIdentity trades a token for the credentials of a role, which is told as in a
// profile.
func (w *work) webIdentity(ctx context.Context, token string, p map[string]string) (awsCredentials, error) {
	const action = "AssumeRoleWithWebIdentity"
	where, _ := w.stsEndpoint(p["region"])
	q := url.Values{
		"Action": {action}, "Version": {"2011-06-15"}, "RoleArn": {p["role_arn"]},
		"RoleSessionName":  {firstOf(p["role_session_name"], w.Env.Get("AWS_ROLE_SESSION_NAME"), "terrace")},
		"WebIdentityToken": {token},
	}
	if s := p["duration_seconds"]; s != "" {
		q.Set("DurationSeconds", s)
	}
	body, err := w.Client.PostForm(ctx, where, q, 1<<20)
	return stsAnswer(action, p["role_arn"], body, err)
}

// awsMachine asks the metadata service, which only a machine of AWS has.
func (w *work) awsMachine(ctx context.Context) (awsCredentials, error) {
	if strings.EqualFold(w.Env.Get("AWS_EC2_METADATA_DISABLED"), "true") {
		return awsCredentials{}, nil
	}
	base := firstOf(w.Env.Get("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254")
	c := w.Client.With(0, time.Second)
	req := http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"300"}}
	token, err := c.Put(ctx, base+"/latest/api/token", req, 1<<16)
	if err != nil {
		return awsCredentials{}, nil // not a machine of AWS
	}
	h := http.Header{"X-Aws-Ec2-Metadata-Token": {string(token)}}
	where := base + "/latest/meta-data/iam/security-credentials/"
	role, _, err := c.Get(ctx, where, h, 1<<16)
	if err != nil {
		return awsCredentials{}, nil // a machine without a role
	}
	name, _, _ := strings.Cut(strings.TrimSpace(string(role)), "\n")
	body, _, err := c.Get(ctx, where+url.PathEscape(name), h, 1<<16)
	if err != nil {
		return awsCredentials{}, fmt.Errorf("cannot get the credentials of this machine: %w", err)
	}
	var out struct{ AccessKeyId, SecretAccessKey, Token string }
	if json.Unmarshal(body, &out) != nil {
		return awsCredentials{}, errors.New("cannot get the credentials of this machine: the answer is not JSON")
	}
	return awsCredentials{out.AccessKeyId, out.SecretAccessKey, out.Token}, nil
}
