package words

// germanProviders has what pages, refusals and mails say of OpenID providers.
var germanProviders = map[string]string{
	"Continue with %s":                                "Weiter mit %s",
	"You are not signed in":                           "Sie sind nicht angemeldet",
	"Whose account is this?":                          "Wem gehört dieses Konto?",
	"Open it in this browser, within 15 minutes.":     "Öffnen Sie ihn in diesem Browser, innerhalb von 15 Minuten.",
	"Sign in another way":                             "Anders anmelden",
	"Providers that sign you in":                      "Anbieter, die Sie anmelden",
	"From then on %s signs you in, too.":              "Von da an meldet auch %s Sie an.",
	"From then on %[1]s signs you in, too, as %[2]s.": "Von da an meldet auch %[1]s Sie an, als %[2]s.",
	"%[1]s knows you as <b>%[2]s</b>. Show once by a mail which address is yours here; from then on %[1]s signs you in.": "%[1]s kennt Sie als <b>%[2]s</b>. Zeigen Sie einmal per E-Mail, welche Adresse hier Ihre ist; von da an meldet %[1]s Sie an.",
	"Show once by a mail which address is yours here; from then on %s signs you in.":                                     "Zeigen Sie einmal per E-Mail, welche Adresse hier Ihre ist; von da an meldet %s Sie an.",

	"%s does not answer just now. Try again in a moment, or sign in another way.":                               "%s antwortet gerade nicht. Versuchen Sie es gleich noch einmal, oder melden Sie sich anders an.",
	"%s took longer than ten seconds to answer. Try again in a moment, or sign in another way.":                 "%s hat länger als zehn Sekunden für die Antwort gebraucht. Versuchen Sie es gleich noch einmal, oder melden Sie sich anders an.",
	"%s signed with a key that it does not show. It may just be changing its keys: try again in a minute.":      "%s hat mit einem Schlüssel unterschrieben, den es nicht zeigt. Vielleicht wechselt es gerade die Schlüssel: Versuchen Sie es in einer Minute noch einmal.",
	"The clocks of %s and of this server differ, so nobody can sign in with it. Tell whoever runs this server.": "Die Uhren von %s und von diesem Server gehen auseinander, darum kann sich niemand damit anmelden. Sagen Sie es dem, der diesen Server betreibt.",
	"What %s answered was not for this sign-in, so nobody was signed in. Try again, or sign in another way.":    "Was %s geantwortet hat, gehört nicht zu dieser Anmeldung, darum wurde niemand angemeldet. Versuchen Sie es noch einmal, oder melden Sie sich anders an.",
	"You were not signed in at %s.": "Sie wurden bei %s nicht angemeldet.",
	"This sign-in was begun in another browser, was used already, or took longer than 15 minutes. Sign in again.": "Diese Anmeldung wurde in einem anderen Browser begonnen, schon verwendet oder dauerte länger als 15 Minuten. Melden Sie sich noch einmal an.",
	"This account is not signed in by mail, so it takes no provider for it either. Use your passkey.":             "Dieses Konto wird nicht per E-Mail angemeldet, darum nimmt es auch keinen Anbieter dafür. Verwenden Sie Ihren Passkey.",
	"A mail has to prove whose this is.":                                                                               "Eine E-Mail muss zeigen, wem das gehört.",
	"Nobody has invited %s yet. Ask whoever wants to share something with you.":                                        "%s wurde noch von niemandem eingeladen. Fragen Sie, wer Ihnen etwas freigeben möchte.",
	"That account of the provider belongs to another address here. Sign in with that one, or remove it there first.":   "Dieses Konto beim Anbieter gehört hier zu einer anderen Adresse. Melden Sie sich mit jener an, oder entfernen Sie es zuerst dort.",
	"You sign in with 20 accounts of providers, which is as many as there can be. Remove one in your account.":         "Sie melden sich mit 20 Konten bei Anbietern an, mehr kann es nicht geben. Entfernen Sie eines in Ihrem Konto.",
	"Your network signed in with providers very often. Wait a few minutes, then try again.":                            "Aus Ihrem Netz wurde sehr oft über Anbieter angemeldet. Warten Sie einige Minuten, und versuchen Sie es dann noch einmal.",
	"The provider did not ask you to sign in anew, which this wants. Use a passkey, or have a link mailed.":            "Der Anbieter hat nicht neu nach Ihrer Anmeldung gefragt, die hier nötig ist. Verwenden Sie einen Passkey, oder lassen Sie sich einen Link schicken.",
	"%s does not vouch for your mail address, and this server sends no mail to ask it. Tell whoever runs this server.": "%s bürgt nicht für Ihre E-Mail-Adresse, und dieser Server verschickt keine E-Mails, um sie zu prüfen. Sagen Sie es dem, der diesen Server betreibt.",
	"That is no logout token of this provider.":                                                                        "Das ist kein Abmelde-Token dieses Anbieters.",
	"This logout token was used before.":                                                                               "Dieses Abmelde-Token wurde schon verwendet.",
}
