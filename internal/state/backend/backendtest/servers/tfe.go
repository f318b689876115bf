package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/md5"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A TFEServer is a stand-in for the workspaces, states and runs of the TFE API, version 2,
// based on its documentation. It uses TLS with a certificate of its own authority. Only the
// holder of the workspace's lock can write a state.
type TFEServer struct {
	Host string // with the port
	CA   string // a file in PEM form

	// Before, if set, may handle a request instead of the server.
	Before func(w http.ResponseWriter, r *http.Request) (answered bool)
	// Runs sets the course of the next runs. nil means that a run has no changes.
	Runs func(r *TFERun)

	pool *x509.CertPool

	mu         sync.Mutex
	n          int               // for the next ID
	tokens     map[string]string // maps tokens to user names
	orgs       map[string]*tfeOrg
	workspaces map[string]*TFEWorkspace // by ID
	versions   map[string]*tfeVersion   // states by ID
	configs    map[string]*TFEConfig    // uploaded configurations by ID
	runs       map[string]*TFERun
	log        []string
	snapshots  string // the value of the header about intermediate states; "" for none
}

type tfeOrg struct {
	operations bool
	projects   map[string]string // names to IDs
}

// A TFEWorkspace is a workspace of the service.
type TFEWorkspace struct {
	ID, Org, Name, Project string
	Tags                   []string
	Version                string // the language version
	Mode                   string // the execution mode
	LockedBy, Reason       string // a user; "" for none
	AutoApply, Plain       bool   // Plain: logs are text
	VCS                    bool
	Dir                    string // the working directory
	Deny                   []string
	Vars                   []TFEVar

	states []*tfeVersion
}

// A TFEVar is a variable of a workspace.
type TFEVar struct {
	Key, Value, Category string
	HCL, Sensitive       bool
}

type tfeVersion struct {
	id, workspace string
	serial        int64
	lineage, md5  string
	data          []byte // nil until it is uploaded
	outputs       map[string]json.RawMessage
}

// NewTFE returns a service with the organization "acme" and the token "planted-token" that
// is not listening yet.
func NewTFE() *TFEServer {
	return &TFEServer{
		tokens: map[string]string{"planted-token": "alice", "planted-other": "bob"}, orgs: map[string]*tfeOrg{"acme": {operations: true, projects: map[string]string{"Default Project": "prj-default"}}},
		workspaces: map[string]*TFEWorkspace{}, versions: map[string]*tfeVersion{}, configs: map[string]*TFEConfig{}, runs: map[string]*TFERun{},
	}
}

// TFE starts a service as from NewTFE.
func TFE(t testing.TB) *TFEServer {
	s := NewTFE()
	server := httptest.NewUnstartedServer(s)
	server.TLS, s.pool, s.CA = authority(t)
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	s.Host = "localhost:" + port
	return s
}

// authority creates a certificate for localhost, and a file with its authority.
func authority(t testing.TB) (*tls.Config, *x509.CertPool, string) {
	t.Helper()
	good, _, _, pool, path := certificates(t)
	return good, pool, path
}

// certificates returns three certificates of one authority: a valid one, an expired one,
// and one for another host.
func certificates(t testing.TB) (good, expired, other *tls.Config, pool *x509.CertPool, path string) {
	t.Helper()
	make := func(cn string, parent *x509.Certificate, signer *ecdsa.PrivateKey, change func(*x509.Certificate)) (*x509.Certificate, []byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: cn}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: parent == nil,
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		change(c)
		if parent == nil {
			parent, signer = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return parsed, der, key
	}
	as := func(*x509.Certificate) {}
	ca, der, signer := make("test authority", nil, nil, as)
	signed := func(change func(*x509.Certificate)) *tls.Config {
		_, leaf, key := make("localhost", ca, signer, change)
		return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf}, PrivateKey: key}}}
	}
	path = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o666); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(ca)
	expired = signed(func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	})
	other = signed(func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = []string{"elsewhere.test"}, nil })
	return signed(as), expired, other, pool, path
}

// Certificate returns a certificate for localhost and 127.0.0.1, and the file of its
// authority.
func Certificate(t testing.TB) (c *tls.Config, authorities string) {
	t.Helper()
	c, _, authorities = authority(t)
	return c, authorities
}

// WrongCertificates returns a valid certificate like Certificate, and two more of the same
// authority that must be rejected.
func WrongCertificates(t testing.TB) (good, expired, other *tls.Config, pool *x509.CertPool, authorities string) {
	t.Helper()
	return certificates(t)
}

