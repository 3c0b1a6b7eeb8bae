// Package mail composes the mails of the control plane and takes them into the
// store. A mail is put into the queue within the transaction that caused it, so
// that a link exists exactly when its mail does; delivery happens afterwards.
//
// Outbox is the queue of a control plane nobody mails for: it keeps the last
// mails for the owner to read.
package mail

import (
	"context"
	"time"

	"porchlight/control/kv"
)

// Message is one mail to one person. Text is always there; HTML says the same.
type Message struct {
	To      string // canonical address
	Subject string
	Text    string
	HTML    string
	ReplyTo string   // canonical address, or empty
	Links   []string // the links in it, for those who read it elsewhere
	// Life is how long the mail is worth delivering: an older one helps nobody.
	// Zero means as long as delivery is tried.
	Life time.Duration
	// About is the id of the computer whose owner caused the mail, and is told when
	// it was given up; empty for none.
	About string `json:",omitempty"`
}

// Queue takes mails and sees to their delivery.
type Queue interface {
	// Put takes a message within the caller's transaction: it is kept exactly
	// when tx commits. The id, new for each message, is made before, because a
	// transaction may run twice.
	Put(tx kv.Tx, id string, m Message) error
	// Look says that a mail may have been put: by a transaction of this process, which is
	// over, or by another node. It does not block.
	Look(here bool)
	// Run delivers what was put, until ctx is done.
	Run(ctx context.Context) error
}
