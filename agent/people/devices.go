package people

import (
	"context"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/devices"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
)

// Devices, whose certificates open apps in one person's name. They are made and kept on this
// computer; the control plane knows of none.

// PathDevice is where the file behind a link is fetched, at the root host; the secret is the
// fragment, which no server is sent.
const PathDevice = "/.porchlight/device"

// MakeDevice carries out POST /owner/devices: one for the owner.
func (p *People) MakeDevice(_ context.Context, req agentapi.DeviceRequest) (agentapi.MadeDevice, error) {
	owner, known := p.cfg.Access.Owner()
	if !known {
		if err := p.connected(); err != nil {
			return agentapi.MadeDevice{}, err
		}
		return agentapi.MadeDevice{}, unreachable()
	}
	var ids []string
	for _, called := range req.Apps {
		app, ok := p.appCalled(called)
		if !ok {
			return agentapi.MadeDevice{}, agentapi.NoAppCalled(called)
		}
		if app.TCP {
			return agentapi.MadeDevice{}, agentapi.Errorf(agentapi.CodeInvalid, "%q is reached over TCP, where no certificate is taken.", app.Label)
		}
		if !slices.Contains(ids, app.ID) {
			ids = append(ids, app.ID)
		}
	}
	made, err := p.DeviceOf(owner, devices.Wanted{Name: req.Name, Apps: ids, Old: req.Old})
	if err != nil {
		return agentapi.MadeDevice{}, err
	}
	out := agentapi.MadeDevice{ID: made.ID, Code: made.Code, File: made.File, Ends: made.Ends}
	if req.Link {
		out.File, out.URL = nil, p.DeviceLink(made.File)
	}
	return out, nil
}

// DeviceOf makes a certificate for somebody who may have it, and writes it down.
func (p *People) DeviceOf(who controlapi.Person, w devices.Wanted) (devices.Made, error) {
	if err := p.forgetDevices(); err != nil {
		return devices.Made{}, err
	}
	made, err := p.cfg.Devices.Make(who, w)
	if err != nil {
		return made, err
	}
	p.deviceChanged(agentapi.ActivityDeviceMade, who.Role == controlapi.RoleOwner, store.Device{AccountID: who.AccountID, Name: w.Name, Apps: w.Apps}, 0)
	return made, nil
}

// forgetDevices ends those whose apps are all gone for good: they are not listed, and would
// take the room of others.
func (p *People) forgetDevices() error {
	here := map[string]bool{}
	for _, app := range p.cfg.Apps.Approved() {
		here[app.ID] = true
	}
	_, _, err := p.cfg.Access.EndDevices(func(d store.Device) bool {
		return !slices.ContainsFunc(d.Apps, func(id string) bool { return here[id] })
	})
	return err
}

// DeviceLink is an address at which a file can be fetched once.
func (p *People) DeviceLink(file []byte) string {
	secret, _ := p.cfg.Devices.Link(file)
	return "https://" + p.cfg.Access.Snapshot().Computer.Host + PathDevice + "#" + secret
}

// FetchDevice takes the file of a link, once.
func (p *People) FetchDevice(secret string) (file []byte, ok bool) {
	return p.cfg.Devices.Fetch(secret)
}

// ListDevices carries out GET /owner/devices: everybody's, newest first.
func (p *People) ListDevices(context.Context) ([]agentapi.Device, error) {
	apps, away := p.cfg.Apps.Approved(), p.takenAway(unconfirmed)
	out := []agentapi.Device{}
	for _, d := range p.cfg.Access.Devices() {
		who, _ := p.inSnapshot(d.AccountID)
		shown := agentapi.Device{
			ID: d.ID, AccountID: d.AccountID, Email: who.Email, Name: d.Name, Apps: []string{}, AppNames: []string{}, CreatedAt: d.CreatedAt, Ends: d.NotAfter,
		}
		for _, id := range d.Apps {
			app, here := find(apps, func(app engine.App) bool { return app.ID == id })
			if here && !away[store.DenyRecord{AccountID: d.AccountID}] && !away[store.DenyRecord{AccountID: d.AccountID, AppID: id}] {
				shown.Apps, shown.AppNames = append(shown.Apps, app.Label), append(shown.AppNames, app.Name)
			}
		}
		if len(shown.Apps) > 0 { // else it opens nothing any more
			out = append(out, shown)
		}
	}
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b agentapi.Device) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return out, nil
}

// RevokeDevice carries out POST /owner/devices/{id}/revoke, whosever it is.
func (p *People) RevokeDevice(_ context.Context, id string) (agentapi.Closed, error) {
	return p.EndDevice(id, "")
}

// EndDevice ends a certificate, which has to be of an account, unless that is empty. What is
// open by it is closed.
func (p *People) EndDevice(id, accountID string) (agentapi.Closed, error) {
	began := p.cfg.Now()
	ended, closed, err := p.cfg.Access.EndDevices(func(d store.Device) bool {
		return d.ID == id && (accountID == "" || d.AccountID == accountID)
	})
	took := p.cfg.Now().Sub(began)
	if len(ended) == 0 {
		return agentapi.Closed{}, agentapi.Errorf(agentapi.CodeNotFound, "There is no such device. It may have been revoked already.")
	}
	p.deviceChanged(agentapi.ActivityDeviceRevoked, accountID == "", ended[0], closed)
	if err != nil {
		p.cfg.Log.Error("a device's certificate was revoked, but that could not be written down", "err", err)
		return agentapi.Closed{}, errUnwritten
	}
	return agentapi.Closed{OK: true, Closed: closed, Milliseconds: int(took / time.Millisecond)}, nil
}

// deviceChanged writes down what the owner or a member did with a certificate.
func (p *People) deviceChanged(kind string, byOwner bool, d store.Device, closed int) {
	who, _ := p.inSnapshot(d.AccountID)
	line := agentapi.Activity{Kind: kind, Owner: byOwner, What: d.Name, Closed: closed}
	apps := p.namedApps(d.Apps...)
	p.happened(line, who, apps[:min(1, len(apps))]) // one line, whatever it opens
	p.cfg.Activity.NameClients(p.clientNames())
	p.cfg.Changes.Raise()
}
