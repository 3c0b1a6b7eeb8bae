package localapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"porchlight/agent/agentapi"
)

// fields are those of a body that are known, as they were written.
type fields map[string]json.RawMessage

// readFields reads a body of one JSON object. encoding/json by itself would take
// "LABEL" for "label" and the last of two, so that two readers of the same body
// could see different requests; here both are refused. Fields nobody knows are
// ignored.
func readFields(r *http.Request, known ...string) (fields, error) {
	raw, err := io.ReadAll(r.Body)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, invalid("The body broke off.")
	}
	return parseFields(raw, known...)
}

func parseFields(raw []byte, known ...string) (fields, error) {
	notObject := invalid("The body must be one JSON object.")
	if !utf8.Valid(raw) {
		return nil, invalid("The body is not valid UTF-8 text.")
	}
	if !json.Valid(raw) { // all of it, whatever follows the object included
		return nil, notObject
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, notObject
	}
	found := fields{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, notObject
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, notObject
		}
		for _, name := range known {
			switch {
			case key == name && found[name] != nil:
				return nil, invalid("The field %q is there twice.", name)
			case key == name:
				found[name] = value
			case strings.EqualFold(key.(string), name):
				return nil, invalid("The field %q must be written %q.", key, name)
			}
		}
	}
	return found, nil
}

// text is the string in a field that has to be there.
func (f fields) text(name string) (string, error) {
	raw, err := f.value(name)
	if err != nil {
		return "", err
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", invalid("The field %q must be a text in quotes.", name)
	}
	return s, nil
}

// integer is the whole number in a field that has to be there.
func (f fields) integer(name string) (int, error) {
	raw, err := f.value(name)
	if err != nil {
		return 0, err
	}
	if n, err := strconv.Atoi(string(raw)); err == nil {
		return n, nil
	}
	// JSON has one kind of number: 8000.0 and 8e3 are whole ones too. A float64
	// holds every whole number up to exact, and nothing asked for is larger.
	const exact = 1 << 53
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > exact {
		return 0, invalid("The field %q must be a whole number, without quotes.", name)
	}
	return int(n), nil
}

// texts are the strings of the list in a field that has to be there.
func (f fields) texts(name string) ([]string, error) {
	raw, err := f.value(name)
	if err != nil {
		return nil, err
	}
	var all []*string // null is no text
	if json.Unmarshal(raw, &all) != nil || slices.Contains(all, nil) {
		return nil, invalid("The field %q must be a list of texts in quotes.", name)
	}
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = *s
	}
	return out, nil
}

// truth is the true or false in a field that has to be there.
func (f fields) truth(name string) (bool, error) {
	raw, err := f.value(name)
	if err != nil {
		return false, err
	}
	var b bool
	if json.Unmarshal(raw, &b) != nil {
		return false, invalid("The field %q must be true or false, without quotes.", name)
	}
	return b, nil
}

func (f fields) value(name string) (json.RawMessage, error) {
	raw := f[name]
	if raw == nil || string(raw) == "null" {
		return nil, invalid("The field %q is missing.", name)
	}
	return raw, nil
}

func invalid(format string, args ...any) error {
	return agentapi.Errorf(agentapi.CodeInvalid, format, args...)
}

func answer(w http.ResponseWriter, status int, body any) error {
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
	raw, err := json.Marshal(agentapi.ErrorBody{Error: refusal.Message})
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
