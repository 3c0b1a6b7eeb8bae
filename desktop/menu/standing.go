package menu

import (
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
)

// The five drawings of the tray icon. Trouble outranks waiting, then connected,
// ready, off.
const (
	IconOff       = "off"
	iconReady     = "ready"
	iconConnected = "connected"
	iconWaiting   = "waiting"
	IconTrouble   = "trouble"
)

// standing says how things are: the icon, the status line, and what is wrong.
func standing(p Picture, waiting int) (icon, status string, trouble []string) {
	on := slices.ContainsFunc(p.Apps, func(a agentapi.OwnerApp) bool { return isLive(a) && !a.Paused })
	someLit := slices.ContainsFunc(p.Apps, func(a agentapi.OwnerApp) bool { return a.Lit })
	icon, status = IconOff, language.Say("No app is on")
	switch {
	case p.DarkSince != nil:
		status = language.Say("Dark since %s", language.MomentOf(*p.DarkSince, p.Now))
	case p.AccessUntil != nil, p.Account.Host != "" && !p.Account.Connected && p.Trouble == "":
		status = language.Say("Reconnecting…")
		if someLit {
			icon = iconReady
		}
	case someLit && p.Here > 0:
		icon, status = iconConnected, language.Say("On. %d here now", p.Here)
	case someLit:
		icon, status = iconReady, language.Say("On. Nobody here now")
	case on:
		status = language.Say("No app answers")
	}
	status = elsewhereWords(status, p.Mode)
	if waiting > 0 {
		icon = iconWaiting
	}
	if p.Trouble == "" {
		return icon, status, nil
	}
	if trouble = language.Wrap(p.Trouble); p.DarkSince == nil && p.AccessUntil == nil {
		status, trouble = trouble[0], trouble[1:]
	}
	return IconTrouble, status, trouble[:min(len(trouble), maxTrouble)]
}

// elsewhereWords says that the agent is not this process's: quitting the menu
// bar then stops nothing.
func elsewhereWords(status string, mode agentapi.Mode) string {
	switch mode {
	case agentapi.ModeHeadless:
		return language.Say("%s, in another process", status)
	case agentapi.ModeBundled:
		return language.Say("%s, brought along by an app", status)
	}
	return status
}
