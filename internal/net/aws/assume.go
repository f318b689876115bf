package aws

import (
	"context"
	"errors"
	"path/filepath"
)

// Assume assumes a role once and returns its credentials as environment variables. token is the
// token of a CI system or a cluster, or the absolute path of a file that contains it. "" means
// that the role is assumed with the credentials of the environment and the options.
func Assume(ctx context.Context, r Role, token string, o Options, s Services) ([]string, error) {
	switch {
	case filepath.IsAbs(token):
		o.WebIdentity = &WebIdentity{Role: r, TokenFile: token}
	case token != "":
		o.WebIdentity = &WebIdentity{Role: r, Token: token}
	default:
		o.AssumeRole = append(o.AssumeRole, r)
	}
	session, err := Open(ctx, o, s)
	if errors.Is(err, ErrNoRegion) { // the token service is available in every region
		o.Region = "us-east-1"
		session, err = Open(ctx, o, s)
	}
	if err != nil {
		return nil, err
	}
	c, err := session.Credentials(ctx)
	if err != nil {
		return nil, err
	}
	return []string{"AWS_ACCESS_KEY_ID=" + c.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + c.SecretAccessKey, "AWS_SESSION_TOKEN=" + c.SessionToken, "AWS_SECURITY_TOKEN=" + c.SessionToken}, nil
}
