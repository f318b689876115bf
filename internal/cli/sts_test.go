package cli_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// startSTS starts a token service for a script. The names of its keys contain the role, the
// duration, and the caller: the key that signed the request, or a web identity token. Each
// response has a different session token.
func startSTS(t *testing.T, ts *testscript.TestScript) {
	var times atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action, who := r.FormValue("Action"), r.FormValue("WebIdentityToken")
		if _, signed, ok := strings.Cut(r.Header.Get("Authorization"), "Credential="); ok {
			who, _, _ = strings.Cut(signed, "/")
		}
		if who == "" || r.FormValue("RoleArn") == "arn:aws:iam::1:role/forbidden" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		key := fmt.Sprintf("key-of-%s-%s-%s", r.FormValue("RoleArn"), cmp.Or(r.FormValue("DurationSeconds"), "0"), who)
		fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult><Credentials><AccessKeyId>%[2]s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t%[3]d</SessionToken><Expiration>2096-01-01T00:00:00Z</Expiration></Credentials></%[1]sResult></%[1]sResponse>", action, key, times.Add(1))
	}))
	t.Cleanup(srv.Close)
	ts.Setenv("AWS_ENDPOINT_URL_STS", srv.URL)
}
