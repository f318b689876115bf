package s3

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/net/aws"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/backend/doctor"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

var ctx = context.Background()

func place(t *testing.T, url string, more map[string]cty.Value) backendtest.Place {
	config := map[string]cty.Value{
		"bucket": cty.StringVal("states"), "key": cty.StringVal("team/app.tfstate"), "region": cty.StringVal("us-east-1"),
		"access_key": cty.StringVal(servers.AccessKey), "secret_key": cty.StringVal(servers.SecretKey), "use_path_style": cty.True,
		"endpoints": endpoints(url, ""), "skip_credentials_validation": cty.True, "skip_metadata_api_check": cty.True,
	}
	maps.Copy(config, more)
	return backendtest.Place{Config: config, Services: backendtest.Services(t), Locks: true, Workspaces: true}
}

func endpoints(s3, table string) cty.Value {
	null := cty.NullVal(cty.String)
	v := map[string]cty.Value{"s3": cty.StringVal(s3), "iam": null, "sts": null, "dynamodb": null}
	if table != "" {
		v["dynamodb"] = cty.StringVal(table)
	}
	return cty.ObjectVal(v)
}

func open0(t *testing.T, p backendtest.Place) *object {
	t.Helper()
	st, err := backendtest.Open(t, Kind(), p).Store("", backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st.(*backend.Store).Object().(*object)
}

// fresh returns a place in a bucket of its own.
func fresh(t *testing.T, url string, bucket func(string), n *int, more map[string]cty.Value) backendtest.Place {
	*n++
	name := fmt.Sprintf("states%d", *n)
	bucket(name)
	p := place(t, url, more)
	p.Config["bucket"] = cty.StringVal(name)
	return p
}

// thief overwrites the lock object, as another user with force-unlock would.
func thief(p *backendtest.Place) {
	p.Steal = func(t *testing.T) {
		o := open0(t, *p)
		if resp, err := o.put(ctx, o.lockKey(), backend.Bytes(store.LockInfo{ID: "other", Who: "they@there"}.JSON()), "", nil); err != nil || resp.Status/100 != 2 {
			t.Fatal(err, resp)
		}
	}
}

func TestLockObject(t *testing.T) {
	url, bucket := servers.Versity(t)
	n := 0
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
		p := fresh(t, url, bucket, &n, map[string]cty.Value{"use_lockfile": cty.True})
		thief(&p)
		return p
	})
	t.Run("without locks", func(t *testing.T) {
		backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
			p := fresh(t, url, bucket, &n, nil)
			p.Locks = false
			return p
		})
	})
}

