package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// publicKeyFile is the name that cosign gives to the public key.
const publicKeyFile = "cosign.pub"

// A signingKey signs in the form of cosign: ECDSA with P-256 and SHA-256.
type signingKey struct {
	private *ecdsa.PrivateKey
	public  []byte // in PKIX form
}

// readKey reads a private key: a file of cosign generate-key-pair, which is encrypted with the
// password, or an unencrypted PKCS #8 key.
func readKey(path, password string) (*signingKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not a PEM file", path)
	}
	content := block.Bytes
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		if content, err = encrypted.Decrypt(content, []byte(password)); err != nil {
			return nil, fmt.Errorf("%s cannot be decrypted with the password in COSIGN_PASSWORD: %w", path, err)
		}
	case "PRIVATE KEY":
	default:
		return nil, fmt.Errorf("%s has a %s, not a private key of cosign", path, block.Type)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%s is not an ECDSA key on the curve P-256", path)
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	return &signingKey{private, public}, nil
}

// sign writes the public key, and the signatures of the checksums and of the provenance. The
// checksums cover all other files. For cosign before version 3, the signature of the checksums
// is also written by itself.
func (r *release) sign() error {
	write := func(name string, content []byte) error {
		return os.WriteFile(filepath.Join(r.out, name), content, 0o666)
	}
	sums, err := os.ReadFile(filepath.Join(r.out, sumsFile))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(sums)
	signature, err := r.key.signature(sums)
	if err != nil {
		return err
	}
	signed, err := r.key.bundle(bundle{Message: &message{Digest: digest{"SHA2_256", sum[:]}, Signature: signature}})
	if err != nil {
		return err
	}
	statement, err := os.ReadFile(filepath.Join(r.out, provenanceFile))
	if err != nil {
		return err
	}
	signer, err := dsse.NewEnvelopeSigner(r.key)
	if err != nil {
		return err
	}
	envelope, err := signer.SignPayload(context.Background(), "application/vnd.in-toto+json", statement)
	if err != nil {
		return err
	}
	attested, err := r.key.bundle(bundle{Envelope: envelope})
	if err != nil {
		return err
	}
	return errors.Join(
		write(publicKeyFile, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: r.key.public})),
		write(sumsFile+".sig", []byte(base64.StdEncoding.EncodeToString(signature))),
		write(sumsFile+".sigstore.json", signed),
		write("provenance.sigstore.json", attested),
	)
}

// signature returns the signature of a file, in ASN.1.
func (k *signingKey) signature(content []byte) ([]byte, error) {
	sum := sha256.Sum256(content)
	return ecdsa.SignASN1(rand.Reader, k.private, sum[:])
}

// Sign implements dsse.Signer.
func (k *signingKey) Sign(_ context.Context, content []byte) ([]byte, error) {
	return k.signature(content)
}

// KeyID implements dsse.Signer. cosign identifies keys by the bundle.
func (k *signingKey) KeyID() (string, error) { return "", nil }

// Verify implements dsse.Verifier.
func (k *signingKey) Verify(_ context.Context, content, signature []byte) error {
	sum := sha256.Sum256(content)
	if !ecdsa.VerifyASN1(&k.private.PublicKey, sum[:], signature) {
		return errors.New("the signature is not of this key")
	}
	return nil
}

// Public implements dsse.Verifier.
func (k *signingKey) Public() crypto.PublicKey { return k.private.Public() }

// A bundle is a signature in Sigstore's bundle format, version 0.3, of a file or of an
// attestation. It names no certificate and no entry of a transparency log.
type bundle struct {
	MediaType string         `json:"mediaType"`
	Material  material       `json:"verificationMaterial"`
	Message   *message       `json:"messageSignature,omitempty"`
	Envelope  *dsse.Envelope `json:"dsseEnvelope,omitempty"`
}

type material struct {
	Key struct {
		Hint string `json:"hint"`
	} `json:"publicKey"`
}

type message struct {
	Digest    digest `json:"messageDigest"`
	Signature []byte `json:"signature"`
}

type digest struct {
	Algorithm string `json:"algorithm"`
	Digest    []byte `json:"digest"`
}

// bundle completes a bundle and encodes it. The hint is the checksum of the public key, as in
// bundles of cosign.
func (k *signingKey) bundle(b bundle) ([]byte, error) {
	sum := sha256.Sum256(k.public)
	b.MediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	b.Material.Key.Hint = base64.StdEncoding.EncodeToString(sum[:])
	return json.Marshal(b)
}
