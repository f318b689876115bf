package s3

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/zclconf/go-cty/cty"
)

// setMissingEnv returns a place in the stand-in for S3 and DynamoDB.
func setMissingEnv(t *testing.T, s *servers.AWSServer, more map[string]cty.Value) backendtest.Place {
	p := place(t, s.URL, more)
	p.Config["endpoints"] = endpoints(s.URL, s.URL)
	p.Config["sts_endpoint"] = cty.StringVal(s.URL)
	return p
}

// The stand-in must pass the same tests as the real servers.
func TestStandIn(t *testing.T) {
	s := servers.AWS(t)
	n := 0
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
		p := setMissingEnv(t, s, map[string]cty.Value{"use_lockfile": cty.True})
		n++
		name := fmt.Sprintf("states%d", n)
		s.Bucket(name)
		p.Config["bucket"] = cty.StringVal(name)
		thief(&p)
		return p
	})
}

// made creates the store and returns what was created or changed.
func made(t *testing.T, p backendtest.Place, args map[string]cty.Value, b backend.Bootstrapping) ([]string, diag.List) {
	t.Helper()
	var did []string
	b.Did = func(what string) { did = append(did, what) }
	set := backend.NewSet([]backend.Kind{Kind()}, nil, p.Services)
	can, ds := set.Bootstrap(t.Context(), backend.Config{Type: "s3", Value: backendtest.Config(t, Kind(), p.Config)}, cty.ObjectVal(args), b)
	if !can && !ds.HasErrors() {
		t.Error("s3 has no store to make")
	}
	return did, ds
}

// A bucket and a table are created with the same settings as by Terragrunt. A second call
// changes nothing, and settings that were turned off are turned on again.
func TestBootstrap(t *testing.T) {
	s := servers.AWS(t)
	p := setMissingEnv(t, s, map[string]cty.Value{"dynamodb_table": cty.StringVal("locks")})
	args := map[string]cty.Value{
		"accesslogging_bucket_name": cty.StringVal("logs"), "enable_lock_table_ssencryption": cty.True,
		"s3_bucket_tags": cty.MapVal(map[string]cty.Value{"team": cty.StringVal("a&b")}), "dynamodb_table_tags": cty.MapVal(map[string]cty.Value{"c": cty.StringVal("d")}),
	}
	did, ds := made(t, p, args, backend.Bootstrapping{})
	if ds.HasErrors() || len(did) < 10 {
		t.Fatal(did, ds.Err())
	}
	for _, x := range [][3]string{
		{"states", "versioning", "<Status>Enabled</Status>"}, {"states", "encryption", "<SSEAlgorithm>aws:kms</SSEAlgorithm>"},
		{"states", "publicAccessBlock", "<RestrictPublicBuckets>true</RestrictPublicBuckets>"}, {"states", "tagging", "<Value>a&amp;b</Value>"},
		{"states", "policy", `"Sid":"EnforcedTLS"`}, {"states", "policy", `arn:aws:iam::123456789012:root`}, {"states", "logging", "<TargetBucket>logs</TargetBucket><TargetPrefix>TFStateLogs/</TargetPrefix>"},
		{"logs", "encryption", "AES256"}, {"logs", "acl", "groups/s3/LogDelivery uri="}, {"logs", "policy", "EnforcedTLS"}, {"logs", "ownership", "ObjectWriter"}, {"logs", "publicAccessBlock", ">true<"},
	} {
		if got := s.Setting(x[0], x[1]); !strings.Contains(got, x[2]) {
			t.Errorf("%s, %s: %s lacks %s", x[0], x[1], got, x[2])
		}
	}
	table := fmt.Sprint(s.Made("locks"))
	for _, want := range []string{"BillingMode:PAY_PER_REQUEST", "AttributeName:LockID AttributeType:S", "Key:c Value:d", "Enabled:true"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table %s lacks %s", table, want)
		}
	}
	if did, ds := made(t, p, args, backend.Bootstrapping{}); ds.HasErrors() || len(did) > 0 {
		t.Errorf("again: %q %v", did, ds.Err())
	}
	off := func() {
		o := open0(t, p)
		if resp, err := o.b.send(t.Context(), "PUT", "", map[string][]string{"versioning": {""}}, nil, []byte("<Status>Suspended</Status>"), true); err != nil || resp.Status != 200 {
			t.Fatal(err)
		}
	}
	off()
	if did, ds := made(t, p, args, backend.Bootstrapping{Keep: true}); ds.HasErrors() || len(did) > 0 {
		t.Errorf("a bucket that is to be left alone: %q %v", did, ds.Err())
	}
	if did, ds := made(t, p, args, backend.Bootstrapping{}); ds.HasErrors() || !slices.Equal(did, []string{"versioning of the bucket states"}) {
		t.Errorf("versioning: %q %v", did, ds.Err())
	}
}

