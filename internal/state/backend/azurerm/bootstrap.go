package azurerm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/net/azure"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

// bootstrapArgs returns the arguments of remote_state about creating the resource group, the
// storage account and the container. They are those of Terragrunt.
func bootstrapArgs() map[string]cty.Type {
	out := map[string]cty.Type{"tags": cty.Map(cty.String), "soft_delete_retention_days": cty.Number}
	for _, name := range []string{"location", "account_kind", "account_tier", "account_replication_type", "access_tier", "msi_resource_id"} {
		out[name] = cty.String
	}
	for _, name := range []string{"skip_resource_group_creation", "skip_storage_account_creation", "skip_container_creation", "skip_versioning", "enable_soft_delete", "allow_blob_public_access"} {
		out[name] = cty.Bool
	}
	return out
}

// retention is the default number of days that deleted blobs are kept.
const retention = 7

// Versions of the APIs of the resource manager.
const (
	groupVersion   = "2021-04-01"
	accountVersion = "2023-01-01"
)

// Site implements backend.Bootstrapper.
func (b *container) Site() string { return b.base }

// Versioned implements backend.Bootstrapper. It writes a blob next to the state, because the
// credentials for blobs cannot read the settings of the account.
func (b *container) Versioned(ctx context.Context) (bool, error) {
	resp, err := b.probe(ctx)
	if err != nil {
		return false, err
	}
	return resp.Header.Get("X-Ms-Version-Id") != "", nil
}

// probe writes a blob next to the state, deletes it, and returns the response to the write. The
// response contains a version if the account keeps versions.
func (b *container) probe(ctx context.Context) (*rest.Response, error) {
	o, name := &object{b, b.key}, "doctor/"+store.NewID()
	resp, err := o.put(ctx, o.beside()+name, backend.Bytes([]byte("probe")), http.Header{})
	if err == nil && resp.Status != http.StatusCreated {
		err = b.refused("", "Storage Blob Data Contributor", resp)
	}
	if err == nil {
		err = o.DeleteBlob(context.WithoutCancel(ctx), name)
	}
	return resp, err
}

// A manager creates and changes the resources of an account through Azure's resource manager.
type manager struct {
	b       *container
	a       *backend.Args
	o       backend.Bootstrapping
	session *azure.Session
}

// Bootstrap implements backend.Bootstrapper. With a key or a shared access signature, or without
// a resource group, only the container can be created.
func (b *container) Bootstrap(ctx context.Context, o backend.Bootstrapping) error {
	a := o.Args
	m := &manager{b, a, o, b.session}
	if id := a.String("msi_resource_id", ""); id != "" {
		login := b.login
		login.Client, login.IdentityResource = "", id
		m.session = azure.Open(login, azure.Services{Env: b.s.Env, Dir: b.s.Dir, Transport: b.s.Transport, Run: b.s.Run, Now: b.s.Now})
	}
	skipAccount, soft := a.Bool("skip_storage_account_creation", false), a.Bool("enable_soft_delete", false)
	versioned := !a.Bool("skip_versioning", false)
	managed := !b.given && b.sas == "" && b.subscription != "" && b.group != ""
	switch {
	case !managed && soft:
		return &backend.Error{Argument: "enable_soft_delete", Summary: "Failed to change the storage account", Answer: "the settings of the storage account cannot be changed with these credentials", Advice: "Set subscription_id and resource_group_name, and credentials other than access_key and sas_token; or remove enable_soft_delete."}
	case managed && !(skipAccount && !versioned && !soft):
		if err := m.account(ctx, skipAccount); err != nil {
			return err
		}
		if err := m.protect(ctx, versioned, soft); err != nil {
			return err
		}
	}
	if a.Bool("skip_container_creation", false) {
		return nil
	}
	return m.container(ctx)
}

