package agentapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"unicode"
)

// Field describes one of the owner's choices: a field of AppOptions or of Settings. Both
// are tables that the loopback API and the command line read, so that a choice is added
// in one place.
type Field struct {
	Name    string // in JSON
	Help    string // what it does, in a few words
	Default any    // a bool, int, string or []string
	// Says is a sentence about how it is, with %s for that, and None what is put there of
	// an empty text or list; empty where the table says nothing of it.
	Says, None string
	index      int
}

// Flag is the field on the command line: localhostHost is --localhost-host.
func (f Field) Flag() string {
	var b strings.Builder
	for _, c := range f.Name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// Of is the field's value in the struct that it is of.
func (f Field) Of(all any) any { return reflect.ValueOf(all).Field(f.index).Interface() }

// fieldsOf reads the tags of a struct. A default is JSON, of a text the text itself; without
// one it is false, 0 or empty.
func fieldsOf[T any]() (all []Field) {
	for i, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		tag, value := field.Tag, reflect.New(field.Type)
		if text, ok := value.Interface().(*string); ok {
			*text = tag.Get("default")
		} else if written := tag.Get("default"); written != "" {
			if err := json.Unmarshal([]byte(written), value.Interface()); err != nil {
				panic("the default of " + field.Name + " is " + err.Error())
			}
		}
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		all = append(all, Field{
			Name: name, Help: tag.Get("help"), Default: value.Elem().Interface(),
			Says: tag.Get("says"), None: tag.Get("none"), index: i,
		})
	}
	return all
}
