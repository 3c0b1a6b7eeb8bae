package control

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/control/controlapi"
	"porchlight/control/feed"
	"porchlight/control/kv"
	"porchlight/internal/broadcast"
)

// Device credentials: a computer has one or none. Ending one refuses its next
// request, wakes the syncs that wait with it, and is reported by
// Config.OnCredentialEnded, on every node, so that the tunnel it opened ends too.

// Agents are what computers ask, with their device credentials.
type Agents struct {
	*core
	keys    *Keys
	devices *feed.Pace // how often they asked this node
	hints   feed.Hints
	untold  atomic.Bool // a change was told to nobody, and is not looked for yet
	// sweepVersions is how often versions are read though nothing seems to be missed.
	sweepVersions time.Duration
	lastUntold    string // the version of the last change that was told to nobody; of the goroutine that looks
}

// giveCredential makes the credential with this hash the only one of a computer.
func (t *txn) giveCredential(c computer, hash string) {
	t.endCredential(&c)
	c.CredentialHash = hash
	t.put(keyComputer(c.ID), c, 0)
	t.put(keyCredential(hash), c.ID, 0)
	t.touch(c.ID)
}

// endCredential ends what a computer authenticates with, if it has anything.
func (t *txn) endCredential(c *computer) {
	if c.CredentialHash == "" {
		return
	}
	t.delete(keyCredential(c.CredentialHash))
	c.CredentialHash = ""
	t.put(keyComputer(c.ID), *c, 0)
	t.ended = append(t.ended, c.ID)
	// For the other nodes; the random version keeps one ending from another.
	t.put(keyEndedCredentials+endedEvent(t.version, c.ID), c.ID, endedMemory)
	t.touch(c.ID)
}

// EndCredential ends a device credential: requests with it are refused, waiting
// ones end, and so does the tunnel it opened. The computer's short name, its
// people and their apps are kept. It refuses with CodeUnauthorized when the
// credential is over.
func (s *Agents) EndCredential(ctx context.Context, credential string) error {
	hash := hashOf(purposeCredential, credential)
	return s.update(ctx, func(tx *txn) error {
		c, err := computerByCredential(tx, hash)
		if err != nil {
			return err
		}
		tx.endCredential(&c)
		return nil
	})
}

// endedMemory is how long other nodes can learn that a credential ended.
const endedMemory = time.Hour

// readEndedEvery is how often a node looks at most for what others ended.
const readEndedEvery = 250 * time.Millisecond

// endedEvent names the ending of a computer's credential by the transaction of
// this version.
func endedEvent(version, computerID string) string { return version + "/" + computerID }

// tellEnded reports credentials that other nodes ended since the last call; seen is
// what had ended before.
func (s *Agents) tellEnded(ctx context.Context, seen map[string]bool) error {
	now, err := viewedOf(ctx, s.core, kv.Rows{Prefixes: []string{keyEndedCredentials}}, func(tx *txn) (map[string]string, error) {
		return maps.Collect(each[string](tx, keyEndedCredentials)), nil
	})
	if err != nil {
		return err
	}
	for event, id := range anew(now, seen) {
		if _, here := s.endedHere.LoadAndDelete(event); !here {
			s.credentialEnded(id)
		}
	}
	return nil
}

// anew are those events of now that are not among seen, which is brought up to date.
func anew(now map[string]string, seen map[string]bool) map[string]string {
	maps.DeleteFunc(seen, func(event string, _ bool) bool { _, still := now[event]; return !still })
	maps.DeleteFunc(now, func(event, _ string) bool { return seen[event] })
	for event := range now {
		seen[event] = true
	}
	return now
}

func (s *core) credentialEnded(computerID string) {
	if s.cfg.OnCredentialEnded != nil {
		s.cfg.OnCredentialEnded(computerID)
	}
}

func credentialUnknown() error {
	return refuse(controlapi.CodeUnauthorized, "This computer is not connected to an account any more. Connect it again.")
}

// Authenticate finds the computer a device credential belongs to, or refuses
// with CodeUnauthorized.
func (s *Agents) Authenticate(ctx context.Context, credential string) (controlapi.Computer, error) {
	if len(credential) != tokenLen {
		return controlapi.Computer{}, credentialUnknown()
	}
	hash := hashOf(purposeCredential, credential)
	return s.authenticate(credentialTurn(ctx, hash), hash)
}

// AuthenticateFrom is Authenticate for a request that came from client: it also
// refuses with CodeTooMany and RetryAfter when the computer asks too often, or
// when too many credentials from that network were refused. visits is whether a
// visitor had the computer ask, which counts by itself. The only computer of local
// mode is its operator's own and may ask as it likes.
func (s *Agents) AuthenticateFrom(ctx context.Context, credential string, client netip.Addr, visits bool) (computer controlapi.Computer, err error) {
	err = s.paced(ctx, credential, client, visits, func(ctx context.Context, hash string) (err error) {
		computer, err = s.authenticate(ctx, hash)
		return err
	})
	return computer, err
}

