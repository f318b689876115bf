package encryption

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/net/aws"
	"github.com/terrace-iac/terrace/internal/net/gcp"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/awsargs"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
)

// An awsKMS gets data keys from the AWS key management service.
// https://docs.aws.amazon.com/kms/latest/APIReference/
type awsKMS struct {
	key, spec string
	context   map[string]string // the encryption context; nil means none
	session   func(ctx context.Context) (*aws.Session, error)
	s         backend.Services
}

type awsMeta struct {
	Ciphertext []byte `json:"ciphertext_blob"`
}

// An awsSession is the cached result of opening a session.
type awsSession struct {
	session *aws.Session
	err     error
}

func newAWS(a *backend.Args, s backend.Services) *awsKMS {
	o := awsargs.Options(a)
	if e := a.Block("endpoints"); e != nil {
		o.STSEndpoint = e.String("sts", o.STSEndpoint)
	}
	p := &awsKMS{key: a.Required("kms_key_id"), spec: a.Required("key_spec"), context: a.Map("encryption_context"), s: s}
	switch p.spec {
	case "AES_256", "AES_128", "":
	default:
		a.Fail("key_spec", "The %q is neither AES_256 nor AES_128", "key_spec")
	}
	var opened parallel.Cache[struct{}, awsSession]
	p.session = func(ctx context.Context) (*aws.Session, error) {
		got, err := opened.Do(ctx, struct{}{}, func() (awsSession, bool) {
			session, err := aws.Open(ctx, o, aws.Services{Env: s.Env, Renew: s.Renew, Dir: s.Dir, Home: s.Home, Now: s.Now, Run: s.Run, Transport: s.Transport})
			return awsSession{session, err}, err == nil
		})
		if err != nil {
			return nil, err
		}
		return got.session, got.err
	}
	return p
}

// call sends an operation.
func (p *awsKMS) call(ctx context.Context, operation string, in, out any) error {
	session, err := p.session(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	client := rest.Client{HTTP: session.HTTP, Retries: 5, Sleep: p.s.Sleep, Now: p.s.Now, Prepare: rest.Once(func(ctx context.Context, r *http.Request, sum func() [sha256.Size]byte) error {
		return session.Sign(ctx, r, sum(), "kms", session.Region)
	}, func(err error) bool { return errors.Is(err, aws.ErrNoCredentials) })}
	h := http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {"TrentService." + operation}}
	resp, err := client.Do(ctx, rest.Request{Method: "POST", URL: session.Endpoint("kms", "") + "/", Header: h, Body: body, Repeat: true})
	switch {
	case err != nil:
		return err
	case resp.Status != http.StatusOK:
		return fmt.Errorf("the key management service of AWS answered %w; the credentials need kms:%s on the key", aws.JSONError(resp.Status, resp.Body), operation)
	}
	return json.Unmarshal(resp.Body, out)
}

// with adds the encryption context to a request.
func (p *awsKMS) with(in map[string]any) map[string]any {
	if len(p.context) > 0 {
		in["EncryptionContext"] = p.context
	}
	return in
}

func (p *awsKMS) fresh(ctx context.Context, _ []byte) ([]byte, any, error) {
	var out struct{ CiphertextBlob, Plaintext []byte }
	err := p.call(ctx, "GenerateDataKey", p.with(map[string]any{"KeyId": p.key, "KeySpec": p.spec}), &out)
	return out.Plaintext, awsMeta{out.CiphertextBlob}, err
}

func (p *awsKMS) again(ctx context.Context, meta, _ []byte) ([]byte, error) {
	var m awsMeta
	if err := json.Unmarshal(meta, &m); err != nil || len(m.Ciphertext) == 0 {
		return nil, errors.New("the metadata cannot be read")
	}
	var out struct{ Plaintext []byte }
	err := p.call(ctx, "Decrypt", p.with(map[string]any{"KeyId": p.key, "CiphertextBlob": m.Ciphertext}), &out)
	return out.Plaintext, err
}

