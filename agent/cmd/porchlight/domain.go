package main

import (
	"context"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func domainCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "domain",
		Short: "Give an app a domain of your own, beside its address",
		Long: `Give an app a domain of your own, beside its address. Two records have to be made
where the domain is registered; once the server finds them, the app opens there,
to the same people. They have to stay: they are looked for every day.`,
		Example: `  porchlight domain add notes.example.org --app notes
  porchlight domain
  porchlight domain check notes.example.org
  porchlight domain remove notes.example.org`,
	}
	check := verb("check NAME", "Have the records of an own domain looked up now", "the NAME of the domain")
	remove := verb("remove NAME", "End an own domain; its records are worth nothing afterwards", "the NAME of the domain")
	cmd.AddCommand(addDomainCommand(c),
		ownerCommand(c, check, of((*agentapi.Client).CheckDomain), func(d agentapi.OwnDomain, _ []string) error { c.printDomain(d); return nil }),
		ownerCommand(c, remove, of((*agentapi.Client).RemoveDomain), says[agentapi.Done](c, "%s is no address of this computer any more.")))
	return listCommand(c, cmd, "List the own domains of this computer", (*agentapi.Client).OwnDomains, c.printDomains)
}

func addDomainCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "add NAME --app APP",
		Short:   "Print the records that make a domain an app's",
		Example: "  porchlight domain add notes.example.org --app notes",
		Args:    commandline.Exactly("the NAME of the domain"),
	}
	app := cmd.Flags().String("app", "", "the app, by its name, label or address")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if *app == "" {
			return commandline.Usagef("%s needs --app, the app that opens at the domain", cmd.CommandPath())
		}
		return nil
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.OwnDomain, error) {
		apps, _, err := appsCalled(ctx, client, *app)
		if err != nil {
			return agentapi.OwnDomain{}, err
		}
		return client.AddDomain(ctx, agentapi.DomainRequest{Name: args[0], App: apps[0].Name})
	}, func(d agentapi.OwnDomain, _ []string) error {
		c.printDomain(d)
		return nil
	})
}

// printDomain says how an own domain stands, and which records it needs.
func (t *terminal) printDomain(d agentapi.OwnDomain) {
	if d.State == agentapi.DomainProven {
		t.line("%s leads to %s.", printable(d.Name), printable(d.App))
		if d.Problem != "" {
			t.remark("%s", printable(d.Problem))
		}
		return
	}
	for _, r := range d.Records {
		t.line("%s  %s  %s", printable(r.Name)+".", r.Type, printable(r.Value)+map[bool]string{true: "."}[r.Type == "CNAME"])
	}
	if d.Problem != "" {
		t.remark("%s", printable(d.Problem))
	}
	t.remark("Make both records where the domain is registered. In place of CNAME the name of a zone takes A and AAAA, the addresses of the name behind it.")
	t.remark("Then type: porchlight domain check %s", printable(d.Name))
}

func (t *terminal) printDomains(all []agentapi.OwnDomain) error {
	const none = "No domains of your own yet. Try: porchlight domain add notes.example.org --app notes"
	return list(t, none, []string{"NAME", "APP", "STATE", "PROBLEM"}, all, func(d agentapi.OwnDomain) []string {
		return []string{d.Name, d.App, string(d.State), d.Problem}
	})
}
