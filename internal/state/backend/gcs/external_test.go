package gcs

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/zclconf/go-cty/cty"
)

// External accounts, and programs that return tokens, use the environment of the
// configuration, which may be a unit's, and not that of the process.
func TestExternalAccounts(t *testing.T) {
	t.Setenv("AWS_REGION", "wrong")
	t.Setenv("AWS_ACCESS_KEY_ID", "wrong")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	file := func(source string) string {
		return `{"type":"external_account","audience":"//iam.googleapis.com/x","subject_token_type":"urn:ietf:params:oauth:token-type:id_token","token_url":"https://sts.googleapis.com/v1/token","credential_source":` + source + `}`
	}
	const allowed = "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1"
	good := fmt.Sprintf(`{"version":1,"success":true,"token_type":"urn:ietf:params:oauth:token-type:id_token","id_token":"planted-subject","expiration_time":%d}`, time.Now().Add(time.Hour).Unix())
	const aws = `{"environment_id":"aws1","region_url":"http://169.254.169.254/latest/meta-data/placement/availability-zone","url":"http://169.254.169.254/latest/meta-data/iam/security-credentials","regional_cred_verification_url":"https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15"}`
	const program = `{"executable":{"command":"give token","timeout_millis":5000}}`
	for name, c := range map[string]struct {
		source, answer string
		env            sys.Env
		want           string // the expected error
	}{
		"keys of AWS":        {aws, "", sys.Env{"AWS_REGION=eu-west-3", "AWS_ACCESS_KEY_ID=AKIAPLANTED", "AWS_SECRET_ACCESS_KEY=planted-key"}, ""},
		"a program":          {program, good, sys.Env{allowed}, ""},
		"not allowed":        {program, good, nil, "ALLOW_EXECUTABLES=1"},
		"no token":           {program, `{"version":1,"success":false,"code":"401","message":"log in first"}`, sys.Env{allowed}, "401 log in first"},
		"an old token":       {program, strings.Replace(good, `"expiration_time":`, `"expiration_time":1,"x":`, 1), sys.Env{allowed}, "has ended"},
		"another answer":     {program, "hello", sys.Env{allowed}, "not JSON"},
		"a token of another": {program, strings.Replace(good, "planted-subject", "other", 1), sys.Env{allowed}, "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			s := servers.GCS(t)
			p := place(t, s)
			delete(p.Config, "access_token")
			p.Config["credentials"] = cty.StringVal(file(c.source))
			p.Services.Env = c.env
			p.Services.Run = func(_ context.Context, cmd sys.Command) error {
				if cmd.Path != "give" || cmd.Env.Get("GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE") != "//iam.googleapis.com/x" || cmd.Env.Get("AWS_REGION") != "" {
					t.Errorf("the program %s runs with %v", cmd.Path, cmd.Env)
				}
				_, err := io.WriteString(cmd.Stdout, c.answer)
				return err
			}
			_, err := open0(t, p, "").Read(ctx)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, and not %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), "planted"):
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
}
