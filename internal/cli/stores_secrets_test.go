package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"golang.org/x/tools/txtar"
)

// A secretStore is a kind of store whose secret arguments contain the planted secret.
type secretStore struct {
	kind   string
	plain  []string // arguments and their expressions, in pairs
	secret []string // arguments
	values map[string]string
	env    []string // variables that set secret arguments
	slow   bool     // each command takes seconds, so run one of each kind
}

func secretStores(url string) []secretStore {
	host := strings.TrimPrefix(url, "http://")
	login := []string{"storage_account_name", `"acmestates"`, "container_name", `"states"`, "key", `"a"`, "use_azuread_auth", "true", "client_id", `"00000000-0000-0000-0000-000000000001"`, "tenant_id", `"00000000-0000-0000-0000-000000000002"`}
	return []secretStore{
		{kind: "s3", plain: []string{"bucket", `"states"`, "key", `"a"`, "region", `"us-east-1"`, "use_path_style", "true", "max_retries", "0", "access_key", `"AKIA"`, "skip_requesting_account_id", "true", "endpoints", `{ s3 = "` + url + `", dynamodb = "` + url + `" }`},
			secret: []string{"secret_key", "token"}, env: []string{"AWS_ACCESS_KEY_ID=AKIA", "AWS_SECRET_ACCESS_KEY=hunter2pw", "AWS_SESSION_TOKEN=hunter2pw"}},
		{kind: "s3", plain: []string{"bucket", `"states"`, "key", `"a"`, "region", `"us-east-1"`}, secret: []string{"sse_customer_key"}, env: []string{"AWS_SSE_CUSTOMER_KEY=hunter2pw"}},
		{kind: "gcs", plain: []string{"bucket", `"states"`, "storage_custom_endpoint", `"` + url + `/storage/v1/"`}, secret: []string{"access_token"}, env: []string{"GOOGLE_OAUTH_ACCESS_TOKEN=hunter2pw"}},
		{kind: "gcs", plain: []string{"bucket", `"states"`, "storage_custom_endpoint", `"` + url + `/storage/v1/"`}, secret: []string{"credentials", "encryption_key"}, values: map[string]string{"credentials": `{\"type\": hunter2pw`}, env: []string{"GOOGLE_CREDENTIALS={hunter2pw", "GOOGLE_ENCRYPTION_KEY=hunter2pw"}},
		{kind: "azurerm", plain: []string{"storage_account_name", `"acmestates"`, "container_name", `"states"`, "key", `"a"`}, secret: []string{"sas_token"}, env: []string{"ARM_SAS_TOKEN=hunter2pw"}},
		{kind: "azurerm", plain: []string{"storage_account_name", `"acmestates"`, "container_name", `"states"`, "key", `"a"`}, secret: []string{"access_key", "customer_provided_key"}, env: []string{"ARM_ACCESS_KEY=hunter2pw"}},
		{kind: "azurerm", plain: login, secret: []string{"client_secret"}, env: []string{"ARM_CLIENT_SECRET=hunter2pw"}, slow: true},
		{kind: "azurerm", plain: append([]string{"use_oidc", "true"}, login...), secret: []string{"oidc_token"}, env: []string{"ARM_OIDC_TOKEN=hunter2pw"}, slow: true},
		{kind: "azurerm", plain: append([]string{"use_oidc", "true", "oidc_request_url", `"` + url + `/token"`}, login...), secret: []string{"oidc_request_token"}, env: []string{"ARM_OIDC_REQUEST_TOKEN=hunter2pw"}, slow: true},
		{kind: "azurerm", plain: append([]string{"client_certificate", `"bm9uZQ=="`}, login...), secret: []string{"client_certificate_password"}, env: []string{"ARM_CLIENT_CERTIFICATE_PASSWORD=hunter2pw"}},
		{kind: "azurerm", plain: login, secret: []string{"client_certificate"}, env: []string{"ARM_CLIENT_CERTIFICATE=hunter2pw"}},
		{kind: "etcdv3", plain: []string{"endpoints", `["` + url + `"]`, "username", `"me"`}, secret: []string{"password"}, env: []string{"ETCDV3_PASSWORD=hunter2pw"}, slow: true},
		{kind: "http", plain: []string{"address", `"` + url + `/state"`, "username", `"me"`, "retry_max", "0"}, secret: []string{"password"}, env: []string{"TF_HTTP_PASSWORD=hunter2pw"}},
		{kind: "http", plain: []string{"address", `"` + url + `/state"`, "retry_max", "0"}, secret: []string{"client_private_key_pem", "client_certificate_pem"}, env: []string{"TF_HTTP_CLIENT_PRIVATE_KEY_PEM=hunter2pw"}},
		{kind: "consul", plain: []string{"path", `"app"`, "address", `"` + host + `"`}, secret: []string{"access_token", "http_auth"}, env: []string{"CONSUL_HTTP_TOKEN=hunter2pw", "CONSUL_HTTP_AUTH=u:hunter2pw"}},
		{kind: "kubernetes", plain: []string{"secret_suffix", `"app"`, "host", `"` + url + `"`}, secret: []string{"token", "password"}, env: []string{"KUBE_TOKEN=hunter2pw", "KUBE_PASSWORD=hunter2pw"}},
		{kind: "kubernetes", plain: []string{"secret_suffix", `"app"`, "host", `"https://` + host + `"`}, secret: []string{"client_key", "client_certificate"}, env: []string{"KUBE_CLIENT_KEY_DATA=hunter2pw"}},
		{kind: "cos", plain: []string{"bucket", `"states-1250000000"`, "region", `"ap-guangzhou"`, "secret_id", `"id"`}, secret: []string{"secret_key", "security_token"}, env: []string{"TENCENTCLOUD_SECRET_KEY=hunter2pw", "TENCENTCLOUD_SECURITY_TOKEN=hunter2pw"}},
		{kind: "oss", plain: []string{"bucket", `"states"`, "endpoint", `"` + url + `"`, "tablestore_endpoint", `"` + url + `"`, "tablestore_table", `"locks"`, "access_key", `"id"`}, secret: []string{"secret_key", "security_token"}, env: []string{"ALICLOUD_SECRET_KEY=hunter2pw", "ALICLOUD_SECURITY_TOKEN=hunter2pw"}},
		{kind: "remote", plain: []string{"hostname", `"` + host + `"`, "organization", `"acme"`}, secret: []string{"token"}, env: []string{"TF_TOKEN_127_0_0_1=hunter2pw"}},
		{kind: "pg", plain: []string{"schema_name", `"s"`}, secret: []string{"conn_str"}, values: map[string]string{"conn_str": "postgres://u:hunter2pw@" + host + "/x?connect_timeout=1"}, env: []string{"PG_CONN_STR=postgres://u:hunter2pw@" + host + "/x?connect_timeout=1", "PGPASSWORD=hunter2pw"}},
	}
}

