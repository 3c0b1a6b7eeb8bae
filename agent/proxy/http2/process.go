package http2

import (
	"net/http"
	"slices"

	frames "golang.org/x/net/http2"

	"porchlight/agent/proxy/limits"
)

// connError and streamError are what a visitor did wrong.
func connError(code frames.ErrCode) error { return frames.ConnectionError(code) }

func streamError(id uint32, code frames.ErrCode) error {
	return frames.StreamError{StreamID: id, Code: code}
}

// process does what a frame asks for.
func (c *Conn) process(f frames.Frame) error {
	if f, ok := f.(*frames.HeadersFrame); ok {
		return c.headers(f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pastGoAway(f.Header().StreamID) {
		return c.pastData(f)
	}
	switch f := f.(type) {
	case *frames.DataFrame:
		return c.processData(f)
	case *frames.RSTStreamFrame:
		return c.processReset(f)
	case *frames.PushPromiseFrame:
		return connError(frames.ErrCodeProtocol)
	}
	if !c.empties.spend(1) {
		return connError(frames.ErrCodeEnhanceYourCalm)
	}
	switch f := f.(type) {
	case *frames.WindowUpdateFrame:
		return c.processWindow(f)
	case *frames.SettingsFrame:
		return c.processSettings(f)
	case *frames.PingFrame:
		c.processPing(f)
	case *frames.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return streamError(f.StreamID, frames.ErrCodeProtocol)
		}
	case *frames.GoAwayFrame:
		c.goAwaySoon(c.lastID)
	}
	return nil
}

// pastGoAway says whether a frame is of a stream that our GOAWAY kept from beginning.
// mu is held.
func (c *Conn) pastGoAway(id uint32) bool { return c.leaving && id > c.lastID }

// late counts a frame that is dropped because it may have been on its way when its stream
// was ended by us. mu is held.
func (c *Conn) late() error {
	if !c.empties.spend(1) {
		return connError(frames.ErrCodeEnhanceYourCalm)
	}
	return nil
}

// pastData drops a frame past our GOAWAY, and opens the window of the connection again.
func (c *Conn) pastData(f frames.Frame) error {
	if err := c.late(); err != nil {
		return err
	}
	if f, ok := f.(*frames.DataFrame); ok {
		return c.drop(f)
	}
	return nil
}

// drop takes a DATA frame that nobody wants. mu is held.
func (c *Conn) drop(f *frames.DataFrame) error {
	if !c.connIn.spend(int(f.Length)) {
		return connError(frames.ErrCodeFlowControl)
	}
	c.credit(int(f.Length))
	return nil
}

// credit opens the window of the connection by n bytes. mu is held.
func (c *Conn) credit(n int) {
	if say := c.connIn.add(n); say > 0 && c.ended == nil {
		_ = c.write.WriteWindowUpdate(0, say) // into memory
		c.controls()
	}
}

// wasBegun says whether a stream ever was. mu is held.
func (c *Conn) wasBegun(id uint32) bool { return id%2 == 1 && id <= c.lastID }

func (c *Conn) processData(f *frames.DataFrame) error {
	if !c.wasBegun(f.StreamID) {
		return connError(frames.ErrCodeProtocol)
	}
	st, data := c.streams[f.StreamID], f.Data()
	if st == nil || st.remote {
		if err := c.drop(f); err != nil {
			return err
		}
		return streamError(f.StreamID, frames.ErrCodeStreamClosed)
	}
	if len(data) == 0 && !f.StreamEnded() && !c.empties.spend(1) {
		return connError(frames.ErrCodeEnhanceYourCalm)
	}
	if st.length >= 0 && st.got+int64(len(data)) > st.length {
		if err := c.drop(f); err != nil {
			return err
		}
		return streamError(f.StreamID, frames.ErrCodeProtocol)
	}
	if int(f.Length) > c.connIn.open {
		return connError(frames.ErrCodeFlowControl)
	}
	if !st.body.in.spend(int(f.Length)) {
		return streamError(f.StreamID, frames.ErrCodeFlowControl)
	}
	c.connIn.spend(int(f.Length))
	st.got += int64(len(data))
	st.body.put(data)
	if pad := int(f.Length) - len(data); pad > 0 {
		st.body.credit(pad)
	}
	if f.StreamEnded() {
		st.endRemote()
	}
	return nil
}

func (c *Conn) processReset(f *frames.RSTStreamFrame) error {
	if !c.wasBegun(f.StreamID) {
		return connError(frames.ErrCodeProtocol)
	}
	if !c.resets.spend(1) {
		return connError(frames.ErrCodeEnhanceYourCalm)
	}
	if st := c.streams[f.StreamID]; st != nil {
		c.close(st, errClosed)
	}
	return nil
}

func (c *Conn) processWindow(f *frames.WindowUpdateFrame) error {
	by := int64(f.Increment)
	if f.StreamID == 0 {
		if c.window+by > maxWindow {
			return connError(frames.ErrCodeFlowControl)
		}
		c.window += by
		c.nextInQueue()
		return nil
	}
	if !c.wasBegun(f.StreamID) {
		return connError(frames.ErrCodeProtocol)
	}
	st := c.streams[f.StreamID]
	if st == nil {
		return nil // it may have been on its way when the stream ended
	}
	if st.window+by > maxWindow {
		return streamError(f.StreamID, frames.ErrCodeFlowControl)
	}
	st.open(by)
	return nil
}

func (c *Conn) processPing(f *frames.PingFrame) {
	if f.IsAck() {
		if c.pinged > 0 && f.Data == c.pingData {
			c.pinged = 0
		}
		return
	}
	_ = c.write.WritePing(true, f.Data) // into memory
	c.controls()
}

func (c *Conn) processSettings(f *frames.SettingsFrame) error {
	if f.IsAck() {
		if c.unacked--; c.unacked < 0 {
			return connError(frames.ErrCodeProtocol)
		}
		return nil
	}
	if f.NumSettings() > limits.Settings || f.HasDuplicates() {
		return connError(frames.ErrCodeProtocol)
	}
	if !c.empties.spend(limits.EmptiesPerSettings) { // which may concern every stream
		return connError(frames.ErrCodeEnhanceYourCalm)
	}
	if err := f.ForeachSetting(c.set); err != nil {
		return err
	}
	_ = c.write.WriteSettingsAck() // into memory
	c.controls()
	return nil
}

func (c *Conn) set(s frames.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case frames.SettingHeaderTableSize:
		c.encoder.SetMaxDynamicTableSize(s.Val)
	case frames.SettingMaxFrameSize:
		c.frame = int(s.Val)
	case frames.SettingInitialWindowSize:
		by := int64(s.Val) - c.initial
		c.initial = int64(s.Val)
		for _, st := range c.streams {
			if st.window+by > maxWindow {
				return connError(frames.ErrCodeFlowControl)
			}
			st.open(by)
		}
	}
	return nil
}

