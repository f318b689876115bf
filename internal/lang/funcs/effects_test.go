package funcs

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/terrace-iac/terrace/internal/base/value"
)

func str(s string) cty.Value { return cty.StringVal(s) }

func secret(s string) cty.Value { return cty.StringVal(s).Mark(value.Sensitive) }

// check calls a function. want is the value or a part of the error's text.
func check(t *testing.T, table map[string]function.Function, name string, args []cty.Value, want any) {
	t.Helper()
	v, err := table[name].Call(args)
	switch want := want.(type) {
	case cty.Value:
		if err != nil || !v.RawEquals(want) {
			t.Errorf("%s%#v\n got %#v, %v\nwant %#v", name, args, v, err, want)
		}
	case string:
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%#v\n got %#v, %v\nwant error %s", name, args, v, err, want)
		}
	}
}

func TestClock(t *testing.T) {
	unknown := cty.UnknownVal(cty.String).RefineNotNull()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 3600))
	for name, c := range map[string]struct {
		config          Config
		timestamp, plan any
	}{
		"apply":           {Config{Now: func() time.Time { return at }, PlanTime: at}, str("2026-03-04T04:06:07Z"), str("2026-03-04T04:06:07Z")},
		"plan":            {Config{PureOnly: true, PlanTime: at}, unknown, str("2026-03-04T04:06:07Z")},
		"no time of plan": {Config{PureOnly: true}, unknown, unknown},
		"no clock":        {Config{}, "not available", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			table := Table(c.config)
			check(t, table, "timestamp", nil, c.timestamp)
			check(t, table, "core::plantimestamp", nil, c.plan)
		})
	}
}

func TestRandom(t *testing.T) {
	unknown := cty.UnknownVal(cty.String).RefineNotNull()
	plan := Table(Config{PureOnly: true})
	check(t, plan, "uuid", nil, unknown)
	check(t, plan, "core::uuid", nil, unknown)
	check(t, plan, "bcrypt", []cty.Value{str("x")}, unknown)
	check(t, plan, "bcrypt", []cty.Value{secret("x")}, unknown.Mark(value.Sensitive))

	table := Table(Config{})
	first, err := table["uuid"].Call(nil)
	if err != nil || len(first.AsString()) != 36 {
		t.Fatalf("uuid() = %#v, %v", first, err)
	}
	if second, _ := table["uuid"].Call(nil); second.RawEquals(first) {
		t.Error("uuid() gives the same twice")
	}
	hash, err := table["bcrypt"].Call([]cty.Value{secret("x"), cty.NumberIntVal(4)})
	if bare, _ := hash.Unmark(); err != nil || !hash.HasMark(value.Sensitive) || !strings.HasPrefix(bare.AsString(), "$2a$04$") {
		t.Errorf("bcrypt() = %#v, %v", hash, err)
	}
}

func TestFiles(t *testing.T) {
	files := map[string]string{"/base/a": "A", "/home/me/h": "H", "/abs": "X", "/base/t": "${a}-${file(\"a\")}"}
	table := Table(Config{
		BaseDir: "/base",
		Home:    func() (string, error) { return "/home/me", nil },
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := files[filepath.ToSlash(path)]; ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	})
	for path, want := range map[string]any{
		"a": str("A"), "./x/../a": str("A"), "~/h": str("H"), "/abs": str("X"), "b": `no file exists at "b"`, "~you/h": "user-specific",
	} {
		check(t, table, "file", []cty.Value{str(path)}, want)
	}
	check(t, table, "file", []cty.Value{cty.UnknownVal(cty.String).Mark(value.Sensitive)},
		cty.UnknownVal(cty.String).RefineNotNull().Mark(value.Sensitive))
	check(t, table, "templatefile", []cty.Value{str("t"), cty.MapVal(map[string]cty.Value{"a": str("1")})}, str("1-A"))
	check(t, table, "abspath", []cty.Value{str("x/..")}, str("/base"))
	check(t, table, "filemd5", []cty.Value{secret("a")}, str("7fc56270e7a70fa81a5935b72eacbe29").Mark(value.Sensitive))

	homeless := Table(Config{ReadFile: func(string) ([]byte, error) { return nil, errors.New("disk on fire") }})
	check(t, homeless, "file", []cty.Value{str("~/h")}, "the home directory is not known here")
	check(t, homeless, "fileexists", []cty.Value{str("~/h")}, "the home directory is not known here")
	check(t, homeless, "pathexpand", []cty.Value{str("~")}, "the home directory is not known here")
	check(t, homeless, "file", []cty.Value{str("x")}, `failed to read file "x": disk on fire`)
	lost := Table(Config{Home: func() (string, error) { return "", errors.New("no such user") }})
	check(t, lost, "pathexpand", []cty.Value{str("~/h")}, "the home directory is not known: no such user")
}

