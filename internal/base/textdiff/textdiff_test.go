package textdiff

import "testing"

func TestUnified(t *testing.T) {
	if got := Unified("a", "b", []byte("x\n"), []byte("x\n")); got != "" {
		t.Errorf("equal texts differ: %q", got)
	}
	got := Unified("old/x", "new/x", []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), []byte("1\n2\n3\n4\nfive\n6\n7\n8\n9"))
	want := "--- old/x\n+++ new/x\n@@ -2,8 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n-9\n+9\n\\ No newline at end of file\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	got = Unified("x", "y", []byte("a {\nx=1\n}\nb {\ny=1\n}\n"), []byte("a {\n  x = 1\n}\nb {\n  y = 1\n}\n"))
	if want := "--- x\n+++ y\n@@ -1,6 +1,6 @@\n a {\n-x=1\n+  x = 1\n }\n b {\n-y=1\n+  y = 1\n }\n"; got != want {
		t.Errorf("a brace between two changes: got:\n%s\nwant:\n%s", got, want)
	}
}