func (s secretStore) value(name string) string {
	if v := s.values[name]; v != "" {
		return v
	}
	return "hunter2pw"
}

// TestStoresKeepSecrets sets every secret argument of the stores to the planted secret, in
// every place where arguments are allowed. The store refuses every request. No output, log or
// file may contain the secret.
func TestStoresKeepSecrets(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close) // after the subtests have ended
	for i, s := range secretStores(refusing.URL) {
		arguments := func(secret bool) string {
			text := inBlock(s.plain...)
			if secret {
				for _, name := range s.secret {
					text += fmt.Sprintf("    %s = \"%s\"\n", name, s.value(name))
				}
			}
			return text
		}
		workspaces, object := "", ""
		if s.kind == "remote" {
			workspaces, object = "    workspaces {\n      name = \"app\"\n    }\n", "    workspaces = { name = \"app\" }\n"
		}
		block := func(secret bool) string {
			return "-- main.tf --\nterraform {\n  backend \"" + s.kind + "\" {\n" + arguments(secret) + workspaces + "  }\n}\n"
		}
		var pairs, file []string
		for _, name := range s.secret {
			pairs = append(pairs, "-backend-config="+name+"="+s.value(name))
			file = append(file, fmt.Sprintf("%s = \"%s\"", name, s.value(name)))
		}
		unit := func(generate string) string {
			return "-- main.tf --\n" + map[bool]string{true: "terraform {\n  backend \"" + s.kind + "\" {}\n}\n"}[generate == ""] +
				"-- terragrunt.hcl --\nremote_state {\n  backend = \"" + s.kind + "\"\n" + generate + "  config = {\n" + arguments(true) + object + "  }\n}\n"
		}
		lines := func(all ...string) (out [][]string) {
			for _, l := range all {
				out = append(out, strings.Fields(l))
			}
			return out
		}
		units := lines("plan", "state list", "backend doctor", "run --all plan --report-file=r.json --html=page.html --out-dir=plans", "run --all apply --non-interactive --report-file=r.xml -json")
		withPairs := append([]string{"init", "-input=false"}, pairs...)
		for name, c := range map[string]struct {
			files    string
			env      []string
			commands [][]string
		}{
			"block":                  {files: block(true), commands: lines("init -input=false", "init -json -input=false", "plan", "backend doctor")},
			"pairs":                  {files: block(false), commands: [][]string{withPairs, append(withPairs, "-json")}},
			"file":                   {files: block(false) + "-- c.tfbackend --\n" + strings.Join(file, "\n") + "\n", commands: lines("init -input=false -backend-config=c.tfbackend")},
			"environment":            {files: block(false), env: s.env, commands: lines("init -input=false", "init -json -input=false", "backend doctor")},
			"remote_state":           {files: unit(""), commands: units},
			"generated":              {files: unit("  generate = { path = \"backend.tf\", if_exists = \"overwrite\" }\n"), commands: units},
			"terraform_remote_state": {files: "-- main.tf --\ndata \"terraform_remote_state\" \"s\" {\n  backend = \"" + s.kind + "\"\n  config = {\n" + arguments(true) + object + "  }\n}\n", commands: lines("plan", "plan -json", "validate -json", "apply -auto-approve")},
		} {
			if s.slow {
				c.commands = c.commands[:1]
			}
			t.Run(fmt.Sprintf("%s %d/%s", s.kind, i, name), func(t *testing.T) {
				t.Parallel()
				keepsSecret(t, c.files, append(c.env, "HTTPS_PROXY="+refusing.URL), c.commands)
			})
		}
	}
}

