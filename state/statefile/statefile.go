// Package statefile reads and writes state as JSON. It writes version 4 of the format, like
// OpenTofu 1.12 and Terraform 1.x, and also reads versions 1 to 3.
//
// Main functions: Parse and Write; AppendChange and ParseChange read and write one object for a
// journal. The one rule: for the same content the output is identical to that of OpenTofu
// 1.12.6, byte for byte, and unchanged values are never decoded.
//
// Section 6.1 of the reference describes the format. Details that it leaves open follow the
// behaviour of OpenTofu 1.12.6.
package statefile

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/rawjson"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// Version is the language version that written states carry.
const Version = state.LanguageVersion

// maxMessages is the maximum number of messages about one invalid state.
const maxMessages = 50

// Parse reads a state. An empty document returns nil without a message. With errors the result
// is nil, too. name is the file name in messages. Parse does not retain b.
func Parse(name string, b []byte) (*state.State, diag.List) {
	if len(b) == 0 {
		return nil, nil
	}
	if bytes.HasPrefix(b, []byte("tfstate")) {
		return nil, diag.Errorf(diag.CodeStateInvalidFile, nil, "Unsupported state file format", "The state %s is in the binary format that Terraform before 0.7 wrote. Upgrade it with Terraform 0.6.16 first.", name)
	}
	p := &parser{name: name, doc: b}
	version, ok := p.version()
	if !ok {
		return nil, p.ds
	}
	var s *state.State
	switch version {
	case 1, 2, 3:
		s = p.legacy(version)
	case 4:
		var err error
		if s, err = p.v4(rawjson.NewScanner(b), false); err != nil {
			p.syntax(err)
		}
	default:
		p.errorf(diag.CodeStateInvalidFile, 0, "Unsupported state file format", "The state has format version %d%s, which is newer than this program. It reads versions 1 to 4. Use a newer version, or restore a backup that an older one wrote.", version, p.writer())
	}
	if p.ds.HasErrors() {
		return nil, p.ds
	}
	return s, p.ds
}

// ParseStream reads a state of version 4 from r without having the whole text in memory. For
// any other document, and for a state with an error, it returns only ok == false; Parse reports
// the errors. With outline set, objects have only their id, if that is a string, and no private
// data, identities or dependencies.
func ParseStream(r io.Reader, outline bool) (s *state.State, ok bool) {
	p := &parser{stream: true, outline: outline}
	in := rawjson.NewReader(r)
	out, err := p.v4(in, true)
	return out, err == nil && in.Err() == nil && len(p.ds) == 0
}

// version returns the version of the format. It stops reading at the version, which is the
// first property in every file that a program wrote.
func (p *parser) version() (int, bool) {
	var version []byte
	encrypted := false
	at := 0
	found := errors.New("found")
	s := rawjson.NewScanner(p.doc)
	if s.Peek() != '{' {
		if err := p.valid(); err != nil {
			p.syntax(err)
			return 0, false
		}
		p.errorf(diag.CodeStateInvalidFile, 0, "Unsupported state file format", "A state is a JSON object, but this is something else.")
		return 0, false
	}
	err := s.Object(func(key []byte) (err error) {
		switch string(key) {
		case "version":
			s.Peek()
			at = s.Offset()
			if version, err = s.Skip(); err == nil {
				err = found
			}
		case "encrypted_data":
			encrypted = true
			_, err = s.Skip()
		default:
			_, err = s.Skip()
		}
		return err
	})
	if err != nil && err != found {
		p.syntax(err)
		return 0, false
	}
	n, err := strconv.Atoi(string(version))
	switch {
	case version == nil && encrypted:
		p.errorf(diag.CodeStateEncrypted, 0, "Encrypted state", "The state is encrypted. To read it, the configuration needs an encryption block with the key provider and the method that it was written with.")
		p.ds[len(p.ds)-1].Code = EncryptedCode
	case version == nil:
		p.errorf(diag.CodeStateInvalidFile, 0, "Unsupported state file format", "The state has no \"version\" property, which tells the version of the format. Is this a state file?")
	case err != nil || n < 0:
		p.errorf(diag.CodeStateInvalidFile, at, "Unsupported state file format", "The version of the state's format must be a whole number from 1 to 4.")
	case n == 0:
		p.errorf(diag.CodeStateInvalidFile, at, "Unsupported state file format", "The state claims to have format version 0, which was never written as JSON.")
	default:
		return n, true
	}
	return 0, false
}

// valid checks the syntax of the whole document.
func (p *parser) valid() error {
	s := rawjson.NewScanner(p.doc)
	if _, err := s.Skip(); err != nil {
		return err
	}
	return s.End()
}

// writer returns the name of the program that wrote a state, for a message.
func (p *parser) writer() string {
	s := rawjson.NewScanner(p.doc)
	var v string
	_ = s.Object(func(key []byte) (err error) {
		if string(key) == "terraform_version" && s.Peek() == '"' {
			v, err = s.String()
			return err
		}
		_, err = s.Skip()
		return err
	})
	if v == "" || len(v) > 40 {
		return ""
	}
	return " (written by version " + strconv.Quote(v) + ")"
}

// A parser reads one document once.
type parser struct {
	name string
	doc  []byte // nil if the document is not in memory
	ds   diag.List

	stream  bool // the document is not in memory
	outline bool // see ParseStream

	names names
	arena []byte
	found []addr.ConfigResource // dependencies of the current instance; the array is used again
}

// EncryptedCode is the code of the message that a state is encrypted.
const EncryptedCode = diag.CodeStateEncrypted

// errorf adds a message about a position in the document.
func (p *parser) errorf(code string, offset int, summary, format string, args ...any) {
	if len(p.ds) >= maxMessages {
		return // the first messages suffice
	}
	p.ds = append(p.ds, diag.Errorf(code, p.at(offset), summary, format, args...)...)
}

// syntax adds the message for text that is not JSON, or does not have the form of a state.
func (p *parser) syntax(err error) {
	var se *rawjson.SyntaxError
	if errors.As(err, &se) {
		p.errorf(diag.CodeStateInvalidFile, se.Offset, "Invalid state file", "The state cannot be read: %s. If it was cut off or edited, restore a backup.", se.Msg)
		return
	}
	p.errorf(diag.CodeStateInvalidFile, 0, "Invalid state file", "The state cannot be read: %s.", reason(err))
}

// reason returns the error's text without a final full stop.
func reason(err error) string { return strings.TrimSuffix(err.Error(), ".") }

// at returns the range at an offset; nil without a file name.
func (p *parser) at(offset int) *source.Range {
	if p.name == "" {
		return nil
	}
	offset = min(max(offset, 0), len(p.doc))
	line := 1 + bytes.Count(p.doc[:offset], []byte("\n"))
	column := 1 + len([]rune(string(p.doc[bytes.LastIndexByte(p.doc[:offset], '\n')+1:offset])))
	r := source.Range{Filename: p.name}
	r.Start.Line, r.Start.Column, r.Start.Byte = line, column, offset
	r.End = r.Start
	if offset < len(p.doc) && p.doc[offset] != '\n' {
		r.End.Column++
		r.End.Byte++
	}
	return &r
}
