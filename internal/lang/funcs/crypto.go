package funcs

import (
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"

	"github.com/google/uuid"
	"github.com/terrace-iac/terrace/diag"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"
)

// digest computes a hash of bytes and returns it as text.
type digest func([]byte) string

func hexMD5(b []byte) string    { h := md5.Sum(b); return hex.EncodeToString(h[:]) }
func hexSHA1(b []byte) string   { h := sha1.Sum(b); return hex.EncodeToString(h[:]) }
func hexSHA256(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }
func hexSHA512(b []byte) string { h := sha512.Sum512(b); return hex.EncodeToString(h[:]) }
func base64SHA256(b []byte) string {
	h := sha256.Sum256(b)
	return base64.StdEncoding.EncodeToString(h[:])
}
func base64SHA512(b []byte) string {
	h := sha512.Sum512(b)
	return base64.StdEncoding.EncodeToString(h[:])
}

// hashes returns the cryptographic functions with reproducible results.
func hashes() family {
	of := func(what string, d digest) function.Function {
		return onStrings("Returns the "+what+" of the UTF-8 bytes of a string.", cty.String,
			func(c call) (cty.Value, error) { return cty.StringVal(d([]byte(c.text(0)))), nil }, "str")
	}
	return family{
		"base64sha256": of("SHA-256 hash, in Base64,", base64SHA256),
		"base64sha512": of("SHA-512 hash, in Base64,", base64SHA512),
		"md5":          of("MD5 hash, in hexadecimal digits,", hexMD5),
		"rsadecrypt": onStrings("Decrypts a Base64 text that is encrypted with RSA and PKCS #1 v1.5 padding.",
			cty.String, rsaDecrypt, "ciphertext", "privatekey"),
		"sha1":   of("SHA-1 hash, in hexadecimal digits,", hexSHA1),
		"sha256": of("SHA-256 hash, in hexadecimal digits,", hexSHA256),
		"sha512": of("SHA-512 hash, in hexadecimal digits,", hexSHA512),
		"uuidv5": onStrings("Returns the UUID, version 5, of a name in a namespace: dns, url, oid, x500 or a UUID.",
			cty.String, uuidV5, "namespace", "name"),
	}
}

// random returns the functions with a different result for each call. A plan cannot know their
// results during apply.
func random(c Config) family {
	fs := family{"bcrypt": bcryptFunc(), "uuid": uuidFunc()}
	for name, f := range fs {
		if c.PureOnly || c.Comparing {
			fs[name] = function.Unpredictable(f)
		}
	}
	both := make(family, 4)
	addBoth(both, fs)
	return both
}

func uuidFunc() function.Function {
	return function.New(&function.Spec{
		Description:  "Returns a new random UUID each time.",
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
			id, err := uuid.NewRandom()
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(id.String()), nil
		},
	})
}

func bcryptFunc() function.Function {
	rest := plain("cost", cty.Number)
	return function.New(&function.Spec{
		Description:  "Returns a bcrypt hash of a string, another one each time; the cost is 10 if none is given.",
		Params:       []function.Parameter{plain("str", cty.String)},
		VarParam:     &rest,
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			cost := bcrypt.DefaultCost
			switch len(args) {
			case 1:
			case 2:
				if err := gocty.FromCtyValue(args[1], &cost); err != nil {
					return cty.NilVal, function.NewArgError(1, err)
				}
			default:
				return cty.NilVal, function.NewArgErrorf(2, "bcrypt() takes no more than two arguments")
			}
			hash, err := bcrypt.GenerateFromPassword([]byte(args[0].AsString()), cost)
			if err != nil { // contains the cost or the length, but not the string
				return cty.NilVal, errors.New("cannot compute the hash: " + diag.Reason(err))
			}
			return cty.StringVal(string(hash)), nil
		},
	})
}

func uuidV5(c call) (cty.Value, error) {
	var space uuid.UUID
	switch c.text(0) {
	case "dns":
		space = uuid.NameSpaceDNS
	case "url":
		space = uuid.NameSpaceURL
	case "oid":
		space = uuid.NameSpaceOID
	case "x500":
		space = uuid.NameSpaceX500
	default:
		var err error
		if space, err = uuid.Parse(c.text(0)); err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "uuidv5() doesn't support namespace %s; give dns, url, oid, x500 or a UUID", c.bare(0))
		}
	}
	return cty.StringVal(uuid.NewSHA1(space, []byte(c.text(1))).String()), nil
}

// rsaDecrypt accepts private keys in PEM: PKCS #1, PKCS #8 and OpenSSH.
func rsaDecrypt(c call) (cty.Value, error) {
	encrypted, err := base64.StdEncoding.DecodeString(c.text(0))
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "failed to decode input %s: cipher text must be base64-encoded", c.quoted(0))
	}
	raw, err := ssh.ParseRawPrivateKey([]byte(c.text(1)))
	var missing *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &missing):
		return cty.NilVal, function.NewArgErrorf(1, "the private key is protected by a passphrase")
	case err != nil:
		return cty.NilVal, function.NewArgErrorf(1, "invalid private key: it must be an unencrypted RSA key in PEM")
	}
	key, ok := raw.(*rsa.PrivateKey)
	if !ok {
		return cty.NilVal, function.NewArgErrorf(1, "invalid private key type: an RSA key is needed")
	}
	//lint:ignore SA1019 the function is documented to have this padding
	text, err := rsa.DecryptPKCS1v15(nil, key, encrypted)
	if err != nil {
		return cty.NilVal, errors.New("failed to decrypt: the text was not encrypted for this key")
	}
	return cty.StringVal(string(text)), nil
}
