// Package login implements the commands login and logout, which store and delete credentials
// for registry hosts.
package login

import (
	"cmp"
	"context"
	"errors"
	"runtime"

	"github.com/opentofu/svchost"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/net/registry"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Login declares login.
func Login() command.Command {
	return command.Command{
		Name: "login", Synopsis: "Obtain and save credentials for a remote host", Usage: "[options] <hostname>",
		Help: `Gets an API token for a host by way of its login page in your web browser
and keeps it: in the credentials helper of the CLI configuration, or without
one in the file credentials.tfrc.json of the configuration directory.`,
		Uses: command.Browser,
		Args: []command.Arg{{Name: "hostname", Help: "The host to log in to."}},
		Prepare: func() (flag.Flags, command.Run) {
			var j flags.JSON
			input := true
			fs := flag.Flags{flag.Bool(&input, "input", "Whether questions may be asked; without them login cannot work.")}
			return append(fs, j.Flags().Hide()...), func(ctx context.Context, c *command.Call) int {
				if !j.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				if len(c.Args) != 1 {
					return c.UsageError("Unexpected argument", "The login command expects exactly one argument: the host to log in to.")
				}
				if !c.Prompt.May(input) {
					return c.Fail(diag.Errorf(diag.CodeCLILogin, nil, "Login is an interactive command", "The \"%s login\" command uses interactive prompts to obtain and record credentials, so it can't be run with input disabled.\n\nTo configure credentials in a non-interactive context, write existing credentials directly to a CLI configuration file.", view.Program))
				}
				return c.Report.Status(login(ctx, c, c.Arg(0)))
			}
		},
	}
}

// login requests a token for a host with the user's browser, and stores it.
func login(ctx context.Context, c *command.Call, name string) diag.List {
	host, reg, ds := hostNamed(c, name)
	if ds.HasErrors() {
		return ds
	}
	if reg.Manual(name) {
		return diag.Errorf(diag.CodeCLILogin, nil, "Credentials for "+host+" are manually configured", "The \"%s login\" command cannot log in because credentials for this host are already configured in a CLI configuration file.\n\nTo log in, first revoke the existing credentials and remove that block from the CLI configuration.", view.Program)
	}
	service, err := reg.LoginService(ctx, name)
	if err != nil {
		var missing *registry.ServiceError
		if errors.As(err, &missing) {
			return diag.Errorf(diag.CodeCLILogin, nil, "Host does not support "+view.Product+" login", "The given hostname %q does not allow creating authorization tokens by way of this command: %s.", host, err)
		}
		return diag.Errorf(diag.CodeCLILogin, nil, "Service discovery failed for "+host, "%s.", err)
	}
	if ds := confirmLogin(ctx, c, host, reg); ds.HasErrors() {
		return ds
	}
	token, err := reg.LoginWith(ctx, service, showLogin(c, host))
	if err != nil {
		return diag.Errorf(diag.CodeCLILogin, nil, "Failed to obtain a token", "%s.", err)
	}
	if err := reg.Store(ctx, name, token); err != nil {
		return diag.Errorf(diag.CodeCLILogin, nil, "Failed to save API token", "The token for %s was obtained, but it cannot be saved: %s.", host, err)
	}
	c.Report.Human.Say("\n")
	c.Report.Human.Good("Success!")
	c.Report.Human.Say(" " + c.Report.Names.Product() + " has obtained and saved an API token.\n\nThe new API token will be used for any future " + c.Report.Names.Product() + " command that must make\nauthenticated requests to " + host + ".\n\n")
	return nil
}

// hostNamed parses a host name and returns the client for the host.
func hostNamed(c *command.Call, name string) (shown string, reg *registry.Client, ds diag.List) {
	h, err := svchost.ForComparison(name)
	if err != nil {
		return "", nil, diag.Errorf(diag.CodeCLILogin, nil, "Invalid hostname", "The given hostname %q is not valid: %s.", name, err)
	}
	cfg, ds := c.Directory.Settings()
	if ds.HasErrors() {
		return "", nil, ds
	}
	return h.ForDisplay(), c.Directory.Registry(cfg), ds
}

// confirmLogin tells the user where the token will be stored, and asks for confirmation.
func confirmLogin(ctx context.Context, c *command.Call, host string, reg *registry.Client) diag.List {
	place, helper, err := reg.Where()
	if err != nil {
		return diag.Errorf(diag.CodeCLILogin, nil, "Credentials cannot be stored", "%s.", err)
	}
	where := "If login is successful, " + c.Report.Names.Product() + " will store the token in plain text in\nthe following file for use by subsequent commands:\n    " + place
	if helper {
		where = "If login is successful, " + c.Report.Names.Product() + " will store the token in the configured\n\"" + place + "\" credentials helper for use by subsequent commands."
	}
	c.Report.Human.Say(c.Report.Names.Product() + " will request an API token for " + host + " using OAuth.\n\nThis will work only if you are able to use a web browser on this computer to\ncomplete a login process. If not, you must obtain an API token by another\nmeans and configure it in the CLI configuration manually.\n\n" + where + "\n\n")
	answer, err := c.Prompt.Ask(ctx, prompt.Question{Title: "Do you want to proceed?", Text: "Only 'yes' will be accepted to confirm."})
	if err != nil {
		return diag.Errorf(diag.CodeCLINotApproved, nil, "Failed to handle confirmation prompt", "%s.", err)
	}
	if answer != "yes" {
		return diag.Errorf(diag.CodeCLIInterrupted, nil, "Login cancelled", "Nothing was asked for and nothing stored.")
	}
	return nil
}

// showLogin returns a function that opens the login page in the user's browser and prints its
// URL.
func showLogin(c *command.Call, host string) func(url string) {
	return func(url string) {
		c.Report.Human.Say("\nThe login page of " + host + " is to open in your web browser. If it does not,\nopen this URL yourself:\n    " + url + "\n\nWaiting for the host to signal that login was successful.\n\n")
		browse(c, url)
	}
}

// browse opens the user's browser. It ignores errors, because the URL was printed.
func browse(c *command.Call, url string) {
	cmd := sys.Command{Path: "xdg-open", Args: []string{url}, Dir: c.Dir, Env: c.Env}
	switch runtime.GOOS {
	case "darwin":
		cmd.Path = "open"
	case "windows":
		cmd.Path, cmd.Args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd.Path = cmp.Or(c.Env.Get("BROWSER"), cmd.Path)
	ctx := context.WithoutCancel(c.Report.Context)
	go func() { // not waited for: the browser may run longer than this process
		_ = c.Run(ctx, cmd)
	}()
}

// Push declares push, which uploaded configuration to a service that does not exist any more.
func Push() command.Command {
	return command.Command{
		Name: "push", Synopsis: "Obsolete: uploaded configuration to a service that is gone", Usage: "[options] [DIR]", Hidden: true, Mixed: true,
		Help: "This command was for the first version of Terraform Enterprise, which has\nended. It does nothing any more.",
		Prepare: func() (flag.Flags, command.Run) {
			return nil, func(_ context.Context, c *command.Call) int {
				return c.Fail(diag.Errorf(diag.CodeCLIPush, nil, "Command \""+view.Program+" push\" is no longer supported", "This command uploaded configuration to the first version of Terraform Enterprise, which has ended. To push configuration to a service of today, use its API."))
			}
		},
	}
}
