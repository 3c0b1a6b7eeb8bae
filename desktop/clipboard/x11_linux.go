package clipboard

import (
	"bytes"
	"context"
	"io"
	"log"
	"unicode/utf8"

	"porchlight/internal/words"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

func init() {
	// It would write to standard error, also about a display that went away,
	// which is how every session ends.
	xgb.Logger = log.New(io.Discard, "", 0)
}

// owner answers for the CLIPBOARD selection (ICCCM, section 2) on one
// connection of its own.
type owner struct {
	conn *xgb.Conn
	win  xproto.Window
	atom map[string]xproto.Atom
	text []byte
	time xproto.Timestamp // when the selection became ours
}

var atomNames = []string{"CLIPBOARD", "TARGETS", "TIMESTAMP", "UTF8_STRING", "TEXT", "text/plain", "text/plain;charset=utf-8", "_PORCHLIGHT_TIME"}

// own takes the selection and returns when the server agreed; a goroutine then
// answers requests until another program copies, the display goes away or ctx
// ends. The next own needs no word with the last: the server tells that one.
func own(ctx context.Context, display, text string) error {
	conn, err := xgb.NewConnDisplay(display)
	if err != nil {
		return words.Errorf("The display %s cannot be reached: %w", display, err)
	}
	o := &owner{conn: conn, atom: map[string]xproto.Atom{}, text: []byte(text)}
	if err := o.acquire(); err != nil {
		conn.Close()
		return words.Errorf("The clipboard could not be taken: %w", err)
	}
	stop := context.AfterFunc(ctx, conn.Close)
	go func() {
		o.answer()
		if stop() {
			conn.Close()
		}
	}()
	return nil
}

func (o *owner) acquire() error {
	for _, name := range atomNames {
		reply, err := xproto.InternAtom(o.conn, false, uint16(len(name)), name).Reply()
		if err != nil {
			return err
		}
		o.atom[name] = reply.Atom
	}
	screen := xproto.Setup(o.conn).DefaultScreen(o.conn)
	win, err := xproto.NewWindowId(o.conn)
	if err != nil {
		return err
	}
	o.win = win
	if err := xproto.CreateWindowChecked(o.conn, 0, win, screen.Root, 0, 0, 1, 1, 0, xproto.WindowClassInputOnly, screen.RootVisual,
		xproto.CwEventMask, []uint32{xproto.EventMaskPropertyChange}).Check(); err != nil {
		return err
	}
	// Selections are taken at a server time, never at "now" (ICCCM 2.1). An
	// empty append to a property is the way to learn one.
	if err := xproto.ChangePropertyChecked(o.conn, xproto.PropModeAppend, win, o.atom["_PORCHLIGHT_TIME"], xproto.AtomString, 8, 0, nil).Check(); err != nil {
		return err
	}
	for o.time == 0 {
		ev, xerr := o.conn.WaitForEvent()
		if ev == nil && xerr == nil {
			return words.Errorf("the display went away")
		}
		if p, ok := ev.(xproto.PropertyNotifyEvent); ok {
			o.time = p.Time
		}
	}
	if err := xproto.SetSelectionOwnerChecked(o.conn, win, o.atom["CLIPBOARD"], o.time).Check(); err != nil {
		return err
	}
	reply, err := xproto.GetSelectionOwner(o.conn, o.atom["CLIPBOARD"]).Reply()
	if err != nil {
		return err
	}
	if reply.Owner != win {
		return words.Errorf("another program took it at the same moment")
	}
	return nil
}

// answer serves requests until the selection is somebody else's.
func (o *owner) answer() {
	for {
		ev, err := o.conn.WaitForEvent()
		switch ev := ev.(type) {
		case xproto.SelectionRequestEvent:
			o.give(ev)
		case xproto.SelectionClearEvent:
			return
		case nil:
			if err == nil {
				return // the connection is gone
			}
		}
	}
}

// give writes the text, or what can be asked for, to the asker's property and
// tells it; a request we cannot meet is told with no property.
func (o *owner) give(req xproto.SelectionRequestEvent) {
	property := req.Property
	if property == 0 {
		property = req.Target // an asker from before ICCCM
	}
	put := func(typ xproto.Atom, format byte, n int, data []byte) {
		if xproto.ChangePropertyChecked(o.conn, xproto.PropModeReplace, req.Requestor, property, typ, format, uint32(n), data).Check() != nil {
			property = 0
		}
	}
	text := o.atom["UTF8_STRING"]
	switch req.Target {
	case o.atom["TARGETS"]:
		targets := []xproto.Atom{o.atom["TARGETS"], o.atom["TIMESTAMP"], text, o.atom["text/plain;charset=utf-8"], o.atom["text/plain"], o.atom["TEXT"]}
		if o.ascii() {
			targets = append(targets, xproto.AtomString)
		}
		data := make([]byte, 4*len(targets))
		for i, a := range targets {
			xgb.Put32(data[4*i:], uint32(a))
		}
		put(xproto.AtomAtom, 32, len(targets), data)
	case o.atom["TIMESTAMP"]:
		data := make([]byte, 4)
		xgb.Put32(data, uint32(o.time))
		put(xproto.AtomInteger, 32, 1, data)
	case text, o.atom["TEXT"]:
		put(text, 8, len(o.text), o.text)
	case o.atom["text/plain;charset=utf-8"], o.atom["text/plain"]:
		put(req.Target, 8, len(o.text), o.text)
	case xproto.AtomString: // Latin-1 by definition
		if o.ascii() {
			put(xproto.AtomString, 8, len(o.text), o.text)
		} else {
			property = 0
		}
	default:
		property = 0
	}
	note := xproto.SelectionNotifyEvent{Time: req.Time, Requestor: req.Requestor, Selection: req.Selection, Target: req.Target, Property: property}
	xproto.SendEvent(o.conn, false, req.Requestor, 0, string(note.Bytes()))
}

func (o *owner) ascii() bool {
	return !bytes.ContainsFunc(o.text, func(r rune) bool { return r >= utf8.RuneSelf })
}
