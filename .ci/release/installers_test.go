package main

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// archiveFile returns the name of the archive of a platform.
func archiveFile(platform string) string {
	name := built.base(target{strings.Split(platform, "/")[0], strings.Split(platform, "/")[1]})
	if strings.HasPrefix(platform, "windows") {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// wanted returns, for each platform, the URL and the checksum of its archive.
func wanted(t *testing.T, platforms ...string) map[string][2]string {
	t.Helper()
	out := map[string][2]string{}
	for _, platform := range platforms {
		name := archiveFile(platform)
		out[platform] = [2]string{built.address + "/" + name, hexSum(read(t, built.out, name))}
	}
	return out
}

func same(t *testing.T, what string, got, want map[string][2]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s:\n%v\nwant:\n%v", what, got, want)
	}
}

func TestFormula(t *testing.T) {
	text := string(read(t, built.out, "terrace.rb"))
	blocks := map[string]string{"on_macos": "darwin", "on_linux": "linux", "on_intel": "amd64", "on_arm": "arm64"}
	got := map[string][2]string{}
	var system, processor, url string
	for _, m := range regexp.MustCompile(`(?m)^ +(?:(on_\w+) do|(url|sha256) "(.*)")$`).FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] == "on_macos" || m[1] == "on_linux":
			system = blocks[m[1]]
		case m[1] != "":
			processor = blocks[m[1]]
		case m[2] == "url":
			url = m[3]
		default:
			got[system+"/"+processor] = [2]string{url, m[3]}
		}
	}
	same(t, "terrace.rb", got, wanted(t, "darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64"))
	for _, line := range []string{
		`  version "1.2.3"`, `    bin.install "terrace", "terrace-worker"`, `    man1.install Dir["man/man1/*.1"]`,
		`    bash_completion.install "completions/terrace.bash" => "terrace"`,
		`    fish_completion.install "completions/terrace.fish"`, `    zsh_completion.install "completions/_terrace"`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("terrace.rb has no line %q", line)
		}
	}
	if ruby, err := exec.LookPath("ruby"); err == nil {
		if b, err := exec.Command(ruby, "-c", filepath.Join(built.out, "terrace.rb")).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, b)
		}
	}
}

// nixSystem calls terrace.nix with arguments that replace nixpkgs. It returns the source that
// terrace.nix fetches for a system.
const nixSystem = `{ file, system }:
let lib = { licenses.asl20 = "asl20"; sourceTypes.binaryNativeCode = "binary"; };
in (import file {
  inherit lib;
  fetchurl = a: a;
  installShellFiles = "installShellFiles";
  stdenvNoCC = { hostPlatform.system = system; mkDerivation = a: a; };
}).src`

func TestNix(t *testing.T) {
	text := string(read(t, built.out, "terrace.nix"))
	systems := map[string]string{
		"x86_64-linux": "linux/amd64", "aarch64-linux": "linux/arm64", "armv7l-linux": "linux/arm",
		"x86_64-darwin": "darwin/amd64", "aarch64-darwin": "darwin/arm64",
	}
	got := map[string][2]string{}
	for _, m := range regexp.MustCompile(`(?m)^    (\S+) = \{\n      url = "(.*)";\n      hash = "sha256-(.*)";\n    \};$`).FindAllStringSubmatch(text, -1) {
		sum, err := base64.StdEncoding.DecodeString(m[3])
		if err != nil {
			t.Error(err)
		}
		got[systems[m[1]]] = [2]string{m[2], hex.EncodeToString(sum)}
	}
	want := wanted(t, slices.Collect(maps.Values(systems))...)
	same(t, "terrace.nix", got, want)
	nix, err := exec.LookPath("nix-instantiate")
	if err != nil {
		t.Log("nix is not installed, so terrace.nix was not evaluated")
		return
	}
	for system, platform := range systems {
		c := exec.Command(nix, "--eval", "--strict", "--json", "--expr", nixSystem, "--argstr", "system", system, "--arg", "file", filepath.Join(built.out, "terrace.nix"))
		c.Env = append(os.Environ(), "HOME="+t.TempDir(), "NIX_STATE_DIR="+t.TempDir(), "NIX_REMOTE=")
		b, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(b), want[platform][0]) {
			t.Errorf("%s: %v\n%s", system, err, b)
		}
	}
}

