package oss

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/state/backend/bucket"
)

// signed are the query parameters that are part of the signed text.
var signed = []string{"acl", "versioning", "versionId", "location"}

func mac(key, text string) string {
	m := hmac.New(sha1.New, []byte(key))
	m.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// A signer is the bucket.Vendor of a bucket.
type signer struct {
	*account
	bucket string
	path   bool // the bucket is in the path of the address, not in the host
}

// Sign implements bucket.Vendor. It sets the Authorization header with version 1 of the
// signature.
func (s signer) Sign(r *http.Request, keys bucket.Credentials) {
	r.Header.Set("Date", s.s.Now().UTC().Format(http.TimeFormat))
	var own []string
	for k, vs := range r.Header {
		if k = strings.ToLower(k); strings.HasPrefix(k, "x-oss-") {
			own = append(own, k+":"+strings.TrimSpace(vs[0])+"\n")
		}
	}
	slices.Sort(own)
	key := r.URL.Path
	if rest, ok := strings.CutPrefix(key, "/"+s.bucket+"/"); ok && s.path {
		key = "/" + rest
	}
	resource := "/" + s.bucket + key
	sep := "?"
	q := r.URL.Query()
	for _, name := range signed {
		if q.Has(name) {
			resource += sep + name
			if v := q.Get(name); v != "" {
				resource += "=" + v
			}
			sep = "&"
		}
	}
	text := r.Method + "\n" + r.Header.Get("Content-Md5") + "\n" + r.Header.Get("Content-Type") + "\n" + r.Header.Get("Date") + "\n" + strings.Join(own, "") + resource
	r.Header.Set("Authorization", "OSS "+keys.ID+":"+mac(keys.Key, text))
}

// Checksum implements bucket.Vendor.
func (s signer) Checksum(sum [md5.Size]byte) (header, value string) {
	return "Content-Md5", base64.StdEncoding.EncodeToString(sum[:])
}

// Verify implements bucket.Vendor. It does nothing, because the table contains the checksum
// of a state.
func (s signer) Verify(string, http.Header, string) error { return nil }
