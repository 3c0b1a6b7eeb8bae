package connect

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"porchlight/test/programs"
)

// tab is one of a real browser without a screen, which finds names below test here.
type tab struct {
	t *testing.T
	realBrowser
}

// realBrowser is what another kind of them does in another way.
type realBrowser interface {
	// navigate goes to an address, and returns when the page that it leads to is there.
	navigate(address string) error
	// ask has the page say something, or promise to, as a text.
	ask(script string) (string, error)
	// cookies are all that it keeps; one of all names below a domain has a dot before that.
	cookies() ([]http.Cookie, error)
}

func (b *tab) open(address string) {
	b.t.Helper()
	if err := b.navigate(address); err != nil {
		b.t.Fatalf("%s: %v", address, err)
	}
	b.until(`document.readyState === "complete"`)
}

func (b *tab) says(script, want string) {
	b.t.Helper()
	if said := programs.Got(b.ask(script))(b.t); said != want {
		b.t.Errorf("%s is %.300q, want %q", script, said, want)
	}
}

// until waits for what a page says of itself; one that gives way to the next says nothing.
func (b *tab) until(script string) {
	b.t.Helper()
	programs.Eventually(b.t, script, func() bool {
		said, err := b.ask(script)
		return err == nil && said == "true"
	})
}

// signIn asks for a link at the page of that, and opens it; it ends at an address.
func (b *tab) signIn(w *world, address string) {
	b.t.Helper()
	b.until(`!!document.querySelector("[name=email]")`)
	programs.Got(b.ask(`(document.querySelector("[name=email]").value = ` + strconv.Quote(owner) + `, document.querySelector(".primary").click())`))(b.t)
	b.until(`!!document.querySelector("[name=code]")`)
	for there := ""; there != "true"; there = programs.Got(b.ask(`!!document.querySelector("[name=token]")`))(b.t) { // other mails have links, too
		b.open(programs.Got(w.mails.Link(b.t.Context(), owner))(b.t))
	}
	programs.Got(b.ask(`document.querySelector(".primary").click()`))(b.t)
	b.until(`location.href === ` + strconv.Quote(address) + ` && document.readyState === "complete"`)
}

// talkative is an app whose pages keep cookies, take files and speak over a WebSocket.
func talkative(t *testing.T) *httptest.Server {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/socket":
			conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // who may come in is for the proxy
			if err != nil {
				return
			}
			defer conn.CloseNow()
			for kind, text, err := conn.Read(r.Context()); err == nil; kind, text, err = conn.Read(r.Context()) {
				_ = conn.Write(r.Context(), kind, append([]byte("you said "), text...))
			}
		case "/upload":
			n, _ := io.Copy(io.Discard, r.Body)
			io.WriteString(w, strconv.FormatInt(n, 10))
		case "/cookies":
			io.WriteString(w, r.Header.Get("Cookie"))
		default:
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "notes of "+r.Header.Get("X-Service-Email"))
		}
	}))
	t.Cleanup(app.Close)
	return app
}

// browserAtAnOwnDomain: a person signs in at an own domain, speaks over a WebSocket, uploads
// and signs out; what a page keeps there is nothing to the app's own host, and the other way
// round. own and host are the two origins; replay says whether a cookie opens the own domain.
func (w *world) browserAtAnOwnDomain(t *testing.T, begin func(*testing.T) realBrowser, own, host string, replay func(http.Cookie) bool) {
	b := &tab{t, begin(t)}
	b.open(own + "/a?b=c")
	b.says(`location.origin !== `+strconv.Quote(own), "true")
	b.signIn(w, own+"/a?b=c")
	b.says(`document.body.innerText`, "notes of "+owner)
	b.says(`await new Promise((said, failed) => {
		const socket = new WebSocket("wss://" + location.host + "/socket")
		socket.onopen = () => socket.send("hello")
		socket.onmessage = (e) => (said(e.data), socket.close())
		socket.onerror = () => failed(new Error("no socket"))
	})`, "you said hello")
	b.says(`await fetch("/upload", {method: "POST", body: new Blob([new Uint8Array(3 << 20)])}).then((r) => r.text())`, strconv.Itoa(3<<20))
	keep := func(as string) {
		t.Helper()
		b.says(`(document.cookie = "kept=`+as+`; Secure", localStorage.kept = "`+as+`", sessionStorage.kept = "`+as+`")`, as)
	}
	kept := func(want string) {
		t.Helper()
		b.says(`[document.cookie, localStorage.kept, await fetch("/cookies").then((r) => r.text())].join()`, want)
	}
	keep("own")
	b.open(host + "/")
	b.until(`location.origin === ` + strconv.Quote(host) + ` && document.readyState === "complete"`) // the server knows the browser
	b.says(`document.body.innerText`, "notes of "+owner)
	kept(",,")
	keep("host")
	b.says(`await fetch(`+strconv.Quote(own+"/cookies")+`, {credentials: "include"}).then(() => "read", () => "refused")`, "refused")
	kept("kept=host,host,kept=host")
	b.open(own + "/")
	kept("kept=own,own,kept=own")

	before := b.sessions()
	if before[ownName].Value == "" || len(before) != 3 { // the server has one, too
		t.Fatalf("the sessions are %v", before)
	}
	b.open(own + "/.porchlight/sign-out")
	programs.Got(b.ask(`document.querySelector("button.primary").click()`))(t)
	b.until(`document.body.innerText.includes("You are signed out")`)
	if after := b.sessions(); after[ownName].Value != "" || len(after) != 2 {
		t.Errorf("signed out at the own domain, the sessions are %v", after)
	}
	if replay(before[ownName]) {
		t.Error("a session that was signed out opens the own domain")
	}
	b.open(host + "/")
	b.says(`await fetch("/cookies").then((r) => r.status)`, "200")
}

// sessions are the cookies that open the computer's apps, by their host. No cookie is of more
// than one host.
func (b *tab) sessions() map[string]http.Cookie {
	b.t.Helper()
	found := map[string]http.Cookie{}
	for _, cookie := range programs.Got(b.cookies())(b.t) {
		if strings.HasPrefix(cookie.Domain, ".") {
			b.t.Errorf("the cookie %s is of all of %s", cookie.Name, cookie.Domain)
		}
		if strings.HasPrefix(cookie.Name, "__Host-porchlight-") && len(cookie.Value) == 43 {
			found[cookie.Domain] = http.Cookie{Name: cookie.Name, Value: cookie.Value}
		}
	}
	return found
}
