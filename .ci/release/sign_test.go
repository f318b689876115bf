package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// SHA256SUMS has every published file but those that are written after it.
func TestChecksums(t *testing.T) {
	sums := listed(t)
	later := []string{sumsFile, sumsFile + ".sig", sumsFile + ".sigstore.json", publicKeyFile, "provenance.sigstore.json"}
	for _, name := range names(t, built.out) {
		want := hexSum(read(t, built.out, name))
		if slices.Contains(later, name) {
			want = ""
		}
		if sums[name] != want {
			t.Errorf("checksum of %s: %q, want %q", name, sums[name], want)
		}
	}
}

// listed returns the checksums in SHA256SUMS.
func listed(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(string(read(t, built.out, sumsFile))) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok {
			t.Fatalf("line %q", line)
		}
		out[name] = sum
	}
	return out
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// publicKey reads cosign.pub, as a user does.
func publicKey(t *testing.T) *ecdsa.PublicKey {
	t.Helper()
	block, _ := pem.Decode(read(t, built.out, publicKeyFile))
	if block == nil || block.Type != "PUBLIC KEY" {
		t.Fatal("cosign.pub has no public key")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*ecdsa.PublicKey)
}

// A signature of the checksums, by itself and in a bundle, is valid for SHA256SUMS alone.
func TestSignatures(t *testing.T) {
	key := publicKey(t)
	alone, err := base64.StdEncoding.DecodeString(string(read(t, built.out, sumsFile+".sig")))
	if err != nil {
		t.Fatal(err)
	}
	var b bundle
	if err := json.Unmarshal(read(t, built.out, sumsFile+".sigstore.json"), &b); err != nil {
		t.Fatal(err)
	}
	sums := read(t, built.out, sumsFile)
	changed := bytes.Replace(sums, []byte("1.2.3"), []byte("1.2.4"), 1)
	for name, signature := range map[string][]byte{"alone": alone, "bundle": b.Message.Signature} {
		sum, other := sha256.Sum256(sums), sha256.Sum256(changed)
		if !ecdsa.VerifyASN1(key, sum[:], signature) {
			t.Errorf("%s: the signature is not valid", name)
		}
		if ecdsa.VerifyASN1(key, other[:], signature) {
			t.Errorf("%s: the signature is valid for another file", name)
		}
	}
	if got := hex.EncodeToString(b.Message.Digest.Digest); got != hexSum(sums) {
		t.Errorf("checksum in the bundle: %s", got)
	}
}

// The provenance names the commit and all files that were built, and its signature is valid.
func TestProvenance(t *testing.T) {
	var b bundle
	if err := json.Unmarshal(read(t, built.out, "provenance.sigstore.json"), &b); err != nil {
		t.Fatal(err)
	}
	verifier, err := dsse.NewEnvelopeVerifier(built.key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verifier.Verify(context.Background(), b.Envelope); err != nil {
		t.Error(err)
	}
	text, err := b.Envelope.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, read(t, built.out, provenanceFile)) {
		t.Error("the signed provenance is not provenance.json")
	}
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters   map[string]any
				ResolvedDependencies []struct{ Digest map[string]string }
			}
			RunDetails struct{ Builder struct{ ID string } }
		}
	}
	if err := json.Unmarshal(text, &statement); err != nil {
		t.Fatal(err)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("types: %s, %s", statement.Type, statement.PredicateType)
	}
	p := statement.Predicate
	if got := p.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"]; got != built.source.commit {
		t.Errorf("commit: %q", got)
	}
	if p.BuildDefinition.ExternalParameters["version"] != "v1.2.3" || p.RunDetails.Builder.ID != "urn:test:builder" {
		t.Errorf("provenance: %+v", p)
	}
	sums := listed(t)
	delete(sums, provenanceFile)
	for _, s := range statement.Subject {
		if sums[s.Name] != s.Digest["sha256"] {
			t.Errorf("%s: checksum %q, want %q", s.Name, s.Digest["sha256"], sums[s.Name])
		}
		delete(sums, s.Name)
	}
	if len(sums) > 0 {
		t.Errorf("the provenance does not name %v", sums)
	}
	b.Envelope.Payload = base64.StdEncoding.EncodeToString(bytes.Replace(text, []byte(built.source.commit), []byte(strings.Repeat("0", 40)), 1))
	if _, err := verifier.Verify(context.Background(), b.Envelope); err == nil {
		t.Error("the signature is valid for another commit")
	}
}

// cosign itself accepts the signatures, and refuses changed files.
func TestCosign(t *testing.T) {
	if _, err := exec.LookPath("cosign"); err != nil {
		t.Skip("cosign is not installed")
	}
	changed := filepath.Join(t.TempDir(), "changed")
	if err := os.WriteFile(changed, append(read(t, built.out, sumsFile), '\n'), 0o666); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(built.out, built.base(target{"linux", "amd64"})+".tar.gz")
	for name, c := range map[string]struct {
		args string
		file string
	}{
		"bundle":     {"verify-blob --bundle SHA256SUMS.sigstore.json", sumsFile},
		"signature":  {"verify-blob --new-bundle-format=false --signature SHA256SUMS.sig", sumsFile},
		"provenance": {"verify-blob-attestation --bundle provenance.sigstore.json --type slsaprovenance1", archive},
	} {
		for _, file := range []string{c.file, changed} {
			args := append(strings.Fields(c.args), "--key", publicKeyFile, "--insecure-ignore-tlog", file)
			command := exec.Command("cosign", args...)
			command.Dir = built.out
			b, err := command.CombinedOutput()
			if (err == nil) != (file == c.file) {
				t.Errorf("%s: cosign %s: %v\n%s", name, strings.Join(args, " "), err, b)
			}
		}
	}
}

// Keys that cannot sign in the form of cosign are errors.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	good, err := newKey(dir, elliptic.P256())
	if err != nil {
		t.Fatal(err)
	}
	other, err := newKey(dir, elliptic.P384())
	if err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain.key")
	key, err := readKey(good, password)
	if err != nil {
		t.Fatal(err)
	}
	content, err := x509.MarshalPKCS8PrivateKey(key.private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		plain:                           {Type: "PRIVATE KEY", Bytes: content},
		filepath.Join(dir, "other.key"): {Type: "CERTIFICATE"},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "text.key"), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := readKey(plain, ""); err != nil || !again.private.Equal(key.private) {
		t.Errorf("a key without a password: %v", err)
	}
	for _, c := range []struct{ path, password, want string }{
		{good, "wrong", "COSIGN_PASSWORD"},
		{other, password, "P-256"},
		{filepath.Join(dir, "other.key"), "", "CERTIFICATE"},
		{filepath.Join(dir, "text.key"), "", "not a PEM file"},
		{filepath.Join(dir, "none.key"), "", "no such file"},
	} {
		if _, err := readKey(c.path, c.password); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", filepath.Base(c.path), err, c.want)
		}
	}
}
