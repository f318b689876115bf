package provisioner

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// A script is a script to run on the machine.
type script struct {
	body []byte
	name string // the file that it was read from; "" for inline
}

// remoteExec runs scripts on another machine.
func remoteExec(ctx context.Context, r Request) error {
	scripts, err := readScripts(r)
	if err != nil {
		return err
	}
	r.Output = oneAtATime(r.Output)
	c, err := connect(ctx, r)
	if err != nil {
		return err
	}
	defer c.close()
	for _, s := range scripts {
		if err := c.runScript(ctx, r, s); err != nil {
			return err
		}
	}
	return nil
}

// readScripts reads all scripts before the first one runs.
func readScripts(r Request) ([]script, error) {
	a := attrs(r.Config)
	if v, _ := a.known("inline"); !v.IsNull() {
		lines := a.list("inline")
		if len(lines) == 0 {
			return nil, nil
		}
		body := strings.Join(lines, "\n") + "\n"
		if attrs(r.Connection).text("target_platform") != "windows" && !strings.HasPrefix(body, "#!") {
			body = "#!/bin/sh\n" + body
		}
		return []script{{body: []byte(body)}}, nil
	}
	names := a.list("scripts")
	if name := a.text("script"); name != "" {
		names = []string{name}
	}
	var out []script
	for _, name := range names {
		body, err := readfile.Whole(within(r.Dir, name))
		if err != nil {
			//lint:ignore ST1005 people search for this text
			return nil, fmt.Errorf("Failed to open script '%s': %w", name, err)
		}
		out = append(out, script{body, name})
	}
	return out, nil
}

// runScript copies a script to the machine, runs it and deletes it there. Only its owner
// can read it, because it may contain secrets and its directory may be shared.
func (c *client) runScript(ctx context.Context, r Request, s script) error {
	at := c.conn.newScriptPath()
	err := c.scp(ctx, "", at, func(snd *sender) error {
		return snd.file(0o700, path.Base(filepath.ToSlash(at)), int64(len(s.body)), bytes.NewReader(s.body))
	})
	if err != nil {
		//lint:ignore ST1005 people search for this text
		return fmt.Errorf("Failed to upload script: %w", err)
	}
	defer c.remove(ctx, at)
	if !c.conn.windows {
		said := &tail{n: 1 << 10} // the file may have existed with other permissions
		if err := c.run(ctx, "chmod 0700 "+c.conn.quote(at), said, said); err != nil {
			//lint:ignore ST1005 people search for this text
			return fmt.Errorf("Failed to upload script: it cannot be made executable: %w: %s", err, strings.TrimSpace(said.String()))
		}
	}
	out, errs := newLiner(r.Output), newLiner(r.Output)
	err = c.run(ctx, c.conn.quote(at), out, errs)
	out.close()
	errs.close()
	if err == nil {
		return nil
	}
	if s.name != "" {
		return fmt.Errorf("error executing %q, the copy of %s: %w", at, s.name, err)
	}
	return fmt.Errorf("error executing %q: %w", at, err)
}

// remove deletes a script. A failure is ignored, because the script may have restarted the
// machine.
func (c *client) remove(ctx context.Context, at string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	command := "rm -f " + c.conn.quote(at)
	if c.conn.windows {
		command = "del " + strings.ReplaceAll(c.conn.quote(at), "/", `\`)
	}
	_ = c.run(ctx, command, io.Discard, io.Discard)
}
