package servers

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A BlobServer is a stand-in for the blobs of one account of Azure Storage, based on the
// documented API: containers, block blobs with metadata, ETags and checksums, conditions,
// infinite leases, snapshots, and the signature of the account's key.
// https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api
type BlobServer struct {
	Account, Key string
	Token        string // a bearer token that is accepted instead of the signature; "" for none
	Versioning   bool   // every write creates a version, and the response contains it

	mu         sync.Mutex
	last       int
	containers map[string]map[string]*blob
	denied     map[string]bool
}

type blob struct {
	data   []byte
	etag   string
	md5    string
	header http.Header // metadata and type
	lease  string
}

// NewBlobs returns a stand-in with containers that is not listening yet.
func NewBlobs(containers ...string) *BlobServer {
	s := &BlobServer{Account: "acmestates", Key: base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 64))), containers: map[string]map[string]*blob{}, denied: map[string]bool{}}
	for _, name := range containers {
		s.containers[name] = map[string]*blob{}
	}
	return s
}

// Deny refuses later requests with a method.
func (s *BlobServer) Deny(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied[method] = true
}

func blobFail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>no</Message></Error>`, code)
}

// signed reports whether a request is signed with the account's key.
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
func (s *BlobServer) signed(r *http.Request) bool {
	length := fmt.Sprint(r.ContentLength)
	if r.ContentLength <= 0 {
		length = ""
	}
	text := r.Method + "\n"
	for _, name := range []string{"Content-Encoding", "Content-Language", "length", "Content-MD5", "Content-Type", "date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"} {
		switch name {
		case "length":
			text += length + "\n"
		case "date": // x-ms-date replaces it
			text += "\n"
		default:
			text += r.Header.Get(name) + "\n"
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(r.Header), func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }) {
		if low := strings.ToLower(name); strings.HasPrefix(low, "x-ms-") {
			text += low + ":" + strings.Join(r.Header[name], ",") + "\n"
		}
	}
	text += "/" + s.Account + r.URL.EscapedPath()
	q := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		text += "\n" + strings.ToLower(name) + ":" + strings.Join(q[name], ",")
	}
	key, _ := base64.StdEncoding.DecodeString(s.Key)
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return r.Header.Get("Authorization") == "SharedKey "+s.Account+":"+base64.StdEncoding.EncodeToString(m.Sum(nil))
}

func (s *BlobServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		blobFail(w, http.StatusBadRequest, "InvalidInput")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch auth := r.Header.Get("Authorization"); {
	case s.Token != "" && auth == "Bearer "+s.Token, auth == "" && r.URL.Query().Get("sig") != "":
	case !s.signed(r):
		blobFail(w, http.StatusForbidden, "AuthenticationFailed")
		return
	}
	if s.denied[r.Method] {
		blobFail(w, http.StatusForbidden, "AuthorizationPermissionMismatch")
		return
	}
	container, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	blobs := s.containers[container]
	switch {
	case name == "" && q.Get("restype") == "container" && r.Method == "PUT":
		if blobs != nil {
			blobFail(w, http.StatusConflict, "ContainerAlreadyExists")
			return
		}
		s.containers[container] = map[string]*blob{}
		w.WriteHeader(http.StatusCreated)
	case blobs == nil:
		blobFail(w, http.StatusNotFound, "ContainerNotFound")
	case name == "" && q.Get("restype") == "container" && q.Get("comp") == "" && r.Method == "GET": // its properties
		w.WriteHeader(http.StatusOK)
	case name == "" && q.Get("comp") == "list":
		s.list(w, blobs, q.Get("prefix"))
	case name == "":
		blobFail(w, http.StatusBadRequest, "InvalidUri")
	default:
		s.one(w, r, blobs, name, q.Get("comp"), body)
	}
}

func (s *BlobServer) list(w http.ResponseWriter, blobs map[string]*blob, prefix string) {
	w.Header().Set("Content-Type", "application/xml")
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(blobs)) {
		if strings.HasPrefix(name, prefix) {
			text.WriteString("<Blob><Name>")
			_ = xml.EscapeText(&text, []byte(name)) // writing to a strings.Builder cannot fail
			text.WriteString("</Name></Blob>")
		}
	}
	fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>%s</Blobs><NextMarker /></EnumerationResults>`, text.String())
}

func (s *BlobServer) stamp(b *blob) {
	s.last++
	b.etag = fmt.Sprintf("\"0x%X\"", 1<<40+int64(s.last))
}

func (b *blob) show(h http.Header) {
	maps.Copy(h, b.header)
	h.Set("Etag", b.etag)
	h.Set("Content-Md5", b.md5)
	h.Set("Content-Length", fmt.Sprint(len(b.data)))
	h.Set("X-Ms-Blob-Type", "BlockBlob")
	h.Set("X-Ms-Lease-Status", "unlocked")
	h.Set("X-Ms-Lease-State", "available")
	if b.lease != "" {
		h.Set("X-Ms-Lease-Status", "locked")
		h.Set("X-Ms-Lease-State", "leased")
		h.Set("X-Ms-Lease-Duration", "infinite")
	}
}

