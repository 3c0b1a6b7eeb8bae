package words

// germanCommon has what sentences of every room are made of.
var germanCommon = map[string]string{
	"%[1]s and %[2]s": "%[1]s und %[2]s",
	"%d more":         "%d weitere",
	"%d app":          "%d App",
	"%d apps":         "%d Apps",

	"%[1]s %[2]s":    "%[1]s. %[2]s", // a day and its month
	"January":        "Januar",
	"February":       "Februar",
	"March":          "März",
	"April":          "April",
	"May":            "Mai",
	"June":           "Juni",
	"July":           "Juli",
	"August":         "August",
	"September":      "September",
	"October":        "Oktober",
	"November":       "November",
	"December":       "Dezember",
	"Sign in":        "Anmelden",
	"Apps":           "Apps",
	"%s is paused":   "%s ist pausiert",
	"Deny":           "Ablehnen",
	"Allow":          "Erlauben",
	"Remove":         "Entfernen",
	"Revoke %s":      "%s widerrufen",
	"Revoke":         "Widerrufen",
	"Connected apps": "Verbundene Apps",
	"Disconnect":     "Trennen",
}
