package encryption

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/net/azure"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/azureargs"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/zclconf/go-cty/cty"
)

// An azureVault generates keys and lets an Azure key vault, or a managed HSM, encrypt them.
// https://learn.microsoft.com/rest/api/keyvault/keys/encrypt/encrypt
type azureVault struct {
	vault     *url.URL
	key       string
	length    int
	algorithm string
	client    *rest.Client
	login     func(ctx context.Context) (*azure.Session, error)

	mu       sync.Mutex
	session  *azure.Session // nil until the first token is needed, because a custom cloud must first return its login endpoint
	resource string         // resource for which tokens are requested; "" until the vault has named it
}

// azureMeta is the metadata that is stored with encrypted content. Fields that the algorithm
// does not use are null.
type azureMeta struct {
	Ciphertext []byte `json:"ciphertext"`
	IV         []byte `json:"iv"`
	Tag        []byte `json:"authentication_tag"`
	AAD        []byte `json:"additional_authenticated_data"`
	Version    string `json:"key_version"`
	Algorithm  string `json:"algo"`
}

func azureAttributes() map[string]cty.Type {
	out := azureargs.Attributes()
	maps.Copy(out, map[string]cty.Type{
		"vault_uri": cty.String, "vault_key_name": cty.String, "key_length": cty.Number, "symmetric": cty.Bool, "symmetric_key_size": cty.Number,
	})
	return out
}

func newAzure(a *backend.Args, s backend.Services) *azureVault {
	p := &azureVault{key: a.Required("vault_key_name"), length: a.Int("key_length", 0), algorithm: "RSA-OAEP-256"}
	if p.length < 1 || p.length > 1024 {
		a.Fail("key_length", "The argument %q is required: a number of bytes from 1 to 1024", "key_length")
	}
	if a.Bool("symmetric", false) {
		size := a.Int("symmetric_key_size", 0)
		if !slices.Contains([]int{128, 192, 256}, size) {
			a.Fail("symmetric_key_size", "With %q, the %q must be 128, 192 or 256", "symmetric", "symmetric_key_size")
		}
		p.algorithm = fmt.Sprintf("A%dGCM", size)
	}
	text := a.Required("vault_uri")
	var err error
	if p.vault, err = url.Parse(strings.TrimSuffix(text, "/")); err != nil || text != "" && (p.vault.Scheme != "https" || p.vault.Host == "") {
		a.Fail("vault_uri", "The %q is not an address such as https://NAME.vault.azure.net", "vault_uri")
	}
	p.client = &rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: time.Minute}, Retries: 5, Sleep: s.Sleep, Now: s.Now}
	p.login = func(ctx context.Context) (*azure.Session, error) {
		cloud := azureargs.ReadCloud(ctx, a, p.client)
		o := azureargs.Login(a, cloud, s.Dir)
		if err := a.Err(); err != nil {
			return nil, err
		}
		return azure.Open(o, azure.Services{Env: s.Env, Dir: s.Dir, Transport: s.Transport, Run: s.Run, Now: s.Now}), nil
	}
	return p
}

// vaultBytes are bytes in the JSON encoding of the service.
type vaultBytes []byte

func (b vaultBytes) MarshalText() ([]byte, error) {
	return []byte(base64.RawURLEncoding.EncodeToString(b)), nil
}

func (b *vaultBytes) UnmarshalText(text []byte) (err error) {
	*b, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(string(text), "="))
	return err
}

type vaultBody struct {
	KID       string     `json:"kid,omitempty"`
	Algorithm string     `json:"alg,omitempty"`
	Value     vaultBytes `json:"value"`
	IV        vaultBytes `json:"iv,omitempty"`
	Tag       vaultBytes `json:"tag,omitempty"`
	AAD       vaultBytes `json:"aad,omitempty"`
}

// call sends an operation. The first request of a process has no token: the vault answers with
// the resource for which a token is needed. The vault must belong to that resource, so that a
// token is never sent elsewhere.
func (p *azureVault) call(ctx context.Context, version, operation string, in vaultBody) (out vaultBody, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	where := p.vault.JoinPath("keys", p.key, version, operation).String() + "?api-version=7.4"
	for range 2 {
		h := http.Header{"Content-Type": {"application/json"}}
		r := rest.Request{Method: "POST", URL: where, Header: h, Body: []byte{}, Repeat: true}
		if p.resource != "" {
			if p.session == nil {
				if p.session, err = p.login(ctx); err != nil {
					return out, err
				}
			}
			token, err := p.session.Token(ctx, p.resource)
			if err != nil {
				return out, err
			}
			h.Set("Authorization", "Bearer "+token)
			r.Body = body
		}
		resp, err := p.client.Do(ctx, r)
		switch {
		case err != nil:
			return out, err
		case resp.Status == http.StatusOK:
			return out, json.Unmarshal(resp.Body, &out)
		case resp.Status == http.StatusUnauthorized && p.resource == "":
			if p.resource, err = p.challenge(resp.Header.Get("WWW-Authenticate")); err != nil {
				return out, err
			}
			continue
		}
		var doc struct {
			Error struct{ Code, Message string }
		}
		_ = json.Unmarshal(resp.Body, &doc) // without a body the status suffices
		return out, fmt.Errorf("the key vault of Azure answered %d %s %s; the credentials need keys/%s on the key", resp.Status, doc.Error.Code, rest.Line([]byte(doc.Error.Message)), operation)
	}
	return out, errors.New("the key vault of Azure does not accept the token")
}

// challenge reads the resource for which a token is needed.
func (p *azureVault) challenge(header string) (string, error) {
	m := regexp.MustCompile(`(?:resource|scope)="([^"]+)"`).FindStringSubmatch(header)
	if m == nil {
		return "", fmt.Errorf("%s does not answer as a key vault of Azure", p.vault.Host)
	}
	resource := strings.TrimSuffix(m[1], "/.default")
	u, err := url.Parse(resource)
	if err != nil || u.Scheme != "https" || !strings.HasSuffix(p.vault.Hostname(), "."+u.Hostname()) {
		return "", fmt.Errorf("%s asks for a token that is for something else than a key vault", p.vault.Host)
	}
	return resource, nil
}

func (p *azureVault) fresh(ctx context.Context, _ []byte) ([]byte, any, error) {
	key := make([]byte, p.length)
	rand.Read(key) // never fails
	out, err := p.call(ctx, "", "encrypt", vaultBody{Algorithm: p.algorithm, Value: key})
	return key, azureMeta{out.Value, out.IV, out.Tag, out.AAD, path.Base(out.KID), p.algorithm}, err
}

func (p *azureVault) again(ctx context.Context, meta, _ []byte) ([]byte, error) {
	var m azureMeta
	if err := json.Unmarshal(meta, &m); err != nil || len(m.Ciphertext) == 0 || strings.ContainsAny(m.Version, "/?#.") {
		return nil, errors.New("the metadata cannot be read")
	}
	out, err := p.call(ctx, m.Version, "decrypt", vaultBody{Algorithm: m.Algorithm, Value: m.Ciphertext, IV: m.IV, Tag: m.Tag, AAD: m.AAD})
	return out.Value, err
}
