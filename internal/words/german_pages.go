package words

// germanPages has the pages that visitors and members see.
var germanPages = map[string]string{
	"What this is": "Was das ist",
}
