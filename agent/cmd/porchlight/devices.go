package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
	"porchlight/internal/durable"
)

func devicesCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "Make, list and revoke certificates by which devices open apps",
		Long: `Make, list and revoke certificates: with one, a device or a program opens the apps
that it is for in one person's name, without signing in. What is made here is for
the owner; others make theirs at /.porchlight/devices of your address.`,
		Example: `  porchlight devices
  porchlight devices add phone --app notes --out phone.p12
  porchlight devices revoke ID`,
	}
	revoke := &cobra.Command{
		Use:     "revoke ID",
		Short:   "End a device's certificate, whosever it is, at once",
		Example: "  porchlight devices revoke ID",
		Args:    commandline.Exactly("the ID of the device"),
	}
	cmd.AddCommand(addDeviceCommand(c), ownerCommand(c, revoke, of((*agentapi.Client).RevokeDevice), func(closed agentapi.Closed, args []string) error {
		c.revoked("Revoked", "a device", args[0], closed)
		return nil
	}))
	return listCommand(c, cmd, "List everybody's devices, newest first", (*agentapi.Client).Devices, c.printDevices)
}

// newDevice is what add prints: the file is where --out says, or behind the link.
type newDevice struct {
	ID   string `json:"id"`
	Code string `json:"code"`
	URL  string `json:"url,omitempty"`
}

func addDeviceCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME --app APP (--out FILE | --link)",
		Short: "Make a certificate for a device of yours",
		Long: `Make a certificate for a device of yours, good for a year. FILE (.p12) has it with its
private key, for the device to import, or curl --cert; the code that opens FILE is
shown once. With --link you get an address that gives FILE to whoever opens it first
within ten minutes: send the code by another way.`,
		Example: `  porchlight devices add phone --app notes --app photos --out phone.p12
  porchlight devices add tablet --app notes --link`,
		Args: commandline.Exactly("the NAME, to tell it from others"),
	}
	var req agentapi.DeviceRequest
	f := cmd.Flags()
	f.StringArrayVar(&req.Apps, "app", nil, "label, name or address of an app it may open; give it again for more")
	out := f.String("out", "", "where to write the certificate")
	f.BoolVar(&req.Link, "link", false, "make an address at which the device fetches it, once")
	f.BoolVar(&req.Old, "legacy", false, "for a program that cannot read today's files: weaker encryption")
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case strings.TrimSpace(args[0]) == "":
			return commandline.Usagef("%s needs a NAME", cmd.CommandPath())
		case len(req.Apps) == 0:
			return commandline.Usagef("%s needs --app, an app that the device may open", cmd.CommandPath())
		case (*out == "") != req.Link:
			return commandline.Usagef("%s needs --out, the FILE to write, or --link", cmd.CommandPath())
		}
		return nil
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (newDevice, error) {
		apps, _, err := appsCalled(ctx, client, req.Apps...)
		if err != nil {
			return newDevice{}, err
		}
		for i, app := range apps {
			req.Apps[i] = app.Name
		}
		if info, err := os.Stat(*out); err == nil && !info.Mode().IsRegular() {
			return newDevice{}, fmt.Errorf("%s is not a file. Choose another place.", *out)
		}
		req.Name = args[0]
		made, err := client.MakeDevice(ctx, req)
		if err != nil {
			return newDevice{}, err
		}
		if !req.Link {
			if err := durable.Replace(*out, made.File); err != nil {
				_, _ = client.RevokeDevice(ctx, made.ID) // nobody has it
				return newDevice{}, fmt.Errorf("The certificate was not saved as %s: %w. Choose another place.", *out, durable.Plain(err))
			}
		}
		return newDevice{made.ID, made.Code, made.URL}, nil
	}, func(made newDevice, _ []string) error {
		c.printDevice(made, *out)
		return nil
	})
}

// printDevice says how to use a certificate that was just made.
func (t *terminal) printDevice(made newDevice, file string) {
	t.line("code: %s", made.Code)
	if made.URL != "" {
		t.line("link: %s", made.URL)
		t.qr(made.URL)
		t.remark("The code is shown only this once. The link works once, for ten minutes: open it on the device, then enter the code.")
	} else {
		t.line("file: %s", file)
		t.remark("The code is shown only this once. Import the file on the device and enter the code, or:")
		t.remark("  curl --cert-type P12 --cert %s:%s https://…", file, made.Code)
	}
	t.remark("It opens these apps alone, for a year, or until: porchlight devices revoke %s", made.ID)
}

func (t *terminal) printDevices(all []agentapi.Device) error {
	const none = "No devices yet. Try: porchlight devices add phone --app LABEL --out phone.p12"
	return list(t, none, []string{"NAME", "APPS", "FOR", "UNTIL", "ID"}, all, func(d agentapi.Device) []string {
		return []string{d.Name, strings.Join(d.AppNames, ", "), d.Email, moment(d.Ends), d.ID}
	})
}