// request sends a request to the resource manager. body is encoded as JSON; nil means none.
func (m *manager) request(ctx context.Context, method, path, version string, body any) (*rest.Response, error) {
	token, err := m.session.Token(ctx, m.b.manager)
	if err != nil {
		return nil, err
	}
	r := rest.Request{Method: method, URL: m.b.manager + path + "?api-version=" + version, Header: http.Header{"Authorization": {"Bearer " + token}}, Repeat: true}
	if body != nil {
		if r.Body, err = json.Marshal(body); err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
	}
	return m.b.client.Unprepared().Do(ctx, r)
}

// send is like request, with errors for the user.
func (m *manager) send(ctx context.Context, method, path, version string, body any) (*rest.Response, error) {
	resp, err := m.request(ctx, method, path, version, body)
	return resp, m.b.explain(err)
}

func (m *manager) groupPath() string {
	return "/subscriptions/" + url.PathEscape(m.b.subscription) + "/resourcegroups/" + url.PathEscape(m.b.group)
}

func (m *manager) accountPath() string {
	return "/subscriptions/" + url.PathEscape(m.b.subscription) + "/resourceGroups/" + url.PathEscape(m.b.group) + "/providers/Microsoft.Storage/storageAccounts/" + m.b.account
}

// account creates the storage account and its resource group if they do not exist.
func (m *manager) account(ctx context.Context, skip bool) error {
	now, exists, err := m.provisioned(ctx)
	switch {
	case err != nil:
		return err
	case exists && now == succeeded:
		return nil
	case exists:
		return m.await(ctx)
	case m.o.Require:
		return &backend.Error{Argument: "storage_account_name", Code: diag.CodeBackendBootstrap, Summary: "No storage account", Answer: fmt.Sprintf("there is no storage account %q", m.b.account), Advice: "Because of --backend-require-bootstrap, it is not created. Create it with \"backend bootstrap\", or correct its name."}
	case skip:
		return &backend.Error{Argument: "storage_account_name", Code: diag.CodeBackendBootstrap, Summary: "No storage account", Answer: fmt.Sprintf("there is no storage account %q", m.b.account), Advice: "Because of skip_storage_account_creation, it is not created. Correct its name, or remove that argument."}
	}
	location := m.a.String("location", "")
	if location == "" {
		return &backend.Error{Argument: "storage_account_name", Summary: "Failed to create the storage account", Answer: fmt.Sprintf("there is no storage account %q, and its location is not set", m.b.account), Advice: "Set location in remote_state.config, for example \"westeurope\", or correct the name of the account."}
	}
	if !m.a.Bool("skip_resource_group_creation", false) {
		if err := m.resourceGroup(ctx, location); err != nil {
			return err
		}
	}
	body := map[string]any{
		"location": location, "kind": m.a.String("account_kind", "StorageV2"),
		"sku": map[string]string{"name": m.a.String("account_tier", "Standard") + "_" + m.a.String("account_replication_type", "LRS")},
		"properties": map[string]any{
			"accessTier": m.a.String("access_tier", "Hot"), "allowBlobPublicAccess": m.a.Bool("allow_blob_public_access", false),
			"minimumTlsVersion": "TLS1_2", "supportsHttpsTrafficOnly": true,
		},
	}
	if tags := m.a.Map("tags"); len(tags) > 0 {
		body["tags"] = tags
	}
	resp, err := m.send(ctx, "PUT", m.accountPath(), accountVersion, body)
	if err != nil {
		return err
	}
	if resp.Status/100 != 2 {
		return m.refused("storage_account_name", "Failed to create the storage account", "Microsoft.Storage/storageAccounts/write", resp)
	}
	m.o.Did("created the storage account " + m.b.account)
	return m.await(ctx)
}

