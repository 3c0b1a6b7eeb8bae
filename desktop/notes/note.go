// Package notes decides what the owner is notified of, and shows it: an Announcer compares
// each snapshot with what it told before, and Notifications has the result on the screen.
// What is clicked is handed on as a word of desktop/verbs.
package notes

import (
	"fmt"
	"time"

	"porchlight/desktop/language"
	"porchlight/desktop/verbs"
)

// Note is one notification.
type Note struct {
	// Key names it: a later note with the same key replaces it.
	Key string
	// Kind is one of agentapi.Kinds, by which the owner switches notes off; empty for one
	// that cannot be.
	Kind        string
	Title, Body string
	Buttons     []Button
	Urgent      bool
	// InPlace is one that is shown only where an earlier one of its key still stands, and
	// without asking for attention again.
	InPlace bool
	// Life is how long it stays on the screen; 0 leaves that to the system.
	Life time.Duration
	// Click is what happens when the note itself is clicked.
	Click verbs.Action
}

// Button of a note.
type Button struct {
	Text string
	Do   verbs.Action
}

// thatShows is a note that, clicked on itself or on its button, shows a view of the window.
func thatShows(view string, n Note) Note {
	n.Click = verbs.Action{Verb: verbs.Show, View: view}
	n.Buttons = append([]Button{{language.Say("Show"), n.Click}}, n.Buttons...)
	return n
}

const (
	keyRequests = "requests" // the note about many requests
	keyClients  = "clients"  // the note about many connected apps
	KeyTrouble  = "trouble"  // what keeps visitors out
	KeyKeychain = "keychain" // locked, or not there
	keyEnded    = "ended"    // the access the owner ended
	keyApproved = "approved" // an app that is on now
	KeyCopied   = "copied"
	keyKnocks   = "knocks"  // the note about many people who knock
	keyAccount  = "account" // connected, or no longer
	KeyStays    = "stays"   // the window was closed for the first time
	KeyFailed   = "failed"  // what the owner clicked and could not be done
)

func keyKnock(id string) string     { return "knock-" + id }
func keyRequest(name string) string { return "request-" + name }

// KeyNotice names the note of one notice.
func KeyNotice(id uint64) string { return fmt.Sprintf("notice-%d", id) }

// listed is "A, B, C and 4 more.", of all names that there are.
func listed(names []string, all int) string {
	if rest := all - len(names); rest > 0 {
		names = append(names, language.Count(rest, "%d more", "%d more"))
	}
	return language.Spoken().And(names...) + "."
}
