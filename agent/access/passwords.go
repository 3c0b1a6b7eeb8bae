package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strings"

	"golang.org/x/net/idna"

	"porchlight/control/controlapi"
)

// passwords are the app passwords of a snapshot, as indexes that are never changed.
// A snapshot has their hashes only.
type passwords struct {
	byHash map[[sha256.Size]byte]*controlapi.AppPassword
	byID   map[string]*controlapi.AppPassword
	apps   map[string]bool // ids of apps that have any
}

// passwordsOf leaves out what has no hash that a password could have.
func passwordsOf(all []controlapi.AppPassword) passwords {
	p := passwords{
		byHash: make(map[[sha256.Size]byte]*controlapi.AppPassword, len(all)),
		byID:   make(map[string]*controlapi.AppPassword, len(all)),
		apps:   map[string]bool{},
	}
	for i := range all {
		row := &all[i]
		hash, err := base64.RawURLEncoding.DecodeString(row.Hash)
		if err != nil || len(hash) != sha256.Size || row.ID == "" || row.AppID == "" {
			continue
		}
		p.byHash[[sha256.Size]byte(hash)] = row
		p.byID[row.ID] = row
		p.apps[row.AppID] = true
	}
	return p
}

// stands says whether an identity's password is still one of theirs for an app.
func (p *passwords) stands(id Identity, appID string) bool {
	row := p.byID[id.PasswordID]
	return row != nil && row.AppID == appID && row.AccountID == id.AccountID
}

// HasPasswords says whether there is an app password for an app, whoever's.
func (a *Access) HasPasswords(appID string) bool { return a.state.Load().passwords.apps[appID] }

var (
	errTwoPasswords  = errors.New("more than one app password")
	errWrongPassword = errors.New("the app password is not one of that person's for this app")
)

// Password finds out who a request comes from by the app password in its
// Authorization values. Whether that person may open the app is decided afterwards, as
// for everybody else. present is false when they carry none of ours: an app's own user
// names and passwords are the app's business. With an error one is there and worth
// nothing; it is the same error whatever was wrong.
//
// A password is looked up by its digest, which leaves nothing for a clock to measure,
// and takes a microsecond: nothing of it is remembered.
func (a *Access) Password(authorization []string, appID string) (id Identity, present bool, err error) {
	for _, value := range authorization {
		var room [2 * usualBasic]byte // of most values, so that they are not copied to the heap
		basic, ours := ownPassword(value, room[:0:usualBasic], room[usualBasic:usualBasic])
		switch {
		case !ours:
		case present:
			return Identity{}, true, errTwoPasswords
		default:
			present = true
			id, err = a.byPassword(basic, appID)
		}
	}
	return id, present, err
}

// byPassword returns whom a user name and password name at an app.
func (a *Access) byPassword(basic basic, appID string) (Identity, error) {
	id, err := a.Key(basic.password, appID)
	if err != nil || !basic.exact || !sameAddress(id.Email, basic.user) {
		return Identity{}, errWrongPassword
	}
	id.ByKey = false
	return id, nil
}

// Key is Password for an app password that stands alone, without a user name.
func (a *Access) Key(password []byte, appID string) (Identity, error) {
	st := a.state.Load()
	row := st.passwords.byHash[sha256.Sum256(password)]
	if row == nil {
		return Identity{}, errWrongPassword
	}
	p := st.people[row.AccountID]
	if p == nil || row.AppID != appID {
		return Identity{}, errWrongPassword
	}
	id := Identity{AccountID: p.AccountID, Email: p.Email, Role: p.Role, PasswordID: row.ID, ByKey: true}
	if st.denies(id, appID) { // it ended with what was taken away, which a snapshot will show
		return Identity{}, errWrongPassword
	}
	return id, nil
}

// AwaitPassword waits until the snapshot has an app password that was just made, or
// until ctx ends.
func (a *Access) AwaitPassword(ctx context.Context, id string) {
	a.await(ctx, func(st *state) bool { return st.passwords.byID[id] != nil })
}

// basic is a user name with a password (RFC 7617), where it was decoded.
type basic struct {
	user, password []byte
	exact          bool // written as the RFC has it
}

const usualBasic = 512 // bytes of an Authorization value

