package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/boltfile"
)

// maxNotices is how many notices are kept; the oldest go first, but for those
// that wait for the owner.
const maxNotices = 200

var (
	appsBucket    = []byte("apps")    // name → App
	denialsBucket = []byte("denials") // name → Denial
	noticesBucket = []byte("notices") // id, 8 bytes big endian → agentapi.Notice
	formersBucket = []byte("formers") // name → []string
)

// App is a published app or a request for one. There is no record for an app
// that was removed, denied or withdrawn.
type App struct {
	// ID is random and made at the first approval; empty before it. Access
	// is given to it, so that a name or label taken later by another app opens
	// nothing.
	ID    string `json:"id,omitempty"`
	Name  string `json:"name"`
	Label string `json:"label"`
	// Written is Label as the app wrote it when it published; empty in one that has not
	// published since this is kept.
	Written   string `json:"written,omitempty"`
	LocalPort int    `json:"localPort"`
	// Address of this computer that the app listens on: empty for 127.0.0.1, or ::1.
	Address string          `json:"address,omitempty"`
	Status  agentapi.Status `json:"status"`
	// Listener is who listened on LocalPort when that was last looked at.
	Listener agentapi.Listener `json:"listener"`
	// Asker is the system's id of the user whose program asked last; empty for
	// the agent's own user.
	Asker string `json:"asker,omitempty"`
	// Asks is what sent the request, of one that waits; nil where nothing is known of it.
	Asks *agentapi.Asks `json:"asks,omitempty"`
	// ApprovedFor is the user whose programs may listen for the app, set by an
	// approval. It is nil in one that is older than this field.
	ApprovedFor *ListenerUser `json:"approvedFor,omitempty"`
	// TCP says that programs reach it by TCP, and nobody by HTTP. It never changes.
	TCP bool `json:"tcp,omitempty"`
	// Container is the one that asked by its labels, and that an approval is for; nil for
	// a program.
	Container *agentapi.Container `json:"container,omitempty"`
	// Quiet marks a pending request that must not raise a notification.
	Quiet       bool       `json:"quiet,omitempty"`
	RequestedAt time.Time  `json:"requestedAt"`
	ApprovedAt  *time.Time `json:"approvedAt,omitempty"`
	// Paused keeps everybody out of the app until the owner resumes it.
	Paused bool `json:"paused,omitempty"`
	// Options are the owner's choices for the app.
	Options agentapi.AppOptions `json:"options,omitzero"`
	// Key is the key that the app showed over HTTPS since Options.Pin was set: see
	// upstream.KeyOf. Empty while none was seen.
	Key string `json:"key,omitempty"`
	// Approved is what the owner approved, of an app that has to ask again
	// because it changed; nil otherwise.
	Approved *Approved `json:"approved,omitempty"`
	// Shared is of an app that the owner shares from a terminal; nil otherwise.
	Shared *Shared `json:"shared,omitempty"`
	// Ends is when the approval ends; nil for never.
	Ends *Ends `json:"ends,omitempty"`
}

// Ends is when an approval ends: at a time of this computer's clock, or when as much has
// passed by Count, whichever comes first.
type Ends struct {
	At     time.Time     `json:"at"`     // UTC
	Passed time.Duration `json:"passed"` // Count.Passed then
}

// keptApp is an App as it is kept. One whose approval ends, or is for a container, is kept as
// a request, with the app in Lasting: a version that knows neither asks the owner. One that
// is reached by TCP is kept so in ByTCP: a version that knows only HTTP does not send it any.
type keptApp struct {
	App
	Lasting *App `json:"lasting,omitempty"`
	ByTCP   *App `json:"byTcp,omitempty"`
}

func kept(app *App) *keptApp {
	switch {
	case app == nil:
		return nil
	case app.Ends == nil && !app.TCP && app.Container == nil && (app.Approved == nil || app.Approved.Container == nil):
		return &keptApp{App: *app}
	}
	request := App{
		Name: app.Name, Label: app.Label, LocalPort: app.LocalPort, Address: app.Address, Status: agentapi.StatusPending,
		Listener: app.Listener, Asker: app.Asker, RequestedAt: app.RequestedAt,
	}
	if app.TCP {
		return &keptApp{App: request, ByTCP: app}
	}
	return &keptApp{App: request, Lasting: app}
}

// Shared is since when an app is shared, by which process, and what it was before.
type Shared struct {
	At     time.Time `json:"at"`
	PID    int       `json:"pid,omitempty"`
	Before *Before   `json:"before,omitempty"` // nil: there was no app of the name
}

// Before is what sharing an app changes of it.
type Before struct {
	Approved    `json:"approved"`
	ApprovedFor *ListenerUser `json:"approvedFor,omitempty"`
}

