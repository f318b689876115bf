package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/net/transfer"
)

// machine is the URL at which a virtual machine gets tokens of its identity.
const machine = "http://169.254.169.254/metadata/identity/oauth2/token"

// managed gets a token of the managed identity of the machine or service on which the program
// runs. Environment variables contain the endpoint.
// https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
// https://learn.microsoft.com/azure/app-service/overview-managed-identity
// https://learn.microsoft.com/azure/azure-arc/servers/managed-identity-authentication
func (s *Session) managed(ctx context.Context, scope string) (azcore.AccessToken, error) {
	env := s.s.Env
	identity, header := env.Get("IDENTITY_ENDPOINT"), env.Get("IDENTITY_HEADER")
	old := s.o.ManagedEndpoint
	if old == "" {
		old = env.Get("MSI_ENDPOINT")
	}
	q := url.Values{"resource": {strings.TrimSuffix(scope, "/.default")}}
	client, resource := "client_id", "mi_res_id"
	r := request{method: http.MethodGet, header: http.Header{"Metadata": {"true"}}, query: q}
	switch {
	case identity != "" && header != "": // app services, functions, containers
		r.address, r.header = identity, http.Header{"X-Identity-Header": {header}}
		q.Set("api-version", "2019-08-01")
	case identity != "" && env.Get("IMDS_ENDPOINT") != "": // machines outside of Azure that are connected by Azure Arc
		r.address, client, resource = identity, "", ""
		q.Set("api-version", "2020-06-01")
		secret, err := s.joined(ctx, r)
		if err != nil {
			return azcore.AccessToken{}, err
		}
		r.header.Set("Authorization", "Basic "+secret)
	case old != "" && env.Get("MSI_SECRET") != "":
		r.address, r.header, client = old, http.Header{"Secret": {env.Get("MSI_SECRET")}}, "clientid"
		q.Set("api-version", "2017-09-01")
	case old != "" && s.o.ManagedEndpoint == "": // Cloud Shell
		r.address, r.method, client, resource = old, http.MethodPost, "", ""
		r.header.Set("Content-Type", "application/x-www-form-urlencoded")
	default:
		if r.address = old; r.address == "" {
			r.address = machine
		}
		resource = "msi_res_id"
		q.Set("api-version", "2018-02-01")
	}
	if s.o.IdentityResource != "" && resource != "" {
		q.Set(resource, s.o.IdentityResource)
	}
	if s.o.Client != "" && client != "" {
		q.Set(client, s.o.Client)
	}
	resp, body, err := s.ask(ctx, r)
	if err != nil {
		return azcore.AccessToken{}, fmt.Errorf("%w: nobody gives tokens of a managed identity here (%w)", ErrNone, err)
	}
	var t struct {
		AccessToken string          `json:"access_token"`
		ExpiresOn   json.RawMessage `json:"expires_on"` // a number or a string with a number
		Description string          `json:"error_description"`
	}
	_ = json.Unmarshal(body, &t) // the status and the missing token suffice
	if resp.StatusCode != http.StatusOK || t.AccessToken == "" {
		line, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
		if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500 {
			return azcore.AccessToken{}, fmt.Errorf("the managed identity gives no token: it answered %d %s: %w", resp.StatusCode, line, ErrBusy)
		}
		return azcore.AccessToken{}, errors.New(strings.TrimSpace(fmt.Sprintf("the managed identity gives no token: it answered %d %s", resp.StatusCode, line)))
	}
	until := s.s.Now().Add(5 * time.Minute)
	if n, err := strconv.ParseInt(strings.Trim(string(t.ExpiresOn), `"`), 10, 64); err == nil {
		until = time.Unix(n, 0)
	}
	return azcore.AccessToken{Token: t.AccessToken, ExpiresOn: until}, nil
}

// A request is a request for a token.
type request struct {
	method, address string
	header          http.Header
	query           url.Values // query of the URL, or form in the body of a POST
}

func (s *Session) ask(ctx context.Context, r request) (*http.Response, []byte, error) {
	address, body := r.address+"?"+r.query.Encode(), ""
	if r.method == http.MethodPost {
		address, body = r.address, r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, strings.NewReader(body))
	if err != nil {
		return nil, nil, errors.New("its address is not valid")
	}
	req.Header = r.header.Clone()
	resp, err := s.direct().Do(req)
	if err != nil {
		return nil, nil, plain(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp, text, err
}

// tokens returns the directories in which the agent of Azure Arc stores secrets, which only
// members of its group can read. Other paths are rejected, since another server might name them.
func tokens(env interface{ Get(string) string }) []string {
	return []string{"/var/opt/azcmagent/tokens", filepath.Join(env.Get("ProgramData"), "AzureConnectedMachineAgent", "Tokens")}
}

// direct returns a client for servers on this machine or its local network, without a proxy.
func (s *Session) direct() *http.Client { return transfer.Direct(s.client()) }

// joined gets the secret of the agent of Azure Arc. The agent names its file in the response to a
// request without the secret.
func (s *Session) joined(ctx context.Context, r request) (string, error) {
	resp, _, err := s.ask(ctx, r)
	if err != nil {
		return "", fmt.Errorf("%w: the agent of this machine does not answer (%w)", ErrNone, err)
	}
	_, path, ok := strings.Cut(resp.Header.Get("WWW-Authenticate"), "Basic realm=")
	if path = filepath.Clean(path); !ok || filepath.Ext(path) != ".key" {
		return "", errors.New("the agent of this machine names no file with a secret")
	}
	for _, dir := range tokens(s.s.Env) {
		if filepath.Dir(path) == dir {
			text, err := readfile.Whole(path)
			if err != nil {
				return "", errors.New("the secret of the agent of this machine cannot be read: this user is not in its group")
			}
			return string(text), nil
		}
	}
	return "", errors.New("the agent of this machine names a file in a directory that is not its own")
}
