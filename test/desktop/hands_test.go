//go:build rig

package desktop

import (
	"errors"
	"fmt"
	"strings"
)

// owner is the person before the computer, who uses the mouse, or the keyboard alone.
type owner struct {
	*page
	chrome *chrome
	byKeys bool
}

// takes has a job done by no more clicks, or keys, than that; what was done is counted
// where it is done.
func (p *owner) takes(job string, clicks, keys int, do func()) {
	p.t.Helper()
	wasClicked, wasPressed := p.clicks, p.pressed
	do()
	clicked, pressed := p.clicks-wasClicked, p.pressed-wasPressed
	p.t.Logf("%s: %d clicks, %d keys", job, clicked, pressed)
	if p.byKeys {
		clicks = 0
	} else {
		keys = 0
	}
	if clicked > clicks || pressed > keys || clicked+pressed == 0 {
		p.t.Errorf("%s took %d clicks and %d keys; no more than %d and %d should do", job, clicked, pressed, clicks, keys)
	}
}

// pick presses what is called so in the window: by a click, or by Tab and Enter.
func (p *owner) pick(tag, name string) {
	p.t.Helper()
	css := p.named(tag, name)
	if !p.byKeys {
		p.press(css)
		return
	}
	p.tabs(css)
	p.keys("Return")
}

// tabs goes on with Tab until something has the focus.
func (p *owner) tabs(css string) {
	p.t.Helper()
	for range 60 {
		if p.focused(css) {
			return
		}
		p.keys("Tab")
		p.moved()
	}
	p.shot("failed")
	p.t.Fatalf("Tab does not lead to %s", css)
}

// moved waits a moment until the focus is elsewhere than when it was last asked for: a nested
// desktop hands keys on late, and one Tab too many passes what was meant.
func (p *owner) moved() {
	p.t.Helper()
	const script = `const done = arguments[0], end = Date.now() + 2000
		const look = () => document.activeElement !== window.porchlightFocus || Date.now() > end ? done(true) : setTimeout(look, 10)
		look()`
	if err := webDriver("POST", p.session+"/execute/async", map[string]any{"script": script, "args": []string{}}, nil); err != nil {
		p.t.Fatal(err)
	}
}

func (p *owner) focused(css string) (is bool) {
	p.t.Helper()
	script := `window.porchlightFocus = document.activeElement
		return !document.activeElement.disabled && document.activeElement.matches(arguments[0])`
	if err := webDriver("POST", p.session+"/execute/sync", map[string]any{"script": script, "args": []string{css}}, &is); err != nil {
		p.t.Fatal(err)
	}
	return is
}

// finds does the first that the palette finds for some letters.
func (p *owner) finds(query string) {
	p.t.Helper()
	p.keys("ctrl+k")
	p.see("dialog[open] [role=combobox]")
	for _, letter := range strings.Split(query, "") {
		if letter == " " {
			letter = "space"
		}
		p.keys(letter)
	}
	p.keys("Return")
}

// typesNow types into the field that has the focus by itself.
func (p *owner) typesNow(field, text string) {
	p.t.Helper()
	css := p.named("input", field)
	p.eventually(field+" has the focus", func() error {
		if !p.focused(css) {
			return errors.New("it has not")
		}
		return nil
	})
	p.mustTool("xdotool", "type", "--delay", "60", text)
}

// confirms answers the question before something is taken away; Enter alone keeps it.
func (p *owner) confirms() {
	p.t.Helper()
	p.see("dialog[open] h2")
	p.keys("Tab", "Return")
	p.eventually("the question is gone", func() error {
		if _, err := p.element("dialog[open]"); err == nil {
			return errors.New("it is not")
		}
		return nil
	})
}

// ends what somebody has, by a line of the lamp's menu or by the palette.
func (p *owner) ends(path, query string) {
	p.t.Helper()
	if !p.byKeys {
		p.clickTray(strings.Split(path, " > ")...)
		return
	}
	p.finds(query)
	p.confirms()
}

// letsIn answers a knock, for today.
func (p *owner) letsIn() {
	p.t.Helper()
	if !p.byKeys {
		p.presses("Today", "09-knock")
		return
	}
	p.finds("let bob")
	p.pick("button", fmt.Sprintf("Today: %s, Photos", guest))
}
