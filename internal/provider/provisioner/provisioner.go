// Package provisioner has the built-in provisioners: local-exec runs a command
// here, file copies to another machine, remote-exec runs scripts there; the
// latter two over SSH.
//
// Main types: Request, and the functions Schema, Validate and Run. The one rule:
// nothing here reads the process's environment or working folder; a Request
// carries everything that a provisioner may see and do.
//
// The arguments, their defaults and the lines of output are those of OpenTofu
// 1.12, except where that would harm: scripts are not left on the target, nor
// readable or writable there by other users; a path is quoted; what is copied into
// a folder gets its own name there, as the documentation has it, and never
// replaces the folder.
package provisioner

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/ssh"
)

// A Request is one run of a provisioner.
type Request struct {
	Type       string
	Config     cty.Value // wholly known, without marks, of Schema(Type).ImpliedType()
	Connection cty.Value // wholly known, without marks, of ConnectionSchema().ImpliedType(); NilVal for none
	Dir        string    // the root module's working folder; must be set
	Env        sys.Env   // the complete environment of child processes; also says where the SSH agent is

	// Output gets every line of output as it comes, without its line break, from
	// one goroutine at a time. Nil drops them.
	Output func(line string)
	// Exec runs a child process, as sys.Run does. Needed by local-exec only.
	Exec func(context.Context, sys.Command) error
	// Dial connects to other machines and to the SSH agent; nil means directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Types are the names of the built-in provisioners, sorted.
func Types() []string { return []string{"file", "local-exec", "remote-exec"} }

// Run runs a provisioner to its end. When ctx ends first, the child process and
// what it has started is ended, or the session with the other machine closed, and the
// error says so. The messages have no place; see diag.List.Under.
//
// An error may tell commands and their output. Where the configuration is sensitive or
// ephemeral, whoever shows it asks Extra, which has a method Concealed() string,
// for the detail to show instead. Output is the caller's to keep back.
func Run(ctx context.Context, r Request) diag.List {
	if ds := Validate(r.Type, r.Config, r.Connection); ds.HasErrors() {
		return ds
	}
	if r.Output == nil {
		r.Output = func(string) {}
	}
	if r.Dial == nil {
		r.Dial = new(net.Dialer).DialContext
	}
	var err error
	switch r.Type {
	case "local-exec":
		err = localExec(ctx, r)
	case "remote-exec":
		err = remoteExec(ctx, r)
	case "file":
		err = copyFile(ctx, r)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, sys.ErrInterrupted) { // which says it itself
		err = fmt.Errorf("interrupted: %w", err)
	}
	return diag.List{{Code: diag.CodeProvisionerFailed, Summary: r.Type + " provisioner error", Detail: diag.Reason(err), Extra: discreet(err)}}
}

// concealed is what may be shown of an error where the configuration is sensitive.
type concealed string

func discreet(err error) concealed {
	const why = " What it said is not shown because of a sensitive value in the configuration."
	code, exited := sys.ExitCode(err)
	var remote *ssh.ExitError
	switch {
	case errors.As(err, &remote):
		return concealed(fmt.Sprintf("The script ended with status %d.", remote.ExitStatus()) + why)
	case exited && code > 0:
		return concealed(fmt.Sprintf("The command ended with status %d.", code) + why)
	case errors.Is(err, sys.ErrInterrupted) || errors.Is(err, context.Canceled):
		return "The provisioner was interrupted."
	}
	return "The provisioner failed." + why
}

// Concealed is the detail to show instead.
func (c concealed) Concealed() string { return string(c) }

// Schema is the schema of a built-in provisioner's arguments, or nil if there is
// no provisioner of that type. Each call makes a new one.
func Schema(typ string) *schema.Block {
	text, list := cty.String, cty.List(cty.String)
	switch typ {
	case "local-exec":
		return block(map[string]*schema.Attribute{
			"command":     required(text),
			"interpreter": optional(list),
			"working_dir": optional(text),
			"environment": optional(cty.Map(text)),
			"quiet":       optional(cty.Bool),
		})
	case "remote-exec":
		return block(map[string]*schema.Attribute{
			"inline":  optional(list),
			"script":  optional(text),
			"scripts": optional(list),
		})
	case "file":
		return block(map[string]*schema.Attribute{
			"source":      optional(text),
			"content":     optional(text),
			"destination": required(text),
		})
	}
	return nil
}

// ConnectionSchema is the schema of a connection block. It still has the
// arguments of the type winrm, so that Validate can say what to use instead.
func ConnectionSchema() *schema.Block {
	attrs := map[string]*schema.Attribute{"host": required(cty.String)}
	for _, name := range []string{
		"type", "user", "password", "timeout", "script_path", "target_platform",
		"private_key", "certificate", "agent_identity", "host_key",
		"proxy_scheme", "proxy_host", "proxy_user_name", "proxy_user_password",
		"bastion_host", "bastion_host_key", "bastion_user", "bastion_password",
		"bastion_private_key", "bastion_certificate", "cacert",
	} {
		attrs[name] = optional(cty.String)
	}
	for _, name := range []string{"port", "proxy_port", "bastion_port"} {
		attrs[name] = optional(cty.Number)
	}
	for _, name := range []string{"agent", "https", "insecure", "use_ntlm"} {
		attrs[name] = optional(cty.Bool)
	}
	return block(attrs)
}

func block(attrs map[string]*schema.Attribute) *schema.Block { return &schema.Block{Attributes: attrs} }

func required(ty cty.Type) *schema.Attribute { return &schema.Attribute{Type: ty, Required: true} }
func optional(ty cty.Type) *schema.Attribute { return &schema.Attribute{Type: ty, Optional: true} }