// Approved is the part of an App that an approval was given for.
type Approved struct {
	Label     string            `json:"label"`
	LocalPort int               `json:"localPort"`
	Listener  agentapi.Listener `json:"listener"`
	Asker     string            `json:"asker,omitempty"`
	Address   string            `json:"address,omitempty"`
	Key       string            `json:"key,omitempty"`
	// Container is App.Container.
	Container *agentapi.Container `json:"container,omitempty"`
	// OtherKey is true when the app asks again because it shows another key than Key.
	OtherKey bool `json:"otherKey,omitempty"`
	// OtherUser is true when the app asks again because a program of another
	// user than App.ApprovedFor listens.
	OtherUser bool `json:"otherUser,omitempty"`
}

// ListenerUser is whose program listens on a port. It is zero for one that was
// looked for and could not be seen: a container's, for example.
type ListenerUser struct {
	ID   string `json:"id"` // the system's own: a uid, or a SID on Windows
	Name string `json:"name,omitempty"`
}

// Denial remembers that the owner said no to a name.
type Denial struct {
	Count int       `json:"count"`
	At    time.Time `json:"at"` // the last one
	// Muted keeps requests for the name quiet until the owner unmutes it.
	Muted bool `json:"muted,omitempty"`
}

// Apps is everything the buckets of this file hold.
type Apps struct {
	Apps    map[string]App
	Denials map[string]Denial
	Notices []agentapi.Notice // oldest first
	// Formers are the ids of the apps that had a name before, oldest first. What
	// was revoked before they were kept is not among them.
	Formers map[string][]string
}

// AppChange is what one event leaves behind for one name.
type AppChange struct {
	Name    string
	App     *App              // nil: no record
	Denial  *Denial           // nil: nothing remembered
	Notices []agentapi.Notice // to add; their IDs are given by the store
	Former  string            // id of the app that has the name no more; empty for none
}

// Apps reads all of it in one transaction.
func (s *Store) Apps() (Apps, error) {
	rows := map[string]keptApp{}
	all := Apps{Apps: map[string]App{}, Denials: map[string]Denial{}, Formers: map[string][]string{}}
	err := s.view(func(tx *boltfile.Tx) (err error) {
		all.Notices, err = readNotices(tx)
		return errors.Join(err,
			getNamed(tx.Bucket(appsBucket), rows),
			getNamed(tx.Bucket(denialsBucket), all.Denials),
			getNamed(tx.Bucket(formersBucket), all.Formers))
	})
	if err != nil {
		return Apps{}, fmt.Errorf("read the published apps: %w", err)
	}
	for name, row := range rows {
		all.Apps[name] = *cmp.Or(row.ByTCP, row.Lasting, &row.App)
	}
	return all, nil
}

// ChangeApp stores the outcome of one event in one transaction and returns the
// notices as they are afterwards, oldest first. A notice takes the place of an
// older one of the same kind about the same app, so that an app that keeps
// changing cannot push the others out.
func (s *Store) ChangeApp(c AppChange) ([]agentapi.Notice, error) {
	return s.changeNotices("store the app "+c.Name, func(tx *boltfile.Tx) error {
		err := errors.Join(
			putOrDelete(tx.Bucket(appsBucket), c.Name, kept(c.App)),
			putOrDelete(tx.Bucket(denialsBucket), c.Name, c.Denial),
			addFormer(tx.Bucket(formersBucket), c.Name, c.Former))
		for _, n := range c.Notices {
			err = errors.Join(err, addNotice(tx, n))
		}
		return err
	})
}

// maxFormers is how many former apps of a name are remembered; the oldest go
// first.
const maxFormers = 32

func addFormer(b *boltfile.Bucket, name, id string) error {
	if id == "" {
		return nil
	}
	var ids []string
	if _, err := get(b, []byte(name), "the record of the former apps of "+name, &ids); err != nil {
		return err
	}
	return put(b, []byte(name), WithFormer(ids, id))
}

// WithFormer is a copy of ids with one more, as the store keeps them.
func WithFormer(ids []string, id string) []string {
	ids = append(slices.Clone(ids), id)
	return ids[max(0, len(ids)-maxFormers):]
}

func addNotice(tx *boltfile.Tx, n agentapi.Notice) error {
	// The sequence is stored with the bucket: IDs never repeat, even when the
	// notices before are gone.
	id, err := tx.Bucket(noticesBucket).NextSequence()
	if err != nil {
		return err
	}
	n.ID = id
	kept, err := readNotices(tx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(kept, func(old agentapi.Notice) bool { return old.Kind == n.Kind && old.App == n.App })
	switch {
	case i >= 0:
		err = dropNotice(tx, kept[i].ID)
	case len(kept) >= maxNotices:
		_, err = dropOldest(tx, kept, seenNotices(tx))
	}
	if err != nil {
		return err
	}
	return putNotice(tx, n)
}
