//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// The whole story of an owner who has no terminal, from the first start to quitting,
// and of a friend with a phone. What came of each click is seen in the friend's browser,
// and the clicks are counted: the lamp and every button, not hovering a submenu or typing.
// By the keyboard alone the window does it: the palette and the views' own buttons stand for
// the lamp's menu and a notification. One after the other: each shares a program by its title.
func TestOwnersStory(t *testing.T) {
	t.Parallel()
	if forDocuments() == "" {
		t.Run("mouse", func(t *testing.T) { ownersStory(t, desk{}, false) })
		t.Run("keyboard", func(t *testing.T) { ownersStory(t, desk{}, true) })
		return
	}
	for _, dark := range []bool{false, true} {
		t.Run(fmt.Sprintf("dark=%v", dark), func(t *testing.T) { ownersStory(t, desk{tidy: true, dark: dark}, false) })
	}
}

func ownersStory(t *testing.T, opts desk, byKeys bool) {
	opts.first, opts.picks = true, "Today"
	s := newSession(t, opts)
	told := s.listens()
	notes := titled(t, "Notes")
	page, connects := s.storyBegins()
	p := owner{page: page, byKeys: byKeys}
	p.pageThere()
	p.named("h1", "Leave the porch light on")
	p.publish("photos", "Photos", titled(t, "Photos"))
	s.trayShows("Photos wants an address", true)
	s.notified("Photos wants an address")     // and off the screen
	p.named("h1", "Leave the porch light on") // whatever has asked meanwhile
	p.show("01-first-start", ofWindow)
	connects()

	trust := 1 // asked for on this computer alone
	if p.plane != nil {
		trust = 0
	}
	p.takes("the first app", 2+trust, 14, func() { p.firstApp(trust) })
	var apps []agentapi.OwnerApp
	p.ask(&apps, "apps")
	for _, app := range apps {
		if app.Name == "notes" && (app.LocalPort != notes || app.Shared != nil) {
			t.Errorf("shared as %+v", app)
		}
	}
	p.pick("button", "Done")
	p.named("h1", "Apps")
	p.show("03-apps", ofWindow)
	if s.filmed() {
		p.still("Your apps stay on your own computer. One asks for an address.", nil)
		p.openTray()
		p.walk("Photos wants an address")
		p.still("One click in the menu bar, and it has one.", nil)
		p.closeMenus()
	}
	if p.byKeys {
		p.pick("button", "Approve")
	} else {
		p.enter(p.named("button", "Approve"))
	}
	p.is("photos", "live")

	p.takes("an invitation, beside typing", 3, 11, func() { p.invites() })
	ends := p.person(guest).Until
	if left := time.Until(ends["Notes"]); left < 6*24*time.Hour || left > 8*24*time.Hour {
		t.Errorf("it ends in %v", left)
	}
	phone := p.chrome.phone()
	phone.opens(p.mailed(guest))
	phone.shows("shares Notes with you", "Until ")
	p.onPhone(phone, "05-invitation")
	p.still("Bob gets a mail with a link.", phone)
	phone.tap("Open Notes as " + guest)
	phone.shows("Notes for member", "connected")
	p.onPhone(phone, "06-notes")
	p.still("Nothing to install, no password: Bob has opened Notes.", phone)
	s.notified("An invitation was accepted", guest+" opened Notes for the first time") // one notice, however far it got

	phone.opens(p.address("photos"))
	phone.shows("This isn’t shared with you")
	p.onPhone(phone, "07-closed")
	p.still("What you did not share stays closed. Bob may ask.", phone)
	phone.tap("Ask ")
	phone.shows("has been asked")
	p.onPhone(phone, "08-asked")
	p.takes("the answer to a knock", 1, 12, func() { p.letsIn() })
	phone.shows("Photos for member", "connected") // by itself
	p.still("The page goes on by itself.", phone)
	if end := p.person(guest).Until["Photos"]; !end.After(time.Now()) || time.Until(end) > 25*time.Hour {
		t.Errorf("for today ends at %v", end)
	}

	p.ends(guest+": Photos > Disconnect, they may come back", "disconnect bob")
	phone.shows("cut off, 401")
	phone.reload()
	phone.shows("Photos for member", "connected") // signed in anew by that
	if !p.byKeys {
		s.notified(guest + " is disconnected")
	}

	s.picks("Undo")
	if forDocuments() != "" {
		p.trayStays() // the line goes and comes with the visit that was cut
		p.trayShows(guest+": Photos", true)
		p.openTray()
		p.walk(guest + ": Photos")
		p.show("10-here-now", ofMenu)
		p.still("You see who is here, and may end it.", nil)
		p.closeMenus()
	}
	p.takes("cutting one person off", 2, 12, func() { p.ends(guest+": Photos > Remove from everything", "rem bob") })
	phone.shows("cut off, 403")
	p.still("Removed: what was open is cut off at once.", phone)
	if p.byKeys {
		p.takes("going dark", 0, 12, func() {
			p.finds("go dark")
			p.confirms()
		})
		s.trayShows("Light up again", true)
		p.pick("button", "Light up again")
		s.trayShows("Go dark", true)
		before := len(s.opened())
		p.takes("opening an app", 0, 6, func() { p.finds("no") })
		p.nextLink(before)
		if p.clicks > 0 {
			t.Errorf("by the keyboard alone: %d clicks", p.clicks)
		}
		return
	}
	p.lists(false)
	p.presses("Undo", "10-removed")
	s.eventually("it is undone", func() error { // a notification taken off the screen too early does nothing
		if now := p.person(guest).Status; now != agentapi.PersonActive {
			return errors.New("they are " + now)
		}
		return nil
	})
	p.lists(true)
	s.notified("Undone")
	phone.opens(p.address("photos"))
	phone.shows("Photos for member", "connected")

	p.takes("going dark", 1, 0, func() { p.pick("input", "Go dark") })
	phone.shows("cut off, ")
	phone.reload()
	phone.shows("Closed for now")
	p.onPhone(phone, "11-dark")
	p.timeline()
	p.pressButton("Light up again")
	s.trayShows("Go dark", true)
	phone.reload()
	phone.shows("Photos for member", "connected")
	all := told.all()
	t.Logf("notifications until quitting: %d, %q", len(all), all)
	if most := 8 - trust; len(all) > most { // there were nine; one says that it is connected now
		t.Error("these are too many")
	}
	p.quits(phone)
	p.film()
}

