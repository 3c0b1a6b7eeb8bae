// Package openapi holds the OpenAPI documents of the three HTTP interfaces and
// holds the programs to them: a handler wrapped by Document.Checked gives the
// same answers, and reports every one that its document does not describe. The
// tests of the interfaces run behind such handlers, so that each of them checks
// the document besides what it is about.
//
// The documents leave room for fields of later versions. A Document does not: a
// field that is answered and not described is reported.
package openapi

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

var (
	//go:embed control.yaml
	control []byte
	//go:embed admin.yaml
	administration []byte
	//go:embed loopback.yaml
	loopback []byte
)

// Document is an OpenAPI document. It is safe for concurrent use.
type Document struct {
	name string
	spec *openapi3.T
	// routes finds the described path of a request; its handlers are never
	// called.
	routes *http.ServeMux
	paths  map[string]*openapi3.PathItem // by pattern of routes
}

// Control is the control plane's.
func Control() (*Document, error) { return load("docs/openapi/control.yaml", control) }

// Admin is that of the operator's programs.
func Admin() (*Document, error) { return load("docs/openapi/admin.yaml", administration) }

// Loopback is the loopback API's.
func Loopback() (*Document, error) { return load("docs/openapi/loopback.yaml", loopback) }

func load(name string, raw []byte) (*Document, error) {
	spec, err := openapi3.NewLoader().LoadFromData(raw)
	if err == nil {
		err = spec.Validate(context.Background())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := &Document{name: name, spec: spec, routes: http.NewServeMux(), paths: map[string]*openapi3.PathItem{}}
	for path, item := range spec.Paths.Map() {
		d.routes.Handle(path, http.NotFoundHandler())
		d.paths[path] = item
	}
	var strict closer
	strict.document(spec)
	return d, nil
}

// Operations are the described ones, as "METHOD /path", sorted.
func (d *Document) Operations() []string {
	var out []string
	for path, item := range d.paths {
		for method := range item.Operations() {
			out = append(out, method+" "+path)
		}
	}
	slices.Sort(out)
	return out
}

// Tag is the tag of an operation, named as by Operations; empty for one that is
// not described.
func (d *Document) Tag(operation string) string {
	method, path, _ := strings.Cut(operation, " ")
	item := d.paths[path]
	if item == nil || item.GetOperation(method) == nil {
		return ""
	}
	return strings.Join(item.GetOperation(method).Tags, ", ")
}

// operation is what describes a request: its path, and its operation where the
// method is described, too.
func (d *Document) operation(r *http.Request) (path string, item *openapi3.PathItem, op *openapi3.Operation) {
	_, path = d.routes.Handler(&http.Request{Method: http.MethodGet, URL: r.URL})
	if item = d.paths[path]; item == nil {
		return "", nil, nil
	}
	if r.Method == http.MethodHead && item.Head == nil {
		return path, item, item.Get // answers the same, without the body
	}
	return path, item, item.GetOperation(r.Method)
}

// described is the response an operation has for a status. The default response
// stands for the statuses its extension x-statuses names.
func described(op *openapi3.Operation, status int) (*openapi3.Response, error) {
	if ref := op.Responses.Value(strconv.Itoa(status)); ref != nil {
		return ref.Value, nil
	}
	if ref := op.Responses.Default(); ref != nil {
		statuses, _ := ref.Value.Extensions["x-statuses"].([]any)
		for _, s := range statuses {
			if fmt.Sprint(s) == strconv.Itoa(status) {
				return ref.Value, nil
			}
		}
	}
	return nil, errors.New("the status is not described")
}

// closer makes the schemas of a document's answers refuse what they do not name.
type closer struct{ seen map[*openapi3.Schema]bool }

func (c *closer) document(spec *openapi3.T) {
	c.seen = map[*openapi3.Schema]bool{}
	for _, item := range spec.Paths.Map() {
		for _, op := range item.Operations() {
			for _, ref := range op.Responses.Map() {
				for _, media := range ref.Value.Content {
					c.schema(media.Schema)
				}
			}
		}
	}
}

func (c *closer) schema(ref *openapi3.SchemaRef) {
	if ref == nil || ref.Value == nil || c.seen[ref.Value] {
		return
	}
	s := ref.Value
	c.seen[s] = true
	if s.Properties != nil && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		closed := false
		s.AdditionalProperties.Has = &closed
	}
	c.schema(s.Items)
	for _, p := range s.Properties {
		c.schema(p)
	}
	for _, list := range []openapi3.SchemaRefs{s.OneOf, s.AnyOf, s.AllOf} {
		for _, p := range list {
			c.schema(p)
		}
	}
}

// isEvents says whether an answer is a stream of events.
func isEvents(contentType string) bool {
	return strings.HasPrefix(contentType, "text/event-stream")
}
