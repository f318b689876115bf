package kubernetes

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

var ctx = context.Background()

const (
	secretPath = "/api/v1/namespaces/default/secrets/tfstate-default-app"
	leasePath  = "/apis/coordination.k8s.io/v1/namespaces/default/leases/lock-tfstate-default-app"
)

func place(t *testing.T, s *servers.KubernetesServer) backendtest.Place {
	s.SetToken("planted-token")
	return backendtest.Place{
		Config:   map[string]cty.Value{"secret_suffix": cty.StringVal("app"), "host": cty.StringVal(s.URL), "cluster_ca_certificate": cty.StringVal(s.CA), "token": cty.StringVal("planted-token")},
		Services: backendtest.Services(t),
		Locks:    true, Workspaces: true,
		Steal: func(*testing.T) {
			s.Edit(leasePath, func(o map[string]any) { o["spec"].(map[string]any)["holderIdentity"] = "other" })
		},
		Secrets: []string{"planted-token"},
	}
}

func TestSuite(t *testing.T) {
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place { return place(t, servers.Kubernetes(t, "")) })
}

func open0(t *testing.T, p backendtest.Place, workspace string) *object {
	t.Helper()
	st, err := backendtest.Open(t, Kind(), p).Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st.(*backend.Store).Object().(*object)
}

// The objects equal those of OpenTofu.
func TestLayout(t *testing.T) {
	s := servers.Kubernetes(t, "")
	p := place(t, s)
	p.Config["labels"] = cty.MapVal(map[string]cty.Value{"team": cty.StringVal("a"), "app.kubernetes.io/managed-by": cty.StringVal("me")})
	o := open0(t, p, "")
	id, err := o.Lock(ctx, store.LockInfo{ID: "id", Operation: "op", Who: "me", Version: "1.12.6", Created: time.Unix(0, 1).UTC(), Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, id); err != nil {
		t.Fatal(err)
	}
	var secret struct {
		Kind     string
		Type     string
		Metadata struct{ Labels, Annotations map[string]string }
		Data     map[string][]byte
	}
	if err := json.Unmarshal([]byte(s.Object(secretPath)), &secret); err != nil {
		t.Fatal(err)
	}
	labels := "map[app.kubernetes.io/managed-by:me team:a tfstate:true tfstateSecretSuffix:app tfstateWorkspace:default]"
	if got := fmt.Sprint(secret.Kind, secret.Type, secret.Metadata.Labels, secret.Metadata.Annotations); got != "SecretOpaque"+labels+" map[encoding:gzip]" {
		t.Error(got)
	}
	z, err := gzip.NewReader(bytes.NewReader(secret.Data["tfstate"]))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(z); string(text) != "{}\n" {
		t.Errorf("%q", text)
	}
	var lease struct {
		Metadata struct{ Labels, Annotations map[string]string }
		Spec     map[string]any
	}
	json.Unmarshal([]byte(s.Object(leasePath)), &lease)
	want := `{"ID":"id","Operation":"op","Info":"","Who":"me","Version":"1.12.6","Created":"1970-01-01T00:00:00.000000001Z","Path":""}`
	if got := fmt.Sprint(lease.Metadata.Labels, lease.Metadata.Annotations, lease.Spec); got != labels+" map[app.terraform.io/lock-info:"+want+"] map[holderIdentity:id]" {
		t.Error(got)
	}
	// Fields that other programs added to the objects are kept.
	s.Edit(secretPath, func(o map[string]any) {
		o["metadata"].(map[string]any)["annotations"].(map[string]any)["note"] = "mine"
		o["immutable"] = false
	})
	if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Unknown: true}, id); err != nil {
		t.Fatal(err)
	}
	if got := s.Object(secretPath); !strings.Contains(got, `"note":"mine"`) || !strings.Contains(got, `"immutable":false`) {
		t.Error(got)
	}
	if err := o.Unlock(ctx, id); err != nil {
		t.Fatal(err)
	}
	if got := s.Object(leasePath); strings.Contains(got, "holderIdentity") || strings.Contains(got, "lock-info") {
		t.Error(got)
	}
	if err := o.b.Delete(ctx, "default"); err != nil {
		t.Fatal(err)
	}
	if got := s.Paths(); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// A state that does not fit into a Secret is refused before the write, with advice.
