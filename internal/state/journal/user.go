package journal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
)

// # Ownership of journals
//
// A journal is a file in a working directory, and a working directory may come from another
// person: a checkout can contain a file with the name of a journal. A journal is therefore
// bound to its path and to the user that wrote it. The user has a random key in a user
// directory that no checkout contains. Each record has a code (a truncated HMAC-SHA-256) with a
// key that is derived from the user's key, the path of the journal and a random number of the
// run. A journal whose header does not verify is foreign: its contents are shown, and used only
// if the user agrees.
//
// Paths in a journal are never used. The decision of a move between two states is also in the
// user's directory, under the ID of the move.

// User locates the files of a user on which journals depend.
type User struct {
	// Dir contains the key and the decisions of moves. It is absolute and outside of all
	// working directories. "" means that the user has no such directory: journals are not
	// bound, and moves between two states are refused.
	Dir string
}

// UserOf returns the user of an environment. It must be the environment of the process, because
// files in the working directory may change that of a unit.
func UserOf(env sys.Env) User {
	if base := env.Get("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return User{filepath.Join(base, "terrace")}
	}
	if home := env.Home(); filepath.IsAbs(home) {
		return User{filepath.Join(home, ".local", "state", "terrace")}
	}
	return User{}
}

const (
	keyName   = "journal.key"
	movesName = "moves"
	keySize   = 32
	macSize   = 16 // length of a record's code in bytes
	nonceSize = 16
)

var errNoUser = errors.New("the environment names no home directory: set HOME or XDG_STATE_HOME")

// key returns the key of the user. If there is none and create is set, it creates one.
// Otherwise the error is fs.ErrNotExist.
func (u User) key(create bool) ([]byte, error) {
	if u.Dir == "" {
		return nil, errNoUser
	}
	path := filepath.Join(u.Dir, keyName)
	key, err := readKey(path)
	if !create || !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := u.makeKey(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readKey(path) // another process may have created it first
}

func readKey(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is not used, since others than its owner may read or write it: remove it, or make it a file with mode 0600", path)
	}
	key, err := readfile.Whole(path)
	if err == nil && len(key) != keySize {
		err = fmt.Errorf("%s does not contain a key of %d bytes: remove it", path, keySize)
	}
	return key, err
}

// makeKey creates the file of the key, completely or not at all.
func (u User) makeKey(path string) error {
	if err := os.MkdirAll(u.Dir, 0o700); err != nil {
		return err
	}
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	return createWhole(path, key)
}

// createWhole creates a file that is readable by its owner only. Its content is on disk before
// it gets its name. If the file exists, the error is fs.ErrExist.
func createWhole(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return err
	} else if err != nil { // some file systems do not support links
		if _, there := os.Lstat(path); there == nil {
			return fs.ErrExist
		}
		if err := os.Rename(f.Name(), path); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
}

// A binding computes the codes of the records of one journal.
type binding struct{ key []byte }

// bind derives the key of a journal from the user's key.
func bind(key []byte, path, nonce string) *binding {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "terrace journal\x00%s\x00%s", place(path), nonce)
	return &binding{h.Sum(nil)}
}

// place returns the absolute path of a journal, with links in its directory resolved. A journal
// that is itself a link is not resolved.
func place(path string) string {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return filepath.ToSlash(path)
}

// sum returns the code of a record. number is 0 for records in the tail.
func (b *binding) sum(number uint32, body []byte) []byte {
	h := hmac.New(sha256.New, b.key)
	h.Write(binary.LittleEndian.AppendUint32(nil, number))
	h.Write(body)
	return h.Sum(nil)[:macSize]
}

func (b *binding) verifies(number uint32, body, mac []byte) bool {
	return hmac.Equal(b.sum(number, body), mac)
}

// bindNew returns the binding for a new journal. If there is no key, both results are zero. The
// run continues, but the journal is foreign to every user.
func (u User) bindNew(path string) (*binding, string) {
	key, err := u.key(true)
	if err != nil {
		return nil, ""
	}
	random := make([]byte, nonceSize)
	rand.Read(random) // never fails
	nonce := hex.EncodeToString(random)
	return bind(key, path, nonce), nonce
}

// Sign returns a code for texts that only this user can compute. purpose must be unique to the
// caller. ok is false if there is no key. The code proves that the user wrote a file in a
// working directory.
func (u User) Sign(purpose string, texts ...string) (code string, ok bool) {
	key, err := u.key(true)
	if err != nil {
		return "", false
	}
	return signature(key, purpose, texts), true
}

// Signed reports whether a code is the user's. It never creates a key.
func (u User) Signed(code, purpose string, texts ...string) bool {
	key, err := u.key(false)
	return err == nil && hmac.Equal([]byte(code), []byte(signature(key, purpose, texts)))
}

func signature(key []byte, purpose string, texts []string) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "terrace %q", purpose)
	for _, text := range texts {
		fmt.Fprintf(h, " %q", text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// A judge decides whether a journal at a path belongs to a user.
type judge struct {
	User
	path string
}

// of returns the binding for a header with this nonce if the journal belongs to the user.
func (j judge) of(nonce string) (*binding, error) {
	key, err := j.key(false)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("this user has written no journal on this machine yet")
	}
	if err != nil {
		return nil, err
	}
	return bind(key, j.path, nonce), nil
}
