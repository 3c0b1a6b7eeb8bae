package words

// germanAdmin has the pages of /admin.
var germanAdmin = map[string]string{
	"Overview":           "Übersicht",
	"Server":             "Server",
	"to run this server": "um diesen Server zu betreiben",
	"%s, operator":       "%s, Betreiber",
	"You see who and how much, never what. Every act here is kept in the audit log.": "Zu sehen ist, wer und wie viel, nie was. Jede Handlung hier steht im Protokoll.",
}
