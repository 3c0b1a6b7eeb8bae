package engine

import (
	"strconv"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
)

// maxSuggested is the longest name that is suggested, in characters: people read it
// aloud. Room is left for a number.
const maxSuggested = 30

// Suggest makes a name and a label that a new app may have now.
func (a *Apps) Suggest(texts ...string) (name, label string) {
	root, shown := a.cfg.Root(), a.shown.Load()
	labels := map[string]bool{}
	for _, app := range shown.byLabel {
		labels[app.folded] = true
		if was := app.kept.Approved; was != nil {
			labels[foldLabel(was.Label)] = true
		}
	}
	return Suggest(func(name, label string) bool {
		_, taken := shown.byName[name]
		return taken || name == root.Name || labels[foldLabel(label)]
	}, texts...)
}

// Suggest makes a name and a label of the first text that gives any, with the first
// number with which they are not taken. The name is of the first text that has letters
// or digits of a name.
func Suggest(taken func(name, label string) bool, texts ...string) (name, label string) {
	for _, text := range texts {
		clean, err := cleanLabel(text)
		if err != nil {
			continue
		}
		if label == "" {
			label = clean
		}
		if name = asName(clean); name != "" {
			break
		}
	}
	if name == "" {
		name = "app"
	}
	if label == "" {
		label = name
	}
	tryName, tryLabel := name, label
	for n := 2; controlapi.Reserved(tryName) || taken(tryName, tryLabel); n++ {
		number := strconv.Itoa(n)
		tryName, tryLabel = name+"-"+number, label+" "+number
	}
	return tryName, tryLabel
}

// asName is a text as a name: lower-case letters, digits, and single hyphens for all
// else between them. It ends with a whole word where one fits.
func asName(text string) string {
	name := ""
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		switch next := strings.TrimPrefix(name+"-"+word, "-"); {
		case len(next) <= maxSuggested:
			name = next
		case name == "":
			return word[:maxSuggested]
		default:
			return name
		}
	}
	return name
}

// OnPort is the app that a port is meant for: the live one; else one that was approved
// for it and that others cannot open, because what listens there by now may be something
// else and is not for them; else the one that asks for it, which any program can.
// othersOpen counts them by app id.
func (a *Apps) OnPort(port int, othersOpen func(appID string) int) (found App, ok bool) {
	for _, app := range a.shown.Load().byLabel {
		switch {
		case app.Port != port || app.Options.Socket() != "":
		case app.Status == agentapi.StatusLive:
			return app, true
		case ok && (found.Status != agentapi.StatusPending || app.Status == agentapi.StatusPending):
		case app.Status == agentapi.StatusPending || othersOpen(app.ID) == 0:
			found, ok = app, true
		}
	}
	return found, ok
}
