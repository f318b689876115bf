package diag

import (
	"testing"

	"github.com/terrace-iac/terrace/source"
)

// A Redactor replaces the longest value first, and short values only as separate words. It does
// not replace published texts.
func TestRedactor(t *testing.T) {
	r := &Redactor{}
	for value, shown := range map[string]string{
		"hunter2pw": "(A)", "https://hunter2pw@host/x": "(B)", "prod": "(C)", "true": "(D)", "abc": "(E)", "8080": "(F)",
		"first secret\nsecond secret": "(G)", "a\"b\"cdefgh": "(H)", "with space": "(I)", "visible-directory": "(J)", "terraform": "(K)",
	} {
		r.Add(value, shown)
	}
	r.Add("hunter2pw", "(another)")
	r.Publish("/estate/visible-directory/unit")
	for in, want := range map[string]string{
		"x hunter2pwy":                     "x (A)y",
		"at https://hunter2pw@host/x: 404": "at (B): 404",
		"hunter2pw and hunter2pw":          "(A) and (A)",
		"the product prod, prod.tf":        "the product (C), prod.tf",
		"live/prod/x":                      "live/(C)/x",
		"true abc 8080":                    "true abc 8080",
		"says second secret":               "says (G)",
		`not "a\"b\"cdefgh"`:               `not "(H)"`,
		"http://h/with%20space":            "http://h/(I)",
		"/estate/visible-directory/x":      "/estate/visible-directory/x",
		"terraform_data.x in terraform":    "terraform_data.x in (K)",
		"nothing":                          "nothing",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	m := &Message{Summary: "S", Detail: "hunter2pw", Values: []string{"x", "hunter2pw"}, Notes: []Note{{Text: "n", At: &source.Range{Filename: "hunter2pw/f"}}}, At: &source.Range{Filename: "f"}}
	other := &Message{Summary: "S"}
	got := r.List(List{other, m})
	if got[0] != other || got[1].Detail != "(A)" || got[1].Values[1] != "(A)" || got[1].Notes[0].At.Filename != "(A)/f" || got[1].At != m.At {
		t.Errorf("got %+v", got[1])
	}
	if m.Detail != "hunter2pw" || m.Values[1] != "hunter2pw" || m.Notes[0].At.Filename != "hunter2pw/f" {
		t.Errorf("the message was changed: %+v", m)
	}
	if (*Redactor)(nil).Text("x") != "x" {
		t.Error("a nil Redactor changes text")
	}
}