func TestLimit(t *testing.T) {
	s := servers.Kubernetes(t, "")
	o := open0(t, place(t, s), "")
	random := make([]byte, 1_200_000)
	rand.Read(random)
	var e *backend.Error
	if _, err := o.Write(ctx, []byte(hex.EncodeToString(random)), backend.Prior{Absent: true}, ""); !errors.As(err, &e) || !strings.Contains(e.Advice, "1 MiB") || len(s.Paths()) != 0 {
		t.Errorf("%v %v", err, s.Paths())
	}
	if _, err := o.Write(ctx, []byte(hex.EncodeToString(random[:100_000])), backend.Prior{Absent: true}, ""); err != nil {
		t.Fatal(err)
	}
	if most, _ := o.Limit(false); most < 1_500_000 || most > 2_200_000 { // twice the size in hexadecimal
		t.Errorf("the limit is %d", most)
	}
	// Blobs may be larger.
	if err := o.PutBlob(ctx, "a/b", random); err != nil {
		t.Fatal(err)
	}
	if got, err := o.GetBlob(ctx, "a/b"); err != nil || !bytes.Equal(got, random) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := o.DeleteBlob(ctx, "a/b"); err != nil || len(s.Paths()) != 1 {
		t.Errorf("%v %v", err, s.Paths())
	}
}

