package transfer

import "net/http"

// Direct is a client like another one for what is on this machine or beside it, such as
// the service that knows a virtual machine's credentials: no proxy leads there. It is asked
// once in an hour, so no connection is kept.
func Direct(c *http.Client) *http.Client {
	out := *c
	if t, ok := c.Transport.(*http.Transport); ok {
		t = t.Clone()
		t.Proxy, t.DisableKeepAlives = nil, true
		out.Transport = t
	}
	return &out
}
