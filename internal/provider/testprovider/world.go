package testprovider

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// worldFile returns the file of an object, or "" without a world.
func (s *server) worldFile(typ string, obj cty.Value) string {
	dir := s.settings().world
	if dir == "" || obj.IsNull() || text(obj, "id") == "" {
		return ""
	}
	return filepath.Join(dir, typ+"."+url.PathEscape(text(obj, "id"))+".json")
}

// worldRead returns the object in the world. It is null if the object does not exist any
// more.
func (s *server) worldRead(typ string, obj cty.Value, ty cty.Type) (cty.Value, error) {
	path := s.worldFile(typ, obj)
	if path == "" {
		return obj, nil
	}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cty.NullVal(ty), nil
	case err != nil:
		return cty.NilVal, err
	}
	return ctyjson.Unmarshal(b, ty)
}

// worldWrite writes an object to the world, or deletes it.
func (s *server) worldWrite(typ string, prior, obj cty.Value, ty cty.Type) error {
	if obj.IsNull() {
		if path := s.worldFile(typ, prior); path != "" {
			if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	}
	path := s.worldFile(typ, obj)
	if path == "" {
		return nil
	}
	b, err := ctyjson.Marshal(obj, ty)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
