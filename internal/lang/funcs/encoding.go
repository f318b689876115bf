package funcs

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	textenc "golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
)

// encoding returns the functions that convert between texts and their encoded forms.
func encoding() family {
	return family{
		"base64decode": onStrings("Decodes a Base64 string into the text that it encodes, which must be UTF-8.", cty.String, base64Decode, "str"),
		"base64encode": onStrings("Encodes the UTF-8 bytes of a string in Base64.", cty.String, func(c call) (cty.Value, error) {
			return base64Value([]byte(c.text(0))), nil
		}, "str"),
		"base64gunzip": onStrings("Decodes a Base64 string and decompresses what it encodes with gzip.", cty.String, base64Gunzip, "str"),
		"base64gzip":   onStrings("Compresses a string with gzip and encodes the result in Base64.", cty.String, base64Gzip, "str"),
		"csvdecode":    guarded(stdlib.CSVDecodeFunc),
		"jsondecode":   decoded(guarded(stdlib.JSONDecodeFunc)),
		"jsonencode":   digits(stdlib.JSONEncodeFunc),
		"textdecodebase64": onStrings("Decodes a Base64 string and then the text in it, which is in a character encoding with an IANA name.",
			cty.String, textDecodeBase64, "source", "encoding"),
		"textencodebase64": onStrings("Encodes a string in a character encoding with an IANA name and the result in Base64.",
			cty.String, textEncodeBase64, "string", "encoding"),
		"urldecode": onStrings("Decodes a string that is encoded as urlencode does.", cty.String, urlDecode, "str"),
		"urlencode": onStrings("Encodes a string so that it can stand in the query part of a URL.", cty.String, func(c call) (cty.Value, error) {
			return cty.StringVal(url.QueryEscape(c.text(0))), nil
		}, "str"),
		"yamldecode": decoded(yamlDecodeFunc()),
		"yamlencode": digits(describe(yaml.YAMLEncodeFunc, "Writes a value as YAML.")),
	}
}

// describe sets the description of a function with one parameter.
func describe(f function.Function, about string) function.Function {
	return f.WithNewDescriptions(about, []string{""})
}

func base64Value(b []byte) cty.Value {
	return cty.StringVal(base64.StdEncoding.EncodeToString(b))
}

// fromBase64 decodes argument i of c.
func fromBase64(c call, i int) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(c.text(i))
	if err != nil {
		return nil, function.NewArgErrorf(i, "failed to decode base64 data %s", c.quoted(i))
	}
	return b, nil
}

func base64Decode(c call) (cty.Value, error) {
	b, err := fromBase64(c, 0)
	if err != nil {
		return cty.NilVal, err
	}
	if !utf8.Valid(b) {
		return cty.NilVal, function.NewArgErrorf(0, "the result of decoding the provided string is not valid UTF-8")
	}
	return cty.StringVal(string(b)), nil
}

// base64Gzip flushes before it closes, which adds an empty block. Existing state files and
// plans contain this form.
func base64Gzip(c call) (cty.Value, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, c.text(0))
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("failed to compress: %w", err)
	}
	return base64Value(b.Bytes()), nil
}

// maxGunzip limits the result in bytes, since a small argument can be the compressed form of a
// very large text.
const maxGunzip = 256 << 20

func base64Gunzip(c call) (cty.Value, error) {
	b, err := fromBase64(c, 0)
	if err != nil {
		return cty.NilVal, err
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "failed to gunzip bytestream: %s", gzipText(err))
	}
	b, err = io.ReadAll(io.LimitReader(r, maxGunzip+1))
	switch {
	case err != nil:
		return cty.NilVal, function.NewArgErrorf(0, "failed to gunzip bytestream: %s", gzipText(err))
	case len(b) > maxGunzip:
		return cty.NilVal, function.NewArgErrorf(0, "the decompressed text is larger than 256 MiB")
	case !utf8.Valid(b):
		return cty.NilVal, function.NewArgErrorf(0, "the result of decompressing the provided string is not valid UTF-8")
	}
	return cty.StringVal(string(b)), nil
}

func gzipText(err error) string {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err.Error()
}

func urlDecode(c call) (cty.Value, error) {
	s, err := url.QueryUnescape(c.text(0))
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "failed to decode URL %s: %s", c.quoted(0), c.because(err))
	}
	if !utf8.ValidString(s) {
		return cty.NilVal, function.NewArgErrorf(0, "the result of decoding the provided string is not valid UTF-8")
	}
	return cty.StringVal(s), nil
}

// charset returns the character encoding in argument 1 of c and its preferred name.
func charset(c call) (textenc.Encoding, string, error) {
	enc, err := ianaindex.IANA.Encoding(c.text(1))
	if err != nil || enc == nil {
		return nil, "", function.NewArgErrorf(1, "%s is not a supported IANA encoding name or alias", c.quoted(1))
	}
	name, err := ianaindex.IANA.Name(enc)
	if err != nil {
		name = c.text(1)
	}
	if c.secret[1] {
		name = "that encoding"
	}
	return enc, name, nil
}

func textEncodeBase64(c call) (cty.Value, error) {
	enc, name, err := charset(c)
	if err != nil {
		return cty.NilVal, err
	}
	b, err := enc.NewEncoder().Bytes([]byte(c.text(0)))
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "the given string contains characters that cannot be represented in %s", name)
	}
	return base64Value(b), nil
}

func textDecodeBase64(c call) (cty.Value, error) {
	enc, name, err := charset(c)
	if err != nil {
		return cty.NilVal, err
	}
	b, err := base64.StdEncoding.DecodeString(c.text(0))
	if err != nil {
		var at base64.CorruptInputError
		if errors.As(err, &at) {
			return cty.NilVal, function.NewArgErrorf(0, "the given value has an invalid base64 symbol at offset %d", int64(at))
		}
		return cty.NilVal, function.NewArgErrorf(0, "the given value is not valid base64")
	}
	// Decoders replace invalid input by the replacement character without an error.
	b, err = enc.NewDecoder().Bytes(b)
	if err != nil || strings.ContainsRune(string(b), utf8.RuneError) {
		return cty.NilVal, function.NewArgErrorf(0, "the given string contains symbols that are not defined for %s", name)
	}
	return cty.StringVal(string(b)), nil
}
