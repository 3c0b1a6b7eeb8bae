package control

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/internal/words"
)

// Challenges of DNS-01. An agent that has all names of its computer certified at once says
// what the authority will look for, and who it is there. Both are one row of the computer's,
// which whoever answers DNS reads for each question, so all nodes answer alike at once. An
// agent says nothing of other names: which one it is about follows from who asks.
//
// Where the operator's own server answers instead (Config.PublishDNS), it is told.

// Challenges are those of all computers.
type Challenges struct {
	*core
	looks chan struct{} // one of each that is under way
}

// challenge is one value, as stored.
type challenge struct {
	Value string    `json:"value"`
	Until time.Time `json:"until"`
}

// certifying is how a computer is certified, as stored. It holds while the computer has the
// credential that it was said with: whoever connects anew begins anew.
type certifying struct {
	Credential string      `json:"credential"` // hash
	Challenges []challenge `json:"challenges,omitempty"`
	Authority  string      `json:"authority,omitempty"`
	Account    string      `json:"account,omitempty"`
	Untold     bool        `json:"untold,omitempty"` // the operator's server may not have heard of Challenges
	Due        time.Time   `json:"due,omitzero"`     // where its index has it; zero for nowhere
}

const (
	// challengeLives is more than an order takes.
	challengeLives = 10 * time.Minute
	// challengesEvery is how often it is asked which are over, and challengeAgain when one is
	// tried again that could not be taken away.
	challengesEvery = time.Minute
	challengeAgain  = 5 * time.Minute
	challengesBatch = 256
	checkLives      = 2 * time.Minute
	// mostChallengeLooks are under way at once, and each ends within challengeWithin.
	mostChallengeLooks = 64
	challengeWithin    = 2 * time.Second

	maxAuthority = 100 // bytes; a record CAA has room for 255
	maxAccount   = 200
)

var (
	challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	accountForm   = regexp.MustCompile(`^https://[A-Za-z0-9._~:/?=&%@!$'()*+,-]+$`) // no quotes, blanks or semicolons
)

var errChallengeLooks = errors.New("control: too many challenges are looked up at once")

// checked is what may be stored, or a refusal.
func checkedChallenges(all controlapi.Challenges) error {
	invalid := func(sentence string) error { return refuse(controlapi.CodeInvalid, sentence) }
	if len(all.Values) > controlapi.MaxChallenges {
		return invalid("Those are more challenges than one certificate has.")
	}
	for i, value := range all.Values {
		if !challengeForm.MatchString(value) || slices.Contains(all.Values[:i], value) {
			return invalid("That is no challenge of DNS-01.")
		}
	}
	if all.Authority == "" && all.Account == "" {
		return nil
	}
	if u, err := url.Parse(all.Account); err != nil || u.Host == "" || len(all.Account) > maxAccount || !accountForm.MatchString(all.Account) {
		return invalid("That is no account at an authority.")
	}
	if len(all.Authority) > maxAuthority || !isHostName(all.Authority) || !strings.Contains(all.Authority, ".") {
		return invalid("That is no name of an authority.")
	}
	return nil
}

// valid are the values that are not over.
func (c certifying) valid(now time.Time) (values []string) {
	for _, one := range c.Challenges {
		if now.Before(one.Until) {
			values = append(values, one.Value)
		}
	}
	return values
}

// with is the row with other values, of which those that were there end when they did, and
// whether any is new.
func (c certifying) with(values []string, now time.Time) (_ certifying, added bool) {
	var after []challenge
	for _, value := range values {
		one := challenge{value, now.Add(challengeLives)}
		if i := slices.IndexFunc(c.Challenges, func(o challenge) bool { return o.Value == value && now.Before(o.Until) }); i >= 0 {
			one = c.Challenges[i]
		} else {
			added = true
		}
		after = append(after, one)
	}
	c.Challenges = after
	return c, added
}