// TestKeyProvidersKeepSecrets is the same test for key providers of encryption.
func TestKeyProvidersKeepSecrets(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close)
	azure := []string{"vault_uri", `"https://acme.vault.azure.net"`, "vault_key_name", `"k"`, "key_length", "32", "client_id", `"00000000-0000-0000-0000-000000000001"`, "tenant_id", `"00000000-0000-0000-0000-000000000002"`}
	for i, s := range []secretStore{
		{kind: "aws_kms", plain: []string{"kms_key_id", `"k"`, "key_spec", `"AES_256"`, "region", `"us-east-1"`, "access_key", `"AKIA"`, "max_retries", "0", "skip_requesting_account_id", "true", "skip_credentials_validation", "true"}, secret: []string{"secret_key", "token"}, env: []string{"AWS_ACCESS_KEY_ID=AKIA", "AWS_SECRET_ACCESS_KEY=hunter2pw", "AWS_SESSION_TOKEN=hunter2pw"}},
		{kind: "gcp_kms", plain: []string{"kms_encryption_key", `"projects/p/locations/l/keyRings/r/cryptoKeys/k"`, "key_length", "32"}, secret: []string{"access_token"}, env: []string{"GOOGLE_OAUTH_ACCESS_TOKEN=hunter2pw"}},
		{kind: "gcp_kms", plain: []string{"kms_encryption_key", `"projects/p/locations/l/keyRings/r/cryptoKeys/k"`, "key_length", "32"}, secret: []string{"credentials"}, values: map[string]string{"credentials": `{\"type\": hunter2pw`}, env: []string{"GOOGLE_CREDENTIALS={hunter2pw"}},
		{kind: "azure_vault", plain: azure, secret: []string{"client_secret"}, env: []string{"ARM_CLIENT_SECRET=hunter2pw"}},
		{kind: "azure_vault", plain: azure, secret: []string{"client_certificate", "client_certificate_password"}, env: []string{"ARM_CLIENT_CERTIFICATE=hunter2pw"}},
		{kind: "openbao", plain: []string{"key_name", `"k"`, "address", `"` + refusing.URL + `"`}, secret: []string{"token"}, env: []string{"BAO_TOKEN=hunter2pw"}},
		{kind: "external", plain: []string{"command", `["false", "hunter2pw"]`}},
		{kind: "external", plain: []string{"command", `["no-such-program", "hunter2pw"]`}},
		{kind: "pbkdf2", secret: []string{"passphrase"}},
	} {
		provider := func(secret bool) string {
			text := inBlock(s.plain...)
			if secret {
				for _, name := range s.secret {
					text += fmt.Sprintf("    %s = \"%s\"\n", name, s.value(name))
				}
			}
			return "  key_provider \"" + s.kind + "\" \"k\" {\n" + text + "  }\n  method \"aes_gcm\" \"m\" {\n    keys = key_provider." + s.kind + ".k\n  }\n  state {\n    method = method.aes_gcm.m\n  }\n  plan {\n    method = method.aes_gcm.m\n  }\n"
		}
		const resource = "resource \"terraform_data\" \"a\" {\n  input = 1\n}\n"
		block := func(secret bool) string {
			return "-- main.tf --\nterraform {\n  encryption {\n" + provider(secret) + "  }\n}\n" + resource
		}
		commands := [][]string{strings.Fields("init -input=false"), strings.Fields("plan -out=p"), strings.Fields("apply -auto-approve -json")}
		for name, c := range map[string]struct {
			files string
			env   []string
		}{
			"block":                  {files: block(true)},
			"environment":            {files: block(false), env: s.env},
			"TF_ENCRYPTION":          {files: "-- main.tf --\n" + resource, env: []string{"TF_ENCRYPTION=" + provider(true)}},
			"unit's extra_arguments": {files: "-- main.tf --\n" + resource + "-- terragrunt.hcl --\nterraform {\n  extra_arguments \"e\" {\n    commands = [\"init\", \"plan\", \"apply\"]\n    env_vars = { TF_ENCRYPTION = <<E\n" + provider(true) + "E\n    }\n  }\n}\n"},
		} {
			t.Run(fmt.Sprintf("%s %d/%s", s.kind, i, name), func(t *testing.T) {
				t.Parallel()
				keepsSecret(t, c.files, append(c.env, "HTTPS_PROXY="+refusing.URL, "AWS_ENDPOINT_URL_KMS="+refusing.URL), commands)
			})
		}
	}
}

