package rig

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// Mails finds the links of mails, each mail's once. It is not for several
// goroutines at a time.
type Mails struct {
	find func(ctx context.Context, to string) (link string, err error) // "" while there is none
	used map[string]bool
}

// Outbox finds those that a computer in local mode keeps, which list returns, the
// newest first.
func Outbox(list func(context.Context) ([]agentapi.Mail, error)) *Mails {
	m := &Mails{used: map[string]bool{}}
	m.find = func(ctx context.Context, to string) (string, error) {
		mails, err := list(ctx)
		for _, mail := range mails {
			if mail.To == to && len(mail.Links) > 0 && m.first(mail.Links[0]) {
				return mail.Links[0], nil
			}
		}
		return "", err
	}
	return m
}

var anyLink = regexp.MustCompile(`https://\S+`)

// MailsIn finds those that come from now on to the outbox of a control plane, a
// directory with a file a mail. The empty address stands for anybody.
func MailsIn(dir string) *Mails {
	m := &Mails{used: map[string]bool{}}
	files := func() []string {
		// A name with a dot is a mail that is still being written. The pattern is a
		// good one.
		all, _ := filepath.Glob(filepath.Join(dir, "[^.]*"))
		return all
	}
	for _, file := range files() {
		m.first(file)
	}
	m.find = func(_ context.Context, to string) (string, error) {
		for _, file := range slices.Backward(files()) {
			raw, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			// One that only tells of something leads to /account.
			if link := anyLink.FindString(string(raw)); link != "" && !strings.HasSuffix(link, "/account") && strings.HasPrefix(string(raw), "To: "+to) && m.first(file) {
				return link, nil
			}
		}
		return "", nil
	}
	return m
}

func (m *Mails) first(what string) (anew bool) {
	anew = !m.used[what]
	m.used[what] = true
	return anew
}

// Link waits for a mail to an address whose link was not returned before.
func (m *Mails) Link(ctx context.Context, to string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, programs.Patience, errors.New("no mail came to "+to))
	defer cancel()
	for {
		if link, err := m.find(ctx, to); link != "" || err != nil {
			return link, err
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