// Transport returns a transport that trusts the service's authority.
func (s *TFEServer) Transport(t testing.TB) *http.Transport {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.Proxy = nil
	tr.TLSClientConfig = &tls.Config{RootCAs: s.pool}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// Organization creates an organization, or changes whether it runs operations.
func (s *TFEServer) Organization(name string, operations bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orgs[name] = &tfeOrg{operations: operations, projects: map[string]string{"Default Project": "prj-default"}}
}

// Add creates a workspace of the organization "acme".
func (s *TFEServer) Add(w TFEWorkspace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(&w)
}

func (s *TFEServer) add(w *TFEWorkspace) *TFEWorkspace {
	w.ID = s.id("ws")
	if w.Org == "" {
		w.Org = "acme"
	}
	if w.Version == "" {
		w.Version = "1.12.6"
	}
	if w.Mode == "" {
		w.Mode = "remote"
	}
	if w.Project == "" {
		w.Project = "Default Project"
	}
	s.workspaces[w.ID] = w
	return w
}

func (s *TFEServer) id(kind string) string {
	s.n++
	return fmt.Sprintf("%s-%016d", kind, s.n)
}

func (s *TFEServer) find(org, name string) *TFEWorkspace {
	for _, w := range s.workspaces {
		if w.Org == org && w.Name == name {
			return w
		}
	}
	return nil
}

// Change changes a workspace of "acme".
func (s *TFEServer) Change(name string, change func(*TFEWorkspace)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.find("acme", name))
}

// Workspace returns a copy of a workspace; nil if there is none.
func (s *TFEServer) Workspace(name string) *TFEWorkspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.find("acme", name)
	if w == nil {
		return nil
	}
	c := *w
	return &c
}

// State returns the present state of a workspace; "" for none.
func (s *TFEServer) State(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.find("acme", name); w != nil {
		if v := w.current(); v != nil {
			return string(v.data)
		}
	}
	return ""
}

// Log returns the requests, one per line: method, path and query. Requests for states are
// omitted.
func (s *TFEServer) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Snapshots makes the service request intermediate states at an interval in seconds.
func (s *TFEServer) Snapshots(seconds string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots = seconds
}

func (w *TFEWorkspace) current() *tfeVersion {
	for i := len(w.states) - 1; i >= 0; i-- {
		if w.states[i].data != nil {
			return w.states[i]
		}
	}
	return nil
}

type object = map[string]any

func (s *TFEServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Before != nil && s.Before(w, r) {
		return
	}
	s.Answer(w, r)
}

