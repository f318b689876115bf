package cli_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
)

// A faultyStore is a store that works until one of its faults begins.
type faultyStore struct {
	kind   string
	config string            // arguments of its block, one per line
	files  map[string]string // in addition to main.tf
	env    []string
	line   *line
	start  bool // its commands are processes, since they need a certificate or a proxy
	// listless means that the store has no workspaces, so that commands on them are left out.
	listless bool
	lock     string // an ID that no lock has; "" for a UUID
	header   string // of its block; "" for a backend block
	init     string // the command init; "" for init -reconfigure
	nowhere  bool   // no argument names a service, so no argument can be the cause
	faults   []storeFault
}

// A storeFault is a fault of a store.
type storeFault struct {
	name     string
	argument string   // the argument whose source range the message has; "" for the block
	answer   string   // the part of the service's response that the message contains
	env      []string // in addition to the store's environment
	begin    func()   // may be nil
	end      func()   // may be nil
	commands []string // nil means all storeCommands
	without  string   // a command that succeeds in spite of the fault
	inTurn   bool     // locks work, so concurrent commands would exclude each other
}

// storeCommands are commands that access a store in different ways. Nobody has the lock that
// force-unlock releases.
var storeCommands = []string{
	"init -reconfigure -input=false", "plan -input=false", "apply -auto-approve -input=false", "state list", "workspace list", "force-unlock -force LOCK",
}

// Two are enough if requests are retried for several seconds.
var slowCommands = storeCommands[:2]

// A line is a network connection to a service, with or without TLS, that can have faults.
type line struct {
	net.Listener
	own, other         *tls.Config // nil means no TLS
	expired, elsewhere *tls.Config // signed by the same authority as own
	mode               atomic.Pointer[string]

	front atomic.Pointer[http.HandlerFunc] // handles requests instead of the service, if set
	host  string
	ca    string // authority of own, in PEM

	mu   sync.Mutex
	held []net.Conn
}

// newLine starts a line to an HTTP service.
func newLine(t *testing.T, secure bool, service http.Handler) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &line{Listener: l, host: l.Addr().String()}
	w.set("")
	if secure {
		var authorities string
		w.own, w.expired, w.elsewhere, _, authorities = servers.WrongCertificates(t)
		text, err := os.ReadFile(authorities)
		if err != nil {
			t.Fatal(err)
		}
		w.ca = string(text)
		w.other, _ = servers.Certificate(t)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if f := w.front.Load(); f != nil {
			(*f)(rw, r)
			return
		}
		service.ServeHTTP(rw, r)
	}), ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = s.Serve(w) }() // ends when the server is closed
	t.Cleanup(func() {
		_ = s.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range w.held {
			_ = c.Close()
		}
	})
	return w
}

func (w *line) set(mode string) { w.mode.Store(&mode) }

// Accept implements net.Listener.
func (w *line) Accept() (net.Conn, error) {
	for {
		c, err := w.Listener.Accept()
		if err != nil {
			return nil, err
		}
		mode := *w.mode.Load()
		switch {
		case mode == "reset":
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		case mode == "web":
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			_ = c.Close()
		case mode == "silent":
			w.mu.Lock()
			w.held = append(w.held, c)
			w.mu.Unlock()
		case w.own == nil, mode == "plain":
			return c, nil
		case mode == "stranger":
			return tls.Server(c, w.other), nil
		case mode == "expired":
			return tls.Server(c, w.expired), nil
		case mode == "elsewhere":
			return tls.Server(c, w.elsewhere), nil
		default:
			return tls.Server(c, w.own), nil
		}
	}
}

// does returns a fault of the line.
func (w *line) does(name, mode, argument, answer string) storeFault {
	return storeFault{name: name, argument: argument, answer: answer, begin: func() { w.set(mode) }, end: func() { w.set("") }}
}

// says returns a fault in which all requests have the same response.
func (w *line) says(name, argument, answer string, status int, kind, body string, header ...string) storeFault {
	f := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", kind)
		for i := 0; i < len(header); i += 2 {
			rw.Header().Set(header[i], header[i+1])
		}
		rw.WriteHeader(status)
		if r.Method != http.MethodHead {
			fmt.Fprint(rw, body)
		}
	})
	return storeFault{name: name, argument: argument, answer: answer, begin: func() { w.front.Store(&f) }, end: func() { w.front.Store(nil) }}
}

func slow(f storeFault) storeFault {
	f.commands = slowCommands
	return f
}

