package azurerm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// sign signs a request with the account's key.
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
func sign(key []byte, r *http.Request, account string) string {
	length := ""
	if r.ContentLength > 0 {
		length = fmt.Sprint(r.ContentLength)
	}
	lines := []string{r.Method, r.Header.Get("Content-Encoding"), r.Header.Get("Content-Language"), length, r.Header.Get("Content-Md5"), r.Header.Get("Content-Type"), "",
		r.Header.Get("If-Modified-Since"), r.Header.Get("If-Match"), r.Header.Get("If-None-Match"), r.Header.Get("If-Unmodified-Since"), r.Header.Get("Range")}
	own := map[string]string{}
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			own[name] = strings.Join(values, ",")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		lines = append(lines, name+":"+own[name])
	}
	lines = append(lines, "/"+account+r.URL.EscapedPath())
	q := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		values := slices.Sorted(slices.Values(q[name]))
		lines = append(lines, strings.ToLower(name)+":"+strings.Join(values, ","))
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte(strings.Join(lines, "\n")))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}
