package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"porchlight/control/controlapi"
)

// withdrawal measures how soon a visitor is thrown out whose access is withdrawn at
// another node, among many who stay; and the same after the computer's network has
// silently gone half away.
func withdrawal(ctx context.Context, s settings, r *results) error {
	w, err := openWorld(ctx, s, shape{nodes: 2, pinned: true})
	if err != nil {
		return err
	}
	return errors.Join(w.withdrawals(ctx, r), w.close())
}

const (
	// newsWait is longer than a computer takes to hear what was given.
	newsWait = time.Second
	// slowly is how long a withdrawal takes for its steps to be told.
	slowly = 20 * time.Millisecond
	// steadyFor is how long a connection has lasted for the agent to dial the next one at
	// once: one that keeps losing them waits longer each time.
	steadyFor = 11 * time.Second
)

// elsewhere is what a computer's owner says at the node that the computer does not use.
type elsewhere struct {
	*controlapi.Client
	person string
}

func (w *world) elsewhere() *controlapi.Client {
	transport := controlapi.NewTransport(w.pool())
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, w.running[1].address)
	}
	return &controlapi.Client{BaseURL: w.authURL(), Credential: w.homes[0].Credential, HTTP: &http.Client{Transport: transport}}
}

func (w *world) withdrawals(ctx context.Context, r *results) error {
	sockets, trials, slow := 500, 200, 8
	if w.quick {
		sockets, trials, slow = 100, 10, 2
	}
	if err := w.populate(ctx, 20); err != nil {
		return err
	}
	if is, err := w.await(ctx); err != nil || len(is.Back) < len(w.homes) {
		return errors.Join(err, fmt.Errorf("%d of %d computers are there", len(is.Back), len(w.homes)))
	}
	e := elsewhere{Client: w.elsewhere()}
	defer e.HTTP.CloseIdleConnections()
	if err := e.PutApps(ctx, controlapi.Apps{Apps: []controlapi.App{app}}); err != nil { // as an agent does before a change
		return err
	}
	invited, err := e.Invite(ctx, controlapi.Invite{Email: "bob@example.net", Apps: []string{app.ID}})
	if err != nil {
		return err
	}
	e.person = invited.AccountID
	crowd, err := w.open(ctx, sockets-1)
	defer func() {
		for _, conn := range crowd {
			_ = conn.Close()
		}
	}()
	if err != nil {
		return err
	}
	// A node that has just started is not known to the others yet, and what it says only has
	// them look within a second or two. So the first withdrawal does not count.
	if _, _, err := w.thrownOut(ctx, e, 1, false); err != nil {
		return err
	}
	kept, took, err := w.thrownOut(ctx, e, trials, false)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("a withdrawal at another node, among %d sockets", sockets)
	r.add(name, half, ms(quantile(took, .5)))
	r.atMost(name, nearlyAll, ms(quantile(took, .99)), 50)
	const ofThat = "of that, until it is in the database and answered"
	r.add(ofThat, half, ms(quantile(kept, .5)))
	r.add(ofThat, nearlyAll, ms(quantile(kept, .99)))
	if _, took, err = w.thrownOut(ctx, e, slow, true); err != nil {
		return err
	}
	r.atMost("the same, the computer's network half open", "most, ms", ms(quantile(took, 1)), 3000)
	return nil
}

// thrownOut withdraws and gives again, and returns after how long that was answered, and
// how long visitors stayed.
func (w *world) thrownOut(ctx context.Context, e elsewhere, trials int, lose bool) (kept, took []time.Duration, err error) {
	access := controlapi.SetAccess{AccountID: e.person, App: app.ID}
	for trial := range trials {
		if lose && trial > 0 {
			if err := rest(ctx, steadyFor); err != nil {
				return nil, nil, err
			}
		}
		access.Granted = true
		if _, err := e.SetAccess(ctx, access); err != nil {
			return nil, nil, err
		}
		conn, err := w.settled(ctx)
		if err != nil {
			return nil, nil, err
		}
		if lose {
			if _, err := w.tell(order{Lose: true}); err != nil {
				return nil, nil, err
			}
		}
		access.Granted = false
		began := time.Now()
		if _, err := e.SetAccess(ctx, access); err != nil {
			return nil, nil, err
		}
		answered := time.Now()
		_ = conn.SetReadDeadline(answered.Add(w.patience)) // of an open connection
		_, err = conn.Read(make([]byte, 1))
		ended := time.Now()
		kept, took = append(kept, answered.Sub(began)), append(took, ended.Sub(began))
		_ = conn.Close()
		if err == nil || isTimeout(err) {
			return nil, nil, fmt.Errorf("a visitor stays after their access was withdrawn: %w", err)
		}
		if ended.Sub(began) > slowly {
			r, err := w.tell(order{})
			if err != nil {
				return nil, nil, err
			}
			w.says("withdrawal %d was answered after %.1f ms, was at the computer after %.1f, and ended the socket after %.1f",
				trial+1, ms(answered.Sub(began)), ms(r.Withdrew.Sub(began)), ms(ended.Sub(began)))
		}
	}
	return kept, took, nil
}

// settled is a visit to the first computer, by the other node, that stays: the computer
// has heard of what was given before, and has its network again.
func (w *world) settled(ctx context.Context) (conn net.Conn, err error) {
	for end := time.Now().Add(w.patience); time.Now().Before(end) && ctx.Err() == nil; {
		if conn, err = visit(ctx, w.running[1].address, w.homes[0].Name); err == nil {
			_ = conn.SetReadDeadline(time.Now().Add(newsWait))
			if _, err = conn.Read(make([]byte, 1)); isTimeout(err) {
				// A deadline that has passed spoils TLS for writing only, and nothing more is said.
				return conn, nil
			}
			_ = conn.Close()
		}
		if err := rest(ctx, lookEvery); err != nil {
			return nil, err
		}
	}
	return nil, errors.Join(err, ctx.Err(), errors.New("no visit stays"))
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout() && !errors.Is(err, io.EOF)
}
