package web

import (
	"cmp"
	"net/http"
	"slices"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/oauth"
	"porchlight/internal/words"
)

// oauthPages are the pages of package oauth.
type oauthPages struct{ *handler }

func (p oauthPages) Session(w http.ResponseWriter, r *http.Request) (control.Session, bool, error) {
	return p.current(w, r)
}

func (p oauthPages) SignIn(w http.ResponseWriter, r *http.Request, back string) error {
	return seeOther(w, r, signInPath("/signin", destination{path: back}))
}

func (p oauthPages) Consent(w http.ResponseWriter, r *http.Request, status int, c oauth.Consent) error {
	out := page{
		Title: languageOf(r).Say("Allow %s?", c.Client), Picks: c.Picks, Email: c.Account.Email, AccountID: c.Account.ID, Return: c.Return,
		Client: c.Client, Claimed: c.Claimed, Local: c.Local, Version: c.Version, Problem: languageOf(r).Tell(words.Plain(c.Problem)), formTarget: c.Source,
		Target: languageOf(r).Or(words.Plain(c.Target), c.Target), // a host, or words for an app
	}
	for _, choice := range c.Choices {
		labels := make([]string, len(choice.Apps))
		for i, a := range choice.Apps {
			labels[i] = a.Label
		}
		row := choiceRow{
			Name: choice.Computer.Name, Host: choice.Computer.Host, Chosen: choice.Computer.Name == c.Chosen,
			Apps: inWords(languageOf(r), labels, 5), All: choice.Computer.Name + "/" + oauth.AllApps,
		}
		if c.One {
			row.All = ""
		}
		if c.Picks {
			row.pick(choice, c.Asked)
			out.AskedFor = cmp.Or(out.AskedFor, row.askedFor(languageOf(r)))
		}
		if choice.Role != controlapi.RoleOwner {
			row.From = choice.Owner
		}
		out.Choices = append(out.Choices, row)
	}
	return p.show(w, r, status, "consent", out)
}

// choiceRow is one computer on the consent page.
type choiceRow struct {
	Name   string // short name
	Host   string
	From   string // who shares it, "" for one's own
	Chosen bool
	Apps   string // labels in words, "" for none
	// Where the person picks apps:
	Asked, Others []pickRow
	All           string // the value of all apps; empty where these cannot be picked
	OldAgent      bool   // its apps cannot be picked one by one
}

// pickRow is an app to pick; Value is what the form says of it.
type pickRow struct{ Value, Label, Host string }

// askedFor are the apps that are asked for, in words.
func (c choiceRow) askedFor(l words.Language) string {
	labels := make([]string, len(c.Asked))
	for i, a := range c.Asked {
		labels[i] = a.Label
	}
	return inWords(l, labels, 5)
}

// pick fills in the apps of a computer that can be picked.
func (c *choiceRow) pick(m control.Membership, asked []string) {
	if !m.Computer.AppGrants {
		c.OldAgent = true
		return
	}
	for _, a := range m.Apps {
		row := pickRow{m.Computer.Name + "/" + a.ID, a.Label, a.Host}
		if slices.Contains(asked, a.ID) {
			c.Asked = append(c.Asked, row)
		} else {
			c.Others = append(c.Others, row)
		}
	}
}

// inWords puts labels into words: "Notes, Photos and Diary"; beyond most of them
// it says that there are more.
func inWords(l words.Language, labels []string, most int) string {
	if len(labels) > most {
		labels = append(labels[:most-1], l.Say("more"))
	}
	return l.And(labels...)
}

// grantRow is one connected app on the account page.
type grantRow struct {
	ID    string
	Name  string
	At    string // host of one that describes itself
	For   string // the apps it is for in words, "" for all
	Host  string
	Since string
	Used  string
}

func grantRows(l words.Language, grants []control.AccountGrant) []grantRow {
	var out []grantRow
	for _, g := range grants {
		out = append(out, grantRow{
			ID: g.ID, Name: g.ClientName, At: controlapi.ClientHost(g.ClientID), For: forApps(l, g.Labels), Host: g.Computer.Host, Since: day(l, g.CreatedAt), Used: day(l, g.LastUsedAt),
		})
	}
	return out
}

// forApps says what a grant for some apps is for, nothing of one for all.
func forApps(l words.Language, labels []string) string {
	switch len(labels) {
	case 0:
		return ""
	case 1:
		return l.Say("for %s alone", labels[0])
	}
	return l.Say("for %s", inWords(l, labels, 5))
}
