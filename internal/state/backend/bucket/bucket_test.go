package bucket

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
)

// vendor signs with the ID of the credentials, and stores checksums in the header X-Sum.
type vendor struct{}

func (vendor) Credentials(context.Context) (Credentials, error) {
	return Credentials{ID: "me", Token: "token"}, nil
}

func (vendor) Sign(r *http.Request, c Credentials) { r.Header.Set("Authorization", "by "+c.ID) }

func (vendor) Checksum(sum [md5.Size]byte) (header, value string) {
	return "X-Sum", hex.EncodeToString(sum[:])
}

func (vendor) Verify(key string, h http.Header, sum string) error {
	if h.Get("X-Sum") != sum {
		return errors.New(key + " is damaged")
	}
	return nil
}

// service is a bucket "b" in memory, which lists two objects per page.
type service struct {
	mu      sync.Mutex
	objects map[string]string
	headers map[string]http.Header // of the last request to each object
	refuse  func(w http.ResponseWriter) bool
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/b/")
	s.headers[r.Method+" "+key] = r.Header
	q := r.URL.Query()
	switch {
	case r.Header.Get("Authorization") != "by me" || r.Header.Get("X-Test-Security-Token") != "token":
		w.WriteHeader(http.StatusForbidden)
	case s.refuse != nil && s.refuse(w):
	case key == "":
		type content struct{ Key string }
		var page struct {
			XMLName     xml.Name `xml:"ListBucketResult"`
			Contents    []content
			IsTruncated bool
			NextMarker  string
		}
		var keys []string
		for k := range s.objects {
			if strings.HasPrefix(k, q.Get("prefix")) && k > q.Get("marker") {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for i, k := range keys {
			if i == 2 {
				page.IsTruncated, page.NextMarker = true, keys[1]
				break
			}
			page.Contents = append(page.Contents, content{k})
		}
		_ = xml.NewEncoder(w).Encode(page)
	case r.Method == "PUT":
		text, _ := io.ReadAll(r.Body)
		s.objects[key] = string(text)
	case r.Method == "DELETE":
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		text, ok := s.objects[key]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		sum := md5.Sum([]byte(text))
		w.Header().Set("X-Sum", hex.EncodeToString(sum[:]))
		if text == "damaged" {
			w.Header().Set("X-Sum", "other")
		}
		_, _ = io.WriteString(w, text)
	}
}

func connected(t *testing.T, names ...string) (*Client, *service) {
	t.Helper()
	s := &service{objects: map[string]string{}, headers: map[string]http.Header{}}
	for _, name := range names {
		s.objects[name] = "text of " + name
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := &Client{
		Service: Service{Name: "TEST", Prefix: "test", ACLHeader: "X-Test-Acl", ListPermission: "List", Permissions: "test:List and test:GetObject", HostArgument: "endpoint", BucketAdvice: "Make it.", KeyArgument: "key_id", KeyAdvice: "Check the key."},
		Vendor:  vendor{}, Bucket: "b", Address: server.URL + "/b", Layout: Layout{Prefix: "team", Key: "tf.tfstate"},
	}
	c.Connect(backend.Services{
		Transport: &http.Transport{}, Now: time.Now,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}, time.Minute)
	return c, s
}

// Workspaces are found on every page of the listing.
func TestWorkspaces(t *testing.T) {
	c, _ := connected(t, "team/tf.tfstate", "team/a/tf.tfstate", "team/a/tf.tfstate.beside/x", "team/b/other", "team/c/d/tf.tfstate", "team/z/tf.tfstate", "teams/y/tf.tfstate")
	got, err := c.Workspaces(t.Context())
	if err != nil || !slices.Equal(got, []string{"default", "a", "z"}) {
		t.Errorf("%v, %v", got, err)
	}
	for workspace, want := range map[string]string{"default": "team/tf.tfstate", "a": "team/a/tf.tfstate"} {
		if got := c.Layout.File(workspace); got != want {
			t.Errorf("the state of %s is %s", workspace, got)
		}
	}
}

// A missing object is not an error. A missing checksum is.
func TestRead(t *testing.T) {
	c, s := connected(t, "a")
	s.objects["x"], s.objects["empty"] = "damaged", ""
	if got, err := c.Read(t.Context(), "a"); err != nil || string(got) != "text of a" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := c.Read(t.Context(), "none"); err != nil || got != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := c.Read(t.Context(), "empty"); err != nil || got == nil {
		t.Errorf("an empty object: %q, %v", got, err)
	}
	if _, err := c.Read(t.Context(), "x"); err == nil || err.Error() != "x is damaged" {
		t.Errorf("%v", err)
	}
}

// A new object has its checksum, and the encryption and ACL of the client.
func TestWrite(t *testing.T) {
	c, s := connected(t)
	write := func(key string) http.Header {
		t.Helper()
		if err := c.Write(t.Context(), key, backend.Bytes([]byte("text")), "Failed"); err != nil {
			t.Fatal(err)
		}
		return s.headers["PUT "+key]
	}
	h := write("plain")
	sum := md5.Sum([]byte("text"))
	if h.Get("X-Sum") != hex.EncodeToString(sum[:]) || h.Get("X-Test-Acl") != "" || h.Get("X-Test-Server-Side-Encryption") != "" {
		t.Errorf("%v", h)
	}
	c.ACL, c.Encrypt = "private", true
	if h = write("closed"); h.Get("X-Test-Acl") != "private" || h.Get("X-Test-Server-Side-Encryption") != "AES256" {
		t.Errorf("%v", h)
	}
}

// A conditional write is sent once, because a second attempt could fail after the first
// succeeded.
func TestConditionIsSentOnce(t *testing.T) {
	c, s := connected(t)
	n := 0
	s.refuse = func(w http.ResponseWriter) bool {
		n++
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	for want, more := range map[int]http.Header{1: {"X-Test-Fresh": {"true"}}, 5: nil} {
		n = 0
		if resp, err := c.Put(t.Context(), "a", backend.Bytes([]byte("text")), more); err != nil || resp.Status != http.StatusInternalServerError || n != want {
			t.Errorf("%d requests with %v, want %d; %v", n, more, want, err)
		}
	}
}

// Messages about error responses name the affected argument.
func TestRefused(t *testing.T) {
	answer := func(code, more string) string {
		return "<Error><Code>" + code + "</Code><Message>use the endpoint below</Message>" + more + "</Error>"
	}
	for _, tt := range []struct {
		status                       int
		body                         string
		argument, advice, permission string
	}{
		{404, answer("NoSuchBucket", ""), "bucket", "Make it.", ""},
		{403, answer("InvalidAccessKeyId", ""), "key_id", "Check the key.", ""},
		{403, answer("RequestTimeTooSkewed", ""), "bucket", "clock", ""},
		{403, answer("AccessDenied", "<Endpoint>elsewhere.example.com</Endpoint>"), "endpoint", "elsewhere.example.com", ""},
		{403, answer("AccessDenied", ""), "bucket", "test:GetObject; for all of this backend: test:List and test:GetObject", "test:GetObject"},
	} {
		c, s := connected(t)
		s.refuse = func(w http.ResponseWriter) bool {
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
			return true
		}
		_, err := c.Read(t.Context(), "a")
		var e *backend.Error
		if !errors.As(err, &e) || e.Argument != tt.argument || !strings.Contains(e.Advice, tt.advice) || e.Permission != tt.permission {
			t.Errorf("%d %s: %+v", tt.status, tt.body, e)
		}
	}
}

// Objects next to a state are stored and deleted under their own names.
func TestBlobs(t *testing.T) {
	c, s := connected(t, "s.beside2/x")
	o := Object{Client: c, File: "s"}
	for _, name := range []string{"a/1", "a/2", "b"} {
		if err := o.PutBlob(t.Context(), name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := o.ListBlobs(t.Context(), "a/"); err != nil || !slices.Equal(got, []string{"a/1", "a/2"}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := o.GetBlob(t.Context(), "b"); err != nil || string(got) != "b" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := o.GetBlob(t.Context(), "c"); !errors.Is(err, backend.ErrNoBlob) {
		t.Errorf("%v", err)
	}
	if err := backend.DeleteBlobs(t.Context(), o); err != nil || len(s.objects) != 1 {
		t.Errorf("%v, %v", s.objects, err)
	}
}

// Credentials are renewed five minutes before they expire. A failure is not cached.
func TestTemporary(t *testing.T) {
	var keys Temporary
	n := 0
	start := time.Unix(1000, 0)
	failed := errors.New("no")
	renew := func(context.Context) (Credentials, time.Time, error) {
		n++
		if n == 1 {
			return Credentials{ID: "half"}, start.Add(time.Hour), failed
		}
		return Credentials{ID: "me"}, start.Add(time.Hour), nil
	}
	if _, err := keys.Get(t.Context(), start, renew); err != failed {
		t.Errorf("the error is %v", err)
	}
	for _, tt := range []struct {
		after time.Duration
		calls int
	}{{0, 2}, {54 * time.Minute, 2}, {55 * time.Minute, 3}} {
		got, err := keys.Get(t.Context(), start.Add(tt.after), renew)
		if err != nil || got.ID != "me" || n != tt.calls {
			t.Errorf("after %s: %v, %v, %d calls", tt.after, got, err, n)
		}
	}
}
