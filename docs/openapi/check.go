package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// maxKept bounds how much of an answer is kept to be looked at, in bytes. What
// is longer is passed on and only its status and headers are checked.
const maxKept = 8 << 20

// Checked answers as next does, and calls report with every answer that the
// document does not describe, and with every JSON body that was taken and should
// not have been by the document; report is called before the handler returns.
// Answers that were aborted, or that nobody waited for, are not looked at, nor
// are those of addresses that the document does not have, unless they are refusals
// in JSON: such a one has the shape of the schema Error, or OAuthError where there
// is one.
func (d *Document) Checked(next http.Handler, report func(format string, args ...any)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &seen{ResponseWriter: w}
		asked := &asked{ReadCloser: r.Body}
		r.Body = asked
		sent := r.Clone(r.Context()) // next may let go of what was sent
		next.ServeHTTP(seen, r)      // one that panics has aborted its answer
		if r = sent; r.Context().Err() != nil {
			return
		}
		if err := d.checkTaken(r, asked.body.Bytes(), seen.statusCode()); err != nil {
			report("%s does not allow what %s %s took: %v\n%.300s", d.name, r.Method, r.URL.Path, err, asked.body.Bytes())
		}
		if err := d.check(r, seen); err != nil {
			report("%s does not describe the answer %d to %s %s: %v\n%.300s", d.name, seen.statusCode(), r.Method, r.URL.Path, err, seen.body.Bytes())
		}
	})
}

// asked is a request's body that keeps what was read of it.
type asked struct {
	io.ReadCloser
	body bytes.Buffer
}

func (a *asked) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.body.Write(p[:min(n, maxKept-a.body.Len())])
	return n, err
}

// checkTaken holds a JSON body to the document once it was carried out.
func (d *Document) checkTaken(r *http.Request, body []byte, status int) error {
	_, _, op := d.operation(r)
	if op == nil || status >= 300 || op.RequestBody == nil {
		return nil
	}
	media := op.RequestBody.Value.Content["application/json"]
	if media == nil {
		return nil
	}
	if len(body) == 0 {
		if op.RequestBody.Value.Required {
			return errors.New("nothing was sent")
		}
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	return media.Schema.Value.VisitJSON(value, openapi3.MultiErrors(), openapi3.VisitAsRequest(), openapi3.SetSchemaErrorMessageCustomizer(inShort))
}

// seen is a ResponseWriter that keeps what goes through it.
type seen struct {
	http.ResponseWriter
	status int
	header http.Header // as sent
	body   bytes.Buffer
	cut    bool
}

func (s *seen) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *seen) WriteHeader(status int) {
	if s.status == 0 {
		s.status, s.header = status, s.Header().Clone()
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *seen) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.status, s.header = http.StatusOK, s.Header().Clone()
	}
	if room := maxKept - s.body.Len(); len(p) > room {
		s.cut = true
		s.body.Write(p[:room])
	} else {
		s.body.Write(p)
	}
	return s.ResponseWriter.Write(p)
}

func (s *seen) statusCode() int {
	if s.status == 0 {
		return http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	return s.status
}

func (d *Document) check(r *http.Request, answer *seen) error {
	path, item, op := d.operation(r)
	if op == nil {
		return d.checkUndescribed(r, item, answer)
	}
	header := answer.header
	if header == nil {
		header = answer.Header()
	}
	response, err := described(op, answer.statusCode())
	if err != nil {
		return err
	}
	body := answer.body.Bytes()
	if answer.statusCode() == http.StatusNoContent && len(body) > 0 {
		return errors.New("it has a body there")
	}
	options := &openapi3filter.Options{
		IncludeResponseStatus: true,
		MultiError:            true,
		ExcludeResponseBody:   answer.cut || isEvents(header.Get("Content-Type")),
	}
	options.WithCustomSchemaErrorFunc(inShort)
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: r,
			Route:   &routers.Route{Spec: d.spec, Path: path, PathItem: item, Method: r.Method, Operation: op},
		},
		Status:  answer.statusCode(),
		Header:  header,
		Body:    io.NopCloser(bytes.NewReader(body)),
		Options: options,
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		return err
	}
	if media := response.Content.Get("text/event-stream"); media != nil && isEvents(header.Get("Content-Type")) && !answer.cut {
		return checkEvents(media.Schema.Value, body)
	}
	return nil
}

// checkEvents holds the data of each event to the schema. The last event may be
// cut off, as a stream ends anywhere.
func checkEvents(schema *openapi3.Schema, body []byte) error {
	events := strings.Split(string(body), "\n\n")
	for _, event := range events[:len(events)-1] {
		for line := range strings.SplitSeq(event, "\n") {
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			var value any
			if err := json.Unmarshal([]byte(data), &value); err != nil {
				return fmt.Errorf("an event: %w", err)
			}
			if err := visit(schema, value); err != nil {
				return fmt.Errorf("an event: %w", err)
			}
		}
	}
	return nil
}

// checkUndescribed looks at an answer where no operation is described.
func (d *Document) checkUndescribed(r *http.Request, item *openapi3.PathItem, answer *seen) error {
	if r.Method == http.MethodHead && item != nil && item.Get != nil {
		return nil // answered wherever GET is (RFC 9110, section 9.3.2), with no body to hold to anything
	}
	if answer.statusCode() < 400 && item != nil {
		return errors.New("the method is not described, and is taken")
	}
	if answer.statusCode() < 400 || answer.header.Get("Content-Type") != "application/json" || r.Method == http.MethodHead {
		return nil
	}
	var value any
	if err := json.Unmarshal(answer.body.Bytes(), &value); err != nil {
		return err
	}
	err := visit(d.spec.Components.Schemas["Error"].Value, value)
	if oauth := d.spec.Components.Schemas["OAuthError"]; err != nil && oauth != nil && visit(oauth.Value, value) == nil {
		return nil
	}
	return err
}

func visit(schema *openapi3.Schema, value any) error {
	return schema.VisitJSON(value, openapi3.MultiErrors(), openapi3.VisitAsResponse(), openapi3.SetSchemaErrorMessageCustomizer(inShort))
}

// inShort says where and what, without the schema and the value.
func inShort(err *openapi3.SchemaError) string {
	short := fmt.Sprintf("at /%s: %s", strings.Join(err.JSONPointer(), "/"), err.Reason)
	if err.Origin != nil { // why none of several schemas fits
		short += " (" + err.Origin.Error() + ")"
	}
	return short
}
