package cos

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend/bucket"
)

func mac(h func() hash.Hash, key []byte, text string) []byte {
	m := hmac.New(h, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// Sign implements bucket.Vendor. It sets the Authorization header according to the "Request
// Signature" of COS (document 436/7778). It signs all parameters and the relevant headers.
func (c *account) Sign(r *http.Request, keys bucket.Credentials) {
	now := c.s.Now()
	keyTime := fmt.Sprintf("%d;%d", now.Add(-time.Minute).Unix(), now.Add(time.Hour).Unix())
	params := map[string]string{}
	for k, vs := range r.URL.Query() {
		params[strings.ToLower(encode(k))] = encode(vs[0])
	}
	headers := map[string]string{"host": encode(r.URL.Host)}
	for k, vs := range r.Header {
		if k = strings.ToLower(k); strings.HasPrefix(k, "x-cos-") || k == "content-type" || k == "content-md5" {
			headers[k] = encode(vs[0])
		}
	}
	paramList, paramText := joined(params)
	headerList, headerText := joined(headers)
	text := strings.ToLower(r.Method) + "\n" + r.URL.Path + "\n" + paramText + "\n" + headerText + "\n"
	sum := sha1.Sum([]byte(text))
	key := hex.EncodeToString(mac(sha1.New, []byte(keys.Key), keyTime))
	signature := hex.EncodeToString(mac(sha1.New, []byte(key), "sha1\n"+keyTime+"\n"+hex.EncodeToString(sum[:])+"\n"))
	r.Header.Set("Authorization", "q-sign-algorithm=sha1&q-ak="+keys.ID+"&q-sign-time="+keyTime+"&q-key-time="+keyTime+
		"&q-header-list="+headerList+"&q-url-param-list="+paramList+"&q-signature="+signature)
}

// joined returns the names and the pairs of a map, sorted.
func joined(m map[string]string) (names, pairs string) {
	var list, text []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	for _, k := range list {
		text = append(text, k+"="+m[k])
	}
	return strings.Join(list, ";"), strings.Join(text, "&")
}

// encode escapes all bytes except letters, digits and "-_.~", as in URLs.
func encode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// signAPI returns the Authorization header of an API call with "Signature Method v3"
// (TC3-HMAC-SHA256).
func signAPI(service, host string, body []byte, c bucket.Credentials, now time.Time) string {
	const algorithm, signed = "TC3-HMAC-SHA256", "content-type;host"
	date := now.UTC().Format("2006-01-02")
	scope := date + "/" + service + "/tc3_request"
	payload := sha256.Sum256(body)
	request := sha256.Sum256([]byte("POST\n/\n\ncontent-type:application/json\nhost:" + host + "\n\n" + signed + "\n" + hex.EncodeToString(payload[:])))
	text := fmt.Sprintf("%s\n%d\n%s\n%s", algorithm, now.Unix(), scope, hex.EncodeToString(request[:]))
	key := mac(sha256.New, mac(sha256.New, mac(sha256.New, []byte("TC3"+c.Key), date), service), "tc3_request")
	return fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%s", algorithm, c.ID, scope, signed, hex.EncodeToString(mac(sha256.New, key, text)))
}