// An openBao gets data keys from the transit engine of OpenBao or Vault.
type openBao struct {
	address, token, namespace, path, key string
	associated                           []byte // authenticated with each key; empty means none
	length                               int
	client                               rest.Client
}

type baoMeta struct {
	// Ciphertext is the text of an encrypted key, such as "vault:v1:…", as bytes.
	Ciphertext []byte `json:"ciphertext"`
}

func newOpenBao(a *backend.Args, s backend.Services) *openBao {
	p := &openBao{
		key: a.Required("key_name"), address: strings.TrimSuffix(a.String("address", "https://127.0.0.1:8200", "BAO_ADDR", "VAULT_ADDR"), "/"),
		token: a.String("token", "", "BAO_TOKEN", "VAULT_TOKEN"), namespace: a.String("", "", "BAO_NAMESPACE", "VAULT_NAMESPACE"),
		path: strings.Trim(a.String("transit_engine_path", "/transit"), "/"), length: a.Int("key_length", 32),
		associated: base64Argument(a, "associated_data"),
	}
	switch p.length {
	case 16, 32, 64:
	default:
		a.Fail("key_length", "The %q is none of 16, 32 and 64", "key_length")
	}
	insecure := a.Bool("", false, "BAO_SKIP_VERIFY", "VAULT_SKIP_VERIFY")
	t := backend.TLS{Insecure: insecure, ServerName: a.String("", "", "BAO_TLS_SERVER_NAME", "VAULT_TLS_SERVER_NAME")}
	transport, err := s.TLSTransport(t)
	if err != nil {
		a.Fail("address", "%s", err)
	}
	p.client = rest.Client{HTTP: &http.Client{Transport: transport}, Retries: 3, Sleep: s.Sleep, Now: s.Now}
	return p
}

func (p *openBao) call(ctx context.Context, path string, in any, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	h := http.Header{"Content-Type": {"application/json"}, "X-Vault-Request": {"true"}}
	if p.token != "" {
		h.Set("X-Vault-Token", p.token)
	}
	if p.namespace != "" {
		h.Set("X-Vault-Namespace", p.namespace)
	}
	resp, err := p.client.Do(ctx, rest.Request{Method: "POST", URL: p.address + "/v1/" + p.path + "/" + path, Header: h, Body: body, Repeat: true})
	if err != nil {
		return err
	}
	if resp.Status != http.StatusOK {
		var doc struct{ Errors []string }
		_ = json.Unmarshal(resp.Body, &doc) // without a body the status suffices
		return fmt.Errorf("OpenBao answered %d %s %s", resp.Status, http.StatusText(resp.Status), strings.Join(doc.Errors, "; "))
	}
	return json.Unmarshal(resp.Body, out)
}

type baoAnswer struct {
	Data struct {
		Ciphertext string `json:"ciphertext"`
		Plaintext  []byte `json:"plaintext"`
	} `json:"data"`
}

// with adds the associated data to a request.
func (p *openBao) with(in map[string]any) map[string]any {
	if len(p.associated) > 0 {
		in["associated_data"] = p.associated
	}
	return in
}

// base64Argument returns the bytes of an argument in base64, or nil if it is not set.
func base64Argument(a *backend.Args, name string) []byte {
	b, err := base64.StdEncoding.DecodeString(a.String(name, ""))
	if err != nil {
		a.Fail(name, "The argument %q must be in base64, as base64encode returns it", name)
	}
	return b
}

func (p *openBao) fresh(ctx context.Context, _ []byte) ([]byte, any, error) {
	var out baoAnswer
	err := p.call(ctx, "datakey/plaintext/"+p.key, p.with(map[string]any{"bits": 8 * p.length}), &out)
	return out.Data.Plaintext, baoMeta{[]byte(out.Data.Ciphertext)}, err
}

