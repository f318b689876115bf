// Package azurerm is the backend "azurerm": state in a blob of Azure Storage, locked by a
// lease on the blob.
//
// Main types: Kind opens a container, an object is the state of one workspace. The one
// rule: a write contains the lease of the run, and replaces only the content that the run
// has read.
package azurerm

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/net/azure"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/azureargs"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind returns the backend "azurerm".
func Kind() backend.Kind {
	types := azureargs.Attributes()
	for _, name := range []string{"storage_account_name", "container_name", "key", "resource_group_name", "endpoint", "customer_provided_key", "encryption_scope", "access_key", "sas_token", "ado_service_connection_id"} {
		types[name] = cty.String
	}
	for _, name := range []string{"snapshot", "use_azuread_auth"} {
		types[name] = cty.Bool
	}
	types["timeout_seconds"] = cty.Number
	return backend.Kind{Name: "azurerm", Reached: []string{"storage_account_name"}, Schema: &schema.Block{Attributes: backend.Optional(types, "storage_account_name", "container_name", "key")}, Bootstrap: bootstrapArgs(), Open: open}
}

// version is the version of the service's API. The emulator supports it too.
const version = "2021-12-02"

type container struct {
	s                       backend.Services
	account, container, key string
	who                     string // the argument that sets the credentials
	base                    string // the URL of the container
	snapshot                bool
	customerKey, scope      string
	sas                     string
	ad                      bool
	given                   bool   // the account's key is configured
	way                     string // the authentication method
	login                   azure.Options
	session                 *azure.Session
	manager, storage        string // the resources of tokens
	subscription, group     string
	client                  *rest.Client

	mu      sync.Mutex
	signing []byte            // the account's key; nil until it is known
	leases  map[string]string // the IDs of the leases that this process holds, by blob
}

func open(ctx context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	a := backend.NewArgs(cfg, s.Env)
	b := &container{
		who: a.Given("sas_token", "client_certificate", "client_certificate_path", "client_secret", "client_secret_file_path", "oidc_token", "oidc_token_file_path", "oidc_request_url", "use_oidc", "use_msi", "use_aks_workload_identity", "access_key"),
		s:   s, account: a.Required("storage_account_name"), container: a.Required("container_name"), key: a.Required("key"),
		snapshot: a.Bool("snapshot", false, "ARM_SNAPSHOT"), ad: a.Bool("use_azuread_auth", false, "ARM_USE_AZUREAD"),
		customerKey: a.String("customer_provided_key", "", "ARM_CUSTOMER_PROVIDED_KEY"), scope: a.String("encryption_scope", "", "ARM_ENCRYPTION_SCOPE", "ARM_ENCYRPTION_SCOPE"),
		sas:          strings.TrimPrefix(a.String("sas_token", "", "ARM_SAS_TOKEN"), "?"),
		subscription: a.String("subscription_id", "", "ARM_SUBSCRIPTION_ID"), group: a.String("resource_group_name", ""),
	}
	if !regexp.MustCompile(`^[a-z0-9]{3,24}$`).MatchString(b.account) && b.account != "" {
		a.Fail("storage_account_name", "The %q must be 3 to 24 lower-case letters and digits", "storage_account_name")
	}
	if !regexp.MustCompile(`^[a-z0-9$]([a-z0-9-]{1,61})[a-z0-9]$`).MatchString(b.container) && b.container != "" {
		a.Fail("container_name", "The %q must be 3 to 63 lower-case letters, digits and hyphens", "container_name")
	}
	if raw, err := base64.StdEncoding.DecodeString(b.customerKey); b.customerKey != "" && (err != nil || len(raw) != 32) {
		a.Fail("customer_provided_key", "The %q is not 32 bytes in base64", "customer_provided_key")
	}
	if b.customerKey != "" && b.scope != "" {
		a.Fail("encryption_scope", "Only one of %q and %q can be set", "customer_provided_key", "encryption_scope")
	}
	timeout := time.Duration(a.Int("timeout_seconds", 300, "ARM_TIMEOUT_SECONDS")) * time.Second
	b.client = &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: timeout}, Retries: 5, Sleep: s.Sleep, Now: s.Now, Prepare: b.prepare}
	cloud := azureargs.ReadCloud(ctx, a, b.client)
	key := a.String("access_key", "", "ARM_ACCESS_KEY")
	if key != "" {
		raw, err := base64.StdEncoding.DecodeString(key)
		if err != nil {
			a.Fail("access_key", "The %q is not valid base64", "access_key")
		}
		b.signing, b.given = raw, true
	}
	o := azureargs.Login(a, cloud, s.Dir)
	o.ServiceConnection = a.String("ado_service_connection_id", "", "ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID", "ARM_OIDC_AZURE_SERVICE_CONNECTION_ID", "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID")
	if err := a.Err(); err != nil {
		return nil, err
	}
	b.way, b.login = o.Way(), o
	b.manager, b.storage = cloud.Manager, "https://storage.azure.com"
	b.base = "https://" + b.account + ".blob." + cloud.Storage + "/" + b.container
	name := fmt.Sprintf("azurerm %+v\x00%s\x00%v", o, s.Dir, s.Env)
	b.session = s.Shared.Get(name, func() any {
		return azure.Open(o, azure.Services{Env: s.Env, Dir: s.Dir, Transport: s.Transport, Run: s.Run, Now: s.Now})
	}).(*azure.Session)
	return b, nil
}

