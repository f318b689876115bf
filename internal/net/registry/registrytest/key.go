package registrytest

import (
	"bytes"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// A Key signs checksums.
type Key struct {
	ID     string
	Public string // armored
	entity *openpgp.Entity
	conf   *packet.Config
}

// NewKey returns a key. With a non-zero time, it expired one second after that time.
func NewKey(t testing.TB, expired time.Time) *Key {
	t.Helper()
	conf := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA}
	if !expired.IsZero() {
		conf.KeyLifetimeSecs = 1
		conf.Time = func() time.Time { return expired }
	}
	e, err := openpgp.NewEntity("Test", "", "test@example.com", conf)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	if err == nil {
		err = e.Serialize(w)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Key{ID: e.PrimaryKey.KeyIdString(), Public: b.String(), entity: e, conf: conf}
}

// Sign returns a detached signature.
func (k *Key) Sign(text []byte) []byte {
	var b bytes.Buffer
	if err := openpgp.DetachSign(&b, k.entity, bytes.NewReader(text), k.conf); err != nil {
		return nil
	}
	return b.Bytes()
}
