package provisioner

import (
	"fmt"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/zclconf/go-cty/cty"
)

// Validate checks what the schemas cannot express: combinations of arguments, and their
// values. It does not check unknown values. conn is cty.NilVal if there is no connection
// block.
func Validate(typ string, config, conn cty.Value) diag.List {
	if Schema(typ) == nil {
		return unknownType(typ)
	}
	a := attrs(config)
	var ds diag.List
	switch typ {
	case "local-exec":
		ds = validateLocalExec(a)
	case "remote-exec":
		ds = validateRemoteExec(a)
	case "file":
		ds = validateFile(a)
	}
	if typ != "local-exec" && conn != cty.NilVal {
		ds = append(ds, validateConnection(attrs(conn))...)
	}
	return ds
}

// unknownType returns the error for a provisioner that is not built in.
func unknownType(typ string) diag.List {
	switch typ {
	case "chef", "habitat", "puppet", "salt-masterless":
		return diag.List{{
			Code:    diag.CodeProvisionerRemoved,
			Summary: fmt.Sprintf("The %q provisioner has been removed", typ),
			Detail:  fmt.Sprintf("The %q provisioner is no longer part of the language. Install and run that tool with remote-exec, or with cloud-init when the machine is made.", typ),
		}}
	}
	return diag.List{{
		Code:    diag.CodeProvisionerUnknown,
		Summary: "Unknown provisioner",
		Detail: fmt.Sprintf("There is no provisioner %q. The built-in ones are %s. Separate programs named terraform-provisioner-%s are not run: call the tool with local-exec or remote-exec instead.",
			typ, strings.Join(Types(), ", "), typ),
	}}
}

func validateLocalExec(a attributes) diag.List {
	var ds diag.List
	if v, ok := a.known("command"); ok && (v.IsNull() || v.AsString() == "") {
		ds = append(ds, invalid("local-exec", "command", "The command must be a non-empty string.")...)
	}
	ds = append(ds, noNulls("local-exec", a, "interpreter", false)...)
	return ds
}

func validateRemoteExec(a attributes) diag.List {
	given := 0
	for _, name := range []string{"inline", "script", "scripts"} {
		v, ok := a.known(name)
		if !ok {
			return nil // it may be null
		}
		if !v.IsNull() {
			given++
		}
	}
	if given != 1 {
		return invalid("remote-exec", "", `Exactly one of "inline", "script" and "scripts" must be set.`)
	}
	var ds diag.List
	if v, ok := a.known("script"); ok && !v.IsNull() && v.AsString() == "" {
		ds = append(ds, invalid("remote-exec", "script", "The path of the script must not be empty.")...)
	}
	ds = append(ds, noNulls("remote-exec", a, "inline", false)...)
	return append(ds, noNulls("remote-exec", a, "scripts", true)...)
}

func validateFile(a attributes) diag.List {
	var ds diag.List
	if v, ok := a.known("destination"); ok && (v.IsNull() || v.AsString() == "") {
		ds = append(ds, invalid("file", "destination", "The destination must be a non-empty string.")...)
	}
	source, ok1 := a.known("source")
	content, ok2 := a.known("content")
	switch {
	case !ok1 || !ok2:
	case source.IsNull() == content.IsNull():
		ds = append(ds, invalid("file", "", `Exactly one of "source" and "content" must be set.`)...)
	case !source.IsNull() && source.AsString() == "":
		ds = append(ds, invalid("file", "source", "The source must be a non-empty string.")...)
	}
	return ds
}

func validateConnection(a attributes) diag.List {
	var ds diag.List
	bad := func(name, format string, args ...any) {
		ds = append(ds, diag.List{{
			Code: diag.CodeProvisionerConnection, Summary: "Invalid connection block",
			Detail: fmt.Sprintf(format, args...), Attr: cty.GetAttrPath(name),
		}}...)
	}
	switch typ := a.text("type"); typ {
	case "", "ssh":
	case "winrm":
		bad("type", `Connections of the type "winrm" are not made: OpenTofu deprecates them in version 1.12 and removes them in 1.13. Install OpenSSH on the Windows machine and use type = "ssh" with target_platform = "windows".`)
		return ds
	default:
		bad("type", `There is no connection type %q. Use "ssh".`, typ)
		return ds
	}
	if v, ok := a.known("host"); ok && (v.IsNull() || v.AsString() == "") {
		bad("host", "The host must be a non-empty string: the address of the machine to connect to.")
	}
	switch p := a.text("target_platform"); p {
	case "", "unix", "windows":
	default:
		bad("target_platform", `The target platform must be "unix" or "windows", not %q.`, p)
	}
	if s := a.text("timeout"); s != "" {
		if d, err := time.ParseDuration(s); err != nil || d <= 0 {
			bad("timeout", `The timeout must be a duration greater than 0, such as "30s" or "5m", not %q.`, s)
		}
	}
	for _, name := range []string{"port", "bastion_port", "proxy_port"} {
		if !a.validPort(name) {
			bad(name, "A port is a whole number from 1 to 65535.")
		}
	}
	switch s := a.text("proxy_scheme"); s {
	case "", "http", "https", "socks5":
	default:
		bad("proxy_scheme", `The scheme of the proxy must be "http", "https" or "socks5", not %q.`, s)
	}
	for _, m := range keyProblems(a) {
		bad(m.attr, "%s", m.text)
	}
	return ds
}

func invalid(typ, attr, detail string) diag.List {
	m := &diag.Message{Code: diag.CodeProvisionerConfig, Summary: "Invalid " + typ + " provisioner configuration", Detail: detail}
	if attr != "" {
		m.Attr = cty.GetAttrPath(attr)
	}
	return diag.List{m}
}

// noNulls checks that the elements of a list are not null. If paths is set, they must not
// be "" either.
func noNulls(typ string, a attributes, name string, paths bool) diag.List {
	v, ok := a.known(name)
	if !ok || v.IsNull() {
		return nil
	}
	for it := v.ElementIterator(); it.Next(); {
		_, el := it.Element()
		if !el.IsKnown() {
			continue
		}
		if el.IsNull() || paths && el.AsString() == "" {
			return invalid(typ, name, fmt.Sprintf("The elements of %q must be strings%s.", name, map[bool]string{true: " that are not empty", false: ", not null"}[paths]))
		}
	}
	return nil
}