// An apply that would exceed the size of a Secret is refused before it begins. One that
// only changes and deletes objects is not.
func TestLimitBefore(t *testing.T) {
	s := servers.Kubernetes(t, "")
	for _, tc := range []struct {
		size      int
		growth    int64
		wrong, ok string // summaries
	}{
		{900_000, 2 << 20, "State too large for its store", ""},
		{900_000, 500_000, "", "State may become too large for its store"},
		{900_000, 0, "", ""},
		{1000, 500_000, "", ""},
	} {
		b := backendtest.Open(t, Kind(), place(t, s))
		st, err := b.Store("", backend.StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		random := make([]byte, tc.size) // twice the size in hexadecimal
		rand.Read(random)
		sample := storetest.Sample(1).Edit()
		sample.SetOutput("x", &state.Output{Value: cty.StringVal(hex.EncodeToString(random))})
		if _, ds := st.Read(ctx); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		if ds := st.Write(ctx, sample.Freeze()); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		ds := st.(store.Preparer).Prepare(ctx, 1<<30, tc.growth)
		got := ""
		if len(ds) > 0 {
			got = ds[0].Summary
		}
		if got != tc.wrong+tc.ok || ds.HasErrors() != (tc.wrong != "") || got != "" && !strings.Contains(ds[0].Detail, "1 MiB") {
			t.Errorf("%d bytes and %d more: %v", tc.size, tc.growth, ds)
		}
	}
}

func TestBadConfiguration(t *testing.T) {
	s := servers.Kubernetes(t, "")
	b := backendtest.Open(t, Kind(), place(t, s))
	if _, err := b.Store("Upper", backend.StoreOptions{}); err == nil {
		t.Error("a workspace that gives no name of a Secret")
	}
	for argument, config := range map[string]map[string]cty.Value{
		"secret_suffix":          {"secret_suffix": cty.StringVal("A_b")},
		"namespace":              {"namespace": cty.StringVal("a/b")},
		"config_path":            {"config_path": cty.StringVal("none")},
		"cluster_ca_certificate": {"host": cty.StringVal("h"), "cluster_ca_certificate": cty.StringVal("x")},
		"client_certificate":     {"host": cty.StringVal("h"), "client_key": cty.StringVal("x")},
		"in_cluster_config":      {"in_cluster_config": cty.True},
	} {
		if config["secret_suffix"] == cty.NilVal {
			config["secret_suffix"] = cty.StringVal("x")
		}
		_, err := Kind().Open(ctx, backendtest.Config(t, Kind(), config), backendtest.Services(t))
		var e *backend.Error
		if !errors.As(err, &e) || e.Argument != argument {
			t.Errorf("%s: %v", argument, err)
		}
	}
}

// A kubeconfig contains the cluster. Credentials come from its plugin or file, and are read
// again after they were rejected.
func TestContexts(t *testing.T) {
	for context, renews := range map[string]bool{"one": true, "two": true, "three": false} {
		t.Run(context, func(t *testing.T) { testContext(t, context, renews) })
	}
}

func testContext(t *testing.T, name string, renews bool) {
	s := servers.Kubernetes(t, "first")
	p := place(t, s)
	s.SetToken("first")
	dir := p.Services.Home
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kube/token", "first")
	p.Services.Env = sys.Env{"A=1"}
	p.Services.Run = func(_ context.Context, c sys.Command) error {
		if c.Path != filepath.Join(dir, "kube/bin/plugin") || c.Args[0] != "arg" || c.Env.Get("A") != "1" || c.Env.Get("B") != "2" || !strings.Contains(c.Env.Get("KUBERNETES_EXEC_INFO"), `"kind":"ExecCredential"`) {
			t.Errorf("%+v", c)
		}
		token, err := os.ReadFile(filepath.Join(dir, "kube/token"))
		fmt.Fprintf(c.Stdout, `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":%q}}`, token)
		return err
	}
	write("kube/config", `
apiVersion: v1
kind: Config
current-context: three
contexts:
- name: one
  context: {cluster: c, user: plugin}
- name: two
  context: {cluster: c, user: file}
- name: three
  context: {cluster: c, user: static}
clusters:
- name: c
  cluster:
    server: `+s.URL+`
    certificate-authority-data: `+base64.StdEncoding.EncodeToString([]byte(s.CA))+`
users:
- name: plugin
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/plugin
      args: [arg]
      env:
      - {name: B, value: "2"}
- name: file
  user: {tokenFile: token}
- name: static
  user: {token: first}
`)
	p.Config = map[string]cty.Value{"secret_suffix": cty.StringVal("app"), "config_path": cty.StringVal("~/kube/config")}
	if name != "three" {
		p.Config["config_context"] = cty.StringVal(name)
	}
	o := open0(t, p, "")
	if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, ""); err != nil {
		t.Fatal(err)
	}
	write("kube/token", "second")
	s.SetToken("second")
	_, err := o.Read(ctx)
	var e *backend.Error
	switch {
	case renews && err != nil:
		t.Error(err)
	case !renews && (!errors.As(err, &e) || e.Argument != "config_path" || !strings.Contains(e.Answer, "401")):
		t.Errorf("%#v", err)
	}
}