// prepare authorizes a request. Missing configuration and missing tokens are final errors:
// the request for a token was already repeated.
func (b *container) prepare(ctx context.Context, r *http.Request, _ func() [sha256.Size]byte) error {
	err := b.authorize(ctx, r)
	if err != nil && !errors.Is(err, azure.ErrBusy) {
		err = rest.Final(err)
	}
	return err
}

func (b *container) authorize(ctx context.Context, r *http.Request) error {
	r.Header.Set("X-Ms-Version", version)
	r.Header.Set("X-Ms-Date", b.s.Now().UTC().Format(http.TimeFormat))
	switch {
	case b.sas != "" && !b.has():
		if r.URL.RawQuery != "" {
			r.URL.RawQuery += "&"
		}
		r.URL.RawQuery += b.sas
		return nil
	case b.ad && !b.has():
		t, err := b.session.Token(ctx, b.storage)
		if err == nil {
			r.Header.Set("Authorization", "Bearer "+t)
		}
		return err
	}
	key, err := b.accountKey(ctx)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "SharedKey "+b.account+":"+sign(key, r, b.account))
	return nil
}

// has reports whether the account's key is known.
func (b *container) has() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.signing != nil
}

// accountKey returns the account's key, which requires permission to manage the account if
// it is not configured.
func (b *container) accountKey(ctx context.Context) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.signing != nil {
		return b.signing, nil
	}
	if b.subscription == "" || b.group == "" {
		return nil, &backend.Error{Argument: "access_key", Answer: "there is no key of the storage account", Advice: "Set access_key, sas_token or use_azuread_auth, or subscription_id and resource_group_name, so that the key can be asked for."}
	}
	token, err := b.session.Token(ctx, b.manager)
	if err != nil {
		return nil, err
	}
	client := b.client.Unprepared()
	where := fmt.Sprintf("%s/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Storage/storageAccounts/%s/listKeys?api-version=2023-01-01", b.manager, url.PathEscape(b.subscription), url.PathEscape(b.group), b.account)
	resp, err := client.Do(ctx, rest.Request{Method: "POST", URL: where, Header: http.Header{"Authorization": {"Bearer " + token}}, Body: []byte{}, Repeat: true})
	if err != nil {
		return nil, err
	}
	var doc struct{ Keys []struct{ Value string } }
	if resp.Status != http.StatusOK || json.Unmarshal(resp.Body, &doc) != nil || len(doc.Keys) == 0 {
		return nil, &backend.Error{Argument: "resource_group_name", Answer: fmt.Sprintf("Azure answered %d when it was asked for the key of the storage account", resp.Status), Permission: "Microsoft.Storage/storageAccounts/listKeys/action", Advice: "The credentials need Microsoft.Storage/storageAccounts/listKeys/action, or set use_azuread_auth to use them for the blobs themselves."}
	}
	key, err := base64.StdEncoding.DecodeString(doc.Keys[0].Value)
	if err != nil {
		return nil, errors.New("the key of the storage account is not valid base64")
	}
	b.signing = key
	return key, nil
}

