package pg

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/terrace-iac/terrace/internal/state/backend"
)

// large is the size, in bytes, from which a value is streamed instead of copied into a
// message.
const large = 1 << 20

// execText runs one statement whose second argument is a text. A large text is read while
// it is sent.
func execText(ctx context.Context, c *pgconn.PgConn, sql string, text *backend.Text, first string, rest ...string) ([][][]byte, error) {
	if text.Size() < large {
		b, err := text.Bytes()
		if err != nil {
			return nil, err
		}
		return exec(ctx, c, sql, append([]string{first, string(b)}, rest...)...)
	}
	err := bind(ctx, c, sql, text, first, rest)
	if err != nil {
		end(c) // the connection is in the middle of a message
		return nil, err
	}
	return answer(ctx, c)
}

// bind sends a statement with its arguments. The text bypasses the buffer of the client
// library.
// https://www.postgresql.org/docs/current/protocol-message-formats.html
func bind(ctx context.Context, c *pgconn.PgConn, sql string, text *backend.Text, first string, rest []string) error {
	conn, front := c.Conn(), c.Frontend()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	front.SendParse(&pgproto3.Parse{Query: sql})
	if err := front.Flush(); err != nil {
		return err
	}
	argument := func(b []byte, size int64) []byte { return binary.BigEndian.AppendUint32(b, uint32(size)) }
	head := []byte{0, 0, 0, 0} // no name for the portal and the statement, and text format for all values
	head = binary.BigEndian.AppendUint16(head, uint16(2+len(rest)))
	head = append(argument(head, int64(len(first))), first...)
	head = argument(head, text.Size())
	var tail []byte
	for _, a := range rest {
		tail = append(argument(tail, int64(len(a))), a...)
	}
	tail = append(tail, 0, 0)
	size := 4 + int64(len(head)) + text.Size() + int64(len(tail))
	if _, err := conn.Write(append(argument([]byte{'B'}, size), head...)); err != nil {
		return err
	}
	content := text.Open()
	defer content.Close()
	if _, err := io.Copy(conn, content); err != nil {
		return err
	}
	if _, err := conn.Write(tail); err != nil {
		return err
	}
	front.SendExecute(&pgproto3.Execute{})
	front.SendSync(&pgproto3.Sync{})
	return front.Flush()
}

// answer reads the result of a statement.
func answer(ctx context.Context, c *pgconn.PgConn) (rows [][][]byte, err error) {
	for {
		m, broken := c.ReceiveMessage(ctx)
		if broken != nil {
			end(c)
			if err == nil {
				err = broken
			}
			return nil, err
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			row := make([][]byte, len(m.Values))
			for i, v := range m.Values {
				row[i] = bytes.Clone(v)
			}
			rows = append(rows, row)
		case *pgproto3.ErrorResponse:
			err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			return rows, err
		}
	}
}

// fetch runs a statement that returns at most one row. It passes the first value to take, a
// large one while it arrives. found reports whether there was a row.
func fetch(ctx context.Context, c *pgconn.PgConn, take func(io.Reader) error, sql string, args ...string) (row [][]byte, found bool, err error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	t := tapOf(c)
	t.value(take)
	defer t.value(nil)
	r := c.ExecParams(ctx, sql, values, nil, nil, nil)
	var failed error
	for r.NextRow() {
		if found {
			continue
		}
		found = true
		for _, v := range r.Values()[1:] {
			row = append(row, bytes.Clone(v))
		}
		if failed = t.failed; !t.taken {
			failed = take(bytes.NewReader(r.Values()[0]))
		}
	}
	if _, err = r.Close(); err == nil {
		err = failed
	}
	return row, found, err
}
