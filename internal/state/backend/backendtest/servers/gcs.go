package servers

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A GCSServer is a stand-in for the JSON API of Google Cloud Storage with one bucket, for
// the service that returns tokens of impersonated accounts, for a metadata server, and for
// the key management service. Preconditions on generations are checked for every method.
type GCSServer struct {
	*Tunnel
	Bucket  string
	Token   string // required in requests
	Account string // may be impersonated, with the token Token+"-of-account"
	// Lifetime is the lifetime of tokens; 0 means an hour.
	Lifetime time.Duration

	mu      sync.Mutex
	last    int64
	objects map[string]gcsObject
	denied  bool
	made    map[string]map[string]any // created buckets, by name
}

type gcsObject struct {
	data       []byte
	generation int64
	key        string // the checksum of the customer's key; "" for none
	kms        string
}

// GCS starts a stand-in.
func GCS(t testing.TB) *GCSServer {
	s := NewGCS()
	s.Tunnel = NewTunnel(t, s, "storage.googleapis.com", "oauth2.googleapis.com", "sts.googleapis.com", "iamcredentials.googleapis.com", "cloudkms.googleapis.com")
	return s
}

// NewGCS returns a stand-in that is not listening yet.
func NewGCS() *GCSServer {
	return &GCSServer{Bucket: "states", Token: "planted-token", Account: "states@acme.iam.gserviceaccount.com", last: time.Now().UnixMicro(), objects: map[string]gcsObject{}}
}

func (s *GCSServer) lifetime() time.Duration {
	if s.Lifetime == 0 {
		return time.Hour
	}
	return s.Lifetime
}

// Rotate replaces the token that requests must contain.
func (s *GCSServer) Rotate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Token += "x"
}

// Objects returns the names of all objects, sorted.
func (s *GCSServer) Objects() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Object returns an object: its content, its generation, and its encryption keys.
func (s *GCSServer) Object(name string) (text string, generation int64, key, kms string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[name]
	return string(o.data), o.generation, o.key, o.kms
}

// Put replaces an object, as another program would. nil deletes it.
func (s *GCSServer) Put(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	if delete(s.objects, name); data != nil {
		s.objects[name] = gcsObject{data: data, generation: s.last}
	}
}

// Made returns the settings of a created bucket, or nil.
func (s *GCSServer) Made(name string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[name]
}

// Deny refuses all later requests.
func (s *GCSServer) Deny() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = true
}

func gcsFail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "message": message}})
}

func (s *GCSServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		gcsFail(w, http.StatusBadRequest, err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(r.Host, "oauth2.") {
		s.tokens(w, body)
		return
	}
	if strings.HasPrefix(r.Host, "sts.") {
		s.exchange(w, body)
		return
	}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case bearer != s.Token && bearer != s.Token+"-of-account":
		gcsFail(w, http.StatusUnauthorized, "Invalid Credentials")
		return
	case s.denied:
		gcsFail(w, http.StatusForbidden, "somebody does not have access")
		return
	}
	path := r.URL.EscapedPath()
	switch {
	case strings.HasPrefix(r.Host, "iamcredentials."):
		if path != "/v1/projects/-/serviceAccounts/"+s.Account+":generateAccessToken" {
			gcsFail(w, http.StatusForbidden, "Permission 'iam.serviceAccounts.getAccessToken' denied")
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"accessToken": s.Token + "-of-account", "expireTime": time.Now().Add(s.lifetime()).UTC().Format(time.RFC3339)})
	case strings.HasPrefix(r.Host, "cloudkms."):
		s.kms(w, path, body)
	case strings.HasPrefix(path, "/upload/storage/v1/b/"):
		s.upload(w, r, strings.TrimPrefix(path, "/upload/storage/v1/b/"), body)
	case path == "/storage/v1/b":
		s.make(w, r, body)
	case strings.HasPrefix(path, "/storage/v1/b/") && s.made[strings.TrimPrefix(path, "/storage/v1/b/")] != nil:
		made := s.made[strings.TrimPrefix(path, "/storage/v1/b/")]
		if r.Method == http.MethodPatch {
			_ = json.Unmarshal(body, &made)
		}
		_ = json.NewEncoder(w).Encode(made)
	case strings.HasPrefix(path, "/storage/v1/b/"):
		s.storage(w, r, strings.TrimPrefix(path, "/storage/v1/b/"))
	case strings.HasPrefix(r.URL.Path, "/"+s.Bucket+"/"): // the API with which OpenTofu and Terraform read
		s.object(w, r, strings.TrimPrefix(r.URL.Path, "/"+s.Bucket+"/"), true)
	default:
		gcsFail(w, http.StatusNotFound, "Not Found")
	}
}

