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

// # The protocol of scp
//
// We start `scp -t TARGET` on the machine, which answers each message with one
// byte: 0 for yes, 1 or 2 and a line of text for no. The messages are
// "Cmode size name" with the contents and a 0 byte after them, "Dmode 0 name" to
// enter a folder and "E" to leave it. If TARGET is a folder, what is sent gets
// its name inside of it, otherwise it becomes TARGET. OpenTofu's documentation
// demands that program on the target, so that nothing else is tried.

// A sender sends files to one `scp -t`.
type sender struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// scp runs `scp -t` on the machine with the given further flags and lets send send.
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
	go func() { // unread answers would keep it from ending; ends with the session
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

// waitFor waits for a session to end, but no longer than it may take.
func waitFor(s *ssh.Session, limit time.Duration) error {
	timer := time.AfterFunc(limit, func() { s.Close() })
	defer timer.Stop()
	return s.Wait()
}

// scpError prefers what the machine said over how the conversation broke off.
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

// A refusal is what the other side answered instead of yes.
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

// readLine reads to the end of the line, or as much as limit.
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

// broken looks for the reason that the other side gave before it closed the pipe.
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

// path sends the contents of a file here.
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

// folder sends what is in a folder, following links. above are the resolved folders
// that are being sent, so that a link to one of them is found.
func (s *sender) folder(ctx context.Context, dir string, above []string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, up := range above {
		if up == real {
			return fmt.Errorf("%s leads back into a folder that contains it", dir)
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
			err = fmt.Errorf("%s is neither a file nor a folder", path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// within makes a folder there, unless it exists, and sends into it.
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
