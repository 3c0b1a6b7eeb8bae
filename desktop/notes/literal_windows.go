package notes

// literalNote: the library puts a note's text into XML, and into a script where that
// fails, and escapes it in neither.
func literalNote(text string) string { return harmless(text) }
