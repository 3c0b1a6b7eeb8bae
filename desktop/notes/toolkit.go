package notes

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"porchlight/desktop/verbs"
)

// Notifications by the window's toolkit, as macOS and Windows have them. This half of it
// knows no toolkit, so that it is tested on every system.

// noteService is what the toolkit offers; notes_wails.go has it.
type noteService struct {
	// register makes a set of buttons known by an id; send needs it before.
	register func(set string, buttons []string) error
	send     func(id, set, title, body string) error
	// remove takes a note off the screen and out of the list of old ones, where the system
	// can do that.
	remove func(id string)
}

const (
	// actionDefault is what a toolkit calls a click on the note itself.
	actionDefault = "DEFAULT_ACTION"
	// actionDismiss is what macOS calls closing a note.
	actionDismiss = "com.apple.UNNotificationDismissActionIdentifier"

	// maxWaiting bounds the notes that wait for the toolkit to run.
	maxWaiting = 16
	// maxShown bounds the notes whose buttons still do something. Windows tells of none that
	// was closed.
	maxShown = 100
	// maxNoteText bounds title and body, in characters: Windows takes 5 KB a note, with
	// what comes back from each button.
	maxNoteText = 300
)

var errNoNotes = errors.New("this system lets Porchlight show no notifications; the menu and the window have the same")

// toolkitNotes shows notes by a toolkit that starts later than the first note, or never.
type toolkitNotes struct {
	log *slog.Logger
	do  func(verbs.Action)
	// literal writes a text so that nothing on its way reads it as anything else.
	literal func(string) string
	// run is part of every id: a note of an earlier run may still be on the screen.
	run string

	mu      sync.Mutex // protects what follows
	service *noteService
	refused bool            // there will be no service
	waiting []Note          // for it, the newest last
	shown   map[string]Note // by id
	ids     map[string]string
	sets    map[string]bool // sets of buttons that the service knows
	last    int
}

func newToolkitNotes(log *slog.Logger, do func(verbs.Action), literal func(string) string) *toolkitNotes {
	return &toolkitNotes{
		log: log, do: do, literal: literal, run: rand.Text()[:10],
		shown: map[string]Note{}, ids: map[string]string{}, sets: map[string]bool{},
	}
}

// serve shows by this service from now on, what waits first; nil for never.
func (n *toolkitNotes) serve(service *noteService) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.service, n.refused = service, service == nil
	if service == nil { // what the last one showed and knew went with it
		clear(n.shown)
		clear(n.ids)
		clear(n.sets)
	}
	waiting := n.waiting
	n.waiting = nil
	for _, what := range waiting {
		if err := n.put(what); err != nil {
			n.log.Warn("a notification could not be shown", "about", what.Key, "err", err)
		}
	}
}

// Show shows a note, in place of an earlier one with the same key.
func (n *toolkitNotes) Show(_ context.Context, what Note) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.put(what)
}

// put is show. The caller holds mu.
func (n *toolkitNotes) put(what Note) error {
	if what.InPlace {
		if !slices.ContainsFunc(n.waiting, func(w Note) bool { return w.Key == what.Key }) {
			return nil // the toolkit changes none that stands: it would be a second one
		}
		what.InPlace = false
	}
	n.forget(what.Key)
	switch {
	case n.refused:
		return errNoNotes
	case n.service == nil:
		n.waiting = append(n.waiting, what)
		n.waiting = n.waiting[max(0, len(n.waiting)-maxWaiting):]
		return nil
	}
	set, err := n.setOf(what.Buttons)
	if err != nil {
		return err
	}
	n.last++
	id := fmt.Sprintf("%s-%012d", n.run, n.last) // so that the oldest is the least
	if err := n.service.send(id, set, n.text(what.Title), n.text(what.Body)); err != nil {
		return fmt.Errorf("the notification was not shown: %w", err)
	}
	n.shown[id], n.ids[what.Key] = what, id
	if len(n.shown) > maxShown {
		oldest := slices.Min(slices.Collect(maps.Keys(n.shown)))
		n.forget(n.shown[oldest].Key)
	}
	return nil
}

// setOf is the id of a note's buttons, made known; empty for none. The caller holds mu.
func (n *toolkitNotes) setOf(buttons []Button) (string, error) {
	if len(buttons) == 0 {
		return "", nil
	}
	texts := make([]string, len(buttons))
	for i, b := range buttons {
		texts[i] = n.text(b.Text)
	}
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	set := hex.EncodeToString(sum[:8])
	if n.sets[set] {
		return set, nil
	}
	if err := n.service.register(set, texts); err != nil {
		return "", fmt.Errorf("the buttons of the notification were not taken: %w", err)
	}
	n.sets[set] = true
	return set, nil
}

// text is a text as it is sent: one that is not too long, and literal.
func (n *toolkitNotes) text(text string) string {
	if all := []rune(text); len(all) > maxNoteText {
		text = string(all[:maxNoteText-1]) + "…"
	}
	return n.literal(text)
}

// Drop takes a note away that is out of date.
func (n *toolkitNotes) Drop(_ context.Context, key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(key)
}

// forget has the note of a key, on the screen or waiting, do nothing any more. The caller
// holds mu.
func (n *toolkitNotes) forget(key string) {
	n.waiting = slices.DeleteFunc(n.waiting, func(what Note) bool { return what.Key == key })
	id, ok := n.ids[key]
	if !ok {
		return
	}
	delete(n.ids, key)
	delete(n.shown, id)
	n.service.remove(id)
}

// heard acts on a click, once for each note, and on one that closes it not at all. A click on a
// note that is out of date, or of an earlier run, only shows the window.
func (n *toolkitNotes) heard(id, what string) {
	n.mu.Lock()
	found, ok := n.shown[id]
	if ok {
		delete(n.shown, id)
		delete(n.ids, found.Key)
		n.service.remove(id)
	}
	n.mu.Unlock()
	if what == actionDismiss {
		return
	}
	i, err := strconv.Atoi(what)
	switch {
	case !ok:
		n.do(verbs.Action{Verb: verbs.Show})
	case what == actionDefault:
		n.do(found.Click)
	case err == nil && i >= 0 && i < len(found.Buttons):
		n.do(found.Buttons[i].Do)
	}
}

// asShown is a text whose lines and letters are kept, and nothing else that could be an
// order to a screen.
func asShown(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// harmless writes a text so that neither XML nor PowerShell, by which notes go on Windows
// where its own way fails, nor AppleScript reads anything in it: other programs and people
// choose parts of it, and the library escapes nothing.
func harmless(text string) string { return lookLike.Replace(asShown(text)) }

// lookLike has for each character that means something there one that only looks like it.
// For quotes these are primes: PowerShell reads curly quotes as straight ones, also where
// one at the start of a line ends its text, and texts keep their lines.
var lookLike = strings.NewReplacer(
	"<", "‹", ">", "›", "&", "＆",
	`"`, "″", "\u201c", "″", "\u201d", "″", "\u201e", "″", "\u201f", "″",
	"'", "′", "\u2018", "′", "\u2019", "′", "\u201a", "′", "\u201b", "′",
	"`", "ˋ", "$", "＄", `\`, "＼", "{{", "{ {",
)
