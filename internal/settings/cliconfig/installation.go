package cliconfig

import (
	"net/url"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
)

const badMethod = "Invalid provider_installation method block"

// checkInstallationForm returns errors for arguments that must be blocks, as OpenTofu does.
func checkInstallationForm(items []item) diag.List {
	var ds diag.List
	for _, it := range items {
		if it.keys[0] != "provider_installation" {
			continue
		}
		switch {
		case it.assign && !it.isBlock:
			ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &it.at, "Invalid provider_installation block", "The provider_installation block must not be introduced with an equals sign.")...)
			continue
		case len(it.keys) > 1:
			ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &it.at, "Invalid provider_installation block", "The provider_installation block must not have any labels.")...)
		}
		for _, in := range it.value.items {
			switch {
			case len(in.keys) > 1:
				ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &in.at, badMethod, "The blocks inside the provider_installation block may not have any labels.")...)
			case in.assign && !in.isBlock || in.value.kind != objectNode && in.value.kind != listNode:
				ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &in.at, badMethod, "The items inside the provider_installation block must all be blocks.")...)
			}
		}
	}
	return ds
}

func (l *loader) installation(b block) diag.List {
	out := &Installation{At: b.at}
	l.c.Installation = out
	var ds diag.List
	for _, it := range b.items {
		bs, more := unfold(nil, it.value, it.at, it.keys[0], 0)
		ds = append(ds, more...)
		for _, m := range bs {
			if it.keys[0] == "dev_overrides" {
				if len(out.Methods) > 0 {
					ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &it.at, badMethod, "The dev_overrides block must appear before all other installation methods, because development overrides always have the highest priority.")...)
				}
				ds = append(ds, out.overrides(m)...)
				continue
			}
			ds = append(ds, out.method(it.keys[0], m)...)
		}
	}
	return ds
}

func (in *Installation) overrides(b block) diag.List {
	var ds diag.List
	if in.DevOverrides == nil {
		in.DevOverrides = make(map[addr.Provider]string)
	}
	for _, it := range b.items {
		p, err := addr.ParseProvider(strings.Join(it.keys, "/"))
		switch {
		case err != nil:
			ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &it.at, "Invalid provider development override", "The entry %q in dev_overrides is not a valid provider source string: %s.", strings.Join(it.keys, " "), err)...)
		case it.value.kind != stringNode:
			ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &it.value.at, "Invalid provider development override", "The value for %s in dev_overrides must be the path of a directory.", p)...)
		default:
			in.DevOverrides[p] = it.value.text
		}
	}
	return ds
}

func (in *Installation) method(kind string, b block) diag.List {
	m := Method{Kind: MethodKind(kind), Retries: -1, At: b.at}
	names := []string{"include", "exclude"}
	switch m.Kind {
	case Direct:
		names = append(names, "download_retry_count")
	case FilesystemMirror:
		names = append(names, "path")
	case NetworkMirror:
		names = append(names, "url", "download_retry_count", "trust_all_hashes")
	case OCIMirror:
		names = append(names, "repository_template")
	default:
		return diag.Errorf(diag.CodeCLIConfiguration, &b.at, badMethod, "Unknown provider installation method %q.", kind)
	}
	a := settings(kind, b.items, names...)
	ds := a.ds
	var more diag.List
	m.Include, more = patterns(a.list("include"), "inclusion", b.at)
	ds = append(ds, more...)
	m.Exclude, more = patterns(a.list("exclude"), "exclusion", b.at)
	ds = append(ds, more...)
	m.Retries = a.number("download_retry_count", -1)
	m.TrustAllHashes = a.boolean("trust_all_hashes")
	required := map[MethodKind]string{FilesystemMirror: "path", NetworkMirror: "url", OCIMirror: "repository_template"}[m.Kind]
	if required != "" && a.str(required) == "" {
		return append(ds, diag.Errorf(diag.CodeCLIConfiguration, &b.at, badMethod, "Invalid %s block: %q argument is required.", kind, required)...)
	}
	switch m.Kind {
	case FilesystemMirror:
		m.Location = a.str("path")
	case NetworkMirror:
		var ok bool
		if m.Location, ok = MirrorURL(a.str("url")); !ok {
			return append(ds, diag.Errorf(diag.CodeCLIConfiguration, &b.at, "Invalid URL for provider installation source", "Cannot use %q as a URL for a network provider mirror: the mirror must be at an https: URL.", a.str("url"))...)
		}
	case OCIMirror:
		m.Template, more = parseOCIRepo(a.str("repository_template"), m.Include, b.at)
		ds = append(ds, more...)
	}
	in.Methods = append(in.Methods, m)
	return ds
}

// MirrorURL returns the base URL of a network mirror, which ends with a slash. ok is false if the
// text is not an https URL.
func MirrorURL(text string) (base string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", false
	}
	return strings.TrimSuffix(u.String(), "/") + "/", true
}
