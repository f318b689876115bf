package backend

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestTexts(t *testing.T) {
	for _, n := range []int{0, 1, keep, keep + 1, 3*keep + 17} {
		want := []byte(strings.Repeat("0123456789abcde\n", n/16+1)[:n])
		runs := 0
		text, err := Encoded(func(w io.Writer) error {
			runs++
			for rest := want; len(rest) > 0; {
				part := rest[:min(70_000, len(rest))]
				rest = rest[len(part):]
				if _, err := w.Write(part); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if text.Size() != int64(n) || text.SHA256() != sha256.Sum256(want) || text.MD5() != md5.Sum(want) {
			t.Errorf("%d bytes: size or checksum is wrong", n)
		}
		if all, err := text.Bytes(); err != nil || !bytes.Equal(all, want) {
			t.Errorf("%d bytes: the whole is another: %v", n, err)
		}
		for range 2 {
			r := text.Open()
			if err := iotest.TestReader(r, want); err != nil && n < keep { // it also reads byte by byte
				t.Error(err)
			} else if got, err := io.ReadAll(text.Open()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes: %d are read: %v", n, len(got), err)
			}
			r.Close()
		}
		r := text.Open()
		_, _ = r.Read(make([]byte, 100))
		if r.Close(); n > keep {
			if _, err := r.Read(make([]byte, 100)); !errors.Is(err, errClosed) {
				t.Errorf("a closed text is read: %v", err)
			}
			if runs < 4 {
				t.Errorf("%d bytes are kept in memory", n)
			}
		} else if runs != 1 {
			t.Errorf("a text of %d bytes is made %d times", n, runs)
		}
	}
	broken := errors.New("broken")
	if _, err := Encoded(func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
