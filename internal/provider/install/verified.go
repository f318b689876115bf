package install

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// # Verified packages
//
// To read a package of several hundred megabytes takes longer than most commands. So the hash of a
// package is recorded, with the identity of each of its files. If no identity has changed since,
// the recorded hash is the hash of the package. A program cannot set the change time of a file, so
// a file that was written or replaced has another identity.
//
// The records are files of the user, mode 0600, in a cache that no checkout contains. They count
// only on the machine that wrote them. SECURITY.md describes the protection.

// Records locates the records of verified packages.
type Records struct {
	Dir     string           // directory of the records; "" keeps none
	Machine string           // name of the machine; another machine does not use the records
	Now     func() time.Time // nil keeps no records
}

// A record is the content of a record file.
type record struct {
	Machine string
	Package string // directory of the package, with symbolic links resolved
	Hash    lock.Hash
	Files   []identity // in the order of the file names
}

// An identity is that of a file in a package. Times are in nanoseconds since 1970.
type identity struct {
	Name              string
	Device, Inode     uint64
	Size              int64
	Modified, Changed int64
	Mode              fs.FileMode
}

// settled is the age that the last change of a file must have before the file is read. A later
// change could have the same time, because clocks of file systems are not exact.
const settled = 2 * time.Second

// path returns the path of the record of a package.
func (r Records) path(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(r.Dir, hex.EncodeToString(sum[:])+".json")
}

func (r Records) enabled() bool { return r.Dir != "" && r.Now != nil }

// find returns the recorded hash of a package, whose files have the given identities.
func (r Records) find(dir string, files []identity) (lock.Hash, bool) {
	if !r.enabled() || files == nil {
		return "", false
	}
	have, ok := r.read(r.path(dir))
	if !ok || have.Machine != r.Machine || have.Package != dir || !slices.Equal(have.Files, files) {
		return "", false
	}
	return have.Hash, true
}

func (r Records) read(path string) (have record, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return have, false
	}
	text, err := readfile.Whole(path)
	return have, err == nil && json.Unmarshal(text, &have) == nil
}

// keep records the hash of a package, which was read while its files had the given identities. It
// removes the records of packages that do not exist any more. It ignores errors: without a record,
// the package is read again.
func (r Records) keep(dir string, files []identity, hash lock.Hash, began time.Time) {
	if !r.enabled() || files == nil || !slices.Equal(files, identities(dir)) {
		return
	}
	for _, f := range files {
		if began.Sub(time.Unix(0, f.Changed)) < settled {
			return
		}
	}
	text, err := json.Marshal(record{r.Machine, dir, hash, files})
	if err != nil || os.MkdirAll(r.Dir, 0o700) != nil {
		return
	}
	entries, _ := os.ReadDir(r.Dir)
	for _, e := range entries {
		at := filepath.Join(r.Dir, e.Name())
		if old, ok := r.read(at); ok && old.Machine == r.Machine {
			if _, err := os.Lstat(old.Package); os.IsNotExist(err) {
				_ = os.Remove(at)
			}
		}
	}
	_ = atomicfile.Write(r.path(dir), text, 0o600)
}

// identities returns the identities of the files below a directory, or nil if the file system does
// not have them or the directory contains something other than files, directories and links to
// files.
func identities(dir string) []identity {
	out := []identity{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path) // of the file that a link leads to, since that is read
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		id, ok := identify(info)
		if !ok || !info.Mode().IsRegular() {
			return fs.ErrInvalid
		}
		id.Name, id.Size, id.Mode, id.Modified = filepath.ToSlash(rel), info.Size(), info.Mode(), info.ModTime().UnixNano()
		out = append(out, id)
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}
