package kinds

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/azurerm"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/backend/consul"
	"github.com/terrace-iac/terrace/internal/state/backend/cos"
	"github.com/terrace-iac/terrace/internal/state/backend/doctor"
	"github.com/terrace-iac/terrace/internal/state/backend/gcs"
	"github.com/terrace-iac/terrace/internal/state/backend/kubernetes"
	"github.com/terrace-iac/terrace/internal/state/backend/oss"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
	"github.com/zclconf/go-cty/cty"
)

// A guard is a proxy for a service that refuses requests without permission.
type guard struct {
	service http.Handler
	denied  atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := g.denied.Load(); f != nil && (*f)(w, r) {
		return
	}
	g.service.ServeHTTP(w, r)
}

// A right is a permission that an account may have.
type right struct {
	named string // the permission that the doctor must report if it is missing
	needs func(r *http.Request) bool
}

// A guarded is a kind with a service behind a guard.
type guarded struct {
	kind   backend.Kind
	config map[string]cty.Value
	guard  *guard
	tunnel *servers.Tunnel // nil for none
	refuse func(w http.ResponseWriter)
	rights map[string]right
	// asked responds to the account's request for its own permissions; nil if there is no such
	// request.
	asked func(w http.ResponseWriter, r *http.Request, denied []string) bool
}

func text(pairs ...string) map[string]cty.Value {
	out := map[string]cty.Value{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = cty.StringVal(pairs[i+1])
	}
	return out
}

func guardedKinds(t *testing.T) []guarded {
	listing := func(r *http.Request) bool { return r.Method == "GET" && r.URL.Query().Has("prefix") }
	var out []guarded

	g := servers.NewGCS()
	front := &guard{service: g}
	object := func(method string) func(r *http.Request) bool {
		return func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.Path, "/o/") }
	}
	out = append(out, guarded{gcs.Kind(), text("bucket", g.Bucket, "access_token", g.Token), front, servers.NewTunnel(t, front, "storage.googleapis.com"),
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error":{"code":403,"message":"no"}}`)
		},
		map[string]right{
			"get":    {"storage.objects.get", object("GET")},
			"list":   {"storage.objects.list", listing},
			"create": {"storage.objects.create", func(r *http.Request) bool { return r.Method == "POST" }},
			"delete": {"storage.objects.delete", object("DELETE")},
			"bucket": {"storage.buckets.get", func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/b/"+g.Bucket) }},
		}, nil})

	a := servers.NewBlobs("states")
	front = &guard{service: a}
	out = append(out, guarded{azurerm.Kind(), text("storage_account_name", a.Account, "container_name", "states", "key", "app", "access_key", a.Key), front, servers.NewTunnel(t, front, a.Account+".blob.core.windows.net"),
		func(w http.ResponseWriter) {
			w.Header().Set("x-ms-error-code", "AuthorizationPermissionMismatch")
			w.WriteHeader(http.StatusForbidden)
		},
		map[string]right{
			"read":   {"Storage Blob Data Reader", func(r *http.Request) bool { return r.Method == "GET" || r.Method == "HEAD" }},
			"list":   {"Storage Blob Data Reader", func(r *http.Request) bool { return r.URL.Query().Get("comp") == "list" }},
			"write":  {"Storage Blob Data Contributor", func(r *http.Request) bool { return r.Method == "PUT" && r.URL.Query().Get("comp") == "" }},
			"lease":  {"Storage Blob Data Contributor", func(r *http.Request) bool { return r.URL.Query().Get("comp") == "lease" }},
			"delete": {"Storage Blob Data Contributor", func(r *http.Request) bool { return r.Method == "DELETE" }},
		}, nil})

	c := servers.NewConsul()
	front = &guard{service: c}
	cs := httptest.NewServer(front)
	t.Cleanup(cs.Close)
	key := `key_prefix "app" { policy = "write" }`
	out = append(out, guarded{consul.Kind(), text("path", "app", "address", cs.Listener.Addr().String(), "access_token", "planted"), front, nil,
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "Permission denied")
		},
		map[string]right{
			"key:read":      {key, func(r *http.Request) bool { return r.Method == "GET" && strings.Contains(r.URL.Path, "/kv/") }},
			"key:write":     {key, func(r *http.Request) bool { return r.Method == "PUT" && strings.Contains(r.URL.Path, "/kv/") }},
			"session:write": {`session_prefix "" { policy = "write" }`, func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/session/create") }},
		}, nil})

	k := servers.NewKubernetes("planted")
	front = &guard{service: k}
	ks := httptest.NewTLSServer(front)
	t.Cleanup(ks.Close)
	config := text("secret_suffix", "app", "host", ks.URL, "token", "planted")
	config["insecure"] = cty.True
	verbs := map[string]right{}
	for _, kind := range []string{"secrets", "leases"} {
		for verb, method := range map[string]string{"create": "POST", "update": "PUT", "delete": "DELETE", "get": "GET", "list": "GET"} {
			if kind == "leases" && (verb == "list" || verb == "delete") {
				continue
			}
			verbs[verb+" "+kind] = right{verb + " " + kind, func(r *http.Request) bool {
				_, name, here := strings.Cut(r.URL.Path, "/"+kind)
				return here && r.Method == method && (verb != "list" && verb != "get" || (name == "") == (verb == "list"))
			}}
		}
	}
	out = append(out, guarded{kubernetes.Kind(), config, front, nil,
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}`)
		}, verbs, func(w http.ResponseWriter, r *http.Request, denied []string) bool {
			if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
				return false
			}
			var q struct {
				Spec struct {
					ResourceAttributes struct{ Verb, Resource string }
				}
			}
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				t.Error(err)
			}
			a := q.Spec.ResourceAttributes
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","status":{"allowed":%v}}`, !slices.Contains(denied, a.Verb+" "+a.Resource))
			return true
		}})

	q := servers.NewCOS()
	front = &guard{service: q}
	bucketHost := q.Bucket + ".cos." + q.Region + ".myqcloud.com"
	inBucket := func(method string) func(r *http.Request) bool {
		return func(r *http.Request) bool {
			return r.Method == method && strings.HasPrefix(r.Host, q.Bucket) && r.URL.Path != "/"
		}
	}
	denied := func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
	}
	out = append(out, guarded{cos.Kind(), text("bucket", q.Bucket, "region", q.Region, "secret_id", q.ID, "secret_key", q.Key), front, servers.NewTunnel(t, front, bucketHost, "tag.tencentcloudapi.com"), denied,
		map[string]right{
			"get":    {"cos:GetObject", inBucket("GET")},
			"put":    {"cos:PutObject", inBucket("PUT")},
			"delete": {"cos:DeleteObject", inBucket("DELETE")},
			"list":   {"cos:GetBucket", listing},
		}, nil})

	o := servers.NewOSS()
	front = &guard{service: o}
	os := httptest.NewServer(front)
	t.Cleanup(os.Close)
	inOSS := func(method string) func(r *http.Request) bool {
		return func(r *http.Request) bool {
			return r.Method == method && strings.HasPrefix(r.URL.Path, "/"+o.Bucket+"/") && len(r.URL.Path) > len(o.Bucket)+2
		}
	}
	out = append(out, guarded{oss.Kind(), text("bucket", o.Bucket, "endpoint", os.URL, "tablestore_endpoint", os.URL, "tablestore_table", o.Table, "access_key", o.ID, "secret_key", o.Key), front, nil, denied,
		map[string]right{
			"get":    {"oss:GetObject", inOSS("GET")},
			"put":    {"oss:PutObject", inOSS("PUT")},
			"delete": {"oss:DeleteObject", inOSS("DELETE")},
			"list":   {"oss:ListObjects", listing},
		}, nil})
	return out
}

