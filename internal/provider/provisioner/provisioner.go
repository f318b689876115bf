// Package provisioner implements the built-in provisioners: local-exec runs a command on
// this machine, file copies to another machine, and remote-exec runs scripts there. The
// latter two use SSH.
//
// Main types: Request, and the functions Schema, Validate and Run. The one rule: no code in
// this package reads the process's environment or working directory; a Request contains
// everything that a provisioner may use.
//
// The arguments, their defaults and the lines of output are those of OpenTofu 1.12, with
// these exceptions for safety: scripts are deleted from the target, other users there
// cannot read or write them, and paths are quoted. Content that is copied into a directory
// gets its own name there, as documented, and never replaces the directory.
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
	Config     cty.Value // wholly known and without marks, of type Schema(Type).ImpliedType()
	Connection cty.Value // wholly known and without marks, of type ConnectionSchema().ImpliedType(); NilVal for none
	Dir        string    // the root module's working directory; required
	Env        sys.Env   // the complete environment of child processes, which also contains the address of the SSH agent

	// Output receives each line of output without its line break, one call at a time. nil
	// discards them.
	Output func(line string)
	// Exec runs a child process, like sys.Run. It is required for local-exec.
	Exec func(context.Context, sys.Command) error
	// Dial connects to other machines and to the SSH agent. nil means a direct connection.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Types returns the names of the built-in provisioners, sorted.
func Types() []string { return []string{"file", "local-exec", "remote-exec"} }

// Run runs a provisioner. If ctx ends first, it ends the child process with its children,
// or closes the remote session, and returns an error. The messages have no source range;
// see diag.List.Under.
//
// An error may contain commands and their output. If the configuration is sensitive or
// ephemeral, show the detail that the method Concealed() string of the message's Extra
// returns instead. Concealing Output is up to the caller.
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
	if ctx.Err() != nil && !errors.Is(err, sys.ErrInterrupted) { // that error mentions the interruption itself
		err = fmt.Errorf("interrupted: %w", err)
	}
	return diag.List{{Code: diag.CodeProvisionerFailed, Summary: r.Type + " provisioner error", Detail: diag.Reason(err), Extra: discreet(err)}}
}

// concealed is the detail of an error to show if the configuration is sensitive.
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

// Concealed returns the detail to show.
func (c concealed) Concealed() string { return string(c) }

// Schema returns the schema of a built-in provisioner's arguments, or nil for another type.
// Each call returns a new one.
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

// ConnectionSchema returns the schema of a connection block. It includes the arguments of
// the type winrm, so that Validate can report the alternative.
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