// common returns the faults that every HTTP service can have.
func (w *line) common(address string) []storeFault {
	const portal = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Please sign in to the network.</body></html>\n"
	out := []storeFault{
		slow(w.does("connection reset", "reset", address, "reset")),
		w.says("portal", address, "a page of HTML", http.StatusOK, "text/html", portal),
		w.says("proxy refuses", address, "403 Forbidden, with a page of HTML", http.StatusForbidden, "text/html", portal),
		w.says("proxy without a way", address, "502 Bad Gateway, with a page of HTML", http.StatusBadGateway, "text/html", portal, "Retry-After", "0"),
		w.says("too many requests", "*", "429 Too Many Requests", http.StatusTooManyRequests, "text/plain", "slow down\nplease\n", "Retry-After", "0"),
		w.says("internal error", "*", "500 Internal Server Error", http.StatusInternalServerError, "text/plain", "exception\n\tat com.acme.Main(Main.java:1)\n", "Retry-After", "0"),
	}
	if w.own != nil {
		out = append(out, w.does("unknown authority", "stranger", address, "certificate signed by unknown authority"), w.does("no TLS", "plain", address, ""),
			w.does("expired certificate", "expired", address, "certificate has expired"), w.does("certificate of another host", "elsewhere", address, "certificate"))
	}
	return out
}

const nobodysLock = "force-unlock -force LOCK"

// inBlock returns the lines of a block.
func inBlock(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "    %s = %s\n", pairs[i], pairs[i+1])
	}
	return b.String()
}

func inQuotes(text string) string { return fmt.Sprintf("%q", text) }

// listed marks a fault as one in which listing workspaces succeeds, as in OpenTofu.
func listed(f storeFault) storeFault {
	f.without = "workspace list"
	return f
}

func faultyS3(t *testing.T) faultyStore {
	s := servers.NewAWS()
	s.Bucket("states")
	s.Table("locks")
	w := newLine(t, true, s)
	xml := func(code, message, more string) string {
		return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" + code + "</Code><Message>" + message + "</Message>" + more + "<RequestId>R</RequestId><HostId>H</HostId></Error>"
	}
	return faultyStore{
		kind: "s3", line: w, files: map[string]string{"ca.pem": w.ca},
		config: inBlock("bucket", `"states"`, "key", `"a.tfstate"`, "region", `"us-east-1"`, "access_key", inQuotes(servers.AccessKey), "secret_key", inQuotes(servers.SecretKey),
			"use_path_style", "true", "use_lockfile", "true", "custom_ca_bundle", `"ca.pem"`, "skip_requesting_account_id", "true", "max_retries", "1", "endpoints", `{ s3 = "https://`+w.host+`" }`),
		faults: append(w.common("endpoints"),
			w.says("wrong credentials", "access_key", "403 InvalidAccessKeyId", http.StatusForbidden, "application/xml", xml("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", "")),
			w.says("wrong secret", "access_key", "403 SignatureDoesNotMatch", http.StatusForbidden, "application/xml", xml("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your key and signing method.", "<StringToSign>many\nlines</StringToSign>")),
			w.says("expired credentials", "access_key", "400 ExpiredToken", http.StatusBadRequest, "application/xml", xml("ExpiredToken", "The provided token has expired.", "")),
			listed(w.says("no permission", "bucket", "403 AccessDenied", http.StatusForbidden, "application/xml", xml("AccessDenied", "User: arn:aws:iam::123456789012:user/x is not authorized to perform this", ""))),
			w.says("no bucket", "bucket", "no bucket", http.StatusNotFound, "application/xml", xml("NoSuchBucket", "The specified bucket does not exist", "<BucketName>states</BucketName>")),
			w.says("another region", "region", "eu-west-1", http.StatusMovedPermanently, "application/xml", xml("PermanentRedirect", "The bucket you are attempting to access must be addressed using the specified endpoint.", "<Endpoint>states.s3.eu-west-1.amazonaws.com</Endpoint>"), "X-Amz-Bucket-Region", "eu-west-1"),
			w.says("wrong region", "region", "400 AuthorizationHeaderMalformed", http.StatusBadRequest, "application/xml", xml("AuthorizationHeaderMalformed", "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-west-1'", "<Region>eu-west-1</Region>")),
			w.says("wrong clock", "*", "403 RequestTimeTooSkewed", http.StatusForbidden, "application/xml", xml("RequestTimeTooSkewed", "The difference between the request time and the current time is too large.", "")),
			storeFault{name: "lock held by nobody", argument: "*", answer: "is not held", commands: []string{nobodysLock}},
		),
	}
}