// table creates a table of locks.
func table(t *testing.T, p backendtest.Place) {
	t.Helper()
	b := backendtest.Open(t, Kind(), p).(*s3Backend)
	err := b.call(ctx, "CreateTable", map[string]any{
		"TableName": b.table, "BillingMode": "PAY_PER_REQUEST",
		"AttributeDefinitions": []any{map[string]string{"AttributeName": "LockID", "AttributeType": "S"}},
		"KeySchema":            []any{map[string]string{"AttributeName": "LockID", "KeyType": "HASH"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A table exists some time after the request.
	var answer struct{ Table struct{ TableStatus string } }
	for answer.Table.TableStatus != "ACTIVE" {
		time.Sleep(20 * time.Millisecond)
		if err := b.call(t.Context(), "DescribeTable", map[string]any{"TableName": b.table}, &answer); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTable(t *testing.T) {
	url, bucket := servers.Versity(t)
	tables := servers.DynamoDB(t)
	n := 0
	for name, lockfile := range map[string]cty.Value{"alone": cty.False, "with a lock object": cty.True} {
		made := false
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
				p := fresh(t, url, bucket, &n, map[string]cty.Value{"dynamodb_table": cty.StringVal("locks-" + strings.ReplaceAll(name, " ", "-")), "use_lockfile": lockfile, "endpoints": endpoints(url, tables)})
				if !made {
					table(t, p)
					made = true
				}
				p.Steal = func(t *testing.T) {
					o := open0(t, p)
					if err := o.b.deleteItem(ctx, o.path(), ""); err != nil {
						t.Fatal(err)
					}
				}
				return p
			})
		})
	}
}

// A service that ignores conditions is detected: the lock is read back, and the version is
// compared before each write.
func TestIgnoresConditions(t *testing.T) {
	url, _ := servers.S3rver(t)
	p := place(t, url, map[string]cty.Value{"use_lockfile": cty.True})
	a, b := open0(t, p), open0(t, p)
	id, err := a.Lock(ctx, store.LockInfo{ID: "one", Who: "a"})
	if err != nil {
		t.Fatal(err)
	}
	var locked *backend.LockedError
	if _, err := b.Lock(ctx, store.LockInfo{ID: "two", Who: "b"}); !errors.As(err, &locked) || locked.Holder.ID != "one" {
		t.Errorf("a second lock: %v", err)
	}
	if _, err := a.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, id); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(ctx, []byte("{1}\n"), backend.Prior{Absent: true}, ""); !errors.Is(err, backend.ErrChanged) {
		t.Errorf("a write over a state that was not read: %v", err)
	}
	if err := a.Unlock(ctx, id); err != nil {
		t.Error(err)
	}
}

// TestMissingPermissions removes each permission in turn, and then all of them. The doctor
// names each missing permission and checks the rest. The check of a store also finds out
// which services honour conditional writes, and leaves no objects behind.
func TestMissingPermissions(t *testing.T) {
	server := servers.AWS(t)
	server.Bucket("states")
	needs := map[string]func(r *http.Request, key string) bool{
		"s3:ListBucket":                 func(r *http.Request, key string) bool { return key == "" && r.URL.Query().Has("prefix") },
		"s3:GetObject":                  func(r *http.Request, key string) bool { return key != "" && r.Method == "GET" },
		"s3:PutObject":                  func(r *http.Request, key string) bool { return key != "" && r.Method == "PUT" },
		"s3:DeleteObject":               func(r *http.Request, key string) bool { return key != "" && r.Method == "DELETE" },
		"s3:GetBucketVersioning":        func(r *http.Request, key string) bool { return r.URL.Query().Has("versioning") },
		"s3:GetEncryptionConfiguration": func(r *http.Request, key string) bool { return r.URL.Query().Has("encryption") },
		"s3:GetBucketPublicAccessBlock": func(r *http.Request, key string) bool { return r.URL.Query().Has("publicAccessBlock") },
	}
	p := place(t, server.URL, map[string]cty.Value{"use_lockfile": cty.True})
	o := open0(t, p)
	if _, err := o.Write(ctx, []byte("{\"version\":4,\"serial\":1,\"lineage\":\"l\"}\n"), backend.Prior{Absent: true}, ""); err != nil {
		t.Fatal(err)
	}
	examine := func(t *testing.T, denied ...string) {
		server.Before = func(w http.ResponseWriter, r *http.Request) bool {
			_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
			for _, name := range denied {
				if needs[name](r, key) {
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
					return true
				}
			}
			return false
		}
		missing, looked := map[string]bool{}, map[string]bool{}
		doctor.Run(ctx, o.b, store.Default, backend.StoreOptions{}, store.LockInfo{ID: store.NewID(), Operation: "doctor"}, func(f backend.Finding) {
			looked[f.What] = true
			if f.Permission != "" && !f.OK {
				missing[f.Permission] = true
			}
		})
		for _, name := range denied {
			if !missing[name] {
				t.Errorf("%s is missing and not named: %v", name, missing)
			}
		}
		if len(missing) > len(denied) || !looked["clock"] || !looked["public access"] || !looked["locking"] {
			t.Errorf("denied: %v; named: %v; looked at: %v", denied, missing, looked)
		}
	}
	for name := range needs {
		t.Run(name, func(t *testing.T) { examine(t, name) })
	}
	t.Run("none", func(t *testing.T) { examine(t) })
	t.Run("reads", func(t *testing.T) { examine(t, "s3:GetObject", "s3:ListBucket", "s3:GetBucketVersioning") })
	t.Run("all", func(t *testing.T) { examine(t, slices.Collect(maps.Keys(needs))...) })
}

func TestCheckConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		start func(testing.TB) (string, func(string))
		keep  bool
	}{
		"s3rver": {servers.S3rver, false}, "versitygw": {servers.Versity, true},
	} {
		t.Run(name, func(t *testing.T) {
			url, bucket := tc.start(t)
			bucket("states")
			o := open0(t, place(t, url, nil))
			if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, ""); err != nil {
				t.Fatal(err)
			}
			var findings []backend.Finding
			o.b.Check(ctx, "", func(f backend.Finding) { findings = append(findings, f) })
			var conditions, clock *backend.Finding
			for i, f := range findings {
				switch f.What {
				case "conditional writes":
					conditions = &findings[i]
				case "clock":
					clock = &findings[i]
				}
			}
			if conditions == nil || conditions.OK != tc.keep || clock == nil || !clock.OK {
				t.Errorf("%+v", findings)
			}
			if err := o.b.keys(ctx, "", func(key string) {
				if key != o.key {
					t.Errorf("left behind: %s", key)
				}
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

// The lock equals that of OpenTofu and Terraform, byte for byte.
func TestLockForm(t *testing.T) {
	var body, header string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "PUT" {
			b := make([]byte, r.ContentLength)
			_, _ = r.Body.Read(b)
			body = string(b)
			header = r.Header.Get("If-None-Match") + " " + r.Header.Get("Content-Type") + " " + r.Header.Get("X-Amz-Checksum-Sha256")
			return
		}
		if body == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	defer s.Close()
	o := open0(t, place(t, s.URL, map[string]cty.Value{"use_lockfile": cty.True}))
	info := store.LockInfo{ID: "6f2c1d3e-0000-4000-8000-000000000000", Operation: "OperationTypeApply", Who: "me@here", Version: "1.12.6", Created: time.Date(2026, 11, 22, 14, 16, 41, 440965307, time.UTC)}
	if _, err := o.Lock(ctx, info); err != nil {
		t.Fatal(err)
	}
	if want := `{"ID":"6f2c1d3e-0000-4000-8000-000000000000","Operation":"OperationTypeApply","Info":"","Who":"me@here","Version":"1.12.6","Created":"2026-11-22T14:16:41.440965307Z","Path":"states/team/app.tfstate"}`; body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if !strings.HasPrefix(header, "* application/json ") || len(header) < 50 {
		t.Errorf("headers: %s", header)
	}
}

// A write whose response was lost counts as made.
func TestLostAnswer(t *testing.T) {
	var stored []byte
	drop := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case "PUT":
			stored = make([]byte, r.ContentLength)
			_, _ = r.Body.Read(stored)
			if drop {
				drop = false
				panic(http.ErrAbortHandler)
			}
		case "GET", "HEAD":
			if stored == nil {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			w.Header().Set("ETag", `"x"`)
			_, _ = w.Write(stored)
		}
	}))
	defer s.Close()
	o := open0(t, place(t, s.URL, nil))
	if v, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, ""); err != nil || v != `"x"` {
		t.Errorf("%q, %v", v, err)
	}
}