// TestStoresThatWorkKeepSecrets is the same test for a store that works.
func TestStoresThatWorkKeepSecrets(t *testing.T) {
	t.Parallel()
	s := servers.HTTP(t)
	const key = "  encryption = {\n    key_provider = \"pbkdf2\"\n    passphrase   = \"hunter2pw-hunter2pw\"\n  }\n"
	config := inBlock("address", `"`+s.URL+`/state"`, "lock_address", `"`+s.URL+`/lock"`, "unlock_address", `"`+s.URL+`/lock"`, "username", `"me"`, "password", `"hunter2pw"`)
	files := "-- main.tf --\nresource \"terraform_data\" \"a\" {\n  input = 1\n}\n-- terragrunt.hcl --\nremote_state {\n  backend = \"http\"\n  generate = { path = \"backend.tf\", if_exists = \"overwrite\" }\n" + key + "  config = {\n" + config + "  }\n}\n"
	keepsSecret(t, files, []string{"TERRACE_TEST=1"}, [][]string{
		strings.Fields("run --all plan --out-dir=plans --report-file=r.json"), strings.Fields("run --all apply --non-interactive --report-file=r.xml"), {"state", "list"}, {"output"}, {"show"},
		strings.Fields("run --all plan -json"), {"config", "files"}, {"info", "print"},
	})
	if s.State() == "" {
		t.Error("no state was written")
	}
}

func keepsSecret(t *testing.T, files string, env []string, commands [][]string) {
	root := t.TempDir()
	ar := txtar.Parse([]byte(files))
	for _, f := range ar.Files {
		if err := os.WriteFile(filepath.Join(root, f.Name), f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(), "TF_LOG=trace", "AWS_EC2_METADATA_DISABLED=true"}, env...)
	for _, args := range commands {
		out := combined(t, root, env, args...)
		if strings.Contains(unwrapped(out), planted) {
			t.Errorf("terrace %s prints the secret:\n%s", strings.ReplaceAll(strings.Join(args, " "), planted, "…"), out)
		}
		if strings.Contains(out, "has no argument named") || strings.Contains(out, "is not expected here") || strings.Contains(out, "Unsupported argument") {
			t.Errorf("the test is wrong:\n%s", out)
		}
	}
	written(t, root, ar)
}
