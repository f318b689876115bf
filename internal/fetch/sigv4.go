package fetch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// signV4 signs a request without a body in the way of AWS Signature Version 4.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
func signV4(r *http.Request, c awsCredentials, region, service string, now time.Time) {
	const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	stamp := now.UTC().Format("20060102T150405Z")
	r.Header.Set("X-Amz-Date", stamp)
	r.Header.Set("X-Amz-Content-Sha256", emptyBody)
	if c.token != "" {
		r.Header.Set("X-Amz-Security-Token", c.token)
	}
	names := []string{"host"}
	for k := range r.Header {
		if l := strings.ToLower(k); strings.HasPrefix(l, "x-amz-") || l == "range" {
			names = append(names, l)
		}
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, n := range names {
		v := r.Header.Get(n)
		if n == "host" {
			if v = r.Host; v == "" {
				v = r.URL.Host
			}
		}
		headers.WriteString(n + ":" + strings.Join(strings.Fields(v), " ") + "\n")
	}
	signed := strings.Join(names, ";")
	canonical := strings.Join([]string{r.Method, awsPath(r.URL.Path), awsQuery(r.URL.Query()), headers.String(), signed, emptyBody}, "\n")
	scope := stamp[:8] + "/" + region + "/" + service + "/aws4_request"
	sum := sha256.Sum256([]byte(canonical))
	text := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + c.secret)
	for _, part := range []string{stamp[:8], region, service, "aws4_request"} {
		key = mac(key, part)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+c.id+"/"+scope+", SignedHeaders="+signed+", Signature="+hex.EncodeToString(mac(key, text)))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// awsPath escapes a path as AWS does: everything but letters, digits and -_.~/.
func awsPath(p string) string {
	if p == "" {
		return "/"
	}
	parts := strings.Split(p, "/")
	for i, part := range parts {
		parts[i] = awsEscape(part)
	}
	return strings.Join(parts, "/")
}

func awsQuery(q url.Values) string {
	var pairs []string
	for k, vs := range q {
		for _, v := range vs {
			pairs = append(pairs, awsEscape(k)+"="+awsEscape(v))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

func awsEscape(s string) string {
	const upper = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upper[c>>4])
		b.WriteByte(upper[c&15])
	}
	return b.String()
}
