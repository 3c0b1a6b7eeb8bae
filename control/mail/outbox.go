package mail

import (
	"context"
	"fmt"
	"time"

	"porchlight/control/kv"
	"porchlight/internal/broadcast"
)

// Bounds of an Outbox.
const (
	OutboxSize = 200                // mails
	outboxLife = 7 * 24 * time.Hour // of each
)

var entries = newest[Entry]{prefix: "outbox/", size: OutboxSize, life: outboxLife}

// Entry is a kept mail.
type Entry struct {
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
	Links   []string  `json:"links"`
	At      time.Time `json:"at"`
}

// Outbox is a Queue that delivers nothing: the owner reads the mails themselves.
// It keeps the newest OutboxSize of them, each for outboxLife.
type Outbox struct {
	store kv.Store
	now   func() time.Time
	look  chan struct{} // has room for one
}

// NewOutbox keeps mails in store, where it uses the keys under "outbox/".
func NewOutbox(store kv.Store, now func() time.Time) *Outbox {
	if now == nil {
		now = time.Now
	}
	return &Outbox{store: store, now: now, look: make(chan struct{}, 1)}
}

// Put keeps a mail and drops the oldest one when there are too many.
func (o *Outbox) Put(tx kv.Tx, id string, m Message) error {
	at := o.now().UTC()
	e := Entry{To: m.To, Subject: m.Subject, Text: m.Text, Links: m.Links, At: at}
	if e.Links == nil {
		e.Links = []string{}
	}
	return entries.put(tx, id, at, e)
}

// Look implements Queue, for who follows Looked.
func (o *Outbox) Look(bool) { broadcast.Raise(o.look) }

// Looked receives when a mail may have been put, for whoever carries mails elsewhere.
func (o *Outbox) Looked() <-chan struct{} { return o.look }

// Run waits for ctx: there is nothing to deliver.
func (o *Outbox) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// List returns up to limit mails, newest first.
func (o *Outbox) List(ctx context.Context, limit int) ([]Entry, error) {
	if limit <= 0 {
		return []Entry{}, nil
	}
	var out []Entry
	err := o.store.ViewOf(ctx, kv.Rows{Prefixes: []string{entries.prefix}}, func(tx kv.Tx) (err error) {
		out, err = entries.list(tx, limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the outbox: %w", err)
	}
	return out, nil
}

// Size counts the mails kept.
func (o *Outbox) Size(ctx context.Context) (int, error) {
	n := 0
	err := o.store.ViewOf(ctx, kv.Rows{Prefixes: []string{entries.prefix}}, func(tx kv.Tx) error {
		items, err := tx.Scan(entries.prefix, "", OutboxSize)
		n = len(items)
		return err
	})
	return n, err
}
