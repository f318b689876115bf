package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestQueryGuide checks that the scripts of queries run the commands of docs/query.md.
func TestQueryGuide(t *testing.T) {
	g := openGuide(t, "query.md")
	scripts := readScripts(t, "query.txtar", "query_errors.txtar", "estate_query.txtar")
	var commands []string
	for _, m := range regexp.MustCompile("(?m)^terrace (.*)$|`terrace ([^`]*)`").FindAllStringSubmatch(g.text, -1) {
		commands = append(commands, m[1]+m[2])
	}
	if len(commands) < 5 {
		t.Fatalf("the page has the commands %q", commands)
	}
	for _, c := range slices.Compact(commands) {
		c = strings.Replace(c, "imports.tf", "gen.tf", 1)
		if !strings.Contains(scripts, "terrace "+c+"\n") {
			t.Errorf("no script runs terrace %s", c)
		}
	}
}

func readScripts(t *testing.T, names ...string) string {
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile("testdata/script/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
