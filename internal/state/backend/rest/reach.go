package rest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// Variable is the environment variable with the time limit for responses of backend services.
const Variable = "TERRACE_STORE_TIMEOUT"

// Refused reports whether a service rejected the client's certificate, or requires one.
func Refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && op.Err != nil &&
		(strings.Contains(op.Err.Error(), "certificate") || strings.Contains(op.Err.Error(), "unknown ca"))
}

// Reach returns advice for an error without a response: specific to the kind of error, or
// otherwise. authorities is the argument or variable for the user's own certificate
// authorities.
func Reach(err error, authorities, otherwise string) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &unknown):
		return "The certificate of the service is not accepted: if an authority of your own signed it, or a proxy that looks into connections, name the file of that one's certificate in " + authorities + "."
	case errors.As(err, &name):
		return "The certificate is that of another host: check the address, and whether a proxy or a name server leads elsewhere."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "The certificate of the service is not valid now: it has expired, or the clock of this machine is wrong."
	case Refused(err):
		return "The service wants another client certificate, or one at all: check the arguments with the certificate and its key, whether it has expired, and that an authority which the service knows has signed it."
	case errors.Is(err, ErrPage):
		return "That is no answer of the service: a portal that wants a login, or a proxy, stands in between, or the address is that of a web site. Open it in a browser to see which."
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "Check scheme and port of the address, and the proxy if there is one."
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "The proxy cannot be reached: check HTTPS_PROXY, HTTP_PROXY and NO_PROXY."
	case errors.As(err, &dns):
		return "The name is not known: check how it is written, and the name server of this machine. " + otherwise
	case errors.Is(err, ErrProxy):
		return "Check HTTPS_PROXY and HTTP_PROXY with their user and password; what is to be reached without the proxy stands in NO_PROXY."
	case late(err):
		return "Nobody answers in time: check the address, and whether a firewall or a proxy stands in between. A service that needs longer is given the time with " + Variable + ", as in " + Variable + "=2m. " + otherwise
	}
	return otherwise
}

// NoAnswer describes a failed response that does not come from the service, but from a server
// in front of it, such as an HTML page. ok is false for other responses.
func NoAnswer(resp *Response) (answer, advice string, ok bool) {
	if resp.Status/100 == 2 || !resp.Page() {
		return "", "", false
	}
	answer = fmt.Sprintf("the answer was %d %s, with a page of HTML", resp.Status, http.StatusText(resp.Status))
	advice = "The service itself does not send such pages: a proxy, a portal or a load balancer before it did. Check the address and HTTPS_PROXY, or open the address in a browser to see what the page says."
	if resp.Status >= 500 {
		advice += " It may pass: try again later."
	}
	return answer, advice, true
}

// Page reports whether a response is an HTML page. A response to HEAD has no body.
func (r *Response) Page() bool {
	return page(r.Body) || len(r.Body) == 0 && strings.HasPrefix(r.Header.Get("Content-Type"), "text/html")
}

// ErrPage is wrapped by the errors of requests with a successful response that is an HTML page.
var ErrPage = errors.New("it answered with a page of HTML")

// ErrProxy is wrapped by the errors of requests that a proxy rejected.
var ErrProxy = errors.New("the proxy did not let the request through")
