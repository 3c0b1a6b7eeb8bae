package openapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"porchlight/test/programs"
)

func TestDocumentsAreValid(t *testing.T) {
	t.Parallel()
	for _, load := range []func() (*Document, error){Control, Loopback, Admin} {
		d := programs.Got(load())(t)
		if len(d.Operations()) < 10 {
			t.Errorf("%s has %d operations", d.name, len(d.Operations()))
		}
		ids := map[string]bool{}
		for path, item := range d.spec.Paths.Map() {
			for method, op := range item.Operations() {
				if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || len(op.Tags) != 1 {
					t.Errorf("%s %s: id %q, summary %q, tags %v", method, path, op.OperationID, op.Summary, op.Tags)
				}
				ids[op.OperationID] = true
			}
		}
	}
}

// A checked handler passes answers on and reports those that are not described.
func TestChecked(t *testing.T) {
	t.Parallel()
	d := programs.Got(Loopback())(t)
	const json = "application/json"
	for what, tt := range map[string]struct {
		request string
		status  int
		kind    string
		body    string
		reports string // part of the report, empty for none
	}{
		"described":              {"GET /publish/notes", 200, json, `{"status":"pending"}`, ""},
		"refused by the guard":   {"GET /publish/notes", 403, json, `{"error":"No."}`, ""},
		"another field":          {"GET /publish/notes", 200, json, `{"status":"pending","name":"x"}`, `"name" is unsupported`},
		"a field of another one": {`POST /publish {"name":"notes","label":"Notes","localPort":8000}`, 202, json, `{"status":"pending","host":"x"}`, `host`},
		"a field is missing":     {"GET /status", 200, json, `{"connected":true}`, `pendingApps`},
		"another status":         {"GET /publish/notes", 409, json, `{"error":"No."}`, "not described"},
		"another type":           {"GET /status", 200, "text/plain", `hello`, "Content-Type"},
		"no sentence":            {"GET /status", 500, json, `{"error":""}`, "minimum"},
		"no JSON":                {"GET /status", 500, json, `{`, "decode"},
		"nothing described":      {"GET /nothing", 404, json, `{"error":"Nothing."}`, ""},
		"nothing, another shape": {"GET /nothing", 404, json, `{"message":"Nothing."}`, "error"},
		"another method":         {"PUT /status", 405, json, `{"error":"No."}`, ""},
		"another method, taken":  {"PUT /status", 200, json, `{}`, "taken"},
		"a body, taken":          {`POST /publish {"name":"notes","label":"Notes","localPort":8000,"later":1}`, 202, json, `{"status":"pending"}`, ""},
		"a body, refused":        {`POST /publish {"name":"Notes"}`, 400, json, `{"error":"No."}`, ""},
		"a wrong body, taken":    {`POST /publish {"name":"Notes","label":"Notes","localPort":8000}`, 202, json, `{"status":"pending"}`, "does not allow"},
		"no body, taken":         {"POST /publish", 202, json, `{"status":"pending"}`, "nothing was sent"},
		"events":                 {"GET /owner/events", 200, "text/event-stream", ":\n\nevent: state\ndata: {\"seq\":\"x\"}\n\n", "an event"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			method, path, _ := strings.Cut(tt.request, " ")
			path, sent, _ := strings.Cut(path, " ")
			var reports []string
			handler := d.Checked(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != sent {
					t.Errorf("received %q, %v", body, err)
				}
				w.Header().Set("Content-Type", tt.kind)
				w.Header().Set("Cache-Control", "no-store")
				w.WriteHeader(tt.status)
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				fmt.Fprint(w, tt.body)
			}), func(format string, args ...any) { reports = append(reports, fmt.Sprintf(format, args...)) })
			got := httptest.NewRecorder()
			handler.ServeHTTP(got, httptest.NewRequest(method, path, strings.NewReader(sent)))
			if got.Code != tt.status || got.Body.String() != tt.body {
				t.Errorf("passed on: %d %s", got.Code, got.Body)
			}
			switch {
			case tt.reports == "" && len(reports) != 0, tt.reports != "" && len(reports) != 1,
				len(reports) == 1 && !strings.Contains(reports[0], tt.reports):
				t.Errorf("reports %q, want one with %q", reports, tt.reports)
			}
		})
	}
}
