package servers

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A KubernetesServer is a stand-in for the API server of Kubernetes. It serves Secrets and Leases
// in one namespace, "default". It sets resourceVersion and uid, rejects stale writes, and
// implements label selectors, pages and the maximum size of Secrets.
type KubernetesServer struct {
	URL string
	CA  string // PEM

	mu      sync.Mutex
	token   string
	version int
	objects map[string]map[string]any // by path
	log     []string
}

// Kubernetes starts a stand-in. Requests must contain the token, unless it is "".
func Kubernetes(t testing.TB, token string) *KubernetesServer {
	s := NewKubernetes(token)
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	s.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return s
}

// NewKubernetes returns a stand-in that is not listening yet.
func NewKubernetes(token string) *KubernetesServer {
	return &KubernetesServer{token: token, version: 100, objects: map[string]map[string]any{}}
}

// SetToken changes the token that requests must contain.
func (s *KubernetesServer) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Object returns an object as JSON; "" if it does not exist. The path is that of the API.
func (s *KubernetesServer) Object(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[path]
	if o == nil {
		return ""
	}
	b, _ := json.Marshal(o)
	return string(b)
}

// Paths returns the paths of all objects, sorted.
func (s *KubernetesServer) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Edit changes an object, as another program would.
func (s *KubernetesServer) Edit(path string, edit func(object map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[path]; o != nil {
		edit(o)
		s.stamp(o)
	}
}

func (s *KubernetesServer) stamp(o map[string]any) {
	s.version++
	o["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
}

func refuse(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "message": message, "reason": reason, "code": status})
}

func (s *KubernetesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, r.Method+" "+r.URL.RequestURI())
	if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
		refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		return
	}
	var resource, name string
	for prefix, kind := range map[string]string{"/api/v1/namespaces/default/secrets": "secrets", "/apis/coordination.k8s.io/v1/namespaces/default/leases": "leases"} {
		if rest, ok := strings.CutPrefix(r.URL.Path, prefix); ok && (rest == "" || rest[0] == '/') {
			resource, name = kind, strings.TrimPrefix(rest, "/")
		}
	}
	switch {
	case r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		w.WriteHeader(http.StatusCreated)
		w.Write([]byte(`{"kind":"SelfSubjectAccessReview","status":{"allowed":true}}`))
	case r.URL.Path == "/api/v1/namespaces/default" && r.Method == "GET":
		w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default"}}`))
	case path.Dir(r.URL.Path) == "/api/v1/namespaces":
		refuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("namespaces %q not found", path.Base(r.URL.Path)))
	case resource == "":
		refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case name == "" && r.Method == "GET":
		s.list(w, r, resource)
	case name == "" && r.Method == "POST":
		s.create(w, r, resource, body)
	case name != "" && (r.Method == "GET" || r.Method == "PUT" || r.Method == "DELETE"):
		s.one(w, r, resource, name, body)
	default:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "the server does not allow this method on the requested resource")
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func labelsOf(o map[string]any) map[string]any {
	l, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
	return l
}

func (s *KubernetesServer) list(w http.ResponseWriter, r *http.Request, resource string) {
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	from := q.Get("continue")
	partial := strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList")
	items := []any{}
	metadata := map[string]any{"resourceVersion": strconv.Itoa(s.version)}
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(path, r.URL.Path+"/") || path <= from {
			continue
		}
		o, fits := s.objects[path], true
		for one := range strings.SplitSeq(q.Get("labelSelector"), ",") {
			if k, v, ok := strings.Cut(one, "="); ok {
				have, _ := labelsOf(o)[k].(string)
				fits = fits && have == strings.TrimPrefix(v, "=")
			}
		}
		if !fits {
			continue
		}
		if limit > 0 && len(items) == limit {
			metadata["continue"] = from
			break
		}
		from = path
		if partial {
			o = map[string]any{"metadata": o["metadata"]}
		}
		items = append(items, o)
	}
	kind := map[string]string{"secrets": "SecretList", "leases": "LeaseList"}[resource]
	version := map[string]string{"secrets": "v1", "leases": "coordination.k8s.io/v1"}[resource]
	if partial {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	answer(w, http.StatusOK, map[string]any{"kind": kind, "apiVersion": version, "metadata": metadata, "items": items})
}

