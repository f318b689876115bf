package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// password is that of the key of the tests.
const password = "a password of the tests"

// A published is a release that tests read. It is built once, from the small programs in
// testdata, for all platforms, and served on the loopback interface.
type published struct {
	*release
	dir string // a directory for files of the tests

	mu      sync.Mutex
	changed map[string][]byte // by file name, the content that the server sends instead
}

var built *published

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "release-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		built = &published{dir: dir}
		server := httptest.NewServer(built)
		defer server.Close()
		if built.release, err = publish(dir, server.URL); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// publish builds the release that is served at a URL.
func publish(dir, url string) (*release, error) {
	root, err := checkout(filepath.Join(dir, "checkout"))
	if err != nil {
		return nil, err
	}
	keyFile, err := newKey(dir, elliptic.P256())
	if err != nil {
		return nil, err
	}
	key, err := readKey(keyFile, password)
	if err != nil {
		return nil, err
	}
	src, err := readSource(root, "")
	if err != nil {
		return nil, err
	}
	targets, err := parseTargets(allTargets)
	if err != nil {
		return nil, err
	}
	r := &release{
		root: root, out: filepath.Join(dir, "out"), source: src, targets: targets, key: key,
		address: url, builder: "urn:test:builder", compileFlags: []string{"-trimpath"},
	}
	if _, err := exec.LookPath("npm"); err != nil {
		r.noExtension = true // TestExtension is skipped
	}
	return r, r.build()
}

// ServeHTTP sends the files of the release.
func (p *published) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	content, ok := p.changed[strings.TrimPrefix(r.URL.Path, "/")]
	p.mu.Unlock()
	if ok {
		_, _ = w.Write(content)
		return
	}
	http.FileServer(http.Dir(p.out)).ServeHTTP(w, r)
}

// replace has the server send other files until the test ends.
func (p *published) replace(t *testing.T, files map[string][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = files
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed = nil
	})
}

// checkout copies testdata/checkout to a new git repository with the tag v1.2.3.
func checkout(dir string) (string, error) {
	if err := os.CopyFS(dir, os.DirFS("testdata/checkout")); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "a release"}, {"tag", "v1.2.3"}} {
		if err := gitWith(dir, args...); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// gitWith runs git without the configuration of the user.
func gitWith(dir string, args ...string) error {
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	if b, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, b)
	}
	return nil
}

// newKey writes a key as cosign generate-key-pair does.
func newKey(dir string, curve elliptic.Curve) (string, error) {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		return "", err
	}
	content, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	if content, err = encrypted.Encrypt(content, []byte(password)); err != nil {
		return "", err
	}
	path := filepath.Join(dir, curve.Params().Name+".key")
	return path, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: content}), 0o600)
}

