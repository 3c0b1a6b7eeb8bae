package proxy_test

import (
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/proxy"
	"porchlight/agent/senders"
	"porchlight/agent/store"
	"porchlight/test/programs"
)

// A delivery is done with the app's 2xx: until then it may be sent again, one at a time, and
// from then on it is refused, over a restart too.
func TestDeliveryIsDoneOnce(t *testing.T) {
	t.Parallel()
	r, named, _ := senderRig(t)
	var status, got atomic.Int64
	var hold atomic.Pointer[chan struct{}]
	r.app("notes", func(w http.ResponseWriter, q *http.Request) {
		io.Copy(io.Discard, q.Body)
		got.Add(1)
		if wait := hold.Load(); wait != nil {
			<-*wait
		}
		w.WriteHeader(int(status.Load()))
	})
	for _, kind := range agentapi.SenderKinds() {
		made := add(t, named, kind, "/"+kind)
		b := r.browser(true)
		send := func(what string, want int, more ...string) {
			t.Helper()
			head := sign(kind, secretOf("/"+kind), "body", r.now())
			if status, body := b.post(made.URL, "body", append(head, more...)...); status != want {
				t.Errorf("%s, %s: %d %s, want %d", kind, what, status, body, want)
			}
		}
		before := got.Load()
		for _, one := range []int64{500, 404, 302, 503} {
			status.Store(one)
			send("for the app's "+strconv.FormatInt(one, 10), int(one))
		}
		wait := make(chan struct{})
		hold.Store(&wait)
		status.Store(500)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.browser(false).post(made.URL, "body", sign(kind, secretOf("/"+kind), "body", r.now())...)
		}()
		within(t, "it is at the app", func() bool { return got.Load() == before+5 })
		send("beside another", 409)
		hold.Store(nil)
		close(wait)
		<-ended
		status.Store(204)
		send("the retry", 204)
		send("a retry after it", 409)
		r.advance(time.Second)
		send("one that is signed anew", 409)
		if n := got.Load() - before; n != 6 {
			t.Errorf("%s: the app got %d", kind, n)
		}
	}
	// A second reading of the same store knows them, and for how long.
	untimed := map[string]bool{agentapi.SenderGitHub: true, agentapi.SenderHMAC: true}
	again := sendersOf(t, r, new(atomic.Int64))
	all := programs.Got(again.List(t.Context()))(t)
	check := func(one agentapi.Sender) error {
		req := programs.Got(http.NewRequestWithContext(t.Context(), "POST", one.URL, http.NoBody))(t)
		req.RequestURI = one.Path
		head := sign(one.Kind, secretOf(one.Path), "body", r.now())
		for i := 0; i < len(head); i += 2 {
			req.Header[head[i]] = []string{head[i+1]}
		}
		claim := programs.Got(again.Claimed("id-notes", req))(t)
		d, err := claim.Check([]byte("body"))
		if err == nil {
			d.Release()
		}
		return err
	}
	for _, one := range all {
		if err := check(one); err != senders.ErrDone {
			t.Errorf("%s after a restart: %v", one.Kind, err)
		}
	}
	r.advance(senders.Kept - time.Hour)
	for _, one := range all {
		if err := check(one); (err == senders.ErrDone) != untimed[one.Kind] {
			t.Errorf("%s a week later, less an hour: %v", one.Kind, err)
		}
	}
	r.advance(2 * time.Hour)
	for _, one := range all {
		if err := check(one); err != nil {
			t.Errorf("%s a week later: %v", one.Kind, err)
		}
	}
}

// Weakness: what an app took as access ended is delivered again later.
// Attack: pause the app, or close everything, just before it answers; resume, and send again.
// Checked: a delivery that it answered with 2xx is done, although nobody hears of it.
func TestDeliveryIsDoneThoughAccessEnded(t *testing.T) {
	t.Parallel()
	r, named, _ := senderRig(t)
	r.app("notes", hello)
	made := add(t, named, agentapi.SenderGitHub, "/push")
	for status, want := range map[int]error{200: senders.ErrDone, 204: senders.ErrDone, 500: nil} {
		body := strconv.Itoa(status)
		req := programs.Got(http.NewRequestWithContext(t.Context(), "POST", made.URL, http.NoBody))(t)
		req.RequestURI = "/push"
		head := sign(agentapi.SenderGitHub, secretOf("/push"), body, r.now())
		req.Header[head[0]] = head[1:]
		send := func() (*senders.Delivery, error) {
			return programs.Got(named.Claimed("id-notes", req))(t).Check([]byte(body))
		}
		d := programs.Got(send())(t)
		if proxy.AnsweredTooLate(d, status) == nil {
			t.Errorf("%d: somebody hears of it", status)
		}
		d.Release()
		if _, err := send(); err != want {
			t.Errorf("%d: sent again: %v, want %v", status, err, want)
		}
	}
}

// A sender of whom as much is known as may be is kept out, and its owner told once; what is
// over makes room.
func TestSenderIsFull(t *testing.T) {
	t.Parallel()
	r, named, notices := senderRig(t)
	r.app("notes", hello)
	made := add(t, named, agentapi.SenderHMAC, "/full")
	var all []store.Delivery
	for i := range senders.MostKept {
		all = append(all, store.Delivery{SenderID: made.ID, Digest: [32]byte{byte(i), byte(i >> 8), 1}})
	}
	programs.Must(t, r.store.PutDeliveries(all, r.now().Add(2*time.Hour)))
	named = sendersOf(t, r, notices) // which counts them
	other := add(t, named, agentapi.SenderHMAC, "/other")
	claims := func(one agentapi.MadeSender, body string) (*senders.Delivery, error) {
		req := programs.Got(http.NewRequestWithContext(t.Context(), "POST", one.URL, http.NoBody))(t)
		req.RequestURI = strings.TrimPrefix(one.URL, origin)
		req.Header["X-Sig"] = []string{hex.EncodeToString(sum(secretOf(req.RequestURI), body))}
		return programs.Got(named.Claimed("id-notes", req))(t).Check([]byte(body))
	}
	for range 3 {
		if _, err := claims(made, "one more"); err != senders.ErrFull {
			t.Fatalf("one more: %v", err)
		}
	}
	if d, err := claims(other, "one more"); err != nil {
		t.Errorf("another sender: %v", err)
	} else {
		d.Release()
	}
	if n := notices.Load(); n != 1 {
		t.Errorf("the owner was told %d times", n)
	}
	r.advance(3 * time.Hour)
	d, err := claims(made, "one more")
	if err != nil {
		t.Fatalf("once they are over: %v", err)
	}
	d.Done()
	d.Release()
	if _, err := claims(made, "one more"); err != senders.ErrDone {
		t.Errorf("again: %v", err)
	}
}
