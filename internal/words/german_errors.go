package words

// germanErrors has what the desktop app itself cannot do, and why.
var germanErrors = map[string]string{
	"Porchlight is still starting.": "Porchlight startet noch.",
	"Porchlight is not answering. Its process may be stopped or busy; try again when it answers.": "Porchlight antwortet nicht. Vielleicht ist es angehalten oder beschäftigt; versuchen Sie es wieder, wenn es antwortet.",
	"Porchlight is not answering. Its process may be stopped or busy. This is how things were.":   "Porchlight antwortet nicht. Vielleicht ist es angehalten oder beschäftigt. So stand es zuletzt.",
	"Porchlight cannot start: %s":             "Porchlight kann nicht starten: %s",
	"Porchlight did not stop cleanly: %s":     "Porchlight wurde nicht sauber beendet: %s",
	"Porchlight stopped: %s":                  "Porchlight hat aufgehört: %s",
	"Porchlight has no owner secret: %s":      "Porchlight hat kein Besitzergeheimnis: %s",
	"Porchlight could not go on":              "Porchlight konnte nicht weitermachen",
	"Porchlight cannot read its settings: %s": "Porchlight kann seine Einstellungen nicht lesen: %s",
	"Porchlight cannot keep its settings, so nothing was changed. Is the disk full, or read-only? (%s)": "Porchlight kann seine Einstellungen nicht speichern, darum wurde nichts geändert. Ist der Speicher voll oder schreibgeschützt? (%s)",
	"Porchlight cannot tell where it was started from: %s":                                              "Porchlight weiß nicht, woher es gestartet wurde: %s",
	"Porchlight cannot start at login: %s":                                                              "Porchlight kann beim Anmelden nicht starten: %s",
	"Porchlight still starts at login: %s":                                                              "Porchlight startet weiter beim Anmelden: %s",
	"The window is light, dark or like the system, not \"%s\".":                                         "Das Fenster ist hell, dunkel oder wie das System, nicht „%s“.",
	"The icon is drawn for a light panel, a dark one or any, not \"%s\".":                               "Das Symbol wird für eine helle Leiste, eine dunkle oder jede gezeichnet, nicht „%s“.",
	"No file manager could be opened. The directory is %s.":                                             "Es ließ sich kein Dateimanager öffnen. Das Verzeichnis ist %s.",

	// Keychain.
	"Your keychain is locked. Porchlight goes on when you unlock it.": "Der Schlüsselbund ist gesperrt. Porchlight macht weiter, wenn Sie ihn entsperren.",
	"No keychain answers here, and Porchlight keeps its owner secret in one. Install one (gnome-keyring, KWallet or KeePassXC) and Porchlight goes on by itself, or have the secret kept in a file only you can read.": "Hier antwortet kein Schlüsselbund, und in einem bewahrt Porchlight das Besitzergeheimnis auf. Installieren Sie einen (gnome-keyring, KWallet oder KeePassXC), dann macht Porchlight von selbst weiter, oder lassen Sie es in einer Datei aufbewahren, die nur Sie lesen können.",
	"Porchlight keeps the secret that makes you the owner in one. Install one, and Porchlight goes on by itself, or have the secret kept in a file only you can read.":                                                 "In einem bewahrt Porchlight das Geheimnis auf, das Sie zum Besitzer macht. Installieren Sie einen, dann macht Porchlight von selbst weiter, oder lassen Sie es in einer Datei aufbewahren, die nur Sie lesen können.",
	"Your apps keep running, and you can take access away. To approve, invite or open, unlock the keychain.":                                                                                                           "Die Apps laufen weiter, und Zugang nehmen geht. Zum Genehmigen, Einladen und Öffnen entsperren Sie den Schlüsselbund.",
	"Unlock":            "Entsperren",
	"Keep it in a file": "In einer Datei aufbewahren",

	// The window.
	"This build of Porchlight has no window. Build it with make desktop.":                                                                 "Dieses Porchlight wurde ohne Fenster gebaut. Bauen Sie es mit make desktop.",
	"There is no display here, so Porchlight cannot open its window. The command line does everything the window does: porchlight --help": "Hier gibt es keinen Bildschirm, darum kann Porchlight sein Fenster nicht öffnen. Die Befehlszeile kann alles, was das Fenster kann: porchlight --help",
	"The display of this session cannot be reached, so Porchlight cannot open its window.":                                                "Der Bildschirm dieser Sitzung ist nicht zu erreichen, darum kann Porchlight sein Fenster nicht öffnen.",
	"Porchlight cannot open its window":      "Porchlight kann sein Fenster nicht öffnen",
	"Porchlight cannot open its window: %s":  "Porchlight kann sein Fenster nicht öffnen: %s",
	"Porchlight's window is closed.":         "Das Fenster von Porchlight ist geschlossen.",
	"Porchlight asks where to save already.": "Porchlight fragt schon, wohin gespeichert werden soll.",
	"Porchlight cannot ask where to save. On the command line it is: porchlight export FILE. (%s)": "Porchlight kann nicht fragen, wohin gespeichert werden soll. In der Befehlszeile geht es so: porchlight export DATEI. (%s)",
	"The export was not saved as %s: %s. Choose another place.":                                    "Der Export wurde nicht als %s gespeichert: %s. Wählen Sie einen anderen Ort.",
	"it is not a file":                           "das ist keine Datei",
	"This is not one of Porchlight's addresses.": "Das ist keine Adresse von Porchlight.",

	"Export what Porchlight keeps": "Exportieren, was Porchlight aufbewahrt",

	// The browser.
	"There is no display here, so no browser can be opened.":                  "Hier gibt es keinen Bildschirm, darum lässt sich kein Browser öffnen.",
	"No browser could be opened: %s":                                          "Es ließ sich kein Browser öffnen: %s",
	"No browser could be opened: the package xdg-utils is missing.":           "Es ließ sich kein Browser öffnen: Das Paket xdg-utils fehlt.",
	"No browser could be opened: no program on this desktop opens web pages.": "Es ließ sich kein Browser öffnen: Kein Programm hier öffnet Webseiten.",
	"This is not an address a browser can open.":                              "Das ist keine Adresse, die ein Browser öffnen kann.",
	"The page for your browser could not be written: %s":                      "Die Seite für Ihren Browser ließ sich nicht schreiben: %s",

	// The clipboard.
	"On Wayland the menu can only copy with the wl-clipboard package installed. The Porchlight window can copy without it.": "Unter Wayland kann das Menü nur mit dem Paket wl-clipboard kopieren. Das Fenster von Porchlight kann es ohne.",
	"There is no display here, so there is no clipboard.":                                                                   "Hier gibt es keinen Bildschirm, also auch keine Zwischenablage.",
	"A text of %s bytes is too long to copy.":                                                                               "Ein Text von %s Bytes ist zum Kopieren zu lang.",
	"%s could not copy: %s":                      "%s konnte nicht kopieren: %s",
	"The display %s cannot be reached: %s":       "Der Bildschirm %s ist nicht zu erreichen: %s",
	"The clipboard could not be taken: %s":       "Die Zwischenablage ließ sich nicht belegen: %s",
	"The clipboard could not be emptied: %s":     "Die Zwischenablage ließ sich nicht leeren: %s",
	"The clipboard did not take the text: %s":    "Die Zwischenablage nahm den Text nicht an: %s",
	"No memory for the clipboard: %s":            "Kein Speicher für die Zwischenablage: %s",
	"This text cannot be copied: %s":             "Dieser Text lässt sich nicht kopieren: %s",
	"Another program is holding the clipboard.":  "Ein anderes Programm hält die Zwischenablage fest.",
	"another program took it at the same moment": "im selben Moment nahm sie ein anderes Programm",
	"the display went away":                      "der Bildschirm ist weg",

	// Trust of this computer's certificates.
	"This computer has no authority of its own to trust.":                                                                                     "Dieser Computer hat keine eigene Zertifizierungsstelle, der man vertrauen könnte.",
	"Browsers here go on warning, because you answered no. Try again to change that.":                                                         "Browser warnen hier weiter, weil Sie nein gesagt haben. Versuchen Sie es noch einmal, um das zu ändern.",
	"the program %s, which tells browsers here what to trust, is not installed: '%s' installs it":                                             "das Programm %s, das Browsern hier sagt, wem sie vertrauen, ist nicht installiert: „%s“ installiert es",
	"the program %s, which tells browsers here what to trust, is not installed: install the package that has it (libnss3-tools or nss-tools)": "das Programm %s, das Browsern hier sagt, wem sie vertrauen, ist nicht installiert: Installieren Sie das Paket, das es hat (libnss3-tools oder nss-tools)",
	"the store of certificates in %s cannot be used: %s":                                                                                      "der Zertifikatsspeicher in %s lässt sich nicht benutzen: %s",
	"the store of certificates refused: %s":                                                                                                   "der Zertifikatsspeicher hat abgelehnt: %s",
	"open the store of certificates: %s":                                                                                                      "der Zertifikatsspeicher lässt sich nicht öffnen: %s",
	"make a store of certificates: %s":                                                                                                        "es ließ sich kein Zertifikatsspeicher anlegen: %s",
	"the login keychain refused: %s":                                                                                                          "der Schlüsselbund „Anmeldung“ hat abgelehnt: %s",
	"read this computer's authority: %s":                                                                                                      "die Zertifizierungsstelle dieses Computers lässt sich nicht lesen: %s",
	"%s holds no certificate":                                                                                                                 "%s enthält kein Zertifikat",
	"%s holds no certificate: %s":                                                                                                             "%s enthält kein Zertifikat: %s",

	// A line or a name that somebody wrote.
	"line":                       "Zeile",
	"name":                       "Name",
	"The %s is not valid text.":  "%s: Das ist kein gültiger Text.",
	"The %s has to be one line.": "%s: Nur eine einzige Zeile ist möglich.",
	"The %s holds a character that cannot be seen, or that changes the direction of writing. Type it anew.": "%s: Darin ist ein Zeichen, das nicht zu sehen ist oder die Schreibrichtung ändert. Geben Sie den Text neu ein.",
	"The %s can have %s characters, and this one has %s.":                                                   "%s: Höchstens %s Zeichen sind möglich, und hier sind es %s.",
	"The %s shows nothing.": "%s: Daran ist nichts zu sehen.",
	"The line holds a web or mail address, or what a mail program takes for one. Leave it out; a full stop inside a sentence needs a space after it.": "In der Zeile steht eine Web- oder E-Mail-Adresse, oder was ein Mailprogramm dafür hält. Lassen Sie sie weg; hinter einem Punkt im Satz braucht es ein Leerzeichen.",
	"The name can hold neither an @ nor a dot: it stands beside the mail address and must not look like one.":                                         "Im Namen geht weder ein @ noch ein Punkt: Er steht neben der E-Mail-Adresse und darf nicht wie eine aussehen.",
	"The name must not look like a web address.": "Der Name darf nicht wie eine Webadresse aussehen.",
}
