// Package registrytest is a registry for tests: a TLS server on this machine with the module
// registry protocol, the provider registry protocol and the network mirror protocol, and signed
// packages.
//
// Main type: Server. The one rule: it follows the protocols exactly; tests of invalid responses
// write them in Server.Fault.
package registrytest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Server is a registry. Its content must be added before the first request.
type Server struct {
	*httptest.Server
	Host  string // host in addresses: 127.0.0.1:PORT
	Token string // token that requests to the registry protocols must have, if not ""

	// Fault is called before each request is served. It returns true if it wrote the response. It
	// may be nil.
	Fault func(w http.ResponseWriter, r *http.Request) bool

	Unsigned bool     // omits the signing keys
	NoHashes bool     // omits the hashes of all platforms
	Warnings []string // warnings about every provider
	Login    bool     // offers a login service, which returns LoginToken
	Key      *Key

	mu        sync.Mutex
	requests  []string
	providers map[string][]*Package            // by namespace/type
	modules   map[string][]string              // versions by namespace/name/system
	locations map[string]func() (string, bool) // by namespace/name/system/version
	files     map[string][]byte                // by path
	headers   map[string]http.Header           // headers of the last request, by path
}

// A Package is a provider package.
type Package struct {
	Version, OS, Arch string
	Protocols         []string
	Zip               []byte
	H1                string // may be ""
}

// New starts a server, which is closed when the test ends.
func New(t testing.TB) *Server {
	s := &Server{Key: NewKey(t, time.Time{}), providers: map[string][]*Package{}, modules: map[string][]string{}, locations: map[string]func() (string, bool){}, files: map[string][]byte{}, headers: map[string]http.Header{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	s.Host = strings.TrimPrefix(s.URL, "https://")
	t.Cleanup(s.Close)
	return s
}

// CAFile writes the server's certificate to a file, for SSL_CERT_FILE.
func (s *Server) CAFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Transport returns a transport that trusts the server.
func (s *Server) Transport() *http.Transport {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
}

// Requests returns the paths of the requests, in order.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Header returns the headers of the last request for a path.
func (s *Server) Header(path string) http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers[path]
}

// Forget clears the recorded requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// AddProvider adds a package that contains one file, and returns it.
func (s *Server) AddProvider(t testing.TB, namespace, typ, version, platform, program string) *Package {
	t.Helper()
	os, arch, _ := strings.Cut(platform, "_")
	p := &Package{Version: version, OS: os, Arch: arch, Protocols: []string{"5.0", "6.1"}, Zip: Zip(t, "terraform-provider-"+typ+"_v"+version, program)}
	p.H1 = H1(t, p.Zip)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.providers[namespace+"/"+typ] = append(s.providers[namespace+"/"+typ], p)
	return p
}

// AddModule adds a version of a module. direct means that the location is an archive that needs
// the registry's credentials.
func (s *Server) AddModule(namespace, name, system, version, location string, direct bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := namespace + "/" + name + "/" + system
	s.modules[key] = append(s.modules[key], version)
	s.locations[key+"/"+version] = func() (string, bool) { return location, direct }
}

// AddFile serves content at a path.
func (s *Server) AddFile(path string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = content
}

// Zip returns an archive with one program.
func Zip(t testing.TB, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: name, Method: zip.Deflate}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.Path)
	s.headers[r.URL.Path] = r.Header.Clone()
	s.mu.Unlock()
	if s.Fault != nil && s.Fault(w, r) {
		return
	}
	if strings.HasPrefix(r.URL.Path, "/login/") {
		s.login(w, r)
		return
	}
	if s.Token != "" && !strings.HasPrefix(r.URL.Path, "/files/") && r.URL.Path != "/.well-known/terraform.json" && r.Header.Get("Authorization") != "Bearer "+s.Token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/.well-known/terraform.json":
		services := map[string]any{"modules.v1": "/modules/", "providers.v1": "/providers/"}
		if s.Login {
			services["login.v1"] = loginService
		}
		answer(w, services)
	case parts[0] == "providers":
		s.provider(w, parts[1:])
	case parts[0] == "modules":
		s.module(w, parts[1:])
	case parts[0] == "mirror":
		s.mirror(w, parts[1:])
	case parts[0] == "files" && len(parts) == 5:
		s.file(w, r, parts[1:])
	default:
		s.plain(w, r)
	}
}

