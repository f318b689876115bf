package cli_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/terrace-iac/terrace/internal/net/registry/registrytest"
)

// startRegistry starts a registry for a script. It contains the provider terrace/small for two
// platforms, terrace/far for a platform that does not exist, and the module terrace/box/test
// in versions 1.0.0 and 1.1.0. It requires a token only if TOKEN is set. It is the default
// registry. With the argument "odd", it returns a warning for each provider and signs with an
// expired key.
func startRegistry(t *testing.T, ts *testscript.TestScript, args []string) {
	s := registrytest.New(t)
	s.Token, s.Login = ts.Getenv("TOKEN"), true
	if slices.Contains(args, "odd") {
		s.Warnings = []string{"This provider has moved."}
		s.Key = registrytest.NewKey(t, time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))
	}
	s.AddProvider(t, "terrace", "far", "1.0.0", "plan9_mips", "far")
	for _, version := range []string{"1.0.0", "1.1.0"} {
		s.AddProvider(t, "terrace", "small", version, "linux_amd64", "linux "+version)
		s.AddProvider(t, "terrace", "small", version, "darwin_arm64", "darwin "+version)
		where := "/box-" + version + ".zip"
		s.AddFile(where, boxModule(ts, version))
		s.AddModule("terrace", "box", "test", version, s.URL+where, s.Token != "")
	}
	rc := fmt.Sprintf("host \"registry.opentofu.org\" {\n  services = {\n    \"providers.v1\" = \"%[1]s/providers/\"\n    \"modules.v1\" = \"%[1]s/modules/\"\n  }\n}\n", s.URL)
	ts.Check(os.WriteFile(ts.MkAbs(".home/registry.tfrc"), []byte(rc), 0o666))
	ts.Setenv("REGISTRY", s.Host)
	ts.Setenv("SSL_CERT_FILE", s.CAFile(t))
	ts.Setenv("WITH_REGISTRY", ts.MkAbs(".home/registry.tfrc"))
}

// boxModule returns the archive of a module that calls a nested module.
func boxModule(ts *testscript.TestScript, version string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{
		"main.tf":       "module \"inner\" {\n  source = \"./inner\"\n}\noutput \"version\" {\n  value = \"" + version + " ${module.inner.name}\"\n}\n",
		"inner/main.tf": "output \"name\" {\n  value = basename(path.module)\n}\n",
	} {
		w, err := z.Create(name)
		ts.Check(err)
		_, err = w.Write([]byte(text))
		ts.Check(err)
	}
	ts.Check(z.Close())
	return b.Bytes()
}

// browser is a web browser: it opens a page and follows redirects.
func browser() {
	resp, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = resp.Body.Close()
}
