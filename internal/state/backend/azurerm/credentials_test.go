package azurerm

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

// certificate returns a client certificate with its key, in PEM form.
func certificate(t *testing.T) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
}

// Each authentication method can read blobs, with its arguments and with its environment
// variables, and sends each service the expected credentials. Nothing is read from the
// process.
func TestWaysToLogIn(t *testing.T) {
	for _, name := range []string{"ARM_CLIENT_SECRET", "MSI_ENDPOINT", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_ID"} {
		t.Setenv(name, "planted-of-the-process")
	}
	blobs := servers.NewBlobs("states")
	ci := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case r.URL.Path == "/github" && r.Method == "GET" && r.Header.Get("Authorization") == "Bearer planted-request" && q.Get("audience") == "api://AzureADTokenExchange":
			fmt.Fprint(w, `{"value":"planted-assertion"}`)
		case r.URL.Path == "/own" && r.Method == "GET" && r.Header.Get("Authorization") == "Bearer planted-request" && q.Get("audience") == "api://ours" && len(q["audience"]) == 1:
			fmt.Fprint(w, `{"value":"planted-assertion"}`)
		case r.URL.Path == "/ado" && r.Method == "POST" && r.Header.Get("Authorization") == "Bearer planted-request" && q.Get("serviceConnectionId") == "conn" && q.Get("api-version") != "":
			fmt.Fprint(w, `{"oidcToken":"planted-assertion"}`)
		case r.URL.Path == "/app" && r.Header.Get("X-Identity-Header") == "planted-header" && q.Get("resource") == "https://storage.azure.com" && q.Get("client_id") == "user-assigned",
			r.URL.Path == "/old" && r.Header.Get("Secret") == "planted-header" && q.Get("clientid") == "user-assigned",
			r.URL.Path == "/shell" && r.Method == "POST" && r.Header.Get("Metadata") == "true" && r.FormValue("resource") == "https://storage.azure.com":
			fmt.Fprintf(w, `{"access_token":"planted-azure-token","expires_on":"%d"}`, time.Now().Add(time.Hour).Unix())
		case r.Host == "169.254.169.254" && r.URL.Path == "/metadata/identity/oauth2/token" && r.Header.Get("Metadata") == "true" && q.Get("api-version") == "2018-02-01" && q.Get("resource") == "https://storage.azure.com":
			fmt.Fprintf(w, `{"access_token":"planted-azure-token","expires_on":%d}`, time.Now().Add(time.Hour).Unix())
		default:
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	defer ci.Close()
	dir := t.TempDir()
	cert := certificate(t)
	for name, text := range map[string][]byte{"cert.pem": cert, "secret": []byte("planted-client-secret\n"), "token": []byte("planted-assertion\n"), "id": []byte("22222222-2222-2222-2222-222222222222")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type way struct {
		config map[string]cty.Value
		env    string // {CI} is the address of the CI system
		asked  bool   // whether the login receives a request
	}
	text := cty.StringVal
	ways := map[string]way{
		"access key": {config: map[string]cty.Value{"access_key": text(blobs.Key)}}, "access key of the environment": {env: "ARM_ACCESS_KEY=" + blobs.Key},
		"SAS": {config: map[string]cty.Value{"sas_token": text("?sv=1&sig=x")}}, "SAS of the environment": {env: "ARM_SAS_TOKEN=sv=1&sig=x"},
		"secret":                             {map[string]cty.Value{"client_secret": text("planted-client-secret")}, "", true},
		"secret in a file":                   {map[string]cty.Value{"client_secret_file_path": text("secret"), "client_id": cty.NullVal(cty.String), "client_id_file_path": text("id")}, "", true},
		"secret of the environment":          {nil, "ARM_CLIENT_SECRET=planted-client-secret", true},
		"secret file of the environment":     {nil, "ARM_CLIENT_SECRET_FILE_PATH=secret", true},
		"certificate":                        {map[string]cty.Value{"client_certificate": text(base64.StdEncoding.EncodeToString(cert))}, "", true},
		"certificate in a file":              {map[string]cty.Value{"client_certificate_path": text("cert.pem")}, "", true},
		"certificate of the environment":     {nil, "ARM_CLIENT_CERTIFICATE_PATH=cert.pem", true},
		"OIDC token":                         {map[string]cty.Value{"use_oidc": cty.True, "oidc_token": text("planted-assertion")}, "", true},
		"OIDC token in a file":               {map[string]cty.Value{"use_oidc": cty.True, "oidc_token_file_path": text("token")}, "", true},
		"OIDC token of the environment":      {nil, "ARM_USE_OIDC=1 ARM_OIDC_TOKEN=planted-assertion", true},
		"OIDC token file of the environment": {nil, "ARM_USE_OIDC=true ARM_OIDC_TOKEN_FILE_PATH=token", true},
		"GitHub":                             {map[string]cty.Value{"use_oidc": cty.True}, "ACTIONS_ID_TOKEN_REQUEST_URL={CI}/github ACTIONS_ID_TOKEN_REQUEST_TOKEN=planted-request", true},
		"request by arguments":               {map[string]cty.Value{"use_oidc": cty.True, "oidc_request_url": text("{CI}/github"), "oidc_request_token": text("planted-request")}, "", true},
		"request with an audience":           {map[string]cty.Value{"use_oidc": cty.True, "oidc_request_url": text("{CI}/own?audience=api%3A%2F%2Fours"), "oidc_request_token": text("planted-request")}, "", true},
		"request by variables":               {nil, "ARM_USE_OIDC=true ARM_OIDC_REQUEST_URL={CI}/github ARM_OIDC_REQUEST_TOKEN=planted-request", true},
		"Azure DevOps":                       {map[string]cty.Value{"use_oidc": cty.True, "ado_service_connection_id": text("conn")}, "SYSTEM_OIDCREQUESTURI={CI}/ado SYSTEM_ACCESSTOKEN=planted-request", true},
		"Azure DevOps by variables":          {nil, "ARM_USE_OIDC=true AZURESUBSCRIPTION_SERVICE_CONNECTION_ID=conn SYSTEM_OIDCREQUESTURI={CI}/ado SYSTEM_ACCESSTOKEN=planted-request", true},
		"workload identity":                  {map[string]cty.Value{"use_aks_workload_identity": cty.True}, "AZURE_FEDERATED_TOKEN_FILE=token", true},
		"workload identity by variables":     {nil, "ARM_USE_AKS_WORKLOAD_IDENTITY=true AZURE_FEDERATED_TOKEN_FILE=token", true},
		"identity of a machine":              {config: map[string]cty.Value{"use_msi": cty.True, "client_id": cty.NullVal(cty.String)}},
		"identity of an app service":         {map[string]cty.Value{"use_msi": cty.True, "client_id": text("user-assigned")}, "IDENTITY_ENDPOINT={CI}/app IDENTITY_HEADER=planted-header", false},
		"identity of an old app service":     {map[string]cty.Value{"client_id": text("user-assigned")}, "ARM_USE_MSI=true MSI_ENDPOINT={CI}/old MSI_SECRET=planted-header", false},
		"identity of the shell":              {nil, "ARM_USE_MSI=true MSI_ENDPOINT={CI}/shell", false},
		"az":                                 {nil, "", false},
	}
	for name, w := range ways {
		for _, direct := range []bool{true, false} {
			if !direct && !w.asked {
				continue
			}
			t.Run(fmt.Sprintf("%s/blobs %t", name, direct), func(t *testing.T) {
				// Other hosts are the resource manager, which returns the account's key.
				keys := atomic.Int32{}
				cloud := servers.NewAzureCloud(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Host == "management.azure.com" {
						if keys.Add(1); r.Header.Get("Authorization") != "Bearer planted-azure-token" || !strings.Contains(r.URL.Path, "/subscriptions/sub/resourceGroups/group/providers/Microsoft.Storage/storageAccounts/acmestates/listKeys") {
							http.Error(w, "no", http.StatusForbidden)
							return
						}
						_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{"value": blobs.Key}}})
						return
					}
					blobs.ServeHTTP(w, r)
				}), "acmestates.blob.core.windows.net", "management.azure.com")
				cloud.Assertions = []string{"planted-assertion"}
				if strings.HasPrefix(name, "certificate") {
					cloud.Assertions = []string{"*"} // signed by the client's library
				}
				blobs.Token = cloud.Token
				if !direct {
					blobs.Token = ""
				}
				s := backendtest.Services(t)
				s.Dir = dir
				s.Transport = cloud.Transport(t)
				proxy := s.Transport.Proxy
				s.Transport.Proxy = func(r *http.Request) (*url.URL, error) {
					if "http://"+r.URL.Host == ci.URL {
						return nil, nil
					}
					return proxy(r)
				}
				s.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					if address == "169.254.169.254:80" { // the machine's metadata service is not reached through the proxy
						address = ci.Listener.Addr().String()
					}
					return new(net.Dialer).DialContext(ctx, network, address)
				}
				for pair := range strings.FieldsSeq(strings.ReplaceAll(w.env, "{CI}", ci.URL)) {
					s.Env = s.Env.With(pair)
				}
				s.Run = func(_ context.Context, c sys.Command) error {
					if name != "az" || c.Path != "az" {
						return fmt.Errorf("nobody runs %s", c.Path)
					}
					_, err := fmt.Fprintf(c.Stdout, `{"accessToken":"planted-azure-token","expires_on":%d}`, time.Now().Add(time.Hour).Unix())
					return err
				}
				config := map[string]cty.Value{
					"storage_account_name": text(blobs.Account), "container_name": text("states"), "key": text(fmt.Sprintf("%s-%t", name, direct)), "tenant_id": text(cloud.Tenant), "client_id": text(cloud.Client), "use_azuread_auth": cty.BoolVal(direct),
					"subscription_id": text("sub"), "resource_group_name": text("group"),
				}
				for k, v := range w.config {
					if v.Type() == cty.String && !v.IsNull() {
						v = text(strings.ReplaceAll(v.AsString(), "{CI}", ci.URL))
					}
					config[k] = v
				}
				p := backendtest.Place{Config: config, Services: s}
				o := open0(t, p, "")
				if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Unknown: true}, ""); err != nil {
					t.Fatal(err)
				}
				if got, err := o.Read(ctx); err != nil || string(got.Data) != "{}\n" {
					t.Errorf("%q %v", got.Data, err)
				}
				if asked := strings.Contains(strings.Join(cloud.Log(), " "), "login.microsoftonline.com"); asked != w.asked {
					t.Errorf("the login was asked: %t\n%v", asked, cloud.Log())
				}
				if got := keys.Load() > 0; got != !direct {
					t.Errorf("the account's key was asked for: %t", got)
				}
			})
		}
	}
}