func faultyDynamoDB(t *testing.T) faultyStore {
	s := servers.NewAWS()
	s.Bucket("states")
	s.Table("locks")
	w := newLine(t, false, s)
	out := faultyStore{
		kind: "s3", line: w,
		config: inBlock("bucket", `"states"`, "key", `"a.tfstate"`, "region", `"us-east-1"`, "access_key", inQuotes(servers.AccessKey), "secret_key", inQuotes(servers.SecretKey),
			"use_path_style", "true", "dynamodb_table", `"locks"`, "skip_requesting_account_id", "true", "max_retries", "1", "endpoints", `{ s3 = "http://`+w.host+`", dynamodb = "http://`+w.host+`" }`),
	}
	table := func(name, argument, answer string, status int, kind, body string) storeFault {
		f := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Amz-Target") == "" {
				s.ServeHTTP(rw, r)
				return
			}
			rw.Header().Set("Content-Type", kind)
			rw.WriteHeader(status)
			fmt.Fprint(rw, body)
		})
		return storeFault{name: name, argument: argument, answer: answer, begin: func() { w.front.Store(&f) }, end: func() { w.front.Store(nil) }, commands: []string{storeCommands[1], storeCommands[2], nobodysLock}}
	}
	const json, prefix = "application/x-amz-json-1.0", `{"__type":"com.amazonaws.dynamodb.v20120810#`
	out.faults = []storeFault{
		table("no table", "dynamodb_table", "ResourceNotFoundException", http.StatusBadRequest, json, prefix+`ResourceNotFoundException","message":"Requested resource not found"}`),
		table("no permission", "dynamodb_table", "AccessDeniedException", http.StatusBadRequest, json, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: arn:aws:iam::1:user/x is not authorized to perform: dynamodb:PutItem on resource: arn:aws:dynamodb:us-east-1:1:table/locks"}`),
		table("wrong credentials", "access_key", "UnrecognizedClientException", http.StatusBadRequest, json, `{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"The security token included in the request is invalid."}`),
		table("portal", "dynamodb_table", "403 Forbidden, with a page of HTML", http.StatusForbidden, "text/html", "<html>\n<body>no</body></html>"),
		table("nothing said", "dynamodb_table", "500 Internal Server Error", http.StatusInternalServerError, "text/plain", ""),
		{name: "lock held by nobody", argument: "dynamodb_table", answer: "no lock", commands: []string{nobodysLock}},
	}
	return out
}

func faultyHTTP(t *testing.T) faultyStore {
	w := newLine(t, true, servers.HTTP(t))
	faults := w.common("*")
	for i, f := range faults { // the service may have pages too
		faults[i].answer = strings.Replace(f.answer, ", with a page", ": a page", 1)
	}
	return faultyStore{
		kind: "http", line: w, listless: true, files: map[string]string{"ca.pem": w.ca},
		config: inBlock("address", inQuotes("https://"+w.host+"/state"), "lock_address", inQuotes("https://"+w.host+"/lock"), "unlock_address", inQuotes("https://"+w.host+"/lock"), "username", `"me"`, "password", `"planted"`,
			"retry_max", "0", "client_ca_certificate_pem", `file("ca.pem")`),
		faults: append(faults,
			w.says("wrong credentials", "username", "401 Unauthorized", http.StatusUnauthorized, "text/plain", "who\nare you\n"),
			w.says("no permission", "username", "403 Forbidden", http.StatusForbidden, "text/plain", "not yours"),
			storeFault{name: "lock held by nobody", argument: "unlock_address", answer: "409", commands: []string{nobodysLock}},
		),
	}
}

func faultyGCS(t *testing.T) faultyStore {
	s := servers.NewGCS()
	w := newLine(t, true, s)
	no := func(name, argument, answer string, status int, reason, message string) storeFault {
		return w.says(name, argument, answer, status, "application/json", fmt.Sprintf(`{"error": {"code": %d, "message": %q, "errors": [{"message": %[2]q, "domain": "global", "reason": %[3]q}]}}`, status, message, reason))
	}
	return faultyStore{
		kind: "gcs", line: w, start: true, lock: "1234567", files: map[string]string{"ca.pem": w.ca},
		config: inBlock("bucket", inQuotes(s.Bucket), "access_token", inQuotes(s.Token), "storage_custom_endpoint", inQuotes("https://"+w.host+"/storage/v1/")),
		faults: append(w.common("*"),
			no("wrong credentials", "access_token", "401 Unauthorized", http.StatusUnauthorized, "authError", "Invalid Credentials"),
			no("no permission", "bucket", "403 Forbidden", http.StatusForbidden, "forbidden", "x@acme.iam.gserviceaccount.com does not have storage.objects.list access to the Google Cloud Storage bucket."),
			no("no bucket", "bucket", "no bucket", http.StatusNotFound, "notFound", "The specified bucket does not exist."),
			storeFault{name: "lock held by nobody", argument: "*", answer: "lock", commands: []string{nobodysLock}},
		),
	}
}

