package transfer

import "net/http"

// Direct returns a copy of c for servers on this machine or its local network, such as the
// service that provides a virtual machine's credentials. It uses no proxy, and keeps no
// connections open, because such requests are rare.
func Direct(c *http.Client) *http.Client {
	out := *c
	if t, ok := c.Transport.(*http.Transport); ok {
		t = t.Clone()
		t.Proxy, t.DisableKeepAlives = nil, true
		out.Transport = t
	}
	return &out
}
