package encryption

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// version is the only version of the envelope.
const version = "v0"

// An envelope is encrypted content with the information for decrypting it. The envelope of a
// state also contains serial and lineage in clear text; that of a plan does not.
type envelope struct {
	Serial  *uint64           `json:"serial,omitempty"`
	Lineage *string           `json:"lineage,omitempty"`
	Meta    map[string][]byte `json:"meta"`
	Data    []byte            `json:"encrypted_data"`
	Version string            `json:"encryption_version"`
}

// dataName is the name of the data in JSON.
const dataName = `"encrypted_data"`

// text returns a function that writes the envelope. The data is encoded while it is written.
func (e *envelope) text(indent bool) (func(io.Writer) error, error) {
	head := *e
	head.Data = []byte{}
	b, err := json.Marshal(head)
	if indent && err == nil {
		var pretty bytes.Buffer
		err = json.Indent(&pretty, b, "", "  ")
		pretty.WriteByte('\n')
		b = pretty.Bytes()
	}
	if err != nil {
		return nil, err
	}
	// The metadata, which comes first, may contain this name, too.
	at := bytes.LastIndex(b, []byte(dataName))
	at += len(dataName) + bytes.IndexByte(b[at+len(dataName):], '"') + 1
	return func(w io.Writer) error {
		if _, err := w.Write(b[:at]); err != nil {
			return err
		}
		buf := bufio.NewWriterSize(w, 64<<10)
		text := base64.NewEncoder(base64.StdEncoding, buf)
		for rest := e.Data; len(rest) > 0; {
			n := min(len(rest), 48<<10)
			if _, err := text.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		if err := errors.Join(text.Close(), buf.Flush()); err != nil {
			return err
		}
		_, err := w.Write(b[at:])
		return err
	}, nil
}

// whole returns a function that writes b.
func whole(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// A counter counts written bytes.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func damaged(err error) error { return fmt.Errorf("the encrypted file is damaged: %w", err) }

// readEnvelope reads an envelope. The encoded data is never in memory as a whole. size is the
// length of the text in bytes; 0 means unknown. If the content is not an envelope, it returns
// nil and a reader of the whole content.
func readEnvelope(r io.Reader, size int64) (*envelope, io.Reader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, _ := in.Peek(512)
	if first, ok := firstName(head); !ok || first == "version" { // every state file begins with the version
		return nil, in, nil
	}
	o := &opening{in: in}
	if size > 0 {
		o.room = size / 4 * 3
	}
	err := o.object()
	rest := bytes.NewReader(o.text)
	switch {
	case err != nil && !o.found:
		return nil, io.MultiReader(rest, in), nil
	case err != nil:
		return nil, nil, damaged(err)
	case !Sealed(o.text):
		return nil, rest, nil
	}
	e := &envelope{}
	if err := json.Unmarshal(o.text, e); err != nil {
		return nil, nil, damaged(err)
	}
	e.Data = o.data
	return e, nil, nil
}

// firstName returns the first name in a JSON object.
func firstName(b []byte) (string, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", false
	}
	t, err := d.Token()
	name, ok := t.(string)
	return name, ok && err == nil
}

// An opening reads the JSON text of an envelope.
type opening struct {
	in    *bufio.Reader
	text  []byte // the text with an empty string in place of the data
	data  []byte
	room  int64 // expected size of the data
	found bool
}

// object reads the object to its end. It only interprets strings; the caller parses the text in
// between.
func (o *opening) object() error {
	depth := 0
	for {
		c, err := o.in.ReadByte()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		o.text = append(o.text, c)
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			at := len(o.text) - 1
			if err := o.string(); err != nil {
				return err
			}
			if depth == 1 && !o.found && string(o.text[at:]) == dataName {
				if err := o.value(); err != nil {
					return err
				}
			}
		}
	}
}

// string reads to the end of a string.
func (o *opening) string() error {
	for {
		c, err := o.in.ReadByte()
		if err != nil {
			return noEnd(err)
		}
		o.text = append(o.text, c)
		switch c {
		case '"':
			return nil
		case '\\':
			if c, err = o.in.ReadByte(); err != nil {
				return noEnd(err)
			}
			o.text = append(o.text, c)
		}
	}
}

func noEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// value reads the data, if it is a string.
func (o *opening) value() error {
	for {
		c, err := o.in.ReadByte()
		if err != nil {
			return noEnd(err)
		}
		o.text = append(o.text, c)
		switch c {
		case ' ', '\t', '\r', '\n', ':':
			continue
		case '"':
		default: // not a string
			return nil
		}
		break
	}
	o.found = true
	into := room(o.room + bytes.MinRead)
	if _, err := into.ReadFrom(base64.NewDecoder(base64.StdEncoding, &quoted{in: o.in})); err != nil {
		return err
	}
	o.data, o.text = into.Bytes(), append(o.text, '"')
	return nil
}

// quoted reads the rest of a JSON string without the final quote.
type quoted struct {
	in    *bufio.Reader
	ended bool
}

func (q *quoted) Read(p []byte) (int, error) {
	if q.ended {
		return 0, io.EOF
	}
	if _, err := q.in.Peek(1); err != nil {
		return 0, noEnd(err)
	}
	b, _ := q.in.Peek(min(q.in.Buffered(), len(p)))
	n := bytes.IndexAny(b, "\"\\")
	switch {
	case n < 0:
		n = copy(p, b)
	case n == 0 && b[0] == '"':
		q.ended = true
		_, err := q.in.Discard(1)
		if err == nil {
			err = io.EOF
		}
		return 0, err
	case n == 0: // some programs escape slashes
		two, err := q.in.Peek(2)
		if err != nil {
			return 0, noEnd(err)
		}
		if two[1] != '/' {
			return 0, errors.New("the encrypted data are not base64")
		}
		p[0] = '/'
		_, err = q.in.Discard(2)
		return 1, err
	default:
		n = copy(p, b[:n])
	}
	_, err := q.in.Discard(n)
	return n, err
}
