package proxy

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// The launcher can be installed, as a page that a phone or a desktop opens like an app.
// What that takes is public: the host that whoever asks knows, and our icon. So it is
// asked for without a cookie.

// pageColour is the colour of the window around an installed launcher: the page's in
// light.
const pageColour = "#faf9f7"

type webManifest struct {
	ID               string    `json:"id"`
	Name             string    `json:"name"`
	ShortName        string    `json:"short_name"`
	StartURL         string    `json:"start_url"`
	Scope            string    `json:"scope"`
	Display          string    `json:"display"`
	ThemeColour      string    `json:"theme_color"`
	BackgroundColour string    `json:"background_color"`
	Icons            []webIcon `json:"icons"`
}

type webIcon struct {
	Source  string `json:"src"`
	Sizes   string `json:"sizes"`
	Type    string `json:"type"`
	Purpose string `json:"purpose"`
}

// manifest is the web app manifest of the launcher; apps have their own.
func manifest(r *http.Request, vhost virtualHost) *answer {
	switch {
	case vhost.app.ID != "":
		return nothingHere()
	case !reads(r):
		return wrongMethod(r, "GET, HEAD")
	}
	return &answer{send: func(w http.ResponseWriter, _ *http.Request) {
		raw, err := json.Marshal(webManifest{
			ID: "/", Name: vhost.host, ShortName: vhost.root.Name, StartURL: "/", Scope: "/", Display: "standalone",
			ThemeColour: pageColour, BackgroundColour: pageColour,
			Icons: []webIcon{
				{pathIcon192, "192x192", "image/png", "any"},
				{pathIcon512, "512x512", "image/png", "any"},
				{pathFull192, "192x192", "image/png", "maskable"},
			},
		})
		if err != nil { // strings always encode
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/manifest+json")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'")
		h.Set("Cache-Control", "public, max-age=3600")
		h.Set("Content-Length", strconv.Itoa(len(raw)))
		w.Write(raw)
	}}
}
