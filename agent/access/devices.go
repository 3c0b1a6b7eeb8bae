package access

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// devices are the certificates of devices, as indexes that are never changed. One is known
// by the digest of all of it: nothing but what was made here has such a digest, whoever
// signed what, and the handshake shows that its private key is there.
type devices struct {
	all      []store.Device
	byDigest map[[sha256.Size]byte]*store.Device
	byID     map[string]*store.Device
	until    map[string]time.Time // when the last one of an app ends, by its id
}

// devicesOf leaves out what has no digest that a certificate could have.
func devicesOf(all []store.Device) devices {
	d := devices{
		all: all, byDigest: make(map[[sha256.Size]byte]*store.Device, len(all)),
		byID: make(map[string]*store.Device, len(all)), until: map[string]time.Time{},
	}
	for i := range all {
		row := &all[i]
		if len(row.Digest) != sha256.Size || row.ID == "" || row.AccountID == "" {
			continue
		}
		d.byDigest[[sha256.Size]byte(row.Digest)], d.byID[row.ID] = row, row
		for _, app := range row.Apps {
			d.until[app] = later(d.until[app], row.NotAfter)
		}
	}
	return d
}

// stands says whether an identity's certificate is still one of theirs for an app.
func (d *devices) stands(id Identity, appID string, p *person, now time.Time) bool {
	row := d.byID[id.DeviceID]
	return row != nil && row.AccountID == id.AccountID && appID != "" && slices.Contains(row.Apps, appID) &&
		sinceThen(row, p.Person) && now.Before(row.NotAfter)
}

// sinceThen says whether a person was not removed since a certificate of theirs was made.
func sinceThen(row *store.Device, p controlapi.Person) bool {
	return p.Role == controlapi.RoleOwner || !row.Since.IsZero() && row.Since.Equal(p.Since)
}

func (a *Access) loadDevices(st *state) error {
	all, err := a.store.Devices()
	if err != nil {
		return fmt.Errorf("read the certificates of devices: %w", err)
	}
	st.devices = devicesOf(all)
	a.devicesSaved = st.devices
	return nil
}

// Device finds out who a connection comes from by the digest of its certificate. Whether
// that person may open the app is decided afterwards, as for everybody else. ok is false for
// one that is worth nothing there, whatever is wrong: it is as if there were none.
func (a *Access) Device(digest [sha256.Size]byte, appID string) (id Identity, ok bool) {
	st := a.state.Load()
	row := st.devices.byDigest[digest]
	if row == nil {
		return Identity{}, false
	}
	p := st.people[row.AccountID]
	if p == nil {
		return Identity{}, false
	}
	id = Identity{AccountID: p.AccountID, Email: p.Email, Role: p.Role, DeviceID: row.ID}
	return id, st.devices.stands(id, appID, p, a.now()) && !st.denies(id, appID)
}

// HasDevices says whether there is a certificate for an app, whoever's.
func (a *Access) HasDevices(appID string) bool {
	until, has := a.state.Load().devices.until[appID]
	return has && a.now().Before(until)
}

// Devices are all certificates that have not ended. They must not be changed.
func (a *Access) Devices() []store.Device { return unended(a.state.Load().devices.all, a.now()) }

func unended(all []store.Device, now time.Time) []store.Device {
	return slices.DeleteFunc(slices.Clone(all), func(d store.Device) bool { return !now.Before(d.NotAfter) })
}

// AddDevice has a certificate count from now on, unless fits refuses it beside the others.
func (a *Access) AddDevice(d store.Device, fits func(others []store.Device) error) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	others := a.Devices()
	if err := fits(others); err != nil {
		return err
	}
	if err := a.store.SaveDevices(append(others, d)); err != nil {
		return fmt.Errorf("keep the certificate of a device: %w", err)
	}
	a.devicesSaved = devicesOf(append(others, d))
	a.swap(func(next *state) (changed bool) { // one may have been ended while this was at the disk
		next.devices = devicesOf(append(unended(next.devices.all, a.now()), d))
		return true
	})
	return nil
}

