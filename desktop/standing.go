package desktop

import (
	"slices"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
)

// lit says whether visitors can use an app: the window lights the same ones.
func lit(a agentapi.OwnerApp) bool { return isLive(a) && !a.Paused && a.Ailment() == "" }

// standing says how things are: the icon, the status line, and what is wrong.
func standing(p picture, waiting int) (icon, status string, trouble []string) {
	on := slices.ContainsFunc(p.Apps, func(a agentapi.OwnerApp) bool { return isLive(a) && !a.Paused })
	someLit := slices.ContainsFunc(p.Apps, lit)
	icon, status = iconOff, language.Say("No app is on")
	switch {
	case p.DarkSince != nil:
		status = language.Say("Dark since %s", language.MomentOf(*p.DarkSince, p.now))
	case p.AccessUntil != nil, p.Account.Host != "" && !p.Account.Connected && p.Trouble == "":
		status = language.Say("Reconnecting…")
		if someLit {
			icon = iconReady
		}
	case someLit && p.Here > 0:
		icon, status = iconConnected, language.Count(p.Here, "On. %d person here now", "On. %d people here now")
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
	return iconTrouble, status, trouble[:min(len(trouble), maxTrouble)]
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
