package encryption

import (
	"strings"
	"testing"
)

const gcpConfig = `
key_provider "gcp_kms" "k" {
  kms_encryption_key = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
  key_length         = 32
}
method "aes_gcm" "m" { keys = key_provider.gcp_kms.k }
state { method = method.aes_gcm.m }
`

func TestGCPMistakes(t *testing.T) {
	if _, ds := Parse(nil, strings.Replace(gcpConfig, "32", "0", 1), static, services(t, t.TempDir())); !ds.HasErrors() {
		t.Error("a key of no bytes")
	}
}
