package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// ErrTooLarge is wrapped by errors about responses that exceed their limit.
var ErrTooLarge = errors.New("the answer is larger than allowed")

// Get returns a response of at most max bytes. A status of 400 or above is a *StatusError, with
// which the response is returned too. header may be nil.
func (c *Client) Get(ctx context.Context, where string, header http.Header, max int64) ([]byte, *http.Response, error) {
	req, err := newRequest(ctx, where, header)
	if err != nil {
		return nil, nil, err
	}
	for try := 0; ; try++ {
		resp, err := c.Do(ctx, req)
		if err != nil {
			return nil, nil, err
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, max+1))
		_ = resp.Body.Close()
		switch {
		case err != nil && try < c.Retries && ctx.Err() == nil:
			if serr := sleep(ctx, c.pause(try, nil)); serr != nil {
				return nil, nil, serr
			}
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("the answer of %s broke off: %w", Public(req.URL), err)
		case resp.StatusCode >= 400:
			return body, resp, status(resp, body)
		case int64(len(body)) > max:
			return nil, resp, fmt.Errorf("%s: %w (%d bytes)", Public(req.URL), ErrTooLarge, max)
		}
		return body, resp, nil
	}
}

func newRequest(ctx context.Context, where string, header http.Header) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, plainError(err)
	}
	for k, vs := range header {
		req.Header[k] = vs
	}
	return req, nil
}

func status(resp *http.Response, body []byte) error {
	e := &StatusError{Code: resp.StatusCode, Status: resp.Status, URL: Public(resp.Request.URL)}
	if ct := resp.Header.Get("Content-Type"); strings.HasPrefix(ct, "text/plain") || strings.HasPrefix(ct, "application/json") {
		e.Body = string(body[:min(len(body), 500)])
	}
	return e
}

// A Download is a file to download.
type Download struct {
	URL      string
	Header   http.Header
	Max      int64                   // maximum size, in bytes
	Progress func(done, total int64) // sizes are in bytes; total is 0 if unknown; may be nil
	// Sign is called before each request, for schemes in which every request is signed. It may be
	// nil.
	Sign func(*http.Request) error
}

// Save downloads a file to path, which it creates or truncates. It resumes an interrupted
// transfer if the server supports that and the file has not changed; otherwise it starts again.
func (c *Client) Save(ctx context.Context, d Download, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = c.save(ctx, d, f)
	return errors.Join(err, f.Close())
}

func (c *Client) save(ctx context.Context, d Download, f *os.File) error {
	s := &saving{d: d, f: f}
	once := c.With(0, 0)
	tries := 0
	for try := 0; ; try++ {
		before := s.done
		tries++
		err := s.attempt(ctx, once)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if s.done-before >= leastPerIdle {
			try = 0 // the transfer makes progress, if slowly
			if s.resumed++; s.resumed > 1000 {
				return err
			}
		}
		var se *StatusError
		again := errors.As(err, &se) && busy(se.Code) || se == nil && !errors.Is(err, ErrTooLarge) && !errors.Is(err, errDisk) && worthRepeating(err)
		switch {
		case again && try >= c.Retries && se != nil:
			se.Tries = tries
			return se
		case again && try >= c.Retries:
			return fmt.Errorf("giving up after %d attempt(s): %w", tries, err)
		case !again:
			return err
		}
		if err := sleep(ctx, c.pause(try, s.resp)); err != nil {
			return err
		}
	}
}

// saving is the state of a download.
type saving struct {
	d       Download
	f       *os.File
	done    int64
	tag     string // ETag of the file version to which the done bytes belong
	resumed int
	resp    *http.Response
}

var errDisk = errors.New("cannot write")

func (s *saving) attempt(ctx context.Context, c *Client) error {
	req, err := newRequest(ctx, s.d.URL, s.d.Header)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "identity")
	if s.done > 0 && s.tag != "" {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(s.done, 10)+"-")
		req.Header.Set("If-Range", s.tag)
	}
	if s.d.Sign != nil {
		if err := s.d.Sign(req); err != nil {
			return err
		}
	}
	resp, err := c.Do(ctx, req)
	if err != nil {
		return err
	}
	s.resp = resp
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return status(resp, body)
	}
	switch {
	case resp.StatusCode != http.StatusPartialContent:
		if err := s.restart(); err != nil {
			return err
		}
	case !strings.HasPrefix(resp.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(s.done, 10)+"-") || req.Header.Get("Range") == "":
		s.tag = "" // the next attempt starts again
		return fmt.Errorf("%s sent another part than was asked for", Public(req.URL))
	}
	s.tag = ""
	if e := resp.Header.Get("ETag"); e != "" && !strings.HasPrefix(e, "W/") && resp.Header.Get("Content-Encoding") == "" {
		s.tag = e
	}
	return s.body(resp)
}

func (s *saving) restart() error {
	s.done = 0
	if _, err := s.f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	if err := s.f.Truncate(0); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	return nil
}

func (s *saving) body(resp *http.Response) error {
	total := int64(0)
	if resp.ContentLength >= 0 {
		total = s.done + resp.ContentLength
	}
	where := Public(resp.Request.URL)
	if total > s.d.Max {
		return fmt.Errorf("%s: %w (%d bytes)", where, ErrTooLarge, s.d.Max)
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if s.done+int64(n) > s.d.Max {
				return fmt.Errorf("%s: %w (%d bytes)", where, ErrTooLarge, s.d.Max)
			}
			if _, werr := s.f.Write(buf[:n]); werr != nil {
				return fmt.Errorf("%w: %w", errDisk, werr)
			}
			s.done += int64(n)
			if s.d.Progress != nil {
				s.d.Progress(s.done, total)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the download from %s broke off after %d bytes: %w", where, s.done, err)
		}
	}
}

// PostForm sends a form once and returns a response of at most max bytes.
func (c *Client) PostForm(ctx context.Context, where string, form url.Values, max int64) ([]byte, error) {
	h := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	return c.send(ctx, message{http.MethodPost, where, h, strings.NewReader(form.Encode())}, max)
}

// PostJSON sends a JSON document once and returns a response of at most max bytes. header may be
// nil.
func (c *Client) PostJSON(ctx context.Context, where string, header http.Header, doc any, max int64) ([]byte, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	h := header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", "application/json")
	return c.send(ctx, message{http.MethodPost, where, h, bytes.NewReader(text)}, max)
}

// Put sends an empty body once and returns a response of at most max bytes.
func (c *Client) Put(ctx context.Context, where string, header http.Header, max int64) ([]byte, error) {
	return c.send(ctx, message{http.MethodPut, where, header, nil}, max)
}

// message is a request that is not retried.
type message struct {
	method, where string
	header        http.Header
	body          io.Reader // nil means no body
}

func (c *Client) send(ctx context.Context, m message, max int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, m.method, m.where, m.body)
	if err != nil {
		return nil, plainError(err)
	}
	for k, vs := range m.header {
		req.Header[k] = vs
	}
	resp, err := c.once(ctx, req)
	if err != nil {
		return nil, plainError(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(io.LimitReader(resp.Body, max+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode >= 400:
		return out, status(resp, out)
	case int64(len(out)) > max:
		return nil, fmt.Errorf("%s: %w (%d bytes)", Public(req.URL), ErrTooLarge, max)
	}
	return out, nil
}
