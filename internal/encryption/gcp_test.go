package encryption

import (
	"bytes"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/sys"
)

const gcpConfig = `
key_provider "gcp_kms" "k" {
  kms_encryption_key = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
  key_length         = 32
}
method "aes_gcm" "m" { keys = key_provider.gcp_kms.k }
state { method = method.aes_gcm.m }
`

func TestGCP(t *testing.T) {
	s := servers.GCS(t)
	with := services(t, t.TempDir())
	with.Transport, with.Env = s.Transport(t), sys.Env{"GOOGLE_OAUTH_ACCESS_TOKEN=" + s.Token}
	plain := []byte(`{"version":4,"serial":1,"lineage":"l"}`)
	sealed, err := parse(t, gcpConfig, with).State(ctx).Seal(plain, 1, "l")
	if err != nil {
		t.Fatal(err)
	}
	with.Shared = nil // another process
	back, migrate, err := parse(t, gcpConfig, with).State(ctx).Open(sealed)
	if err != nil || migrate || !bytes.Equal(back, plain) {
		t.Errorf("%s %v %v", back, migrate, err)
	}
	s.Deny()
	with.Shared = nil
	if _, _, err := parse(t, gcpConfig, with).State(ctx).Open(sealed); err == nil || !strings.Contains(err.Error(), "useToDecrypt") || strings.Contains(err.Error(), s.Token) {
		t.Errorf("%v", err)
	}
	if _, ds := Parse(nil, strings.Replace(gcpConfig, "32", "0", 1), static, with); !ds.HasErrors() {
		t.Error("a key of no bytes")
	}
}
