package servers

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// An AzureCloud is a stand-in for the login of Azure and for a vault with one RSA key and
// one symmetric key. Both are reached by their public names through a tunnel.
// https://learn.microsoft.com/rest/api/keyvault/keys/
type AzureCloud struct {
	*Tunnel
	Tenant, Client, Secret string
	Vault                  string // its address
	// Token is the token that the login returns to clients with the secret, or with one of
	// Assertions.
	Token      string
	Assertions []string
	Lifetime   int // of tokens, in seconds; 0 means an hour

	mu     sync.Mutex
	keys   []azureKey // the versions; the last one is current
	denied bool
	log    []string
	more   http.Handler
}

type azureKey struct {
	rsa       *rsa.PrivateKey
	symmetric []byte
}

// NewAzureCloud starts the stand-in. more handles requests to the other hosts; nil means
// none.
func NewAzureCloud(t testing.TB, more http.Handler, hosts ...string) *AzureCloud {
	t.Helper()
	s := &AzureCloud{
		Tenant: "11111111-1111-1111-1111-111111111111", Client: "22222222-2222-2222-2222-222222222222", Secret: "planted-client-secret",
		Vault: "https://acme.vault.azure.net", Token: "planted-azure-token", more: more,
	}
	s.Rotate(t)
	s.Tunnel = NewTunnel(t, s, append(hosts, "login.microsoftonline.com", "acme.vault.azure.net")...)
	return s
}

// Rotate adds a version to the vault's key, which becomes the current one.
func (s *AzureCloud) Rotate(t testing.TB) {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	symmetric := make([]byte, 32)
	rand.Read(symmetric)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, azureKey{k, symmetric})
}

// Deny removes the permission to use the keys.
func (s *AzureCloud) Deny() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = true
}

// Log returns the requests, one per line.
func (s *AzureCloud) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.log...)
}

func azureAnswer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has disconnected
}

