package proxy

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"porchlight/assets/app"
)

// asset is what our pages load, the same on every host, published or not; nil for
// any other path.
func asset(r *http.Request) *answer {
	var kind, body string
	switch r.URL.Path {
	case pathStyle:
		kind, body = "text/css; charset=utf-8", styleSheet
	case pathIcon:
		kind, body = "image/svg+xml", icon
	case pathIcon192:
		kind, body = "image/png", app.Icon192
	case pathIcon512:
		kind, body = "image/png", app.Icon512
	case pathFull192:
		kind, body = "image/png", app.Full192
	case pathTouch:
		kind, body = "image/png", app.Touch180
	default:
		return nil
	}
	if !reads(r) {
		return wrongMethod(r, "GET, HEAD")
	}
	return &answer{
		header: http.Header{
			"Content-Type":            {kind},
			"X-Content-Type-Options":  {"nosniff"},
			"Content-Security-Policy": {"default-src 'none'; style-src 'unsafe-inline'"},
			"Cache-Control":           {"public, max-age=31536000, immutable"},
		},
		send: sent(body),
	}
}

// sent sends a text of ours.
func sent(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		// Piece by piece: what waits for a visitor who does not take it is one.
		_, _ = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{strings.NewReader(body)}, make([]byte, 4<<10))
	}
}
