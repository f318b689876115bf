package encryption

import (
	"cmp"
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/awsargs"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// kinds returns the kinds of key providers.
func kinds() map[string]kind {
	aws := awsargs.Attributes()
	aws["kms_key_id"], aws["key_spec"], aws["encryption_context"] = cty.String, cty.String, cty.Map(cty.String)
	aws["endpoints"] = cty.Object(map[string]cty.Type{"iam": cty.String, "sts": cty.String})
	return map[string]kind{
		"pbkdf2": {&schema.Block{Attributes: backend.Optional(map[string]cty.Type{
			"passphrase": cty.String, "key_length": cty.Number, "iterations": cty.Number, "salt_length": cty.Number, "hash_function": cty.String,
		})}, []string{"chain"}},
		"external":    {&schema.Block{Attributes: backend.Optional(map[string]cty.Type{"command": cty.List(cty.String)})}, nil},
		"aws_kms":     {&schema.Block{Attributes: backend.Optional(aws)}, nil},
		"azure_vault": {&schema.Block{Attributes: backend.Optional(azureAttributes())}, nil},
		"gcp_kms": {&schema.Block{Attributes: backend.Optional(map[string]cty.Type{
			"kms_encryption_key": cty.String, "key_length": cty.Number, "credentials": cty.String, "access_token": cty.String,
			"impersonate_service_account": cty.String, "impersonate_service_account_delegates": cty.List(cty.String),
			"additional_authenticated_data": cty.String,
		})}, nil},
		"openbao": {&schema.Block{Attributes: backend.Optional(map[string]cty.Type{
			"key_name": cty.String, "address": cty.String, "token": cty.String, "key_length": cty.Number, "transit_engine_path": cty.String,
			"associated_data": cty.String,
		})}, nil},
	}
}

// A provider generates and recovers keys. chained is the encryption key of the chained
// provider; nil means none.
type provider interface {
	// fresh returns a new key, and the metadata for recovering it.
	fresh(ctx context.Context, chained []byte) (key []byte, meta any, err error)
	// again recovers the key for the metadata.
	again(ctx context.Context, meta, chained []byte) (key []byte, err error)
}

// A keyring caches the keys of one key provider: one key for encryption during the whole
// process, and the keys recovered from metadata. Configurations with the same provider share
// it, so that the states of many units have the same key.
type keyring struct {
	provider provider
	wrong    error // error in the arguments; nil if there is a provider

	made  parallel.Cache[struct{}, keyed] // the key for encryption
	found parallel.Cache[string, keyed]   // recovered keys by metadata
}

// keyed is the result of a key provider.
type keyed struct {
	key, meta []byte
	err       error
}

// keyring returns the keyring of a key provider.
func (c *Config) keyring(name string) *keyring {
	make := func() any {
		r := &keyring{}
		r.provider, r.wrong = c.provider(c.providers[name])
		return r
	}
	return c.services.Shared.Get("encryption "+c.identity(name), make).(*keyring)
}

// identity returns a text that is equal for key providers that return the same keys.
func (c *Config) identity(name string) string {
	d := c.providers[name]
	h := sha256.New()
	args, err := ctyjson.Marshal(d.args, d.args.Type())
	if err != nil {
		args = []byte(name)
	}
	fmt.Fprintf(h, "%s\x00%s\x00", d.typ, args)
	if chain := d.refs["chain"]; chain != "" {
		fmt.Fprintf(h, "%s\x00", c.identity(chain))
	}
	if d.typ != "pbkdf2" { // other kinds may read the environment and files
		fmt.Fprintf(h, "%s\x00", c.services.Dir)
		for _, pair := range c.services.Env {
			fmt.Fprintf(h, "%s\x00", pair)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// encryptionKey returns the key for encryption. It adds the metadata of the provider and its
// chained providers to meta.
func (c *Config) encryptionKey(ctx context.Context, name string, meta map[string][]byte) ([]byte, error) {
	var chained []byte
	if r := c.providers[name].refs["chain"]; r != "" {
		var err error
		if chained, err = c.encryptionKey(ctx, r, meta); err != nil {
			return nil, err
		}
	}
	r := c.keyring(name)
	if r.wrong != nil {
		return nil, c.failed(name, r.wrong)
	}
	k, err := r.made.Do(ctx, struct{}{}, func() (keyed, bool) {
		key, m, err := r.provider.fresh(ctx, chained)
		if err != nil {
			return keyed{err: err}, false
		}
		text, err := json.Marshal(m)
		return keyed{key, text, err}, err == nil
	})
	if err = cmp.Or(err, k.err); err != nil {
		return nil, c.failed(name, err)
	}
	meta[c.meta(name)] = k.meta
	return k.key, nil
}

// decryptionKey returns the key for content that was encrypted with this metadata.
func (c *Config) decryptionKey(ctx context.Context, name string, meta map[string][]byte) ([]byte, error) {
	m, ok := meta[c.meta(name)]
	if !ok {
		return nil, c.failed(name, ErrNoMetadata)
	}
	var chained []byte
	if r := c.providers[name].refs["chain"]; r != "" {
		var err error
		if chained, err = c.decryptionKey(ctx, r, meta); err != nil {
			return nil, err
		}
	}
	r := c.keyring(name)
	if r.wrong != nil {
		return nil, &setupError{c.failed(name, r.wrong)}
	}
	k, err := r.found.Do(ctx, string(m), func() (keyed, bool) {
		key, err := r.provider.again(ctx, m, chained)
		return keyed{key: key, err: err}, err == nil
	})
	if err = cmp.Or(err, k.err); err != nil {
		return nil, c.failed(name, err)
	}
	return k.key, nil
}

// failed returns the error of a key provider with its name and source range.
func (c *Config) failed(name string, err error) error {
	return &store.PlacedError{At: c.providers[name].at, Err: fmt.Errorf("%s: %w", name, err)}
}

// provider returns the key provider of a definition.
func (c *Config) provider(d *definition) (provider, error) {
	a := backend.NewArgs(d.args, c.services.Env)
	var p provider
	switch d.typ {
	case "pbkdf2":
		p = newPBKDF2(a, d.refs["chain"] != "")
	case "external":
		p = &external{c, words(d.args, "command")}
		if len(words(d.args, "command")) == 0 {
			a.Fail("command", "The argument %q is required: a program with its arguments", "command")
		}
	case "aws_kms":
		p = newAWS(a, c.services)
	case "azure_vault":
		p = newAzure(a, c.services)
	case "gcp_kms":
		p = newGCP(a, c.services)
	case "openbao":
		p = newOpenBao(a, c.services)
	default:
		return nil, fmt.Errorf("there is no key provider %q", d.typ)
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// A pbkdf2Provider derives a key from a passphrase. RFC 8018.
type pbkdf2Provider struct {
	passphrase   string
	length, salt int
	iterations   int
	function     string
}

type pbkdf2Meta struct {
	Salt       []byte `json:"salt"`
	Iterations int    `json:"iterations"`
	Function   string `json:"hash_function"`
	Length     int    `json:"key_length"`
}

// mostIterations limits the work that the metadata in a file can cause.
const mostIterations = 1 << 28

func newPBKDF2(a *backend.Args, chained bool) *pbkdf2Provider {
	p := &pbkdf2Provider{
		passphrase: a.String("passphrase", ""), length: a.Int("key_length", 32), salt: a.Int("salt_length", 32),
		iterations: a.Int("iterations", 600000), function: a.String("hash_function", "sha512"),
	}
	switch {
	case chained == (p.passphrase != ""):
		a.Fail("passphrase", "Either %q or %q is required, and not both", "passphrase", "chain")
	case !chained && len(p.passphrase) < 16:
		a.Fail("passphrase", "The %q must have at least 16 characters", "passphrase")
	}
	if p.iterations < 200000 || p.iterations > mostIterations {
		a.Fail("iterations", "The %q must be 200000 at least", "iterations")
	}
	if p.length < 1 || p.length > 1024 || p.salt < 1 || p.salt > 1<<20 {
		a.Fail("key_length", "The %q and %q must be greater than 0", "key_length", "salt_length")
	}
	if hashes(p.function) == nil {
		a.Fail("hash_function", "The %q is neither sha256 nor sha512", "hash_function")
	}
	return p
}

func hashes(name string) func() hash.Hash {
	return map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}[name]
}

func (p *pbkdf2Provider) fresh(_ context.Context, chained []byte) ([]byte, any, error) {
	m := pbkdf2Meta{Salt: make([]byte, p.salt), Iterations: p.iterations, Function: p.function, Length: p.length}
	rand.Read(m.Salt) // never fails
	k, err := p.derive(m, chained)
	return k, m, err
}

func (p *pbkdf2Provider) again(_ context.Context, meta, chained []byte) ([]byte, error) {
	var m pbkdf2Meta
	if err := json.Unmarshal(meta, &m); err != nil {
		return nil, errors.New("the metadata cannot be read")
	}
	if m.Iterations < 1 || m.Iterations > mostIterations || m.Length < 1 || m.Length > 1024 || hashes(m.Function) == nil {
		return nil, errors.New("the metadata do not make sense")
	}
	return p.derive(m, chained)
}

func (p *pbkdf2Provider) derive(m pbkdf2Meta, chained []byte) ([]byte, error) {
	phrase := p.passphrase
	if chained != nil {
		phrase = string(chained)
	}
	return pbkdf2.Key(hashes(m.Function), phrase, m.Salt, m.Iterations, m.Length)
}

// An external provider runs a program.
type external struct {
	c       *Config
	command []string
}

type externalData struct {
	External json.RawMessage `json:"external_data"`
}

type externalAnswer struct {
	Keys struct {
		Encryption []byte `json:"encryption_key"`
		Decryption []byte `json:"decryption_key,omitempty"`
	} `json:"keys"`
	Meta externalData `json:"meta"`
}

const externalMagic = "OpenTofu-External-Key-Provider"

func (e *external) fresh(ctx context.Context, _ []byte) ([]byte, any, error) {
	var out externalAnswer
	if err := e.c.run(ctx, e.command, externalMagic, []byte("null"), &out); err != nil {
		return nil, nil, err
	}
	if out.Meta.External == nil {
		out.Meta.External = json.RawMessage("{}")
	}
	return out.Keys.Encryption, out.Meta, nil
}

func (e *external) again(ctx context.Context, meta, _ []byte) ([]byte, error) {
	var out externalAnswer
	if err := e.c.run(ctx, e.command, externalMagic, meta, &out); err != nil {
		return nil, err
	}
	if len(out.Keys.Decryption) == 0 {
		return nil, errors.New("the program gave no decryption key")
	}
	return out.Keys.Decryption, nil
}