// resourceGroup creates the resource group if it does not exist.
func (m *manager) resourceGroup(ctx context.Context, location string) error {
	resp, err := m.send(ctx, "GET", m.groupPath(), groupVersion, nil)
	switch {
	case err != nil:
		return err
	case resp.Status == http.StatusOK:
		return nil
	case resp.Status != http.StatusNotFound:
		return m.refused("resource_group_name", "Failed to read the resource group", "Microsoft.Resources/subscriptions/resourceGroups/read", resp)
	}
	if resp, err = m.send(ctx, "PUT", m.groupPath(), groupVersion, map[string]string{"location": location}); err != nil {
		return err
	}
	if resp.Status/100 != 2 {
		return m.refused("resource_group_name", "Failed to create the resource group", "Microsoft.Resources/subscriptions/resourceGroups/write", resp)
	}
	m.o.Did("created the resource group " + m.b.group)
	return nil
}

const succeeded = "Succeeded" // the state of an account that can be used

// provisioned returns the state of the account.
func (m *manager) provisioned(ctx context.Context) (state string, exists bool, err error) {
	resp, err := m.send(ctx, "GET", m.accountPath(), accountVersion, nil)
	switch {
	case err != nil:
		return "", false, err
	case resp.Status == http.StatusNotFound:
		return "", false, nil
	case resp.Status != http.StatusOK:
		return "", false, m.refused("storage_account_name", "Failed to read the storage account", "Microsoft.Storage/storageAccounts/read", resp)
	}
	var doc struct {
		Properties struct{ ProvisioningState string }
	}
	if json.Unmarshal(resp.Body, &doc) != nil {
		return "", false, m.odd()
	}
	return doc.Properties.ProvisioningState, true, nil
}

