package oss

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"google.golang.org/protobuf/encoding/protowire"
)

// A table is a table of Tablestore whose primary key is the string LockID. This package
// implements its four calls itself, because the vendor's client adds milliseconds to each
// start of the program, and half a megabyte. Requests are protobuf messages (the page
// "Tablestore ProtocolBuffer message definitions") that contain rows in the PlainBuffer
// format.
type table struct {
	name, base, instance string
	account              *account
	client               *rest.Client
	now                  func() time.Time
}

const keyName = "LockID"

// The conditions of a request on a row.
const (
	ignore         = 0
	expectNotExist = 2
)

func (t *table) describe(ctx context.Context) error {
	_, _, err := t.call(ctx, "DescribeTable", appendField(nil, 1, []byte(t.name)), true)
	return err
}

// get returns the columns of a row; nil if there is none.
func (t *table) get(ctx context.Context, id string) (columns map[string]string, err error) {
	m := appendField(nil, 1, []byte(t.name))
	m = appendField(m, 2, encodeRow(id, nil, false))
	m = protowire.AppendVarint(protowire.AppendTag(m, 5, protowire.VarintType), 1) // the newest version
	answer, _, err := t.call(ctx, "GetRow", m, true)
	if err != nil {
		return nil, err
	}
	row, err := field(answer, 2)
	if err == nil && len(row) > 0 {
		columns, err = decodeRow(row)
	}
	if err != nil {
		return nil, &backend.Error{Argument: "tablestore_endpoint", Answer: "the answer is not one of Tablestore: " + diag.Reason(err), Advice: "Check tablestore_endpoint, and whether a proxy stands in between."}
	}
	return columns, nil
}

// put writes a row of columns and omits those without a value. If fresh is set and the row
// exists, it writes nothing and there is true.
func (t *table) put(ctx context.Context, id string, columns []column, fresh bool) (there bool, err error) {
	expect := uint64(ignore)
	if fresh {
		expect = expectNotExist
	}
	m := appendField(nil, 1, []byte(t.name))
	m = appendField(m, 2, encodeRow(id, columns, false))
	m = appendField(m, 3, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), expect))
	_, code, err := t.call(ctx, "PutRow", m, !fresh)
	if fresh && code == "OTSConditionCheckFail" {
		return true, nil
	}
	return false, err
}

func (t *table) remove(ctx context.Context, id string) error {
	m := appendField(nil, 1, []byte(t.name))
	m = appendField(m, 2, encodeRow(id, nil, true))
	m = appendField(m, 3, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), ignore))
	_, _, err := t.call(ctx, "DeleteRow", m, true)
	return err
}

// call calls an operation. repeat means that it may be carried out twice. code is the error
// code if the service refuses the request.
func (t *table) call(ctx context.Context, operation string, body []byte, repeat bool) (answer []byte, code string, err error) {
	c, err := t.account.Credentials(ctx)
	if err != nil {
		return nil, "", err
	}
	sum := md5.Sum(body)
	h := http.Header{
		"X-Ots-Date":         {t.now().UTC().Format("2006-01-02T15:04:05.000Z")},
		"X-Ots-Apiversion":   {"2015-12-31"},
		"X-Ots-Accesskeyid":  {c.ID},
		"X-Ots-Contentmd5":   {base64.StdEncoding.EncodeToString(sum[:])},
		"X-Ots-Instancename": {t.instance},
	}
	if c.Token != "" {
		h.Set("X-Ots-Ststoken", c.Token)
	}
	var lines []string
	for k, vs := range h {
		lines = append(lines, strings.ToLower(k)+":"+vs[0]+"\n")
	}
	slices.Sort(lines)
	h.Set("X-Ots-Signature", mac(c.Key, "/"+operation+"\nPOST\n\n"+strings.Join(lines, "")))
	resp, err := t.client.Do(ctx, rest.Request{Method: "POST", URL: t.base + "/" + operation, Header: h, Body: body, Repeat: repeat})
	if err != nil {
		return nil, "", &backend.Error{Argument: "tablestore_endpoint", Answer: diag.Reason(err), Advice: rest.Reach(err, "SSL_CERT_FILE", "Check tablestore_endpoint, and that the service can be reached from here."), Err: err}
	}
	if resp.Status >= 200 && resp.Status < 300 {
		return resp.Body, "", nil
	}
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		return nil, "", &backend.Error{Argument: "tablestore_endpoint", Answer: answer, Advice: advice}
	}
	said, _ := field(resp.Body, 1)
	message, _ := field(resp.Body, 2)
	e := &backend.Error{Argument: "tablestore_table", Answer: strings.TrimSpace(fmt.Sprintf("Tablestore answered %d %s", resp.Status, http.StatusText(resp.Status)))}
	for _, more := range [][]byte{said, message} {
		if line := rest.Line(more); line != "" {
			e.Answer += ": " + line
		}
	}
	switch code = string(said); {
	case code == "OTSObjectNotExist":
		e.Advice = fmt.Sprintf("Create the table %q in the instance %q, with a primary key %q of type String.", t.name, t.instance, keyName)
	case code == "OTSAuthFailed":
		e.Argument, e.Advice = "access_key", "Check access_key and secret_key, the clock of this machine, and that the instance is right."
	case code == "OTSNoPermissionAccess":
		e.Advice = "The account needs the permissions ots:GetRow, ots:PutRow, ots:DeleteRow and ots:DescribeTable."
	default:
		e.Advice = backend.AdviceOn(resp.Status)
	}
	return nil, code, e
}

