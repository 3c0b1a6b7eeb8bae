package relay

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
)

// stalling is a connection of a relay that may stand still: what a read came to is known
// afterwards.
type stalling struct {
	net.Conn
	still atomic.Pointer[chan struct{}] // closed when it goes on
}

func (c *stalling) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if goesOn := c.still.Load(); goesOn != nil {
		<-*goesOn
	}
	return n, err
}

// Weakness: a computer with visitors that vanished was taken to be there for 40 s, though
// it beats every second. Checked by the bubble's clock: 6 s for one that said it is awake,
// 40 s for one that does not say so any more or never did; and a relay that stood still itself drops nobody who is there.
func TestHowLongAnAgentMayBeSilent(t *testing.T) {
	t.Parallel()
	awake, asleep := tunnelwire.Frame{Type: tunnelwire.Ping, Awake: true}, tunnelwire.Frame{Type: tunnelwire.Ping}
	for name, c := range map[string]struct {
		pings  []tunnelwire.Frame
		stands time.Duration // still, with the agent still there
		want   time.Duration
	}{
		"awake":                  {[]tunnelwire.Frame{awake, awake}, 0, 6 * time.Second},
		"gone to sleep":          {[]tunnelwire.Frame{awake, asleep}, 0, 40 * time.Second},
		"asleep":                 {[]tunnelwire.Frame{asleep, asleep}, 0, 40 * time.Second},
		"of a relay that stalls": {[]tunnelwire.Frame{awake, awake}, 20 * time.Second, 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRelay(t, nil)
			here, there := net.Pipe()
			stall := &stalling{Conn: there}
			config := r.cfg.TLS.Clone()
			config.NextProtos = []string{controlapi.TunnelALPN}
			server := tls.Server(stall, config)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if err := server.HandshakeContext(t.Context()); err != nil {
					t.Error(err)
					return
				}
				r.serveControl(context.Background(), server, func() {})
				r.wg.Wait()
				r.deep.end()
			}()
			a := connectAgentOver(t, here, "", "maya")
			say := func(f tunnelwire.Frame) {
				if err := tunnelwire.WriteFrame(a.control, f); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, f := range c.pings {
				time.Sleep(time.Second)
				say(f)
			}
			if c.stands > 0 {
				goesOn := make(chan struct{})
				stall.still.Store(&goesOn)
				time.Sleep(c.stands)
				go say(awake) // it is there when the relay goes on
				synctest.Wait()
				stall.still.Store(nil)
				close(goesOn)
				synctest.Wait()
			}
			began := time.Now()
			<-ended
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: the silence is noticed after %v, want %v", name, took, c.want)
			}
			_ = here.Close()
		})
	}
}
