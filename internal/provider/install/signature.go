package install

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/terrace-iac/terrace/internal/net/registry"
)

// checkSignature verifies a detached signature of doc with any of the keys. It returns the
// ID of the key, and whether the key has expired. With a nil clock no key has expired.
func checkSignature(doc, sig []byte, keys []registry.SigningKey, now func() time.Time) (id string, expired bool, err error) {
	conf := &packet.Config{}
	if now != nil {
		conf.Time = now
	}
	for _, k := range keys {
		ring, err := openpgp.ReadArmoredKeyRing(strings.NewReader(k.Armor))
		if err != nil {
			return "", false, fmt.Errorf("the signing key %q of the registry cannot be read: %w", k.KeyID, err)
		}
		signer, err := openpgp.CheckDetachedSignature(ring, bytes.NewReader(doc), bytes.NewReader(sig), conf)
		switch {
		case errors.Is(err, pgperrors.ErrUnknownIssuer):
			continue
		case errors.Is(err, pgperrors.ErrKeyExpired) && now == nil, err == nil:
		case errors.Is(err, pgperrors.ErrKeyExpired):
			expired = true
		default:
			return "", false, fmt.Errorf("the signature of the list of checksums is not valid: %w", err)
		}
		if signer == nil {
			return k.KeyID, expired, nil
		}
		return signer.PrimaryKey.KeyIdString(), expired, nil
	}
	return "", false, errors.New("the provider is not signed with a valid signing key; please contact the provider author (authentication signature from unknown issuer)")
}