// paced has ask look at the credential with this hash, as often as that may be, in the
// computer's turn at the store.
func (s *Agents) paced(ctx context.Context, credential string, client netip.Addr, visits bool, ask func(ctx context.Context, hash string) error) error {
	if len(credential) != tokenLen {
		// It costs the store nothing. Were it counted, any web page could have its
		// visitors' browsers use up what is for their networks: without a credential
		// they may ask across sites.
		return credentialUnknown()
	}
	hash, network := hashOf(purposeCredential, credential), clientKey(client)
	if visits {
		ctx = kv.WithTurn(ctx, "visits with "+hash)
	} else {
		ctx = credentialTurn(ctx, hash)
	}
	if s.cfg.Local() {
		return ask(ctx, hash)
	}
	return s.devices.Ask(ctx, hash, network, visits, func() error { return ask(ctx, hash) })
}

// credentialTurn has what one computer asks of the store wait in one turn.
func credentialTurn(ctx context.Context, hash string) context.Context {
	return kv.WithTries(ctx, "credential "+hash)
}

// authenticate is Authenticate for the credential with this hash.
func (s *Agents) authenticate(ctx context.Context, hash string) (controlapi.Computer, error) {
	rows := kv.Rows{Keys: []string{keyCredential(hash)}}
	if id, known := s.hints.Get(hash); known {
		rows.Keys = append(rows.Keys, keyComputer(id))
	}
	c, err := viewedOf(ctx, s.core, rows, func(tx *txn) (controlapi.Computer, error) {
		c, err := computerByCredential(tx, hash)
		return s.computer(c), err
	})
	s.hints.Learn(hash, c.ID, s.now(), err)
	return c, err
}

// computerByCredential finds the computer of the credential with this hash, or
// refuses with CodeUnauthorized.
func computerByCredential(tx *txn, hash string) (computer, error) {
	id, err := find[string](tx, keyCredential(hash), credentialUnknown())
	if err != nil {
		return computer{}, err
	}
	return find[computer](tx, keyComputer(id), credentialUnknown())
}

// runEndedReader reports device credentials that other nodes ended. It looks when a
// node tells of a change, and whenever the versions are read.
func (s *Agents) runEndedReader(ctx context.Context) error {
	seen := map[string]bool{}
	for {
		if err := s.tellEnded(ctx, seen); err != nil && ctx.Err() == nil {
			s.log.Warn("reading the credentials that ended failed", "err", err)
			broadcast.Raise(s.endedWake) // again
		}
		select { // however much is told, it looks a few times a second
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(readEndedEvery):
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.endedWake:
		}
	}
}

// PutApps replaces what a computer reports, all of it or nothing, and tells its agent that
// it has it. What is reported again changes nothing.
func (s *Agents) PutApps(ctx context.Context, computerID string, reported controlapi.Apps) error {
	if err := checkApps(reported.Apps); err != nil {
		return err
	}
	return s.update(ctx, func(tx *txn) error {
		// Together, because all computers may report at once after an update of theirs.
		tx.getAll(keyComputer(computerID), keyComputerApps(computerID), keyComputerKnocks(computerID), keyChange(computerID))
		if _, found := get[computer](tx, keyComputer(computerID)); found { // else it was removed meanwhile
			tx.takeKnocks(computerID, reported.Knocks)
			tx.replaceApps(computerID, reported.Apps)
		}
		return nil
	})
}

// checkApps refuses a list of apps that cannot be published.
func checkApps(apps []controlapi.App) error {
	if len(apps) > MaxApps {
		return refuse(controlapi.CodeInvalid, "A computer can have at most 500 approved apps.")
	}
	ids, names := make(map[string]bool, len(apps)), make(map[string]bool, len(apps))
	for _, a := range apps {
		if !appIDPattern.MatchString(a.ID) || !controlapi.ValidLabel(a.Name) || controlapi.Reserved(a.Name) || !validText(a.Label, maxLabel) {
			return refuse(controlapi.CodeInvalid, "The list of apps holds one that cannot be published: names are of 1 to 63 lower-case letters, digits and hyphens, labels of 1 to 100 visible characters on one line.")
		}
		if ids[a.ID] || names[a.Name] {
			return refuse(controlapi.CodeInvalid, "The list of apps holds the same app twice.")
		}
		ids[a.ID], names[a.Name] = true, true
	}
	return nil
}

// replaceApps has a computer have these apps. Those that are no longer among them take
// their grants along, so that a name approved later starts with nobody (P7).
func (t *txn) replaceApps(computerID string, apps []controlapi.App) {
	if apps == nil {
		apps = []controlapi.App{}
	}
	before, _ := get[[]controlapi.App](t, keyComputerApps(computerID))
	if slices.Equal(before, apps) {
		return
	}
	t.put(keyComputerApps(computerID), apps, 0)
	t.touch(computerID)
	gone := map[string]bool{}
	for _, a := range before {
		gone[a.ID] = true
	}
	for _, a := range apps {
		delete(gone, a.ID)
	}
	t.forgetApps(computerID, gone)
}

// validText says whether what somebody called something, an app's label or an app
// password's name, may be shown to people, with as many characters as most. An
// agent checks its labels by rules that are no wider; this is for one that does
// not, because what it reports is read on pages and in mails of this service.
func validText(text string, most int) bool {
	if text != strings.TrimSpace(text) || !utf8.ValidString(text) || utf8.RuneCountInString(text) > most {
		return false
	}
	seen := false
	for _, r := range text {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || steersText(r) {
			return false
		}
		seen = seen || unicode.IsGraphic(r) && !unicode.IsSpace(r)
	}
	return seen
}

// steersText is true for characters that change the direction of the text around
// them, with which a label could pass for another, or rewrite the sentence it
// stands in.
func steersText(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}
