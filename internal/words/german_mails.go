package words

// germanMails has the mails.
var germanMails = map[string]string{
	"Your link to sign in": "Ihr Link zum Anmelden",
	"The page asks for one click, which signs in the browser you open it in.": "Die Seite bittet um einen Klick; er meldet den Browser an, in dem Sie sie öffnen.",
	"Your code:": "Ihr Code:",
	"Type the code where you began, if that is another device.":                                                              "Haben Sie auf einem anderen Gerät begonnen? Tippen Sie dort den Code.",
	"Link and code work once, for %[1]d minutes. If you did not ask to sign in at %[2]s, ignore this mail; nothing happens.": "Link und Code gelten einmal, %[1]d Minuten lang. Wenn Sie sich bei %[2]s nicht anmelden wollten, beachten Sie diese E-Mail nicht; nichts geschieht.",

	"%[1]s shares %[2]s with you":                                                       "%[1]s gibt %[2]s für Sie frei",
	`%[1]s lets you open <bdi dir="auto">%[2]s</bdi>`:                                   `%[1]s lässt Sie <bdi dir="auto">%[2]s</bdi> öffnen`,
	`Access to <bdi dir="auto">%[1]s</bdi> ends on %[2]s.`:                              `Der Zugang zu <bdi dir="auto">%[1]s</bdi> endet am %[2]s.`,
	"Access to %[1]s ends on %[2]s.":                                                    "Der Zugang zu %[1]s endet am %[2]s.",
	"%[1]s lets you open %[2]s on their own computer.":                                  "%[1]s lässt Sie %[2]s auf dem eigenen Computer öffnen.",
	"On their own computer.":                                                            "Auf dem eigenen Computer.",
	`Open <bdi dir="auto">%s</bdi>`:                                                     `<bdi dir="auto">%s</bdi> öffnen`,
	"The page asks for one click, which signs you in. Nothing to install, no password.": "Die Seite bittet um einen Klick; er meldet Sie an. Nichts zu installieren, kein Passwort.",
	"The link works only for %[1]s, until %[2]s. If you don’t know %[3]s, ignore this mail; nothing happens.": "Der Link gilt nur für %[1]s, bis zum %[2]s. Wenn Sie %[3]s nicht kennen, beachten Sie diese E-Mail nicht; nichts geschieht.",
	"The link works only for %[1]s, until %[2]s. If you don't know %[3]s, ignore this mail; nothing happens.": "Der Link gilt nur für %[1]s, bis zum %[2]s. Wenn Sie %[3]s nicht kennen, beachten Sie diese E-Mail nicht; nichts geschieht.",
}
