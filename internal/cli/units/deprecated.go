package units

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/estate"
)

// Deprecated returns the warning about deprecated parts of the unit language, at most once a
// day. A file in the user's cache stores the day. Users who start the program as terragrunt
// get no warning. With look, for commands that write nothing, Deprecated does not write the
// file either.
func Deprecated(c *command.Call, e *estate.Estate, f *unitflags.Flags, look bool) diag.List {
	if f.NoDeprecation || c.CalledAs() == "terragrunt" {
		return nil
	}
	ds := e.Deprecated()
	if len(ds) == 0 {
		return nil
	}
	path, today := reportedPath(c), c.Now().UTC().Format(time.DateOnly)
	if path == "" {
		return ds
	}
	if b, err := readfile.Whole(path); err == nil && strings.TrimSpace(string(b)) == today {
		return nil
	}
	if look {
		return ds
	}
	if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		_ = os.WriteFile(path, []byte(today+"\n"), 0o644) // if this fails, the warning only repeats
	}
	return ds
}

// reportedPath returns the path of the file with the day of the last warning, or "" if there
// is no home directory.
func reportedPath(c *command.Call) string {
	if base := c.Env.Get("XDG_CACHE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "terrace", "include-deprecated")
	}
	if home := c.Home(); home != "" {
		return filepath.Join(home, ".cache", "terrace", "include-deprecated")
	}
	return ""
}
