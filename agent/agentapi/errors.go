package agentapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"porchlight/internal/words"
)

// Code says what kind of refusal an Error is. On the wire it is the status.
type Code string

const (
	CodeInvalid     Code = "invalid"      // the request itself is wrong
	CodeForbidden   Code = "forbidden"    // the caller may not do this here
	CodeNotFound    Code = "not_found"    // no such name or address
	CodeMethod      Code = "method"       // the address does not take this method
	CodeConflict    Code = "conflict"     // right in itself, but not in this state
	CodeTooLarge    Code = "too_large"    // body over MaxBody
	CodeMediaType   Code = "media_type"   // body that does not say it is JSON
	CodeTooMany     Code = "too_many"     // a limit is reached, see Error.RetryAfter
	CodeUnavailable Code = "unavailable"  // not connected, upstream away, stopping
	CodeInternal    Code = "internal"     // a fault of this computer or program
	CodeUpstream    Code = "bad_upstream" // upstream answered something unusable
)

// statuses is the one place where codes and HTTP statuses meet.
var statuses = map[Code]int{
	CodeInvalid:     http.StatusBadRequest,
	CodeForbidden:   http.StatusForbidden,
	CodeNotFound:    http.StatusNotFound,
	CodeMethod:      http.StatusMethodNotAllowed,
	CodeConflict:    http.StatusConflict,
	CodeTooLarge:    http.StatusRequestEntityTooLarge,
	CodeMediaType:   http.StatusUnsupportedMediaType,
	CodeTooMany:     http.StatusTooManyRequests,
	CodeUnavailable: http.StatusServiceUnavailable,
	CodeInternal:    http.StatusInternalServerError,
	CodeUpstream:    http.StatusBadGateway,
}

// Status is the HTTP status of the code; 500 for a code nobody declared.
func (c Code) Status() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Error is a refusal. Message is a sentence for a person that says what to do
// next; it is shown unchanged and crosses the wire as {"error": Message}.
type Error struct {
	Code    Code
	Message string
	// Words is Message with its arguments apart, for the owner's screen to say in another
	// language; zero where they cannot be told apart. It crosses the wire as "words".
	Words words.Sentence
	// RetryAfter, when positive, says how long a CodeTooMany or
	// CodeUnavailable lasts; whole seconds on the wire.
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Words: words.OfFormat(format, args...)}
}

// NoApp refuses a name that no app has.
func NoApp() *Error { return Errorf(CodeNotFound, "There is no app of this name.") }

// IsNoApp says whether err is that refusal, also where it came over the wire.
func IsNoApp(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == CodeNotFound && e.Message == NoApp().Message
}

// NoAppCalled refuses a label that no app of this computer has.
func NoAppCalled(label string) *Error {
	const longest = 100 // characters, like that of a label
	if short := []rune(label); len(short) > longest {
		label = string(short[:longest]) + "…"
	}
	return Errorf(CodeInvalid, "This computer serves no app called %q.", label)
}

// NotOverTCP refuses what only a web app can have.
func NotOverTCP(label string) *Error {
	return Errorf(CodeConflict, "%s is reached over TCP, and by nothing but porchlight reach.", label)
}

// CodeOf is the code of the *Error in err's chain, CodeInternal for any other
// error and empty for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// ErrorBody is the JSON body of every refusal.
type ErrorBody struct {
	Error string `json:"error"`
	// Words is Error.Words; for the owner alone.
	Words *words.Sentence `json:"words,omitempty"`
}

// maxErrorBody bounds what decode reads of a refusal, in bytes.
const maxErrorBody = 16 << 10

// decode reads a refusal off resp: nil when the status is 2xx (the body is then
// untouched), otherwise an *Error with the sentence of the body. The caller
// closes the body either way.
func decode(resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	e := &Error{Code: codeOfStatus(resp.StatusCode)}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	var body ErrorBody
	if err == nil && isJSON(resp) && json.Unmarshal(raw, &body) == nil && strings.TrimSpace(body.Error) != "" {
		e.Message = body.Error
		if body.Words != nil {
			e.Words = *body.Words
		}
		return e
	}
	strange := Errorf(CodeUpstream, "What listens at %s does not answer like Porchlight (HTTP %d). Another program may have taken its address.",
		resp.Request.URL.Host, resp.StatusCode)
	strange.RetryAfter = e.RetryAfter
	return strange
}

func codeOfStatus(status int) Code {
	for c, s := range statuses {
		if s == status {
			return c
		}
	}
	if status >= 500 {
		return CodeInternal
	}
	return CodeInvalid
}

func isJSON(resp *http.Response) bool {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && t == "application/json"
}
