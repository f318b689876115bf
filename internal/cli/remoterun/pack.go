package remoterun

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// ignoreFile is the file with patterns of files not to upload. It has the format of
// .gitignore.
const ignoreFile = ".terraformignore"

// A rule excludes or includes files. The last rule that matches a file decides.
type rule struct {
	match *regexp.Regexp
	keep  bool // the pattern begins with "!": the rule includes
	dir   bool // the rule matches directories only
}

// rules returns the default rules and those in text.
func rules(text string) []rule {
	var out []rule
	for _, line := range append([]string{".git/", ".terraform/", "!.terraform/modules/"}, strings.Split(text, "\n")...) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var r rule
		line, r.keep = strings.CutPrefix(line, "!")
		line, r.dir = strings.CutSuffix(line, "/")
		rooted := strings.HasPrefix(line, "/") || strings.Contains(line, "/") && !strings.HasPrefix(line, "**/") && !r.keepsDefault(line)
		line = strings.TrimPrefix(strings.TrimPrefix(line, "**/"), "/")
		if line == "" {
			continue
		}
		expr := pattern(line)
		if !rooted {
			expr = "(?:.*/)?" + expr
		}
		re, err := regexp.Compile("^" + expr + "$")
		if err != nil {
			continue // ignore an invalid pattern
		}
		r.match = re
		out = append(out, r)
	}
	return out
}

// keepsDefault reports whether line is the default rule that includes modules at any depth.
func (r rule) keepsDefault(line string) bool { return r.keep && line == ".terraform/modules" }

// pattern converts a pattern to a regular expression.
func pattern(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case strings.HasPrefix(p[i:], "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(p[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[' && strings.Contains(p[i:], "]"):
			end := i + strings.IndexByte(p[i:], ']')
			b.WriteString("[" + strings.Replace(p[i+1:end], "!", "^", 1) + "]")
			i = end
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return b.String()
}

// ignored reports whether the rules exclude a path or one of its parent directories.
func ignored(all []rule, path string, dir bool) bool {
	out := false
	parts := strings.Split(path, "/")
	for _, r := range all {
		for n := 1; n <= len(parts); n++ {
			if isDir := n < len(parts) || dir; (isDir || !r.dir) && r.match.MatchString(strings.Join(parts[:n], "/")) {
				out = !r.keep
				break
			}
		}
	}
	return out
}

// pack returns a gzip-compressed tar archive of a directory. Symbolic links remain links; a
// link that leads out of the directory is an error. pack calls skipped with each path that it
// excludes. If it excludes a whole directory, it calls skipped once.
func pack(root string, skipped func(name string)) ([]byte, error) {
	text, err := readfile.Whole(filepath.Join(root, ignoreFile))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	all := rules(string(text))
	keeps := strings.Contains("\n"+string(text), "\n!")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if ignored(all, name, d.IsDir()) {
			skipped(name)
			if d.IsDir() && !keeps && d.Name() != ".terraform" {
				return filepath.SkipDir
			}
			return nil
		}
		return add(w, root, path, name)
	})
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = z.Close()
	}
	return b.Bytes(), err
}

func add(w *tar.Writer, root, path, name string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = os.Readlink(path); err != nil {
			return err
		}
		target := link
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		rel, err := filepath.Rel(root, target)
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return fmt.Errorf("%s is a link that leads out of the directory that is uploaded; name it in %s, or put what it leads to into the directory", name, ignoreFile)
		}
		if filepath.IsAbs(link) {
			if link, err = filepath.Rel(filepath.Dir(path), link); err != nil {
				return err
			}
		}
		link = filepath.ToSlash(link)
	case !info.Mode().IsRegular() && !info.IsDir():
		return nil // sockets and devices have no meaning on another machine
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname, h.Uid, h.Gid = name, "", "", 0, 0
	if info.IsDir() {
		h.Name += "/"
	}
	if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(w, f, info.Size())
	return err
}
