package remote

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
)

// KeyVariable is the name of the environment variable that contains the key of runs.
const KeyVariable = "TERRACE_RUN_KEY"

// A Sealer compresses and encrypts data that leaves the machine, with AES-256 in Galois/Counter
// mode. Create it with NewSealer. Its methods may be called concurrently.
type Sealer struct {
	aead  cipher.AEAD
	names []byte    // key for computing names
	spare sync.Pool // contains *flate.Writer, which use a megabyte each
}

// NewSealer returns a Sealer for a key of 32 bytes, encoded in base64.
func NewSealer(key string) (*Sealer, error) {
	if key == "" {
		return nil, fmt.Errorf("there is no key that the run is encrypted with: set %s, for the command and for all workers, to the same 32 random bytes in base64, for example those that \"openssl rand -base64 32\" prints", KeyVariable)
	}
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(raw) != 32 {
		return nil, fmt.Errorf("the key in %s is not 32 bytes in base64", KeyVariable)
	}
	seal, err := hkdf.Key(sha256.New, raw, nil, "terrace run: seal", 32)
	if err != nil {
		return nil, err
	}
	names, err := hkdf.Key(sha256.New, raw, nil, "terrace run: names", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(seal)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &Sealer{aead: aead, names: names}, err
}

// Name returns a name for a text. Equal texts have equal names. Without the key, a name reveals
// nothing about the text.
func (s *Sealer) Name(text []byte) string {
	h := hmac.New(sha256.New, s.names)
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// markSize is the number of characters of Mark.
const markSize = 8

// Mark returns a short identifier of the key and a version of the program, which reveals nothing
// about the key.
func (s *Sealer) Mark(version string) string { return s.Name([]byte("mark " + version))[:markSize] }

// Seal compresses and encrypts a text. Open needs the same value of about.
func (s *Sealer) Seal(text []byte, about string) ([]byte, error) {
	var b bytes.Buffer
	w, ok := s.spare.Get().(*flate.Writer)
	if ok {
		w.Reset(&b)
	} else {
		var err error
		if w, err = flate.NewWriter(&b, flate.BestSpeed); err != nil {
			return nil, err
		}
	}
	defer s.spare.Put(w)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	nonce := make([]byte, s.aead.NonceSize())
	rand.Read(nonce) // never fails
	return s.aead.Seal(nonce, nonce, b.Bytes(), []byte(about)), nil
}

// maxOpened is the maximum size, in bytes, of an opened text.
const maxOpened = 1 << 30

var errSeal = fmt.Errorf("it was not sealed with the key in %s of this process, or was changed since", KeyVariable)

// Open returns the text that Seal encrypted. about must be the same as in Seal.
func (s *Sealer) Open(sealed []byte, about string) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, errSeal
	}
	packed, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(about))
	if err != nil {
		return nil, errSeal
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxOpened+1))
	if err == nil && len(text) > maxOpened {
		err = errors.New("it is too large")
	}
	return text, err
}
