package provisioner

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"

	"golang.org/x/net/proxy"
)

// A dialFunc connects to an address.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func (f dialFunc) Dial(network, address string) (net.Conn, error) {
	return f(context.Background(), network, address)
}

func (f dialFunc) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return f(ctx, network, address)
}

// A proxyServer is the proxy for the connection to the first machine.
type proxyServer struct {
	scheme   string // http, https or socks5
	addr     string
	user     string
	password string
}

// dial connects to an address through the proxy.
func (p *proxyServer) dial(ctx context.Context, direct dialFunc, address string) (net.Conn, error) {
	if p.scheme == "socks5" {
		var auth *proxy.Auth
		if p.user != "" {
			auth = &proxy.Auth{User: p.user, Password: p.password}
		}
		d, err := proxy.SOCKS5("tcp", p.addr, auth, direct)
		if err != nil {
			return nil, err
		}
		return d.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
	}
	conn, err := direct(ctx, "tcp", p.addr)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	tunnel, err := p.connect(ctx, conn, address)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("proxy %s: %w", p.addr, err)
	}
	return tunnel, nil
}

// connect requests a tunnel with CONNECT (RFC 9110, section 9.3.6).
func (p *proxyServer) connect(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	if p.scheme == "https" {
		host, _, _ := net.SplitHostPort(p.addr)
		secure := tls.Client(conn, &tls.Config{ServerName: host})
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secure
	}
	head := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n"
	if p.user != "" {
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(p.user+":"+p.password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("it refused the connection to %s: %s", address, resp.Status)
	}
	return &readAhead{conn, r}, nil
}

// readAhead is a connection with data that was read already.
type readAhead struct {
	net.Conn
	r *bufio.Reader
}

func (c *readAhead) Read(p []byte) (int, error) { return c.r.Read(p) }
