package words

// germanKnock has what somebody reads who may not open what they asked for, and asks.
var germanKnock = map[string]string{
	"Go to the start page":            "Zur Startseite",
	"%[1]s sees %[2]s, nothing else.": "%[1]s sieht %[2]s, sonst nichts.",
	"Ask %s to let you in":            "Bei %s anklopfen",
	"%[1]s sees %[2]s and the address you asked for, nothing else.": "%[1]s sieht %[2]s und die angefragte Adresse, sonst nichts.",
	"You asked three times today. You can ask again tomorrow.":      "Heute wurde dreimal angeklopft. Morgen geht es wieder.",
	"%s lets you in": "%s lässt Sie herein",
	"You asked to open %[1]s as <b>%[2]s</b>.": "Angeklopft bei %[1]s als <b>%[2]s</b>.",
	"Open %s": "%s öffnen",
	"One click accepts. %s sees when you open an app, and can end your access at any time.": "Ein Klick nimmt an. %s sieht, wann Sie eine App öffnen, und kann den Zugang jederzeit beenden.",
	"%s has been asked":            "Bei %s ist angeklopft",
	"This page goes on by itself.": "Diese Seite geht von selbst weiter.",
	"You may close this page. Opened again in this browser, the address works as soon as %s says yes.": "Diese Seite darf geschlossen werden. In diesem Browser wieder geöffnet, geht die Adresse auf, sobald %s Ja sagt.",
	"You are invited": "Sie sind eingeladen",
	"Open the link in the mail that invited you.":                 "Öffnen Sie den Link in der E-Mail, mit der Sie eingeladen wurden.",
	"Is it lost? Ask the person who invited you for another one.": "Ist sie verloren? Bitten Sie die Person, die Sie eingeladen hat, um eine neue.",
	"No answer so far": "Bisher keine Antwort",
	"That was %d hour ago. You can ask again tomorrow.":  "Das war vor %d Stunde. Morgen lässt sich wieder anklopfen.",
	"That was %d hours ago. You can ask again tomorrow.": "Das war vor %d Stunden. Morgen lässt sich wieder anklopfen.",
	"In a hurry? Write to the person who sent you here.": "Eilt es? Dann hilft, wer Sie hierher geschickt hat.",
}
