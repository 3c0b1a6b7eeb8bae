package main

import (
	"strings"

	"porchlight/agent/agentapi"
)

// What to do next, for people who have just done something: one line beside the result,
// which is on standard output for programs.

// argument is a text as a shell takes it for one argument.
func argument(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.@:/", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 && text[0] != '-' {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// nextInvite says how to open an app that is on, and how to share it.
func (c cli) nextInvite(name, label string) {
	self, suffix := c.typed()
	c.remark("Next: open it with %s open %s%s%s, or invite somebody: %s people invite EMAIL --app %s%s",
		self, argument(name), printInstead(), suffix, self, argument(printable(label)), suffix)
}

// nextConnected says what there is to do with a computer that others reach.
func (c cli) nextConnected(apps []agentapi.OwnerApp) {
	for _, app := range apps {
		if app.Status == agentapi.StatusLive && app.URL != "" && !app.Paused {
			c.nextInvite(app.Name, app.Label)
			return
		}
	}
	self, suffix := c.typed()
	c.remark("Next: put an app at its address, for as long as the command runs: %s share PORT%s", self, suffix)
}

// nextInvited says how those who were invited come in.
func (c cli) nextInvited(local, noMail bool, invited []string) {
	self, suffix := c.typed()
	theirs := "The invitations are in"
	if len(invited) == 1 {
		theirs = "The invitation is in"
	}
	switch {
	case local && noMail:
		c.remark("Nobody else can reach this computer until it is connected.")
	case local:
		c.remark("Nobody else can reach this computer until it is connected. %s: %s outbox%s", theirs, self, suffix)
	case noMail:
		c.remark("Next: give them their links. Each proves the address by a code that is mailed to it, and accepts by one click.")
	case len(invited) == 1:
		c.remark("Next: they accept by one click in the mail. To hand the invitation over yourself: %s people link %s%s", self, argument(printable(invited[0])), suffix)
	default:
		c.remark("Next: each accepts by one click in the mail. To hand an invitation over yourself: %s people link EMAIL%s", self, suffix)
	}
}