// Put carries out PUT PathChallenges.
func (s *Challenges) Put(ctx context.Context, computerID string, asked controlapi.Challenges) error {
	if !s.cfg.Challenges {
		return refuse(controlapi.CodeForbidden, "This server publishes no challenges.")
	}
	if err := checkedChallenges(asked); err != nil {
		return err
	}
	var changed bool
	name, err := updated(ctx, s.core, func(tx *txn) (string, error) {
		c, err := find[computer](tx, keyComputer(computerID), credentialUnknown())
		if err != nil {
			return "", err
		}
		row := certifyingOf(tx, c)
		before := row.valid(tx.now)
		again := row.Untold && len(asked.Values) > 0
		row, added := row.with(asked.Values, tx.now)
		if added || again { // taking away is not bounded
			if err := tx.spend(budgetChallenges.of(computerID)); err != nil {
				return "", err
			}
		}
		changed = !slices.Equal(before, asked.Values) || again
		row.Untold = changed && s.cfg.PublishDNS != nil
		row.Authority, row.Account = asked.Authority, asked.Account
		tx.putCertifying(c, row, added)
		return c.Name, nil
	})
	if err != nil || !changed {
		return err
	}
	err = s.publish(ctx, name, asked.Values)
	switch {
	case err == nil:
		if err := s.told(ctx, computerID, asked.Values); err != nil { // it is told again, then
			s.log.Warn("that a challenge is in the DNS could not be kept", "err", err)
		}
		return nil
	case len(asked.Values) == 0:
		s.log.Warn("a challenge could not be taken out of the DNS; it is tried again", "err", err)
		return nil
	}
	return err
}

// told notes that the operator's server has heard of values, unless there are others meanwhile.
func (s *Challenges) told(ctx context.Context, computerID string, values []string) error {
	if s.cfg.PublishDNS == nil {
		return nil
	}
	return s.update(ctx, func(tx *txn) error {
		row, found := get[certifying](tx, keyCertifying(computerID))
		if found && row.Untold && slices.Equal(row.valid(tx.now), values) {
			row.Untold = false
			tx.put(keyCertifying(computerID), row, 0)
		}
		return nil
	})
}

// certifyingOf is the row of a computer, or a new one.
func certifyingOf(tx *txn, c computer) certifying {
	row, _ := get[certifying](tx, keyCertifying(c.ID))
	if row.Credential != c.CredentialHash {
		row = certifying{Credential: c.CredentialHash, Due: row.Due}
	}
	return row
}

// putCertifying writes a row; where it has new values it is looked at when these are over.
func (t *txn) putCertifying(c computer, row certifying, added bool) {
	if added {
		t.moveDue(c, &row, t.now.Add(challengeLives))
	}
	t.put(keyCertifying(c.ID), row, 0)
}

// moveDue has a row looked at then; zero for never.
func (t *txn) moveDue(c computer, row *certifying, due time.Time) {
	if !row.Due.IsZero() {
		t.delete(keyChallengeDue(row.Due, c.ID))
	}
	if row.Due = due; !due.IsZero() {
		t.put(keyChallengeDue(due, c.ID), c.Name, 0)
	}
}

// publish tells the operator's server, where it answers.
func (s *Challenges) publish(ctx context.Context, short string, values []string) error {
	if s.cfg.PublishDNS == nil {
		return nil
	}
	err := s.cfg.PublishDNS(ctx, controlapi.ChallengePrefix+short+"."+s.cfg.Domain, values)
	if err == nil || ctx.Err() != nil {
		return err
	}
	s.log.Warn("the DNS server did not take a challenge", "err", err)
	return controlapi.Refuse(controlapi.CodeUnavailable, words.Of("The server's DNS did not take the record that the certificate needs. Ask whoever runs it."))
}

// Certifying is what the DNS says of a computer.
type Certifying struct {
	Challenges []string
	CAA        string // the value of a property "issue" (RFC 8659); empty for none
}

// CheckName stands for a computer where an operator tries whether challenges are seen: no
// computer can have it.
const CheckName = "_check"

// Of is what the DNS says of a computer now, nothing where there is no such computer.
func (s *Challenges) Of(ctx context.Context, short string) (Certifying, error) {
	select {
	case s.looks <- struct{}{}:
		defer func() { <-s.looks }()
	default:
		return Certifying{}, errChallengeLooks
	}
	ctx, cancel := context.WithTimeout(kv.WithTurn(ctx, "challenges"), challengeWithin)
	defer cancel()
	if short == CheckName {
		return viewedOf(ctx, s.core, kv.Rows{Keys: []string{keyChallengeCheck}}, func(tx *txn) (Certifying, error) {
			row, _ := get[challenge](tx, keyChallengeCheck)
			return Certifying{Challenges: certifying{Challenges: []challenge{row}}.valid(tx.now)}, nil
		})
	}
	return viewedOf(ctx, s.core, kv.Rows{Keys: []string{keyComputerName(short)}}, func(tx *txn) (Certifying, error) {
		id, found := get[string](tx, keyComputerName(short))
		if !found {
			return Certifying{}, nil
		}
		tx.getAll(keyComputer(id), keyCertifying(id))
		c, _ := get[computer](tx, keyComputer(id))
		row, found := get[certifying](tx, keyCertifying(id))
		if !found || c.CredentialHash == "" || row.Credential != c.CredentialHash {
			return Certifying{}, nil
		}
		return Certifying{Challenges: row.valid(tx.now), CAA: row.caa()}, nil
	})
}