func TestArguments(t *testing.T) {
	key := func(id string) map[string]cty.Value { return map[string]cty.Value{"kms_key_id": cty.StringVal(id)} }
	aws := func(set map[string]cty.Value) map[string]cty.Value {
		set["endpoints"] = cty.NullVal(endpoints("", "").Type())
		return set
	}
	for _, c := range []struct {
		set  map[string]cty.Value
		env  []string
		want string // the argument of the first error
	}{
		{map[string]cty.Value{"key": cty.StringVal("/a")}, nil, "key"},
		{map[string]cty.Value{"workspace_key_prefix": cty.StringVal("a/")}, nil, "workspace_key_prefix"},
		{map[string]cty.Value{"region": cty.StringVal("moon-1")}, nil, "region"},
		{map[string]cty.Value{"region": cty.NullVal(cty.String)}, nil, "region"},
		{map[string]cty.Value{"region": cty.NullVal(cty.String)}, []string{"AWS_DEFAULT_REGION=eu-central-1"}, ""},
		{map[string]cty.Value{"region": cty.StringVal("moon-1"), "skip_region_validation": cty.True}, nil, ""},
		{map[string]cty.Value{"sse_customer_key": cty.StringVal("short")}, nil, "sse_customer_key"},
		{map[string]cty.Value{"endpoint": cty.StringVal("http://localhost")}, nil, "endpoint"},
		{map[string]cty.Value{"use_path_style": cty.True, "force_path_style": cty.True}, nil, "force_path_style"},
		{map[string]cty.Value{"profile": cty.StringVal("none"), "access_key": cty.NullVal(cty.String), "secret_key": cty.NullVal(cty.String)}, nil, "profile"},
		{map[string]cty.Value{"custom_ca_bundle": cty.StringVal("missing.pem")}, nil, "custom_ca_bundle"},
		{map[string]cty.Value{"secret_key": cty.NullVal(cty.String)}, nil, "access_key"},
		{key("not a key!"), nil, "kms_key_id"},
		{key("key-of-another-service"), nil, ""}, // the address is not one of AWS
		{aws(key("not a key!")), nil, "kms_key_id"},
		{aws(key("name")), nil, "kms_key_id"},
		{aws(key("alias/a b")), nil, "kms_key_id"},
		{aws(key("arn:aws:iam::111122223333:role/x")), nil, "kms_key_id"},
		{aws(key("arn:aws:kms:us-east-1:111122223333:key/x")), nil, "kms_key_id"},
		{aws(key("1234abcd-12ab-34cd-56ef-1234567890ab")), nil, ""},
		{aws(key("mrk-1234abcd12ab34cd56ef1234567890ab")), nil, ""},
		{aws(key("alias/states")), nil, ""},
		{aws(key("arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab")), nil, ""},
		{aws(key("arn:aws:kms:us-east-1:111122223333:alias/states")), nil, ""},
	} {
		p := place(t, "http://127.0.0.1:1", c.set)
		p.Services.Env = c.env
		_, err := Kind().Open(ctx, backendtest.Config(t, Kind(), p.Config), p.Services)
		var e *backend.Error
		got := ""
		if errors.As(err, &e) {
			got = e.Argument
		}
		if got != c.want {
			t.Errorf("%v: %q (%v), want %q", c.set, got, err, c.want)
		}
	}
}

