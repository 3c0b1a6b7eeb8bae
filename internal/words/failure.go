package words

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Failure is an error that people read. Its text is English, as logs and the command
// line have it; Words say it in another language.
type Failure struct {
	Words Sentence
	err   error
}

// Errorf is fmt.Errorf of a sentence that people read.
func Errorf(format string, args ...any) error {
	return &Failure{OfFormat(format, args...), fmt.Errorf(format, args...)}
}

func (f *Failure) Error() string { return f.err.Error() }

// Unwrap is the error of fmt, which knows what was wrapped.
func (f *Failure) Unwrap() error { return f.err }

// InWords is an error as a sentence to be said later: of the first Failure in its
// chain, and otherwise its English text.
func InWords(err error) Sentence {
	if f, ok := errors.AsType[*Failure](err); ok && !f.Words.IsZero() {
		return f.Words
	}
	return Plain(err.Error())
}

// printed are the verbs that a sentence of another language has as %s.
var printed = regexp.MustCompile(`%(\[\d+\])?(?:\.(\d+))?([dqsvw])`)

// keyOf is the key of a sentence that was written for fmt: its arguments are strings.
func keyOf(format string) string {
	return printed.ReplaceAllStringFunc(format, func(verb string) string {
		m := printed.FindStringSubmatch(verb)
		if m[3] == "q" {
			return `"%` + m[1] + `s"`
		}
		return "%" + m[1] + "s"
	})
}

// OfFormat is a sentence that was written for fmt; zero where an argument is none that
// can be put into another language's. A number is mostly a port, which no language
// groups by thousands.
func OfFormat(format string, args ...any) Sentence {
	said := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			said[i] = arg
		case int:
			said[i] = strconv.Itoa(arg)
		case Sentence:
			said[i] = arg
		case error:
			said[i] = InWords(arg)
			if _, ok := errors.AsType[*Failure](arg); !ok {
				said[i] = arg.Error() // the system's own words
			}
		default:
			return Sentence{}
		}
	}
	for i, verb := range printed.FindAllStringSubmatch(format, -1) {
		if most, err := strconv.Atoi(verb[2]); err == nil && i < len(said) {
			if text, ok := said[i].(string); ok {
				said[i] = fmt.Sprintf("%.*s", most, text)
			}
		}
	}
	return Sentence{Key: keyOf(format), Args: said}
}
