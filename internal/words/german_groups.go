package words

// germanGroups has what is said of groups.
var germanGroups = map[string]string{
	"A group needs a name.": "Eine Gruppe braucht einen Namen.",
	"There are %s groups, which is as many as there can be. Remove one first.":                          "Es gibt %s Gruppen, mehr sind nicht möglich. Entfernen Sie zuerst eine.",
	"There is a group called \"%s\" already.":                                                           "Eine Gruppe „%s“ gibt es schon.",
	"There is no such group. It may have been removed already.":                                         "Diese Gruppe gibt es nicht. Vielleicht wurde sie schon entfernt.",
	"\"%s\" has %s people, which is as many as a group can have.":                                       "„%s“ hat %s Personen, mehr kann eine Gruppe nicht haben.",
	"\"%s\" has %s apps, which is as many as a group can have.":                                         "„%s“ hat %s Apps, mehr kann eine Gruppe nicht haben.",
	"%s is removed. Invite them to let them in again.":                                                  "%s ist entfernt. Eine Einladung lässt sie wieder herein.",
	"The server does not know groups yet. Whoever runs it has to update it.":                            "Der Server kennt noch keine Gruppen. Wer ihn betreibt, muss ihn aktualisieren.",
	"The end has to be later than now.":                                                                 "Das Ende muss später als jetzt sein.",
	"All groups together can open %s apps, counted once for each person. Split or remove one first.":    "Alle Gruppen zusammen können %s Apps öffnen, für jede Person einmal gezählt. Teilen oder entfernen Sie zuerst eine.",
	"The groups of a computer can open at most 5,000 apps, counted once for each person.":               "Die Gruppen eines Computers können höchstens 5.000 Apps öffnen, für jede Person einmal gezählt.",
	"Porchlight could not write to its data directory, so the group stays as it was. Is the disk full?": "Porchlight konnte nicht in sein Datenverzeichnis schreiben, also bleibt die Gruppe, wie sie war. Ist der Datenträger voll?",
}