// presses a button of the one notification on the screen.
func (p *owner) presses(button, shot string) {
	p.t.Helper()
	p.displays("1")
	p.show(shot, ofNotes)
	if button == "Today" {
		p.still("You answer with one click.", nil)
	}
	// dunst lists the buttons at a click and has one picked.
	p.eventually("the notification is there", func() error {
		ids, err := p.search("--class", "[Dd]unst")
		if err == nil && len(ids) == 0 {
			err = errors.New("it is not")
		}
		if err == nil {
			box := p.box(ids[0])
			p.mouse(box.Min.Add(box.Max).Div(2), "1")
		}
		return err
	})
}

// firstApp goes from the first word to an app of their own, open in their browser.
func (p *owner) firstApp(trust int) {
	p.t.Helper()
	p.pick("button", "Start")
	if trust > 0 {
		p.pick("button", "Trust it")
		p.nextLink(0) // the list is changed
	}
	p.chrome = p.startChrome()
	own := p.chrome.tab(1100, 700)
	if trust > 0 {
		own.opens(p.nextLink(0))
		p.named("h1", "Your browser trusts this computer") // for two seconds, and then it goes on
		own.shows("This page is from this computer")
	}
	p.named("h1", "Pick your first app") // by itself
	p.named("button", "Share Notes")
	p.show("02-pick", ofWindow)
	p.pick("button", "Share Notes")
	p.named("h1", "Notes is on")
	own.opens(p.nextLink(trust))
	own.shows("Notes for owner")
	own.shot("02-open")
	own.opens("about:blank")
	p.is("notes", "live")
}

// invites the friend for a week, which is what the form begins with.
func (p *owner) invites() {
	p.t.Helper()
	p.named("h2", "On")
	if p.byKeys {
		p.finds("inv no")
		p.typesNow("E-mail addresses", guest)
	} else {
		p.pick("button", "Notes")
		p.pick("button", "Add people…")
		p.write("E-mail addresses", guest)
	}
	p.show("04-invite", ofWindow)
	p.still("Invite a friend, for a week.", nil)
	if p.byKeys {
		p.keys("Return", "Return") // ends the address, and sends
	} else {
		p.pick("button", "Send invitation")
	}
	p.named("main .cut", guest)
}