// names returns the names of the published files.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A release has these files.
func TestFiles(t *testing.T) {
	want := []string{
		"SHA256SUMS", "SHA256SUMS.sig", "SHA256SUMS.sigstore.json", "cosign.pub",
		"TerraceIaC.Terrace.installer.yaml", "TerraceIaC.Terrace.locale.en-US.yaml", "TerraceIaC.Terrace.yaml",
		"install.sh", "terrace.nix", "terrace.rb", "provenance.json", "provenance.sigstore.json",
	}
	for _, platform := range strings.Split(allTargets, ",") {
		base := "_1.2.3_" + strings.ReplaceAll(platform, "/", "_")
		want = append(want, "terrace"+base+".cdx.json", "terrace-worker"+base+".cdx.json")
		switch {
		case strings.HasPrefix(platform, "windows"):
			want = append(want, "terrace"+base+".zip")
		case strings.HasPrefix(platform, "linux"):
			want = append(want, "terrace"+base+".deb", "terrace"+base+".rpm", "terrace"+base+".apk", "terrace"+base+".tar.gz")
		default:
			want = append(want, "terrace"+base+".tar.gz")
		}
	}
	if !built.noExtension {
		want = append(want, "terrace-vscode_1.2.3.vsix")
	}
	slices.Sort(want)
	if got := names(t, built.out); !slices.Equal(got, want) {
		t.Errorf("files:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A second build of the commit writes the same files, even if the checkout is in another directory.
func TestReproducible(t *testing.T) {
	again := *built.release
	again.key = nil
	again.out = filepath.Join(t.TempDir(), "out")
	root, err := checkout(filepath.Join(t.TempDir(), "checkout"))
	if err != nil {
		t.Fatal(err)
	}
	again.root = root
	again.targets = slices.Clone(built.targets)
	if err := again.build(); err != nil {
		t.Fatal(err)
	}
	if got, want := string(read(t, again.out, sumsFile)), string(read(t, built.out, sumsFile)); got != want {
		t.Errorf("checksums of the second build:\n%s\nof the first:\n%s", got, want)
	}
	err = again.build()
	if err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a build into a directory with files: %v", err)
	}
}

// A release for some platforms has no files for package managers of others.
func TestOnePlatform(t *testing.T) {
	one := *built.release
	one.out, one.key = filepath.Join(t.TempDir(), "out"), nil
	one.targets, one.noExtension = []target{{"windows", "arm64"}}, true
	if err := one.build(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"SHA256SUMS", "TerraceIaC.Terrace.installer.yaml", "TerraceIaC.Terrace.locale.en-US.yaml", "TerraceIaC.Terrace.yaml", "provenance.json",
		"terrace-worker_1.2.3_windows_arm64.cdx.json", "terrace_1.2.3_windows_arm64.cdx.json", "terrace_1.2.3_windows_arm64.zip",
	}
	if got := names(t, one.out); !slices.Equal(got, want) {
		t.Errorf("files: %q, want %q", got, want)
	}
}

func TestSource(t *testing.T) {
	root, err := checkout(filepath.Join(t.TempDir(), "checkout"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := readSource(root, "")
	if err != nil {
		t.Fatal(err)
	}
	if s.tag != "v1.2.3" || s.version != "1.2.3" || s.module != "github.com/terrace-iac/terrace" || s.repository != "https://github.com/terrace-iac/terrace" {
		t.Errorf("source: %+v", s)
	}
	if got := s.time.Format("2006-01-02T15:04:05Z07:00"); got != "2026-01-02T03:04:05Z" {
		t.Errorf("time of the commit: %s", got)
	}
	for _, version := range []string{"1.2.3", "v1.2", "v1.2.3+build", "latest"} {
		if s, err := readSource(root, version); err == nil {
			t.Errorf("version %q is accepted: %+v", version, s)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte("changed"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := readSource(root, ""); err == nil || !strings.Contains(err.Error(), "README.md") {
		t.Errorf("a checkout with changes: %v", err)
	}
	if err := gitWith(root, "commit", "-q", "-a", "-m", "another"); err != nil {
		t.Fatal(err)
	}
	if s, err = readSource(root, ""); err != nil {
		t.Fatal(err)
	}
	if want := "0.0.0-g" + s.commit[:12]; s.version != want {
		t.Errorf("version of a commit without a tag: %s, want %s", s.version, want)
	}
}

// The Dockerfile copies programs that exist.
func TestDockerfile(t *testing.T) {
	text := string(read(t, "Dockerfile"))
	const copied = "COPY programs/${TARGETOS}_${TARGETARCH}/ /usr/local/bin/"
	if !strings.Contains(text, copied) {
		t.Fatalf("the Dockerfile has no line %q", copied)
	}
	_, platforms, _ := strings.Cut(text, "--platform ")
	platforms, _, _ = strings.Cut(platforms, " ")
	n := 0
	for _, platform := range strings.Split(platforms, ",") {
		parts := strings.Split(platform, "/")
		dir := strings.NewReplacer("${TARGETOS}", parts[0], "${TARGETARCH}", parts[1]).Replace("programs/${TARGETOS}_${TARGETARCH}")
		for _, program := range programs {
			info, err := fs.Stat(os.DirFS(built.out), dir+"/"+program)
			if err != nil {
				t.Error(err)
			} else if info.Mode()&0o111 == 0 {
				t.Errorf("%s is not executable", program)
			}
		}
		n++
	}
	if n != 3 {
		t.Errorf("the Dockerfile names %d platforms, want those of linux", n)
	}
}