func TestBootstrapSkips(t *testing.T) {
	s := servers.AWS(t)
	p := setMissingEnv(t, s, nil)
	args := map[string]cty.Value{}
	for name, typ := range bootstrapArgs() {
		if typ == cty.Bool && strings.HasPrefix(name, "skip_bucket_") && name != "skip_bucket_creation" {
			args[name] = cty.StringVal("true") // as text, as variables contain it
		}
	}
	if did, ds := made(t, p, args, backend.Bootstrapping{}); ds.HasErrors() || !slices.Equal(did, []string{"made the bucket states"}) {
		t.Errorf("%q %v", did, ds.Err())
	}
	p.Config["bucket"] = cty.StringVal("other")
	if did, ds := made(t, p, map[string]cty.Value{"skip_bucket_creation": cty.True}, backend.Bootstrapping{}); ds.HasErrors() || len(did) > 0 {
		t.Errorf("%q %v", did, ds.Err())
	}
	_, ds := made(t, p, nil, backend.Bootstrapping{Require: true})
	if !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "--backend-require-bootstrap") || s.Setting("other", "policy") != "" {
		t.Errorf("%v", ds.Err())
	}
	p.Config["dynamodb_table"] = cty.StringVal("locks")
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Amz-Target") == "" {
			return false
		}
		w.WriteHeader(400)
		fmt.Fprint(w, `{"__type":"x#AccessDeniedException","message":"not you"}`)
		return true
	}
	if _, ds = made(t, p, nil, backend.Bootstrapping{}); !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "dynamodb:") {
		t.Errorf("%v", ds.Err())
	}
}

// If a run ends between writing the state and its digest, the state can still be read. A
// digest that arrives late does not replace a newer one.
func TestDigestAnnounced(t *testing.T) {
	s := servers.AWS(t)
	p := setMissingEnv(t, s, map[string]cty.Value{"dynamodb_table": cty.StringVal("locks")})
	s.Bucket("states")
	s.Table("locks")
	o := open0(t, p)
	first, err := o.Write(t.Context(), []byte("1\n"), backend.Prior{Absent: true}, "")
	if err != nil {
		t.Fatal(err)
	}
	var late *http.Request
	puts := 0
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "PutItem") {
			if puts++; puts == 2 { // after the announcement, the digest itself
				late = r
				w.WriteHeader(http.StatusBadRequest)
				return true
			}
		}
		return false
	}
	second, err := o.Write(t.Context(), []byte("2\n"), backend.Prior{Version: first}, "")
	if err == nil || second == "" || late == nil {
		t.Fatalf("%q %v", second, err)
	}
	s.Before = nil
	again := open0(t, p)
	got, err := again.Read(t.Context())
	if err != nil || string(got.Data) != "2\n" || got.Version != second {
		t.Fatalf("%q %v", got, err)
	}
	if _, err := again.Write(t.Context(), []byte("3\n"), backend.Prior{Version: second}, ""); err != nil {
		t.Fatal(err)
	}
	if err := o.putDigest(t.Context(), digestOf(backend.Bytes([]byte("2\n")))); err == nil {
		t.Error("a late digest was taken")
	}
	if got, err := open0(t, p).Read(t.Context()); err != nil || string(got.Data) != "3\n" {
		t.Errorf("%q %v", got.Data, err)
	}
}