func faultyConsul(t *testing.T) faultyStore {
	s := servers.NewConsul()
	w := newLine(t, true, s)
	return faultyStore{
		kind: "consul", line: w, files: map[string]string{"ca.pem": w.ca},
		config: inBlock("path", `"app"`, "address", inQuotes(w.host), "scheme", `"https"`, "ca_file", `"ca.pem"`, "access_token", `"planted"`),
		faults: append(w.common("address"),
			w.says("wrong credentials", "access_token", "ACL not found", http.StatusForbidden, "text/plain", "ACL not found"),
			w.says("no permission", "*", "403 Forbidden", http.StatusForbidden, "text/plain", "Permission denied: token with AccessorID '1' lacks permission 'key:read' on \"app\""),
			w.says("no leader", "*", "No cluster leader", http.StatusInternalServerError, "text/plain", "No cluster leader"),
			w.says("no datacenter", "*", "No path to datacenter", http.StatusInternalServerError, "text/plain", "No path to datacenter"),
			storeFault{name: "lock held by nobody", argument: "*", answer: "lock", commands: []string{nobodysLock}},
		),
	}
}

func faultyKubernetes(t *testing.T) faultyStore {
	s := servers.NewKubernetes("planted")
	w := newLine(t, true, s)
	no := func(name, argument, answer string, status int, reason, message string) storeFault {
		return w.says(name, argument, answer, status, "application/json", fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, status))
	}
	return faultyStore{
		kind: "kubernetes", line: w, files: map[string]string{"ca.pem": w.ca},
		config: inBlock("secret_suffix", `"app"`, "host", inQuotes("https://"+w.host), "cluster_ca_certificate", `file("ca.pem")`, "token", `"planted"`),
		faults: append(w.common("host"),
			no("wrong credentials", "token", "401 Unauthorized", http.StatusUnauthorized, "Unauthorized", "Unauthorized"),
			no("no permission", "*", "403 Forbidden", http.StatusForbidden, "Forbidden", `secrets is forbidden: User "x" cannot list resource "secrets" in API group "" in the namespace "default"`),
			no("no namespace", "*", "namespaces", http.StatusNotFound, "NotFound", `namespaces "default" not found`),
			storeFault{name: "lock held by nobody", argument: "*", answer: "lock", commands: []string{nobodysLock}},
		),
	}
}

func faultyOSS(t *testing.T) faultyStore {
	s := servers.NewOSS()
	w := newLine(t, true, s)
	xml := func(code, message, more string) string {
		return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>\n  <Code>" + code + "</Code>\n  <Message>" + message + "</Message>\n  " + more + "<RequestId>R</RequestId>\n</Error>"
	}
	table := func(name, argument, answer string, status int, kind, body string) storeFault {
		f := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Ots-Signature") == "" {
				s.ServeHTTP(rw, r)
				return
			}
			rw.Header().Set("Content-Type", kind)
			rw.WriteHeader(status)
			fmt.Fprint(rw, body)
		})
		return storeFault{name: name, argument: argument, answer: answer, begin: func() { w.front.Store(&f) }, end: func() { w.front.Store(nil) }, commands: []string{storeCommands[1], storeCommands[2], nobodysLock}}
	}
	object := func(f storeFault) storeFault { // Tablestore works
		begin := f.begin
		f.begin = func() {
			begin()
			says := *w.front.Load()
			both := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Ots-Signature") != "" {
					s.ServeHTTP(rw, r)
					return
				}
				says(rw, r)
			})
			w.front.Store(&both)
		}
		f.commands, f.inTurn = storeCommands[:5], true // OSS is not asked about locks
		return f
	}
	return faultyStore{
		kind: "oss", line: w, start: true, files: map[string]string{"ca.pem": w.ca},
		config: inBlock("bucket", inQuotes(s.Bucket), "endpoint", inQuotes("https://"+w.host), "tablestore_endpoint", inQuotes("https://"+w.host), "tablestore_table", inQuotes(s.Table), "access_key", inQuotes(s.ID), "secret_key", inQuotes(s.Key)),
		faults: append(w.common("*"),
			object(w.says("wrong credentials", "access_key", "403 Forbidden", http.StatusForbidden, "application/xml", xml("InvalidAccessKeyId", "The OSS Access Key Id you provided does not exist in our records.", ""))),
			object(w.says("wrong secret", "access_key", "403 Forbidden", http.StatusForbidden, "application/xml", xml("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.", "<StringToSign>a\nb</StringToSign>"))),
			object(w.says("no permission", "bucket", "403 Forbidden", http.StatusForbidden, "application/xml", xml("AccessDenied", "You have no right to access this object.", ""))),
			object(w.says("no bucket", "bucket", "NoSuchBucket", http.StatusNotFound, "application/xml", xml("NoSuchBucket", "The specified bucket does not exist.", ""))),
			object(w.says("another region", "endpoint", "endpoint", http.StatusForbidden, "application/xml", xml("AccessDenied", "The bucket you are attempting to access must be addressed using the specified endpoint.", "<Endpoint>oss-cn-beijing.aliyuncs.com</Endpoint>"))),
			table("no answer of Tablestore", "tablestore_table", "500 Internal Server Error", http.StatusInternalServerError, "text/plain", ""),
			table("portal before Tablestore", "tablestore_endpoint", "403 Forbidden, with a page of HTML", http.StatusForbidden, "text/html", "<html>\n<body>no</body></html>"),
			storeFault{name: "lock held by nobody", argument: "*", answer: "lock", commands: []string{nobodysLock}},
		),
	}
}