// blob returns the name of the blob with the state of a workspace.
func (b *container) blob(workspace string) string {
	if workspace == "" || workspace == store.Default {
		return b.key
	}
	return b.key + "env:" + workspace
}

func (b *container) List(ctx context.Context) ([]string, error) {
	all, err := b.list(ctx, b.key+"env:")
	if err != nil {
		return nil, err
	}
	names := []string{store.Default}
	for _, name := range all {
		if name = strings.TrimPrefix(name, b.key+"env:"); store.ValidWorkspace(name) && name != store.Default {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names, nil
}

func (b *container) list(ctx context.Context, prefix string) ([]string, error) {
	var out []string
	for marker := ""; ; {
		q := url.Values{"restype": {"container"}, "comp": {"list"}, "prefix": {prefix}}
		if marker != "" {
			q.Set("marker", marker)
		}
		resp, err := b.send(ctx, "GET", "", q, nil, nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Blobs struct {
				Blob []struct{ Name string }
			}
			NextMarker string
		}
		if resp.Status != http.StatusOK {
			return nil, b.refused("", "Storage Blob Data Reader", resp)
		}
		if err := xml.Unmarshal(resp.Body, &page); err != nil {
			return nil, &backend.Error{Argument: "container_name", Answer: "the answer is not one of Azure Storage", Advice: "Check the name of the account, and whether a proxy stands in between."}
		}
		for _, x := range page.Blobs.Blob {
			out = append(out, x.Name)
		}
		if marker = page.NextMarker; marker == "" {
			return out, nil
		}
	}
}

func (b *container) Delete(ctx context.Context, workspace string) error {
	o := &object{b, b.blob(workspace)}
	if err := b.delete(ctx, o.name); err != nil {
		return err
	}
	return backend.DeleteBlobs(ctx, o)
}

// hold records the lease that this process holds on a blob; "" means none.
func (b *container) hold(name, lease string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leases == nil {
		b.leases = map[string]string{}
	}
	if b.leases[name] = lease; lease == "" {
		delete(b.leases, name)
	}
}

// held returns the lease that this process holds on a blob, or "".
func (b *container) held(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leases[name]
}

// delete deletes a blob. A lease of this process ends with its blob.
func (b *container) delete(ctx context.Context, name string) error {
	h := http.Header{"X-Ms-Delete-Snapshots": {"include"}}
	if lease := b.held(name); lease != "" {
		h.Set("X-Ms-Lease-Id", lease)
	}
	resp, err := b.send(ctx, "DELETE", name, nil, h, nil)
	if err == nil && resp.Status != http.StatusAccepted && (resp.Status != http.StatusNotFound || resp.Header.Get("X-Ms-Error-Code") == "ContainerNotFound") {
		err = b.refused("", "Storage Blob Data Contributor", resp)
	}
	return err
}

func (b *container) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	obj := &object{b, b.blob(workspace)}
	return backend.NewStore(obj, "azurerm:"+b.account+"/"+b.container+"/"+obj.name, o, b.s), nil
}

func (b *container) address(name string) string {
	if name == "" {
		return b.base
	}
	return b.base + "/" + strings.ReplaceAll(url.PathEscape(name), "%2F", "/")
}

func (b *container) send(ctx context.Context, method, name string, q url.Values, h http.Header, body []byte) (*rest.Response, error) {
	where := b.address(name)
	if len(q) > 0 {
		where += "?" + q.Encode()
	}
	return b.do(ctx, rest.Request{Method: method, URL: where, Header: h, Body: body, Repeat: true})
}

func (b *container) do(ctx context.Context, r rest.Request) (*rest.Response, error) {
	resp, err := b.client.Do(ctx, r)
	if err = b.explain(err); err != nil {
		return nil, err
	}
	return resp, nil
}

// explain returns the error of a request without a response, for the user.
func (b *container) explain(err error) error {
	var e *backend.Error
	var token *azure.TokenError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.As(err, &token):
		return b.loggedOut(token)
	}
	return &backend.Error{Argument: "storage_account_name", Answer: diag.Reason(err), Advice: rest.Reach(err, "SSL_CERT_FILE", "Check the name of the account and the credentials, and that the service can be reached from here, through its proxy if there is one."), Err: err}
}

