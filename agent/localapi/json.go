package localapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"porchlight/agent/agentapi"
)

// fields are those of a body that are known. Each is read by its type; the first that
// is not what it must be is kept in err, and what is read after it is zero.
type fields struct {
	raw map[string]json.RawMessage // as they were written
	err error
}

// readFields reads a body of one JSON object. encoding/json by itself would take
// "LABEL" for "label" and the last of two, so that two readers of the same body
// could see different requests; here both are refused. Fields nobody knows are
// ignored.
func readFields(r *http.Request, known ...string) *fields {
	raw, err := io.ReadAll(r.Body)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &fields{err: tooLarge()}
	}
	if err != nil {
		return &fields{err: invalid("The body broke off.")}
	}
	return parseFields(raw, known...)
}

func parseFields(raw []byte, known ...string) *fields {
	notObject := &fields{err: invalid("The body must be one JSON object.")}
	if !utf8.Valid(raw) {
		return &fields{err: invalid("The body is not valid UTF-8 text.")}
	}
	if !json.Valid(raw) { // all of it, whatever follows the object included
		return notObject
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return notObject
	}
	found := map[string]json.RawMessage{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return notObject
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return notObject
		}
		for _, name := range known {
			switch {
			case key == name && found[name] != nil:
				return &fields{err: invalid("The field %q is there twice.", name)}
			case key == name:
				found[name] = value
			case strings.EqualFold(key.(string), name):
				return &fields{err: invalid("The field %q must be written %q.", key, name)}
			}
		}
	}
	return &fields{raw: found}
}

// readBody reads a body into a struct, by the names that its fields have in JSON. A field
// without omitempty has to be there; one of unknown is ignored, as if the struct had none.
func readBody(r *http.Request, into any, unknown ...string) error {
	body := reflect.ValueOf(into).Elem()
	names := make([]string, body.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(body.Type().Field(i).Tag.Get("json"), ",")
	}
	f := readFields(r, names...)
	for i, name := range names {
		optional := strings.HasSuffix(body.Type().Field(i).Tag.Get("json"), ",omitempty")
		if optional && !f.has(name) || slices.Contains(unknown, name) {
			continue
		}
		switch to := body.Field(i).Addr().Interface().(type) {
		case *string:
			*to = f.text(name)
		case *bool:
			*to = f.truth(name)
		case *int:
			*to = f.integer(name)
		case *[]string:
			*to = f.texts(name)
		}
	}
	return f.err
}

// with makes a handler of one that is given the body, read.
func with[Body any](serve func(*API, *http.Request, Body) (any, error)) handler {
	return func(a *API, r *http.Request) (any, error) {
		var body Body
		if err := readBody(r, &body); err != nil {
			return nil, err
		}
		return serve(a, r, body)
	}
}

