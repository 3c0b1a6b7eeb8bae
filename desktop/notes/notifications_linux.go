package notes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"image"
	"image/draw"
	"image/png"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"porchlight/assets"
	"porchlight/desktop/language"
	"porchlight/desktop/session"
	"porchlight/desktop/verbs"
)

const (
	notifyName = "org.freedesktop.Notifications"
	notifyPath = dbus.ObjectPath("/org/freedesktop/Notifications")

	// notifyPatience bounds one call to the notification service.
	notifyPatience = 2 * time.Second
)

// Notifications speaks the Desktop Notifications protocol itself: buttons, and
// what is clicked, go through no library. It has a bus connection of its own,
// because systray closes the shared one.
type Notifications struct {
	log   *slog.Logger
	do    func(verbs.Action)
	focus func(token string)
	icon  dbus.Variant

	mu    sync.Mutex // protects what follows
	conn  *dbus.Conn
	shown map[string]*shownNote // by key
}

type shownNote struct {
	id     uint32
	sender string // unique name of the service that showed it
	note   Note
	token  string // for the window that a click opens
}

// New shows nothing yet; do is called for every click, after focus with the token that the
// service gave for it, if any (see session.Token).
func New(log *slog.Logger, do func(verbs.Action), focus func(token string)) *Notifications {
	return &Notifications{log: log, do: do, focus: focus, icon: imageData(assets.AppIconSmall), shown: map[string]*shownNote{}}
}

// Show shows a note, in place of an earlier one with the same key.
func (n *Notifications) Show(ctx context.Context, what Note) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.connect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, notifyPatience)
	defer cancel()
	service := n.conn.Object(notifyName, notifyPath)
	var can []string
	if err := service.CallWithContext(ctx, notifyName+".GetCapabilities", 0).Store(&can); err != nil {
		return fmt.Errorf("nobody shows notifications: %w", err)
	}
	body := literalBody(what.Body, slices.Contains(can, "body-markup"))
	actions := []string{}
	if slices.Contains(can, "actions") {
		actions = append(actions, "default", language.Say("Open Porchlight"))
		for i, b := range what.Buttons {
			actions = append(actions, strconv.Itoa(i), b.Text)
		}
	}
	urgency := byte(1)
	switch {
	case what.Urgent:
		urgency = 2
	case what.InPlace:
		urgency = 0
	}
	hints := map[string]dbus.Variant{
		"urgency":       dbus.MakeVariant(urgency),
		"desktop-entry": dbus.MakeVariant("porchlight"),
		"image-data":    n.icon,
	}
	// The service that showed the earlier note may have gone, and its ids with it:
	// by the one that took its place they may be another program's.
	owner, err := n.owner(ctx)
	if err != nil {
		return err
	}
	var replaces uint32
	if was := n.shown[what.Key]; was != nil && was.sender == owner {
		replaces = was.id
	}
	if what.InPlace && replaces == 0 {
		return nil
	}
	stays := int32(-1) // as long as the service thinks
	if what.Life > 0 {
		stays = int32(what.Life.Milliseconds())
	}
	call := service.CallWithContext(ctx, notifyName+".Notify", 0, "Porchlight", replaces, "", what.Title, body, actions, hints, stays)
	var id uint32
	if err := call.Store(&id); err != nil {
		return fmt.Errorf("the notification was not shown: %w", err)
	}
	if owner, err = n.owner(ctx); err != nil {
		return err
	}
	n.shown[what.Key] = &shownNote{id: id, sender: owner, note: what}
	return nil
}

// lookalikes are read the same and mean nothing in markup.
var lookalikes = strings.NewReplacer("<", "‹", ">", "›", "&", "＆")

// literalBody has a body shown as it is written: it may name what other programs
// chose. A service that does not say it reads markup may show escapes as they
// are, or take tags out all the same (dunst 1.9 does), and with them whatever
// stands behind a "<" in a label: there the characters are replaced.
func literalBody(body string, markup bool) string {
	if markup {
		return html.EscapeString(body)
	}
	return lookalikes.Replace(body)
}

