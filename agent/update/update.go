package update

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/internal/publicnet"
	"porchlight/internal/words"
)

const (
	every   = 24 * time.Hour
	another = time.Hour // before another address of the operator's is asked
	within  = 30 * time.Second
	maxFile = 16 << 10 // bytes
	maxHops = 3

	maxProblem = 300 // characters
)

// errOwnNetwork is about an address of the operator's that leads to no public one. Its owner
// has not named it, so it is asked on the internet alone.
var errOwnNetwork = words.Errorf("the address leads into your own network, where only one that you name yourself is asked")

// Kept is what is remembered of an address: what it said last, and when it was asked.
type Kept struct {
	Address  string    `json:"address"`
	Key      string    `json:"key"`
	Manifest *Manifest `json:"manifest,omitempty"`
	Asked    time.Time `json:"asked"`
}

// Config of New. Fields without a remark are required.
type Config struct {
	// Chosen is whom to ask.
	Chosen func() Choice
	// Load and Save keep what was learnt across starts.
	Load    func() (Kept, error)
	Save    func(Kept) error
	Version string // that runs
	// Changes is raised when Update answers something else, and listened to for the owner's
	// choice.
	Changes   *broadcast.Signal
	Transport *http.Transport // nil for the system's way out
	// Allowed says which addresses the operator's may lead to; nil for those of the
	// internet.
	Allowed func(netip.Addr) bool
	Now     func() time.Time
	Log     *slog.Logger
}

// Checker is safe for concurrent use. Run asks; Update tells.
type Checker struct {
	cfg     Config
	clients map[string]*http.Client // by Choice.By

	mu      sync.Mutex // protects what follows
	kept    Kept
	problem words.Sentence // of the last time; zero for none
}

// New reads what was learnt before; it asks nothing, see Run.
func New(cfg Config) (*Checker, error) {
	kept, err := cfg.Load()
	if err != nil {
		return nil, err
	}
	way, allowed := cfg.Transport, cfg.Allowed
	if way == nil {
		way = http.DefaultTransport.(*http.Transport)
	}
	if allowed == nil {
		allowed = publicnet.Has
	}
	return &Checker{cfg: cfg, kept: kept, clients: map[string]*http.Client{
		agentapi.ByOwner: client(way), agentapi.ByOperator: client(publicnet.Way(way, within, allowed, errOwnNetwork)),
	}}, nil
}

func client(way *http.Transport) *http.Client {
	return &http.Client{
		Transport: way,
		Timeout:   within,
		// No jar: whoever is asked learns nothing of the last time.
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme != "https" {
				return words.Errorf("the address leads to one without https")
			}
			if len(via) > maxHops {
				return words.Errorf("the address leads on too often")
			}
			r.Header.Del("Referer")
			return nil
		},
	}
}

// Choice is an address and the key that signs there, and who named them: agentapi.ByOwner
// or agentapi.ByOperator. The zero Choice is nobody.
type Choice struct {
	controlapi.UpdateNotice
	By string
}

// Choose is whom to ask where the owner named own, and the operator of their server named
// theirs, if they did. The owner's word comes first, also where it is agentapi.NoAddress.
func Choose(own controlapi.UpdateNotice, theirs *controlapi.UpdateNotice) Choice {
	switch {
	case own.Address == agentapi.NoAddress:
		return Choice{}
	case own.Address != "":
		return Choice{own, agentapi.ByOwner}
	case theirs != nil:
		return Choice{*theirs, agentapi.ByOperator}
	}
	return Choice{}
}

// CheckOwners refuses an address and a key of the owner's that cannot be asked. Both may
// be empty, and the address agentapi.NoAddress.
func CheckOwners(n controlapi.UpdateNotice) error {
	if n == (controlapi.UpdateNotice{}) || n == (controlapi.UpdateNotice{Address: agentapi.NoAddress}) {
		return nil
	}
	return n.Check()
}

// askable says whether there is an address, and that it can be asked.
func (c Choice) askable() bool { return c.Check() == nil }

