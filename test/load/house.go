package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control/controlapi"
)

// roleVariable makes this program a house: a process with many computers in it.
const roleVariable = "PORCHLIGHT_LOAD_COMPUTERS"

// order is what a house is told, one at a time; each is answered by a report.
type order struct {
	Auth  string   // the first time: where the control plane is
	Roots []byte   // and what its certificates lead to
	Nodes []string // where that name leads; nil for as before
	Add   []home
	Apart bool // and they come one after the other, as startAgain has them do
	Mark  bool // look who comes back from now on, and count what is tried
	Lose  bool // lossy computers lose their network
	// Again has the agents end and start again, each with the snapshot it kept, a few at a
	// time; for so long those are waited for that do not come back. 0 for not.
	Again time.Duration
}

// report is how the computers of a house do.
type report struct {
	Computers int
	Back      []time.Time // those who are there since they were marked, and since when
	Tried     int         // syncs since then
	Reported  int         // computers whose list of apps was taken
	Opened    int64       // connections to nodes, all that ever were

	Answered, Welcomed int       // syncs and tunnels that stand
	Trouble            string    // what the last sync that failed met
	Withdrew           time.Time // a snapshot last took something from somebody
}

// beComputers is a house until its orders end.
func beComputers(ctx context.Context, orders io.Reader, reports io.Writer) error {
	raiseFiles()
	ctx, cancel := context.WithCancel(ctx)
	var all []*computer
	defer func() {
		cancel()
		for _, c := range all {
			<-c.ended
		}
	}()
	cert, err := appCertificate()
	if err != nil {
		return err
	}
	in, out := json.NewDecoder(orders), json.NewEncoder(reports)
	have := &shared{roots: x509.NewCertPool(), cert: cert}
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if o.Auth != "" {
			have.auth = o.Auth
			have.roots.AppendCertsFromPEM(o.Roots)
		}
		if o.Nodes != nil {
			have.nodes.Store(&o.Nodes)
		}
		pace := time.NewTicker(againEach)
		for _, h := range o.Add {
			if o.Apart {
				<-pace.C
			}
			c, err := newComputer(h, have, &controlapi.Snapshot{})
			if err != nil {
				return err
			}
			all = append(all, c)
			c.start(ctx)
		}
		pace.Stop()
		if o.Again > 0 {
			if err := startAgain(ctx, all, o.Again); err != nil {
				return err
			}
		}
		r := look(all, o)
		r.Opened = have.connects.Load()
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

// againAtOnce is how many computers start again at a time, and againEach how often one is
// begun: they are many people's, and a start is no storm, which nodes admit slowly. One
// house follows the other.
const (
	againAtOnce = 16
	againEach   = time.Second / 250
)

// startAgain ends the agents and starts them again, as after an update or a night.
func startAgain(ctx context.Context, all []*computer, within time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(againAtOnce)
	pace := time.NewTicker(againEach)
	defer pace.Stop()
	for i, was := range all {
		<-pace.C
		g.Go(func() error {
			was.stop()
			<-was.ended
			c, err := newComputer(was.home, was.shared, was.last.Load())
			if err != nil {
				return err
			}
			all[i] = c
			c.start(ctx)
			c.awaitBack(waiting)
			return nil
		})
	}
	return g.Wait()
}

// look carries an order out at every computer.
func look(all []*computer, o order) report {
	r := report{Computers: len(all)}
	for _, c := range all {
		if o.Mark {
			c.mark()
		}
		if o.Lose {
			c.lose()
		}
		if at, ok := c.back(); ok {
			r.Back = append(r.Back, at)
		}
		c.mu.Lock()
		r.Tried += c.tried
		if c.answered.After(c.marked) {
			r.Answered++
		}
		if c.reported {
			r.Reported++
		}
		if c.withdrew.After(r.Withdrew) {
			r.Withdrew = c.withdrew
		}
		if c.failed != nil {
			r.Trouble = fmt.Sprint(c.failed, " ", errors.Unwrap(c.failed))
		}
		c.mu.Unlock()
		if c.tunnel.Connected() {
			r.Welcomed++
		}
	}
	return r
}

// appCertificate is every app's: who visits here does not look at it.
func appCertificate() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"*." + domain}, NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, nil
}

// house is such a process, from outside.
type house struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	say *json.Encoder
	ear *json.Decoder
}

// openHouse starts one in a program, or in this one; a dense one gives memory back sooner.
func openHouse(program string, dense bool) (h *house, err error) {
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	h = &house{cmd: exec.Command(program)}
	h.cmd.Env = append(os.Environ(), roleVariable+"=1")
	if dense {
		h.cmd.Env = append(h.cmd.Env, "GOGC=30")
	}
	h.cmd.Stderr = os.Stderr
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.say, h.ear = json.NewEncoder(h.in), json.NewDecoder(out)
	return h, h.cmd.Start()
}

func (h *house) tell(o order) (r report, err error) {
	if err = h.say.Encode(o); err == nil {
		err = h.ear.Decode(&r)
	}
	if err != nil {
		err = fmt.Errorf("a house of computers is gone: %w", err)
	}
	return r, err
}

// stop ends it with its computers.
func (h *house) stop() error {
	_ = h.in.Close()
	timer := time.AfterFunc(10*time.Second, func() { _ = h.cmd.Process.Kill() }) // thousands of connections to close
	defer timer.Stop()
	_ = h.cmd.Wait() // how it ended says nothing about what was measured
	return nil
}
