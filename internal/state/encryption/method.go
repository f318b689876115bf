package encryption

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

const unencrypted = "unencrypted"

// methods returns the kinds of methods.
func methods() map[string]kind {
	return map[string]kind{
		"aes_gcm":   {&schema.Block{Attributes: backend.Optional(map[string]cty.Type{"aad": cty.List(cty.Number)})}, []string{"keys"}},
		"external":  {&schema.Block{Attributes: backend.Optional(map[string]cty.Type{"encrypt_command": cty.List(cty.String), "decrypt_command": cty.List(cty.String)})}, []string{"keys"}},
		unencrypted: {&schema.Block{}, nil},
	}
}

func (c *Config) checkMethod(key string) diag.List {
	d := c.methods[key]
	if d.typ == "aes_gcm" && d.refs["keys"] == "" {
		return diag.Errorf(diag.CodeLangMissingArgument, &d.at, "Missing required argument", "The argument \"keys\" is required: the key provider to use.")
	}
	if d.typ == "external" {
		for _, n := range []string{"encrypt_command", "decrypt_command"} {
			if len(words(d.args, n)) == 0 {
				return diag.Errorf(diag.CodeLangMissingArgument, &d.at, "Missing required argument", "The argument %q is required: a program with its arguments.", n)
			}
		}
	}
	return nil
}

// words returns an argument that is a list of strings.
func words(args cty.Value, name string) []string {
	v := args.GetAttr(name)
	if v.IsNull() {
		return nil
	}
	var out []string
	for it := v.ElementIterator(); it.Next(); {
		if _, e := it.Element(); !e.IsNull() {
			out = append(out, e.AsString())
		}
	}
	return out
}

// encrypt encrypts the size bytes that write writes with a method. It adds the metadata of key
// providers to meta.
func (c *Config) encrypt(ctx context.Context, key string, size int64, write func(io.Writer) error, meta map[string][]byte) ([]byte, error) {
	d := c.methods[key]
	var k []byte
	if r := d.refs["keys"]; r != "" {
		var err error
		if k, err = c.encryptionKey(ctx, r, meta); err != nil {
			return nil, &setupError{err}
		}
	}
	if d.typ == "external" {
		plain := room(size)
		if err := write(plain); err != nil {
			return nil, err
		}
		return c.external(ctx, words(d.args, "encrypt_command"), k, plain.Bytes())
	}
	a, err := gcm(k)
	if err != nil {
		return nil, &setupError{err}
	}
	// The text is encrypted in place.
	n := a.NonceSize()
	text := room(int64(n) + size + int64(a.Overhead()))
	nonce := make([]byte, n)
	rand.Read(nonce) // never fails
	text.Write(nonce)
	if err := write(text); err != nil {
		return nil, err
	}
	b := text.Bytes()
	return b[:n+len(a.Seal(b[n:n], nonce, b[n:], aad(d.args)))], nil
}

// spacious is the size in bytes from which saving memory is more important than saving time.
const spacious = 16 << 20

// room returns a buffer for size bytes. Before it allocates a large one, it runs the garbage
// collector, so that an unused large buffer does not remain in memory.
func room(size int64) *bytes.Buffer {
	if size >= spacious {
		runtime.GC()
	}
	return bytes.NewBuffer(make([]byte, 0, size))
}

// decrypt decrypts with a method. last means that sealed is not needed any more, so that it may
// be overwritten.
func (c *Config) decrypt(ctx context.Context, key string, sealed []byte, meta map[string][]byte, last bool) ([]byte, error) {
	d := c.methods[key]
	var k []byte
	if r := d.refs["keys"]; r != "" {
		var err error
		if k, err = c.decryptionKey(ctx, r, meta); err != nil {
			return nil, err
		}
	}
	if d.typ == "external" {
		return c.external(ctx, words(d.args, "decrypt_command"), k, sealed)
	}
	a, err := gcm(k)
	if err != nil {
		return nil, &setupError{err}
	}
	n := a.NonceSize()
	if len(sealed) < n+a.Overhead() {
		return nil, errors.New("the encrypted data are too short")
	}
	var into []byte
	if last {
		into = sealed[n:n]
	}
	plain, err := a.Open(into, sealed[:n], sealed[n:], aad(d.args))
	if err != nil {
		return nil, fmt.Errorf("decryption failed: %w", err)
	}
	return plain, nil
}

func gcm(key []byte) (cipher.AEAD, error) {
	switch len(key) {
	case 16, 24, 32:
	default:
		return nil, fmt.Errorf("the key of aes_gcm must have 16, 24 or 32 bytes, not %d", len(key))
	}
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(b)
}

func aad(args cty.Value) []byte {
	v := args.GetAttr("aad")
	if v.IsNull() {
		return nil
	}
	var out []byte
	for it := v.ElementIterator(); it.Next(); {
		if _, e := it.Element(); !e.IsNull() {
			n, _ := e.AsBigFloat().Int64()
			out = append(out, byte(n))
		}
	}
	return out
}

// external runs a program of the method "external": the program writes a header line, reads
// {"key","payload"} and writes {"payload"}.
func (c *Config) external(ctx context.Context, command []string, key, payload []byte) ([]byte, error) {
	in, err := json.Marshal(struct {
		Key     []byte `json:"key,omitempty"`
		Payload []byte `json:"payload"`
	}{key, payload})
	if err != nil {
		return nil, err
	}
	var out struct {
		Payload []byte `json:"payload"`
	}
	if err := c.run(ctx, command, "OpenTofu-External-Encryption-Method", in, &out); err != nil {
		return nil, err
	}
	return out.Payload, nil
}

// run runs a program of an external method or key provider and reads its response.
func (c *Config) run(ctx context.Context, command []string, magic string, in []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	err := c.services.Run(ctx, sys.Command{
		Path: command[0], Args: command[1:], Dir: c.services.Dir, Env: c.services.Env,
		Stdin: bytes.NewReader(in), Stdout: &stdout, Stderr: &stderr,
	})
	if err != nil {
		if text := strings.TrimSpace(stderr.String()); text != "" {
			return fmt.Errorf("the program %s failed: %w: %s", command[0], err, text)
		}
		return fmt.Errorf("the program %s failed: %w", command[0], err)
	}
	line, err := stdout.ReadBytes('\n')
	var head struct {
		Magic   string `json:"magic"`
		Version int    `json:"version"`
	}
	if err != nil && !errors.Is(err, io.EOF) || strict(line, &head) != nil || head.Magic != magic || head.Version != 1 {
		return fmt.Errorf("the program %s did not begin with {\"magic\":%q,\"version\":1} on a line of its own", command[0], magic)
	}
	if err := strict(stdout.Bytes(), out); err != nil {
		return fmt.Errorf("the answer of the program %s cannot be read: %w", command[0], err)
	}
	return nil
}

// strict decodes JSON and returns an error for unknown fields.
func strict(b []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(out)
}