func (p *openBao) again(ctx context.Context, meta, _ []byte) ([]byte, error) {
	var m baoMeta
	if err := json.Unmarshal(meta, &m); err != nil {
		return nil, errors.New("the metadata cannot be read")
	}
	var out baoAnswer
	err := p.call(ctx, "decrypt/"+p.key, p.with(map[string]any{"ciphertext": string(m.Ciphertext)}), &out)
	return out.Data.Plaintext, err
}

// A gcpKMS generates keys and lets the Google Cloud key management service encrypt them.
type gcpKMS struct {
	key    string
	length int
	aad    []byte // additional authenticated data; empty means none
	where  string
	client rest.Client
}

type gcpMeta struct {
	Ciphertext []byte `json:"ciphertext"`
}

func newGCP(a *backend.Args, s backend.Services) *gcpKMS {
	o := gcp.Options{
		Credentials: a.String("credentials", "", "GOOGLE_BACKEND_CREDENTIALS", "GOOGLE_CREDENTIALS"),
		AccessToken: a.String("access_token", "", "GOOGLE_OAUTH_ACCESS_TOKEN"),
		Impersonate: a.String("impersonate_service_account", "", "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"),
		Delegates:   a.Strings("impersonate_service_account_delegates"),
		Scopes:      []string{"https://www.googleapis.com/auth/cloud-platform"},
	}
	p := &gcpKMS{key: a.Required("kms_encryption_key"), length: a.Int("key_length", 0), aad: base64Argument(a, "additional_authenticated_data")}
	if p.length < 1 || p.length > 1024 {
		a.Fail("key_length", "The argument %q is required: a number of bytes from 1 to 1024", "key_length")
	}
	session := gcp.Open(o, gcp.Services{Env: s.Env, Dir: s.Dir, Home: s.Home, Transport: s.Transport, Now: s.Now, Run: s.Run})
	p.where = "https://" + session.Host("cloudkms") + "/v1/" + p.key
	p.client = rest.Client{HTTP: &http.Client{Transport: s.Transport, Timeout: time.Minute}, Retries: 5, Sleep: s.Sleep, Now: s.Now, Prepare: rest.Once(session.Prepare, gcp.Lasting)}
	return p
}

func (p *gcpKMS) call(ctx context.Context, method, permission string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	h := http.Header{"Content-Type": {"application/json"}}
	resp, err := p.client.Do(ctx, rest.Request{Method: "POST", URL: p.where + ":" + method, Header: h, Body: body, Repeat: true})
	switch {
	case err != nil:
		return err
	case resp.Status != http.StatusOK:
		return fmt.Errorf("the key management service of Google Cloud answered %d %s; the credentials need cloudkms.cryptoKeyVersions.%s on the key", resp.Status, gcp.Message(resp.Body), permission)
	}
	return json.Unmarshal(resp.Body, out)
}

// with returns a request with the additional authenticated data.
func (p *gcpKMS) with(name string, value []byte) map[string][]byte {
	in := map[string][]byte{name: value}
	if len(p.aad) > 0 {
		in["additionalAuthenticatedData"] = p.aad
	}
	return in
}

func (p *gcpKMS) fresh(ctx context.Context, _ []byte) ([]byte, any, error) {
	key := make([]byte, p.length)
	rand.Read(key) // never fails
	var out struct{ Ciphertext []byte }
	err := p.call(ctx, "encrypt", "useToEncrypt", p.with("plaintext", key), &out)
	return key, gcpMeta{out.Ciphertext}, err
}

func (p *gcpKMS) again(ctx context.Context, meta, _ []byte) ([]byte, error) {
	var m gcpMeta
	if err := json.Unmarshal(meta, &m); err != nil || len(m.Ciphertext) == 0 {
		return nil, errors.New("the metadata cannot be read")
	}
	var out struct{ Plaintext []byte }
	err := p.call(ctx, "decrypt", "useToDecrypt", p.with("ciphertext", m.Ciphertext), &out)
	return out.Plaintext, err
}
