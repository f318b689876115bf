// Package schemacache keeps the encoded schemas of provider packages between commands, in files of
// the user. A command that only needs schemas then starts no provider process.
//
// Main types: Cache, the directory of the files; File, an open file; Sections, its content. The
// one rule: a file that is damaged, that another user or another machine has written, or that
// others can read or write counts as missing.
package schemacache

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
)

// # The files
//
// A file begins with magic, the checksum of the rest and the length of the index. The index
// contains the machine, the key, and the names and lengths of all entries, by section. The entries
// follow without separators.
//
// The file is mapped into memory and an entry is copied when it is needed, so that a command with
// few resource types reads few pages of the file. The checksum is verified when the file is opened.
// A file is replaced by a rename and never changed. If a foreign program truncates it nevertheless,
// Entry returns an error.

// magic contains the version of the form. The version changes if callers need more sections. It is
// also part of the file name, so that two versions of the program do not replace each other's
// files.
const magic = "terrace-schemas 2\n"

const (
	headerSize = len(magic) + 4 + 8
	maxIndex   = 64 << 20 // bytes
	suffix     = ".schemas"
)

// A Cache locates the files. The zero value keeps none. A Cache may be used concurrently, also by
// several processes.
type Cache struct {
	Dir     string           // directory of the files; "" keeps none
	Machine string           // name of the machine; another machine does not use the files
	Now     func() time.Time // nil keeps no files

	MaxFiles int   // maximum number of files; 0 means 200
	MaxBytes int64 // maximum size of all files; 0 means 512 MiB
}

// Sections is the content of a file: encoded entries by section and name.
type Sections map[string]map[string][]byte

// Names returns the names of a section, sorted.
func (s Sections) Names(section string) []string { return slices.Sorted(maps.Keys(s[section])) }

// Entry returns an entry, or nil if there is none.
func (s Sections) Entry(section, name string) ([]byte, error) {
	b, ok := s[section][name]
	if ok && b == nil {
		b = []byte{}
	}
	return b, nil
}

// Enabled reports whether the cache keeps files.
func (c Cache) Enabled() bool { return c.Dir != "" && c.Now != nil }

func (c Cache) path(key string) string {
	sum := sha256.Sum256([]byte(magic + c.Machine + "\x00" + key))
	return filepath.Join(c.Dir, hex.EncodeToString(sum[:])+suffix)
}

