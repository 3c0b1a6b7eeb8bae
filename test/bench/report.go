package main

// document writes the sections of played parts into the document.
func (r *results) document([]part) error { return nil }