// ownPassword takes a Basic Authorization value apart when it carries an app password,
// right or wrong: such a value is a secret between visitor and agent. It is also one
// when the password was put where the user name belongs. What only a careless reader
// would decode counts too, because the app may be one. It copies to encoded and decodes
// to raw, which are empty.
func ownPassword(authorization string, encoded, raw []byte) (basic basic, ours bool) {
	authorization = strings.TrimSpace(authorization)
	end := strings.IndexAny(authorization, " \t")
	if end < 0 || !strings.EqualFold(authorization[:end], "basic") {
		return basic, false
	}
	encoded = append(encoded, strings.TrimLeft(authorization[end:], " \t")...)
	raw, err := strictBasic.AppendDecode(raw, encoded)
	if basic.exact = err == nil; !basic.exact {
		raw = decodeLoosely(encoded)
	}
	basic.user, basic.password, _ = bytes.Cut(raw, []byte(":"))
	ours = bytes.HasPrefix(basic.password, []byte(controlapi.PasswordPrefix)) || bytes.HasPrefix(basic.user, []byte(controlapi.PasswordPrefix))
	return basic, ours
}

// HoldsPassword says whether an app password, right or wrong, stands anywhere in an
// Authorization value: after any scheme, between other words, as it is or in base64 of
// either alphabet, at whatever byte of it. Such a value is never an app's.
func HoldsPassword(authorization string) bool {
	if _, ours := ownPassword(authorization, nil, nil); ours {
		return true
	}
	var plain, decoded uint64 // the last eight bytes, and those that base64 stands for
	for i := range len(authorization) {
		c := authorization[i]
		plain = plain<<8 | uint64(c)
		if beginsPassword(plain) && base64Bits[byte(plain>>40)] < 0 { // no piece of a token that an app made
			return true
		}
		if base64Bits[c] < 0 {
			continue
		}
		decoded = decoded<<6 | uint64(base64Bits[c])
		if beginsPassword(decoded) || beginsPassword(decoded>>2) || beginsPassword(decoded>>4) {
			return true
		}
	}
	return false
}

// beginsPassword says whether the last five bytes are PasswordPrefix and a character
// that may follow it. An app's own token of a thousand bytes has that, decoded, by
// chance once in ten million.
func beginsPassword(last uint64) bool {
	const prefix = 'p'<<24 | 'l'<<16 | 'p'<<8 | '_' // controlapi.PasswordPrefix
	after := byte(last)
	return uint32(last>>8) == prefix && (after >= 'a' && after <= 'z' || after >= '2' && after <= '7')
}

const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// base64Bits are the six bits of a byte in base64 of either alphabet, or -1.
var base64Bits = func() (t [256]int8) {
	for c := range t {
		t[c] = -1
	}
	for i, c := range []byte(base64Letters) {
		t[c] = int8(i)
	}
	t['-'], t['_'] = t['+'], t['/']
	return t
}()

// decodeLoosely reads base64 of either alphabet, with or without its padding, and
// whatever else is in between.
func decodeLoosely(encoded []byte) []byte {
	kept := make([]byte, 0, len(encoded))
	for _, c := range encoded {
		if bits := base64Bits[c]; bits >= 0 {
			kept = append(kept, base64Letters[bits])
		}
	}
	if len(kept)%4 == 1 {
		kept = kept[:len(kept)-1] // six bits are no byte
	}
	raw := make([]byte, base64.RawStdEncoding.DecodedLen(len(kept)))
	n, _ := base64.RawStdEncoding.Decode(raw, kept)
	return raw[:n]
}

// sameAddress compares a person's mail address, as the control plane keeps it, with
// one that they typed: in whatever case, spaces around it aside, and with the domain
// in either of its forms.
func sameAddress(kept string, as []byte) bool {
	var room [maxAddress]byte
	if bytes.IndexByte(as, '@') > 0 && subtle.ConstantTimeCompare(append(room[:0], kept...), as) == 1 {
		return true // nearly always
	}
	typed := strings.TrimSpace(string(as))
	at := strings.LastIndexByte(typed, '@')
	if at < 0 || len(typed) > maxAddress {
		return false
	}
	domain, err := idna.Lookup.ToASCII(typed[at+1:])
	if err != nil {
		return false
	}
	typed = lower(typed[:at]) + "@" + domain
	return subtle.ConstantTimeCompare([]byte(kept), []byte(typed)) == 1
}

const maxAddress = 4 * 254 // bytes; an address has 254, in its ASCII form

// lower is ASCII's alone: an address has no other letters before the @.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
