package senders

import (
	"testing"
	"time"

	"porchlight/agent/store"
	"porchlight/test/programs"
)

// What an app takes of a sender who was revoked meanwhile is not kept for ever.
func TestNothingIsLeftOfARevokedSender(t *testing.T) {
	t.Parallel()
	db := programs.Got(store.Open(t.TempDir()))(t)
	defer db.Close()
	key := store.Delivery{SenderID: "sender-gone"}
	l := &ledger{s: &Senders{cfg: Config{Store: db}}, underWay: map[store.Delivery]state{key: atApp}, kept: map[string]*count{}}
	l.done(key, time.Now().Add(Kept))
	if _, known, err := db.Delivered(key); len(l.underWay) != 0 || known || err != nil {
		t.Errorf("left: %v, on the disk: %t, %v", l.underWay, known, err)
	}
}
