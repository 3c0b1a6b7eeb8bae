package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func requestsCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "requests [APP]",
		Short: "Show what visitors asked of your apps, and how it went",
		Long: `Show what visitors asked of your apps, oldest first: when, method and path,
status, milliseconds, who, and what was wrong with the app. The last 500 requests
of each app are kept in memory; queries, headers and bodies never are.

With --follow, go on with those that come, until Ctrl-C; with --json as well, one
document a line.`,
		Example: `  porchlight requests notes --follow
  porchlight settings --requests=false    keep none`,
		Args: commandline.AtMost("the NAME of the app"),
	}
	follow := cmd.Flags().Bool("follow", false, "go on with the requests that come")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := c.owner(cmd.Context())
		if err != nil {
			return err
		}
		app := ""
		if len(args) == 1 {
			app = args[0]
		}
		got, err := client.Requests(cmd.Context(), app, 0, 0)
		if err != nil {
			return err
		}
		switch {
		case *asJSON && !*follow:
			return c.json(got.Requests)
		case !got.On:
			return errNoneKept
		case len(got.Requests) == 0 && !*follow:
			c.line("Nobody has asked for anything since Porchlight was started.")
			return nil
		}
		show := func(q agentapi.VisitorRequest) error { c.request(q, app == ""); return nil }
		if *asJSON {
			show = c.jsonLine
		}
		for _, q := range got.Requests {
			if err := show(q); err != nil {
				return err
			}
		}
		if !*follow {
			return nil
		}
		return unlessStopped(followRequests(cmd.Context(), client, app, got.Seq, show))
	}
	return cmd
}

var errNoneKept = errors.New("nothing of what visitors ask is kept. To change that, type: porchlight settings --requests")

// followRequests shows requests as they come, until ctx ends, whose error it
// returns, or the owner wants none kept.
func followRequests(ctx context.Context, client *agentapi.Client, app string, after uint64, show func(agentapi.VisitorRequest) error) error {
	for {
		got, err := client.Requests(ctx, app, after, agentapi.MaxWait)
		if agentapi.CodeOf(err) == agentapi.CodeUnavailable && ctx.Err() == nil {
			select { // the agent is busy, or another takes its place
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			continue
		}
		if err != nil {
			return err
		}
		if !got.On {
			return errNoneKept
		}
		after = got.Seq
		for _, q := range got.Requests {
			if err := show(q); err != nil {
				return err
			}
		}
	}
}

// request prints one: "14:03:22  200   12 ms  GET /notes  bob@example.com".
func (t *terminal) request(q agentapi.VisitorRequest, named bool) {
	status, who, app := strconv.Itoa(q.Status), q.Email, ""
	if q.Status == 0 {
		status = "-"
	}
	if who == "" {
		who = "not signed in"
	}
	if named {
		app = fmt.Sprintf("%-12s  ", printable(q.App))
	}
	shown := fmt.Sprintf("%s  %3s  %6d ms  %s%s %s  %s", q.At.Local().Format("15:04:05"), status, q.MS, app, printable(q.Method), printable(q.Path), printable(who))
	if q.Error != "" {
		shown += "  (" + printable(q.Error) + ")"
	}
	t.line("%s", shown)
}

// jsonLine prints one on a line of its own.
func (t *terminal) jsonLine(q agentapi.VisitorRequest) error {
	enc := json.NewEncoder(t.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(q)
}