// exchange returns a token for another one: the ID token "planted-subject", or a request to
// AWS that is signed with the key "AKIAPLANTED".
func (s *GCSServer) exchange(w http.ResponseWriter, body []byte) {
	form, _ := url.ParseQuery(string(body))
	subject := form.Get("subject_token")
	if aws, err := url.QueryUnescape(subject); err == nil && strings.Contains(aws, "Credential=AKIAPLANTED/") && strings.Contains(aws, "/eu-west-3/sts/") {
		subject = "planted-subject"
	}
	if subject != "planted-subject" || form.Get("audience") == "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"the subject token is not accepted"}`)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": s.Token, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer", "expires_in": int(s.lifetime().Seconds())})
}

// tokens returns tokens for a user's refresh token, and for a service account's assertion.
func (s *GCSServer) tokens(w http.ResponseWriter, body []byte) {
	q, err := url.ParseQuery(string(body))
	user := q.Get("grant_type") == "refresh_token" && q.Get("refresh_token") == "refresh-"+strings.TrimRight(s.Token, "x")
	account := q.Get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer" && strings.Count(q.Get("assertion"), ".") == 2
	w.Header().Set("Content-Type", "application/json")
	if err != nil || !user && !account {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": s.Token, "expires_in": int(s.lifetime().Seconds()), "token_type": "Bearer"})
}

// kms reverses texts, which is sufficient as encryption for tests.
func (s *GCSServer) kms(w http.ResponseWriter, path string, body []byte) {
	var in struct{ Plaintext, Ciphertext, AdditionalAuthenticatedData []byte }
	name, method, _ := strings.Cut(strings.TrimPrefix(path, "/v1/"), ":")
	if err := json.Unmarshal(body, &in); err != nil || !strings.HasPrefix(name, "projects/") {
		gcsFail(w, http.StatusBadRequest, "bad request")
		return
	}
	head := fmt.Appendf(nil, "%s\x00%s\x00", name, in.AdditionalAuthenticatedData)
	switch method {
	case "encrypt":
		slices.Reverse(in.Plaintext)
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "ciphertext": append(head, in.Plaintext...)})
	case "decrypt":
		rest, ok := strings.CutPrefix(string(in.Ciphertext), string(head))
		if !ok {
			gcsFail(w, http.StatusBadRequest, "Decryption failed: verify that 'name' refers to the correct CryptoKey.")
			return
		}
		plain := []byte(rest)
		slices.Reverse(plain)
		_ = json.NewEncoder(w).Encode(map[string]any{"plaintext": plain})
	default:
		gcsFail(w, http.StatusNotFound, "Not Found")
	}
}

// matches checks the precondition of a request.
func (s *GCSServer) matches(w http.ResponseWriter, r *http.Request, have int64) bool {
	want := r.URL.Query().Get("ifGenerationMatch")
	if want == "" {
		return true
	}
	if n, err := strconv.ParseInt(want, 10, 64); err != nil || n != have {
		gcsFail(w, http.StatusPreconditionFailed, "At least one of the pre-conditions you specified did not hold.")
		return false
	}
	return true
}

