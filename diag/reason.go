package diag

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Reason returns the text of an error in the words of messages. It removes Go's names of system
// calls, and the paths in named, which the message already contains.
func Reason(err error, named ...string) string {
	text := err.Error()
	for _, e := range causes(err) {
		before, _, _ := strings.Cut(text, e.Error())
		if plain, ok := reason(e, append(named[:len(named):len(named)], before)); ok {
			text = strings.ReplaceAll(text, e.Error(), plain)
		}
	}
	return text
}

// causes returns an error and all wrapped errors, outermost first.
func causes(err error) []error {
	out := []error{err}
	switch e := err.(type) { //nolint:errorlint // each link of the chain is looked at
	case interface{ Unwrap() error }:
		if in := e.Unwrap(); in != nil {
			out = append(out, causes(in)...)
		}
	case interface{ Unwrap() []error }:
		for _, in := range e.Unwrap() {
			out = append(out, causes(in)...)
		}
	}
	return out
}

// reason returns the plain text of one error of Go's standard library. ok is false for other
// errors, whose text is used unchanged.
func reason(err error, named []string) (text string, ok bool) {
	switch err { //nolint:errorlint // causes has unwrapped them
	case context.Canceled:
		return "interrupted", true
	case context.DeadlineExceeded, os.ErrDeadlineExceeded:
		return "it took too long", true
	case io.EOF, io.ErrUnexpectedEOF:
		return "it ends too early", true
	}
	switch e := err.(type) { //nolint:errorlint // causes has unwrapped them
	case *fs.PathError:
		return at(e.Path, e.Err, named), true
	case *os.LinkError:
		return at(e.New, e.Err, named), true
	case *os.SyscallError:
		return Reason(e.Err, named...), true
	case *url.Error:
		if errors.Is(e.Err, io.EOF) || errors.Is(e.Err, io.ErrUnexpectedEOF) {
			return at(e.URL, errors.New("the server closed the connection"), named), true
		}
		return at(e.URL, e.Err, named), true
	case *net.DNSError:
		if e.IsNotFound {
			return fmt.Sprintf("no host has the name %s", e.Name), true
		}
		return fmt.Sprintf("the name %s cannot be resolved (%s)", e.Name, e.Err), true
	case *net.OpError:
		if e.Addr != nil && e.Op == "dial" {
			return at(e.Addr.String(), e.Err, named), true
		}
		return Reason(e.Err, named...), true
	case *exec.Error:
		if errors.Is(e.Err, exec.ErrNotFound) {
			return fmt.Sprintf("the program %q was not found", e.Name), true
		}
		return at(e.Name, e.Err, named), true
	case *strconv.NumError:
		if errors.Is(e.Err, strconv.ErrRange) {
			return fmt.Sprintf("the number %s is out of range", e.Num), true
		}
		return fmt.Sprintf("%q is not a valid %s", e.Num, kindOf(e.Func)), true
	case *json.SyntaxError:
		if e.Error() == "unexpected end of JSON input" {
			return "the JSON text ends too early", true
		}
		return fmt.Sprintf("the JSON text is not valid at byte %d: %s", e.Offset, e.Error()), true
	case *json.UnmarshalTypeError:
		where := ""
		if e.Field != "" {
			where = fmt.Sprintf(" of %q", e.Field)
		}
		article := "a"
		if strings.HasPrefix(e.Value, "a") || strings.HasPrefix(e.Value, "o") { // array, object
			article = "an"
		}
		return fmt.Sprintf("the JSON value%s is %s %s, which cannot be there", where, article, e.Value), true
	}
	if _, own := err.(syscall.Errno); own { //nolint:errorlint // causes has unwrapped them
		return "", false // the system's text is plain
	}
	if e, ok := err.(net.Error); ok && e.Timeout() { //nolint:errorlint // likewise
		return "no answer came in time", true
	}
	return "", false
}

// at returns an error preceded by a location, unless the message contains the location.
func at(place string, err error, named []string) string {
	text := Reason(err, named...)
	if place == "" || slices.ContainsFunc(named, func(s string) bool { return strings.Contains(s, place) }) {
		return text
	}
	return place + ": " + text
}

func kindOf(parser string) string {
	switch parser {
	case "ParseBool":
		return "truth value"
	case "ParseInt", "ParseUint", "Atoi":
		return "whole number"
	}
	return "number"
}