// tunnelled returns the faults of a proxy to the service.
func tunnelled(t *testing.T, address string, hosts ...string) []storeFault {
	stranger := servers.NewTunnel(t, http.NotFoundHandler(), hosts...)
	refuse := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no\nway", status)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	return []storeFault{
		{name: "unknown authority", argument: address, answer: "certificate signed by unknown authority", env: []string{"HTTPS_PROXY=" + stranger.Proxy}},
		{name: "proxy wants a password", argument: address, answer: "407 Proxy Authentication Required", env: []string{"HTTPS_PROXY=" + refuse(http.StatusProxyAuthRequired)}},
		{name: "proxy refuses", argument: address, answer: "403 Forbidden", env: []string{"HTTPS_PROXY=" + refuse(http.StatusForbidden)}},
		slow(storeFault{name: "no proxy there", argument: address, answer: "the proxy cannot be reached, connection refused", env: []string{"HTTPS_PROXY=http://" + nobody}}),
	}
}

// nobody is an address on which no server listens. The port of a server that was closed could belong to
// another test by now.
const nobody = "127.0.0.1:1"

func faultyAzure(t *testing.T) faultyStore {
	s := servers.NewBlobs("states")
	w := newLine(t, false, s) // only its front is used: the tunnel leads to it
	host := s.Account + ".blob.core.windows.net"
	u := servers.NewTunnel(t, w.handler(s), host)
	no := func(name, argument, answer string, status int, code, message string) storeFault {
		return w.says(name, argument, answer, status, "application/xml", "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>"+code+"</Code><Message>"+message+"\nRequestId:1\nTime:2026-11-22T14:16:41.440965307Z</Message></Error>", "X-Ms-Error-Code", code)
	}
	faults := slices.DeleteFunc(w.common("storage_account_name"), func(f storeFault) bool { return f.name == "connection reset" })
	return faultyStore{
		kind: "azurerm", line: w, start: true, env: []string{"HTTPS_PROXY=" + u.Proxy, "SSL_CERT_FILE=" + u.CAFile},
		config: inBlock("storage_account_name", inQuotes(s.Account), "container_name", `"states"`, "key", `"app"`, "access_key", inQuotes(s.Key)),
		faults: append(append(faults, tunnelled(t, "storage_account_name", host)...),
			no("wrong credentials", "access_key", "403 Forbidden AuthenticationFailed", http.StatusForbidden, "AuthenticationFailed", "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."),
			no("no permission", "*", "403 Forbidden AuthorizationPermissionMismatch", http.StatusForbidden, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission."),
			no("firewall", "*", "403 Forbidden AuthorizationFailure", http.StatusForbidden, "AuthorizationFailure", "This request is not authorized to perform this operation."),
			no("no container", "container_name", "container", http.StatusNotFound, "ContainerNotFound", "The specified container does not exist."),
			storeFault{name: "lock held by nobody", argument: "*", answer: "lock", commands: []string{nobodysLock}},
		),
	}
}

func faultyCOS(t *testing.T) faultyStore {
	s := servers.NewCOS()
	w := newLine(t, false, s)
	host := s.Bucket + ".cos." + s.Region + ".myqcloud.com"
	u := servers.NewTunnel(t, w.handler(s), host, "tag.tencentcloudapi.com")
	xml := func(code, message string) string {
		return "<?xml version='1.0' encoding='utf-8' ?>\n<Error>\n\t<Code>" + code + "</Code>\n\t<Message>" + message + "</Message>\n\t<Resource>r</Resource>\n\t<RequestId>x</RequestId>\n</Error>"
	}
	faults := slices.DeleteFunc(w.common("bucket"), func(f storeFault) bool { return f.name == "connection reset" })
	return faultyStore{
		kind: "cos", line: w, start: true, env: []string{"HTTPS_PROXY=" + u.Proxy, "SSL_CERT_FILE=" + u.CAFile},
		config: inBlock("bucket", inQuotes(s.Bucket), "region", inQuotes(s.Region), "secret_id", inQuotes(s.ID), "secret_key", inQuotes(s.Key)),
		faults: append(append(faults, tunnelled(t, "bucket", host, "tag.tencentcloudapi.com")...),
			w.says("wrong credentials", "secret_id", "403 Forbidden", http.StatusForbidden, "application/xml", xml("InvalidAccessKeyId", "The Access Key Id you provided does not exist in our records")),
			w.says("wrong secret", "secret_id", "403 Forbidden", http.StatusForbidden, "application/xml", xml("SignatureDoesNotMatch", "The Signature you specified is invalid.")),
			w.says("no permission", "bucket", "403 Forbidden", http.StatusForbidden, "application/xml", xml("AccessDenied", "Access Denied.")),
			w.says("no bucket, or another region", "bucket", "NoSuchBucket", http.StatusNotFound, "application/xml", xml("NoSuchBucket", "The specified bucket does not exist.")),
			storeFault{name: "lock held by nobody", argument: "*", answer: "lock", commands: []string{nobodysLock}},
		),
	}
}

// handler returns the service of a line, or its replacement.
func (w *line) handler(service http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if f := w.front.Load(); f != nil {
			(*f)(rw, r)
			return
		}
		service.ServeHTTP(rw, r)
	})
}

