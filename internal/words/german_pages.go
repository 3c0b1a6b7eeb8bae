package words

// germanPages has the pages of the control plane, and what they share with those of
// the agent.
var germanPages = map[string]string{
	"What this is":                      "Was das ist",
	"Sign in":                           "Anmelden",
	"Sign out":                          "Abmelden",
	"Try again":                         "Noch einmal versuchen",
	"Try now":                           "Jetzt versuchen",
	"Nothing here":                      "Hier ist nichts",
	"That did not work":                 "Das ging nicht",
	"That can’t be opened":              "Das lässt sich nicht öffnen",
	"This link is over":                 "Dieser Link gilt nicht mehr",
	"This request is too large":         "Diese Anfrage ist zu groß",
	"There is nothing at this address.": "An dieser Adresse ist nichts.",

	"This isn’t shared with you":                                         "Das ist nicht für Sie freigegeben",
	"You are signed in as <b>%s</b>.":                                    "Sie sind als <b>%s</b> angemeldet.",
	"That address can’t open %s.":                                        "Diese Adresse kann %s nicht öffnen.",
	"Sign in with another address":                                       "Mit einer anderen Adresse anmelden",
	"Think it should be? Ask the person who sent you here to invite %s.": "Sollte es das sein? Bitten Sie die Person, die Sie hierher geschickt hat, %s einzuladen.",

	"This page is from this computer":                                 "Diese Seite kommt von diesem Computer",
	"Porchlight’s window goes on by itself. You can close this page.": "Das Fenster von Porchlight geht von selbst weiter. Diese Seite kann geschlossen werden.",
}
