package fetch

import (
	"path"
	"strings"
	"testing"
)

// The canonical forms come from messages and manifests of OpenTofu 1.12.6, except for
// bitbucket.org, for which it uses the network.
func TestDetect(t *testing.T) {
	for _, c := range []struct{ src, version, want string }{
		{"github.com/u/r", "", "git::https://github.com/u/r.git"},
		{"github.com/u/r.git", "", "git::https://github.com/u/r.git"},
		{"github.com/u/r//sub/dir?ref=v1", "", "git::https://github.com/u/r.git//sub/dir?ref=v1"},
		{"github.com/u/r/sub?ref=v1", "", "git::https://github.com/u/r.git//sub?ref=v1"},
		{"github.com/u/r/sub//more", "", "git::https://github.com/u/r.git//sub/more"},
		{"github.com/u/r//", "", "git::https://github.com/u/r.git"},
		{"git::https://x.invalid/r//.", "", "git::https://x.invalid/r//."},
		{"git::https://x.invalid/r///sub", "", "git::https://x.invalid/r///sub"},
		{"a/b/c//.", "", "registry.opentofu.org/a/b/c//."},
		{"file::/a/b", "", "file::file:///a/b"},
		{"bitbucket.org/u/r", "", "git::https://bitbucket.org/u/r.git"},
		{"git@github.com:u/r.git", "", "git::ssh://git@github.com/u/r.git"},
		{"git@github.com:u/r.git//sub?ref=x", "", "git::ssh://git@github.com/u/r.git//sub?ref=x"},
		{"git::git@github.com:u/r.git//sub", "", "git::ssh://git@github.com/u/r.git//sub"},
		{"git::ssh://git@x.com/u/r", "", "git::ssh://git@x.com/u/r"},
		{"git::https://x.invalid/u/r.git?ref=a&depth=1", "", "git::https://x.invalid/u/r.git?ref=a&depth=1"},
		{"git::https://x.invalid/a//sub//c", "", "git::https://x.invalid/a//sub/c"},
		{"https://x.invalid/a.zip", "", "https://x.invalid/a.zip"},
		{"https://x.invalid/a.zip//sub?archive=zip", "", "https://x.invalid/a.zip//sub?archive=zip"},
		{"http://x.invalid/a", "", "http://x.invalid/a"},
		{"hg::https://x.invalid/a", "", "hg::https://x.invalid/a"},
		{"www.googleapis.com/storage/v1/b/p", "", "gcs::https://www.googleapis.com/storage/v1/b/p"},
		{"s3.amazonaws.com/b/k.zip", "", "s3::https://s3.amazonaws.com/b/k.zip"},
		{"b.s3.amazonaws.com/k.zip", "", "s3::https://s3.amazonaws.com/b/k.zip"},
		{"s3-eu-west-1.amazonaws.com/b/k.zip", "", "s3::https://s3-eu-west-1.amazonaws.com/b/k.zip"},
		{"b.s3-eu-west-1.amazonaws.com/k.zip", "", "s3::https://s3-eu-west-1.amazonaws.com/b/k.zip"},
		{"b.s3.eu-west-1.amazonaws.com/k.zip//sub", "", "s3::https://s3.eu-west-1.amazonaws.com/b/k.zip//sub"},
		{"s3::https://s3.amazonaws.com/b/k.zip", "", "s3::https://s3.amazonaws.com/b/k.zip"},
		{"/a/b", "", "file:///a/b"},
		{"/a/b//sub", "", "file:///a/b//sub"},
		{"file:///a/b", "", "file:///a/b"},
		{"oci://x.invalid/a/b//sub?tag=1", "", "oci://x.invalid/a/b//sub?tag=1"},
		{"foo/bar/baz", "", "registry.opentofu.org/foo/bar/baz"},
		{"foo/bar/baz//sub", "1.0", "registry.opentofu.org/foo/bar/baz//sub"},
		{"Foo/bAr/baz", "", "registry.opentofu.org/Foo/bAr/baz"},
		{"EXAMPLE.com/foo/bar/baz", "", "example.com/foo/bar/baz"},
		{"gitlab.com/u/r/aws", "", "gitlab.com/u/r/aws"},
		{"github.com/foo/bar/baz", "", "git::https://github.com/foo/bar.git//baz"},
		{"./a", "", "./a"},
		{"./a/../../b", "", "../b"},
		{"../..", "", "../.."},
		{`.\a\b`, "", "./a/b"},
		{"./", "", "./."},
		{"../", "", "./.."},
	} {
		a, err := Detect(c.src, c.version != "")
		if err != nil || a.String() != c.want {
			t.Errorf("%s: got %s, want %s (%v)", c.src, a, c.want, err)
			continue
		}
		again, err := Detect(a.String(), c.version != "")
		if err != nil || again != a {
			t.Errorf("%s is not stable: %+v, %v", a, again, err)
		}
	}
}

func TestDetectErrors(t *testing.T) {
	for _, c := range []struct{ src, version, want string }{
		{"github.com/u", "", "GitHub URLs should be"},
		{"hg@x.com:foo", "", `use "./hg@x.com:foo" instead`},
		{"gitlab.com/u/r", "", "could not be determined"},
		{"foo", "", "could not be determined"},
		{"foo/bar", "", "could not be determined"},
		{"foo/bar/BAZ", "", "could not be determined"},
		{"foo/bar/baz?x=1", "", "could not be determined"},
		{"example.com/foo/bar", "", "could not be determined"},
		{"localhost/foo/bar/baz", "", "could not be determined"},
		{"xn--e1afmkfd.com/a/b/c", "", "could not be determined"},
		{"xn--e1afmkfd.com/a/b/c", "1", "punycode"},
		{".", "", "could not be determined"},
		{"..", "", "could not be determined"},
		{"git::foo/bar/baz", "", "could not be determined"},
		{"::foo", "", "could not be determined"},
		{"", "", "could not be determined"},
		{"git:://x", "", "could not be determined"},
		{"ftp://x.invalid/a", "", `scheme "ftp"`},
		{"git::https://x.invalid/a//../b", "", "leads outside of the module package"},
		{"github.com/foo/bar/baz", "1.0", "reserved for installing directly"},
		{"foo/bar/baz/qux/x", "1.0", "three or four"},
		{"./a", "1.0", "can't use local directory"},
		{"-a/b/c", "1.0", "invalid namespace"},
		{"a/b/C", "1.0", "invalid target system"},
	} {
		a, err := Detect(c.src, c.version != "")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v %v, want %s", c.src, a, err, c.want)
		}
	}
}

func FuzzDetect(f *testing.F) {
	for _, s := range []string{"github.com/u/r/s//t?ref=v", "git@h:p//s", "b.s3-x.amazonaws.com/k", "a.b/c/d/e//f", "x::y://z//..", `..\a//b`, "C:/x"} {
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, src string, version bool) {
		a, err := Detect(src, version)
		if err != nil {
			return
		}
		if again, err := Detect(a.String(), version); err != nil || again != a {
			t.Errorf("%q gives %q, which gives %+v %v", src, a, again, err)
		}
		// A subdirectory may begin with a slash, as OpenTofu writes it. It is joined to the
		// package's directory and must not leave it.
		if in := path.Join("/package", a.Subdir); in != "/package" && !strings.HasPrefix(in, "/package/") {
			t.Errorf("%q has subdirectory %q", src, a.Subdir)
		}
	})
}
