package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/transfer"
)

// newFetcher returns a fetcher with its own cache and a fixed clock.
func newFetcher(t *testing.T) *Fetcher {
	noon := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	return &Fetcher{
		Dir: t.TempDir(), WorkDir: t.TempDir(),
		Env:    sys.Env{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "AWS_EC2_METADATA_DISABLED=true"},
		Run:    sys.Run,
		Client: &transfer.Client{Retries: 2, Backoff: time.Millisecond, Timeout: time.Minute, Idle: time.Minute},
		Now:    func() time.Time { return noon },
	}
}

// again returns a fetcher with the same cache, as in a new process some time later.
func again(f *Fetcher, later time.Duration) *Fetcher {
	now := f.Now().Add(later)
	return &Fetcher{Dir: f.Dir, WorkDir: f.WorkDir, Env: f.Env, Run: f.Run, Client: f.Client, Now: func() time.Time { return now }, OCI: f.OCI, Home: f.Home}
}

func address(t *testing.T, src string) Address {
	t.Helper()
	a, err := Detect(src, false)
	if err != nil || a.Kind != Remote {
		t.Fatal(a, err)
	}
	return a
}

func mustGet(t *testing.T, f *Fetcher, src string) Package {
	t.Helper()
	p, err := f.Get(context.Background(), Request{Address: address(t, src)})
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return p
}

func getFails(t *testing.T, f *Fetcher, src, want string) {
	t.Helper()
	p, err := f.Get(context.Background(), Request{Address: address(t, src)})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %+v, %v; want %s", src, p, err, want)
	}
	left, _ := os.ReadDir(filepath.Join(f.Dir, "tmp"))
	if len(left) > 0 {
		t.Errorf("%s: %d temporary directories are left", src, len(left))
	}
}