// loggedOut returns the error of credentials that return no token.
func (b *container) loggedOut(err *azure.TokenError) error {
	out := &backend.Error{Argument: b.who, Answer: diag.Reason(err), Advice: "Check the client, its secret, certificate or token, and tenant_id.", Err: err}
	var network *azure.NetworkError
	switch {
	case errors.Is(err, azure.ErrNone):
		out.Advice = azure.NoneAdvice
	case errors.As(err, &network):
		out.Answer = fmt.Sprintf("no access token from Azure: %s: %s", network.Host, rest.Plain(network.Err))
		out.Advice = rest.Reach(rest.Plain(network.Err), "SSL_CERT_FILE", "Check that the login can be reached from here, through its proxy if there is one.")
	}
	return out
}

// refused returns the error for an unsuccessful response.
func (b *container) refused(summary, role string, resp *rest.Response) error {
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		return &backend.Error{Summary: summary, Argument: "storage_account_name", Answer: answer, Advice: advice}
	}
	code := resp.Header.Get("X-Ms-Error-Code")
	e := &backend.Error{Summary: summary, Argument: "container_name", Answer: strings.TrimSpace(fmt.Sprintf("Azure Storage answered %d %s %s", resp.Status, http.StatusText(resp.Status), code))}
	switch {
	case code == "ContainerNotFound":
		e.Advice = fmt.Sprintf("There is no container %q in the storage account %q: create it, or check the names.", b.container, b.account)
	case code == "AuthenticationFailed" || resp.Status == http.StatusUnauthorized:
		e.Argument, e.Advice = b.who, "The credentials are not accepted: check access_key or sas_token, the name of the account, and the clock of this machine."
	case code == "AuthorizationFailure":
		e.Permission = role
		e.Advice = fmt.Sprintf("Check access_key or sas_token where one is set, and the firewall of the account, which may be closed to this network. Other credentials need the role %s on the container.", role)
	case resp.Status == http.StatusForbidden:
		e.Permission = role
		e.Advice = fmt.Sprintf("Check access_key or sas_token where one is set. Other credentials need the role %s on the container; for all of this backend Storage Blob Data Contributor.", role)
	case resp.Status == http.StatusTooManyRequests || resp.Status >= 500:
		e.Advice = backend.AdviceOn(resp.Status)
	case code == "LeaseIdMissing":
		e.Advice = "Somebody holds the lock. Wait until that run has ended, or release it with force-unlock."
	default:
		e.Advice = "Check the names of account, container and key, and whether a proxy stands in between."
	}
	return e
}

// Check implements backend.Checker.
func (b *container) Check(ctx context.Context, _ string, report func(backend.Finding)) {
	from := "a token by " + b.way + " that is used for the blobs"
	switch {
	case b.given:
		from = "the key of the account"
	case b.sas != "":
		from = "a shared access signature"
	case !b.ad:
		from = "the key of the account, asked for with a token by " + b.way
	}
	report(backend.Finding{What: "credentials", OK: true, Detail: from}) // the state was read with them
	b.checkVersioning(ctx, report)
	detail := "keys of Microsoft"
	switch {
	case b.customerKey != "":
		detail = "a key of the customer"
	case b.scope != "":
		detail = "the scope " + b.scope
	}
	report(backend.Finding{What: "encryption at rest", OK: true, Detail: detail})
	backend.CheckClock(b.client, report)
}

// checkVersioning reports whether older states can be restored.
func (b *container) checkVersioning(ctx context.Context, report func(backend.Finding)) {
	const what = "versioning"
	if b.snapshot {
		report(backend.Finding{What: what, OK: true, Detail: "a snapshot is made before each write"})
		return
	}
	resp, err := b.probe(ctx)
	if err != nil {
		report(backend.Failed(what, err))
		return
	}
	f := backend.Finding{What: what, OK: resp.Header.Get("X-Ms-Version-Id") != "", Detail: "older states can be brought back"}
	if !f.OK {
		f.Detail = "the account keeps no versions, and snapshot is not set: a state that was overwritten cannot be brought back"
	}
	report(f)
}
