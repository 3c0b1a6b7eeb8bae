package agentapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// answer is a response as a client gets it.
func answer(status int, contentType, body string, header ...string) *http.Response {
	resp := &http.Response{
		StatusCode: status,
		Header:     http.Header{"Content-Type": {contentType}},
		Body:       io.NopCloser(strings.NewReader(body)),
		Request:    httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8765/status", nil),
	}
	for i := 0; i+1 < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp
}

// TestCodesCrossTheWire: a refusal keeps its code and its sentence between
// server and client.
func TestCodesCrossTheWire(t *testing.T) {
	t.Parallel()
	seen := map[int]Code{}
	for code, status := range statuses {
		if other, twice := seen[status]; twice {
			t.Errorf("%s and %s share the status %d, so a client cannot tell them apart", code, other, status)
		}
		seen[status] = code
		if code.Status() != status {
			t.Errorf("%s.Status() = %d, want %d", code, code.Status(), status)
		}
		err := decode(answer(status, "application/json; charset=utf-8", `{"error":"Choose another name."}`))
		if CodeOf(err) != code || err.Error() != "Choose another name." {
			t.Errorf("%d decodes to %s %q, want %s", status, CodeOf(err), err, code)
		}
	}
	if got := Code("unheard of").Status(); got != http.StatusInternalServerError {
		t.Errorf("an undeclared code has the status %d", got)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 202, 204} {
		if err := decode(answer(status, "application/json", `{"error":"no"}`)); err != nil {
			t.Errorf("%d is an error: %v", status, err)
		}
	}
	for name, resp := range map[string]*http.Response{
		"a page":            answer(404, "text/html", "<h1>Not Found</h1>"),
		"JSON of another":   answer(500, "application/json", `{"message":"boom"}`),
		"an empty error":    answer(400, "application/json", `{"error":"  "}`),
		"a wrong type":      answer(400, "application/json", `{"error":7}`),
		"more than we take": answer(400, "application/json", `{"error":"`+strings.Repeat("x", maxErrorBody)+`"}`),
		"a redirect":        answer(302, "text/html", ""),
	} {
		err := decode(resp)
		if CodeOf(err) != CodeUpstream || !strings.Contains(err.Error(), "127.0.0.1:8765") {
			t.Errorf("%s decodes to %s %q, want a sentence that names the address", name, CodeOf(err), err)
		}
	}
}

func TestDecodeRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{"30": 30 * time.Second, "": 0, "-5": 0, "soon": 0} {
		err := decode(answer(429, "application/json", `{"error":"Wait."}`, "Retry-After", value))
		e, ok := errors.AsType[*Error](err)
		if !ok || e.RetryAfter != want {
			t.Errorf("Retry-After %q decodes to %+v, want %v", value, err, want)
		}
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	refusal := Errorf(CodeConflict, "The label %q is taken.", "Notes")
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, ""},
		{refusal, CodeConflict},
		{fmt.Errorf("publish: %w", refusal), CodeConflict},
		{errors.New("disk on fire"), CodeInternal},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}