func TestFilesInBaseDir(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "[x]/b.txt", "c.d/e.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("missing", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	table := Table(Config{BaseDir: dir})
	set := func(names ...string) cty.Value {
		vs := make([]cty.Value, len(names))
		for i, name := range names {
			vs[i] = str(name)
		}
		return cty.SetVal(vs)
	}
	check(t, table, "file", []cty.Value{str("a.txt")}, str("a.txt"))
	check(t, table, "fileexists", []cty.Value{str("a.txt")}, cty.True)
	check(t, table, "fileexists", []cty.Value{str("dangling")}, cty.False)
	check(t, table, "fileset", []cty.Value{str("."), str("**")}, set("a.txt", "[x]/b.txt", "c.d/e.txt"))
	check(t, table, "fileset", []cty.Value{str("[x]"), str("*")}, set("b.txt")) // brackets in the directory are not a pattern
	check(t, table, "fileset", []cty.Value{str("c.d"), str("../*/*.txt")}, set("../[x]/b.txt", "../c.d/e.txt"))
	check(t, table, "fileset", []cty.Value{str("c.d"), str("..")}, cty.SetValEmpty(cty.String))
	check(t, table, "fileset", []cty.Value{str("c.d"), str("/../a.txt")}, set("../a.txt"))
	check(t, table, "abspath", []cty.Value{str("a.txt")}, str(filepath.ToSlash(filepath.Join(dir, "a.txt"))))
}

func TestTemplateDepth(t *testing.T) {
	self := str("${templatestring(t, {t = t})}")
	vars := cty.ObjectVal(map[string]cty.Value{"t": self})
	for _, c := range []struct {
		depth int
		want  string
	}{{3, "more than 3 deep"}, {0, "more than 1024 deep"}} {
		check(t, Table(Config{TemplateDepth: c.depth}), "templatestring", []cty.Value{self, vars}, c.want)
	}
	files := func(string) ([]byte, error) { return []byte(`${templatefile("t", {})}`), nil }
	check(t, Table(Config{TemplateDepth: 5, ReadFile: files}), "templatefile", []cty.Value{str("t"), cty.EmptyObjectVal}, "more than 5 deep")

	countdown := str("${n > 0 ? core::templatestring(t, {n = n - 1, t = t}) : 0}.")
	check(t, Table(Config{TemplateDepth: 4}), "templatestring", []cty.Value{countdown,
		cty.ObjectVal(map[string]cty.Value{"t": countdown, "n": cty.NumberIntVal(3)})}, str("0...."))
}

func TestTemplateSecrets(t *testing.T) {
	table := Table(Config{})
	obj := func(k string, v cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{k: v}) }
	check(t, table, "templatestring", []cty.Value{secret("${s3cr3t}"), cty.EmptyObjectVal}, withheld)
	check(t, table, "templatestring", []cty.Value{str("x"), obj("s3cr3t!", str("x")).Mark(value.Sensitive)}, withheld)
	check(t, table, "templatestring", []cty.Value{str("${tonumber(a)}"), obj("a", secret("s3cr3t"))}, "cannot convert this sensitive string to number")
	check(t, table, "templatestring", []cty.Value{str("x"), obj("a", secret("y"))}, str("x"))
	check(t, table, "templatestring", []cty.Value{str("${a}"), obj("a", secret("y"))}, secret("y"))
	check(t, table, "templatestring", []cty.Value{cty.UnknownVal(cty.String).Mark(value.Sensitive), cty.EmptyObjectVal}, cty.DynamicVal.Mark(value.Sensitive))
	hidden := str("y").Mark(value.Hidden)
	check(t, table, "templatestring", []cty.Value{str("${tonumber(a)}"), obj("a", hidden)}, "cannot convert this sensitive string to number")
}

func TestHidden(t *testing.T) {
	table := Table(Config{})
	hidden := str("s3cr3t").Mark(value.Hidden)
	check(t, table, "issensitive", []cty.Value{hidden}, cty.False)
	check(t, table, "nonsensitive", []cty.Value{hidden.Mark(value.Sensitive).Mark(value.Ephemeral)}, str("s3cr3t").Mark(value.Ephemeral))
	check(t, table, "upper", []cty.Value{hidden}, str("S3CR3T").Mark(value.Hidden))
	check(t, table, "parseint", []cty.Value{hidden, cty.NumberIntVal(10)}, withheld)
	check(t, table, "file", []cty.Value{hidden}, "no file exists at (sensitive value)")
}