func (s *GCSServer) upload(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	if path != s.Bucket+"/o" {
		gcsFail(w, http.StatusNotFound, "The specified bucket does not exist.")
		return
	}
	name := r.URL.Query().Get("name")
	if r.URL.Query().Get("uploadType") == "multipart" { // sent by OpenTofu and Terraform
		var err error
		if name, body, err = parts(r.Header.Get("Content-Type"), body); err != nil {
			gcsFail(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	if !s.matches(w, r, s.objects[name].generation) {
		return
	}
	o := gcsObject{data: body, kms: r.URL.Query().Get("kmsKeyName")}
	if key := r.Header.Get("X-Goog-Encryption-Key"); key != "" {
		raw, err := base64.StdEncoding.DecodeString(key)
		sum := sha256.Sum256(raw)
		o.key = base64.StdEncoding.EncodeToString(sum[:])
		if err != nil || len(raw) != 32 || r.Header.Get("X-Goog-Encryption-Algorithm") != "AES256" || r.Header.Get("X-Goog-Encryption-Key-Sha256") != o.key {
			gcsFail(w, http.StatusBadRequest, "Missing or wrong encryption headers")
			return
		}
	}
	s.last++
	o.generation = s.last
	s.objects[name] = o
	_ = json.NewEncoder(w).Encode(map[string]string{"name": name, "bucket": s.Bucket, "generation": fmt.Sprint(o.generation)})
}

// parts splits an upload that begins with the metadata.
func parts(contentType string, body []byte) (name string, data []byte, err error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", nil, err
	}
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	head, err := r.NextPart()
	if err != nil {
		return "", nil, err
	}
	var meta struct{ Name string }
	if err := json.NewDecoder(head).Decode(&meta); err != nil {
		return "", nil, err
	}
	content, err := r.NextPart()
	if err != nil {
		return "", nil, err
	}
	data, err = io.ReadAll(content)
	return meta.Name, data, err
}

// make creates a bucket.
func (s *GCSServer) make(w http.ResponseWriter, r *http.Request, body []byte) {
	in := map[string]any{"project": r.URL.Query().Get("project")}
	if err := json.Unmarshal(body, &in); err != nil || r.Method != http.MethodPost {
		gcsFail(w, http.StatusBadRequest, "bad request")
		return
	}
	name := fmt.Sprint(in["name"])
	if name == s.Bucket || s.made[name] != nil {
		gcsFail(w, http.StatusConflict, "The requested bucket name is not available.")
		return
	}
	if s.made == nil {
		s.made = map[string]map[string]any{}
	}
	s.made[name] = in
	_ = json.NewEncoder(w).Encode(in)
}

func (s *GCSServer) storage(w http.ResponseWriter, r *http.Request, path string) {
	bucket, rest, _ := strings.Cut(path, "/")
	if bucket != s.Bucket {
		gcsFail(w, http.StatusNotFound, "The specified bucket does not exist.")
		return
	}
	if rest == "" {
		_ = json.NewEncoder(w).Encode(map[string]any{"versioning": map[string]bool{"enabled": true}, "iamConfiguration": map[string]string{"publicAccessPrevention": "inherited"}})
		return
	}
	if rest == "o" {
		s.list(w, r)
		return
	}
	s.object(w, r, strings.TrimPrefix(r.URL.Path, "/storage/v1/b/"+s.Bucket+"/o/"), false)
}

// object handles a request about an object, in the JSON API or the older XML API.
func (s *GCSServer) object(w http.ResponseWriter, r *http.Request, name string, xml bool) {
	o, ok := s.objects[name]
	if !ok {
		gcsFail(w, http.StatusNotFound, "No such object: "+s.Bucket+"/"+name)
		return
	}
	switch {
	case !s.matches(w, r, o.generation):
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case o.key != r.Header.Get("X-Goog-Encryption-Key-Sha256"):
		gcsFail(w, http.StatusBadRequest, "The target object is encrypted by a customer-supplied encryption key.")
	case r.URL.Query().Get("alt") != "media" && !xml:
		sum := md5.Sum(o.data)
		_ = json.NewEncoder(w).Encode(map[string]string{"name": name, "bucket": s.Bucket, "generation": fmt.Sprint(o.generation), "md5Hash": base64.StdEncoding.EncodeToString(sum[:]), "size": fmt.Sprint(len(o.data))})
	default:
		sum := md5.Sum(o.data)
		w.Header().Set("X-Goog-Generation", fmt.Sprint(o.generation))
		w.Header().Set("X-Goog-Hash", "md5="+base64.StdEncoding.EncodeToString(sum[:]))
		_, _ = w.Write(o.data)
	}
}

func (s *GCSServer) list(w http.ResponseWriter, r *http.Request) {
	const most = 3 // forces several pages
	q := r.URL.Query()
	var items []map[string]string
	next := ""
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		rest, ok := strings.CutPrefix(name, q.Get("prefix"))
		if !ok || name <= q.Get("pageToken") || q.Get("delimiter") != "" && strings.Contains(rest, q.Get("delimiter")) {
			continue
		}
		if len(items) == most {
			next = items[most-1]["name"]
			break
		}
		items = append(items, map[string]string{"name": name})
	}
	out := map[string]any{"items": items}
	if next != "" {
		out["nextPageToken"] = next
	}
	_ = json.NewEncoder(w).Encode(out)
}
