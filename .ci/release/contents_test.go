package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/blakesmith/ar"
	"github.com/cavaliergopher/cpio"
)

// A content is a file of an archive or a package.
type content struct {
	mode int64
	text []byte
}

// archiveNames are the files of an archive, without the programs.
var archiveNames = []string{
	"LICENSE", "README.md", "completions/_terrace", "completions/terrace.bash", "completions/terrace.fish",
	"man/man1/terrace-plan.1", "man/man1/terrace.1",
}

func TestArchives(t *testing.T) {
	for _, target := range built.targets {
		t.Run(target.system+"_"+target.processor, func(t *testing.T) {
			var files map[string]content
			if target.system == "windows" {
				files = readZip(t, read(t, built.out, built.base(target)+".zip"))
			} else {
				files = readTar(t, gunzip(t, read(t, built.out, built.base(target)+".tar.gz")))
			}
			want := slices.Clone(archiveNames)
			for _, program := range programs {
				name := target.file(program)
				want = append(want, name)
				if f := files[name]; f.mode != 0o755 {
					t.Errorf("%s: mode %o", name, f.mode)
				}
				checkProgram(t, target, files[name].text)
			}
			slices.Sort(want)
			if got := fileNames(files); !slices.Equal(got, want) {
				t.Errorf("files: %q, want %q", got, want)
			}
			for name, text := range map[string]string{
				"completions/terrace.bash": "completion for bash\n",
				"completions/terrace.fish": "completion for fish\n",
				"completions/_terrace":     "completion for zsh\n",
				"man/man1/terrace.1":       ".TH terrace\n",
				"LICENSE":                  "The license of the test.\n",
			} {
				if f := files[name]; string(f.text) != text || f.mode != 0o644 {
					t.Errorf("%s: mode %o, text %q", name, f.mode, f.text)
				}
			}
		})
	}
}

// checkProgram checks that a program is for the target and was built as a release is.
func checkProgram(t *testing.T, target target, program []byte) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		t.Error(err)
		return
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	want := map[string]string{
		"GOOS": target.system, "GOARCH": target.processor, "CGO_ENABLED": "0",
		"-tags": buildTags, "-trimpath": "true", "vcs.revision": built.source.commit, "vcs.modified": "false",
	}
	if target.processor == "arm" {
		want["GOARM"] = "7"
	}
	for key, value := range want {
		if settings[key] != value {
			t.Errorf("build setting %s is %q, want %q", key, settings[key], value)
		}
	}
}

// packageArchitectures are the names of processors in each format.
var packageArchitectures = map[string]map[string]string{
	"deb": {"amd64": "amd64", "arm64": "arm64", "arm": "armhf"},
	"rpm": {"amd64": "x86_64", "arm64": "aarch64", "arm": "armv7hl"},
	"apk": {"amd64": "x86_64", "arm64": "aarch64", "arm": "armv7"},
}

func TestPackages(t *testing.T) {
	for _, format := range packageFormats {
		for processor, architecture := range packageArchitectures[format.name] {
			t.Run(format.name+"_"+processor, func(t *testing.T) {
				target := target{"linux", processor}
				b := read(t, built.out, built.base(target)+"."+format.name)
				files, about := map[string]func(*testing.T, []byte) (map[string]content, map[string]string){"deb": readDeb, "rpm": readRPM, "apk": readAPK}[format.name](t, b)
				want := []string{
					format.license, format.zsh, "/usr/bin/terrace", "/usr/bin/terrace-worker",
					"/usr/share/bash-completion/completions/terrace", "/usr/share/fish/vendor_completions.d/terrace.fish",
					"/usr/share/man/man1/terrace-plan.1.gz", "/usr/share/man/man1/terrace.1.gz",
				}
				slices.Sort(want)
				if got := fileNames(files); !slices.Equal(got, want) {
					t.Errorf("files: %q, want %q", got, want)
				}
				for _, program := range programs {
					f := files["/usr/bin/"+program]
					if f.mode != 0o755 {
						t.Errorf("%s: mode %o", program, f.mode)
					}
					if !bytes.Equal(f.text, read(t, built.programs(target), program)) {
						t.Errorf("%s is not the program that was built", program)
					}
				}
				for name, text := range map[string]string{
					"/usr/share/bash-completion/completions/terrace": "completion for bash\n",
					format.zsh:     "completion for zsh\n",
					format.license: "The license of the test.\n",
				} {
					if f := files[name]; string(f.text) != text || f.mode != 0o644 {
						t.Errorf("%s: mode %o, text %q", name, f.mode, f.text)
					}
				}
				if page := gunzip(t, files["/usr/share/man/man1/terrace.1.gz"].text); string(page) != ".TH terrace\n" {
					t.Errorf("man page: %q", page)
				}
				if about["name"] != "terrace" || about["architecture"] != architecture {
					t.Errorf("name and architecture: %q", about)
				}
				if about["license"] != "Apache-2.0" && format.name != "deb" { // deb states it in the copyright file
					t.Errorf("license: %q", about["license"])
				}
				if !strings.HasPrefix(about["version"], "1.2.3") {
					t.Errorf("version: %q", about["version"])
				}
			})
		}
	}
}

