package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"porchlight/control/controlapi"
)

// How much the head of a request may hold. Pages of one domain can fill a browser
// with cookies for all of its hosts, ours among them; without an answer it could
// not even sign in. So the server in front reads much more than this, and who sent too
// much is told: over HTTP/1.1 the whole head comes here (relay.maxHead), over HTTP/2 what
// tells the kind of answer (MarkTooLong).
const (
	maxHead   = 64 << 10 // bytes
	maxFields = 200
)

// bounded refuses a request whose head is too large, as its tier does.
func (h *handler) bounded(t tier, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		large, byCookie := tooLarge(r)
		if t != tierDevice || large {
			w = &lettingGo{ResponseWriter: w, r: r}
		}
		if !large {
			next.ServeHTTP(w, r)
			return
		}
		e := h.headTooLarge(w, t.forPeople() && byCookie && loadsPage(r))
		if t.forPeople() {
			h.showError(w, r, e)
		} else {
			writeError(w, e)
		}
	})
}

// lettingGo lets go of a request's head when its answer begins, which need not know it and
// may wait for somebody who reads slowly.
type lettingGo struct {
	http.ResponseWriter
	r    *http.Request
	done bool
}

func (w *lettingGo) WriteHeader(status int) {
	w.letGo()
	w.ResponseWriter.WriteHeader(status)
}

func (w *lettingGo) Write(b []byte) (int, error) {
	w.letGo()
	return w.ResponseWriter.Write(b)
}

func (w *lettingGo) letGo() {
	if w.done {
		return
	}
	w.done = true
	w.r.Header, w.r.Trailer, w.r.URL, w.r.RequestURI, w.r.Form, w.r.PostForm = http.Header{}, nil, &url.URL{Path: "/"}, "/", nil, nil
	for below := w.ResponseWriter; ; {
		switch own := below.(type) {
		case interface{ DropHead() }: // of HTTP/2
			own.DropHead()
			return
		case interface{ Unwrap() http.ResponseWriter }:
			below = own.Unwrap()
		default:
			return
		}
	}
}

func (w *lettingGo) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// tooLong is the field that MarkTooLong sets. Nobody can send one of this name.
const tooLong = ":too-long"

// MarkTooLong says in the header of a request, of which only some fields are there, that its
// head was too long, by the bytes of its cookies and of the rest, and the number of fields.
func MarkTooLong(h http.Header, cookies, rest, fields int) {
	h[tooLong] = []string{strconv.FormatBool(toBlame(cookies, rest, fields))}
}

// tooLarge says whether a request's head is too large, and whether its cookies
// are why: all the rest would be taken, and they alone are more than half of what
// is. Without the second, a link with a long enough address would have a browser
// lose the few cookies it has. Over HTTP/2 cookies may come in many pieces (RFC
// 9113, section 8.2.3), which net/http has put together.
func tooLarge(r *http.Request) (large, byCookie bool) {
	if cut := r.Header[tooLong]; len(cut) > 0 {
		return true, cut[0] == "true"
	}
	rest, cookies, fields := len(r.Method)+len(r.RequestURI)+len(r.Host), 0, 1+len(r.TransferEncoding)
	for name, values := range r.Header {
		for _, value := range values {
			if name == "Cookie" {
				cookies += len(value)
			} else {
				rest += len(name) + len(value) + len(": \r\n")
			}
		}
		fields += len(values)
	}
	large = rest+cookies > maxHead || fields > maxFields
	return large, large && toBlame(cookies, rest, fields)
}

func toBlame(cookies, rest, fields int) bool {
	return rest <= maxHead && fields <= maxFields && cookies > maxHead/2
}

// headTooLarge is the refusal, 431. Cookies are deleted from a browser that loads
// a page and is kept out by nothing else: that takes the cookies of all hosts of its
// registrable domain, other people's too, so it is done for no lesser reason.
func (h *handler) headTooLarge(w http.ResponseWriter, clear bool) *controlapi.Error {
	e := &controlapi.Error{
		Code: controlapi.CodeInvalid, HTTPStatus: http.StatusRequestHeaderFieldsTooLarge,
		Message: "The request has more than 200 header fields, or they have more than 64 KiB. Send fewer or shorter ones; in a browser, delete the cookies of this address and load the page again.",
	}
	if clear {
		w.Header().Set("Clear-Site-Data", `"cookies"`)
		e.Message = "Pages of this site or of its neighbours had left more cookies in this browser than can be sent along. They are deleted now. Load the page again; you may have to sign in once more."
	}
	return e
}

// loadsPage says whether a request is a browser's that loads a page into a tab.
func loadsPage(r *http.Request) bool {
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		dest := r.Header.Get("Sec-Fetch-Dest")
		return mode == "navigate" && (dest == "document" || dest == "")
	}
	if len(r.Header["Upgrade"]) > 0 || len(r.Header["X-Requested-With"]) > 0 || len(r.Header["Origin"]) > 0 {
		return false // no browser's page load, however old
	}
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && acceptsPage(r)
}

func acceptsPage(r *http.Request) bool {
	return slices.ContainsFunc(r.Header["Accept"], func(v string) bool { return strings.Contains(v, "text/html") })
}
