// Package credentials gets the credentials for module packages in buckets, with the same clients
// that backends use.
//
// Main type: Clouds. The one rule: without any credentials, requests are not signed, since
// buckets may be public. Unusable credentials are an error.
package credentials

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/aws"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/net/gcp"
)

// Clouds gets the credentials of one run. All fields are required. Its methods may be called
// concurrently.
type Clouds struct {
	Env       sys.Env
	Dir, Home string
	Now       func() time.Time
	Run       func(ctx context.Context, c sys.Command) error
	Transport *http.Transport

	mu     sync.Mutex
	s3     map[fetch.S3Access]*aws.Session
	google *gcp.Session
}

// S3 implements fetch.Fetcher.S3.
func (c *Clouds) S3(ctx context.Context, a fetch.S3Access) (fetch.Signer, error) {
	session, err := c.session(ctx, a)
	if err != nil {
		return nil, err
	}
	if _, err := session.Credentials(ctx); errors.Is(err, aws.ErrNoCredentials) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return func(r *http.Request) error { return session.Sign(r.Context(), r, sha256.Sum256(nil), "s3", a.Region) }, nil
}

// session returns the session for a bucket. Each is opened once, so that roles are assumed once.
func (c *Clouds) session(ctx context.Context, a fetch.S3Access) (*aws.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.s3[a]; s != nil {
		return s, nil
	}
	o := aws.Options{Region: a.Region, Profile: a.Profile, AccessKey: a.AccessKey, SecretKey: a.SecretKey, Token: a.Token}
	s, err := aws.Open(ctx, o, aws.Services{Env: c.Env, Dir: c.Dir, Home: c.Home, Now: c.Now, Run: c.Run, Transport: c.Transport})
	if err != nil {
		return nil, err
	}
	if c.s3 == nil {
		c.s3 = map[fetch.S3Access]*aws.Session{}
	}
	c.s3[a] = s
	return s, nil
}

// GCS implements fetch.Fetcher.GCS.
func (c *Clouds) GCS(ctx context.Context) (string, error) {
	c.mu.Lock()
	if c.google == nil {
		o := gcp.Options{AccessToken: c.Env.Get("GOOGLE_OAUTH_ACCESS_TOKEN"), Scopes: []string{"https://www.googleapis.com/auth/devstorage.read_only"}}
		c.google = gcp.Open(o, gcp.Services{Env: c.Env, Dir: c.Dir, Home: c.Home, Transport: c.Transport, Now: c.Now, Run: c.Run})
	}
	session := c.google
	c.mu.Unlock()
	token, err := session.Token(ctx)
	if errors.Is(err, gcp.ErrNone) {
		return "", nil
	}
	return token, err
}