func TestDeprecationTravels(t *testing.T) {
	table := Table(Config{})
	old := str("a").Mark(value.Deprecation{Message: "gone", Source: "module.m.o"})
	for _, name := range []string{"upper", "base64encode", "tostring", "jsonencode", "length"} {
		v, err := table[name].Call([]cty.Value{old})
		if err != nil || len(value.Deprecations(v)) != 1 {
			t.Errorf("%s loses the deprecation: %#v, %v", name, v, err)
		}
	}
}

func TestStartsWithUnknown(t *testing.T) {
	table := Table(Config{})
	arn := cty.UnknownVal(cty.String).Refine().NotNull().StringPrefixFull("arn:aws").NewValue()
	check(t, table, "startswith", []cty.Value{arn, str("arn:")}, cty.True)
	check(t, table, "startswith", []cty.Value{arn, str("urn:")}, cty.False)
	check(t, table, "startswith", []cty.Value{arn, str("arn:aws:iam")}, cty.UnknownVal(cty.Bool).RefineNotNull())
}

func TestRSADecrypt(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 the function is documented to have this padding
	encrypted, err := rsa.EncryptPKCS1v15(rand.Reader, &key.PublicKey, []byte("message"))
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := str(base64.StdEncoding.EncodeToString(encrypted))
	pkcs1 := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	table := Table(Config{})
	check(t, table, "rsadecrypt", []cty.Value{text, str(pkcs1)}, str("message"))
	check(t, table, "rsadecrypt", []cty.Value{text, secret(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))}, secret("message"))
	check(t, table, "rsadecrypt", []cty.Value{str("AAAA"), str(pkcs1)}, "failed to decrypt")
	check(t, table, "rsadecrypt", []cty.Value{text, str("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n")}, "invalid private key")
}

func TestYAMLBounds(t *testing.T) {
	table := Table(Config{})
	check(t, table, "yamldecode", []cty.Value{str(strings.Repeat("[", maxNesting+1))}, "more than 10000 deep")

	flow, block := "a0: &a0 [x, x]\n", "a0: &a0\n- x\n- x\n"
	for i := 1; i < 40; i++ {
		flow += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
		block += fmt.Sprintf("a%d: &a%d\n  - *a%d\n  - *a%d\n", i, i, i-1, i-1)
	}
	for _, text := range []string{flow, block, strings.ReplaceAll(flow, "\n", "\r\n")} {
		check(t, table, "yamldecode", []cty.Value{str(text)}, "larger than 64 MiB")
	}

	// Many uses of one top-level anchor are not rejected.
	text := "base: &base {a: 1, b: [x, y]}\nlist:\n" + strings.Repeat("- <<: *base\n  c: \"* & *base &base\"\n", 2000)
	if size := expansion(text); size > 4*float64(len(text)) {
		t.Errorf("%d bytes are taken for %g", len(text), size)
	}
	if v, err := table["yamldecode"].Call([]cty.Value{str(text)}); err != nil || v.GetAttr("list").LengthInt() != 2000 {
		t.Errorf("%v", err)
	}
}

// TestConcurrent is for the race detector: a table is used concurrently.
func TestConcurrent(t *testing.T) {
	table := Table(Config{ReadFile: func(string) ([]byte, error) { return []byte(`${templatestring("x", {})}`), nil }})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				check(t, table, "templatefile", []cty.Value{str("t"), cty.EmptyObjectVal}, str("x"))
				check(t, table, "regex", []cty.Value{str("b+"), str("abbc")}, str("bb"))
				Table(Config{})
			}
		})
	}
	wg.Wait()
}

func BenchmarkCalls(b *testing.B) {
	table := Table(Config{})
	words := make([]cty.Value, 10000)
	for i := range words {
		words[i] = str(strings.Repeat("x", i%100) + string(rune('a'+i%26)))
	}
	list := cty.ListVal(words)
	for name, args := range map[string][]cty.Value{
		"distinct":  {list},
		"matchkeys": {list, list, list},
		"contains":  {list, str("not there")},
		"format":    {str("%s-%d"), str("x"), cty.NumberIntVal(3)},
		"regex":     {str("^([a-z]+)-(\\d+)$"), str("abc-12")},
		"lookup":    {cty.MapVal(map[string]cty.Value{"a": str("1")}), str("a"), str("2")},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := table[name].Call(args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