func azureFail(w http.ResponseWriter, status int, code, message string) {
	azureAnswer(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

func (s *AzureCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.log = append(s.log, r.Method+" "+r.Host+r.URL.Path)
	s.mu.Unlock()
	switch r.Host {
	case "login.microsoftonline.com":
		s.login(w, r)
	case strings.TrimPrefix(s.Vault, "https://"):
		s.vault(w, r)
	default:
		s.more.ServeHTTP(w, r)
	}
}

// login handles requests like a token authority.
func (s *AzureCloud) login(w http.ResponseWriter, r *http.Request) {
	here := "https://login.microsoftonline.com/" + s.Tenant
	switch r.URL.Path {
	case "/common/discovery/instance":
		azureAnswer(w, 200, map[string]any{
			"tenant_discovery_endpoint": here + "/v2.0/.well-known/openid-configuration",
			"metadata":                  []any{map[string]any{"preferred_network": r.Host, "preferred_cache": r.Host, "aliases": []string{r.Host}}},
		})
	case "/" + s.Tenant + "/v2.0/.well-known/openid-configuration":
		azureAnswer(w, 200, map[string]string{"issuer": here + "/v2.0", "authorization_endpoint": here + "/oauth2/v2.0/authorize", "token_endpoint": here + "/oauth2/v2.0/token"})
	case "/" + s.Tenant + "/oauth2/v2.0/token":
		if r.ParseForm() != nil || !s.proves(r) {
			azureAnswer(w, 401, map[string]string{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."})
			return
		}
		lifetime := s.Lifetime
		if lifetime == 0 {
			lifetime = 3600
		}
		azureAnswer(w, 200, map[string]any{"token_type": "Bearer", "expires_in": lifetime, "ext_expires_in": lifetime, "access_token": s.Token})
	default:
		azureFail(w, 404, "NotFound", r.URL.Path)
	}
}

// proves reports whether a token request authenticates its sender.
func (s *AzureCloud) proves(r *http.Request) bool {
	if r.PostForm.Get("client_id") != s.Client {
		return false
	}
	shown := r.PostForm.Get("client_assertion")
	for _, a := range s.Assertions {
		if shown == a || a == "*" && shown != "" {
			return true
		}
	}
	return r.PostForm.Get("client_secret") == s.Secret
}

type vaultBytes []byte

func (b vaultBytes) MarshalText() ([]byte, error) {
	return []byte(base64.RawURLEncoding.EncodeToString(b)), nil
}

func (b *vaultBytes) UnmarshalText(text []byte) (err error) {
	*b, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(string(text), "="))
	return err
}

type vaultBody struct {
	KID   string     `json:"kid,omitempty"`
	Alg   string     `json:"alg,omitempty"`
	Value vaultBytes `json:"value"`
	IV    vaultBytes `json:"iv,omitempty"`
	Tag   vaultBytes `json:"tag,omitempty"`
	AAD   vaultBytes `json:"aad,omitempty"`
}

// vault handles requests like a key vault. A request without a token gets the address of
// the authority.
func (s *AzureCloud) vault(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+s.Token {
		w.Header().Set("WWW-Authenticate", `Bearer authorization="https://login.microsoftonline.com/`+s.Tenant+`", resource="https://vault.azure.net"`)
		azureFail(w, 401, "Unauthorized", "AKV10000: Request is missing a Bearer or PoP token.")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.denied {
		azureFail(w, 403, "Forbidden", "The user, group or application does not have keys encrypt permission on key vault 'acme'.")
		return
	}
	p := strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' }) // keys, name, version, operation
	if len(p) < 3 || p[0] != "keys" || p[1] != "states" {
		azureFail(w, 404, "KeyNotFound", "A key with (name/id) "+r.URL.Path+" was not found in this key vault.")
		return
	}
	n, operation := len(s.keys), p[len(p)-1]
	if len(p) == 4 {
		if _, err := fmt.Sscanf(p[2], "%032d", &n); err != nil || n < 1 || n > len(s.keys) {
			azureFail(w, 404, "KeyNotFound", "there is no such version")
			return
		}
	}
	var in vaultBody
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &in) != nil {
		azureFail(w, 400, "BadParameter", "the request is not JSON")
		return
	}
	out, err := s.keys[n-1].use(operation, in)
	if err != nil {
		azureFail(w, 400, "BadParameter", err.Error())
		return
	}
	out.KID = fmt.Sprintf("%s/keys/states/%032d", s.Vault, n)
	azureAnswer(w, 200, out)
}

func (k azureKey) use(operation string, in vaultBody) (out vaultBody, err error) {
	if in.Alg == "RSA-OAEP-256" {
		if operation == "encrypt" {
			out.Value, err = rsa.EncryptOAEP(sha256.New(), rand.Reader, &k.rsa.PublicKey, in.Value, nil)
		} else {
			out.Value, err = rsa.DecryptOAEP(sha256.New(), nil, k.rsa, in.Value, nil)
		}
		return out, err
	}
	sizes := map[string]int{"A128GCM": 16, "A192GCM": 24, "A256GCM": 32}
	if sizes[in.Alg] == 0 {
		return out, fmt.Errorf("the algorithm %s is not known", in.Alg)
	}
	block, err := aes.NewCipher(k.symmetric[:sizes[in.Alg]])
	if err != nil {
		return out, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return out, err
	}
	if operation == "encrypt" {
		out.IV = make([]byte, gcm.NonceSize())
		rand.Read(out.IV)
		sealed := gcm.Seal(nil, out.IV, in.Value, in.AAD)
		out.Value, out.Tag, out.AAD = sealed[:len(in.Value)], sealed[len(in.Value):], in.AAD
		return out, nil
	}
	if len(in.IV) != gcm.NonceSize() {
		return out, fmt.Errorf("the iv is missing")
	}
	out.Value, err = gcm.Open(nil, in.IV, append(append([]byte{}, in.Value...), in.Tag...), in.AAD)
	return out, err
}