// Keep writes the file of a key. It ignores errors: without the file, the next command requests
// the schemas from the provider. It removes the least recently used files above the limits.
func (c Cache) Keep(key string, s Sections) {
	if !c.Enabled() || os.MkdirAll(c.Dir, 0o700) != nil {
		return
	}
	if info, err := os.Lstat(c.Dir); err != nil || !info.IsDir() || !own(info) || writable(info) {
		return
	}
	index := c.index(key, s)
	size := int64(headerSize + len(index))
	for section := range s {
		for _, b := range s[section] {
			size += int64(len(b))
		}
	}
	if len(index) > maxIndex || size > cmp.Or(c.MaxBytes, maxBytes) {
		return
	}
	sum := crc32.New(castagnoli())
	_ = write(sum, index, s) // a hash returns no error
	header := binary.BigEndian.AppendUint32([]byte(magic), sum.Sum32())
	header = binary.BigEndian.AppendUint64(header, uint64(len(index)))
	_ = atomicfile.WriteCopyFrom(c.path(key), 0o600, func(f io.Writer) error {
		w := bufio.NewWriterSize(f, 256<<10)
		if _, err := w.Write(header); err != nil {
			return err
		}
		if err := write(w, index, s); err != nil {
			return err
		}
		return w.Flush()
	})
	c.trim()
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// index returns the encoded index.
func (c Cache) index(key string, s Sections) []byte {
	text := func(b []byte, s string) []byte {
		return append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	b := text(text(nil, c.Machine), key)
	b = binary.AppendUvarint(b, uint64(len(s)))
	for _, section := range slices.Sorted(maps.Keys(s)) {
		b = binary.AppendUvarint(text(b, section), uint64(len(s[section])))
		for _, name := range s.Names(section) {
			b = binary.AppendUvarint(text(b, name), uint64(len(s[section][name])))
		}
	}
	return b
}

// write writes what follows the header.
func write(w io.Writer, index []byte, s Sections) error {
	if _, err := w.Write(index); err != nil {
		return err
	}
	for _, section := range slices.Sorted(maps.Keys(s)) {
		for _, name := range s.Names(section) {
			if _, err := w.Write(s[section][name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Limits of a cache.
const (
	maxFiles = 200
	maxBytes = 512 << 20
	used     = time.Hour // the accuracy of the time of the last use
)

// trim removes the least recently used files above the limits, and temporary files of commands
// that were killed.
func (c Cache) trim() {
	entries, _ := os.ReadDir(c.Dir)
	var files []fs.FileInfo
	var sum int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.Contains(e.Name(), suffix) {
			continue
		}
		if !strings.HasSuffix(e.Name(), suffix) {
			if c.Now().Sub(info.ModTime()) > used {
				_ = os.Remove(filepath.Join(c.Dir, e.Name()))
			}
			continue
		}
		files, sum = append(files, info), sum+info.Size()
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for len(files) > cmp.Or(c.MaxFiles, maxFiles) || sum > cmp.Or(c.MaxBytes, maxBytes) {
		_ = os.Remove(filepath.Join(c.Dir, files[0].Name()))
		files, sum = files[1:], sum-files[0].Size()
	}
}

// A File is an open file of the cache. It may be used concurrently. The file on disk may be
// replaced or removed meanwhile.
type File struct {
	m        *mapping
	sections map[string]section
}

// A section is a sorted list of entries. Entry i begins at offset[i] and ends at offset[i+1].
type section struct {
	names  []string
	offset []int64
}

// A mapping is the content of a file in memory. It ends when it is unreachable.
type mapping struct{ data []byte }

var (
	errDamaged = errors.New("the file is damaged")
	errRead    = errors.New("the schema cache cannot be read any more, because its file was changed")
)

// Open opens the file of a key. It returns nil if there is no usable file.
func (c Cache) Open(key string) *File {
	if !c.Enabled() {
		return nil
	}
	path := c.path(key)
	before, err := os.Lstat(path)
	if err != nil || !before.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !os.SameFile(before, info) || !own(info) || exposed(info) {
		return nil
	}
	index, err := verify(f, info.Size())
	if err != nil {
		return nil
	}
	out := &File{}
	if out.sections, err = c.parse(index, key, int64(headerSize+len(index)), info.Size()); err != nil {
		return nil
	}
	data, unmap, err := mapFile(f, info.Size())
	if err != nil {
		return nil
	}
	out.m = &mapping{data}
	if unmap != nil {
		runtime.AddCleanup(out.m, func(data []byte) { unmap(data) }, data)
	}
	if now := c.Now(); now.Sub(info.ModTime()) > used {
		_ = os.Chtimes(path, now, now)
	}
	return out
}

// verify compares a file with its checksum and returns its index. It reads the file in small parts,
// because mapped pages that are read count as memory of the process.
func verify(f io.Reader, size int64) ([]byte, error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(f, header); err != nil {
		return nil, err
	}
	sum := binary.BigEndian.Uint32(header[len(magic):])
	n := binary.BigEndian.Uint64(header[len(magic)+4:])
	if !bytes.HasPrefix(header, []byte(magic)) || size < int64(headerSize) || n > maxIndex || int64(n) > size-int64(headerSize) {
		return nil, errDamaged
	}
	index := make([]byte, n)
	if _, err := io.ReadFull(f, index); err != nil {
		return nil, err
	}
	have := crc32.New(castagnoli())
	_, _ = have.Write(index) // a hash returns no error
	if _, err := io.CopyBuffer(struct{ io.Writer }{have}, struct{ io.Reader }{f}, make([]byte, 256<<10)); err != nil {
		return nil, err
	}
	if have.Sum32() != sum {
		return nil, errDamaged
	}
	return index, nil
}

// parse decodes the index of the file of a key. The entries are between the offsets start and end.
func (c Cache) parse(index []byte, key string, start, end int64) (map[string]section, error) {
	r := indexReader{rest: string(index)}
	if machine, k := r.text(), r.text(); machine != c.Machine || k != key {
		return nil, errDamaged
	}
	out := map[string]section{}
	for range r.count() {
		name, n := r.text(), r.count()
		s := section{names: make([]string, n), offset: make([]int64, n+1)}
		s.offset[0] = start
		for i := range n {
			s.names[i] = r.text()
			size := r.number()
			if size > uint64(end-start) {
				return nil, errDamaged
			}
			start += int64(size)
			s.offset[i+1] = start
		}
		if !slices.IsSorted(s.names) {
			return nil, errDamaged
		}
		out[name] = s
	}
	if r.failed || r.rest != "" || start != end {
		return nil, errDamaged
	}
	return out, nil
}

// An indexReader decodes an index. After an error, it returns zeros.
type indexReader struct {
	rest   string
	failed bool
}

func (r *indexReader) number() uint64 {
	for i, shift := 0, 0; i < len(r.rest) && i < binary.MaxVarintLen64; i, shift = i+1, shift+7 {
		if r.rest[i] < 0x80 {
			n, _ := binary.Uvarint([]byte(r.rest[:i+1]))
			r.rest = r.rest[i+1:]
			return n
		}
	}
	r.rest, r.failed = "", true
	return 0
}

// count returns the number of elements that follow. Each needs one byte at least.
func (r *indexReader) count() int {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.rest, r.failed = "", true
		return 0
	}
	return int(n)
}

func (r *indexReader) text() string {
	n := r.count()
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// Names returns the names of a section, sorted.
func (f *File) Names(section string) []string { return slices.Clone(f.sections[section].names) }

// Entry returns a copy of an entry, or nil if there is none.
func (f *File) Entry(section, name string) (entry []byte, err error) {
	s := f.sections[section]
	i, ok := slices.BinarySearch(s.names, name)
	if !ok {
		return nil, nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // reading a truncated file would end the program
	defer func() {
		if recover() != nil {
			entry, err = nil, errRead
		}
	}()
	entry = make([]byte, s.offset[i+1]-s.offset[i])
	copy(entry, f.m.data[s.offset[i]:])
	runtime.KeepAlive(f.m)
	return entry, nil
}