// readChange returns what a body does to a table of the owner's choices. It is a merge
// patch (RFC 7396): what is not named stays as it is, because a client need not know all
// there are, and null is the default. encoding/json leaves what is not there as it is; a
// default is written into the patch first.
func readChange[T any](r *http.Request, table []agentapi.Field) (func(*T), error) {
	names := make([]string, len(table))
	for i, one := range table {
		names[i] = one.Name
	}
	f := readFields(r, names...)
	patch := map[string]any{}
	for _, one := range table {
		if !f.has(one.Name) {
			continue
		}
		if patch[one.Name] = one.Default; string(f.raw[one.Name]) == "null" {
			continue
		}
		switch one.Default.(type) {
		case bool:
			patch[one.Name] = f.truth(one.Name)
		case int:
			patch[one.Name] = f.integer(one.Name)
		case string:
			patch[one.Name] = f.text(one.Name)
		case []string:
			patch[one.Name] = f.texts(one.Name)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	merge, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return func(to *T) { _ = json.Unmarshal(merge, to) }, nil // cannot fail: types are checked above
}

// has says whether a field is there.
func (f *fields) has(name string) bool { return f.raw[name] != nil }

// text is the string in a field that has to be there.
func (f *fields) text(name string) (s string) {
	f.decode(name, &s, "a text in quotes")
	return s
}

// optional is the string in a field that may be missing.
func (f *fields) optional(name string) string {
	if !f.has(name) {
		return ""
	}
	return f.text(name)
}

// truth is the true or false in a field that has to be there.
func (f *fields) truth(name string) (b bool) {
	f.decode(name, &b, "true or false, without quotes")
	return b
}

// texts are the strings of the list in a field that has to be there.
func (f *fields) texts(name string) []string {
	const must = "a list of texts in quotes"
	var all []*string // null is no text
	if f.decode(name, &all, must); slices.Contains(all, nil) {
		f.refuse("The field %q must be %s.", name, must)
		return nil
	}
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = *s
	}
	return out
}

// integer is the whole number in a field that has to be there.
func (f *fields) integer(name string) int {
	var written json.RawMessage
	const must = "a whole number, without quotes"
	if f.decode(name, &written, must); f.err != nil {
		return 0
	}
	if n, err := strconv.Atoi(string(written)); err == nil {
		return n
	}
	// JSON has one kind of number: 8000.0 and 8e3 are whole ones too. A float64
	// holds every whole number up to exact, and nothing asked for is larger.
	const exact = 1 << 53
	n, err := strconv.ParseFloat(string(written), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > exact {
		f.refuse("The field %q must be %s.", name, must)
		return 0
	}
	return int(n)
}

// decode reads a field that has to be there into a value, which is what the field
// must be.
func (f *fields) decode(name string, value any, must string) {
	switch raw := f.raw[name]; {
	case f.err != nil:
	case raw == nil || string(raw) == "null":
		f.refuse("The field %q is missing.", name)
	case json.Unmarshal(raw, value) != nil:
		f.refuse("The field %q must be %s.", name, must)
	}
}

func (f *fields) refuse(format string, args ...any) {
	if f.err == nil {
		f.err = invalid(format, args...)
	}
}

func invalid(format string, args ...any) error {
	return agentapi.Errorf(agentapi.CodeInvalid, format, args...)
}

// accepted is an answer of a handler that goes out with 202 in place of 200.
type accepted struct{ body any }

// stream is an answer of a handler that is written bit by bit.
type stream func(http.ResponseWriter) error

// done answers what has no other answer.
var done = agentapi.Done{OK: true}

// reply writes what a handler answers.
func reply(w http.ResponseWriter, body any) error {
	status := http.StatusOK
	switch b := body.(type) {
	case stream:
		return b(w)
	case accepted:
		status, body = http.StatusAccepted, b.body
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	write(w, status, raw)
	return nil
}

// fail answers with a refusal. What is not one is a fault of ours: it is logged,
// here and nowhere else, and the caller learns no more than that.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if w.Header().Get("Content-Type") == eventStream {
		return // it has begun, and its reader comes again
	}
	if errors.Is(err, errGone) {
		panic(http.ErrAbortHandler)
	}
	refusal, ok := errors.AsType[*agentapi.Error](err)
	if !ok {
		if r.Context().Err() != nil {
			return // nobody waits for the answer
		}
		s.log.Error("a request failed", "method", r.Method, "err", err)
		refusal = agentapi.Errorf(agentapi.CodeInternal, "Something went wrong inside Porchlight. Its log says what.")
	}
	if refusal.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refusal.RetryAfter.Seconds()))))
	}
	body := agentapi.ErrorBody{Error: refusal.Message}
	if strings.HasPrefix(r.URL.Path, "/owner/") && len(refusal.Words.Args) > 0 {
		body.Words = &refusal.Words
	}
	raw, err := json.Marshal(body)
	if err != nil {
		s.log.Error("a refusal cannot be written", "err", err)
	}
	write(w, refusal.Code.Status(), raw)
}

// write sends a whole answer; a reader that does not take it in time loses the
// connection.
func write(w http.ResponseWriter, status int, body []byte) {
	// A writer without deadlines is one of a test, not of a connection.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeIn))
	head := w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("Content-Length", strconv.Itoa(len(body)+1))
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
