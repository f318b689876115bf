// Package oss is the backend "oss": state in the object store of Alibaba Cloud, with locks
// and checksums in a table of Tablestore.
//
// Main types: Kind opens a bucket, an object is the state of one workspace. The one rule: a
// state that is read must have the checksum in the table, and the row of the lock is
// checked before each write.
package oss

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/bucket"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind returns the backend "oss".
func Kind() backend.Kind {
	return backend.Kind{
		Name:    "oss",
		Reached: []string{"endpoint", "bucket"},
		Schema: &schema.Block{
			Attributes: backend.Optional(map[string]cty.Type{
				"access_key":                     cty.String,
				"secret_key":                     cty.String,
				"security_token":                 cty.String,
				"ecs_role_name":                  cty.String,
				"region":                         cty.String,
				"sts_endpoint":                   cty.String,
				"tablestore_endpoint":            cty.String,
				"endpoint":                       cty.String,
				"bucket":                         cty.String,
				"prefix":                         cty.String,
				"key":                            cty.String,
				"tablestore_table":               cty.String,
				"encrypt":                        cty.Bool,
				"acl":                            cty.String,
				"shared_credentials_file":        cty.String,
				"profile":                        cty.String,
				"assume_role_role_arn":           cty.String,
				"assume_role_session_name":       cty.String,
				"assume_role_policy":             cty.String,
				"assume_role_session_expiration": cty.Number,
			}, "bucket"),
			Blocks: map[string]*schema.NestedBlock{
				"assume_role": {Nesting: schema.Set, MaxItems: 1, Block: &schema.Block{Attributes: backend.Optional(map[string]cty.Type{
					"role_arn":           cty.String,
					"session_name":       cty.String,
					"policy":             cty.String,
					"session_expiration": cty.Number,
				}, "role_arn")}},
			},
		},
		Open: open,
	}
}

// ossBackend is an opened bucket.
type ossBackend struct {
	*bucket.Client
	s       backend.Services
	account *account
	table   *table // nil: no locks
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	c := &bucket.Client{
		Bucket:  a.Required("bucket"),
		Layout:  bucket.Layout{Prefix: a.String("prefix", "env:"), Key: a.String("key", "terraform.tfstate")},
		Encrypt: a.Bool("encrypt", false),
		ACL:     a.String("acl", ""),
	}
	c.Layout.Check(a)
	if c.ACL != "" && c.ACL != "private" && c.ACL != "public-read" && c.ACL != "public-read-write" {
		a.Fail("acl", "The %q is none of private, public-read and public-read-write", "acl")
	}
	access := accountOf(a, s)
	endpoint := a.String("endpoint", "", "ALICLOUD_OSS_ENDPOINT", "OSS_ENDPOINT")
	if endpoint == "" {
		if access.region == "" {
			a.Fail("region", "There is no %q, no ALICLOUD_REGION and no %q", "region", "endpoint")
		}
		endpoint = "oss-" + access.region + ".aliyuncs.com"
	}
	u, err := url.Parse(withScheme(endpoint))
	switch {
	case err != nil || u.Host == "" || strings.ContainsAny(c.Bucket, "/?#@:"):
		a.Fail("endpoint", "The %q and the bucket make no address", "endpoint")
	case net.ParseIP(u.Hostname()) != nil:
		c.Address = u.Scheme + "://" + u.Host + "/" + c.Bucket
	default:
		c.Address = u.Scheme + "://" + c.Bucket + "." + u.Host
	}
	b := &ossBackend{Client: c, s: s}
	tableEndpoint, name := a.String("tablestore_endpoint", "", "ALICLOUD_TABLESTORE_ENDPOINT"), a.String("tablestore_table", "")
	if name != "" {
		u, err := url.Parse(withScheme(tableEndpoint))
		if tableEndpoint == "" || err != nil || u.Host == "" {
			a.Fail("tablestore_endpoint", "A %q needs a %q, an address like https://INSTANCE.cn-hangzhou.ots.aliyuncs.com", "tablestore_table", "tablestore_endpoint")
		} else {
			instance, _, _ := strings.Cut(u.Hostname(), ".")
			b.table = &table{name: name, base: u.Scheme + "://" + u.Host, instance: instance, now: s.Now,
				client: &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: time.Minute}, Retries: 4, Sleep: s.Sleep, Now: s.Now}}
		}
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	b.account = s.Shared.Get("oss "+access.name(), func() any { return access }).(*account)
	c.Service, c.Vendor = service(c.Bucket), signer{account: b.account, bucket: c.Bucket, path: strings.HasSuffix(c.Address, "/"+c.Bucket)}
	c.Connect(s, 5*time.Minute)
	if b.table != nil {
		b.table.account = b.account
	}
	return b, nil
}

func service(name string) bucket.Service {
	return bucket.Service{
		Name: "OSS", Prefix: "oss", ACLHeader: "X-Oss-Object-Acl",
		ListPermission: "ListObjects",
		Permissions:    "oss:GetObject, oss:PutObject, oss:DeleteObject and oss:ListObjects; for locks ots:GetRow, ots:PutRow, ots:DeleteRow and ots:DescribeTable",
		HostArgument:   "endpoint",
		HostAdvice:     "Check bucket, region and endpoint, and that the service can be reached from here, through its proxy if there is one.",
		BucketAdvice:   fmt.Sprintf("There is no bucket %q there: create it, or check its name, the region and the endpoint.", name),
		KeyArgument:    "access_key",
		KeyAdvice:      "Check access_key and secret_key, or ALICLOUD_ACCESS_KEY and ALICLOUD_SECRET_KEY.",
	}
}

func withScheme(address string) string {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	return strings.TrimSuffix(address, "/")
}

func (b *ossBackend) object(workspace string) *object {
	return &object{Object: bucket.Object{Client: b.Client, File: b.Layout.File(workspace)}, b: b}
}

// List implements backend.Backend.
func (b *ossBackend) List(ctx context.Context) ([]string, error) { return b.Workspaces(ctx) }

// Delete implements backend.Backend.
func (b *ossBackend) Delete(ctx context.Context, workspace string) error {
	o := b.object(workspace)
	if err := b.Remove(ctx, o.File); err != nil {
		return err
	}
	if b.table != nil {
		if err := b.table.remove(ctx, o.id()+digestSuffix); err != nil {
			return err
		}
	}
	return backend.DeleteBlobs(ctx, o)
}

// Store implements backend.Backend.
func (b *ossBackend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	if workspace == "" {
		workspace = store.Default
	}
	obj := b.object(workspace)
	return backend.NewStore(obj, "oss://"+b.Bucket+"/"+obj.File, o, b.s), nil
}

// WhyNoLocks implements backend.Lockless.
func (b *ossBackend) WhyNoLocks() string { return "there is no tablestore_table" }

// Check implements backend.Checker.
func (b *ossBackend) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	who := "the key of access_key or of the profile"
	switch {
	case b.account.role != nil:
		who = "the role " + b.account.role.ARN
	case b.account.own.ID == "":
		who = "the role " + b.account.machineRole + " of this machine"
	}
	report(backend.Finding{What: "credentials", OK: true, Detail: who}) // the state was read with them
	b.Client.Check(ctx, report)
	if b.table != nil {
		if err := b.table.describe(ctx); err != nil {
			f := backend.Failed("table of the locks", err)
			f.Permission = "ots:DescribeTable"
			report(f)
		} else {
			report(backend.Finding{What: "table of the locks", OK: true, Detail: b.table.name})
		}
	}
	backend.CheckClock(b.HTTP, report)
}