// A token that expires during a run is renewed.
func TestRenewal(t *testing.T) {
	blobs := servers.NewBlobs("states")
	cloud := servers.NewAzureCloud(t, blobs, "acmestates.blob.core.windows.net")
	cloud.Lifetime = 60
	s := backendtest.Services(t)
	s.Transport = cloud.Transport(t)
	p := backendtest.Place{Services: s, Config: map[string]cty.Value{
		"storage_account_name": cty.StringVal(blobs.Account), "container_name": cty.StringVal("states"), "key": cty.StringVal("k"), "use_azuread_auth": cty.True,
		"tenant_id": cty.StringVal(cloud.Tenant), "client_id": cty.StringVal(cloud.Client), "client_secret": cty.StringVal(cloud.Secret),
	}}
	o := open0(t, p, "")
	rotate := func() {
		cloud.Token += "x"
		blobs.Token = cloud.Token
	}
	rotate()
	id, err := o.Lock(ctx, store.LockInfo{ID: store.NewID(), Who: "me"})
	if err != nil {
		t.Fatal(err)
	}
	prior := backend.Prior{Absent: true}
	for i := range 3 {
		rotate()
		version, err := o.Write(ctx, fmt.Appendf(nil, "{\"n\":%d}\n", i), prior, id)
		if err != nil {
			t.Fatal(err)
		}
		prior = backend.Prior{Version: version}
	}
	rotate()
	if err := o.Unlock(ctx, id); err != nil {
		t.Error(err)
	}
}