func faultyRemote(t *testing.T) faultyStore {
	s := servers.NewTFE()
	w := newLine(t, true, s)
	_, port, _ := net.SplitHostPort(w.host)
	s.Host = "localhost:" + port
	s.Add(servers.TFEWorkspace{Name: "app", Mode: "local"})
	no := func(name, argument, answer string, status int, title, detail string) storeFault {
		f := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/.well-known") {
				s.ServeHTTP(rw, r)
				return
			}
			rw.Header().Set("Content-Type", "application/vnd.api+json")
			rw.Header().Set("TFP-API-Version", "2.6")
			rw.WriteHeader(status)
			fmt.Fprintf(rw, `{"errors":[{"status":"%d","title":%q,"detail":%q}]}`, status, title, detail)
		})
		return storeFault{name: name, argument: argument, answer: answer, begin: func() { w.front.Store(&f) }, end: func() { w.front.Store(nil) }}
	}
	pages := map[string]string{"portal": "text/html", "proxy refuses": "answered 403 Forbidden", "proxy without a way": "answered 502 Bad Gateway"}
	faults := w.common("hostname")
	for i, f := range faults {
		if pages[f.name] != "" { // the first request is not one of the service's API
			faults[i].answer = pages[f.name]
		}
	}
	return faultyStore{
		kind: "remote", line: w, start: true, lock: "acme/app", files: map[string]string{"ca.pem": w.ca},
		config: inBlock("hostname", inQuotes(s.Host), "organization", `"acme"`, "token", `"planted-token"`) + "    workspaces {\n      name = \"app\"\n    }\n",
		faults: append(faults,
			no("wrong credentials", "token", "401", http.StatusUnauthorized, "unauthorized", ""),
			no("no organization", "organization", "acme", http.StatusNotFound, "not found", ""),
			no("no permission", "*", "403", http.StatusForbidden, "forbidden", "This token may not do that."),
			storeFault{name: "lock held by nobody", argument: "*", answer: "lock", commands: []string{nobodysLock}},
		),
	}
}

// faultyCloud is faultyRemote with a cloud block.
func faultyCloud(t *testing.T) faultyStore {
	s := faultyRemote(t)
	s.header, s.init = "cloud", "init -input=false"
	return s
}

func faultyPg(t *testing.T) faultyStore {
	address := servers.Postgres(t)
	at := func(user, password, database, more string) string {
		a := strings.Replace(address, "postgres:secret@", user+":"+password+"@", 1)
		a = strings.Replace(a, "/postgres?", "/"+database+"?", 1)
		return a + more
	}
	host := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	silent := newLine(t, false, http.NotFoundHandler())
	silent.set("silent")
	web := newLine(t, false, nil)
	web.set("web")
	env := func(a string) []string { return []string{"PG_CONN_STR=" + a} }
	return faultyStore{
		kind: "pg", env: env(address), config: inBlock("schema_name", `"states"`),
		faults: []storeFault{
			{name: "wrong credentials", answer: "password authentication failed", env: env(at("postgres", "wrong", "postgres", ""))},
			{name: "no user", answer: "password authentication failed", env: env(at("nobody", "wrong", "postgres", ""))},
			{name: "no database", answer: `database "nosuch" does not exist`, env: env(at("postgres", "secret", "nosuch", ""))},
			{name: "no TLS", answer: "TLS", env: env(strings.Replace(address, "sslmode=disable", "sslmode=require", 1))},
			{name: "connection refused", answer: "refused", env: env(host.ReplaceAllString(address, nobody))},
			{name: "no answer", answer: "took too long", env: env(host.ReplaceAllString(address, silent.host) + "&connect_timeout=1")},
			{name: "not PostgreSQL", answer: "does not speak the protocol", env: env(host.ReplaceAllString(address, web.host))},
			{name: "lock held by nobody", argument: "*", answer: "lock", commands: []string{nobodysLock}},
		},
	}
}