// files reads a directory into a map: content by path, "-> target" for links, "/" for
// directories.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			out[rel] = "/"
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			out[rel] = "-> " + target
			return err
		default:
			text, err := os.ReadFile(path)
			out[rel] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func has(t *testing.T, p Package, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, files(t, p.Dir)); d != "" {
		t.Error(d)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// repository creates a git repository with two commits. v1 is the first.
func repository(t *testing.T) (dir, first string) {
	dir = filepath.Join(t.TempDir(), "repo.git")
	put(t, filepath.Join(dir, "main.tf"), "one")
	put(t, filepath.Join(dir, "sub", "main.tf"), "sub")
	if err := os.Symlink("main.tf", filepath.Join(dir, "link.tf")); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	git(t, dir, "tag", "-a", "-m", "v1", "v1")
	git(t, dir, "branch", "side")
	first = git(t, dir, "rev-parse", "HEAD")
	put(t, filepath.Join(dir, "main.tf"), "two")
	git(t, dir, "commit", "-qam", "two")
	return dir, first
}

func TestGit(t *testing.T) {
	dir, first := repository(t)
	one := map[string]string{"main.tf": "one", "sub": "/", "sub/main.tf": "sub", "link.tf": "-> main.tf"}
	two := map[string]string{"main.tf": "two", "sub": "/", "sub/main.tf": "sub", "link.tf": "-> main.tf"}
	f := newFetcher(t)
	base := "git::file://" + dir
	has(t, mustGet(t, f, base), two)
	for _, ref := range []string{"v1", "side", first, first[:8], "refs/tags/v1", "main~1", "side&depth=1"} {
		has(t, mustGet(t, f, base+"?ref="+ref), one)
	}
	has(t, mustGet(t, f, base+"//sub?ref=v1"), one)
	getFails(t, f, base+"?ref=nowhere", "git checkout failed")
	getFails(t, f, base+"?ref=--upload-pack%3Dx", "begins with a dash")
	getFails(t, f, base+"?depth=x", "not a number")
	getFails(t, f, "git::file:///nonexistent", "git clone failed")

	// The source is requested again later or on request, but never for a commit.
	put(t, filepath.Join(dir, "main.tf"), "three")
	git(t, dir, "commit", "-qam", "three")
	has(t, mustGet(t, again(f, time.Minute), base), two)
	three := map[string]string{"main.tf": "three", "sub": "/", "sub/main.tf": "sub", "link.tf": "-> main.tf"}
	has(t, mustGet(t, again(f, time.Hour), base), three)
	put(t, filepath.Join(dir, "main.tf"), "four")
	git(t, dir, "commit", "-qam", "four")
	f2 := again(f, time.Hour+time.Minute)
	p, err := f2.Get(context.Background(), Request{Address: address(t, base), Refresh: true})
	if err != nil || files(t, p.Dir)["main.tf"] != "four" {
		t.Error(p, err)
	}
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	has(t, mustGet(t, again(f, 90*24*time.Hour), base+"?ref="+first), one)
	getFails(t, again(f, 90*24*time.Hour), base, "git clone failed")
}

func TestGitSubmodules(t *testing.T) {
	inner, _ := repository(t)
	outer := filepath.Join(t.TempDir(), "outer")
	put(t, filepath.Join(outer, "main.tf"), "outer")
	git(t, outer, "init", "-q")
	git(t, outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "file://"+inner, "inner")
	git(t, outer, "add", "-A")
	git(t, outer, "commit", "-qm", "x")
	f := newFetcher(t)
	f.Env = f.Env.With("GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always")
	got := files(t, mustGet(t, f, "git::file://"+outer).Dir)
	if got["inner/main.tf"] != "two" || got["inner/.git"] != "" {
		t.Error(got)
	}
}

// gitServer serves repositories over HTTP and counts the requests.
func gitServer(t *testing.T, root string) (*httptest.Server, *atomic.Int32) {
	var n atomic.Int32
	h := &cgi.Handler{Path: filepath.Join(git(t, root, "--exec-path"), "git-http-backend"), Dir: root, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv, &n
}

func TestGitOverHTTP(t *testing.T) {
	dir, _ := repository(t)
	srv, n := gitServer(t, filepath.Dir(dir))
	f := newFetcher(t)
	src := "git::" + srv.URL + "/repo.git?ref=v1"
	if got := files(t, mustGet(t, f, src).Dir)["main.tf"]; got != "one" {
		t.Error(got)
	}
	before := n.Load()
	mustGet(t, f, src)
	mustGet(t, again(f, time.Minute), src)
	if n.Load() != before {
		t.Error("the server was asked again")
	}
	srv.Close()
	p := mustGet(t, again(f, time.Hour), src)
	if got := files(t, p.Dir)["main.tf"]; got != "one" || !strings.Contains(p.Warning, "the cached copy of 2030-01-02 12:00:00 is used") {
		t.Error(got, p.Warning)
	}
	if _, err := again(f, time.Hour).Get(context.Background(), Request{Address: address(t, src), Refresh: true}); err == nil {
		t.Error("a refresh that was asked for did not take place and nobody said so")
	}
}

func TestOncePerPackage(t *testing.T) {
	dir, _ := repository(t)
	srv, n := gitServer(t, filepath.Dir(dir))
	f := newFetcher(t)
	mustGet(t, f, "git::"+srv.URL+"/repo.git")
	single := n.Load()
	f = newFetcher(t)
	n.Store(0)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			_, err := f.Get(context.Background(), Request{Address: address(t, "git::"+srv.URL+"/repo.git//sub"+fmt.Sprint(i))})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n.Load() != single {
		t.Errorf("%d requests instead of %d", n.Load(), single)
	}
}

func zipped(t *testing.T, names ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, n := range names {
		name, text, _ := strings.Cut(n, "=")
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func tarred(t *testing.T, names ...string) []byte {
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for _, n := range names {
		name, text, _ := strings.Cut(n, "=")
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHTTP(t *testing.T) {
	z, tg := zipped(t, "main.tf=zip", "sub/main.tf=sub"), tarred(t, "main.tf=tar")
	sum := sha256.Sum256(z)
	good := hex.EncodeToString(sum[:])
	var asked []string
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.String())
		mu.Unlock()
		switch r.URL.Path {
		case "/a.zip", "/odd":
			_, _ = w.Write(z)
		case "/a.tar.gz":
			_, _ = w.Write(tg)
		case "/sums":
			fmt.Fprintf(w, "00  other\n%s  a.zip\n", good)
		case "/header":
			w.Header().Set("X-Terraform-Get", "/a.zip//sub")
			w.WriteHeader(http.StatusNoContent)
		case "/meta":
			fmt.Fprintf(w, `<html><head><META NAME="terraform-get" content="http://%s/a.tar.gz"></head></html>`, r.Host)
		case "/body":
			fmt.Fprint(w, `<html><body><meta name="terraform-get" content="/a.zip"></body></html>`)
		case "/circle":
			w.Header().Set("X-Terraform-Get", "./circle")
		case "/local":
			w.Header().Set("X-Terraform-Get", "/../../etc")
		case "/file":
			w.Header().Set("X-Terraform-Get", "file:///etc")
		case "/git-file":
			w.Header().Set("X-Terraform-Get", "git::file:///etc")
		case "/hg-file":
			w.Header().Set("X-Terraform-Get", "hg::FILE:///etc//sub")
		case "/git-path":
			w.Header().Set("X-Terraform-Get", "git::/etc")
		case "/loop.zip":
			http.Redirect(w, r, "/loop.zip", http.StatusFound)
		case "/text.zip":
			fmt.Fprint(w, "not a zip file")
		case "/auth.zip":
			if u, p, ok := r.BasicAuth(); !ok || u+p != "mepw" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = w.Write(z)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	f := newFetcher(t)
	content := map[string]string{"main.tf": "zip", "sub": "/", "sub/main.tf": "sub"}
	has(t, mustGet(t, f, srv.URL+"/a.zip"), content)
	has(t, mustGet(t, f, srv.URL+"/a.zip//sub?checksum="+good), content)
	has(t, mustGet(t, f, srv.URL+"/a.zip?checksum=sha256:"+good), content)
	has(t, mustGet(t, f, srv.URL+"/a.zip?checksum=file:"+srv.URL+"/sums"), content)
	has(t, mustGet(t, f, srv.URL+"/odd?archive=zip"), content)
	has(t, mustGet(t, f, srv.URL+"/a.tar.gz"), map[string]string{"main.tf": "tar"})
	has(t, mustGet(t, f, srv.URL+"/meta"), map[string]string{"main.tf": "tar"})
	p := mustGet(t, f, srv.URL+"/header")
	has(t, p, content)
	if p.Subdir != "sub" {
		t.Errorf("subdirectory %q", p.Subdir)
	}
	getFails(t, f, srv.URL+"/a.zip?checksum=sha256:"+strings.Repeat("0", 64), "the sha256 checksum of the package is")
	getFails(t, f, srv.URL+"/a.zip?checksum=xyz", "not a checksum")
	getFails(t, f, srv.URL+"/body", "does not say where the module is")
	getFails(t, f, srv.URL+"/circle", "more than 10 times")
	getFails(t, f, srv.URL+"/file", "a place on this machine")
	getFails(t, f, srv.URL+"/git-file", "a place on this machine")
	getFails(t, f, srv.URL+"/hg-file", "a place on this machine")
	getFails(t, f, srv.URL+"/git-path", "")
	getFails(t, f, srv.URL+"/local", "")
	getFails(t, f, srv.URL+"/loop.zip", "redirects")
	getFails(t, f, srv.URL+"/text.zip", "cannot unpack")
	getFails(t, f, srv.URL+"/missing.zip", "404")
	getFails(t, f, srv.URL+"/auth.zip", "401")
	f = again(f, 0)
	f.Home = t.TempDir()
	put(t, filepath.Join(f.Home, ".netrc"), "machine other login x password y\nmachine 127.0.0.1\n login me password pw\n")
	has(t, mustGet(t, f, srv.URL+"/auth.zip"), content)
	if d := cmp.Diff("/header?terraform-get=1", func() string {
		for _, a := range asked {
			if strings.HasPrefix(a, "/header") {
				return a
			}
		}
		return ""
	}()); d != "" {
		t.Error(d)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "m", "main.tf"), "live")
	put(t, filepath.Join(dir, "a.zip"), string(zipped(t, "main.tf=zip")))
	f := newFetcher(t)
	if p := mustGet(t, f, filepath.Join(dir, "m")); !p.Live || p.Dir != filepath.Join(dir, "m") {
		t.Error(p)
	}
	has(t, mustGet(t, f, filepath.Join(dir, "a.zip")), map[string]string{"main.tf": "zip"})
	getFails(t, f, filepath.Join(dir, "none"), "no such file")
	getFails(t, f, filepath.Join(dir, "m", "main.tf"), "neither a directory nor an archive")
	getFails(t, f, "file://host/x", "cannot name the host")
}

func TestPlace(t *testing.T) {
	dir, _ := repository(t)
	f := newFetcher(t)
	p := mustGet(t, f, "git::file://"+dir)
	ctx := context.Background()
	work := t.TempDir()
	a, b, c := filepath.Join(work, "a"), filepath.Join(work, "b"), filepath.Join(work, "c")
	for _, x := range []struct{ dir, sibling string }{{a, ""}, {b, a}, {c, a}} {
		if err := f.Place(ctx, p, x.dir, Sharing{Sibling: x.sibling, Several: true}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(files(t, p.Dir), files(t, x.dir)); d != "" {
			t.Error(d)
		}
	}
	sa, _ := os.Stat(filepath.Join(a, "main.tf"))
	sb, _ := os.Stat(filepath.Join(b, "main.tf"))
	sp, _ := os.Stat(filepath.Join(p.Dir, "main.tf"))
	if !os.SameFile(sa, sb) || os.SameFile(sa, sp) || sa.Mode().Perm() != 0o444 {
		t.Error("siblings do not share their files, or share them with the cache", sa.Mode())
	}
	// Writing into a placed module changes neither the cache nor other directories.
	put(t, filepath.Join(b, "new.zip"), "x")
	if err := os.Remove(filepath.Join(b, "main.tf")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(b, "main.tf"), "changed")
	if got := files(t, a)["main.tf"] + files(t, p.Dir)["main.tf"]; got != "twotwo" {
		t.Error(got)
	}
	// The files of a changed sibling are not shared.
	if err := os.Chmod(filepath.Join(a, "main.tf"), 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(a, "main.tf"), "spoiled")
	if err := f.Place(ctx, p, c, Sharing{Sibling: a, Several: true}); err != nil || files(t, c)["main.tf"] != "two" {
		t.Error(err, files(t, c))
	}
	// That changes neither another directory nor later copies from the cache.
	if got := files(t, mustGet(t, again(f, 0), "git::file://"+dir).Dir)["main.tf"]; got != "two" {
		t.Error(got)
	}
}

// A large package that several calls use is stored once. A change to one of its files does not
// spread.
func TestPlaceLarge(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	put(t, filepath.Join(dir, "main.tf"), "main")
	put(t, filepath.Join(dir, "blob"), strings.Repeat("x", shareAbove))
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "x")
	f := newFetcher(t)
	src := "git::file://" + dir + "?ref=" + git(t, dir, "rev-parse", "HEAD")
	p := mustGet(t, f, src)
	work := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := f.Place(context.Background(), p, filepath.Join(work, name), Sharing{Several: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Place(context.Background(), p, filepath.Join(work, "alone"), Sharing{}); err != nil {
		t.Fatal(err)
	}
	a, _ := os.Stat(filepath.Join(work, "a", "blob"))
	b, _ := os.Stat(filepath.Join(work, "b", "blob"))
	alone, _ := os.Stat(filepath.Join(work, "alone", "blob"))
	put(t, filepath.Join(work, "plain"), "")
	plain, _ := os.Stat(filepath.Join(work, "plain"))
	if !os.SameFile(a, b) && reflinks(t) == false || os.SameFile(a, alone) || alone.Mode().Perm() != plain.Mode().Perm() {
		t.Error(a.Mode(), alone.Mode())
	}
	blob := filepath.Join(work, "a", "blob")
	if err := os.Chmod(blob, 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, blob, "changed")
	if got := files(t, mustGet(t, again(f, 0), src).Dir)["blob"]; len(got) != shareAbove {
		t.Errorf("the cache gives out %q", got)
	}
	if got := files(t, filepath.Join(work, "alone"))["blob"]; len(got) != shareAbove {
		t.Errorf("the change went to another directory: %q", got)
	}
}

// reflinks reports whether the file system of temporary directories supports reflinks.
func reflinks(t *testing.T) bool {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a"), "x")
	a, err := os.Open(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := os.Create(filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return Reflink(b, a)
}

func TestSpoiledCacheIsFetchedAnew(t *testing.T) {
	dir, first := repository(t)
	f := newFetcher(t)
	src := "git::file://" + dir + "?ref=" + first
	p := mustGet(t, f, src)
	bad := filepath.Join(p.Dir, "main.tf")
	if err := os.Chmod(bad, 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, bad, "spoiled")
	if got := files(t, mustGet(t, again(f, 0), src).Dir)["main.tf"]; got != "one" {
		t.Error(got)
	}
	put(t, filepath.Join(p.Dir, "added.tf"), "x")
	if got := files(t, mustGet(t, again(f, 0), src).Dir); got["added.tf"] != "" {
		t.Error(got)
	}
	for _, e := range []string{"addr", "tree"} {
		entries, _ := os.ReadDir(filepath.Join(f.Dir, e))
		for _, x := range entries {
			if strings.HasSuffix(x.Name(), ".json") {
				put(t, filepath.Join(f.Dir, e, x.Name()), "{broken")
			}
		}
	}
	if got := files(t, mustGet(t, again(f, 0), src).Dir)["main.tf"]; got != "one" {
		t.Error(got)
	}
}

func TestPackagesWithLinksOut(t *testing.T) {
	dir, _ := repository(t)
	for _, target := range []string{"/etc/passwd", "../../x"} {
		_ = os.Remove(filepath.Join(dir, "out"))
		if err := os.Symlink(target, filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-qm", target)
		getFails(t, newFetcher(t), "git::file://"+dir, "leads out of it")
	}
}

func TestManyProcessesOneCache(t *testing.T) {
	dir, _ := repository(t)
	f := newFetcher(t)
	work := t.TempDir()
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			g := again(f, 0) // shares only the directory
			p, err := g.Get(context.Background(), Request{Address: address(t, "git::file://"+dir)})
			if err == nil {
				err = g.Place(context.Background(), p, filepath.Join(work, fmt.Sprint(i)), Sharing{})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 30 {
		if got := files(t, filepath.Join(work, fmt.Sprint(i)))["main.tf"]; got != "two" {
			t.Errorf("%d: %q", i, got)
		}
	}
}

// The same content is fetched for many addresses concurrently. A caller that received a package
// can continue to use it.
func TestOneContentManyAddresses(t *testing.T) {
	dir := t.TempDir()
	packed := string(zipped(t, "main.tf=zip", "sub/x.tf=x"))
	f := newFetcher(t)
	var wg sync.WaitGroup
	for i := range 60 {
		archive := filepath.Join(dir, fmt.Sprintf("%d.zip", i))
		put(t, archive, packed)
		a := address(t, archive)
		wg.Go(func() {
			p, err := f.Get(context.Background(), Request{Address: a})
			if err != nil {
				t.Error(err)
				return
			}
			for range 200 {
				if _, err := os.Stat(filepath.Join(p.Dir, "sub", "x.tf")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestFind(t *testing.T) {
	z := zipped(t, "main.tf=zip", "sub/x.tf=x")
	var token string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization")
		_, _ = w.Write(z)
	}))
	defer srv.Close()
	f := newFetcher(t)
	asked := 0
	r := Request{Key: "example.com/a/b/c@1.0.0", Fixed: true, Find: func(context.Context) (Found, error) {
		asked++
		u, _ := url.Parse(srv.URL)
		a, err := ResolveLocation("/package//sub", u)
		return Found{a, http.Header{"Authorization": {"Bearer x"}}, true}, err
	}}
	for range 2 {
		p, err := f.Get(context.Background(), r)
		if err != nil || p.Subdir != "sub" || p.Hash == "" {
			t.Fatal(p, err)
		}
		f = again(f, 90*24*time.Hour)
	}
	if asked != 1 || token != "Bearer x" {
		t.Error(asked, token)
	}
}

func TestCalledOff(t *testing.T) {
	dir, _ := repository(t)
	f := newFetcher(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.Get(ctx, Request{Address: address(t, "git::file://"+dir)}); err == nil {
		t.Error("fetched although called off")
	}
	if got := files(t, mustGet(t, f, "git::file://"+dir).Dir)["main.tf"]; got != "two" {
		t.Error(got)
	}
}

// After a failed download, the next call of the same Fetcher downloads again. After a canceled
// one, a waiting caller does.
func TestGetForgetsFailures(t *testing.T) {
	f := newFetcher(t)
	calls := 0
	find := func(ctx context.Context) (Found, error) {
		if calls++; calls == 1 {
			return Found{}, errors.New("down")
		}
		return Found{Address: address(t, "git::file://"+t.TempDir()+"/none")}, errors.New("down again")
	}
	for range 2 {
		if _, err := f.Get(t.Context(), Request{Key: "k", Find: find}); err == nil {
			t.Error("no error")
		}
	}
	if calls != 2 {
		t.Errorf("asked %d times, want 2", calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	entered, got := make(chan bool), make(chan error)
	go func() {
		_, err := f.Get(ctx, Request{Key: "c", Find: func(ctx context.Context) (Found, error) {
			close(entered)
			<-ctx.Done()
			return Found{}, ctx.Err()
		}})
		got <- err
	}()
	<-entered
	go func() {
		_, err := f.Get(t.Context(), Request{Key: "c", Find: func(context.Context) (Found, error) { return Found{}, errors.New("asked anew") }})
		got <- err
	}()
	cancel()
	texts := []string{(<-got).Error(), (<-got).Error()}
	slices.Sort(texts)
	if !slices.Equal(texts, []string{"asked anew", context.Canceled.Error()}) {
		t.Errorf("got %q", texts)
	}
}