// await waits until the account can be used.
func (m *manager) await(ctx context.Context) error {
	for end := m.b.s.Now().Add(5 * time.Minute); ; {
		switch state, exists, err := m.provisioned(ctx); {
		case err != nil:
			return err
		case exists && state == succeeded:
			return nil
		case state == "Failed" || state == "Canceled":
			return &backend.Error{Argument: "storage_account_name", Summary: "Failed to create the storage account", Answer: fmt.Sprintf("the state of the storage account %q is %s", m.b.account, state), Advice: "Look at the activity log of the resource group."}
		}
		if m.b.s.Now().After(end) {
			return &backend.Error{Argument: "storage_account_name", Summary: "Failed to create the storage account", Answer: "the storage account cannot be used after five minutes", Advice: "Run the command again later."}
		}
		if err := m.b.s.Sleep(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

// protect enables versioning and soft delete, and keeps the other settings of the service.
func (m *manager) protect(ctx context.Context, versioned, soft bool) error {
	if !versioned && !soft {
		return nil
	}
	path := m.accountPath() + "/blobServices/default"
	resp, err := m.send(ctx, "GET", path, accountVersion, nil)
	if err != nil {
		return err
	}
	if resp.Status != http.StatusOK {
		return m.refused("storage_account_name", "Failed to read the settings of the storage account", "Microsoft.Storage/storageAccounts/blobServices/read", resp)
	}
	var doc struct{ Properties map[string]any }
	if json.Unmarshal(resp.Body, &doc) != nil {
		return m.odd()
	}
	if doc.Properties == nil {
		doc.Properties = map[string]any{}
	}
	var did []string
	if on, _ := doc.Properties["isVersioningEnabled"].(bool); versioned && !on {
		doc.Properties["isVersioningEnabled"] = true
		did = append(did, "versioning")
	}
	if soft {
		days := m.a.Int("soft_delete_retention_days", retention)
		note := ""
		if days < 1 || days > 365 {
			days, note = retention, fmt.Sprintf(", because soft_delete_retention_days = %d is not between 1 and 365", days)
		}
		changed := false
		for _, policy := range []string{"deleteRetentionPolicy", "containerDeleteRetentionPolicy"} {
			p, _ := doc.Properties[policy].(map[string]any)
			if on, _ := p["enabled"].(bool); on && p["days"] == float64(days) {
				continue
			}
			if p == nil {
				p = map[string]any{}
			}
			p["enabled"], p["days"] = true, days
			doc.Properties[policy] = p
			changed = true
		}
		if changed {
			did = append(did, fmt.Sprintf("soft delete for %d days%s", days, note))
		}
	}
	if len(did) == 0 || m.o.Keep {
		return nil
	}
	if resp, err = m.send(ctx, "PUT", path, accountVersion, map[string]any{"properties": doc.Properties}); err != nil {
		return err
	}
	if resp.Status != http.StatusOK {
		return m.refused("storage_account_name", "Failed to change the settings of the storage account", "Microsoft.Storage/storageAccounts/blobServices/write", resp)
	}
	m.o.Did("enabled " + strings.Join(did, " and ") + " of the storage account " + m.b.account)
	return nil
}

// container creates the container, without public access, if it does not exist.
func (m *manager) container(ctx context.Context) error {
	b := m.b
	q := url.Values{"restype": {"container"}}
	for end := b.s.Now().Add(2 * time.Minute); ; {
		resp, err := b.send(ctx, "GET", "", q, nil, nil)
		switch {
		case err != nil:
			return err
		case resp.Status == http.StatusOK:
			return nil
		case resp.Status != http.StatusNotFound:
			return b.refused("Failed to read the container", "Storage Blob Data Reader", resp)
		case m.o.Require:
			return &backend.Error{Argument: "container_name", Code: diag.CodeBackendBootstrap, Summary: "No container", Answer: fmt.Sprintf("there is no container %q in the storage account %q", b.container, b.account), Advice: "Because of --backend-require-bootstrap, it is not created. Create it with \"backend bootstrap\", or correct its name."}
		}
		resp, err = b.send(ctx, "PUT", "", q, nil, []byte{})
		if err != nil {
			return err
		}
		switch code := resp.Header.Get("X-Ms-Error-Code"); {
		case resp.Status == http.StatusCreated:
			m.o.Did("created the container " + b.container + " of the storage account " + b.account)
			return nil
		case code == "ContainerAlreadyExists": // another process has created it
			return nil
		case code != "ContainerBeingDeleted" || b.s.Now().After(end):
			return b.refused("Failed to create the container", "Storage Blob Data Contributor", resp)
		}
		if err := b.s.Sleep(ctx, 5*time.Second); err != nil {
			return err
		}
	}
}

func (m *manager) odd() error {
	return &backend.Error{Argument: "storage_account_name", Answer: "the response is not one of Azure's resource manager", Advice: "Check whether a proxy changes responses."}
}

// refused returns the error for an unsuccessful response of the resource manager.
func (m *manager) refused(argument, summary, permission string, resp *rest.Response) error {
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		return &backend.Error{Summary: summary, Argument: argument, Answer: answer, Advice: advice}
	}
	var doc struct{ Error struct{ Code string } }
	_ = json.Unmarshal(resp.Body, &doc) // the status suffices
	e := &backend.Error{Summary: summary, Argument: argument, Answer: strings.TrimSpace(fmt.Sprintf("Azure answered %d %s %s", resp.Status, http.StatusText(resp.Status), doc.Error.Code))}
	switch {
	case resp.Status == http.StatusForbidden:
		e.Permission = permission
		e.Advice = fmt.Sprintf("The credentials need %s. If others create the account, set skip_storage_account_creation and skip_versioning.", permission)
	case resp.Status == http.StatusTooManyRequests || resp.Status >= 500:
		e.Advice = backend.AdviceOn(resp.Status)
	case doc.Error.Code == "StorageAccountAlreadyTaken":
		e.Advice = "Names of storage accounts are unique in all of Azure: choose another, or check subscription_id and resource_group_name."
	case doc.Error.Code == "ResourceGroupNotFound":
		e.Advice = "Because of skip_resource_group_creation, the resource group is not created. Check resource_group_name, or remove that argument."
	default:
		e.Advice = "Check subscription_id, resource_group_name and the arguments about the account."
	}
	return e
}