// Tests certificates, impersonation and proxies of a kubeconfig, and merged files.
func TestMergedFiles(t *testing.T) {
	dir := t.TempDir()
	services := backendtest.Services(t)
	services.Dir = dir
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a", `
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
`)
	write("b", `
current-context: other
clusters: [{name: c, cluster: {server: "https://one", insecure-skip-tls-verify: true, tls-server-name: name, proxy-url: "http://p"}}]
users: [{name: u, user: {as: boss, as-groups: [g], username: me, password: `+base64.StdEncoding.EncodeToString([]byte("p"))+`}}]
`)
	write("c", `{"clusters": [{"name": "c", "cluster": {"server": "https://two"}}]}`)
	services.Env = sys.Env{"KUBE_CONFIG_PATHS=a:none:b:c", "KUBE_TOKEN=t"}
	cfg := backendtest.Config(t, Kind(), map[string]cty.Value{"secret_suffix": cty.StringVal("app")})
	a := backend.NewArgs(cfg, services.Env)
	x := accessOf(a, services)
	if err := a.Err(); err != nil {
		t.Fatal(err)
	}
	want := access{Server: "https://one", ServerName: "name", Proxy: "http://p", Insecure: true, Token: "t", User: "me", Pass: "cA==", As: impersonation{User: "boss", Groups: []string{"g"}}}
	if x.key() != want.key() {
		t.Errorf("%s\nwant %s", x.key(), want.key())
	}
	if h := (&connection{access: &access{Server: "http://one"}}).header(nil, x.Token); h.Get("Authorization") != "" {
		t.Error("credentials are sent in the clear")
	}
	h := (&connection{access: x}).header(nil, x.Token)
	if got := fmt.Sprint(h); got != "map[Accept:[application/json] Authorization:[Bearer t] Impersonate-Group:[g] Impersonate-User:[boss] User-Agent:[Terrace]]" {
		t.Error(got)
	}
}

func TestBeside(t *testing.T) {
	s := servers.Kubernetes(t, "")
	p := place(t, s)
	file := filepath.Join(t.TempDir(), "config")
	text := `{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"` + s.URL + `","certificate-authority-data":"` + base64.StdEncoding.EncodeToString([]byte(s.CA)) + `"}}],"users":[{"name":"u","user":{"token":"planted-token"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	backendtest.Beside(t, Kind(), p, `
    secret_suffix = "app"
    config_path   = "`+file+`"`)
}

// cluster is a real cluster, from the context of a kubeconfig. Every place has a namespace
// of its own.
type cluster struct {
	config string // the path of the kubeconfig
	admin  *kubernetesBackend
}

// realCluster returns the cluster in TERRACE_TEST_KUBERNETES, a kubeconfig of a user who
// may create namespaces. It skips the test if that is not set.
func realCluster(t *testing.T) *cluster {
	t.Helper()
	path := os.Getenv("TERRACE_TEST_KUBERNETES")
	if path == "" {
		t.Skip("TERRACE_TEST_KUBERNETES names no kubeconfig of a cluster for tests")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{config: path}
	c.admin = backendtest.Open(t, Kind(), c.place(t, "default")).(*kubernetesBackend)
	return c
}

func (c *cluster) place(t *testing.T, namespace string) backendtest.Place {
	lease := "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/lock-tfstate-default-app"
	p := backendtest.Place{
		Config:   map[string]cty.Value{"secret_suffix": cty.StringVal("app"), "config_path": cty.StringVal(c.config), "namespace": cty.StringVal(namespace)},
		Services: backendtest.Services(t),
		Locks:    true, Workspaces: true,
		Steal: func(t *testing.T) { c.edit(t, lease, "spec", "holderIdentity", "other") },
	}
	p.Services.Run = sys.Run
	return p
}

// fresh returns a place in a new namespace.
func (c *cluster) fresh(t *testing.T) backendtest.Place {
	t.Helper()
	name := "terrace-test-" + strings.ToLower(store.NewID())
	resp, err := c.admin.put(ctx, "POST", "/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	if err != nil || resp.Status != http.StatusCreated {
		t.Fatalf("%v %+v", err, resp)
	}
	t.Cleanup(func() {
		if _, err := c.admin.c.send(ctx, rest.Request{Method: "DELETE", URL: "/api/v1/namespaces/" + name}); err != nil {
			t.Error(err)
		}
	})
	return c.place(t, name)
}

// edit sets a field of an object, as another program would.
func (c *cluster) edit(t *testing.T, path, part, field string, value any) {
	t.Helper()
	var o map[string]any
	if found, err := c.admin.get(ctx, path, &o); err != nil || !found {
		t.Fatalf("%s: %v %v", path, found, err)
	}
	m, _ := o[part].(map[string]any)
	m[field] = value
	if resp, err := c.admin.put(ctx, "PUT", path, o); err != nil || resp.Status != http.StatusOK {
		t.Fatalf("%v %+v", err, resp)
	}
}

// TestCluster runs the suite with a real API server.
func TestCluster(t *testing.T) {
	c := realCluster(t)
	backendtest.Run(t, Kind(), c.fresh)
}

// A real API server stores the same fields as the stand-in.
func TestClusterLayout(t *testing.T) {
	c := realCluster(t)
	s := servers.Kubernetes(t, "")
	var shapes []string
	real := c.fresh(t)
	for _, p := range []backendtest.Place{real, place(t, s)} {
		p.Config["labels"] = cty.MapVal(map[string]cty.Value{"team": cty.StringVal("a")})
		o := open0(t, p, "")
		id, err := o.Lock(ctx, store.LockInfo{ID: "id", Operation: "op", Who: "me", Version: "1.12.6", Created: time.Unix(0, 1).UTC()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, id); err != nil {
			t.Fatal(err)
		}
		shape := ""
		for _, path := range []string{o.path(), o.lease()} {
			var all map[string]any
			if found, err := o.b.get(ctx, path, &all); err != nil || !found {
				t.Fatal(found, err)
			}
			m := all["metadata"].(map[string]any)
			for _, name := range []string{"uid", "creationTimestamp", "resourceVersion", "managedFields", "namespace"} {
				delete(m, name)
			}
			b, _ := json.Marshal(all)
			shape += string(b) + "\n"
		}
		shapes = append(shapes, shape)
		if err := o.Unlock(ctx, id); err != nil {
			t.Fatal(err)
		}
		for _, workspace := range []string{"Upper", "a_b"} {
			if _, err := backendtest.Open(t, Kind(), p).Store(workspace, backend.StoreOptions{}); err == nil {
				t.Errorf("the workspace %s gives no name of a Secret", workspace)
			}
		}
	}
	if shapes[0] != shapes[1] {
		t.Errorf("the real one keeps\n%s\nthe stand-in\n%s", shapes[0], shapes[1])
	}
}

// A state that does not fit into a Secret is refused, but a journal may use several.
func TestClusterLimit(t *testing.T) {
	c := realCluster(t)
	o := open0(t, c.fresh(t), "")
	random := make([]byte, 1_200_000)
	rand.Read(random)
	var e *backend.Error
	if _, err := o.Write(ctx, random, backend.Prior{Absent: true}, ""); !errors.As(err, &e) || !strings.Contains(e.Advice, "1 MiB") {
		t.Errorf("%v", err)
	}
	if _, err := o.Write(ctx, random[:maxSecret-1000], backend.Prior{Absent: true}, ""); err != nil {
		t.Errorf("just below the limit: %v", err)
	}
	if err := o.PutBlob(ctx, "a/b", random); err != nil {
		t.Fatal(err)
	}
	if got, err := o.GetBlob(ctx, "a/b"); err != nil || !bytes.Equal(got, random) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestClusterBeside uses OpenTofu and Terrace with a real API server.
func TestClusterBeside(t *testing.T) {
	servers.Tofu(t)
	c := realCluster(t)
	p := c.fresh(t)
	backendtest.Beside(t, Kind(), p, `
    secret_suffix = "app"
    config_path   = "`+c.config+`"
    namespace     = "`+p.Config["namespace"].AsString()+`"`)
}

// A run whose lock was released by another process reports this, and not that its lock may
// still be held.
func TestReleasedByOthers(t *testing.T) {
	s := servers.Kubernetes(t, "")
	b := backendtest.Open(t, Kind(), place(t, s))
	for _, next := range []string{"", "other"} {
		st, err := b.Store("", backend.StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		unlock, ds := st.Lock(ctx, store.LockInfo{ID: "ours"}, 0)
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		other := open0(t, place(t, s), "")
		if err := other.Unlock(ctx, "ours"); err != nil {
			t.Fatal(err)
		}
		if next != "" {
			if _, err := other.Lock(ctx, store.LockInfo{ID: next}); err != nil {
				t.Fatal(err)
			}
		}
		ds = unlock()
		if !ds.HasErrors() || !strings.Contains(ds[0].Detail, "Somebody released it") || strings.Contains(ds[0].Detail, "still be held") {
			t.Errorf("%v", ds)
		}
	}
}
