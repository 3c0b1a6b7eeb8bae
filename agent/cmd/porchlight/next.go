package main

import (
	"runtime"
	"strings"
	"unicode"

	"porchlight/agent/agentapi"
)

// What to do next, for people who have just done something: one line beside the result,
// which is on standard output for programs.

// argument is a text as a shell takes it for one argument.
func argument(text string) string { return argumentOn(runtime.GOOS, text) }

// argumentOn is argument on a system. Windows has two shells that agree on no way to quote
// what means something to one of them: there that is shown as a question mark, and a
// command with one names nothing.
func argumentOn(system, text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.@:/", r) ||
			r == '\\' && system == "windows"
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 && text[0] != '-' {
		return text
	}
	if system != "windows" {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return `"` + strings.Map(func(r rune) rune {
		if plain(r) || r == ' ' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '?'
	}, text) + `"`
}

// nextInvite says how to open an app that is on, and how to share it.
func (c cli) nextInvite(name, label string) {
	c.remark("Next: open it with %s, or invite somebody: %s",
		c.typed("open %s%s", argument(name), printInstead()), c.typed("people invite EMAIL --app %s", argument(printable(label))))
}

// nextConnected says what there is to do with a computer that others reach.
func (c cli) nextConnected(apps []agentapi.OwnerApp) {
	for _, app := range apps {
		if app.Status == agentapi.StatusLive && app.URL != "" && !app.Paused && !app.TCP {
			c.nextInvite(app.Name, app.Label)
			return
		}
	}
	c.remark("Next: put an app at its address, for as long as the command runs: %s", c.typed("share PORT"))
}

// nextInvited says how those who were invited come in.
func (c cli) nextInvited(local, noMail bool, invited []string) {
	theirs := "The invitations are in"
	if len(invited) == 1 {
		theirs = "The invitation is in"
	}
	switch {
	case local && noMail:
		c.remark("Nobody else can reach this computer until it is connected.")
	case local:
		c.remark("Nobody else can reach this computer until it is connected. %s: %s", theirs, c.typed("outbox"))
	case noMail:
		c.remark("Next: give them their links. Each proves the address by a code that is mailed to it, and accepts by one click.")
	case len(invited) == 1:
		c.remark("Next: they accept by one click in the mail. To hand the invitation over yourself: %s", c.typed("people link %s", argument(printable(invited[0]))))
	default:
		c.remark("Next: each accepts by one click in the mail. To hand an invitation over yourself: %s", c.typed("people link EMAIL"))
	}
}
