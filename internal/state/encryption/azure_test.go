package encryption

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
)

const azureConfig = `
key_provider "azure_vault" "k" {
  vault_uri      = "https://acme.vault.azure.net"
  vault_key_name = "states"
  key_length     = 32
}
method "aes_gcm" "m" { keys = key_provider.azure_vault.k }
state { method = method.aes_gcm.m }
`

const azureSymmetric = `
  symmetric          = true
  symmetric_key_size = 256
`

func azureEnv(s *servers.AzureCloud) sys.Env {
	return sys.Env{"ARM_TENANT_ID=" + s.Tenant, "ARM_CLIENT_ID=" + s.Client, "ARM_CLIENT_SECRET=" + s.Secret}
}

func TestAzureMistakes(t *testing.T) {
	for _, change := range [][2]string{{"32", "0"}, {"https://", "http://"}, {"key_length", "symmetric = true\nkey_length"}, {`"states"`, `""`}} {
		if _, ds := Parse(nil, strings.Replace(azureConfig, change[0], change[1], 1), static, services(t, t.TempDir())); !ds.HasErrors() {
			t.Errorf("%s was accepted in place of %s", change[1], change[0])
		}
	}
}

// A vault that requests a token for another resource does not get one.
func TestAzureChallenge(t *testing.T) {
	with := services(t, t.TempDir())
	for header, want := range map[string]string{
		`Bearer authorization="x", resource="https://management.azure.com"`: "something else than a key vault",
		`Bearer resource="http://vault.azure.net"`:                          "something else than a key vault",
		`Basic realm="x"`: "does not answer as a key vault",
	} {
		c := parse(t, azureConfig, with)
		p, err := c.provider(c.providers["key_provider.azure_vault.k"])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.(*azureVault).challenge(header); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s %v", header, got, err)
		}
	}
}
