package servers

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A KeyServer is a stand-in for services that create data keys: the key management service
// of AWS and the transit engine of OpenBao. Its encryption flips bits of the text and
// prepends the version of the key.
type KeyServer struct {
	URL, Token string

	mu      sync.Mutex
	version int
	denied  bool
}

// Keys starts the stand-in.
func Keys(t testing.TB) *KeyServer {
	t.Helper()
	s := &KeyServer{Token: "planted-bao-token", version: 1}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.URL = web.URL
	return s
}

// Rotate adds a version of the key. Text encrypted with earlier versions can still be
// decrypted.
func (s *KeyServer) Rotate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
}

// Deny removes the permission to use the key.
func (s *KeyServer) Deny() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = true
}

func turned(b []byte) []byte {
	out := bytes.Clone(b)
	for i := range out {
		out[i] ^= 0x5a
	}
	return out
}

// seal encrypts a key. about is the text that must be the same for decryption.
func (s *KeyServer) seal(key []byte, about string) []byte {
	return append(fmt.Appendf(nil, "v%d:%s:", s.version, about), turned(key)...)
}

func (s *KeyServer) open(sealed []byte, about string) []byte {
	var n int
	head, rest, ok := bytes.Cut(sealed, []byte(":"+about+":"))
	if _, err := fmt.Sscanf(string(head), "v%d", &n); err != nil || !ok || n < 1 || n > s.version {
		return nil
	}
	return turned(rest)
}

func fresh(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

func (s *KeyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if operation, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "TrentService."); ok {
		s.aws(w, r, operation)
		return
	}
	s.bao(w, r)
}

// https://docs.aws.amazon.com/kms/latest/APIReference/
func (s *KeyServer) aws(w http.ResponseWriter, r *http.Request, operation string) {
	fail := func(status int, code, message string) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": code, "message": message})
	}
	var in struct {
		KeyId, KeySpec    string
		CiphertextBlob    []byte
		EncryptionContext map[string]string
	}
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+AccessKey+"/"):
		fail(400, "UnrecognizedClientException", "The security token included in the request is invalid.")
		return
	case s.denied:
		fail(400, "AccessDeniedException", "not authorized to perform kms:"+operation)
		return
	case json.NewDecoder(r.Body).Decode(&in) != nil:
		fail(400, "SerializationException", "not JSON")
		return
	}
	out := map[string]any{"KeyId": in.KeyId}
	about := fmt.Sprintf("%x", fmt.Sprint(in.EncryptionContext)) // fmt sorts the keys
	if operation == "GenerateDataKey" {
		key := fresh(map[string]int{"AES_128": 16, "AES_256": 32}[in.KeySpec])
		out["Plaintext"], out["CiphertextBlob"] = key, s.seal(key, about)
	} else if key := s.open(in.CiphertextBlob, about); key != nil {
		out["Plaintext"] = key
	} else {
		fail(400, "InvalidCiphertextException", "")
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(out)
}

// https://openbao.org/api-docs/secret/transit/
func (s *KeyServer) bao(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, message string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string][]string{"errors": {message}})
	}
	var in struct {
		Bits       int
		Ciphertext string
		Associated []byte `json:"associated_data"`
	}
	if r.Header.Get("X-Vault-Token") != s.Token || s.denied {
		fail(403, "permission denied")
		return
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		fail(400, "not JSON")
		return
	}
	data := map[string]any{}
	switch r.URL.Path {
	case "/v1/transit/datakey/plaintext/states":
		key := fresh(in.Bits / 8)
		data["plaintext"], data["ciphertext"] = key, fmt.Sprintf("vault:v%d:%x:%x", s.version, turned(key), in.Associated)
	case "/v1/transit/decrypt/states":
		var n int
		var sealed []byte
		if _, err := fmt.Sscanf(in.Ciphertext, "vault:v%d:%x", &n, &sealed); err != nil || n > s.version {
			fail(400, "invalid ciphertext: no prefix")
			return
		}
		if !strings.HasSuffix(in.Ciphertext, fmt.Sprintf(":%x", in.Associated)) {
			fail(400, "cipher: message authentication failed")
			return
		}
		data["plaintext"] = turned(sealed)
	default:
		fail(404, "no handler for route")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}
