package provisioner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// interruptGrace is the time that an interrupted remote command has to end.
const interruptGrace = 2 * time.Second

// run runs a command on the machine. It requests a terminal if the platform has one, so
// that the command's processes end with the session.
func (c *client) run(ctx context.Context, command string, out, errs io.Writer) error {
	stop := context.AfterFunc(ctx, func() { c.Client.Close() })
	s, err := c.start(command, out, errs)
	stop()
	if err != nil {
		return err
	}
	defer s.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }() // received below in every case
	select {
	case err = <-ended:
		return exitError(err)
	case <-ctx.Done():
	}
	_ = s.Signal(ssh.SIGINT)
	timer := time.NewTimer(interruptGrace)
	defer timer.Stop()
	select {
	case err = <-ended:
	case <-timer.C:
		c.Client.Close() // ends Wait
		err = <-ended
	}
	if err == nil {
		return nil
	}
	return context.Cause(ctx)
}

// start starts a command.
func (c *client) start(command string, out, errs io.Writer) (_ *ssh.Session, err error) {
	s, err := c.newSession()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if c.forward {
		_ = agent.RequestAgentForwarding(s) // the machine may forbid it
	}
	if !c.conn.windows {
		modes := ssh.TerminalModes{ssh.ECHO: 0, ssh.TTY_OP_ISPEED: 14400, ssh.TTY_OP_OSPEED: 14400}
		if err := s.RequestPty("xterm", 80, 40, modes); err != nil {
			return nil, fmt.Errorf("no terminal: %w", err)
		}
	}
	s.Stdout, s.Stderr = out, errs
	return s, s.Start(command)
}

// exitError explains an ExitMissingError of the library.
func exitError(err error) error {
	var missing *ssh.ExitMissingError
	if errors.As(err, &missing) {
		return errors.New("the connection was lost before the command ended")
	}
	return err
}

// quote quotes a path for the shell on the machine. On Unix, a leading ~/ is not quoted, so
// that it means the home directory.
func (c connection) quote(path string) string {
	if c.windows {
		path = strings.ReplaceAll(path, `\`, "/")
		if strings.ContainsAny(path, " &()[]{}^=;!'+,`~") {
			return `"` + path + `"`
		}
		return path
	}
	home := ""
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, path = "~/", rest
		if path == "" {
			return home
		}
	} else if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	if strings.Trim(path, "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:@%+=-") == "" && path != "" {
		return home + path
	}
	return home + "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
