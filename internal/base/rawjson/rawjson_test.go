package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
)

// reference returns the results of encoding/json for a document.
func reference(b []byte) (compact, indented []byte, ok bool) {
	if !json.Valid(b) {
		return nil, nil, false
	}
	compact, err := json.Marshal(json.RawMessage(b))
	if err != nil {
		return nil, nil, false
	}
	var ind bytes.Buffer
	if len(b) > 1000 {
		return compact, nil, true // the indented text would be huge
	}
	if err := json.Indent(&ind, compact, "    ", "  "); err != nil {
		return nil, nil, false
	}
	return compact, ind.Bytes(), true
}

func check(t *testing.T, in []byte) {
	t.Helper()
	compact, indented, ok := reference(in)
	s := NewScanner(in)
	got, err := s.AppendCompact(nil)
	if err == nil {
		err = s.End()
	}
	if ok != (err == nil) {
		t.Fatalf("%q: valid for encoding/json: %v, here: %v", in, ok, err)
	}
	if !ok {
		s = NewReader(iotest.OneByteReader(bytes.NewReader(in)))
		_, read := s.AppendCompact(nil)
		if read == nil {
			read = s.End()
		}
		if read == nil || read.Error() != err.Error() {
			t.Fatalf("%q: %v, but read byte by byte %v", in, err, read)
		}
		return
	}
	if !bytes.Equal(got, compact) {
		t.Errorf("%q: compact %q, want %q", in, got, compact)
	}
	if got, _ := AppendIndent(nil, compact, 2); len(in) < 1000 && !bytes.Equal(got, indented) {
		t.Errorf("%q: indented %q, want %q", in, got, indented)
	}
	s = NewReader(iotest.OneByteReader(bytes.NewReader(in)))
	if read, err := s.AppendCompact(nil); err != nil || !bytes.Equal(read, got) || s.End() != nil {
		t.Errorf("%q: read byte by byte it becomes %q, %v; want %q", in, read, err, got)
	}
	s = NewReader(iotest.OneByteReader(bytes.NewReader(in)))
	if raw, err := s.Skip(); err != nil || string(raw) != string(bytes.Trim(in, " \t\r\n")) {
		t.Errorf("%q: Skip gives %q, %v, read byte by byte", in, raw, err)
	}
	s = NewScanner(in)
	raw, err := s.Skip()
	if err != nil || string(raw) != string(bytes.Trim(in, " \t\r\n")) {
		t.Errorf("%q: Skip gives %q, %v", in, raw, err)
	}
	if in[0] == '"' {
		var want string
		if json.Unmarshal(in, &want) != nil {
			return
		}
		str, err := NewScanner(in).String()
		if err != nil || str != want {
			t.Errorf("%q: String gives %q, %v; want %q", in, str, err, want)
		}
		wantText, _ := json.Marshal(want)
		if got := AppendString(nil, want); !bytes.Equal(got, wantText) {
			t.Errorf("%q: AppendString gives %q, want %q", in, got, wantText)
		}
	}
}

var seeds = []string{
	`null`, ` true `, `false`, `0`, `-0`, `-1.50e+10`, `01`, `1.`, `.5`, `1e`, `-`, `nul`, `+1`,
	`""`, `"a\"b\\\/\b\f\n\r\t\u0041\ud83d\ude00\ud83d"`, "\"é<>&\u2028\u2029\x7f\"", "\"\xff\"", `"a\"b\\\/\b\f\n\r\tz"`, "\"\\n\xff\"", "\"\x01\"", `"\x"`, `"\u12"`, `"abc`,
	`{}`, `[]`, `[ ]`, `{ "a" : [ 1 , { } , [ ] , { "b<" : null } ] }`, `[1,]`, `{"a":1,}`, `{"a"}`, `{1:2}`, `[1 2]`, `{"a":1 "b":2}`, `[`, `{`, `]`, `[}`, `{"a":]`, `1 2`, ``,
	`"eight bytes and more: é, then a \"quote\" and \\ <&> to the end of it"`, `"` + strings.Repeat("0123456789abcde\\n", 20) + `"`,
	strings.Repeat("[", 9999) + strings.Repeat("]", 9999),
	strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
	strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40),
}

func TestAgainstEncodingJSON(t *testing.T) {
	for _, in := range seeds {
		check(t, []byte(in))
	}
}

func TestIndentIsBounded(t *testing.T) {
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	out, level := AppendIndent(nil, []byte(deep), 0)
	if n := len(out); level != 0 || n > 9000*2*(2*maxIndent+2) {
		t.Errorf("%d bytes became %d", len(deep), n)
	}
}

func FuzzScanner(f *testing.F) {
	for _, in := range seeds {
		if len(in) < 1000 {
			f.Add([]byte(in))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < 1000 {
			check(t, in)
		}
	})
}

func TestObjectAndArrayStopAtTheLimit(t *testing.T) {
	var nest func(s *Scanner) error
	nest = func(s *Scanner) error {
		if s.Peek() == '[' {
			return s.Array(func() error { return nest(s) })
		}
		return s.Object(func([]byte) error { return nest(s) })
	}
	for _, open := range []string{"[", `{"a":`} {
		err := nest(NewScanner([]byte(strings.Repeat(open, 20000))))
		if err == nil || !strings.Contains(err.Error(), "nested more than 10000 deep") {
			t.Errorf("%s: %v", open, err)
		}
	}
}

func TestKeysOfADocumentThatIsReadByteByByte(t *testing.T) {
	const text = ` { "a" : [ 1 ] , "bcd" :"x\"y", "e\u0041"
:{"f" : null, "g":-1.5e3 } , "" : "" } `
	var got []string
	s := NewReader(iotest.OneByteReader(strings.NewReader(text)))
	var f func([]byte) error
	f = func(key []byte) error {
		got = append(got, string(key))
		switch s.Peek() {
		case '{':
			return s.Object(f)
		case '"':
			v, err := s.String()
			got = append(got, v)
			return err
		case '-':
			v, err := s.Number()
			got = append(got, string(v))
			return err
		}
		return s.Discard()
	}
	if err := s.Object(f); err != nil || s.End() != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(got, " "), `a bcd x"y eA f g -1.5e3  `; got != want {
		t.Errorf("read %q, want %q", got, want)
	}
}