// caa lets the computer's own account have certificates in the ways that agents of any version
// use: one that goes back to an earlier version, or hears a node that publishes no challenges,
// says so to nobody here, and is to have certificates all the same.
func (c certifying) caa() string {
	if c.Authority == "" {
		return ""
	}
	return c.Authority + "; accounturi=" + c.Account + "; validationmethods=dns-01,tls-alpn-01"
}

// NewChallenge has the form of one, and is nobody's.
func NewChallenge() string {
	var raw [32]byte
	rand.Read(raw[:])
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// Check has a challenge of nobody's be answered at CheckName for a while.
func (s *Challenges) Check(ctx context.Context) (controlapi.DNSRecord, error) {
	value := NewChallenge()
	err := s.update(ctx, func(tx *txn) error {
		tx.put(keyChallengeCheck, challenge{value, tx.now.Add(checkLives)}, checkLives)
		return nil
	})
	return controlapi.DNSRecord{Type: "TXT", Name: controlapi.ChallengePrefix + CheckName + "." + s.cfg.Domain, Value: value}, err
}

// run takes away what is over, until ctx is done.
func (s *Challenges) run(ctx context.Context) error {
	if !s.cfg.Challenges {
		return nil
	}
	return repeat(ctx, challengesEvery, func(ctx context.Context) {
		if err := s.endDue(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("challenges whose time is over could not be taken away; it is tried again", "err", err)
		}
	})
}

// endDue takes away whatever is over. Several nodes may do so at once.
func (s *Challenges) endDue(ctx context.Context) error {
	due, err := viewedOf(ctx, s.core, kv.Rows{First: []string{keyChallengesDue}}, func(tx *txn) ([]kv.Item, error) {
		return tx.scan(keyChallengesDue, "", 1), nil
	})
	if err != nil || len(due) == 0 || !s.isDue(due[0].Key) {
		return err
	}
	due, err = viewed(ctx, s.core, func(tx *txn) ([]kv.Item, error) { return tx.scan(keyChallengesDue, "", challengesBatch), nil })
	if err != nil {
		return err
	}
	for _, it := range due {
		if !s.isDue(it.Key) {
			break
		}
		if err := s.end(ctx, it.Key); err != nil {
			return err
		}
	}
	return nil
}

func (s *Challenges) isDue(key string) bool {
	text, _, _ := strings.Cut(key[len(keyChallengesDue):], "/")
	due, err := time.Parse(endTime, text)
	return err != nil || !due.After(s.now())
}

// end has what is over of one computer be gone from the operator's server, and then from here.
// What came meanwhile stays.
func (s *Challenges) end(ctx context.Context, key string) error {
	_, computerID, _ := strings.Cut(key[len(keyChallengesDue):], "/")
	for range 3 {
		short, left, err := s.left(ctx, key, computerID)
		if err != nil {
			return err
		}
		again := time.Time{}
		if short != "" && s.publish(ctx, short, left) != nil {
			again = s.now().Add(challengeAgain)
		}
		same, err := updated(ctx, s.core, func(tx *txn) (bool, error) {
			c, _ := tx.certified(key, computerID)
			row := certifyingOf(tx, c)
			same := slices.Equal(row.valid(tx.now), left)
			if c.ID != computerID {
				if same {
					tx.delete(key)
				}
				if same && !again.IsZero() {
					tx.put(keyChallengeDue(again, computerID), short, 0)
				}
				return same, nil
			}
			tx.delete(key)
			row, _ = row.with(row.valid(tx.now), tx.now)
			due := again
			for _, one := range row.Challenges {
				if due.IsZero() || one.Until.Before(due) {
					due = one.Until
				}
			}
			tx.moveDue(c, &row, due)
			tx.put(keyCertifying(computerID), row, 0)
			return same, nil
		})
		if err != nil || same {
			return err
		}
	}
	return nil
}

// left is the short name that a line of the index is about, empty where nothing says it any
// more, and the values of that name that are not over.
func (s *Challenges) left(ctx context.Context, key, computerID string) (short string, values []string, err error) {
	short, err = viewed(ctx, s.core, func(tx *txn) (string, error) {
		c, short := tx.certified(key, computerID)
		values = certifyingOf(tx, c).valid(tx.now)
		return short, nil
	})
	return short, values, err
}

// certified is the computer that a line of the index is about, with its short name. Where it
// is gone it is whichever has the name now, if any.
func (t *txn) certified(key, computerID string) (c computer, short string) {
	if c, found := get[computer](t, keyComputer(computerID)); found {
		return c, c.Name
	}
	short, _ = get[string](t, key)
	c, _ = computerByName(t, short)
	return c, short
}
