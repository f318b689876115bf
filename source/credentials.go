package source

import (
	"regexp"
	"strings"
	"sync"
)

// HiddenText stands where a credential was.
const HiddenText = "(hidden)"

// HideCredentials is a text without the credentials that addresses in it hold: the
// user's part of https://user:password@host, and values of query parameters such as
// token, sshkey or X-Amz-Signature. The name in ssh://git@host is none. Sources of
// modules are written that way, and they are quoted by messages, lists and reports.
func HideCredentials(text string) string {
	if !strings.ContainsAny(text, "@=") {
		return text
	}
	text = userInfo().ReplaceAllStringFunc(text, func(m string) string {
		scheme, user, _ := strings.Cut(m, "://")
		if strings.HasSuffix(strings.ToLower(scheme), "ssh") && !strings.Contains(user, ":") {
			return m
		}
		_, password, ok := strings.Cut(strings.TrimSuffix(user, "@"), ":")
		if isTemplate(user) || ok && isTemplate(password+"@") {
			return m
		}
		return scheme + "://" + HiddenText + "@"
	})
	return parameter().ReplaceAllStringFunc(text, func(m string) string {
		name, value, _ := strings.Cut(m, "=")
		if isTemplate(value + "@") {
			return m
		}
		return name + "=" + HiddenText
	})
}

// isTemplate reports whether the part of an address before an @ is an interpolation, so
// that it names a value instead of holding one.
func isTemplate(text string) bool { return template().MatchString(text) }

var (
	template = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[$%]\{[^{}]*\}:?)+@$`) })
	userInfo = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^/\s"'<>?#@]*(?:@[^/\s"'<>?#@]*)*@`)
	})
	parameter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)((?:[?&]|\\u0026|&amp;)(?:[-\w.%]*(?:token|secret|passw|passphrase|signature|credential|sshkey|api[-_]?key|access[-_]?key|private[-_]?key)[-\w.%]*|sig|pwd|auth|authorization|key|code)=)(?:[^&\s"'<>)\]\x60\\]+)`)
	})
)
