package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"porchlight/control/mail"
	"porchlight/internal/durable"
	"porchlight/internal/private"
)

const (
	// outboxEvery is how often it is looked for mails of which nothing was heard, and
	// outboxLeast how much time is between two looks.
	outboxEvery  = 15 * time.Second
	outboxLeast  = 250 * time.Millisecond
	outboxAgain  = time.Second // after one that failed
	outboxSuffix = ".txt"
	outboxStamp  = "20060102T150405.000000000Z"
	// outboxOverlap covers mails whose transactions ended in another order than
	// their times.
	outboxOverlap = time.Minute
)

// outboxFiles writes each mail of the store's outbox, once, as a text file for
// whoever runs a control plane without a mail server. It looks when it hears that one was
// put, here or at another node, and now and then besides. A file that was removed is
// not written again.
type outboxFiles struct {
	dir    string
	outbox *mail.Outbox
	log    *slog.Logger
	// written are the names this process need not look at again, and since the
	// time before which all are; owned by run.
	written map[string]bool
	since   time.Time
}

// newOutboxFiles makes dir (0700) when it is not there, and finds out from its
// files how far an earlier process came.
func newOutboxFiles(dir string, outbox *mail.Outbox, log *slog.Logger) (*outboxFiles, error) {
	if err := private.Dir(dir); err != nil {
		return nil, fmt.Errorf("cannot create the directory for mails: %w", err)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the directory for mails: %w", err)
	}
	o := &outboxFiles{dir: dir, outbox: outbox, log: log, written: map[string]bool{}}
	for _, e := range there {
		stamp, _, ok := strings.Cut(strings.TrimSuffix(e.Name(), outboxSuffix), "-")
		at, err := time.Parse(outboxStamp, stamp)
		if !ok || err != nil {
			continue // not ours
		}
		o.written[e.Name()] = true
		if since := at.Add(-outboxOverlap); since.After(o.since) {
			o.since = since
		}
	}
	return o, nil
}

// run writes files until ctx is done, and what is there then.
func (o *outboxFiles) run(ctx context.Context) error {
	failing := false
	look := func(ctx context.Context) (next time.Duration) {
		err := o.look(ctx)
		if err != nil && !failing && ctx.Err() == nil { // said once, not every second
			o.log.Error("mails could not be written to files", "err", err)
		}
		if failing = err != nil; failing {
			return outboxAgain
		}
		return outboxEvery
	}
	for ctx.Err() == nil {
		next := look(ctx)
		select {
		case <-time.After(outboxLeast):
		case <-ctx.Done():
			continue
		}
		select {
		case <-time.After(next):
		case <-o.outbox.Looked():
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin)
	defer cancel()
	look(last)
	return nil
}

func (o *outboxFiles) look(ctx context.Context) error {
	entries, err := o.outbox.List(ctx, mail.OutboxSize)
	if err != nil {
		return err
	}
	listed := make(map[string]bool, len(entries))
	for _, e := range entries {
		name := outboxName(e)
		if !o.written[name] && !e.At.Before(o.since) {
			if err := o.write(name, e); err != nil {
				return err
			}
			o.written[name] = true
		}
		listed[name] = true
	}
	o.written = listed // what the outbox has dropped need not be remembered
	return nil
}

func outboxName(e mail.Entry) string {
	sum := sha256.Sum256([]byte(e.To + "\n" + e.Subject + "\n" + e.Text))
	return e.At.UTC().Format(outboxStamp) + "-" + hex.EncodeToString(sum[:6]) + outboxSuffix
}

func (o *outboxFiles) write(name string, e mail.Entry) error {
	text := fmt.Sprintf("To: %s\nSubject: %s\nDate: %s\n\n%s", e.To, e.Subject, e.At.UTC().Format(time.RFC1123Z), e.Text)
	return durable.Replace(filepath.Join(o.dir, name), []byte(text))
}