func TestWinget(t *testing.T) {
	type manifest struct {
		PackageIdentifier    string `yaml:"PackageIdentifier"`
		PackageVersion       string `yaml:"PackageVersion"`
		ManifestType         string `yaml:"ManifestType"`
		ManifestVersion      string `yaml:"ManifestVersion"`
		DefaultLocale        string `yaml:"DefaultLocale"`
		PackageLocale        string `yaml:"PackageLocale"`
		Publisher            string `yaml:"Publisher"`
		PackageName          string `yaml:"PackageName"`
		License              string `yaml:"License"`
		ShortDescription     string `yaml:"ShortDescription"`
		InstallerType        string `yaml:"InstallerType"`
		NestedInstallerType  string `yaml:"NestedInstallerType"`
		ReleaseDate          string `yaml:"ReleaseDate"`
		NestedInstallerFiles []struct {
			Path  string `yaml:"RelativeFilePath"`
			Alias string `yaml:"PortableCommandAlias"`
		} `yaml:"NestedInstallerFiles"`
		Installers []struct {
			Architecture string `yaml:"Architecture"`
			URL          string `yaml:"InstallerUrl"`
			SHA256       string `yaml:"InstallerSha256"`
		} `yaml:"Installers"`
	}
	parts := map[string]manifest{}
	for kind, file := range map[string]string{
		"version": "TerraceIaC.Terrace.yaml", "installer": "TerraceIaC.Terrace.installer.yaml", "defaultLocale": "TerraceIaC.Terrace.locale.en-US.yaml",
	} {
		var m manifest
		if err := yaml.Unmarshal(read(t, built.out, file), &m); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if m.PackageIdentifier != "TerraceIaC.Terrace" || m.PackageVersion != "1.2.3" || m.ManifestType != kind || m.ManifestVersion != "1.6.0" {
			t.Errorf("%s: %+v", file, m)
		}
		parts[kind] = m
	}
	locale := parts["defaultLocale"]
	for _, required := range []string{locale.Publisher, locale.PackageName, locale.License, locale.ShortDescription} {
		if required == "" {
			t.Errorf("a required field is empty: %+v", locale)
		}
	}
	if locale.PackageLocale != "en-US" || parts["version"].DefaultLocale != "en-US" {
		t.Errorf("locales: %q, %q", locale.PackageLocale, parts["version"].DefaultLocale)
	}
	m := parts["installer"]
	if m.InstallerType != "zip" || m.NestedInstallerType != "portable" || m.ReleaseDate != "2026-01-02" || len(m.NestedInstallerFiles) != len(programs) {
		t.Errorf("installer: %+v", m)
	}
	processors := map[string]string{"x64": "windows/amd64", "arm64": "windows/arm64"}
	got := map[string][2]string{}
	for _, i := range m.Installers {
		platform := processors[i.Architecture]
		got[platform] = [2]string{i.URL, i.SHA256}
		files := readZip(t, read(t, built.out, archiveFile(platform)))
		for _, f := range m.NestedInstallerFiles {
			if _, ok := files[f.Path]; !ok || f.Alias+".exe" != f.Path {
				t.Errorf("%s: %+v is not in the archive", platform, f)
			}
		}
	}
	same(t, "winget", got, wanted(t, "windows/amd64", "windows/arm64"))
}

// An install is a run of the install script.
type install struct {
	args   []string
	system string   // the output of uname -s; "" means that of this machine
	cpu    string   // the output of uname -m, if system is set
	hide   []string // programs that the script does not find
}