// Answer handles a request without calling Before.
func (s *TFEServer) Answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line := r.Method + " " + r.URL.RequestURI()
	if len(body) > 0 && len(body) < 2000 && body[0] == '{' {
		line += " " + string(body)
	}
	s.log = append(s.log, line)
	q := &tfeRequest{TFEServer: s, w: w, r: r, body: body}
	if r.URL.Path == "/.well-known/terraform.json" {
		q.plain(object{"tfe.v2": "/api/v2/", "tfe.v2.1": "/api/v2/", "tfe.v2.2": "/api/v2/", "state.v2": "/api/v2/", "modules.v1": "/modules/v1/"})
		return
	}
	if path, ok := strings.CutPrefix(r.URL.Path, "/modules/"); ok {
		q.module(path)
		return
	}
	if path, ok := strings.CutPrefix(r.URL.Path, "/blob/"); ok {
		q.blob(strings.Split(path, "/"))
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v2/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("TFP-API-Version", "2.6")
	w.Header().Set("TFP-AppName", "Test")
	w.Header().Set("X-RateLimit-Limit", "100")
	if s.snapshots != "" {
		w.Header().Set("X-Terraform-Snapshot-Interval", s.snapshots)
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if q.user = s.tokens[token]; q.user == "" {
		q.fail(http.StatusUnauthorized, "unauthorized", "")
		return
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "ping":
		w.WriteHeader(http.StatusNoContent)
	case parts[0] == "account":
		q.data(object{"id": "user-" + q.user, "type": "users", "attributes": object{"username": q.user}})
	case parts[0] == "organizations" && len(parts) > 1:
		org := s.orgs[parts[1]]
		if org == nil {
			q.fail(http.StatusNotFound, "not found", "")
			return
		}
		q.organization(parts[1], org, parts[2:])
	case parts[0] == "workspaces" && len(parts) > 1:
		ws := s.workspaces[parts[1]]
		if ws == nil {
			q.fail(http.StatusNotFound, "not found", "")
			return
		}
		q.workspace(ws, parts[2:])
	case parts[0] == "state-versions" && len(parts) == 2 && s.versions[parts[1]] != nil:
		q.data(q.versionDoc(s.versions[parts[1]]))
	case parts[0] == "state-version-outputs" && len(parts) == 2:
		for _, v := range s.versions {
			for name := range v.outputs {
				if v.outputID(name) == parts[1] {
					q.data(v.outputDoc(name, true))
					return
				}
			}
		}
		q.fail(http.StatusNotFound, "not found", "")
	default:
		q.run(parts)
	}
}

// A tfeRequest is a request being handled.
type tfeRequest struct {
	*TFEServer
	w    http.ResponseWriter
	r    *http.Request
	body []byte
	user string
}

func (q *tfeRequest) plain(v any) {
	q.w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(q.w).Encode(v)
}

func (q *tfeRequest) send(status int, v any) {
	q.w.Header().Set("Content-Type", "application/vnd.api+json")
	q.w.WriteHeader(status)
	json.NewEncoder(q.w).Encode(v)
}

func (q *tfeRequest) data(v any)    { q.send(http.StatusOK, object{"data": v}) }
func (q *tfeRequest) created(v any) { q.send(http.StatusCreated, object{"data": v}) }

func (q *tfeRequest) fail(status int, title, detail string) {
	e := object{"status": strconv.Itoa(status), "title": title}
	if detail != "" {
		e["detail"] = detail
	}
	q.send(status, object{"errors": []any{e}})
}

// page sends one page of a list.
func (q *tfeRequest) page(all []any, included ...any) {
	size, _ := strconv.Atoi(q.r.URL.Query().Get("page[size]"))
	number, _ := strconv.Atoi(q.r.URL.Query().Get("page[number]"))
	if size < 1 || size > 100 {
		size = 20
	}
	number = max(number, 1)
	pages := max((len(all)+size-1)/size, 1)
	from := min((number-1)*size, len(all))
	var next any
	if number < pages {
		next = number + 1
	}
	part := append([]any{}, all[from:min(from+size, len(all))]...)
	doc := object{"data": part, "meta": object{"pagination": object{"current-page": number, "page-size": size, "next-page": next, "prev-page": nil, "total-pages": pages, "total-count": len(all)}}}
	if len(included) > 0 {
		doc["included"] = included
	}
	q.send(http.StatusOK, doc)
}

// sent is a received JSON:API document.
type sent struct {
	Data struct {
		ID            string
		Type          string
		Attributes    map[string]any
		Relationships map[string]struct {
			Data struct{ ID, Type string }
		}
	}
}

func (q *tfeRequest) sent() (doc sent, ok bool) {
	if err := json.Unmarshal(q.body, &doc); err != nil {
		q.fail(http.StatusBadRequest, "invalid document", err.Error())
		return doc, false
	}
	return doc, true
}

func (d sent) text(name string) string { s, _ := d.Data.Attributes[name].(string); return s }
func (d sent) bool(name string) bool   { b, _ := d.Data.Attributes[name].(bool); return b }
func (d sent) number(name string) int64 {
	f, _ := d.Data.Attributes[name].(float64)
	return int64(f)
}

func (q *tfeRequest) organization(name string, org *tfeOrg, parts []string) {
	if len(parts) == 0 {
		q.data(object{"id": name, "type": "organizations", "attributes": object{"name": name, "email": "a@example.com", "external-id": "org-1", "saml-enabled": false, "permissions": object{"can-create-workspace": true}}})
		return
	}
	switch q.r.Method + " " + parts[0] {
	case "GET entitlement-set":
		q.data(object{"id": "org-1", "type": "entitlement-sets", "attributes": object{"operations": org.operations, "state-storage": true, "cost-estimation": true, "policy-enforcement": true, "sentinel": true, "private-module-registry": true, "run-tasks": true, "teams": true, "vcs-integrations": true, "agents": true}})
	case "GET projects":
		var out []any
		for _, p := range slices.Sorted(keys(org.projects)) {
			if want := q.r.URL.Query().Get("filter[names]"); want == "" || want == p {
				out = append(out, object{"id": org.projects[p], "type": "projects", "attributes": object{"name": p}})
			}
		}
		q.page(out)
	case "POST projects":
		doc, ok := q.sent()
		if !ok {
			return
		}
		id := q.id("prj")
		org.projects[doc.text("name")] = id
		q.created(object{"id": id, "type": "projects", "attributes": object{"name": doc.text("name")}})
	case "GET workspaces":
		if len(parts) > 1 {
			if ws := q.find(name, parts[1]); ws != nil {
				q.show(ws)
				return
			}
			q.fail(http.StatusNotFound, "not found", "")
			return
		}
		q.list(name, org)
	case "POST workspaces":
		if len(parts) == 4 && parts[3] == "safe-delete" {
			q.remove(q.find(name, parts[1]), true)
			return
		}
		q.create(name, org)
	case "PATCH workspaces":
		if ws := q.find(name, parts[1]); ws != nil {
			q.update(ws)
			return
		}
		q.fail(http.StatusNotFound, "not found", "")
	case "DELETE workspaces":
		q.remove(q.find(name, parts[1]), false)
	case "GET runs": // the queue
		q.page(nil)
	case "GET capacity":
		q.data(object{"id": name, "type": "organization-capacity", "attributes": object{"pending": 0, "running": 0}})
	default:
		q.fail(http.StatusNotFound, "not found", "")
	}
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (q *tfeRequest) list(name string, org *tfeOrg) {
	v := q.r.URL.Query()
	var all []*TFEWorkspace
	for _, ws := range q.workspaces {
		match := ws.Org == name && strings.Contains(ws.Name, v.Get("search[name]"))
		for tag := range strings.SplitSeq(v.Get("search[tags]"), ",") {
			match = match && (tag == "" || slices.Contains(ws.Tags, tag))
		}
		if id := v.Get("filter[project][id]"); id != "" {
			match = match && org.projects[ws.Project] == id
		}
		if match {
			all = append(all, ws)
		}
	}
	slices.SortFunc(all, func(a, b *TFEWorkspace) int { return strings.Compare(a.ID, b.ID) })
	var out []any
	for _, ws := range all {
		out = append(out, q.workspaceDoc(ws))
	}
	q.page(out)
}

func (q *tfeRequest) create(name string, org *tfeOrg) {
	doc, ok := q.sent()
	if !ok {
		return
	}
	if doc.text("name") == "" || strings.ContainsAny(doc.text("name"), " ./") {
		q.fail(http.StatusUnprocessableEntity, "invalid attribute", "Name is not valid. It can only contain letters, numbers, dashes and underscores")
		return
	}
	if q.find(name, doc.text("name")) != nil {
		q.fail(http.StatusUnprocessableEntity, "invalid attribute", "Name has already been taken")
		return
	}
	ws := &TFEWorkspace{Org: name, Name: doc.text("name"), Version: "1.5.7", Mode: doc.text("execution-mode")}
	if v := doc.text("terraform-version"); v != "" {
		ws.Version = v
	}
	for p, id := range org.projects {
		if id == doc.Data.Relationships["project"].Data.ID {
			ws.Project = p
		}
	}
	var rel struct {
		Data struct {
			Relationships struct {
				Tags struct {
					Data []struct{ Attributes struct{ Name string } }
				}
			}
		}
	}
	json.Unmarshal(q.body, &rel)
	for _, tag := range rel.Data.Relationships.Tags.Data {
		ws.Tags = append(ws.Tags, tag.Attributes.Name)
	}
	q.created(q.workspaceDoc(q.add(ws)))
}

func (q *tfeRequest) remove(ws *TFEWorkspace, safe bool) {
	switch {
	case ws == nil:
		q.fail(http.StatusNotFound, "not found", "")
	case safe && ws.LockedBy != "":
		q.fail(http.StatusConflict, "conflict", "Workspace is currently locked. Workspace must be unlocked before it can be safely deleted.")
	case safe && ws.current() != nil && strings.Contains(string(ws.current().data), `"instances":[{`):
		q.fail(http.StatusConflict, "conflict", "Workspace cannot be safely deleted because it is still managing resources.")
	default:
		delete(q.workspaces, ws.ID)
		q.w.WriteHeader(http.StatusNoContent)
	}
}

func (q *tfeRequest) update(ws *TFEWorkspace) {
	doc, ok := q.sent()
	if !ok {
		return
	}
	if v := doc.text("terraform-version"); v != "" {
		ws.Version = v
	}
	if v := doc.text("execution-mode"); v != "" {
		ws.Mode = v
	}
	q.data(q.workspaceDoc(ws))
}

func (q *tfeRequest) workspaceDoc(ws *TFEWorkspace) object {
	may := object{}
	for _, p := range []string{"can-destroy", "can-force-unlock", "can-lock", "can-manage-run-tasks", "can-queue-apply", "can-queue-destroy", "can-queue-run", "can-read-settings", "can-unlock", "can-update", "can-update-variable", "can-force-delete"} {
		may[p] = !slices.Contains(ws.Deny, p)
	}
	attrs := object{
		"name": ws.Name, "locked": ws.LockedBy != "", "locked-reason": ws.Reason, "execution-mode": ws.Mode, "operations": ws.Mode != "local", "terraform-version": ws.Version,
		"auto-apply": ws.AutoApply, "structured-run-output-enabled": !ws.Plain, "tag-names": append([]string{}, ws.Tags...), "working-directory": ws.Dir, "permissions": may, "vcs-repo": nil,
		"created-at": "2026-01-02T03:04:05Z", "updated-at": "2026-01-02T03:04:05Z", "actions": object{"is-destroyable": true}, "resource-count": 0,
	}
	if ws.VCS {
		attrs["vcs-repo"] = object{"identifier": "acme/app", "branch": ""}
	}
	rel := object{
		"organization": object{"data": object{"id": ws.Org, "type": "organizations"}},
		"project":      object{"data": object{"id": q.orgs[ws.Org].projects[ws.Project], "type": "projects"}},
		"locked-by":    object{"data": nil},
		"current-run":  object{"data": nil},
	}
	if ws.LockedBy != "" {
		rel["locked-by"] = object{"data": object{"id": "user-" + ws.LockedBy, "type": "users"}, "links": object{"related": "/api/v2/users/user-" + ws.LockedBy}}
	}
	return object{"id": ws.ID, "type": "workspaces", "attributes": attrs, "relationships": rel}
}

// show sends a workspace with the requested related resources.
func (q *tfeRequest) show(ws *TFEWorkspace) {
	doc := object{"data": q.workspaceDoc(ws)}
	if strings.Contains(q.r.URL.Query().Get("include"), "locked_by") && ws.LockedBy != "" {
		doc["included"] = []any{object{"id": "user-" + ws.LockedBy, "type": "users", "attributes": object{"username": ws.LockedBy}}}
	}
	q.send(http.StatusOK, doc)
}

func (q *tfeRequest) workspace(ws *TFEWorkspace, parts []string) {
	switch q.r.Method + " " + strings.Join(parts, "/") {
	case "GET ":
		q.show(ws)
	case "PATCH ":
		q.update(ws)
	case "DELETE ":
		q.remove(ws, false)
	case "POST actions/safe-delete":
		q.remove(ws, true)
	case "POST actions/lock":
		if ws.LockedBy != "" {
			q.fail(http.StatusConflict, "conflict", "Unable to lock workspace. The workspace is already locked.")
			return
		}
		var doc struct {
			Reason string
			Data   struct{ Attributes struct{ Reason string } }
		}
		json.Unmarshal(q.body, &doc)
		ws.LockedBy, ws.Reason = q.user, doc.Reason+doc.Data.Attributes.Reason
		q.data(q.workspaceDoc(ws))
	case "POST actions/unlock", "POST actions/force-unlock":
		if ws.LockedBy == "" {
			q.fail(http.StatusConflict, "conflict", "Unable to unlock workspace. The workspace is already unlocked.")
			return
		}
		if parts[1] == "unlock" && ws.LockedBy != q.user {
			q.fail(http.StatusConflict, "conflict", "Unable to unlock workspace. The workspace is locked by "+ws.LockedBy+".")
			return
		}
		ws.LockedBy, ws.Reason = "", ""
		q.data(q.workspaceDoc(ws))
	case "POST relationships/tags":
		var doc struct {
			Data []struct{ Attributes struct{ Name string } }
		}
		json.Unmarshal(q.body, &doc)
		for _, tag := range doc.Data {
			if !slices.Contains(ws.Tags, tag.Attributes.Name) {
				ws.Tags = append(ws.Tags, tag.Attributes.Name)
			}
		}
		q.w.WriteHeader(http.StatusNoContent)
	case "GET vars":
		var out []any
		for i, v := range ws.Vars {
			value := any(v.Value)
			if v.Sensitive {
				value = nil
			}
			out = append(out, object{"id": fmt.Sprintf("var-%d", i), "type": "vars", "attributes": object{"key": v.Key, "value": value, "category": v.Category, "hcl": v.HCL, "sensitive": v.Sensitive}})
		}
		q.page(out)
	case "GET current-state-version":
		if v := ws.current(); v != nil {
			q.data(q.versionDoc(v))
			return
		}
		q.fail(http.StatusNotFound, "not found", "")
	case "GET current-state-version-outputs":
		v := ws.current()
		if v == nil {
			q.fail(http.StatusNotFound, "not found", "")
			return
		}
		var out []any
		for _, name := range slices.Sorted(keys(v.outputs)) {
			out = append(out, v.outputDoc(name, false))
		}
		q.page(out)
	case "POST state-versions":
		q.newState(ws)
	case "POST configuration-versions":
		q.newConfig(ws)
	case "GET runs":
		var out []any
		for _, id := range slices.Backward(slices.Sorted(keys(q.runs))) {
			if r := q.runs[id]; r.Workspace == ws.ID {
				out = append(out, q.runDoc(r))
			}
		}
		q.page(out)
	default:
		q.fail(http.StatusNotFound, "not found", "")
	}
}

func (v *tfeVersion) outputID(name string) string { return "wsout-" + v.id + "-" + name }

func (v *tfeVersion) outputDoc(name string, all bool) object {
	var o struct {
		Sensitive bool
		Type      any
		Value     any
	}
	json.Unmarshal(v.outputs[name], &o)
	value := o.Value
	if o.Sensitive && !all {
		value = nil
	}
	return object{"id": v.outputID(name), "type": "state-version-outputs", "attributes": object{"name": name, "sensitive": o.Sensitive, "type": "string", "detailed-type": o.Type, "value": value}}
}

func (q *tfeRequest) versionDoc(v *tfeVersion) object {
	base := "https://" + q.Host + "/blob/"
	attrs := object{"serial": v.serial, "created-at": "2026-01-02T03:04:05Z", "resources-processed": true, "status": "pending", "hosted-state-upload-url": base + "state/" + v.id, "hosted-json-state-upload-url": base + "json/" + v.id, "hosted-state-download-url": base + "state/" + v.id}
	if v.data != nil {
		attrs["status"] = "finalized"
	}
	return object{"id": v.id, "type": "state-versions", "attributes": attrs}
}

func (q *tfeRequest) newState(ws *TFEWorkspace) {
	doc, ok := q.sent()
	if !ok {
		return
	}
	if ws.LockedBy != q.user {
		q.fail(http.StatusConflict, "conflict", "The workspace must be locked by you to create a state version")
		return
	}
	v := &tfeVersion{id: q.id("sv"), workspace: ws.ID, serial: doc.number("serial"), lineage: doc.text("lineage"), md5: doc.text("md5")}
	if now := ws.current(); now != nil && !doc.bool("force") {
		switch {
		case now.lineage != "" && v.lineage != now.lineage:
			q.fail(http.StatusConflict, "conflict", "The lineage of the state does not match the existing one")
			return
		case v.serial < now.serial, v.serial == now.serial && v.md5 != now.md5:
			q.fail(http.StatusConflict, "conflict", "The serial of the state is not newer than the existing one")
			return
		}
	}
	if text := doc.text("json-state-outputs"); text != "" {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err == nil {
			err = json.Unmarshal(raw, &v.outputs)
		}
		if err != nil {
			q.fail(http.StatusUnprocessableEntity, "invalid attribute", "json-state-outputs: "+err.Error())
			return
		}
	}
	if text := doc.text("state"); text != "" {
		raw, err := base64.StdEncoding.DecodeString(text)
		if sum := md5.Sum(raw); err != nil || hex.EncodeToString(sum[:]) != v.md5 {
			q.fail(http.StatusUnprocessableEntity, "invalid attribute", "MD5 does not match")
			return
		}
		v.data = raw
	}
	q.versions[v.id] = v
	ws.states = append(ws.states, v)
	q.created(q.versionDoc(v))
}

// blob handles requests to secret addresses, which need no token.
func (q *tfeRequest) blob(parts []string) {
	switch {
	case parts[0] == "state" && len(parts) == 2:
		v := q.versions[parts[1]]
		switch {
		case v == nil || q.r.Method == "GET" && v.data == nil:
			http.NotFound(q.w, q.r)
		case q.r.Method == "GET":
			q.w.Write(v.data)
		default:
			if sum := md5.Sum(q.body); hex.EncodeToString(sum[:]) != v.md5 {
				http.Error(q.w, "wrong checksum", http.StatusBadRequest)
				return
			}
			v.data = q.body
		}
	case parts[0] == "json":
		q.w.WriteHeader(http.StatusOK)
	default:
		q.runBlob(parts)
	}
}
