package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
)

// operation is one of the owner tier that a page may ask for. The table of them,
// operations, is written from docs/openapi/loopback.yaml: what has no x-window
// there is not in it.
type operation struct {
	method, path string // {name} in path stands for a value
	takes        []parameter
}

// parameter is a value that an operation takes.
type parameter struct {
	name     string
	in       place
	kind     kind
	required bool
	nullable bool // null is a value of it, too
}

// place is where in a request a value goes.
type place int

const (
	inPath place = iota
	inQuery
	inBody
)

// kind is what a value is, in words.
type kind string

const (
	aText    kind = "a text"
	aNumber  kind = "a whole number"
	aBoolean kind = "true or false"
	texts    kind = "a list of texts"
)

// maxNumber is the largest that a page knows exactly.
const maxNumber = 1<<53 - 1

// Call sends a request to the owner tier, with the owner secret, and returns its
// answer as it came.
type Call func(ctx context.Context, method, path string, body any) (json.RawMessage, error)

// Agent is the owner tier, as a page can ask it.
type Agent struct{ call Call }

// NewAgent makes it. The owner secret stays with call: no page ever sees it.
func NewAgent(call Call) *Agent { return &Agent{call} }

// Ask carries out an operation and returns its answer. The page names the
// operation and gives its values; method, path and headers are decided here.
func (a *Agent) Ask(name string, values map[string]any) (json.RawMessage, error) {
	op, marked := operations[name]
	if !marked {
		return nil, fmt.Errorf("The window may not ask for %q.", name)
	}
	path, body, err := op.request(values)
	if err != nil {
		return nil, fmt.Errorf("The window asked for %s with %w.", name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return a.call(ctx, op.method, path, body)
}

// request puts values where an operation has them. The body is nil for an
// operation that takes none.
func (op operation) request(values map[string]any) (path string, body any, err error) {
	for name := range values {
		if !slices.ContainsFunc(op.takes, func(p parameter) bool { return p.name == name }) {
			return "", nil, fmt.Errorf("%q, which it does not take", name)
		}
	}
	path = op.path
	query, fields := url.Values{}, map[string]any{}
	for _, p := range op.takes {
		value, given := values[p.name]
		if p.in == inBody {
			body = fields
		}
		switch {
		case !given && p.required:
			return "", nil, fmt.Errorf("no %q", p.name)
		case !given:
			continue
		case !p.allows(value):
			return "", nil, fmt.Errorf("a %q that is not %s", p.name, p.kind)
		}
		switch p.in {
		case inPath:
			path = strings.Replace(path, "{"+p.name+"}", url.PathEscape(written(value)), 1)
		case inQuery:
			query.Set(p.name, written(value))
		case inBody:
			fields[p.name] = value
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, body, nil
}

// allows says whether a value, decoded from JSON, is one of a parameter's. In a
// path it is exactly one segment: escaping makes one of everything but these.
func (p parameter) allows(value any) bool {
	if p.in == inPath && slices.Contains([]any{"", ".", ".."}, value) {
		return false
	}
	switch value := value.(type) {
	case nil:
		return p.nullable
	case string:
		return p.kind == aText
	case bool:
		return p.kind == aBoolean
	case float64:
		return p.kind == aNumber && value == math.Trunc(value) && math.Abs(value) <= maxNumber
	case []any:
		return p.kind == texts && !slices.ContainsFunc(value, isNoText)
	}
	return false
}

func isNoText(value any) bool {
	_, text := value.(string)
	return !text
}

// written is a value as it stands in an address.
func written(value any) string {
	if number, ok := value.(float64); ok {
		return fmt.Sprintf("%.0f", number)
	}
	return fmt.Sprint(value)
}
