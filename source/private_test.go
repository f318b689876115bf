package source

import "testing"

func TestShows(t *testing.T) {
	tests := []struct {
		name, text string
		hidden     []int // lines
	}{
		{"argument", "a = 1\ninputs = {\n  x = 1\n}\nb = 2\n", []int{2, 3, 4}},
		{"one line", "a = 1\ninputs = { x = 1 }\nb = 2\n", []int{2}},
		{"no object", "inputs = merge(local.a, {\n  x = [1]\n})\nb = 2\n", []int{1, 2, 3}},
		{"text", "inputs = {\n  x = \"${local.a}}\"\n  y = <<E\n}\nE\n}\nb = 2\n", []int{1, 2, 3, 4, 5, 6}},
		{"block", "x {\n  secret \"a\" {\n    y = 1\n  }\n}\n", []int{3, 4}},
		{"block on a line", "x {\n  secret \"a\" { y = 1 }\n}\n", []int{2}},
		{"empty block", "x {\n  secret \"a\" {}\n}\n", nil},
		{"other use of the name", "a = var.inputs\ninputs_of = 1\nb = inputs\n", nil},
		{"open string", "a = 1\ninputs = {\n  x = \"a\n  y = 2\n}\n", []int{2, 3, 4, 5}},
		{"open bracket before", "a = [\ninputs = {\n  x = 1\n}\n", []int{2, 3, 4}},
		{"JSON", "{\n  \"a\": 1,\n  \"inputs\": {\n    \"x\": 1\n  },\n  \"b\": 2\n}\n", []int{3, 4, 5}},
		{"JSON block", "{\n  \"x\": {\"secret\": {\"a\":\n   1}},\n  \"b\": 2}\n", []int{2, 3}},
		{"comment", "# inputs = 1\ninputs = 2 # a\nb = 1\n", []int{2}},
		{"open arguments", "secret \"a\" {\n  src = \"m\"\n  x = 1\n  y = {\n    src = 1\n  }\n}\n", []int{3, 4, 5, 6, 7}},
		{"open argument last", "secret \"a\" {\n  x = 1\n  src = [\n    1\n  ]\n}\nb = 1\n", []int{2, 6}},
		{"open argument on the line", "secret \"a\" { src = 1 }\n", []int{1}},
		{"references", "inputs = {\n  x = dependency.a.outputs.b\n  y = local.c,\n  z = hunter2\n  a = \"local.b\"\n  b = local.x[0]\n  c = upper(local.x)\n  d = local\n  e = hunter.two\n  local.x = 1\n  f = local.x # a\n}\n", []int{1, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{"references in a text", "inputs = {\n  x = <<E\nlocal.x\nE\n  y = local.z\n}\n", []int{1, 2, 3, 4, 6}},
		{"references behind an open string", "inputs = {\n  x = \"a\n  y = local.z\n}\n", []int{1, 2, 3, 4}},
		{"after a comment", "/* a */ inputs = 2\nb = 1\n", []int{1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &File{Path: "f", Bytes: []byte(test.text), Private: []string{"inputs", "secret"}, Open: []string{"src"}}
			f.once.Do(f.index)
			var hidden []int
			for n := 1; n < len(f.lines); n++ {
				if !f.Shows(n, n) {
					hidden = append(hidden, n)
				}
			}
			if len(hidden) != len(test.hidden) {
				t.Fatalf("lines %v are hidden, want %v", hidden, test.hidden)
			}
			for i := range hidden {
				if hidden[i] != test.hidden[i] {
					t.Fatalf("lines %v are hidden, want %v", hidden, test.hidden)
				}
			}
		})
	}
	if f := (&File{Bytes: []byte("inputs = {\n  x = local.y\n}\n"), Private: []string{"inputs"}}); !f.Shows(2, 2) || f.ShowsValues(2, 2) || f.Shows(2, 3) {
		t.Error("a reference is shown without its value")
	}
	if f := (&File{Bytes: []byte("x = 1\n"), Layer: &Layer{Kind: VarFile}}); f.Shows(1, 1) || f.Shows(9, 9) {
		t.Error("a variable file is shown")
	}
}
