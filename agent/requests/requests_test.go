package requests_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/requests"
)

// world is what a Log asks for.
type world struct {
	mu  sync.Mutex
	off bool
	ids map[string]string
}

func (w *world) on() bool { w.mu.Lock(); defer w.mu.Unlock(); return !w.off }

func (w *world) there(id string) bool { w.mu.Lock(); defer w.mu.Unlock(); return w.ids[id] != "" }

func (w *world) set(change func()) { w.mu.Lock(); defer w.mu.Unlock(); change() }

func open() (*world, *requests.Log) {
	w := &world{ids: map[string]string{"id-notes": "notes", "id-wiki": "wiki"}}
	return w, requests.New(w.on, w.there)
}

func visit(app, email, target string) requests.Visit {
	return requests.Visit{App: app, At: time.Unix(1700000000, 0), Took: 12345678, Method: "GET", Target: target, Status: 200, Email: email}
}

func all(l *requests.Log, w *world) []agentapi.VisitorRequest {
	list, _ := l.Since(0, w.ids)
	return list
}

// The last 500 of an app are kept, in the order they ended, and whoever has not
// signed in pushes none of them out.
func TestLastOnes(t *testing.T) {
	t.Parallel()
	w, l := open()
	for i := range requests.Most + 120 {
		l.Add(visit("id-notes", "bob@example.com", fmt.Sprint("/", i, "?q=1#f")))
		l.Add(visit("id-notes", "", fmt.Sprint("/stranger/", i)))
	}
	l.Add(visit("id-wiki", "bob@example.com", "/last"))
	list := all(l, w)
	var known, unknown []string
	for i, q := range list {
		if i > 0 && q.Seq <= list[i-1].Seq {
			t.Fatalf("%d comes after %d", q.Seq, list[i-1].Seq)
		}
		if q.Email == "" {
			unknown = append(unknown, q.Path)
		} else if q.App == "notes" {
			known = append(known, q.Path)
		}
	}
	if len(known) != requests.Most || known[0] != "/120" || known[len(known)-1] != "/619" {
		t.Errorf("%d of known people, from %v", len(known), known[0])
	}
	if len(unknown) != 50 || unknown[0] != "/stranger/570" {
		t.Errorf("%d of strangers, from %v", len(unknown), unknown[0])
	}
	want := `"at":"2023-11-14T22:13:20Z","app":"wiki","method":"GET","path":"/last","status":200,"ms":12,"email":"bob@example.com","error":""}`
	if raw, _ := json.Marshal(list[len(list)-1]); !strings.HasSuffix(string(raw), want) {
		t.Errorf("%s", raw)
	}
}

// A number asks for what came later; one of an earlier run asks for everything.
func TestAfterANumber(t *testing.T) {
	t.Parallel()
	w, l := open()
	changed, cancel := l.Changed()
	defer cancel()
	_, first := l.Since(0, w.ids)
	l.Add(visit("id-notes", "a@example.com", "/1"))
	<-changed
	list, next := l.Since(first, w.ids)
	if len(list) != 1 || list[0].Seq != next {
		t.Fatalf("%v, %d", list, next)
	}
	l.Add(visit("id-wiki", "a@example.com", "/2"))
	if list, _ = l.Since(next, w.ids); len(list) != 1 || list[0].Path != "/2" {
		t.Errorf("%v", list)
	}
	if list, _ = l.Since(0, map[string]string{"id-notes": "notes"}); len(list) != 1 || list[0].Path != "/1" {
		t.Errorf("of one app: %v", list)
	}
	if list, _ = l.Since(next+1000, w.ids); len(list) != 2 {
		t.Errorf("after a number of the future: %v", list)
	}
}

