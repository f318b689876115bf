package addr

import (
	"fmt"
	"path"
	"strings"
)

// asteriskLetter replaces asterisks in names while a pattern is parsed: HCL accepts it as a
// letter of a name.
const asteriskLetter = "ᕯ"

// ParsePattern parses a pattern, or any address that ParseTarget parses. In a pattern, an
// asterisk stands for any text in one name (`aws_*.web`, `module.app-*`, `data.*.*`), and `[*]`
// for any key. In a quoted key, an asterisk is a part of the key. The target of a pattern has
// the field Pattern; only MatchConfig, Match and String may be used with it.
func ParsePattern(s string) (Target, error) {
	text, found := maskAsterisks(s)
	if !found {
		return ParseTarget(s)
	}
	if strings.Contains(s, asteriskLetter) {
		return Target{}, fmt.Errorf("the character %s cannot be a part of a pattern", asteriskLetter)
	}
	t, err := ParseTarget(text)
	if err != nil {
		return Target{}, fmt.Errorf("%s", strings.ReplaceAll(err.Error(), asteriskLetter, "*"))
	}
	t.Pattern = s
	t.Module = ModuleInstance(strings.ReplaceAll(string(t.Module), asteriskLetter, "*"))
	t.Resource.Type = strings.ReplaceAll(t.Resource.Type, asteriskLetter, "*")
	t.Resource.Name = strings.ReplaceAll(t.Resource.Name, asteriskLetter, "*")
	return t, nil
}

// maskAsterisks removes each `[*]` outside of quotes, which covers the same as no key, and
// replaces all other asterisks outside of quotes by asteriskLetter. found reports whether there
// was any.
func maskAsterisks(s string) (text string, found bool) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\' && i+1 < len(s):
			b.WriteByte(c)
			i++
			b.WriteByte(s[i])
			continue
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.HasPrefix(s[i:], "[*]"):
			found = true
			i += len("[*]") - 1
			continue
		case c == '*':
			found = true
			b.WriteString(asteriskLetter)
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String(), found
}

// MatchConfig reports whether a pattern matches a resource block, and returns the matching address
// without asterisks: that of the block, or that of its module if the pattern is the address of a
// module. Keys of the pattern remain.
func (t Target) MatchConfig(r ConfigResource) (Target, bool) {
	want, have := t.Module.Steps(), ModuleInstance(r.Module).Steps()
	if len(want) > len(have) || !t.IsModule() && len(want) != len(have) {
		return Target{}, false
	}
	for i := range want {
		if !matches(want[i].Name, have[i].Name) {
			return Target{}, false
		}
		want[i].Name = have[i].Name
	}
	out := Target{Module: ModuleFromSteps(want), ModuleKey: t.ModuleKey, Key: t.Key, HasKey: t.HasKey}
	if !t.IsModule() {
		out.Resource = r.Resource
		if t.Resource.Mode != r.Resource.Mode || !matches(t.Resource.Type, r.Resource.Type) || !matches(t.Resource.Name, r.Resource.Name) {
			return Target{}, false
		}
	}
	return out, true
}

// Match reports whether a pattern covers a resource instance.
func (t Target) Match(i Instance) bool {
	exact, ok := t.MatchConfig(i.Config())
	return ok && exact.Contains(i)
}

// matches reports whether a name matches a name with asterisks.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