func appendField(m []byte, number protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), v)
}

// field returns the first length-delimited field of a message with a number, or nil.
func field(m []byte, number protowire.Number) ([]byte, error) {
	for len(m) > 0 {
		got, kind, n := protowire.ConsumeTag(m)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		m = m[n:]
		if got == number && kind == protowire.BytesType {
			v, n := protowire.ConsumeBytes(m)
			return v, protowire.ParseError(min(n, 0))
		}
		if n = protowire.ConsumeFieldValue(got, kind, m); n < 0 {
			return nil, protowire.ParseError(n)
		}
		m = m[n:]
	}
	return nil, nil
}

// The tags and types of PlainBuffer.
const (
	tagHeader       = 0x75
	tagKey          = 0x1
	tagColumns      = 0x2
	tagCell         = 0x3
	tagName         = 0x4
	tagValue        = 0x5
	tagOperation    = 0x6
	tagTime         = 0x7
	tagDelete       = 0x8
	tagRowChecksum  = 0x9
	tagCellChecksum = 0xa
	typeString      = 0x3
)

func crc8(crc byte, data ...byte) byte {
	for _, b := range data {
		crc ^= b
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 7
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// A column is a column of a row.
type column struct{ name, value string }

// encodeRow encodes a row with its key and its columns that have values.
func encodeRow(id string, columns []column, remove bool) []byte {
	out := binary.LittleEndian.AppendUint32(nil, tagHeader)
	var sum byte
	cell := func(name, value string) {
		out = append(out, tagCell, tagName)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(name)))
		out = append(out, name...)
		v := binary.LittleEndian.AppendUint32([]byte{typeString}, uint32(len(value)))
		v = append(v, value...)
		out = append(out, tagValue)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(v)))
		out = append(out, v...)
		crc := crc8(crc8(0, []byte(name)...), v...)
		out = append(out, tagCellChecksum, crc)
		sum = crc8(sum, crc)
	}
	out = append(out, tagKey)
	cell(keyName, id)
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.value == "" })
	if len(columns) > 0 {
		out = append(out, tagColumns)
	}
	for _, c := range columns {
		cell(c.name, c.value)
	}
	if remove {
		out = append(out, tagDelete)
		sum = crc8(sum, 1)
	} else {
		sum = crc8(sum, 0)
	}
	return append(out, tagRowChecksum, sum)
}

var errRow = errors.New("the row is not in PlainBuffer")

// decodeRow decodes the columns of a row whose values are strings.
func decodeRow(b []byte) (map[string]string, error) {
	take := func(n int) []byte {
		if n < 0 || n > len(b) {
			b = nil
			return nil
		}
		v := b[:n]
		b = b[n:]
		return v
	}
	number := func() int {
		v := take(4)
		if len(v) < 4 {
			return -1
		}
		return int(int32(binary.LittleEndian.Uint32(v)))
	}
	if number() != tagHeader {
		return nil, errRow
	}
	out := map[string]string{}
	var name string
	for len(b) > 0 {
		switch take(1)[0] {
		case tagKey, tagColumns, tagCell, tagDelete:
		case tagName:
			v := take(number())
			if v == nil {
				return nil, errRow
			}
			name = string(v)
		case tagValue:
			v := take(number())
			if len(v) >= 5 && v[0] == typeString {
				out[name] = string(v[5:])
			} else if v == nil {
				return nil, errRow
			}
		case tagTime:
			if take(8) == nil {
				return nil, errRow
			}
		case tagOperation, tagRowChecksum, tagCellChecksum:
			if take(1) == nil {
				return nil, errRow
			}
		default:
			return nil, errRow
		}
	}
	return out, nil
}
