package registrytest

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
)

// LoginToken is the token that a login at the server returns.
const LoginToken = "token-of-the-login"

// loginService is the server's description of its login service.
var loginService = map[string]any{
	"client": "terraform-cli", "grant_types": []string{"authz_code"},
	"authz": "/login/authorization", "token": "/login/token",
}

// login serves the login page, which approves at once, and exchanges codes for the token. The
// code is the challenge with which the page was opened.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/login/authorization" {
		q := r.URL.Query()
		to := q.Get("redirect_uri") + "?" + url.Values{"code": {q.Get("code_challenge")}, "state": {q.Get("state")}}.Encode()
		http.Redirect(w, r, to, http.StatusFound)
		return
	}
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if r.PostFormValue("code") != base64.RawURLEncoding.EncodeToString(sum[:]) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer(w, map[string]string{"access_token": LoginToken, "token_type": "Bearer"})
}