// The name of the bucket is in the host name, as AWS requires, unless it contains a dot.
func TestAddress(t *testing.T) {
	for want, set := range map[string]map[string]cty.Value{
		"https://states.s3.us-east-1.amazonaws.com":           {},
		"https://s3.us-east-1.amazonaws.com/a.b":              {"bucket": cty.StringVal("a.b")},
		"https://s3.us-east-1.amazonaws.com/states":           {"use_path_style": cty.True},
		"https://states.s3.cn-north-1.amazonaws.com.cn":       {"region": cty.StringVal("cn-north-1")},
		"https://states.s3.eusc-de-east-1.amazonaws.eu":       {"region": cty.StringVal("eusc-de-east-1")},
		"https://states.s3-fips.us-east-1.amazonaws.com":      {"use_fips_endpoint": cty.True},
		"https://states.s3.dualstack.us-east-1.amazonaws.com": {"use_dualstack_endpoint": cty.True},
		"https://states.minio.example":                        {"endpoints": endpoints("minio.example", "")},
	} {
		p := place(t, "", nil)
		delete(p.Config, "endpoints")
		delete(p.Config, "use_path_style")
		maps.Copy(p.Config, set)
		if got := backendtest.Open(t, Kind(), p).(*s3Backend).base; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Roles in a chain are assumed with the keys of the previous profile.
func TestRoles(t *testing.T) {
	var asked []string
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		_, key, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		key, _, _ = strings.Cut(key, "/")
		asked = append(asked, key+" "+r.Form.Get("RoleArn")+" "+r.Form.Get("ExternalId"))
		w.Header().Set("Content-Type", "text/xml")
		_, _ = w.Write([]byte(`<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>KEY` + r.Form.Get("RoleArn")[len(r.Form.Get("RoleArn"))-1:] + `</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`))
	}))
	defer sts.Close()
	o := aws.Options{
		Region: "us-east-1", AccessKey: "BASE", SecretKey: "x", STSEndpoint: sts.URL,
		AssumeRole: []aws.Role{{ARN: "arn:aws:iam::123456789012:role/1", ExternalID: "e"}, {ARN: "arn:aws:iam::123456789012:role/2"}},
	}
	sv := backendtest.Services(t)
	session, err := aws.Open(ctx, o, aws.Services{Env: sv.Env, Dir: sv.Dir, Home: sv.Home, Now: sv.Now, Run: sv.Run, Transport: sv.Transport})
	if err != nil {
		t.Fatal(err)
	}
	c, err := session.Credentials(ctx)
	if err != nil || c.AccessKeyID != "KEY2" {
		t.Errorf("%+v, %v", c.AccessKeyID, err)
	}
	if got := strings.Join(asked, "|"); got != "BASE arn:aws:iam::123456789012:role/1 e|KEY1 arn:aws:iam::123456789012:role/2 " {
		t.Errorf("asked %s", got)
	}
}

func TestBeside(t *testing.T) {
	url, bucket := servers.Versity(t)
	tables := servers.DynamoDB(t)
	n := 0
	for name, set := range map[string]map[string]cty.Value{
		"lock object": {"use_lockfile": cty.True},
		"table":       {"dynamodb_table": cty.StringVal("locks-a")},
		"both":        {"use_lockfile": cty.True, "dynamodb_table": cty.StringVal("locks-b")},
	} {
		t.Run(name, func(t *testing.T) {
			p := fresh(t, url, bucket, &n, set)
			p.Config["endpoints"] = endpoints(url, tables)
			block := fmt.Sprintf(`
    bucket         = %q
    key            = "team/app.tfstate"
    region         = "us-east-1"
    access_key     = %q
    secret_key     = %q
    use_path_style = true
    endpoints      = { s3 = %q, dynamodb = %q, iam = null, sts = null }
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
`, p.Config["bucket"].AsString(), servers.AccessKey, servers.SecretKey, url, tables)
			if _, ok := set["use_lockfile"]; ok {
				block += "    use_lockfile = true\n"
			}
			if name, ok := set["dynamodb_table"]; ok {
				block += fmt.Sprintf("    dynamodb_table = %q\n", name.AsString())
				table(t, p)
			}
			backendtest.Beside(t, Kind(), p, block)
		})
	}
}
