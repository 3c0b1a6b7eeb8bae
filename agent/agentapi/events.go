package agentapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

// Heartbeat is how often the agent writes to a stream of events that has
// nothing to say.
const Heartbeat = 15 * time.Second

// Events calls fn with the owner's state now and after every change, from this
// goroutine (GET /owner/events). States that follow one another quickly may be
// left out, never the last one. It returns the context's error when ctx ended,
// and any other error when the stream did, which it also does when the agent
// has been silent for three heartbeats; call it again then.
func (c *Client) Events(ctx context.Context, fn func(OwnerState)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(c.giveUpAfter, func() { cancel(errSilent) })
	defer timer.Stop()

	resp, err := c.send(ctx, http.MethodGet, "/owner/events", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || t != "text/event-stream" {
		return c.strange()
	}
	events := eventReader{lines: bufio.NewReader(resp.Body), heard: func() { timer.Reset(c.giveUpAfter) }}
	for {
		name, data, err := events.next()
		if errors.Is(err, io.EOF) && ctx.Err() == nil {
			return fmt.Errorf("Porchlight ended its stream of events: %w", err)
		}
		if err != nil {
			return c.failed(ctx, err)
		}
		if name != EventState {
			continue // of a later version
		}
		var state OwnerState
		if err := json.Unmarshal(data, &state); err != nil {
			return c.strange()
		}
		fn(state)
	}
}

// EventState is the name of the event whose data is an OwnerState.
const EventState = "state"

// eventReader reads the part of the event stream format (WHATWG HTML,
// Server-sent events) that the agent writes: events by name with data, and
// comments. Lines end with LF or CRLF.
type eventReader struct {
	lines *bufio.Reader
	heard func() // called for every line
}

var errEventTooLarge = errors.New("an event is larger than any state")

// next returns the next event that has data. The error at the end of the stream
// is io.EOF; an event that was cut short is dropped, as the format wants.
func (r *eventReader) next() (name string, data []byte, err error) {
	name = "message"
	size, some := 0, false
	for {
		line, err := r.readLine(maxAnswer - size)
		if err != nil {
			return "", nil, err
		}
		size += len(line)
		r.heard()
		if len(line) == 0 {
			if some {
				return name, data, nil
			}
			name, size = "message", 0
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if some {
				data = append(data, '\n')
			}
			data, some = append(data, value...), true
		}
	}
}

// readLine reads a line of at most limit bytes, without its end.
func (r *eventReader) readLine(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			return nil, errEventTooLarge
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
	}
}