// lists waits until the app's page names the friend among those who may open it, or not.
func (p *owner) lists(want bool) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("the app's page lists the friend: %v", want), func() error {
		var names bool
		err := webDriver("POST", p.session+"/execute/sync", map[string]any{"script": `return [...document.querySelectorAll('main .select')].some((one) => one.textContent === arguments[0])`, "args": []string{guest}}, &names)
		if err == nil && names != want {
			err = errors.New("not so")
		}
		return err
	})
}

// timeline shows every step, the newest first.
func (p *owner) timeline() {
	p.t.Helper()
	p.view("Activity")
	steps := []string{
		"Dark, by you", guest + " is back as before, by you", guest + " was removed by you", guest + " was disconnected by you", guest + " opened Photos",
		guest + " was let into Photos by you, until ", guest + " asked for Photos", guest + " opened Notes", guest + " accepted your invitation",
		guest + " was invited by you to Notes, until ", "Photos was approved by you", "Notes was approved by you",
	}
	p.eventually("the timeline shows every step", func() error {
		var said string
		err := webDriver("POST", p.session+"/execute/sync", map[string]any{"script": `return document.querySelector('main').innerText.replace(/[\u2068\u2069\u200b]/g, '').replace(/\s+/g, ' ')`, "args": []string{}}, &said)
		rest := said
		for _, step := range steps {
			_, after, found := strings.Cut(rest, step)
			if err == nil && !found {
				err = fmt.Errorf("%q is not in its place in %s", step, said)
			}
			rest = after
		}
		return err
	})
	p.show("12-timeline", ofWindow)
}

// quits says who is cut off by it, which is so.
func (p *owner) quits(phone *tab) {
	p.t.Helper()
	p.trayShows("Quit Porchlight > 1 person is cut off:", true)
	p.trayShows("Quit Porchlight > "+guest+": Photos", true)
	p.openTray()
	p.walk("Quit Porchlight")
	p.show("13-quit", ofMenu)
	p.closeMenus()
	p.clickTray("Quit Porchlight", "Yes, quit Porchlight")
	phone.shows("cut off, nobody answers")
	p.eventually("it has quit", func() error {
		if _, _, err := p.call("GET", "/status", nil); err == nil {
			return errors.New("the loopback API answers")
		}
		if _, err := os.Stat(filepath.Join("/proc", fmt.Sprint(p.pid), "exe")); err == nil {
			return errors.New("it runs")
		}
		return nil
	})
}

// titled is the port of a program with a page that has a title, and says whether it is
// connected: what it holds open, and what it gets when that was cut.
func titled(t *testing.T, title string) (port int) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><meta name="viewport" content="width=device-width"><title>%[1]s</title>
			<style>:root { color-scheme: light dark } body { font: 18px system-ui; margin: 24px } #tiles { display: grid; gap: 8px; grid: repeat(3, 110px) / 1fr 1fr } i { border-radius: 10px }</style><h1>%[1]s</h1><div id="tiles"></div><p>%[1]s for %[2]s</p><p id="live"></p><script>
			for (let i = 0; i < 6; i++) document.querySelector('#tiles').append(Object.assign(document.createElement('i'), { style: 'background: hsl(' + i * 58 + ' 45%% 62%%)' }));
			const says = (text) => (document.querySelector('#live').textContent = text);
			const held = new EventSource('/held');
			addEventListener('pagehide', () => held.close()); // or it goes on behind the next page
			held.onopen = () => says('connected');
			held.onerror = async () => {
				held.close();
				says('cut off, ' + (await fetch('/', { cache: 'no-store' }).then((r) => r.status, () => 'nobody answers')));
			};
			</script>`, title, r.Header.Get("X-Service-Role"))
	})
	mux.HandleFunc("/held", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	srv := httptest.NewUnstartedServer(mux)
	if forDocuments() != "" { // no port is taken there
		l := programs.Got(net.Listen("tcp", map[string]string{"Notes": "127.0.0.1:3000", "Photos": "127.0.0.1:2342"}[title]))(t)
		srv.Listener.Close()
		srv.Listener = l
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().(*net.TCPAddr).Port
}
