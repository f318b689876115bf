package provisioner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// contentName is the file name of content that is copied into a directory.
const contentName = "tf-file-content"

// copyFile copies content, a file or a directory to another machine.
//
// A directory whose path ends with a slash is copied without its name: its contents are
// copied into the destination, which must exist. Otherwise scp on the machine decides: if
// the destination is a directory, scp copies into it, and otherwise to the name of the
// destination.
func copyFile(ctx context.Context, r Request) error {
	a := attrs(r.Config)
	destination := a.text("destination")
	var flags string
	var send func(*sender) error
	if v, _ := a.known("content"); !v.IsNull() {
		content := a.text("content")
		send = func(s *sender) error {
			return s.file(0o644, contentName, int64(len(content)), strings.NewReader(content))
		}
	} else {
		source := within(r.Dir, a.text("source"))
		info, err := os.Stat(source)
		if err != nil {
			return err
		}
		switch {
		case !info.IsDir():
			send = func(s *sender) error { return s.path(filepath.Base(source), source) }
		case strings.HasSuffix(source, "/"):
			flags = " -r -d"
			send = func(s *sender) error { return s.folder(ctx, source, nil) }
		default:
			flags = " -r"
			send = func(s *sender) error {
				return s.within(filepath.Base(source), func() error { return s.folder(ctx, source, nil) })
			}
		}
	}
	r.Output = func(string) {} // OpenTofu prints the connection for remote-exec only
	c, err := connect(ctx, r)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.scp(ctx, flags, destination, send); err != nil {
		//lint:ignore ST1005 people search for this text
		return fmt.Errorf("Upload failed: %w", err)
	}
	return nil
}
