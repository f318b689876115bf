package cli

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
)

func logoutCommand(ctx context.Context, s *session, args []string) int {
	var j jsonFlags
	f := newFlags("logout")
	j.add(f)
	if !s.parse(f, args) || !s.useJSON(j) {
		return 1
	}
	defer s.finish()
	if f.NArg() != 1 {
		return s.usageError("logout", "Unexpected argument", "The logout command expects exactly one argument: the host to log out of.")
	}
	return s.status(s.logout(ctx, f.Arg(0)))
}

// logout forgets the token for a host.
func (s *session) logout(ctx context.Context, name string) diag.List {
	host, reg, ds := s.hostNamed(name)
	if ds.HasErrors() {
		return ds
	}
	if reg.Manual(name) {
		return diag.Errorf(nil, "Credentials for "+host+" are manually configured", "The \"%s logout\" command cannot log out because credentials for this host are manually configured in a CLI configuration file.\n\nTo log out, revoke the existing credentials and remove that block from the CLI configuration.", view.Program)
	}
	place, helper, err := reg.Where()
	if err != nil || !helper && !reg.Stored(name) {
		s.human.Say("No credentials for " + host + " are stored.\n\n")
		s.stream.Log("No credentials for " + host + " are stored")
		return ds
	}
	what := "following file:\n    " + place
	if helper {
		what = "configured\n\"" + place + "\" credentials helper."
	}
	s.say("Removing the stored credentials for " + host + " from the " + what + "\n\n")
	if err := reg.Forget(ctx, name); err != nil {
		return append(ds, diag.Errorf(nil, "Failed to remove API token", "The stored token for %s cannot be removed: %s.", host, err)...)
	}
	s.human.Good("Success!")
	s.human.Say(" " + view.Product + " has removed the stored API token for " + host + ".\n\n")
	s.stream.Log("Success! " + view.Product + " has removed the stored API token for " + host)
	return ds
}

func logoutUsage() string {
	return usageText("Usage: "+view.Program+" [global options] logout [options] <hostname>\n\n"+
		"  Removes the stored API token for a host. The token itself stays valid until\n  it is revoked at the host.",
		option("-json", "Produce output in a machine-readable JSON format."),
		option("-json-into=path", "Write the machine-readable output to a file, besides the output for people."))()
}