// valid checks and completes an object in a request. If it is invalid, valid sends the
// response and returns nil.
func (s *KubernetesServer) valid(w http.ResponseWriter, r *http.Request, resource string, body []byte) map[string]any {
	var o map[string]any
	var err error
	switch ct := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(ct, "application/json"):
		err = json.Unmarshal(body, &o)
	case ct == "application/vnd.kubernetes.protobuf" && resource == "leases":
		o, err = leaseOfProtobuf(body)
	default:
		refuse(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType", "the body of the request was in an unknown format: "+ct)
		return nil
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return nil
	}
	if _, ok := o["metadata"].(map[string]any); !ok {
		refuse(w, http.StatusUnprocessableEntity, "Invalid", "metadata is missing")
		return nil
	}
	o["kind"] = map[string]string{"secrets": "Secret", "leases": "Lease"}[resource]
	o["apiVersion"] = map[string]string{"secrets": "v1", "leases": "coordination.k8s.io/v1"}[resource]
	if resource == "secrets" {
		size := 0
		data, _ := o["data"].(map[string]any)
		for _, v := range data {
			text, _ := v.(string)
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				refuse(w, http.StatusBadRequest, "BadRequest", "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data")
				return nil
			}
			size += len(b)
		}
		if size > 1<<20 {
			refuse(w, http.StatusUnprocessableEntity, "Invalid", "Secret is invalid: data: Too long: may not be more than 1048576 bytes")
			return nil
		}
	}
	return o
}

func (s *KubernetesServer) create(w http.ResponseWriter, r *http.Request, resource string, body []byte) {
	o := s.valid(w, r, resource, body)
	if o == nil {
		return
	}
	m := o["metadata"].(map[string]any)
	name, _ := m["name"].(string)
	path := r.URL.Path + "/" + name
	switch {
	case name == "" || strings.ToLower(name) != name || strings.ContainsAny(name, "_/ "):
		refuse(w, http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("metadata.name: Invalid value: %q", name))
	case m["resourceVersion"] != nil && m["resourceVersion"] != "":
		refuse(w, http.StatusBadRequest, "BadRequest", "resourceVersion should not be set on objects to be created")
	case s.objects[path] != nil:
		refuse(w, http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", resource, name))
	default:
		m["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version)
		m["namespace"] = "default"
		m["creationTimestamp"] = "2026-11-22T14:16:41Z"
		s.stamp(o)
		s.objects[path] = o
		answer(w, http.StatusCreated, o)
	}
}

func (s *KubernetesServer) one(w http.ResponseWriter, r *http.Request, resource, name string, body []byte) {
	o := s.objects[r.URL.Path]
	if o == nil {
		refuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", resource, name))
		return
	}
	m := o["metadata"].(map[string]any)
	switch r.Method {
	case "GET":
		answer(w, http.StatusOK, o)
	case "PUT":
		next := s.valid(w, r, resource, body)
		if next == nil {
			return
		}
		n := next["metadata"].(map[string]any)
		if v, _ := n["resourceVersion"].(string); v != "" && v != m["resourceVersion"] {
			refuse(w, http.StatusConflict, "Conflict", fmt.Sprintf("Operation cannot be fulfilled on %s %q: the object has been modified; please apply your changes to the latest version and try again", resource, name))
			return
		}
		n["uid"], n["creationTimestamp"], n["namespace"] = m["uid"], m["creationTimestamp"], "default"
		s.stamp(next)
		s.objects[r.URL.Path] = next
		answer(w, http.StatusOK, next)
	case "DELETE":
		var options struct {
			Preconditions struct{ UID, ResourceVersion string }
		}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") && len(body) > 0 && json.Unmarshal(body, &options) != nil {
			refuse(w, http.StatusBadRequest, "BadRequest", "the body is not DeleteOptions")
			return
		}
		if p := options.Preconditions; p.UID != "" && p.UID != m["uid"] || p.ResourceVersion != "" && p.ResourceVersion != m["resourceVersion"] {
			refuse(w, http.StatusConflict, "Conflict", fmt.Sprintf("Operation cannot be fulfilled on %s %q: Precondition failed", resource, name))
			return
		}
		delete(s.objects, r.URL.Path)
		answer(w, http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	}
}