// run runs the script and returns the directory that it installed into.
func (i install) run(t *testing.T) (prefix, output string, err error) {
	t.Helper()
	prefix = filepath.Join(t.TempDir(), "a prefix")
	bin := t.TempDir()
	for _, name := range []string{"curl", "wget", "sha256sum", "shasum", "openssl", "uname", "tar", "gzip", "mktemp", "mkdir", "cp", "chmod", "mv", "rm", "id", "cut"} {
		if path, err := exec.LookPath(name); err == nil && !slices.Contains(i.hide, name) {
			if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if i.system != "" {
		script := "#!/bin/sh\nif [ \"$1\" = -s ]; then echo " + i.system + "; else echo " + i.cpu + "; fi\n"
		if err := os.Remove(filepath.Join(bin, "uname")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, "uname"), []byte(script), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("/bin/sh", append([]string{filepath.Join(built.out, "install.sh"), "-p", prefix}, i.args...)...)
	c.Env = []string{"PATH=" + bin, "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()}
	b, err := c.CombinedOutput()
	if left, _ := os.ReadDir(strings.TrimPrefix(c.Env[2], "TMPDIR=")); len(left) > 0 {
		t.Errorf("the script leaves %v", left)
	}
	return prefix, string(b), err
}

func needShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		if _, err := exec.LookPath("wget"); err != nil {
			t.Skip("needs curl or wget")
		}
	}
}

// The install script installs the archive of the machine with its man pages and completions.
func TestInstallScript(t *testing.T) {
	needShell(t)
	for _, c := range []struct{ system, cpu, platform string }{
		{"Linux", "x86_64", "linux/amd64"}, {"Linux", "aarch64", "linux/arm64"}, {"Linux", "armv7l", "linux/arm"},
		{"Darwin", "x86_64", "darwin/amd64"}, {"Darwin", "arm64", "darwin/arm64"},
	} {
		t.Run(c.platform, func(t *testing.T) {
			prefix, output, err := install{system: c.system, cpu: c.cpu}.run(t)
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			var got []string
			if err := filepath.WalkDir(prefix, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					got = append(got, strings.TrimPrefix(path, prefix+"/"))
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			want := []string{
				"bin/terrace", "bin/terrace-worker", "share/bash-completion/completions/terrace", "share/fish/vendor_completions.d/terrace.fish",
				"share/man/man1/terrace-plan.1", "share/man/man1/terrace.1", "share/zsh/site-functions/_terrace",
			}
			if !slices.Equal(got, want) {
				t.Errorf("installed: %q, want %q", got, want)
			}
			system, processor, _ := strings.Cut(c.platform, "/")
			if string(read(t, prefix, "bin/terrace")) != string(read(t, built.programs(target{system, processor}), "terrace")) {
				t.Error("the program of another platform was installed")
			}
			if !strings.Contains(output, "Terrace 1.2.3 is installed in "+prefix+"/bin.\n"+prefix+"/bin is not in PATH.\n") {
				t.Errorf("output: %s", output)
			}
		})
	}
}

// The installed program runs on this machine, and an update replaces it. The script needs only
// one of the programs that download and check.
func TestInstallHere(t *testing.T) {
	needShell(t)
	for _, c := range []struct {
		hide  []string
		needs string // a program that the script uses instead
	}{{nil, "sh"}, {[]string{"wget"}, "curl"}, {[]string{"curl"}, "wget"}, {[]string{"sha256sum"}, "shasum"}, {[]string{"sha256sum", "shasum"}, "openssl"}} {
		if _, err := exec.LookPath(c.needs); err != nil {
			t.Logf("%s is not installed", c.needs)
			continue
		}
		prefix, output, err := install{hide: c.hide}.run(t)
		if err != nil {
			t.Errorf("without %q: %v\n%s", c.hide, err, output)
			continue
		}
		b, err := exec.Command(filepath.Join(prefix, "bin/terrace"), "version").Output()
		if err != nil || string(b) != "Terrace v1.2.3 (test)\n" {
			t.Errorf("without %q: %q, %v", c.hide, b, err)
		}
	}
}

// The install script installs nothing if the archive is another than the one of the release.
func TestInstallRefused(t *testing.T) {
	needShell(t)
	here := archiveFile(runtime.GOOS + "/" + runtime.GOARCH)
	good := read(t, built.out, here)
	for _, c := range []struct {
		name    string
		install install
		files   map[string][]byte
		want    string
	}{
		{"changed", install{}, map[string][]byte{here: append(slices.Clone(good), 0)}, "has the wrong checksum, so nothing was installed"},
		{"truncated", install{}, map[string][]byte{here: good[:len(good)/2]}, "expected: " + hexSum(good) + "\n  found:    " + hexSum(good[:len(good)/2])},
		{"other platform", install{}, map[string][]byte{here: read(t, built.out, archiveFile("darwin/arm64"))}, "wrong checksum"},
		{"mirror without files", install{args: []string{"-a", built.address + "/none/"}}, nil, built.address + "/none/" + here + " cannot be downloaded"},
		{"processor", install{system: "Linux", cpu: "mips"}, nil, "there is no archive for linux/mips"},
		{"system", install{system: "Plan9", cpu: "x86_64"}, nil, "there is no archive for Plan9"},
		{"no download", install{hide: []string{"curl", "wget"}}, nil, "neither curl nor wget is installed"},
		{"no checksum", install{hide: []string{"sha256sum", "shasum", "openssl"}}, nil, "the archive cannot be checked"},
		{"option", install{args: []string{"-x"}}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			built.replace(t, c.files)
			prefix, output, err := c.install.run(t)
			if err == nil || !strings.Contains(output, c.want) {
				t.Errorf("%v, output:\n%s\nwant %q", err, output, c.want)
			}
			if _, err := os.Stat(prefix); err == nil {
				t.Errorf("%s was created", prefix)
			}
		})
	}
}

// An incomplete download of the script does nothing.
func TestInstallScriptTruncated(t *testing.T) {
	needShell(t)
	script := string(read(t, built.out, "install.sh"))
	start := strings.Index(script, "\nmain \"$@\"")
	if start < 0 {
		t.Fatal("the script does not call main at its end")
	}
	prefix := filepath.Join(t.TempDir(), "prefix")
	for n := start; n > 0; n -= 200 {
		c := exec.Command("/bin/sh", "-s", "--", "-p", prefix)
		c.Stdin = strings.NewReader(script[:n])
		_ = c.Run() // an incomplete function is an error
		if _, err := os.Stat(prefix); err == nil {
			t.Fatalf("the first %d bytes of the script install something", n)
		}
	}
}

func TestShellcheck(t *testing.T) {
	path, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed")
	}
	if b, err := exec.Command(path, "--shell=sh", filepath.Join(built.out, "install.sh")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestShellQuote(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	const text = "it's $HOME `x` \\ \"y\"\n"
	b, err := exec.Command("/bin/sh", "-c", "printf %s "+shellQuote(text)).Output()
	if err != nil || string(b) != text {
		t.Errorf("%q, %v", b, err)
	}
}