// headers begins a stream, or ends one with trailers.
func (c *Conn) headers(f *frames.HeadersFrame) error {
	id, ended, itself := f.StreamID, f.StreamEnded(), f.HasPriority() && f.Priority.StreamDep == f.StreamID
	defer c.head.forget()
	if err := c.block(f); err != nil {
		return err
	}
	begins, err := c.mayBegin(id, ended)
	if err != nil || !begins {
		return err
	}
	if itself {
		return streamError(id, frames.ErrCodeProtocol)
	}
	held, err := c.hold(id, c.head.size())
	if err != nil {
		return err
	}
	st, err := c.newStream(id, ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.ended != nil {
		c.give(held)
		return err
	}
	st.held = held
	st.window = c.initial
	c.streams[id] = st
	if len(c.streams) == 1 {
		c.state(http.StateActive)
	}
	if c.rests {
		c.rests = false
		c.timer.Reset(firstTick())
	}
	if c.running >= limits.Streams {
		c.waiting = append(c.waiting, st)
		return nil
	}
	c.running++
	c.server.do(job{stream: st})
	return nil
}

// mayBegin judges the number of a stream whose header block has come. begins is false
// without an error where the block is of trailers, or of a stream that comes too late.
func (c *Conn) mayBegin(id uint32, ended bool) (begins bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pastGoAway(id) {
		return false, c.late()
	}
	if id%2 == 0 {
		return false, connError(frames.ErrCodeProtocol)
	}
	if st := c.streams[id]; st != nil {
		return false, st.processTrailer(&c.head, ended)
	}
	switch {
	case id > c.lastID:
	case c.lately.has(id):
		return false, c.late() // trailers
	default:
		return false, connError(frames.ErrCodeProtocol)
	}
	c.lastID = id
	if len(c.streams) >= limits.Streams {
		code := frames.ErrCodeProtocol
		if c.unacked > 0 {
			code = frames.ErrCodeRefusedStream // it need not know how many there may be
		}
		return false, streamError(id, code)
	}
	return true, nil
}

// close ends a stream on both sides. What its handler reads or writes from now on fails
// with why. mu is held.
func (c *Conn) close(st *stream, why error) {
	if st.closed {
		return
	}
	st.closed, st.err = true, why
	delete(c.streams, st.id)
	if st.body != nil {
		st.body.drop(why)
	}
	if st.deadline != nil {
		st.deadline.Stop()
	}
	if st.lingers != nil {
		st.lingers.Stop()
	}
	if st.queued {
		st.queued = false
		c.queue = slices.DeleteFunc(c.queue, func(q *stream) bool { return q == st })
	}
	st.signal()
	c.room.Broadcast()
	st.ctx.Cancel()
	c.stopWaiting(st)
	if len(c.streams) == 0 {
		c.idle = c.now()
		c.state(http.StateIdle)
		c.left()
	}
}

// stopWaiting forgets a stream that waited to be begun. mu is held.
func (c *Conn) stopWaiting(st *stream) {
	if i := slices.Index(c.waiting, st); i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
		st.give(0)
	}
}

// closeAll ends every stream. mu is held.
func (c *Conn) closeAll(why error) {
	for _, st := range c.streams {
		c.close(st, why)
	}
}

// handled is called when a handler has returned. mu is held.
func (c *Conn) handled() {
	c.running--
	if len(c.waiting) > 0 {
		st := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.running++
		c.server.do(job{stream: st})
	}
	if c.isIdle() {
		c.idle = c.now()
	}
}
