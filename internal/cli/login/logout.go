package login

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Logout declares logout.
func Logout() command.Command {
	return command.Command{
		Name: "logout", Synopsis: "Remove locally-stored credentials for a remote host", Usage: "[options] <hostname>",
		Help: `Removes the stored API token for a host. The token itself stays valid until
it is revoked at the host.`,
		Args: []command.Arg{{Name: "hostname", Help: "The host to log out of."}},
		Prepare: func() (flag.Flags, command.Run) {
			var j flags.JSON
			return j.Flags(), func(ctx context.Context, c *command.Call) int {
				if !j.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				if len(c.Args) != 1 {
					return c.UsageError("Unexpected argument", "The logout command expects exactly one argument: the host to log out of.")
				}
				return c.Report.Status(logout(ctx, c, c.Arg(0)))
			}
		},
	}
}

// logout deletes the token for a host.
func logout(ctx context.Context, c *command.Call, name string) diag.List {
	host, reg, ds := hostNamed(c, name)
	if ds.HasErrors() {
		return ds
	}
	if reg.Manual(name) {
		return diag.Errorf(diag.CodeCLILogin, nil, "Credentials for "+host+" are manually configured", "The \"%s logout\" command cannot log out because credentials for this host are manually configured in a CLI configuration file.\n\nTo log out, revoke the existing credentials and remove that block from the CLI configuration.", view.Program)
	}
	place, helper, err := reg.Where()
	if err != nil || !helper && !reg.Stored(name) {
		c.Report.Human.Say("No credentials for " + host + " are stored.\n\n")
		c.Report.Stream.Log("No credentials for " + host + " are stored")
		return ds
	}
	what := "following file:\n    " + place
	if helper {
		what = "configured\n\"" + place + "\" credentials helper."
	}
	c.Report.Say("Removing the stored credentials for " + host + " from the " + what + "\n\n")
	if err := reg.Forget(ctx, name); err != nil {
		return append(ds, diag.Errorf(diag.CodeCLILogin, nil, "Failed to remove API token", "The stored token for %s cannot be removed: %s.", host, err)...)
	}
	c.Report.Human.Good("Success!")
	c.Report.Human.Say(" " + c.Report.Names.Product() + " has removed the stored API token for " + host + ".\n\n")
	c.Report.Stream.Log("Success! " + c.Report.Names.Product() + " has removed the stored API token for " + host)
	return ds
}
