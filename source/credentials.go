package source

import (
	"regexp"
	"strings"
	"sync"
)

// HiddenText replaces a credential.
const HiddenText = "(hidden)"

// HideCredentials replaces the credentials of URLs in a text: the user part of
// https://user:password@host, and the values of query parameters such as token, sshkey or
// X-Amz-Signature. It keeps the user name in ssh://git@host. Module sources can contain
// credentials, and messages, lists and reports quote them.
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

// isTemplate reports whether the part of a URL before @ is an interpolation, which names a
// value instead of containing one.
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
