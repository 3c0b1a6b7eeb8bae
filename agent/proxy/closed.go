package proxy

import (
	"net/http"
)

// What visitors see of a door the owner has closed without taking anybody's
// access away. Neither page says when it opens again: nobody knows.

// dark answers everything while the owner has closed everything, on every host,
// published or not, and before anybody is asked who they are: it tells nothing
// of which apps there are.
func (p *Proxy) dark(w http.ResponseWriter, r *http.Request, host string) {
	p.show(w, r, page{
		Status: http.StatusServiceUnavailable, Host: host, What: "closed by the owner",
		Title: "Closed for now",
		Text:  "The owner of this computer has closed everything for now. Nothing here can be opened until they open it again.",
		Link:  "/", LinkText: "Try again",
	})
}

// paused answers those who may open an app that the owner has paused.
func (p *Proxy) paused(w http.ResponseWriter, r *http.Request, at place) {
	p.show(w, r, page{
		Status: http.StatusServiceUnavailable, Host: at.host, What: "paused by the owner",
		Title: at.app.Label + " is paused",
		Text:  "The owner has paused this app. It keeps its address, and you keep your access for when it opens again.",
		Link:  "/", LinkText: "Try again",
	})
}
