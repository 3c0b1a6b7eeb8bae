package mail

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/control/kv"
)

var update = flag.Bool("update", false, "write the golden files")

func TestSignInMail(t *testing.T) {
	t.Parallel()
	m, err := SignIn{
		To: "bob@example.com", Link: "https://control.example.net/signin/link?token=abc&x=1",
		Code: "123 456", Host: "control.example.net", Minutes: 15,
	}.Message()
	if err != nil {
		t.Fatal(err)
	}
	if m.To != "bob@example.com" || m.Subject != "Your link to sign in" || len(m.Links) != 1 || !strings.Contains(m.Text, m.Links[0]) {
		t.Errorf("the mail is %+v", m)
	}
	for name, got := range map[string]string{"signin.golden.txt": m.Text, "signin.golden.html": m.HTML} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs; got\n%s", path, got)
		}
	}
}

func TestOutboxKeepsTheNewest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	store, err := kv.OpenBolt(filepath.Join(t.TempDir(), "mail.db"), kv.BoltOptions{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	o := NewOutbox(store, clock)
	for n := range OutboxSize + 50 {
		now = now.Add(time.Second)
		err := store.Update(t.Context(), func(tx kv.Tx) error {
			return o.Put(tx, fmt.Sprint(n), Message{To: "bob@example.com", Subject: fmt.Sprint(n), Text: "t", Links: []string{"l"}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := o.List(t.Context(), 1000)
	if err != nil || len(list) != OutboxSize {
		t.Fatalf("%d mails, %v", len(list), err)
	}
	for i, e := range list {
		if want := fmt.Sprint(OutboxSize + 49 - i); e.Subject != want {
			t.Fatalf("entry %d is %s, want %s", i, e.Subject, want)
		}
	}
	if e := list[0]; e.To != "bob@example.com" || e.Text != "t" || len(e.Links) != 1 || !e.At.Equal(now) {
		t.Errorf("the newest is %+v", e)
	}
	if list, err := o.List(t.Context(), 3); err != nil || len(list) != 3 {
		t.Errorf("asked for 3: %d, %v", len(list), err)
	}
	now = now.Add(OutboxLife - time.Second) // all but the newest were put earlier
	if n, err := o.Size(t.Context()); err != nil || n != 1 {
		t.Errorf("after seven days %d are left, %v", n, err)
	}
}

func TestNothingIsKeptOfAFailedTransaction(t *testing.T) {
	t.Parallel()
	store, err := kv.OpenBolt(filepath.Join(t.TempDir(), "mail.db"), kv.BoltOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	o := NewOutbox(store, nil)
	err = store.Update(t.Context(), func(tx kv.Tx) error {
		if err := o.Put(tx, "x", Message{To: "bob@example.com"}); err != nil {
			return err
		}
		return context.Canceled
	})
	if err != context.Canceled {
		t.Fatal(err)
	}
	if n, err := o.Size(t.Context()); err != nil || n != 0 {
		t.Errorf("%d mails, %v", n, err)
	}
}
