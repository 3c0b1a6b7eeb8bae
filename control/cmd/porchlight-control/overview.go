package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/internal/commandline"
	"porchlight/internal/oneline"
)

// found is what search prints for programs: the first of each kind.
type found struct {
	Accounts  []control.Account        `json:"accounts"`
	Computers []control.ListedComputer `json:"computers"`
	Clients   []control.ListedClient   `json:"clients"`
	// More says that there are others, and Partial that some may be missing yet.
	More    bool `json:"more,omitempty"`
	Partial bool `json:"partial,omitempty"`
}

func searchCommand(term terminal) *cobra.Command {
	var asJSON bool
	cmd := clientCommand("search TEXT", "Find accounts, computers and clients by how an address, name or id begins", commandline.Exactly("a TEXT"),
		func(ctx context.Context, c *admin.Client, args []string) error {
			hits, err := search(ctx, c, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(hits)
			}
			return term.found(hits)
		})
	cmd.Long = `Find accounts, computers and clients by how a mail address, a name or an id
begins, in letters of any case. @example.net finds the accounts of that domain.`
	jsonFlag(cmd, &asJSON)
	return cmd
}

// search asks each list, by ids where so much is given that it is no word.
func search(ctx context.Context, c *admin.Client, text string) (found, error) {
	f := found{Accounts: []control.Account{}, Computers: []control.ListedComputer{}, Clients: []control.ListedClient{}}
	fields := []string{"", control.ByID}
	if len(text) < leastID {
		fields = fields[:1]
	}
	for _, by := range fields {
		if err := hits(ctx, c, &f, &f.Accounts, admin.Accounts, text, by, func(a control.Account) string { return a.ID }); err != nil {
			return f, err
		}
		if strings.HasPrefix(text, "@") {
			break
		}
		err := errors.Join(
			hits(ctx, c, &f, &f.Computers, admin.Computers, text, by, func(c control.ListedComputer) string { return c.ID }),
			hits(ctx, c, &f, &f.Clients, admin.Clients, text, by, func(c control.ListedClient) string { return c.ID }))
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// leastID is how much of an id is searched for, in bytes: less is found in those of others.
const leastID = 6

// hits adds the first page of a list to what was found of it.
func hits[T any](ctx context.Context, c *admin.Client, f *found, into *[]T, list admin.Listing[T], text, by string, id func(T) string) error {
	p, err := admin.Listed(ctx, c, list, control.Query{Prefix: text, By: by})
	known := map[string]bool{}
	for _, row := range *into {
		known[id(row)] = true
	}
	for _, row := range p.Rows {
		if !known[id(row)] {
			*into = append(*into, row)
		}
	}
	f.More, f.Partial = f.More || p.Next != "", f.Partial || p.Partial
	return err
}

func (t terminal) found(f found) error {
	var rows [][]string
	for _, a := range f.Accounts {
		rows = append(rows, []string{"account", a.Email, a.ID, sinceOf(a.Suspended)})
	}
	for _, c := range f.Computers {
		rows = append(rows, []string{"computer", c.Name, c.ID, sinceOf(c.Suspended)})
	}
	for _, c := range f.Clients {
		rows = append(rows, []string{"client", oneline.Printable(c.Name), c.ID, sinceOf(c.Suspended)})
	}
	if len(rows) == 0 {
		fmt.Fprintln(t.err, "Nothing begins like that.")
	} else if err := commandline.PrintTable(t.out, []string{"KIND", "NAME", "ID", "SUSPENDED"}, rows); err != nil {
		return err
	}
	if f.More {
		fmt.Fprintln(t.err, "There are more. Type more of it.")
	}
	t.partial(f.Partial)
	return nil
}

func (t terminal) partial(is bool) {
	if is {
		fmt.Fprintln(t.err, "Some may be missing yet: after an update the server makes its indexes, for a minute or so.")
	}
}

// sinceOf is a day, or a dash for none.
func sinceOf(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.Format(time.DateOnly)
}

func accountShowCommand(term terminal) *cobra.Command {
	return showCommand(term, "show EMAIL", "Show an account: its computers, and how it signs in", "an EMAIL or an id", (*admin.Client).Account, func(a control.AccountDetail) {
		fmt.Fprintf(term.out, "%s (%s), since %s\n", a.Email, a.ID, a.CreatedAt.Format(time.DateOnly))
		if a.Operator {
			fmt.Fprintln(term.out, "It is an operator.")
		}
		for _, s := range a.Suspensions {
			fmt.Fprintf(term.out, "Suspended since %s (%s %s): %s\n", s.At.Format(time.DateTime), s.Kind, s.Name, s.Reason)
		}
		providers := cmp.Or(strings.Join(a.Providers, ", "), "none")
		mail := "on"
		if a.MailOff {
			mail = "off"
		}
		fmt.Fprintf(term.out, "Sign-in by mail: %s. Passkeys: %d. Providers: %s. Sessions: %d.\n", mail, a.Passkeys, providers, a.Sessions)
		for _, c := range a.Computers {
			fmt.Fprintf(term.out, "Computer: %s (%s)\n", c.URL, c.ID)
		}
		term.partial(a.Partial)
	})
}

func computerShowCommand(term terminal) *cobra.Command {
	return showCommand(term, "show NAME", "Show a computer, with what it carried each day", "the NAME or id of a computer", (*admin.Client).Computer, func(c control.ComputerDetail) {
		fmt.Fprintf(term.out, "%s (%s) of %s, since %s\n", c.URL, c.ID, c.Owner, c.CreatedAt.Format(time.DateOnly))
		switch {
		case c.On:
			fmt.Fprintln(term.out, "It is on.")
		case c.Seen.IsZero():
			fmt.Fprintln(term.out, "It was never here.")
		default:
			fmt.Fprintf(term.out, "It is away; it was here last at %s.\n", stamp(c.Seen))
		}
		if c.Suspension != nil {
			fmt.Fprintf(term.out, "Suspended since %s: %s\n", c.Suspension.At.Format(time.DateTime), c.Suspension.Reason)
		} else if !c.Suspended.IsZero() {
			fmt.Fprintf(term.out, "Suspended since %s, with its owner.\n", c.Suspended.Format(time.DateTime))
		}
		if cert := c.Certificate; cert != nil {
			fmt.Fprintf(term.out, "Certificate: of %s, until %s.\n", oneline.Printable(cert.Issuer), stamp(cert.Ends))
			if cert.Problem != "" {
				fmt.Fprintf(term.out, "This machine does not trust it: %s.\n", oneline.Printable(cert.Problem))
			}
		}
		fmt.Fprintf(term.out, "People: %d.\n", c.People)
		for _, d := range c.Domains {
			fmt.Fprintf(term.out, "Own domain: %s, %s.\n", d.Name, d.State)
		}
		if len(c.Usage) > 0 {
			_ = commandline.PrintTable(term.out, usageHeader, usageRows(c.Usage))
		}
	})
}

// showCommand shows one thing.
func showCommand[T any](term terminal, use, short, named string, ask func(*admin.Client, context.Context, string) (T, error), print func(T)) *cobra.Command {
	var asJSON bool
	cmd := clientCommand(use, short, commandline.Exactly(named), func(ctx context.Context, c *admin.Client, args []string) error {
		it, err := ask(c, ctx, args[0])
		if err != nil {
			return err
		}
		if asJSON {
			return term.json(it)
		}
		print(it)
		return nil
	})
	jsonFlag(cmd, &asJSON)
	return cmd
}

var usageHeader = []string{"DAY", "VISITS", "UP", "DOWN"}

func usageRow(d control.UsageDay) []string {
	return []string{d.Day, strconv.FormatUint(d.Visits, 10), sizeOf(d.BytesUp), sizeOf(d.BytesDown)}
}

func usageRows(days []control.UsageDay) (rows [][]string) {
	for _, d := range days {
		rows = append(rows, usageRow(d))
	}
	return rows
}

// sizeOf is a number of bytes in a few characters.
func sizeOf(n uint64) string {
	value, unit := float64(n), 0
	for units := len(byteUnits); value >= 1000 && unit < units-1; unit++ {
		value /= 1000
	}
	if unit == 0 {
		return strconv.FormatUint(n, 10) + " B"
	}
	return fmt.Sprintf("%.1f %s", value, byteUnits[unit])
}

var byteUnits = []string{"B", "kB", "MB", "GB", "TB", "PB"}

func usageCommand(term terminal) *cobra.Command {
	cmd := listCommand(term, "Print the visits and bytes of all computers, by day (UTC), for 90 days", (*admin.Client).Usage,
		"Nobody visited yet. Numbers are written every five minutes.", usageHeader, usageRow)
	cmd.Use = "usage"
	return cmd
}

func nodesCommand(term terminal) *cobra.Command {
	cmd := listCommand(term, "List the nodes of the service", (*admin.Client).Nodes, "The server does not run.",
		[]string{"NODE", "VERSION", "ADDRESS", "STATE", "CERTIFICATE UNTIL"}, func(n control.Node) []string {
			state := "serving"
			if n.Draining {
				state = "draining"
			}
			return []string{cmp.Or(n.Name, "-"), cmp.Or(n.Version, "-"), cmp.Or(n.Address, "-"), state, sinceOf(n.CertificateEnds)}
		})
	cmd.Use = "nodes"
	return cmd
}

func limitsCommand(term terminal) *cobra.Command {
	cmd := listCommand(term, "List the limits of the server, and how often each was reached since it began", (*admin.Client).Limits,
		"The server does not run.", []string{"LIMIT", "VALUE", "REACHED"}, func(l control.Limit) []string {
			value := "-"
			if l.Value != 0 {
				value = strconv.Itoa(l.Value)
			}
			return []string{l.Name, value, strconv.FormatUint(l.Reached, 10)}
		})
	cmd.Use = "limits"
	return cmd
}
