// Package cos is the backend "cos": state in the object store of Tencent Cloud, with a lock
// object. A tag of the account protects the creation of the lock object.
//
// Main types: Kind opens a bucket, an object is the state of one workspace. The one rule: a
// state that is read must have its stored checksum, and the lock object is checked before
// each write.
package cos

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/bucket"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind returns the backend "cos".
func Kind() backend.Kind {
	return backend.Kind{
		Name:    "cos",
		Reached: []string{"bucket"},
		Schema: &schema.Block{
			Attributes: backend.Optional(map[string]cty.Type{
				"secret_id":      cty.String,
				"secret_key":     cty.String,
				"security_token": cty.String,
				"region":         cty.String,
				"bucket":         cty.String,
				"prefix":         cty.String,
				"key":            cty.String,
				"encrypt":        cty.Bool,
				"acl":            cty.String,
				"accelerate":     cty.Bool,
			}, "bucket"),
			Blocks: map[string]*schema.NestedBlock{
				"assume_role": {Nesting: schema.Set, MaxItems: 1, Block: &schema.Block{Attributes: backend.Optional(map[string]cty.Type{
					"role_arn":         cty.String,
					"session_name":     cty.String,
					"session_duration": cty.Number,
					"policy":           cty.String,
				}, "role_arn", "session_name", "session_duration")}},
			},
		},
		Ask:  map[string][]string{"region": {"TENCENTCLOUD_REGION"}},
		Open: open,
	}
}

// cosBackend is an opened bucket.
type cosBackend struct {
	*bucket.Client
	s       backend.Services
	account *account
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	region := a.Required("region", "TENCENTCLOUD_REGION")
	c := &bucket.Client{
		Bucket:  a.Required("bucket"),
		Layout:  bucket.Layout{Prefix: a.String("prefix", ""), Key: a.String("key", "terraform.tfstate")},
		Encrypt: a.Bool("encrypt", true),
		ACL:     a.String("acl", "private"),
	}
	c.Layout.Check(a)
	if c.ACL != "private" && c.ACL != "public-read" {
		a.Fail("acl", "The %q is neither %q nor %q", "acl", "private", "public-read")
	}
	c.Address = "https://" + c.Bucket + ".cos." + region + ".myqcloud.com"
	if a.Bool("accelerate", false) {
		c.Address = "https://" + c.Bucket + ".cos.accelerate.myqcloud.com"
	}
	if u, err := url.Parse(c.Address); c.Bucket != "" && region != "" && (err != nil || strings.ContainsAny(c.Bucket+region, "/?#@:") || u.Host == "") {
		a.Fail("bucket", "The %q and the region make no name of a host", "bucket")
	}
	access := accountOf(a, s, region)
	if err := a.Err(); err != nil {
		return nil, err
	}
	b := &cosBackend{Client: c, s: s, account: s.Shared.Get("cos "+access.name(), func() any { return access }).(*account)}
	c.Service, c.Vendor = service(c.Bucket, region), b.account
	c.Connect(s, 10*time.Minute)
	return b, nil
}

func service(name, region string) bucket.Service {
	return bucket.Service{
		Name: "COS", Prefix: "cos", ACLHeader: "X-Cos-Acl",
		ListPermission: "GetBucket",
		Permissions:    "cos:GetObject, cos:PutObject, cos:DeleteObject, cos:GetBucket, tag:CreateTag, tag:DeleteTag and tag:DescribeTags",
		HostArgument:   "bucket",
		HostAdvice:     "Check bucket and region, and that the service can be reached from here, through its proxy if there is one.",
		BucketAdvice:   fmt.Sprintf("There is no bucket %q in the region %q: create it, or check the name, which ends with the number of the account (APPID), and the region.", name, region),
		KeyArgument:    "secret_id",
		KeyAdvice:      "Check secret_id and secret_key, or TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY.",
	}
}

func (b *cosBackend) object(workspace string) *object {
	return &object{Object: bucket.Object{Client: b.Client, File: b.Layout.File(workspace)}, b: b}
}

// List implements backend.Backend.
func (b *cosBackend) List(ctx context.Context) ([]string, error) { return b.Workspaces(ctx) }

// Delete implements backend.Backend.
func (b *cosBackend) Delete(ctx context.Context, workspace string) error {
	o := b.object(workspace)
	if err := b.Remove(ctx, o.File); err != nil {
		return err
	}
	return backend.DeleteBlobs(ctx, o)
}

// Store implements backend.Backend.
func (b *cosBackend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	if workspace == "" {
		workspace = store.Default
	}
	obj := b.object(workspace)
	return backend.NewStore(obj, "cos:"+b.Bucket+"/"+obj.File, o, b.s), nil
}

// Check implements backend.Checker.
func (b *cosBackend) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	who := "the key of secret_id"
	if b.account.role != nil {
		who = "the role " + b.account.role.ARN
	}
	report(backend.Finding{What: "credentials", OK: true, Detail: who}) // the state was read with them
	b.Client.Check(ctx, report)
	backend.CheckClock(b.HTTP, report)
}
