package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/lang"
)

// explainCode prints the explanation of a message code. The user may give the summary of a
// message instead: then it lists all codes that such a message may have.
func explainCode(c *command.Call, o *Options) int {
	if len(c.Args) > 0 {
		return c.UsageError("Invalid arguments", "With -code there is nothing else to explain: leave the address out.")
	}
	summary := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(o.Code, "Error:"), "Warning:"))
	var found []diag.Code
	if entry, ok := diag.FindCode(o.Code); ok {
		found = []diag.Code{entry}
	} else {
		found = diag.CodesOf(summary)
	}
	if len(found) == 0 {
		known := map[string]bool{}
		for _, entry := range diag.Codes() {
			known[entry.Name] = true
		}
		return c.Fail(diag.Errorf(diag.CodeCLIUnknownCode, nil, "Unknown code", "There are no messages with the code %q.%s docs/messages.md lists all codes.", o.Code, suggest(o.Code, known)))
	}
	if o.Json {
		var out any = found
		if len(found) == 1 {
			out = found[0]
		}
		doc, err := json.MarshalIndent(out, "", "  ")
		if err != nil {
			return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write JSON", "The explanation cannot be written: %s.", err))
		}
		fmt.Fprintf(c.Stdout, "%s\n", doc)
		return 0
	}
	if len(found) > 1 {
		fmt.Fprintf(c.Stdout, "Messages that begin like this have one of %d codes. With show_codes = true in the\nCLI configuration file, or -json, a message has its code.\n\n", len(found))
	}
	for i, entry := range found {
		if i > 0 {
			fmt.Fprintln(c.Stdout)
		}
		fmt.Fprintf(c.Stdout, "%s\n\n%s\n", entry.Name, entry.Paragraph(78))
		if len(entry.Summaries) > 0 {
			fmt.Fprintf(c.Stdout, "\nMessages:\n")
			for _, s := range entry.Summaries {
				fmt.Fprintf(c.Stdout, "  %s\n", strings.ReplaceAll(s, "*", "…"))
			}
		}
	}
	return 0
}

// suggest returns similar codes: the nearest one, or those with the same part after the slash.
func suggest(code string, known map[string]bool) string {
	if s := lang.Suggest(code, known); s != "" {
		return s
	}
	_, last, ok := strings.Cut(code, "/")
	if !ok {
		last = code
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, end, _ := strings.Cut(name, "/"); end == last || lang.Nearest(last, map[string]bool{end: true}) != "" {
			return fmt.Sprintf(" Did you mean %q?", name)
		}
	}
	return ""
}
