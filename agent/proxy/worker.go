package proxy

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"

	"porchlight/internal/words"
)

// While this computer is off nobody answers for its hosts, and a browser shows an error of
// its own. One that has opened the launcher keeps a service worker of that host alone, which
// shows a page without names there. The page is part of the worker, which caches nothing, and
// a browser asks for another worker whenever it opens the launcher. Where the owner does not
// want it, it is told to end.

// pathWorker is at the root, which is what a worker for the whole host needs without a header
// that allows it more.
const pathWorker = "/worker.js"

var (
	//go:embed assets/off.html
	offSource string
	//go:embed assets/worker.js
	workerSource string
	//go:embed assets/ended.js
	endedWorker string
	//go:embed assets/launcher.js
	launcherScript string

	workers = words.InEach(workerIn)
)

// workerIn is the worker that says it in a language.
func workerIn(l words.Language) string {
	var page bytes.Buffer
	off := template.Must(template.New("off").Funcs(l.Funcs()).Parse(offSource))
	if err := off.Execute(&page, template.CSS(styleSheet)); err != nil {
		panic(err) // it is made of nothing that comes from outside
	}
	sum := sha256.Sum256([]byte(styleSheet))
	headers := map[string]string{
		"Content-Type":            "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; frame-ancestors 'none'",
		"Cache-Control":           "no-store",
		"X-Content-Type-Options":  "nosniff",
	}
	return strings.NewReplacer("PAGE", scripted(page.String()), "HEADERS", scripted(headers)).Replace(workerSource)
}

// scripted is a value as a script has it.
func scripted(v any) string {
	b, _ := json.Marshal(v) // texts always encode
	return string(b)
}

// keepsWorker says whether browsers are to keep the page for when this computer is off.
func (p *Proxy) keepsWorker() bool { return p.config.TellOff != nil && p.config.TellOff() }

// worker is the launcher's, or what ends it.
func (p *Proxy) worker(r *http.Request) *answer {
	if !p.keepsWorker() {
		return script(r, endedWorker)
	}
	return script(r, workers(words.Accepted(r.Header.Get("Accept-Language"))))
}

// launcherScript is one that the launcher has: it has a browser keep the worker, or says
// times.
func (p *Proxy) launcherScript(r *http.Request, vhost virtualHost, body string) *answer {
	if !vhost.launcher() {
		return nothingHere()
	}
	return script(r, body)
}

// script is one of ours, which a browser asks for anew each time.
func script(r *http.Request, body string) *answer {
	if !reads(r) {
		return wrongMethod(r, "GET, HEAD")
	}
	a := &answer{
		header: http.Header{
			"Content-Type":                 {"text/javascript; charset=utf-8"},
			"X-Content-Type-Options":       {"nosniff"},
			"Content-Security-Policy":      {"default-src 'none'; connect-src 'self'"},
			"Cross-Origin-Resource-Policy": {"same-origin"},
			"Cache-Control":                {"no-cache"},
			"Vary":                         {"Accept-Language"},
			"Etag":                         {`"` + version(body) + `"`},
		},
		send: sent(body),
	}
	if first(r.Header["If-None-Match"]) == a.header.Get("Etag") {
		a.Status, a.send = http.StatusNotModified, nil
	}
	return a
}