// owner is the unique name of the service that shows notifications now. It is
// called with mu held.
func (n *Notifications) owner(ctx context.Context) (name string, err error) {
	err = n.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, notifyName).Store(&name)
	if err != nil {
		return "", fmt.Errorf("the notification service went away: %w", err)
	}
	return name, nil
}

// Drop takes a note away that is out of date.
func (n *Notifications) Drop(ctx context.Context, key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.shown[key]
	if was == nil || n.conn == nil {
		return
	}
	delete(n.shown, key)
	ctx, cancel := context.WithTimeout(ctx, notifyPatience)
	defer cancel()
	// It may have been closed by the owner a moment ago.
	if now, err := n.owner(ctx); err == nil && now == was.sender {
		_ = n.conn.Object(notifyName, notifyPath).CallWithContext(ctx, notifyName+".CloseNotification", 0, was.id).Err
	}
}

// Close ends the connection. Notes on the screen stay until they time out.
func (n *Notifications) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn != nil {
		_ = n.conn.Close()
		n.conn = nil
	}
}

// connect is called with mu held.
func (n *Notifications) connect() error {
	if n.conn != nil && n.conn.Connected() {
		return nil
	}
	if !session.HasBus() {
		return errors.New("there is no session bus")
	}
	conn, err := dbus.ConnectSessionBus()
	if err != nil {
		return fmt.Errorf("the session bus cannot be reached: %w", err)
	}
	if err := conn.AddMatchSignal(dbus.WithMatchObjectPath(notifyPath), dbus.WithMatchInterface(notifyName)); err != nil {
		_ = conn.Close()
		return fmt.Errorf("the session bus does not deliver signals: %w", err)
	}
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	go func() { // ends when the connection closes the channel
		for s := range signals {
			n.heard(s)
		}
	}()
	n.conn = conn
	clear(n.shown)
	return nil
}

// The signals after which a note is gone. Services send others about it before: GNOME
// and Plasma a token for the window that a click may open.
const (
	noteClicked = notifyName + ".ActionInvoked"
	noteClosed  = notifyName + ".NotificationClosed"
	noteToken   = notifyName + ".ActivationToken"
)

// heard acts on a click, once for each note.
func (n *Notifications) heard(s *dbus.Signal) {
	if s.Name != noteClicked && s.Name != noteClosed && s.Name != noteToken || len(s.Body) < 2 {
		return
	}
	id, ok := s.Body[0].(uint32)
	if !ok {
		return
	}
	n.mu.Lock()
	var found *shownNote
	for key, note := range n.shown {
		// A signal of that shape can be sent by anybody on the bus.
		if note.id == id && note.sender == s.Sender && s.Name == noteToken {
			note.token, _ = s.Body[1].(string)
		} else if note.id == id && note.sender == s.Sender {
			found = note
			delete(n.shown, key)
		}
	}
	if found != nil && s.Name == noteClicked && n.conn != nil {
		// It is answered; some services leave it on the screen all the same.
		n.conn.Object(notifyName, notifyPath).Go(notifyName+".CloseNotification", dbus.FlagNoReplyExpected, nil, id)
	}
	n.mu.Unlock()
	if found == nil || s.Name != noteClicked {
		return
	}
	n.focus(found.token)
	name, _ := s.Body[1].(string)
	if name == "default" {
		n.do(found.note.Click)
	} else if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(found.note.Buttons) {
		n.do(found.note.Buttons[i].Do)
	}
}

// LastWords is a note of a program that ends.
func LastWords(ctx context.Context, log *slog.Logger, what Note) error {
	n := New(log, func(verbs.Action) {}, func(string) {})
	defer n.Close()
	return n.Show(ctx, what)
}

// imageData is a picture as the image-data hint has it.
func imageData(raw []byte) dbus.Variant {
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		panic(err) // embedded at build time
	}
	b := img.Bounds()
	px := image.NewNRGBA(b)
	draw.Draw(px, b, img, b.Min, draw.Src)
	return dbus.MakeVariant(struct {
		Width, Height, Stride int32
		Alpha                 bool
		Bits, Channels        int32
		Data                  []byte
	}{int32(b.Dx()), int32(b.Dy()), int32(px.Stride), true, 8, 4, px.Pix})
}
