package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/control/admin"
	"porchlight/control/audit"
	"porchlight/internal/commandline"
)

func auditCommand(term terminal) *cobra.Command {
	return group("audit", "What operators did, and what happened to the security of accounts", auditListCommand(term), auditVerifyCommand(term))
}

func auditListCommand(term terminal) *cobra.Command {
	var asJSON bool
	cmd := clientCommand("list", "Print the audit log, node by node, the oldest row first", commandline.Exactly(), func(ctx context.Context, c *admin.Client, _ []string) error {
		lines := json.NewEncoder(term.out)
		return c.Audit(ctx, func(row audit.Row) error {
			if asJSON {
				return lines.Encode(row)
			}
			words := strings.Join(strings.Fields(row.Kind+" "+row.By+" "+row.On+" "+row.What), " ")
			_, err := fmt.Fprintf(term.out, "%s  %s %d  %s\n", row.At.Format(time.DateTime), row.Node, row.Seq, words)
			return err
		})
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each row as a line of JSON, as it is in its chain")
	return cmd
}

// errNotWhole ends audit verify where it found something; what, is printed already.
var errNotWhole = errors.New("the audit log is not whole")

func auditVerifyCommand(term terminal) *cobra.Command {
	var asJSON bool
	var from string
	cmd := clientCommand("verify", "Look whether rows of the audit log were changed, removed or cut off", commandline.Exactly(), func(ctx context.Context, c *admin.Client, _ []string) error {
		heads, err := headsIn(from)
		if err != nil {
			return err
		}
		report, err := c.VerifyAudit(ctx, heads)
		if err != nil {
			return err
		}
		if asJSON {
			err = term.json(report)
		} else {
			term.report(report)
		}
		if err == nil && len(report.Problems) > 0 {
			err = errNotWhole
		}
		return err
	})
	cmd.Long = `Look whether each row of the audit log is as it was written and in its place. With
--head FILE, which has what serve --audit-head told (a file, or lines of syslog), also
whether the end of a chain was cut off, or all of it written anew. Exit code 1: it was.`
	cmd.Flags().StringVar(&from, "head", "", "file with the heads that were told")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// headsIn are the heads in a file, none where there is no name.
func headsIn(path string) ([]audit.Head, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	heads, err := audit.ReadHeads(f)
	if err == nil && len(heads) == 0 {
		err = errors.New("there is no head in it")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return heads, nil
}

func (t terminal) report(r audit.Report) {
	for _, c := range r.Chains {
		proven := ""
		switch {
		case len(r.Problems) > 0:
		case c.Proven > 0:
			proven = fmt.Sprintf(", proven up to row %d by a head of %s", c.Proven, c.ProvenAt.Format(time.DateTime))
		case r.Heads > 0:
			proven = ", proven by no head"
		}
		fmt.Fprintf(t.out, "%s: %d rows, %d to %d%s\n", c.Node, c.Rows, c.First, c.Last, proven)
	}
	for _, problem := range r.Problems {
		fmt.Fprintln(t.out, problem)
	}
	switch {
	case len(r.Problems) > 0:
	case r.Heads == 0:
		fmt.Fprintln(t.err, "None is removed or changed. Whether the end was cut off, or all of it written anew, is told by heads that were kept elsewhere: --head FILE.")
	default:
		fmt.Fprintln(t.err, "Whole: none is removed or changed. Rows behind the one that is proven could be cut off unseen until the next head, which a node tells every five minutes, when it starts and when it stops.")
	}
}
