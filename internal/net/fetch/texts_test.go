package fetch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMetaElement(t *testing.T) {
	for page, want := range map[string]string{
		`<!DOCTYPE html><html><head><meta charset=utf-8><META content='a&amp;b' NAME=terraform-get></head></html>`: "a&b",
		`<head><title>x</title><meta name="terraform-get" content="git::https://x/y.git//sub?ref=v1"/>`:            "git::https://x/y.git//sub?ref=v1",
		`<head><!-- <meta name="terraform-get" content="no"> --></head>`:                                           "",
		`<head></head><meta name="terraform-get" content="late">`:                                                  "",
		`<body><meta name="terraform-get" content="late">`:                                                         "",
		`<head><meta name="go-import" content="x"><meta name="terraform-get">`:                                     "",
		`not a page at all < > & "`: "",
	} {
		if got := metaElement([]byte(page)); got != want {
			t.Errorf("%s: got %q", page, got)
		}
	}
}

func TestNetrc(t *testing.T) {
	const text = "# mine\nmachine a login x password y\nmacdef up\nput machine b\n\nmachine b\n  login u\n  account c\n  password p\ndefault login d password e\n"
	for host, want := range map[string]string{"a": "x y", "b": "u p", "c": "d e"} {
		user, pw, ok := netrc(text, host)
		if !ok || user+" "+pw != want {
			t.Errorf("%s: %s %s %t", host, user, pw, ok)
		}
	}
	if _, _, ok := netrc("machine a login x password y", "b"); ok {
		t.Error("found what is not there")
	}
}

func TestChecksumLists(t *testing.T) {
	for list, want := range map[string]string{
		"aa  b.zip\ncc *a.zip\n":         "cc",
		"SHA256 (a.zip) = dd\n":          "sha256:dd",
		"ee\n":                           "ee",
		"aa  other\n":                    "",
		"ff  ./dir/a.zip\n":              "ff",
		"no checksums to be found here.": "",
	} {
		if got := findChecksum(list, "a.zip"); got != want {
			t.Errorf("%q: %q", list, got)
		}
	}
}

// Mercurial need not be installed: the test checks its arguments.
func TestHg(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "repo", "main.tf"), "hg")
	script := "#!/bin/sh\ncase \"$1\" in\nclone) [ \"$2\" = --noupdate ] && cp -r \"" + dir + "/repo\" \"$4\" && mkdir \"$4/.hg\" ;;\nupdate) [ \"$2 $3\" = '--rev v1' ] ;;\n*) exit 2 ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, "hg"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	f := newFetcher(t)
	f.Env = f.Env.With("PATH=" + dir + ":" + f.Env.Get("PATH"))
	has(t, mustGet(t, f, "hg::https://example.invalid/x?rev=v1"), map[string]string{"main.tf": "hg"})
	getFails(t, f, "hg::https://example.invalid/x?rev=v2", "hg update failed")
	getFails(t, f, "hg::https://example.invalid/x?rev=-v", "begins with a dash")
}

func FuzzTexts(f *testing.F) {
	f.Add("machine a login b password c\nmacdef x\n\n[default]\nk = v\n", "a")
	f.Add("<head><meta name=terraform-get content=x>", "b")
	f.Add("SHA256 (a) = 00\n00  a\n", "a")
	w := &work{Fetcher: &Fetcher{}}
	f.Fuzz(func(t *testing.T, text, name string) {
		netrc(text, name)
		_ = metaElement([]byte(text))
		if sum := findChecksum(text, name); strings.HasPrefix(sum, "file:") {
			return
		} else if _, err := w.checksum(context.Background(), sum, name); err != nil {
			return
		}
	})
}
