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

// # Whose journal it is
//
// A journal is a file of a working directory, and a working directory may come from
// somebody else: a checkout can bring a file with the name of a journal. So a journal is
// bound to the user that wrote it and to its path. The user has a random key, in a
// directory of the user that no checkout contains. Each record carries a code (a truncated
// HMAC-SHA-256) under a key that is derived from the user's key, the path of the journal
// and a random number of the run. A journal whose header does not verify is foreign: it
// is read to show what it contains, and is used only if the user says so.
//
// No path is read from a journal. The note that a move between two states was decided is
// in the user's directory too, under the ID of the move.

// User is where the files of a user are that journals rely on.
type User struct {
	// Dir contains the key and the notes about moves. It is absolute and outside of all
	// working directories. "" means that the user has none: the journals of such a user are
	// bound to nobody, and moves between two states are refused.
	Dir string
}

// UserOf returns the user that an environment names. It must be the environment that the
// program was started with: that of a unit may be set by files of the working directory.
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
	macSize   = 16 // of the code of a record
	nonceSize = 16
)

var errNoUser = errors.New("the environment names no home directory: set HOME or XDG_STATE_HOME")

// key returns the key of the user. If there is none it makes one, provided that create is set;
// otherwise the error is fs.ErrNotExist.
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
	return readKey(path) // that of another process, if it was first
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

// makeKey makes the file of the key, wholly or not at all.
func (u User) makeKey(path string) error {
	if err := os.MkdirAll(u.Dir, 0o700); err != nil {
		return err
	}
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	return createWhole(path, key)
}

// createWhole makes a file for its owner alone, on disk before it has its name. If there is
// one already, the error is fs.ErrExist.
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
	} else if err != nil { // some file systems have no links
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

// bind derives the key of a journal from that of the user.
func bind(key []byte, path, nonce string) *binding {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "terrace journal\x00%s\x00%s", place(path), nonce)
	return &binding{h.Sum(nil)}
}

// place is the absolute path of a journal with the links of its directory resolved. A
// journal that is a link itself is not in the place of the file that it leads to.
func place(path string) string {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return filepath.ToSlash(path)
}

// sum is the code of a record. The number is 0 for records of the tail.
func (b *binding) sum(number uint32, body []byte) []byte {
	h := hmac.New(sha256.New, b.key)
	h.Write(binary.LittleEndian.AppendUint32(nil, number))
	h.Write(body)
	return h.Sum(nil)[:macSize]
}

func (b *binding) verifies(number uint32, body, mac []byte) bool {
	return hmac.Equal(b.sum(number, body), mac)
}

// bindNew binds a new journal. Without a key for it both results are zero: the run is not
// held up for that, but its journal is foreign to everybody.
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

// Sign returns a code that only this user can compute: of texts, for a purpose that no other
// caller has. ok is false without a key. It proves that the user wrote a file of a working
// directory.
func (u User) Sign(purpose string, texts ...string) (code string, ok bool) {
	key, err := u.key(true)
	if err != nil {
		return "", false
	}
	return signature(key, purpose, texts), true
}

// Signed reports whether a code is the user's. It makes no key.
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

// A judge tells the journals of a user from others, at one path.
type judge struct {
	User
	path string
}

// of returns the binding that a header with this number has if the journal is the user's.
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