func faultyEtcd(t *testing.T) faultyStore {
	address := servers.Etcd(t)
	down := httptest.NewServer(nil)
	down.Close()
	web := servers.HTTP(t)
	return faultyStore{
		kind: "etcdv3", config: inBlock("endpoints", "[var.endpoint]", "prefix", `"app/"`, "lock", "true"), env: []string{"TF_VAR_endpoint=" + address},
		files: map[string]string{"variables.tf": "variable \"endpoint\" {\n  type = string\n}\n"},
		faults: []storeFault{
			{name: "connection refused", argument: "endpoints", answer: "refused", env: []string{"TF_VAR_endpoint=" + down.URL}, commands: []string{storeCommands[0]}},
			{name: "not etcd", argument: "endpoints", answer: "", env: []string{"TF_VAR_endpoint=" + web.URL}, commands: []string{storeCommands[0]}},
			{name: "lock held by nobody", argument: "*", answer: "lock", commands: []string{nobodysLock}},
		},
	}
}

func faultyLocal(t *testing.T) faultyStore {
	return faultyStore{
		kind: "local", nowhere: true, config: inBlock("path", `"a/b.tfstate"`),
		faults: []storeFault{
			{name: "lock held by nobody", argument: "*", answer: "lock", commands: []string{nobodysLock}},
		},
	}
}

// TestStoreFaults makes stores fail in every way that has its own message. Each command that
// accesses a store must print one message, with the source range of the argument, the
// service's response in one line, and advice.
func TestStoreFaults(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) faultyStore{
		"s3": faultyS3, "dynamodb": faultyDynamoDB, "http": faultyHTTP, "gcs": faultyGCS, "consul": faultyConsul, "kubernetes": faultyKubernetes, "oss": faultyOSS,
		"azurerm": faultyAzure, "cos": faultyCOS, "remote": faultyRemote, "cloud": faultyCloud, "pg": faultyPg, "etcdv3": faultyEtcd, "local": faultyLocal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(), "TF_DATA_DIR=.terraform", "AWS_EC2_METADATA_DISABLED=true", "TF_VAR_unused="}, s.env...)
			main := "terraform {\n  " + cmp.Or(s.header, "backend \""+s.kind+"\"") + " {\n" + s.config + "  }\n}\n\noutput \"o\" {\n  value = 1\n}\n"
			folder := func() string {
				dir := t.TempDir()
				for name, text := range s.files {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(main), 0o666); err != nil {
					t.Fatal(err)
				}
				return dir
			}
			if s.start && s.files["ca.pem"] != "" {
				env = append(env, "SSL_CERT_FILE="+filepath.Join(folder(), "ca.pem"))
			}
			run := func(dir string, env []string, args ...string) (string, bool) {
				var out sys.Buffer
				if s.start {
					bin, err := exec.LookPath("terrace")
					if err != nil {
						t.Error(err)
					}
					c := exec.CommandContext(t.Context(), bin, args...)
					c.Dir, c.Env, c.Stdout, c.Stderr = dir, append(slices.Clone(env), "PWD="+dir), &out, &out
					err = c.Run()
					return out.String(), err == nil
				}
				code, err := runProgram(impatient(context.WithoutCancel(t.Context())), dir, env, strings.NewReader(""), &out, &out, args...)
				if err != nil {
					t.Error(err)
				}
				return out.String(), code == 0
			}
			working := folder()
			if out, ok := run(working, env, "init", "-input=false"); !ok {
				t.Fatalf("init:\n%s", out)
			}
			if out, ok := run(working, env, "apply", "-auto-approve", "-input=false"); !ok {
				t.Fatalf("apply:\n%s", out)
			}
			for _, f := range s.faults {
				t.Run(f.name, func(t *testing.T) {
					if f.begin != nil {
						f.begin()
					}
					if f.end != nil {
						defer f.end()
					}
					commands := f.commands
					if commands == nil {
						commands = slices.DeleteFunc(slices.Clone(storeCommands), func(c string) bool {
							return c == f.without || s.listless && c == "workspace list"
						})
					}
					if i := slices.Index(commands, storeCommands[0]); i >= 0 && s.init != "" {
						commands = slices.Replace(slices.Clone(commands), i, i+1, s.init)
					}
					var all sync.WaitGroup
					var turn sync.Mutex
					said := make([]string, len(commands))
					for i, line := range commands {
						dir := folder()
						if err := os.CopyFS(filepath.Join(dir, ".terraform"), os.DirFS(filepath.Join(working, ".terraform"))); err != nil {
							t.Fatal(err)
						}
						all.Go(func() {
							if f.inTurn {
								turn.Lock()
								defer turn.Unlock()
							}
							out, ok := run(dir, append(slices.Clone(env), f.env...), strings.Fields(strings.Replace(line, "LOCK", cmp.Or(s.lock, "99999999-0000-4000-8000-000000000000"), 1))...)
							said[i] = out
							if ok {
								t.Errorf("terrace %s succeeds:\n%s", line, out)
							}
						})
					}
					all.Wait()
					for i, out := range said {
						for _, wrong := range misshapen(out, main, f, s.nowhere) {
							t.Errorf("terrace %s: %s:\n%s", commands[i], wrong, out)
						}
						t.Logf("terrace %s:\n%s", commands[i], out)
					}
				})
			}
		})
	}
}

