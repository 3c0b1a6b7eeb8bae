package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// inviting is one 'people invite'.
type inviting struct {
	c      cli
	apps   []string
	until  *string
	line   string
	noMail bool

	made    []agentapi.Invited // what became of each
	account agentapi.Account   // that they are invited to
	unknown error              // why that is not known
}

func inviteCommand(c cli) *cobra.Command {
	i := &inviting{c: c}
	cmd := &cobra.Command{
		Use:   "invite EMAIL... --app LABEL...",
		Short: "Invite people to apps",
		Long: `Invite people to apps: they get a mail with a link, and can open these apps
and nothing else once they have clicked it. Somebody who was invited before gets
the apps added; somebody who was removed starts again with these alone.

--line is what you write to them, one line without a web address, set apart in the
mail and on the invitation's page. With --no-mail nothing is mailed, and you hand over
the links that are printed; 'porchlight people link' says what they are.

With --until the apps end for them then, as if they were withdrawn: connections
that are open are closed. Give an app again to prolong it, or to end it sooner.

Of several addresses each is invited by itself: what was refused for one is printed,
the others are invited, and the exit code is 1.`,
		Example: `  porchlight people invite bob@example.com --app Notes --app Wiki
  porchlight people invite lena@example.com --app Photos --until 7d
  porchlight people invite lena@example.com jonas@example.de --app Photos --line "Have a look."`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return commandline.Usagef("%s needs the EMAIL of the person", cmd.CommandPath())
			case len(args) > agentapi.MaxInvited:
				return commandline.Usagef("%s takes at most %d addresses at once", cmd.CommandPath(), agentapi.MaxInvited)
			}
			return nil
		},
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if len(i.apps) == 0 {
				return commandline.Usagef("%s needs --app, the label of an app they may open", cmd.CommandPath())
			}
			return checkUntil(cmd)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&i.apps, "app", nil, "label, name or address of an app they may open; give it again for more")
	f.StringVar(&i.line, "line", "", "what you write to them: one line of at most 200 characters")
	f.BoolVar(&i.noMail, "no-mail", false, "mail nothing; you hand over the links")
	i.until = untilFlag(cmd, "it ends for them")
	return ownerCommand(c, cmd, i.invite, func(any, []string) error {
		i.say()
		return nil
	})
}

// severalInvited are what became of several people who were invited at once.
type severalInvited struct{ agentapi.Invitations }

// failed counts who was refused.
func (s severalInvited) failed() error {
	refused := 0
	for _, one := range s.Invitations.Invitations {
		if one.Error != "" {
			refused++
		}
	}
	if refused == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d addresses could not be invited", refused, len(s.Invitations.Invitations))
}

// invite invites people. What is refused to one alone is a refusal of the command; of
// several each is told what became of them.
func (i *inviting) invite(ctx context.Context, client *agentapi.Client, emails []string) (result any, err error) {
	apps, _, err := appsCalled(ctx, client, i.apps...)
	if err != nil {
		return nil, err
	}
	for n, app := range apps {
		i.apps[n] = app.Label
	}
	if len(emails) == 1 && i.line == "" && !i.noMail { // as every agent takes it
		invitation, err := client.Invite(ctx, agentapi.InviteRequest{Email: emails[0], Apps: i.apps, Until: *i.until})
		if err != nil {
			return nil, err
		}
		i.made, result = []agentapi.Invited{{Email: invitation.Email, URL: invitation.URL}}, invitation
	} else {
		made, err := client.InviteAll(ctx, agentapi.InvitationsRequest{
			Emails: emails, Apps: i.apps, Line: i.line, Until: *i.until, NoMail: i.noMail,
		})
		if err != nil {
			return nil, err
		}
		i.made, result = made.Invitations, severalInvited{made}
		if len(emails) == 1 {
			if why := made.Invitations[0].Error; why != "" {
				return nil, agentapi.Errorf(agentapi.CodeInvalid, "%s", why)
			}
			result = made.Invitations[0]
		}
	}
	i.account, i.unknown = client.Account(ctx) // the invitations are out all the same
	return result, nil
}

// say prints what became of each, and their links where nothing is mailed.
func (i *inviting) say() {
	var invited []string
	for _, one := range i.made {
		if one.Error != "" {
			i.c.line("%s is not invited: %s", printable(one.Email), one.Error)
			continue
		}
		invited = append(invited, one.Email)
		i.c.line("%s is invited to %s%s, at %s", printable(one.Email), printable(strings.Join(i.apps, ", ")), askedUntil(*i.until), one.URL)
		if i.noMail && one.Link != nil {
			i.c.line("  Their link, which signs nobody in: %s", one.Link.URL)
		}
	}
	if len(invited) > 0 && i.unknown == nil {
		i.c.nextInvited(i.account.Local, i.noMail, invited)
	}
}

func linkCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "link ID",
		Short: "Show the link of somebody's invitation, and a QR code of it",
		Long: `Show the link of somebody's newest invitation that was not used yet, to hand it
over yourself: as text, and as a QR code where the terminal can show one.

It names the invitation and signs nobody in. Whoever opens it is asked for a code that
is mailed to the invited address; then one click accepts. The link in the mail of an
invitation is another one, and is shown nowhere else.`,
		Example: "  porchlight people link bob@example.com",
		Args:    commandline.Exactly("the ID or e-mail address of the person"),
	}
	return ownerCommand(c, cmd, called(accountID, (*agentapi.Client).InvitationLink), func(link agentapi.InvitationLink, args []string) error {
		c.line("%s", link.URL)
		c.qr(link.URL)
		c.remark("It signs nobody in: whoever opens it is asked for the code mailed to the invited address. It works until %s.", link.Until.Local().Format("2 January, 15:04"))
		return nil
	})
}
