// Package noaccess is the page for somebody who is signed in and may not open what
// they asked for: it says so, and what they can do. The control plane shows it before
// a visit and the agent during one, so that it is one page. It decides nothing; whoever
// shows it says what is offered.
package noaccess

import _ "embed"

// Source defines the template "no-access", which is drawn from a Page and says its
// sentences by the functions of words.Language. The lamp above it is its user's.
//
//go:embed noaccess.html
var Source string

// Page is what the template shows.
type Page struct {
	Email string // the visitor's, or empty where it must not be said
	Host  string // what they asked for; never an app's label
	// Owner is the computer's short name, which stands in its host: strangers learn
	// nothing by it.
	Owner string
	// Ask asks the owner to let them in; nil where nobody is asked. Spent says that
	// they asked as often as they may today.
	Ask   *Form
	Spent bool
	// Apps is where they see what they can open; empty for nowhere.
	Apps    string
	SignOut Form // which goes on to signing in
}

// Form is one with a button and what is sent with it.
type Form struct {
	Method, Action string
	Fields         []Field
}

// Field is a hidden one.
type Field struct{ Name, Value string }