// metadata returns the metadata and the type in a request.
func metadata(r *http.Request) http.Header {
	out := http.Header{}
	for name, v := range r.Header {
		if strings.HasPrefix(name, "X-Ms-Meta-") || name == "Content-Type" {
			out[name] = v
		}
	}
	return out
}

// may checks the lease of a request that changes a blob. If it is wrong, may sends the
// response and returns false.
func (b *blob) may(w http.ResponseWriter, r *http.Request) bool {
	switch id := r.Header.Get("X-Ms-Lease-Id"); {
	case b.lease == "" && id != "":
		blobFail(w, http.StatusPreconditionFailed, "LeaseLost")
	case b.lease != "" && id == "":
		blobFail(w, http.StatusPreconditionFailed, "LeaseIdMissing")
	case !strings.EqualFold(b.lease, id):
		blobFail(w, http.StatusPreconditionFailed, "LeaseIdMismatchWithBlobOperation")
	default:
		return true
	}
	return false
}

func (s *BlobServer) one(w http.ResponseWriter, r *http.Request, blobs map[string]*blob, name, comp string, body []byte) {
	b := blobs[name]
	if b == nil && (r.Method != "PUT" || comp != "") {
		if r.Header.Get("If-Match") != "" {
			blobFail(w, http.StatusPreconditionFailed, "ConditionNotMet")
			return
		}
		blobFail(w, http.StatusNotFound, "BlobNotFound")
		return
	}
	if match := r.Header.Get("If-Match"); match != "" && match != "*" && (b == nil || b.etag != match) {
		blobFail(w, http.StatusPreconditionFailed, "ConditionNotMet")
		return
	}
	switch {
	case r.Method == "GET" || r.Method == "HEAD":
		b.show(w.Header())
		w.WriteHeader(http.StatusOK)
		if r.Method == "GET" {
			w.Write(b.data)
		}
	case r.Method == "DELETE":
		if b.may(w, r) {
			delete(blobs, name)
			w.WriteHeader(http.StatusAccepted)
		}
	case comp == "lease":
		s.lease(w, r, b)
	case comp == "metadata":
		if b.may(w, r) {
			kind := b.header["Content-Type"]
			b.header = metadata(r)
			b.header["Content-Type"] = kind
			s.stamp(b)
			w.WriteHeader(http.StatusOK)
		}
	case comp == "snapshot":
		w.Header().Set("X-Ms-Snapshot", time.Now().UTC().Format(time.RFC3339Nano))
		w.WriteHeader(http.StatusCreated)
	case comp != "":
		blobFail(w, http.StatusBadRequest, "InvalidQueryParameterValue")
	case r.Header.Get("If-None-Match") == "*" && b != nil:
		blobFail(w, http.StatusConflict, "BlobAlreadyExists")
	case b == nil && r.Header.Get("X-Ms-Lease-Id") != "":
		blobFail(w, http.StatusPreconditionFailed, "LeaseNotPresentWithBlobOperation")
	case b != nil && !b.may(w, r):
	default:
		sum := md5.Sum(body)
		n := &blob{data: body, md5: base64.StdEncoding.EncodeToString(sum[:]), header: metadata(r)}
		if b != nil {
			n.lease = b.lease
		}
		s.stamp(n)
		blobs[name] = n
		w.Header().Set("Etag", n.etag)
		if s.Versioning {
			w.Header().Set("X-Ms-Version-Id", fmt.Sprintf("2026-11-22T14:16:41.%07dZ", s.last))
		}
		w.WriteHeader(http.StatusCreated)
	}
}

func (s *BlobServer) lease(w http.ResponseWriter, r *http.Request, b *blob) {
	id := r.Header.Get("X-Ms-Lease-Id")
	switch r.Header.Get("X-Ms-Lease-Action") {
	case "acquire":
		proposed := r.Header.Get("X-Ms-Proposed-Lease-Id")
		if b.lease != "" && !strings.EqualFold(b.lease, proposed) {
			blobFail(w, http.StatusConflict, "LeaseAlreadyPresent")
			return
		}
		b.lease = proposed
		w.Header().Set("X-Ms-Lease-Id", proposed)
		w.WriteHeader(http.StatusCreated)
	case "release":
		if b.lease == "" || !strings.EqualFold(b.lease, id) {
			blobFail(w, http.StatusConflict, "LeaseIdMismatchWithLeaseOperation")
			return
		}
		b.lease = ""
		w.WriteHeader(http.StatusOK)
	case "break": // immediately, whatever the period
		if b.lease == "" {
			blobFail(w, http.StatusConflict, "LeaseNotPresentWithLeaseOperation")
			return
		}
		b.lease = ""
		w.WriteHeader(http.StatusAccepted)
	default:
		blobFail(w, http.StatusBadRequest, "InvalidHeaderValue")
	}
}
