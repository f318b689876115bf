// Package azureargs reads the arguments about clouds and credentials of Azure that several
// blocks have: the backend "azurerm" and the key provider "azure_vault".
//
// Main functions: Attributes, ReadCloud and Login. The one rule: an argument has the same
// meaning in every block.
package azureargs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/net/azure"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/zclconf/go-cty/cty"
)

// Attributes returns the arguments and their types.
func Attributes() map[string]cty.Type {
	out := map[string]cty.Type{}
	for _, name := range []string{"environment", "metadata_host", "subscription_id", "tenant_id", "client_id", "client_id_file_path", "client_certificate", "client_certificate_path",
		"client_certificate_password", "client_secret", "client_secret_file_path", "oidc_token", "oidc_token_file_path", "oidc_request_url", "oidc_request_token", "msi_endpoint"} {
		out[name] = cty.String
	}
	for _, name := range []string{"use_oidc", "use_msi", "use_aks_workload_identity", "use_cli"} {
		out[name] = cty.Bool
	}
	return out
}

// A Cloud is one of Azure's clouds, or a private one.
type Cloud struct {
	Login    string // the authority's host
	Manager  string // the address of the resource manager
	Storage  string // the suffix of the names of storage services
	Audience string // the audience of tokens of CI systems
}

func clouds(name string) (Cloud, bool) {
	switch strings.ToLower(name) {
	case "", "public", "global", "canary":
		return Cloud{"login.microsoftonline.com", "https://management.azure.com", "core.windows.net", "api://AzureADTokenExchange"}, true
	case "usgovernment", "usgovernmentl4", "usgovernmentl5", "dod":
		return Cloud{"login.microsoftonline.us", "https://management.usgovcloudapi.net", "core.usgovcloudapi.net", "api://AzureADTokenExchangeUSGov"}, true
	case "china":
		return Cloud{"login.chinacloudapi.cn", "https://management.chinacloudapi.cn", "core.chinacloudapi.cn", "api://AzureADTokenExchangeChina"}, true
	}
	return Cloud{}, false
}

// ReadCloud returns the configured cloud. It requests the addresses of a private cloud's
// services from that cloud. a collects errors in the arguments.
func ReadCloud(ctx context.Context, a *backend.Args, client *rest.Client) Cloud {
	cloud, ok := clouds(a.String("environment", "", "ARM_ENVIRONMENT"))
	if !ok {
		a.Fail("environment", "The %q is none of public, usgovernment and china", "environment")
	}
	if host := a.String("metadata_host", "", "ARM_METADATA_HOST"); host != "" && ok {
		if a.IsSet("environment") {
			a.Fail("metadata_host", "Only one of %q and %q can be set", "metadata_host", "environment")
		}
		var err error
		if cloud, err = metadata(ctx, client, host, cloud); err != nil {
			a.Fail("metadata_host", "%s", err)
		}
	}
	return cloud
}

func metadata(ctx context.Context, client *rest.Client, host string, cloud Cloud) (Cloud, error) {
	resp, err := client.Unprepared().Do(ctx, rest.Request{Method: "GET", URL: "https://" + host + "/metadata/endpoints?api-version=2023-11-01", Repeat: true})
	if err != nil {
		return cloud, err
	}
	var doc struct {
		Authentication  struct{ LoginEndpoint string }
		ResourceManager string
		Suffixes        struct{ Storage string }
	}
	if resp.Status != http.StatusOK || json.Unmarshal(resp.Body, &doc) != nil || doc.Suffixes.Storage == "" {
		return cloud, fmt.Errorf("the host of %q answered %d, and not where services are", "metadata_host", resp.Status)
	}
	cloud.Storage = doc.Suffixes.Storage
	cloud.Login, cloud.Manager = strings.TrimSuffix(doc.Authentication.LoginEndpoint, "/"), strings.TrimSuffix(doc.ResourceManager, "/")
	return cloud, nil
}

// Login returns the login options. Files are relative to dir. a collects errors in the
// arguments.
func Login(a *backend.Args, cloud Cloud, dir string) azure.Options {
	// either returns a value, or the content of a file; if both are set, they must be
	// equal.
	either := func(name, file string, values, files []string) string {
		v, path := a.String(name, "", values...), a.String(file, "", files...)
		if path == "" {
			return v
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		text, err := readfile.Whole(path)
		got := strings.TrimSpace(string(text))
		switch {
		case err != nil:
			a.Fail(file, "The file that %q names cannot be read", file)
		case v != "" && v != got:
			a.Fail(file, "The %q and the file that %q names say different things", name, file)
		}
		return got
	}
	return azure.Options{
		Login: cloud.Login, Audience: cloud.Audience, Tenant: a.String("tenant_id", "", "ARM_TENANT_ID"),
		Client:              either("client_id", "client_id_file_path", []string{"ARM_CLIENT_ID"}, []string{"ARM_CLIENT_ID_FILE_PATH"}),
		Certificate:         a.String("client_certificate", "", "ARM_CLIENT_CERTIFICATE"),
		CertificatePath:     a.String("client_certificate_path", "", "ARM_CLIENT_CERTIFICATE_PATH"),
		CertificatePassword: a.String("client_certificate_password", "", "ARM_CLIENT_CERTIFICATE_PASSWORD"),
		Secret:              either("client_secret", "client_secret_file_path", []string{"ARM_CLIENT_SECRET"}, []string{"ARM_CLIENT_SECRET_FILE_PATH"}),
		OIDC:                a.Bool("use_oidc", false, "ARM_USE_OIDC"),
		OIDCToken:           a.String("oidc_token", "", "ARM_OIDC_TOKEN"),
		OIDCTokenPath:       a.String("oidc_token_file_path", "", "ARM_OIDC_TOKEN_FILE_PATH", "AZURE_FEDERATED_TOKEN_FILE"),
		OIDCURL:             a.String("oidc_request_url", "", "ARM_OIDC_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_URL", "SYSTEM_OIDCREQUESTURI"),
		OIDCBearer:          a.String("oidc_request_token", "", "ARM_OIDC_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "SYSTEM_ACCESSTOKEN"),
		ManagedEndpoint:     a.String("msi_endpoint", ""), // the login itself reads MSI_ENDPOINT
		ManagedIdentity:     a.Bool("use_msi", false, "ARM_USE_MSI"),
		WorkloadIdentity:    a.Bool("use_aks_workload_identity", false, "ARM_USE_AKS_WORKLOAD_IDENTITY"),
		Tool:                a.Bool("use_cli", true, "ARM_USE_CLI"),
	}
}