var (
	arnish  = regexp.MustCompile(`arn:\S+|User: `) // not part of a stack trace
	placed  = regexp.MustCompile(`(?m)^ *on (\S+) line (\d+)`)
	errorAt = regexp.MustCompile(`(?:^\n*|\n\n)Error: `)
)

// misshapen returns the errors in the message of a store that fails.
func misshapen(out, main string, f storeFault, nowhere bool) (wrong []string) {
	out = strings.NewReplacer("│ ", "", "│", "").Replace(out)
	if n := len(errorAt.FindAllString(out, -1)); n != 1 {
		wrong = append(wrong, fmt.Sprintf("%d errors in place of one", n))
	}
	at := placed.FindAllStringSubmatch(out, -1)
	switch {
	case nowhere:
	case len(at) == 0:
		wrong = append(wrong, "no place")
	case f.argument != "*":
		var line int
		fmt.Sscan(at[0][2], &line)
		text := strings.TrimSpace(strings.Split(main, "\n")[line-1])
		want := f.argument + " = "
		if f.argument == "" {
			want = "backend "
		}
		if !strings.HasPrefix(text, want) {
			wrong = append(wrong, fmt.Sprintf("the place is %q, not that of %q", text, f.argument))
		}
	}
	_, detail, _ := strings.Cut(out, "Error: ")
	_, detail, _ = strings.Cut(detail, "\n\n") // after the summary
	if i := strings.Index(detail, "\n\n"); i >= 0 && placed.MatchString(out) {
		detail = detail[i+2:]
	}
	detail, _, _ = strings.Cut(detail, "\n\n")
	joined := strings.Join(strings.Fields(detail), " ")
	if !strings.Contains(joined, f.answer) {
		wrong = append(wrong, fmt.Sprintf("%q is not told", f.answer))
	}
	answer, advice, _ := strings.Cut(joined, ". ")
	if advice == "" {
		wrong = append(wrong, "no advice")
	}
	if n := strings.Count(arnish.ReplaceAllString(answer, ""), ": "); n > 5 {
		wrong = append(wrong, fmt.Sprintf("%d colons in the answer", n))
	}
	for _, no := range []string{"<", "RequestId", "acme.Main", "Post \"", "Get \"", "dial tcp", ": :", ": .", "..", "planted", "goroutine", "%!"} {
		if strings.Contains(joined, no) {
			wrong = append(wrong, fmt.Sprintf("the message has %q", no))
		}
	}
	return wrong
}

// TestNoCredentials checks that missing credentials are reported at once, without retries.
func TestNoCredentials(t *testing.T) {
	t.Parallel()
	nobody := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret\nTrace: planted"}`, http.StatusUnauthorized)
	}))
	t.Cleanup(nobody.Close)
	for name, s := range map[string]struct{ kind, config, answer string }{
		"s3":              {"s3", inBlock("bucket", `"b"`, "key", `"k"`, "region", `"us-east-1"`), "no credentials were found"},
		"gcs":             {"gcs", inBlock("bucket", `"b"`), "no credentials of Google Cloud"},
		"gcs, broken":     {"gcs", inBlock("bucket", `"b"`, "credentials", `"{\"type\": \"x\"}"`), "unknown type"},
		"azurerm, no key": {"azurerm", inBlock("storage_account_name", `"acme"`, "container_name", `"states"`, "key", `"k"`), "no key of the storage account"},
		"azurerm, no az":  {"azurerm", inBlock("storage_account_name", `"acme"`, "container_name", `"states"`, "key", `"k"`, "use_azuread_auth", "true"), "no credentials of Azure"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("terraform {\n  backend \""+s.kind+"\" {\n"+s.config+"  }\n}\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			env := []string{"PATH=" + t.TempDir(), "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true", "GCE_METADATA_HOST=127.0.0.1:1", "HTTPS_PROXY=" + nobody.URL}
			var pauses atomic.Int32
			var out sys.Buffer
			code, err := runProgram(counting(context.WithoutCancel(t.Context()), &pauses), dir, env, strings.NewReader(""), &out, &out, "init", "-input=false")
			if err != nil || code == 0 || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), s.answer) || pauses.Load() > 0 {
				t.Errorf("%d, %d pauses, %v:\n%s", code, pauses.Load(), err, out.String())
			}
		})
	}
}
