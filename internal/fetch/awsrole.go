package fetch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Role is one of AWS. ARN is required.
type Role struct {
	ARN     string
	Session string // its name; "" for that of the environment
	Seconds int    // 0 for what the token service takes by itself
	// Token is that of a CI system or a cluster, or the absolute path of a file that
	// holds it; "" if the role is assumed with the user's own credentials.
	Token string
}

// AssumeRole gets the credentials of a role, as the environment of programs that are
// to have it. The user's own credentials are looked for where the AWS tools look.
// Nothing is kept.
func (f *Fetcher) AssumeRole(ctx context.Context, r Role) (env []string, err error) {
	w := &work{Fetcher: f}
	p := map[string]string{"role_arn": r.ARN, "role_session_name": r.Session}
	if r.Seconds > 0 {
		p["duration_seconds"] = strconv.Itoa(r.Seconds)
	}
	var c awsCredentials
	if token := r.Token; token != "" {
		if filepath.IsAbs(token) {
			text, err := os.ReadFile(token)
			if err != nil {
				return nil, fmt.Errorf("cannot read credentials: %w", err)
			}
			token = strings.TrimSpace(string(text))
		}
		c, err = w.webIdentity(ctx, token, p)
	} else {
		base, own := w.awsCredentials(ctx, nil)
		if own != nil {
			return nil, own
		}
		if base.id == "" {
			return nil, fmt.Errorf("there are no credentials to assume the role %s with: neither the environment nor the AWS profiles, the container or the machine have any", r.ARN)
		}
		c, err = w.assumeRole(ctx, base, p)
	}
	if err != nil {
		return nil, err
	}
	return []string{"AWS_ACCESS_KEY_ID=" + c.id, "AWS_SECRET_ACCESS_KEY=" + c.secret, "AWS_SESSION_TOKEN=" + c.token, "AWS_SECURITY_TOKEN=" + c.token}, nil
}
