package provisioner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// # The scp protocol
//
// We run `scp -t TARGET` on the machine. It answers each message with one byte: 0 for
// success, and 1 or 2 with a line of text for an error. The messages are "Cmode size name",
// followed by the contents and a 0 byte, "Dmode 0 name" to enter a directory, and "E" to
// leave it. If TARGET is a directory, files are created in it under their names. Otherwise
// a file becomes TARGET. OpenTofu's documentation requires scp on the target, so there is
// no alternative.

// A sender sends files to one `scp -t`.
type sender struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// scp runs `scp -t` on the machine with further flags, and calls send.
func (c *client) scp(ctx context.Context, flags, target string, send func(*sender) error) error {
	stop := context.AfterFunc(ctx, func() { c.Client.Close() })
	defer stop()
	s, err := c.newSession()
	if err != nil {
		return err
	}
	defer s.Close()
	in, err := s.StdinPipe()
	if err != nil {
		return err
	}
	out, err := s.StdoutPipe()
	if err != nil {
		return err
	}
	errs := &tail{n: 1 << 10}
	s.Stderr = errs
	if err := s.Start("scp" + flags + " -t " + c.conn.quote(target)); err != nil {
		return err
	}
	snd := &sender{in, bufio.NewReader(out)}
	err = snd.answer()
	if err == nil {
		err = send(snd)
	}
	in.Close()
	go func() { // unread answers would keep scp from ending; the goroutine ends with the session
		_, _ = io.Copy(io.Discard, snd.out)
	}()
	waited := waitFor(s, 10*time.Second)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return scpError(err, waited, errs.String())
	}
	return exitError(waited)
}

// waitFor waits for a session to end, up to a limit.
func waitFor(s *ssh.Session, limit time.Duration) error {
	timer := time.AfterFunc(limit, func() { s.Close() })
	defer timer.Stop()
	return s.Wait()
}

// scpError returns the machine's error message if there is one, and otherwise the error of
// the connection.
func scpError(err, waited error, stderr string) error {
	var refused refusal
	if errors.As(err, &refused) {
		return err
	}
	var exit *ssh.ExitError
	if errors.As(waited, &exit) {
		if exit.ExitStatus() == 127 {
			return errors.New("the machine does not have the program scp, which copying files to it needs: install OpenSSH's client there")
		}
		return fmt.Errorf("scp ended with status %d: %s", exit.ExitStatus(), strings.TrimSpace(stderr))
	}
	return err
}

// A refusal is an error answer of scp.
type refusal string

func (r refusal) Error() string { return string(r) }

func (s *sender) answer() error {
	b, err := s.out.ReadByte()
	if err != nil {
		return fmt.Errorf("scp on the machine ended early: %w", err)
	}
	if b == 0 {
		return nil
	}
	line, err := readLine(s.out, 4<<10)
	if b > 2 {
		return fmt.Errorf("the machine did not answer as scp does but with %q; does its shell print a greeting?", string(b)+line)
	}
	if err != nil {
		return err
	}
	return refusal(line)
}

// readLine reads a line, up to a maximum length.
func readLine(r *bufio.Reader, limit int) (string, error) {
	var line []byte
	for len(line) < limit {
		b, err := r.ReadByte()
		if err != nil || b == '\n' {
			return string(line), err
		}
		line = append(line, b)
	}
	return string(line), nil
}

// send sends one message and waits for the answer.
func (s *sender) send(format string, args ...any) error {
	if _, err := fmt.Fprintf(s.in, format, args...); err != nil {
		return s.broken(err)
	}
	return s.answer()
}

// broken returns the error answer that scp sent before it closed the pipe, or err.
func (s *sender) broken(err error) error {
	var refused refusal
	if said := s.answer(); errors.As(said, &refused) {
		return said
	}
	return err
}

// file sends one file of the given size.
func (s *sender) file(mode fs.FileMode, name string, size int64, body io.Reader) error {
	if strings.ContainsAny(name, "\n\r") {
		return fmt.Errorf("the name %q cannot be sent by scp", name)
	}
	if err := s.send("C%04o %d %s\n", mode.Perm(), size, name); err != nil {
		return err
	}
	n, err := io.Copy(s.in, io.LimitReader(body, size))
	if err != nil {
		return s.broken(err)
	}
	if n != size {
		return fmt.Errorf("%s became shorter while it was sent", name)
	}
	return s.send("\x00")
}

// path sends a local file.
func (s *sender) path(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return s.file(0o644, name, info.Size(), f)
}

// folder sends the contents of a directory and follows symbolic links. above are the
// resolved directories being sent, to detect links back to them.
func (s *sender) folder(ctx context.Context, dir string, above []string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, up := range above {
		if up == real {
			return fmt.Errorf("%s leads back into a directory that contains it", dir)
		}
	}
	above = append(above[:len(above):len(above)], real)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
			err = s.within(e.Name(), func() error { return s.folder(ctx, path, above) })
		case info.Mode().IsRegular():
			err = s.path(e.Name(), path)
		default:
			err = fmt.Errorf("%s is neither a file nor a directory", path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// within creates a remote directory, if it does not exist, and calls send for its contents.
func (s *sender) within(name string, send func() error) error {
	if strings.ContainsAny(name, "\n\r") {
		return fmt.Errorf("the name %q cannot be sent by scp", name)
	}
	if err := s.send("D0755 0 %s\n", name); err != nil {
		return err
	}
	if err := send(); err != nil {
		return err
	}
	return s.send("E\n")
}
