package notes

// literalNote: macOS shows a note's text as it is.
func literalNote(text string) string { return asShown(text) }
