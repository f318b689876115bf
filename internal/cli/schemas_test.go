package cli_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// conforms checks output of the program against a schema of docs/schemas: as one document or,
// for "events" and "catalog", each line.
func conforms(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: conforms SCHEMA FILE")
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	root, err := filepath.Abs(schemaDir)
	ts.Check(err)
	s, err := compiler.Compile(filepath.Join(root, args[0]+".json"))
	ts.Check(err)
	docs := []string{ts.ReadFile(args[1])}
	if args[0] == "events" || args[0] == "catalog" {
		docs = strings.Split(strings.TrimSpace(docs[0]), "\n")
	}
	for _, text := range docs {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = s.Validate(doc)
		}
		if (err != nil) != neg {
			var b bytes.Buffer
			_ = json.Indent(&b, []byte(text), "", "  ")
			ts.Fatalf("%v\n%s", err, b.String())
		}
	}
}

// schemaDir is the directory of the schemas.
const schemaDir = "../../docs/schemas"
