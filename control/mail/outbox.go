package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"porchlight/control/kv"
)

// Bounds of an Outbox.
const (
	OutboxSize = 200                // mails
	OutboxLife = 7 * 24 * time.Hour // of each
)

const outboxPrefix = "outbox/"

// Entry is a kept mail.
type Entry struct {
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
	Links   []string  `json:"links"`
	At      time.Time `json:"at"`
}

// Outbox is a Queue that delivers nothing: the owner reads the mails themselves.
// It keeps the newest OutboxSize of them, each for OutboxLife.
type Outbox struct {
	store kv.Store
	now   func() time.Time
}

// NewOutbox keeps mails in store, where it uses the keys under "outbox/".
func NewOutbox(store kv.Store, now func() time.Time) *Outbox {
	if now == nil {
		now = time.Now
	}
	return &Outbox{store: store, now: now}
}

// Put keeps a mail and drops the oldest one when there are too many.
func (o *Outbox) Put(tx kv.Tx, id string, m Message) error {
	at := o.now().UTC()
	e := Entry{To: m.To, Subject: m.Subject, Text: m.Text, Links: m.Links, At: at}
	if e.Links == nil {
		e.Links = []string{}
	}
	value, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding a mail: %w", err)
	}
	// Keys sort newest first, which is how they are read.
	key := fmt.Sprintf("%s%016x-%s", outboxPrefix, uint64(math.MaxInt64-at.UnixNano()), id)
	if err := tx.Put(key, value, OutboxLife); err != nil {
		return err
	}
	kept, err := tx.Scan(outboxPrefix, "", OutboxSize+1)
	if err != nil {
		return err
	}
	if len(kept) <= OutboxSize {
		return nil
	}
	return tx.Delete(kept[OutboxSize].Key)
}

// Run waits for ctx: there is nothing to deliver.
func (o *Outbox) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// List returns up to limit mails, newest first.
func (o *Outbox) List(ctx context.Context, limit int) ([]Entry, error) {
	entries := []Entry{}
	if limit <= 0 {
		return entries, nil
	}
	err := o.store.View(ctx, func(tx kv.Tx) error {
		items, err := tx.Scan(outboxPrefix, "", min(limit, OutboxSize))
		if err != nil {
			return err
		}
		entries = entries[:0]
		for _, it := range items {
			var e Entry
			if err := json.Unmarshal(it.Value, &e); err != nil {
				return fmt.Errorf("decoding a mail: %w", err)
			}
			entries = append(entries, e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the outbox: %w", err)
	}
	return entries, nil
}

// Size counts the mails kept.
func (o *Outbox) Size(ctx context.Context) (int, error) {
	n := 0
	err := o.store.View(ctx, func(tx kv.Tx) error {
		items, err := tx.Scan(outboxPrefix, "", OutboxSize)
		n = len(items)
		return err
	})
	return n, err
}