// Requests end with their app, also those that were under way, and with the owner's
// wish.
func TestForgotten(t *testing.T) {
	t.Parallel()
	w, l := open()
	l.Add(visit("id-notes", "a@example.com", "/1"))
	l.Add(visit("id-wiki", "a@example.com", "/2"))
	w.set(func() { delete(w.ids, "id-notes") })
	l.Forget()
	l.Add(visit("id-notes", "a@example.com", "/late"))
	w.set(func() { w.ids["id-notes"] = "notes" })
	if list := all(l, w); len(list) != 1 || list[0].Path != "/2" {
		t.Errorf("of an app that is gone: %v", list)
	}
	w.set(func() { w.off = true })
	l.Add(visit("id-wiki", "a@example.com", "/off"))
	l.Forget()
	w.set(func() { w.off = false })
	if list := all(l, w); len(list) != 0 || !l.On() {
		t.Errorf("after it was off: %v", list)
	}
}

// Whatever a visitor or an app sends, what is shown is bounded, is one line, and
// neither steers a terminal nor turns the direction of what follows.
func TestHostileText(t *testing.T) {
	t.Parallel()
	w, l := open()
	for target, want := range map[string]string{
		"/a b":                         "/a%20b",
		"/\x1b[2J\x00\n\r\t\x7f":       "/%1B[2J%00%0A%0D%09%7F",
		"/\u202etxt.exe":               "/%E2%80%AEtxt.exe",
		"/\xff\xfe":                    "/%FF%FE",
		"/grüße":                       "/gr%C3%BC%C3%9Fe",
		"/x?token=secret":              "/x",
		"/x#token=secret":              "/x",
		"?token=secret":                "",
		"/" + strings.Repeat("é", 300): "/" + strings.Repeat("%C3%A9", 99) + "%C3…",
		"/" + strings.Repeat("a", 199): "/" + strings.Repeat("a", 199),
		"/" + strings.Repeat("a", 200): "/" + strings.Repeat("a", 199) + "…",
	} {
		l.Add(visit("id-notes", "a@example.com", target))
		list := all(l, w)
		if got := list[len(list)-1].Path; got != want {
			t.Errorf("%q is shown as %q, want %q", target, got, want)
		}
	}
	v := visit("id-notes", "a\u202e@example.com\n", "/")
	v.Error, v.Method = "It said \x1b]0;x\x07\u2066 "+strings.Repeat("y", 1000), strings.Repeat("M", 100)
	l.Add(v)
	list := all(l, w)
	got := list[len(list)-1]
	if got.Email != `a\u202e@example.com\u000a` || !strings.HasPrefix(got.Error, `It said \u001b]0;x\u0007\u2066 yyy`) || len(got.Error) > 400 || len(got.Method) != 16 {
		t.Errorf("%+v", got)
	}
}

// A full ring takes more without memory of its own.
func TestAddAllocatesNothing(t *testing.T) {
	_, l := open()
	v := visit("id-notes", "bob@example.com", "/a/path/of/usual/length.css")
	for range requests.Most {
		l.Add(v)
	}
	if n := testing.AllocsPerRun(1000, func() { l.Add(v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Many at once, while others look and forget.
func TestConcurrently(t *testing.T) {
	t.Parallel()
	w, l := open()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				l.Add(visit("id-notes", "a@example.com", "/"))
			}
		})
		wg.Go(func() {
			for range 50 {
				all(l, w)
				l.Forget()
			}
		})
	}
	wg.Wait()
	if n := len(all(l, w)); n != requests.Most {
		t.Errorf("%d are kept", n)
	}
}

// Of a target that is a whole address only the path is kept: the address may have a
// user name and password in it.
func TestWholeAddresses(t *testing.T) {
	t.Parallel()
	w, l := open()
	targets := map[string]string{
		"https://bob:secret@notes.example:8443/a/b?q=secret": "/a/b",
		"https://bob:secret@notes.example":                   "/",
		"https://bob:secret@notes.example?to=/secret":        "/",
		"HTTPS://bob:secret@notes.example#/secret":           "/",
		"/to/https://bob@notes.example":                      "/to/https://bob@notes.example",
		"//a/b":                                              "//a/b",
		"*":                                                  "*",
	}
	for target := range targets {
		v := visit("id-notes", "bob@example.com", target)
		v.Error = target // so that each is told from the others
		l.Add(v)
	}
	for _, q := range all(l, w) {
		if want := targets[q.Error]; q.Path != want {
			t.Errorf("of %s is kept %q, want %q", q.Error, q.Path, want)
		}
	}
}