// dpkg reads the package, too.
func TestDpkg(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed")
	}
	for field, want := range map[string]string{"Version": "1.2.3-1\n", "Architecture": "armhf\n", "Recommends": "ca-certificates, git\n"} {
		b, err := exec.Command("dpkg-deb", "--field", path.Join(built.out, built.base(target{"linux", "arm"})+".deb"), field).CombinedOutput()
		if err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", field, b, err)
		}
	}
	dir := t.TempDir()
	if b, err := exec.Command("dpkg-deb", "--extract", path.Join(built.out, built.base(target{"linux", "amd64"})+".deb"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if !bytes.Equal(read(t, dir, "usr/bin/terrace"), read(t, built.programs(target{"linux", "amd64"}), "terrace")) {
		t.Error("dpkg-deb extracts another program")
	}
}

// rpm reads the package, too.
func TestRPM(t *testing.T) {
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("rpm is not installed")
	}
	file := path.Join(built.out, built.base(target{"linux", "arm64"})+".rpm")
	const format = "%{NAME} %{VERSION}-%{RELEASE} %{ARCH} %{LICENSE} %{RECOMMENDS}"
	b, err := exec.Command("rpm", "--query", "--package", "--nosignature", "--queryformat", format, file).Output()
	if want := "terrace 1.2.3-1 aarch64 Apache-2.0 ca-certificates"; err != nil || string(b) != want {
		t.Errorf("%q, %v, want %q", b, err, want)
	}
	if b, err := exec.Command("rpm", "--checksig", "--nosignature", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestAPKVersion(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3_rc1", "1.2.3-beta": "1.2.3_beta", "0.0.0-g0123456789ab": "0.0.0_git", "1.2.3-rc.1.2": "1.2.3_git",
	} {
		if got := apkVersion(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

// The list of modules of a program is CycloneDX and names the program. The modules of the real
// program are checked in TestProgram.
func TestModules(t *testing.T) {
	var list struct {
		Format   string `json:"bomFormat"`
		Metadata struct {
			Component struct{ Name, Version string }
		}
	}
	if err := json.Unmarshal(read(t, built.out, "terrace-worker_1.2.3_linux_arm.cdx.json"), &list); err != nil {
		t.Fatal(err)
	}
	if c := list.Metadata.Component; list.Format != "CycloneDX" || c.Name != "github.com/terrace-iac/terrace/cmd/terrace-worker" || c.Version != "1.2.3" {
		t.Errorf("list of modules: %+v", list)
	}
}

func fileNames(files map[string]content) []string {
	var out []string
	for name := range files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func gunzip(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// readTar returns the files of a tar file, without directories.
func readTar(t *testing.T, b []byte) map[string]content {
	t.Helper()
	out := map[string]content{}
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		if h.Name != ".PKGINFO" && !h.ModTime.Equal(built.source.time) {
			t.Errorf("%s: time %s", h.Name, h.ModTime)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = content{h.Mode, text}
	}
}

func readZip(t *testing.T, b []byte) map[string]content {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]content{}
	for _, f := range r.File {
		part, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = content{int64(f.Mode().Perm()), text}
	}
	return out
}

// rooted returns files with absolute names.
func rooted(files map[string]content) map[string]content {
	out := map[string]content{}
	for name, f := range files {
		out[path.Join("/", name)] = f
	}
	return out
}

// fields reads lines of a key and a value.
func fields(text []byte, separator string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), separator); ok {
			out[key] = value
		}
	}
	return out
}

func readDeb(t *testing.T, b []byte) (map[string]content, map[string]string) {
	t.Helper()
	parts := map[string][]byte{}
	r := ar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if parts[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	control := fields(rooted(readTar(t, gunzip(t, parts["control.tar.gz"])))["/control"].text, ": ")
	return rooted(readTar(t, gunzip(t, parts["data.tar.gz"]))), map[string]string{
		"name": control["Package"], "version": control["Version"], "architecture": control["Architecture"],
	}
}

// readRPM reads an rpm file: 96 bytes without meaning, a header with signatures, padded to 8
// bytes, a header with metadata, and a compressed cpio file.
func readRPM(t *testing.T, b []byte) (map[string]content, map[string]string) {
	t.Helper()
	const name, version, buildTime, buildHost, license, architecture = 1000, 1001, 1006, 1007, 1014, 1022
	_, rest := rpmHeader(t, b[96:])
	if n := (len(b) - len(rest)) % 8; n > 0 {
		rest = rest[8-n:]
	}
	tags, rest := rpmHeader(t, rest)
	text := func(tag uint32) string {
		value, _, _ := strings.Cut(string(tags[tag]), "\x00")
		return value
	}
	if at := int64(binary.BigEndian.Uint32(tags[buildTime])); text(buildHost) != "localhost" || at != built.source.time.Unix() {
		t.Errorf("built on %q at %d", text(buildHost), at)
	}
	files := map[string]content{}
	for payload := cpio.NewReader(bytes.NewReader(gunzip(t, rest))); ; {
		h, err := payload.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(payload)
		if err != nil {
			t.Fatal(err)
		}
		files[path.Join("/", h.Name)] = content{int64(h.Mode.Perm()), b}
	}
	return files, map[string]string{"name": text(name), "version": text(version), "architecture": text(architecture), "license": text(license)}
}

// rpmHeader reads a header. It returns, for each tag, the store from the value of the tag on,
// and the bytes after the header.
func rpmHeader(t *testing.T, b []byte) (tags map[uint32][]byte, rest []byte) {
	t.Helper()
	if !bytes.HasPrefix(b, []byte{0x8e, 0xad, 0xe8, 1}) {
		t.Fatalf("not a header: %x", b[:4])
	}
	count, size := int(binary.BigEndian.Uint32(b[8:])), int(binary.BigEndian.Uint32(b[12:]))
	index, store := b[16:], b[16+16*count:][:size]
	tags = map[uint32][]byte{}
	for i := range count {
		entry := index[16*i:]
		tags[binary.BigEndian.Uint32(entry)] = store[binary.BigEndian.Uint32(entry[8:]):]
	}
	return tags, b[16+16*count+size:]
}

// readAPK reads the tar files of which an apk file consists: signatures, metadata and files.
// Names that begin with a dot are those of metadata.
func readAPK(t *testing.T, b []byte) (map[string]content, map[string]string) {
	t.Helper()
	files := map[string]content{}
	var about map[string]string
	for rest := bytes.NewReader(b); rest.Len() > 0; {
		z, err := gzip.NewReader(rest)
		if err != nil {
			t.Fatal(err)
		}
		z.Multistream(false)
		part, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range readTar(t, part) {
			switch {
			case name == ".PKGINFO":
				about = fields(f.text, " = ")
			case !strings.HasPrefix(name, "."):
				files["/"+name] = f
			}
		}
	}
	return files, map[string]string{"name": about["pkgname"], "version": about["pkgver"], "architecture": about["arch"], "license": about["license"]}
}
