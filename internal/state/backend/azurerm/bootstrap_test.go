package azurerm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/zclconf/go-cty/cty"
)

// bootstrap creates the store of a place and returns what was created or changed.
func bootstrap(t *testing.T, p backendtest.Place, args map[string]cty.Value, b backend.Bootstrapping) ([]string, diag.List) {
	t.Helper()
	var did []string
	b.Did = func(what string) { did = append(did, what) }
	set := backend.NewSet([]backend.Kind{Kind()}, nil, p.Services)
	can, ds := set.Bootstrap(t.Context(), backend.Config{Type: "azurerm", Value: backendtest.Config(t, Kind(), p.Config)}, cty.ObjectVal(args), b)
	if !can && !ds.HasErrors() {
		t.Error("azurerm cannot create its store")
	}
	return did, ds
}

// With the key of the account, the container is created, and nothing else.
func TestBootstrapContainer(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *servers.AzureServer{
		"emulator": func(t *testing.T) *servers.AzureServer { return servers.Azure(t) },
		"stand-in": func(t *testing.T) *servers.AzureServer { return servers.Blobs(t) },
	} {
		t.Run(name, func(t *testing.T) {
			p := place(t, start(t), "other")
			p.Config["container_name"] = cty.StringVal("new-states")
			if _, ds := bootstrap(t, p, nil, backend.Bootstrapping{Require: true}); !ds.HasErrors() || !strings.Contains(ds.Err().Error(), `there is no container "new-states"`) {
				t.Errorf("a container that is required: %v", ds.Err())
			}
			if did, ds := bootstrap(t, p, map[string]cty.Value{"skip_container_creation": cty.True}, backend.Bootstrapping{}); ds.HasErrors() || len(did) > 0 {
				t.Errorf("%q %v", did, ds.Err())
			}
			if _, ds := bootstrap(t, p, map[string]cty.Value{"enable_soft_delete": cty.True}, backend.Bootstrapping{}); !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "subscription_id") {
				t.Errorf("soft delete with a key: %v", ds.Err())
			}
			if did, ds := bootstrap(t, p, nil, backend.Bootstrapping{}); ds.HasErrors() || !slices.Equal(did, []string{"created the container new-states of the storage account acmestates"}) {
				t.Fatalf("%q %v", did, ds.Err())
			}
			if did, ds := bootstrap(t, p, nil, backend.Bootstrapping{}); ds.HasErrors() || len(did) > 0 {
				t.Errorf("again: %q %v", did, ds.Err())
			}
			o := open0(t, p, "")
			if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Unknown: true}, ""); err != nil {
				t.Error(err)
			}
			if on, err := o.b.Versioned(ctx); err != nil || on {
				t.Errorf("an account without versions: %t %v", on, err)
			}
		})
	}
	s := servers.Blobs(t, "states")
	s.Stand.Versioning = true
	p := place(t, s, "versions")
	if on, err := open0(t, p, "").b.Versioned(ctx); err != nil || !on {
		t.Errorf("an account with versions: %t %v", on, err)
	}
}

// An account is a stand-in for one subscription in Azure's resource manager.
type account struct {
	resources map[string]map[string]any // by path; groups and accounts
	service   map[string]any            // the properties of the blob service
	pending   int                       // requests until the account can be used
	denied    bool
	blobs     *servers.BlobServer
	log       []string
}

