package localapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"porchlight/agent/agentapi"
)

const (
	// maxStreams is how many streams of events may be open: the menu bar's, and
	// a few of the owner's own scripts.
	maxStreams = 16

	// eventsEvery is the least time between two events of one stream, so that an app
	// with many visitors, whose every connection is a change, costs little.
	eventsEvery = 100 * time.Millisecond

	eventStream = "text/event-stream"
)

// states numbers the owner's states.
type states struct {
	mu sync.Mutex
	// seq is the number of last. It starts at the time of the start in
	// microseconds, so that a number never returns after a restart.
	seq  uint64
	last []byte // encoded, without its number
}

// state is everything the owner sees now. It is put together under a lock, so
// that numbers grow in the order the states were seen in.
func (a *API) state(ctx context.Context) (agentapi.OwnerState, error) {
	a.states.mu.Lock()
	defer a.states.mu.Unlock()
	connection := a.cfg.Connection()
	state := agentapi.OwnerState{
		EngineVersion:   a.cfg.Info.EngineVersion,
		Mode:            a.cfg.Info.Mode,
		API:             a.server.Addr(),
		Account:         connection.Account,
		Trouble:         connection.Trouble,
		TroubleWords:    connection.Words,
		Reachable:       connection.Reachable,
		Apps:            a.cfg.Apps.OwnerApps(a.cfg.Access.Connections()),
		Notices:         append([]agentapi.Notice{}, a.cfg.Apps.Notices()...),
		NoticesSeen:     a.cfg.Apps.SeenNotices(),
		Registrants:     a.server.registry.Registrants(),
		Users:           a.cfg.Users.List(),
		OutboxSize:      a.outboxSize(ctx),
		DarkSince:       a.cfg.Access.DarkSince(),
		Connecting:      a.server.cfg.Connector.Connecting(),
		ActivityVersion: a.cfg.Activity.Version(),
		Update:          a.cfg.Update(),
		HTTPBroken:      a.cfg.Broken(),
		Containers:      a.cfg.Containers(),
		Language:        a.cfg.Settings.Get().Language,
		Locked:          len(a.server.ownerSecretHash()) == 0,
	}
	if at := a.cfg.Crowded(); !at.IsZero() {
		state.Crowded = &at
	}
	if until, ok := a.cfg.Access.AccessUntil(); ok && connection.Away {
		state.AccessUntil = &until
	}
	a.addHealth(&state)
	a.addPeople(&state)
	raw, err := json.Marshal(state)
	if err != nil {
		return agentapi.OwnerState{}, fmt.Errorf("encode the owner's state: %w", err)
	}
	if !bytes.Equal(raw, a.states.last) {
		a.states.seq++
		a.states.last = raw
	}
	state.Seq = a.states.seq
	return state, nil
}

// ownerEvents streams the state: at once, and after every change. What changes
// while the reader is slow becomes one event. With the next agent it begins again,
// on the same connection.
func (a *API) ownerEvents(r *http.Request) (any, error) {
	return stream(func(w http.ResponseWriter) error { return a.events(w, r) }), nil
}

func (a *API) events(w http.ResponseWriter, r *http.Request) error {
	select {
	case a.server.streams <- struct{}{}:
		defer func() { <-a.server.streams }()
	default:
		return &agentapi.Error{
			Code:       agentapi.CodeTooMany,
			Message:    "Too many programs follow the owner's events already. End one of them.",
			RetryAfter: a.server.heartbeat,
		}
	}
	// Before the first look: a change between the two is then not missed.
	changed, cancel := a.server.changes.Subscribe()
	defer cancel()

	s := reader{conn: http.NewResponseController(w), w: w}
	// The reader sends nothing more, so a deadline would only end the stream.
	if err := s.conn.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("keep a stream of events open: %w", err)
	}
	state, err := a.state(r.Context())
	if err != nil {
		return err
	}
	head := w.Header()
	head.Set("Content-Type", eventStream)
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	if err := s.send(state); err != nil {
		return nil // the reader has gone, and there is nobody to tell
	}
	sent := state.Seq
	heartbeat := time.NewTicker(a.server.heartbeat)
	defer heartbeat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-a.ending:
			return errGoesOn
		case <-heartbeat.C:
			// Also the time to look again: a trouble can begin by lasting.
			if s.write(":\n\n") != nil {
				return nil
			}
		case <-changed:
		}
		if state, err = a.state(r.Context()); err != nil {
			a.log.Error("a stream of events ended", "err", err)
			return nil
		}
		if state.Seq == sent {
			continue
		}
		if s.send(state) != nil {
			return nil
		}
		sent = state.Seq
		select {
		case <-r.Context().Done():
		case <-a.ending:
		case <-time.After(eventsEvery):
		}
	}
}

// reader is who follows the events.
type reader struct {
	conn *http.ResponseController
	w    http.ResponseWriter
}

func (s reader) send(state agentapi.OwnerState) error {
	raw, err := json.Marshal(state) // on one line
	if err != nil {
		return err
	}
	return s.write("event: " + agentapi.EventState + "\ndata: " + string(raw) + "\n\n")
}

func (s reader) write(text string) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeIn)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.conn.Flush()
}
