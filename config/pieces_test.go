package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// long is a text of many blocks, longer than two pieces, with a tail.
func long(tail string) string {
	return strings.Repeat("variable \"a\" {\n  default = \"${1 + 2} }\"\n}\n\n# } a comment\nlocals {\n  b = [for x in {\n  } : x]\n}\n", 40) + tail
}

// samePieces holds the pieces of a text, if it can be cut, against the whole.
func samePieces(t *testing.T, text string) (cut bool) {
	t.Helper()
	got, ok := parsePieces("a.tf", []byte(text))
	if !ok {
		return false
	}
	file, diags := hclsyntax.ParseConfig([]byte(text), "a.tf", hcl.InitialPos)
	if len(diags) > 0 {
		t.Fatalf("the pieces are fine, the whole is not: %v", diags)
	}
	want := file.Body.(*hclsyntax.Body)
	if len(want.Blocks) != len(got.Blocks) {
		t.Fatalf("%d blocks in pieces, %d in the whole", len(got.Blocks), len(want.Blocks))
	}
	for i := range want.Blocks {
		if !reflect.DeepEqual(want.Blocks[i], got.Blocks[i]) {
			t.Fatalf("block %d at %s differs from the one at %s", i, got.Blocks[i].Range(), want.Blocks[i].Range())
		}
	}
	if got.SrcRange != want.SrcRange || got.EndRange != want.EndRange {
		t.Fatalf("body at %s, end %s; want %s, %s", got.SrcRange, got.EndRange, want.SrcRange, want.EndRange)
	}
	return true
}

func TestPieces(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		cut  bool
	}{
		"blocks":                   {long(""), true},
		"Windows line ends":        {strings.ReplaceAll(long(""), "\n", "\r\n"), true},
		"no line end at the end":   {long("output \"x\" {\n  value = 1\n}"), true},
		"blanks and a comment":     {long("\n\n# end\n\n"), true},
		"byte order mark":          {"\ufeff" + long(""), true},
		"short":                    {"locals {\n}\nlocals {\n}\n", false},
		"heredoc":                  {long("locals {\n  a = <<E\n}\nE\n}\n"), false},
		"comment of several lines": {long("/*\n}\n*/\n"), false},
		"argument at the top":      {long("a = 1\n"), false},
		"brace in a bracket":       {"locals {\n  a = [{\n}\n" + strings.Repeat(", {\n}\n", 400) + "]\n}\n" + long(""), false},
		"brace in a template":      {"locals {\n  a = \"${{\n}\n" + strings.Repeat("== {\n}\n", 400) + "}\"\n}\n" + long(""), false},
		"error":                    {long("locals {\n  a = \n}\n"), false},
		"missing brace":            {long("locals {\n"), false},
		"extra brace":              {long("}\n") + long(""), false},
	} {
		t.Run(name, func(t *testing.T) {
			if cut := samePieces(t, tt.text); cut != tt.cut {
				t.Errorf("cut: %v, want %v", cut, tt.cut)
			}
		})
	}
}

// TestPieceErrors says that a message of a long file is the parser's own.
func TestPieceErrors(t *testing.T) {
	text := long("locals {\n  a = \n}\n")
	_, ds := parseText("a.tf", []byte(text))
	if len(ds) == 0 || ds[0].At.Start.Line != strings.Count(text, "\n")-1 {
		t.Errorf("messages: %v", ds)
	}
}

func FuzzPieces(f *testing.F) {
	f.Add(long(""))
	f.Add(long("locals {\n  a = \"%{ if true }\n}\n%{ endif }\"\n}\n"))
	examples, err := filepath.Glob("../examples/*/*.tf")
	if err != nil || len(examples) == 0 {
		f.Fatal("no examples", err)
	}
	for _, name := range examples {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 1<<14 {
			// Three times the text is long enough to be cut more often.
			samePieces(t, strings.Repeat(text+"\n", 3))
		}
	})
}
