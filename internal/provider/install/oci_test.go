package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/oci"
	"github.com/terrace-iac/terrace/internal/net/registry/registrytest"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

func digest(b []byte) string {
	s := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(s[:])
}

// pushProvider pushes a provider's packages, by platform, to a registry.
func pushProvider(t *testing.T, c *http.Client, base, repo, tag string, zips map[string][]byte) {
	t.Helper()
	send := func(method, where, kind string, body []byte) {
		req, err := http.NewRequest(method, base+"/v2/"+repo+where, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode >= 300 {
			t.Fatal(where, resp.Status)
		}
	}
	blob := func(b []byte) oci.Descriptor {
		send(http.MethodPost, "/blobs/uploads/?digest="+digest(b), "application/octet-stream", b)
		return oci.Descriptor{MediaType: "application/vnd.oci.empty.v1+json", Digest: digest(b), Size: int64(len(b))}
	}
	index := map[string]any{"schemaVersion": 2, "mediaType": oci.IndexType, "artifactType": ociProvider}
	var list []oci.Descriptor
	for pl, z := range zips {
		layer := blob(z)
		layer.MediaType = ociLayer
		text, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": oci.ManifestType, "artifactType": ociTarget, "config": blob([]byte("{}")), "layers": []oci.Descriptor{layer}})
		if err != nil {
			t.Fatal(err)
		}
		send(http.MethodPut, "/manifests/"+digest(text), oci.ManifestType, text)
		os, arch, _ := strings.Cut(pl, "_")
		list = append(list, oci.Descriptor{MediaType: oci.ManifestType, ArtifactType: ociTarget, Digest: digest(text), Size: int64(len(text)), Platform: &oci.Platform{OS: os, Architecture: arch}})
	}
	index["manifests"] = list
	text, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	send(http.MethodPut, "/manifests/"+tag, oci.IndexType, text)
}

func TestOCIMirror(t *testing.T) {
	srv := httptest.NewTLSServer(registry.New())
	defer srv.Close()
	host := strings.TrimPrefix(srv.URL, "https://")
	p := addr.Provider{Host: "example.com", Namespace: "ns", Type: "aa"}
	for _, v := range []string{"1.0.0", "1.1.0_build"} {
		zips := map[string][]byte{}
		for _, pl := range []string{"linux_amd64", "darwin_arm64"} {
			zips[pl] = registrytest.Zip(t, "terraform-provider-aa_v"+v, program(p, v+pl))
		}
		pushProvider(t, srv.Client(), srv.URL, "ns/aa", v, zips)
	}
	b := newBench(t)
	rc := fmt.Sprintf("provider_installation {\n oci_mirror {\n repository_template = \"%s/${namespace}/${type}\"\n include = [\"example.com/*/*\"]\n }\n}\n", host)
	write(t, filepath.Join(b.WorkDir, "rc"), rc)
	env := sys.Env{"TF_CLI_CONFIG_FILE=" + filepath.Join(b.WorkDir, "rc")}
	conf, ds := cliconfig.Load(nil, env, "", b.WorkDir)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	b.Config, b.Client = conf, srv.Client()
	b.mustInit(reqs(p, "~> 1.0"))
	if b.version(p) != "1.1.0+build" || !slices.Contains(b.events, "Installed example.com/ns/aa v1.1.0+build (verified checksum)") {
		t.Errorf("%v\n%s", b.events, b.locked.Bytes())
	}
	b.fails(reqs(addr.Provider{Host: "example.com", Namespace: "ns", Type: "zz"}, ""), "was not found in any of the search locations\n\n  - "+host+"/ns/zz")
	b.Platform = "plan9_amd64"
	b.fails(reqs(p, ""), "does not have a package available")

	tofu := os.Getenv("TERRACE_TEST_TOFU")
	if tofu == "" {
		t.Skip("TERRACE_TEST_TOFU names no binary to compare with")
	}
	write(t, filepath.Join(b.WorkDir, "main.tf"), fmt.Sprintf("terraform {\n required_providers {\n aa = {\n source = %q\n version = \"~> 1.0\"\n }\n }\n}\n", p))
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	if err := os.RemoveAll(filepath.Join(b.WorkDir, ".terraform")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tofu, "init", "-no-color")
	cmd.Dir = b.WorkDir
	cmd.Env = append(append(os.Environ(), env...), "SSL_CERT_FILE="+ca)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	theirs, err := os.ReadFile(filepath.Join(b.WorkDir, lock.Name))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(theirs), string(b.locked.Bytes())); d != "" {
		t.Error(d)
	}
}