// Update is what the owner is told; nil while no address is named.
func (c *Checker) Update() *agentapi.Update {
	chosen := c.cfg.Chosen()
	if chosen.By == "" {
		return nil
	}
	out := &agentapi.Update{By: chosen.By, Address: chosen.Address}
	if !chosen.askable() { // the owner's was checked when they named it
		why := words.Of("Your server names an address for newer versions that cannot be asked. Whoever runs it can mend that.")
		out.Address, out.Problem, out.Words = "", why.String(), words.Text{why}
		return out
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.about(chosen) {
		return out
	}
	if !c.problem.IsZero() {
		out.Problem, out.Words = c.problem.String(), words.Text{c.problem}
	}
	if !c.kept.Asked.IsZero() {
		at := c.kept.Asked
		out.AskedAt = &at
	}
	if m := c.kept.Manifest; m != nil && m.stands(c.cfg.Now()) == nil && m.newer(c.cfg.Version) {
		out.Version, out.Date = m.Version, &m.Date
	}
	return out
}

// Run asks once a day, and at once where the owner names another address, until ctx
// ends. Another one of the operator's is asked an hour after the last time at the soonest:
// they may name one as often as they like.
func (c *Checker) Run(ctx context.Context) error {
	changed, cancel := c.cfg.Changes.Subscribe()
	defer cancel()
	for {
		wait := c.due()
		if wait <= 0 {
			c.ask(ctx)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-changed: // perhaps another address
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// due is how long it is until the address is asked; an hour at most, because clocks are
// set and computers sleep.
func (c *Checker) due() time.Duration {
	chosen := c.cfg.Chosen()
	if !chosen.askable() {
		return time.Hour
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	since, pause := c.cfg.Now().Sub(c.kept.Asked), every
	switch {
	case c.about(chosen):
	case chosen.By == agentapi.ByOperator:
		pause = another
	default:
		return 0
	}
	if since >= pause || since < -every { // the clock was set back
		return 0
	}
	return min(max(pause-since, time.Second), time.Hour)
}

// about says whether what is kept is of this choice. The caller holds mu.
func (c *Checker) about(chosen Choice) bool {
	return c.kept.Address == chosen.Address && c.kept.Key == chosen.Key
}

// ask asks the address, once, and keeps what came of it.
func (c *Checker) ask(ctx context.Context) {
	chosen := c.cfg.Chosen()
	if !chosen.askable() {
		return
	}
	public, err := chosen.PublicKey()
	if err != nil {
		return // it is not askable
	}
	file, err := c.fetch(ctx, chosen)
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	if !c.about(chosen) {
		c.kept = Kept{Address: chosen.Address, Key: chosen.Key}
	}
	now := c.cfg.Now().UTC()
	c.kept.Asked = now
	if err == nil {
		err = c.accept(file, public, now)
	}
	if c.problem = (words.Sentence{}); err != nil {
		why := words.Plain(shortened(err.Error()))
		if _, ours := errors.AsType[*words.Failure](err); ours {
			why = words.InWords(err)
		}
		c.problem = words.Of("Whether there is a newer version could not be learnt: %s.", why)
		c.cfg.Log.Info("the update notice could not be had", "err", err)
	}
	if err := c.cfg.Save(c.kept); err != nil {
		c.cfg.Log.Warn("what is known of newer versions could not be kept", "err", err)
	}
	c.mu.Unlock()
	c.cfg.Changes.Raise()
}

// shortened is the text of an error, which may quote what the other side sent, as one line
// of at most maxProblem characters.
func shortened(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if all := []rune(text); len(all) > maxProblem {
		return string(all[:maxProblem-1]) + "…"
	}
	return text
}

// accept judges a file and keeps its manifest. The caller holds mu.
func (c *Checker) accept(file []byte, public ed25519.PublicKey, now time.Time) error {
	m, err := open(file, public)
	if err == nil {
		err = m.stands(now)
	}
	if err != nil {
		return err
	}
	// One from a time when the clock was wrong keeps out none of now.
	if last := c.kept.Manifest; last != nil && !last.Date.After(now.Add(ahead)) && m.Date.Before(last.Date) {
		return words.Errorf("the manifest is older than the one from before")
	}
	c.kept.Manifest = &m
	return nil
}

func (c *Checker) fetch(ctx context.Context, chosen Choice) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, chosen.Address, nil)
	if err != nil || r.URL.Scheme != "https" {
		return nil, words.Errorf("the address cannot be asked")
	}
	r.Header.Set("User-Agent", "Porchlight") // the same for everybody
	r.Header.Set("Accept", "application/json")
	res, err := c.clients[chosen.By].Do(r)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		if errors.Is(err, errOwnNetwork) {
			err = errOwnNetwork // without the number that was dialled
		}
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, words.Errorf("the address answered with status %d", res.StatusCode)
	}
	file, err := io.ReadAll(io.LimitReader(res.Body, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(file) > maxFile {
		return nil, words.Errorf("what is there is too large for a manifest")
	}
	return file, nil
}
