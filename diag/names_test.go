package diag_test

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/diag"
)

func TestNamesText(t *testing.T) {
	tofu := diag.NamesOf("OpenTofu", "tofu")
	for text, want := range map[string]string{
		"Terrace is already managing it.":                  "OpenTofu is already managing it.",
		"managed by Terrace":                               "managed by OpenTofu",
		"a bug in Terrace.":                                "a bug in OpenTofu.",
		"a bug in Terrace: report it":                      "a bug in OpenTofu: report it",
		"of Terrace's. (Terrace, then)":                    "of OpenTofu's. (OpenTofu, then)",
		"Terrace Terrace Terrace":                          "OpenTofu OpenTofu OpenTofu",
		`Run "terrace init -upgrade", or "terrace -help".`: `Run "tofu init -upgrade", or "tofu -help".`,
		"run:\n  terrace init\nterrace init":               "run:\n  tofu init\nterrace init",
		"Use `terrace refresh`.":                           "Use `tofu refresh`.",
		`The file "/a/Terrace/Terrace.tf" of Terrace-x`:    `The file "/a/Terrace/Terrace.tf" of Terrace-x`,
		`The value "Terrace" or "terrace"`:                 `The value "Terrace" or "terrace"`,
		"Terraces":                                         "Terraces",
	} {
		if got := tofu.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := (diag.Names{}).Text(text); got != text {
			t.Errorf("the own names change %q to %q", text, got)
		}
	}
}

func TestNamesInMessages(t *testing.T) {
	ds := diag.Errorf(diag.CodeModuleNotInstalled, nil, "Not known to Terrace", `Run "terrace init".`).Note(nil, "Terrace looks here")
	ds = append(ds, diag.Errorf(diag.Condition, nil, "Check failed", "Terrace is our name.")...)
	names := diag.NamesOf("OpenTofu", "tofu")
	var text strings.Builder
	if err := (&diag.Printer{Names: names}).Print(&text, ds); err != nil {
		t.Fatal(err)
	}
	const want = "\nError: Not known to OpenTofu\n\nRun \"tofu init\".\n\nOpenTofu looks here\n\nError: Check failed\n\nTerrace is our name.\n"
	if text.String() != want {
		t.Errorf("%q, want %q", text.String(), want)
	}
	o := (&diag.JSON{Names: names}).Objects(ds)
	for got, want := range map[string]string{
		o[0].Summary: "Not known to OpenTofu", o[0].Detail: `Run "tofu init".`, o[0].Notes[0].Text: "OpenTofu looks here",
		o[1].Detail: "Terrace is our name.",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
