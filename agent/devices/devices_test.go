package devices_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/devices"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

var (
	maya = controlapi.Person{AccountID: "maya", Email: "maya@example.com", Role: controlapi.RoleOwner, Status: controlapi.PersonActive}
	bob  = controlapi.Person{AccountID: "bob", Email: "bob@example.com", Role: controlapi.RoleMember, Status: controlapi.PersonActive, Since: time.Unix(1e9, 0)}
)

// start is a room with a store of its own, in which the clock says now.
func start(t *testing.T, dir string, now *time.Time) (*devices.Devices, *access.Access, func()) {
	t.Helper()
	s := programs.Got(store.Open(dir))(t)
	clock := func() time.Time { return *now }
	a := programs.Got(access.New(access.Config{Store: s, Now: clock}))(t)
	return devices.New(a, s, clock), a, func() { programs.Must(t, s.Close()) }
}

// The file opens with its code alone, old programs' too; the certificate is of the authority
// that the data directory keeps over a restart, and says nothing of its person.
func TestMake(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	d, _, stop := start(t, dir, &now)
	if d.Authority("notes") != nil {
		t.Error("visitors are asked where there is no device")
	}
	codes := map[string]bool{}
	for _, old := range []bool{false, true} {
		made := programs.Got(d.Make(maya, devices.Wanted{Name: " phone ", Apps: []string{"notes"}, Old: old}))(t)
		if _, _, err := pkcs12.Decode(made.File, "x"); err == nil {
			t.Error("any code opens the file")
		}
		_, leaf, chain, err := pkcs12.DecodeChain(made.File, made.Code)
		programs.Must(t, err)
		if len(chain) != 0 || leaf.Subject.String() != "CN=phone" || leaf.IsCA || !leaf.NotAfter.Equal(now.Add(devices.Life).UTC().Truncate(time.Second)) || bytes.Contains(leaf.Raw, []byte("maya")) {
			t.Errorf("%v, %v until %v", leaf.Subject, leaf.IsCA, leaf.NotAfter)
		}
		codes[made.Code] = true
	}
	if len(codes) != 2 {
		t.Errorf("codes: %v", codes)
	}
	pool := d.Authority("notes")
	if pool == nil || d.Authority("photos") != nil {
		t.Error("visitors are not asked where there are devices")
	}
	stop()
	again, _, stop := start(t, dir, &now)
	defer stop()
	if p := again.Authority("notes"); p == nil || !p.Equal(pool) {
		t.Error("another authority after a restart")
	}
	now = now.Add(devices.Life + time.Second)
	if again.Authority("notes") != nil {
		t.Error("visitors are asked for what is over")
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d, a, stop := start(t, t.TempDir(), &now)
	defer stop()
	wanted := devices.Wanted{Name: "phone", Apps: []string{"notes"}}
	refused := func(who controlapi.Person, w devices.Wanted, code agentapi.Code) {
		t.Helper()
		if made, err := d.Make(who, w); agentapi.CodeOf(err) != code {
			t.Errorf("%s, %+v: made %q, %v", who.AccountID, w, made.ID, err)
		}
	}
	for _, name := range []string{"", " ", "a\nb", "\u202ephone", strings.Repeat("x", 61)} {
		refused(maya, devices.Wanted{Name: name, Apps: wanted.Apps}, agentapi.CodeInvalid)
	}
	refused(maya, devices.Wanted{Name: "phone"}, agentapi.CodeInvalid)
	unknown := bob
	unknown.Since = time.Time{}
	refused(unknown, wanted, agentapi.CodeConflict)
	for range devices.MostOfMember {
		programs.Got(d.Make(bob, wanted))(t)
	}
	refused(bob, wanted, agentapi.CodeConflict)
	for len(a.Devices()) < devices.Most {
		programs.Got(d.Make(maya, wanted))(t)
	}
	refused(maya, wanted, agentapi.CodeConflict)
	if _, _, err := a.EndDevices(func(row store.Device) bool { return row.AccountID == "bob" }); err != nil {
		t.Error(err)
	}
	programs.Got(d.Make(bob, wanted))(t)
}

// A link gives its file once and in time, and takes no more room than it may.
func TestLinks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d, _, stop := start(t, t.TempDir(), &now)
	defer stop()
	fetched := func(secret string, want bool) {
		t.Helper()
		if file, ok := d.Fetch(secret); ok != want || ok && string(file) != "file" {
			t.Errorf("fetched %q, %v", file, ok)
		}
	}
	secret, ends := d.Link([]byte("file"))
	if len(secret) != 43 || !ends.Equal(now.Add(10*time.Minute)) {
		t.Errorf("%q until %v", secret, ends)
	}
	fetched(secret[1:], false)
	fetched("", false)
	fetched(secret, true)
	fetched(secret, false)
	secret, ends = d.Link([]byte("file"))
	now = ends
	fetched(secret, false)
	open := 0
	var all []string
	for range 1000 {
		secret, _ := d.Link([]byte("file"))
		all = append(all, secret)
	}
	for _, secret := range all {
		if _, ok := d.Fetch(secret); ok {
			open++
		}
	}
	if open > 100 || open < 80 {
		t.Errorf("%d links wait", open)
	}
}
