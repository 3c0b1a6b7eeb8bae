package words

import (
	"bytes"
	"html/template"
	"testing"

	"porchlight/test/programs"
)

// A folded template writes what one that is not does, marks in a sentence included, and
// asks for the sentence no more.
func TestFoldedWritesTheSame(t *testing.T) {
	t.Parallel()
	const source = `{{define "inner"}}{{say "Sign in"}}{{end}}<p title="{{say "a \"b\" & 'c' <d>"}}">{{say "a \"b\" & 'c' <d>"}}` +
		`{{if .}}{{say "Account"}}{{else}}{{say "Sign in"}}{{end}}{{range .}}{{.}}{{- say "Account" -}} {{end}}{{with .}}{{say "%d" 1}}{{end}}{{template "inner"}}</p>`
	asked := 0
	for _, l := range All() {
		funcs := l.Funcs()
		funcs["say"] = func(sentence string, args ...any) string { asked++; return l.Say(sentence, args...) }
		made := func() *template.Template { return template.Must(template.New("t").Funcs(funcs).Parse(source)) }
		for _, value := range [][]string{nil, {"x", "y"}} {
			written := func(t2 *template.Template) string {
				var out bytes.Buffer
				programs.Must(t, t2.Execute(&out, value))
				return out.String()
			}
			plain := written(made())
			asked = 0
			if folded := written(l.FoldHTML(made())); folded != plain || asked != len(value)/2 {
				t.Errorf("%s: %s\nnot folded: %s\nasked %d times", l.Tag(), folded, plain, asked)
			}
		}
	}
}