func (s *Server) plain(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	body, ok := s.files[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (s *Server) packages(namespace, typ string) []*Package {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.providers[namespace+"/"+typ]
}

func fileName(typ string, p *Package) string {
	return fmt.Sprintf("terraform-provider-%s_%s_%s_%s.zip", typ, p.Version, p.OS, p.Arch)
}

// provider serves NS/TYPE/versions and NS/TYPE/VERSION/download/OS/ARCH.
func (s *Server) provider(w http.ResponseWriter, parts []string) {
	if len(parts) < 3 || len(s.packages(parts[0], parts[1])) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	all := s.packages(parts[0], parts[1])
	if parts[2] == "versions" {
		type platform struct {
			OS   string `json:"os"`
			Arch string `json:"arch"`
		}
		type version struct {
			Version   string     `json:"version"`
			Protocols []string   `json:"protocols"`
			Platforms []platform `json:"platforms"`
		}
		var out []*version
		for _, p := range all {
			i := slices.IndexFunc(out, func(v *version) bool { return v.Version == p.Version })
			if i < 0 {
				i = len(out)
				out = append(out, &version{Version: p.Version, Protocols: p.Protocols})
			}
			out[i].Platforms = append(out[i].Platforms, platform{p.OS, p.Arch})
		}
		answer(w, map[string]any{"versions": out, "warnings": s.Warnings})
		return
	}
	for _, p := range all {
		if len(parts) == 6 && p.Version == parts[2] && parts[3] == "download" && p.OS == parts[4] && p.Arch == parts[5] {
			s.download(w, parts[0], parts[1], p, all)
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

func (s *Server) download(w http.ResponseWriter, namespace, typ string, p *Package, all []*Package) {
	base := "/files/" + namespace + "/" + typ + "/" + p.Version + "/"
	keys := []map[string]string{}
	if !s.Unsigned {
		keys = append(keys, map[string]string{"key_id": s.Key.ID, "ascii_armor": s.Key.Public})
	}
	doc := map[string]any{
		"protocols": p.Protocols, "os": p.OS, "arch": p.Arch, "filename": fileName(typ, p),
		"download_url": base + fileName(typ, p), "shasums_url": base + "SHA256SUMS", "shasums_signature_url": base + "SHA256SUMS.sig",
		"shasum": sum(p.Zip), "signing_keys": map[string]any{"gpg_public_keys": keys},
	}
	if !s.NoHashes {
		m := map[string]any{}
		for _, o := range all {
			if o.Version == p.Version {
				hashes := []string{"zh:" + sum(o.Zip)}
				if o.H1 != "" {
					hashes = append(hashes, o.H1)
				}
				m[o.OS+"_"+o.Arch] = map[string]any{"hashes": hashes, "package_size": len(o.Zip)}
			}
		}
		doc["packages"] = m
	}
	answer(w, doc)
}

// file serves NS/TYPE/VERSION/NAME.
func (s *Server) file(w http.ResponseWriter, r *http.Request, parts []string) {
	typ := parts[1]
	var sums strings.Builder
	for _, p := range s.packages(parts[0], typ) {
		if p.Version != parts[2] {
			continue
		}
		if fileName(typ, p) == parts[3] {
			w.Header().Set("ETag", `"`+sum(p.Zip)+`"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p.Zip))
			return
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum(p.Zip), fileName(typ, p))
	}
	switch parts[3] {
	case "SHA256SUMS":
		_, _ = w.Write([]byte(sums.String()))
	case "SHA256SUMS.sig":
		_, _ = w.Write(s.Key.Sign([]byte(sums.String())))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// mirror serves HOST/NS/TYPE/index.json and HOST/NS/TYPE/VERSION.json.
func (s *Server) mirror(w http.ResponseWriter, parts []string) {
	if len(parts) != 4 || len(s.packages(parts[1], parts[2])) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	version, archives, seen := strings.TrimSuffix(parts[3], ".json"), map[string]any{}, map[string]any{}
	for _, p := range s.packages(parts[1], parts[2]) {
		seen[p.Version] = map[string]any{}
		if p.Version == version {
			a := map[string]any{"url": "/files/" + parts[1] + "/" + parts[2] + "/" + version + "/" + fileName(parts[2], p)}
			if !s.NoHashes {
				a["hashes"] = []string{p.H1, "zh:" + sum(p.Zip)}
			}
			archives[p.OS+"_"+p.Arch] = a
		}
	}
	if version == "index" {
		answer(w, map[string]any{"versions": seen})
		return
	}
	answer(w, map[string]any{"archives": archives})
}

// module serves NS/NAME/SYSTEM/versions and NS/NAME/SYSTEM/VERSION/download.
func (s *Server) module(w http.ResponseWriter, parts []string) {
	if len(parts) < 4 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	key := strings.Join(parts[:3], "/")
	s.mu.Lock()
	versions, known := s.modules[key]
	where := s.locations[strings.Join(parts[:4], "/")]
	s.mu.Unlock()
	switch {
	case known && parts[3] == "versions":
		list := []map[string]string{}
		for _, v := range versions {
			list = append(list, map[string]string{"version": v})
		}
		answer(w, map[string]any{"modules": []any{map[string]any{"versions": list}}})
	case where != nil && len(parts) == 5:
		location, direct := where()
		if direct {
			answer(w, map[string]any{"location": location, "use_registry_credentials": true})
			return
		}
		w.Header().Set("X-Terraform-Get", location)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