// TestMissingPermissions removes each permission of an account in turn, and then all of them.
// The doctor names each missing permission and checks the rest.
func TestMissingPermissions(t *testing.T) {
	for _, g := range guardedKinds(t) {
		t.Run(g.kind.Name, func(t *testing.T) {
			s := backendtest.Services(t)
			if g.tunnel != nil {
				s.Transport = g.tunnel.Transport(t)
			}
			b, err := g.kind.Open(t.Context(), backendtest.Config(t, g.kind, g.config), s)
			if err != nil {
				t.Fatal(err)
			}
			st, err := b.Store(store.Default, backend.StoreOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if ds := st.Write(t.Context(), storetest.Sample(1)); ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			examine := func(t *testing.T, denied ...string) {
				refuse := func(w http.ResponseWriter, r *http.Request) bool {
					if g.asked != nil && g.asked(w, r, denied) {
						return true
					}
					for _, name := range denied {
						if g.rights[name].needs(r) {
							g.refuse(w)
							return true
						}
					}
					return false
				}
				g.guard.denied.Store(&refuse)
				defer g.guard.denied.Store(nil)
				var missing []string
				looked := map[string]bool{}
				doctor.Run(t.Context(), b, store.Default, backend.StoreOptions{}, store.LockInfo{ID: store.NewID(), Operation: "doctor"}, func(f backend.Finding) {
					looked[f.What] = true
					t.Logf("%v %s: %s (%s)", f.OK, f.What, f.Detail, f.Permission)
					if f.Permission != "" && !f.OK {
						missing = append(missing, f.Permission)
					}
				})
				for _, name := range denied {
					if !slices.ContainsFunc(missing, func(p string) bool { return tells(p, g.rights[name].named) }) {
						t.Errorf("%s is missing and not named: %q", name, missing)
					}
				}
				if len(denied) == 0 && len(missing) > 0 {
					t.Errorf("nothing is missing, and named: %q", missing)
				}
				if !looked["clock"] || !looked["locking"] {
					t.Errorf("denied: %v; looked at: %v", denied, looked)
				}
			}
			for name := range g.rights {
				t.Run(name, func(t *testing.T) { examine(t, name) })
			}
			t.Run("none", func(t *testing.T) { examine(t) })
			t.Run("all", func(t *testing.T) { examine(t, slices.Collect(maps.Keys(g.rights))...) })
		})
	}
}

// tells reports whether a permission in the doctor's output contains a right. The output may
// list several verbs, as in "create, update secrets".
func tells(told, right string) bool {
	verb, resource, _ := strings.Cut(right, " ")
	verbs, ok := strings.CutSuffix(told, " "+resource)
	return strings.Contains(told, right) || ok && slices.Contains(strings.Split(verbs, ", "), verb)
}
