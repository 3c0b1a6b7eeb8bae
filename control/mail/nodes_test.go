package mail

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-message"

	"porchlight/test/programs"
)

// Two nodes deliver from one store, after the server was away for an hour: every
// mail arrives, and none of them twice.
func TestNodesShareAQueue(t *testing.T) {
	t.Parallel()
	const mails = 40
	s := newSink(t).start(false)
	one := newQueue(t, s, "smtp://ADDR")
	other := programs.Got(NewSMTP(one.store, SMTPConfig{
		Server: "smtp://" + s.Address, From: "porchlight@control.example.net", RootCAs: s.Roots, Now: one.now,
	}))(t)
	s.Stop()
	for n := range mails {
		one.put(fmt.Sprint(n), anInvitation(t))
	}
	for range 60 {
		one.after(time.Minute)
		other.deliverDue(t.Context())
	}
	if one.waiting() != mails {
		t.Fatalf("%d wait", one.waiting())
	}
	s.start(false)
	*one.clock = one.clock.Add(slowestRedial)
	var wg sync.WaitGroup
	for _, q := range []*SMTP{one.SMTP, other} {
		wg.Go(func() { q.deliverDue(t.Context()) })
	}
	wg.Wait()
	arrived := map[string]int{}
	for _, m := range s.Mails() {
		e := programs.Got(message.Read(bytes.NewReader(m.Data)))(t)
		arrived[e.Header.Get("Message-Id")]++
	}
	for id, n := range arrived {
		if n != 1 {
			t.Errorf("%s arrived %d times", id, n)
		}
	}
	if a, b := one.Stats(), other.Stats(); len(arrived) != mails || one.waiting() != 0 || a.Delivered+b.Delivered != mails {
		t.Errorf("%d arrived, %d wait, delivered %+v and %+v", len(arrived), one.waiting(), a, b)
	}
}
