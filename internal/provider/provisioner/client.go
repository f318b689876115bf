package provisioner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// # Connecting
//
// A new machine may respond late, refuse connections at first, and get its users and keys
// only during its start. So every failure is retried until the block's timeout. Errors in
// the block itself were reported before. Each attempt has its own limit, because a machine
// that is starting may accept a connection and never respond.

const (
	attemptLimit = 30 * time.Second // the limit of an attempt, per machine
	firstPause   = 500 * time.Millisecond
	longestPause = 10 * time.Second
	keepAlive    = 20 * time.Second
)

// A client is a session with the target machine.
type client struct {
	*ssh.Client
	conn    connection
	forward bool          // whether the agent is forwarded
	over    chan struct{} // closed when the connection has ended
	under   []func()      // closes the connections that it goes through
}

// connect logs in to the machine in the request's connection block.
func connect(ctx context.Context, r Request) (*client, error) {
	if r.Connection.IsNull() {
		//lint:ignore ST1005 people search for this text
		return nil, errors.New("Missing connection configuration for provisioner. Add a connection block to it or to its resource")
	}
	c := readConnection(attrs(r.Connection))
	ag := dialAgent(ctx, r, c)
	c.describe(r.Output, ag != nil)
	var last error
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no connection within %s", c.timeout))
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		cl, err := c.attempt(limited, r, ag)
		if err == nil {
			r.Output("Connected!")
			return cl, nil
		}
		if limited.Err() == nil || last == nil {
			last = err // the previous error is more useful than that of the timeout
		}
		select {
		case <-limited.Done():
		case <-time.After(pause):
		}
		if limited.Err() != nil {
			if ag != nil {
				ag.close()
			}
			if ctx.Err() != nil {
				return nil, last
			}
			return nil, fmt.Errorf("timeout - last error: %w", last)
		}
		r.Output("Connecting to remote host via SSH...")
	}
}

// attempt tries once to log in, through the proxy and bastion if there are any.
func (c connection) attempt(ctx context.Context, r Request, ag *agentConn) (_ *client, err error) {
	limit := attemptLimit
	if c.bastion != nil {
		limit *= 2
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cl := &client{conn: c}
	defer func() {
		if err != nil {
			cl.closeUnder()
		}
	}()
	dial := dialFunc(r.Dial)
	if c.proxy != nil {
		direct := dial
		dial = func(ctx context.Context, _, address string) (net.Conn, error) {
			return c.proxy.dial(ctx, direct, address)
		}
	}
	if c.bastion != nil {
		b, err := c.bastion.login(ctx, dial, ag, c.identity, r.Dir)
		if err != nil {
			return nil, fmt.Errorf("bastion host: %w", err)
		}
		cl.under = append(cl.under, func() { b.Close() })
		dial = b.DialContext
	}
	if cl.Client, err = c.target.login(ctx, dial, ag, c.identity, r.Dir); err != nil {
		return nil, err
	}
	cl.watch()
	if ag != nil {
		cl.forward = agent.ForwardToAgent(cl.Client, ag) == nil
		cl.under = append(cl.under, ag.close)
	}
	stopped := make(chan struct{})
	var alive sync.WaitGroup
	alive.Go(func() { cl.stayAlive(stopped) })
	cl.under = append(cl.under, func() { close(stopped); alive.Wait() })
	return cl, nil
}

// login makes an SSH connection to one machine.
func (h hop) login(ctx context.Context, dial dialFunc, ag *agentConn, identity, dir string) (*ssh.Client, error) {
	conf, err := h.config(ag, identity, dir)
	if err != nil {
		return nil, err
	}
	tries, err := h.hostKeyTries()
	if err != nil {
		return nil, err
	}
	var first error
	for _, try := range tries {
		conf.HostKeyCallback, conf.HostKeyAlgorithms = try.check, try.algorithms
		cl, err := h.handshake(ctx, dial, conf)
		if err == nil {
			return cl, nil
		}
		if first == nil {
			first = err
		}
		var none *ssh.AlgorithmNegotiationError
		if !errors.Is(err, errHostKey) && !errors.As(err, &none) {
			break
		}
	}
	return nil, first
}

func (h hop) handshake(ctx context.Context, dial dialFunc, conf *ssh.ClientConfig) (*ssh.Client, error) {
	conn, err := dial(ctx, "tcp", h.addr())
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	sc, channels, requests, err := ssh.NewClientConn(conn, h.addr(), conf)
	if !stop() && err == nil { // the connection was closed in the meantime
		sc.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("the machine did not complete the handshake in time: %w", err)
		}
		return nil, fmt.Errorf("SSH login failed (%s@%s): %w", h.user, h.addr(), err)
	}
	return ssh.NewClient(sc, channels, requests), nil
}

// stayAlive sends a request to the machine at intervals, so that routers keep the
// connection. It closes the connection if there is no response.
func (c *client) stayAlive(stopped <-chan struct{}) {
	for {
		select {
		case <-stopped:
			return
		case <-time.After(keepAlive):
		}
		late := time.AfterFunc(3*keepAlive, func() { c.Client.Close() })
		_, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
		late.Stop()
		if err != nil {
			return
		}
	}
}

// watch closes over when the connection ends.
func (c *client) watch() {
	c.over = make(chan struct{})
	go func() { _ = c.Client.Wait(); close(c.over) }() // ends with the connection, which its owner closes
}

// newSession is like NewSession, but returns when the connection ends. The library never
// returns if a channel is opened while the connection ends.
func (c *client) newSession() (*ssh.Session, error) {
	type answer struct {
		s   *ssh.Session
		err error
	}
	opened := make(chan answer, 1)
	go func() { s, err := c.NewSession(); opened <- answer{s, err} }() // if the connection ends first, the result is discarded
	select {
	case a := <-opened:
		return a.s, a.err
	case <-c.over:
		return nil, errors.New("the connection was lost")
	}
}

func (c *client) close() {
	c.Client.Close()
	c.closeUnder()
}

func (c *client) closeUnder() {
	for _, f := range c.under {
		f()
	}
	c.under = nil
}