// EndDevices ends the certificates for which ends is true, and closes what is open by them:
// first that, whatever is at the disk and however long it takes. An error says that they may
// come back with a restart before the disk takes it.
func (a *Access) EndDevices(ends func(store.Device) bool) (ended []store.Device, closed int, err error) {
	closed = a.swap(func(next *state) (changed bool) {
		var kept []store.Device
		for _, d := range next.devices.all {
			if ends(d) {
				ended = append(ended, d)
			} else {
				kept = append(kept, d)
			}
		}
		next.devices = devicesOf(kept)
		return len(ended) > 0
	})
	if len(ended) > 0 {
		a.writing.Lock()
		defer a.writing.Unlock()
		err = a.saveDevices()
	}
	return ended, closed, err
}

// NarrowDevices has no certificate of a person open an app any more, or anything where appID
// is empty: what is given again later does not bring it back.
func (a *Access) NarrowDevices(accountID, appID string) {
	a.swap(func(next *state) (changed bool) {
		before := next.devices
		next.devices = before.without(func(d store.Device, app string) bool {
			return d.AccountID == accountID && (appID == "" || app == appID)
		})
		return !sameDevices(before, next.devices)
	})
	a.writing.Lock()
	defer a.writing.Unlock()
	a.keepDevices()
}

// without are the devices for fewer apps; those for none are gone.
func (d *devices) without(gone func(d store.Device, app string) bool) devices {
	var kept []store.Device
	for _, row := range d.all {
		row.Apps = slices.DeleteFunc(slices.Clone(row.Apps), func(app string) bool { return gone(row, app) })
		if len(row.Apps) > 0 {
			kept = append(kept, row)
		}
	}
	return devicesOf(kept)
}

// keptDevices are those of before that are left. As app passwords do, they end with their
// person's removal, with an app that nobody gives any more, and with one that is given anew
// after its end. now is what the control plane's clock shows at least.
func (st *state) keptDevices(before *state, same bool, now time.Time) devices {
	if !before.received || st.snapshot.Suspended != nil {
		return before.devices
	}
	return before.devices.without(func(d store.Device, app string) bool {
		p := st.people[d.AccountID]
		if !same || p == nil || p.Status == controlapi.PersonRemoved || !sinceThen(&d, p.Person) {
			return true
		}
		was := before.people[d.AccountID]
		if was == nil {
			was = p
		}
		return st.lost(was, p, app, now) || p.opens[app] && was.givenAnew(p, app, now)
	})
}

// lost says whether an app of p's, who was a moment ago, is over for good: what a group opened
// is when it does not any more. What was taken away here ends once that is told, and a share
// that ended by itself may come back.
func (st *state) lost(was, p *person, app string, now time.Time) bool {
	if p.Role == controlapi.RoleOwner || p.opens[app] && was.opens[app] ||
		st.denied[store.DenyRecord{AccountID: p.AccountID, AppID: app}] || st.denied[store.DenyRecord{AccountID: p.AccountID}] {
		return false
	}
	end, byGroup := was.byGroup[app]
	if byGroup && !end.IsZero() && !now.Before(end) {
		return true
	}
	if _, still := p.byGroup[app]; still || p.opens[app] {
		return false
	}
	return byGroup || p.Ended[app].IsZero()
}

// givenAnew says whether an app of p's ended, as was says, and was given again since.
func (was *person) givenAnew(p *person, app string, now time.Time) bool {
	end := was.Ended[app]
	if until := was.Until[app]; end.IsZero() && !now.Before(until) {
		end = until // it was given anew before a snapshot said that it had ended
	}
	return !end.IsZero() && !end.Equal(p.Until[app])
}

func sameDevices(a, b devices) bool {
	return slices.EqualFunc(a.all, b.all, func(x, y store.Device) bool { return x.ID == y.ID && len(x.Apps) == len(y.Apps) })
}

// saveDevices keeps for a restart those that there are. writing is held.
func (a *Access) saveDevices() error {
	now := a.state.Load().devices
	if sameDevices(a.devicesSaved, now) {
		return nil
	}
	if err := a.store.SaveDevices(now.all); err != nil {
		return err
	}
	a.devicesSaved = now
	return nil
}

// keepDevices is saveDevices where what the disk does not take is tried again with the next
// word of the control plane. writing is held.
func (a *Access) keepDevices() {
	if err := a.saveDevices(); err != nil {
		a.log.Error("which certificates of devices have ended could not be kept for a restart yet", "err", err)
	}
}