func (m *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Host != "management.azure.com" {
		m.blobs.ServeHTTP(w, r)
		return
	}
	fail := func(status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"code":%q}}`, code)
	}
	body, _ := io.ReadAll(r.Body)
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	if r.Method != "GET" {
		m.log = append(m.log, r.Method+" "+r.URL.Path+" "+string(body))
	}
	path := strings.ToLower(r.URL.Path)
	switch group := "/subscriptions/sub/resourcegroups/states"; {
	case r.Header.Get("Authorization") != "Bearer planted-azure-token" || r.URL.Query().Get("api-version") == "":
		fail(http.StatusUnauthorized, "InvalidAuthenticationToken")
	case m.denied:
		fail(http.StatusForbidden, "AuthorizationFailed")
	case strings.HasSuffix(path, "/listkeys"):
		fmt.Fprintf(w, `{"keys":[{"value":%q}]}`, m.blobs.Key)
	case strings.HasSuffix(path, "/blobservices/default"):
		if r.Method == "PUT" {
			m.service = in["properties"].(map[string]any)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"properties": m.service})
	case r.Method == "PUT" && path != group && m.resources[group] == nil:
		fail(http.StatusNotFound, "ResourceGroupNotFound")
	case r.Method == "PUT":
		m.resources[path] = in
		w.WriteHeader(http.StatusAccepted)
	case m.resources[path] == nil:
		fail(http.StatusNotFound, "ResourceNotFound")
	default:
		state := succeeded
		if m.pending > 0 {
			m.pending--
			state = "Creating"
		}
		fmt.Fprintf(w, `{"properties":{"provisioningState":%q}}`, state)
	}
}

// With other credentials, the resource group, the account and its settings are created too.
func TestBootstrapAccount(t *testing.T) {
	m := &account{resources: map[string]map[string]any{}, service: map[string]any{"kept": "value"}, pending: 2, blobs: servers.NewBlobs()}
	cloud := servers.NewAzureCloud(t, m, "acmestates.blob.core.windows.net", "management.azure.com")
	s := backendtest.Services(t)
	s.Transport = cloud.Transport(t)
	text := cty.StringVal
	p := backendtest.Place{Services: s, Config: map[string]cty.Value{
		"storage_account_name": text("acmestates"), "container_name": text("states"), "key": text("k"), "tenant_id": text(cloud.Tenant), "client_id": text(cloud.Client), "client_secret": text(cloud.Secret),
		"subscription_id": text("sub"), "resource_group_name": text("states"),
	}}
	for want, args := range map[string]map[string]cty.Value{
		"Set location": nil,
		"Because of skip_resource_group_creation":  {"location": text("westeurope"), "skip_resource_group_creation": cty.True},
		"Because of skip_storage_account_creation": {"skip_storage_account_creation": cty.True},
	} {
		if did, ds := bootstrap(t, p, args, backend.Bootstrapping{}); !ds.HasErrors() || !strings.Contains(ds.Err().Error(), want) || len(did) > 0 {
			t.Errorf("%s: %q %v", want, did, ds.Err())
		}
	}
	args := map[string]cty.Value{
		"location": text("westeurope"), "account_replication_type": text("GRS"), "tags": cty.MapVal(map[string]cty.Value{"team": text("core")}),
		"enable_soft_delete": cty.True, "soft_delete_retention_days": cty.NumberIntVal(14),
	}
	if _, ds := bootstrap(t, p, args, backend.Bootstrapping{Require: true}); !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "there is no storage account") {
		t.Errorf("an account that is required: %v", ds.Err())
	}
	m.log = nil
	did, ds := bootstrap(t, p, args, backend.Bootstrapping{})
	want := []string{
		"created the resource group states", "created the storage account acmestates", "enabled versioning and soft delete for 14 days of the storage account acmestates",
		"created the container states of the storage account acmestates",
	}
	if ds.HasErrors() || !slices.Equal(did, want) {
		t.Fatalf("%q %v", did, ds.Err())
	}
	for i, want := range []string{
		`{"location":"westeurope"}`,
		`{"kind":"StorageV2","location":"westeurope","properties":{"accessTier":"Hot","allowBlobPublicAccess":false,"minimumTlsVersion":"TLS1_2","supportsHttpsTrafficOnly":true},"sku":{"name":"Standard_GRS"},"tags":{"team":"core"}}`,
		`{"properties":{"containerDeleteRetentionPolicy":{"days":14,"enabled":true},"deleteRetentionPolicy":{"days":14,"enabled":true},"isVersioningEnabled":true,"kept":"value"}}`,
	} {
		if i >= len(m.log) || !strings.HasPrefix(m.log[i], "PUT ") || !strings.HasSuffix(m.log[i], " "+want) {
			t.Errorf("request %d: %q", i, m.log)
		}
	}
	if did, ds := bootstrap(t, p, args, backend.Bootstrapping{}); ds.HasErrors() || len(did) > 0 {
		t.Errorf("again: %q %v", did, ds.Err())
	}

	// An existing account gets the settings, unless it must not be changed.
	m.service = map[string]any{}
	args["soft_delete_retention_days"] = cty.NumberIntVal(400)
	if did, ds := bootstrap(t, p, args, backend.Bootstrapping{Keep: true}); ds.HasErrors() || len(did) > 0 {
		t.Errorf("an account that is not changed: %q %v", did, ds.Err())
	}
	if did, ds := bootstrap(t, p, args, backend.Bootstrapping{}); ds.HasErrors() || len(did) != 1 || !strings.Contains(did[0], "7 days, because soft_delete_retention_days = 400") {
		t.Errorf("%q %v", did, ds.Err())
	}

	// Credentials that may not manage the account need not, if others have created it.
	m.denied = true
	m.blobs.Token = cloud.Token
	p.Config["use_azuread_auth"] = cty.True
	if _, ds := bootstrap(t, p, nil, backend.Bootstrapping{}); !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "Microsoft.Storage/storageAccounts/read") {
		t.Errorf("without permissions: %v", ds.Err())
	}
	if did, ds := bootstrap(t, p, map[string]cty.Value{"skip_storage_account_creation": cty.True, "skip_versioning": cty.True}, backend.Bootstrapping{}); ds.HasErrors() || len(did) > 0 {
		t.Errorf("%q %v", did, ds.Err())
	}
}

// A managed identity can be selected by its resource.
func TestBootstrapIdentity(t *testing.T) {
	m := &account{resources: map[string]map[string]any{"/subscriptions/sub/resourcegroups/states/providers/microsoft.storage/storageaccounts/acmestates": {}}, service: map[string]any{"isVersioningEnabled": true}, blobs: servers.NewBlobs("states")}
	var mu sync.Mutex
	asked := map[string]bool{}
	identity := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Query().Get("mi_res_id")] = true
		fmt.Fprint(w, `{"access_token":"planted-azure-token","expires_on":"4102444800"}`)
	}))
	defer identity.Close()
	cloud := servers.NewAzureCloud(t, m, "acmestates.blob.core.windows.net", "management.azure.com")
	m.blobs.Token = cloud.Token
	s := backendtest.Services(t)
	s.Transport = cloud.Transport(t)
	proxy := s.Transport.Proxy
	s.Transport.Proxy = func(r *http.Request) (*url.URL, error) {
		if "http://"+r.URL.Host == identity.URL {
			return nil, nil
		}
		return proxy(r)
	}
	s.Env = s.Env.With("IDENTITY_ENDPOINT=" + identity.URL + "/token").With("IDENTITY_HEADER=planted-header")
	text := cty.StringVal
	p := backendtest.Place{Services: s, Config: map[string]cty.Value{
		"storage_account_name": text("acmestates"), "container_name": text("states"), "key": text("k"), "use_msi": cty.True, "use_azuread_auth": cty.True,
		"subscription_id": text("sub"), "resource_group_name": text("states"),
	}}
	id := "/subscriptions/sub/resourcegroups/x/providers/Microsoft.ManagedIdentity/userAssignedIdentities/deployer"
	if did, ds := bootstrap(t, p, map[string]cty.Value{"msi_resource_id": text(id)}, backend.Bootstrapping{}); ds.HasErrors() || len(did) > 0 {
		t.Errorf("%q %v", did, ds.Err())
	}
	if !asked[id] {
		t.Errorf("the identities %v were requested", asked)
	}
}
