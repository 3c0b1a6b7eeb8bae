package mail

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/control/kv"
	"porchlight/internal/words"
	"porchlight/test/golden"
	"porchlight/test/programs"
	"porchlight/test/pseudo"
)

func TestSignInMail(t *testing.T) {
	t.Parallel()
	m := programs.Got(SignIn{
		To: "bob@example.com", Link: "https://control.example.net/signin/link?token=abc&x=1",
		Code: "123 456", Host: "control.example.net", Minutes: 15,
	}.Message())(t)
	if m.To != "bob@example.com" || m.Subject != "Your link to sign in" || len(m.Links) != 1 || !strings.Contains(m.Text, m.Links[0]) {
		t.Errorf("the mail is %+v", m)
	}
	golden.Check(t, "testdata/signin.golden.txt", m.Text)
	golden.Check(t, "testdata/signin.golden.html", m.HTML)
}

func TestMailsInGerman(t *testing.T) {
	t.Parallel()
	in := programs.Got(SignIn{
		To: "bob@example.com", Link: "https://control.example.net/signin/link?token=abc&x=1",
		Code: "123 456", Host: "control.example.net", Minutes: 15, Language: words.German,
	}.Message())(t)
	golden.Check(t, "testdata/signin-de.golden.txt", "Subject: "+in.Subject+"\n\n"+in.Text)
	golden.Check(t, "testdata/signin-de.golden.html", in.HTML)
	invited := programs.Got(Invitation{
		To: "bob@example.com", Owner: "maya@example.com", From: "Maya", Line: "Schau mal <b>rein</b>!", Language: words.German,
		Apps: []App{{Label: "Notes", Name: "notes", Until: time.Date(2026, 12, 5, 22, 59, 0, 0, time.UTC)}, {Label: "<b>Photos</b>", Name: "photos"}}, Until: time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC),
		Link: "https://control.example.net/invitation?token=abc&x=1",
	}.Message())(t)
	golden.Check(t, "testdata/invitation-de.golden.txt", "Subject: "+invited.Subject+"\n\n"+invited.Text)
	golden.Check(t, "testdata/invitation-de.golden.html", invited.HTML)
}

// No word of a mail stands in its template: see package pseudo.
func TestMailsAreSaid(t *testing.T) {
	t.Parallel()
	in := programs.Got(SignIn{
		To: "bob@example.com", Link: "https://control.example.net/signin/link?token=abc&x=1",
		Code: "123 456", Host: "control.example.net", Minutes: 15, Language: words.Pseudo,
	}.Message())(t)
	invited := programs.Got(Invitation{
		To: "bob@example.com", Owner: "maya@example.com", From: "Maya", Line: "Look at this.", Language: words.Pseudo,
		Apps: []App{{Label: "Notes", Name: "notes", Until: time.Date(2026, 12, 5, 22, 59, 0, 0, time.UTC)}, {Label: "Photos", Name: "photos"}}, Until: time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC),
		Link: "https://control.example.net/invitation?token=abc&x=1",
	}.Message())(t)
	for _, m := range []Message{in, invited} {
		for _, said := range []string{m.Subject, m.Text, m.HTML} {
			pseudo.Check(t, m.Subject, said, "Maya", "Look at this.", "Notes", "Photos")
		}
	}
}

func TestOutboxKeepsTheNewest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	store := programs.Got(kv.Open(t.Context(), "memory:", kv.Options{Now: clock}))(t)
	defer store.Close()
	o := NewOutbox(store, clock)
	for n := range OutboxSize + 50 {
		now = now.Add(time.Second)
		err := store.Update(t.Context(), func(tx kv.Tx) error {
			return o.Put(tx, fmt.Sprint(n), Message{To: "bob@example.com", Subject: fmt.Sprint(n), Text: "t", Links: []string{"l"}})
		})
		programs.Must(t, err)
	}
	list, err := o.List(t.Context(), 1000)
	if err != nil || len(list) != OutboxSize {
		t.Fatalf("%d mails, %v", len(list), err)
	}
	if n := rows(t, store, entries.prefix); n != OutboxSize {
		t.Errorf("%d mails are stored", n)
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
	// A store may keep a long-lived row a little longer than it was told.
	for after, want := range map[time.Duration]int{outboxLife - time.Hour: OutboxSize, outboxLife + outboxLife/10: 0} {
		old := now
		now = now.Add(after)
		if n, err := o.Size(t.Context()); err != nil || n != want {
			t.Errorf("after %v %d are left, %v", after, n, err)
		}
		now = old
	}
}

func TestNothingIsKeptOfAFailedTransaction(t *testing.T) {
	t.Parallel()
	store, err := kv.Open(t.Context(), "memory:", kv.Options{})
	programs.Must(t, err)
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

func TestInvitationMail(t *testing.T) {
	t.Parallel()
	until, end := time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC), time.Date(2027, 1, 5, 22, 59, 59, 0, time.UTC)
	written := map[string][2]string{
		"invitation-line":       {"Maya", "The pictures from Lisbon are in. <b>Have</b> a look & write back!"},
		"invitation-unnamed":    {"", "Have a look."},
		"invitation-from-right": {"מאיה", "שלום, תסתכלו"},
	}
	for name, apps := range map[string][]App{
		"invitation-line":       {{Label: "Photos", Name: "photos"}},
		"invitation-unnamed":    {{Label: "Photos", Name: "photos"}},
		"invitation-from-right": {{Label: "Photos", Name: "photos"}},
		"invitation":            {{Label: "Notes", Name: "notes"}, {Label: "Photos", Name: "photos"}},
		"invitation-ends":       {{Label: "Notes", Name: "notes", Until: end}, {Label: "Photos", Name: "photos"}, {Label: "Wiki", Name: "wiki", Until: end}, {Label: "Chat", Name: "chat", Until: until}},
		"invitation-hostile": {
			{Label: "<b>Win</b> at https://evil.example/x", Name: "notes"}, {Label: "evil.example", Name: "photos"},
			{Label: "Tidy & \u202eneat\r\nBcc: x@y.example", Name: "c"}, {Label: strings.Repeat("long ", 40), Name: "d"}, {Label: "E", Name: "e"},
		},
	} {
		m := programs.Got(Invitation{
			To: "bob@example.com", Owner: "maya@example.com", From: written[name][0], Line: written[name][1], Apps: apps, Until: until,
			Link: "https://control.example.net/invitation?token=abc&x=1",
		}.Message())(t)
		if m.To != "bob@example.com" || m.ReplyTo != "maya@example.com" || len(m.Links) != 1 || !strings.Contains(m.Text, m.Links[0]) {
			t.Errorf("%s: the mail is %+v", name, m)
		}
		golden.Check(t, "testdata/"+name+".golden.txt", "Subject: "+m.Subject+"\n\n"+m.Text)
		golden.Check(t, "testdata/"+name+".golden.html", m.HTML)
	}
	if _, err := (Invitation{To: "bob@example.com", Owner: "maya@example.com"}).Message(); err == nil {
		t.Error("an invitation to nothing was composed")
	}
	for what, bad := range map[string]Invitation{
		"a name that ends the subject": {From: "Maya\r\nBcc: eve@example.com"},
		"a name that is an address":    {From: "it-support@example.net"},
		"a name that turns around":     {From: "Maya\u202e"},
		"a line of two":                {Line: "Have a look.\n\nYour bank"},
		"a line with a link":           {Line: "Have a look at evil.example"},
	} {
		bad.To, bad.Owner, bad.Apps, bad.Until = "bob@example.com", "maya@example.com", []App{{Label: "Notes", Name: "notes"}}, until
		if m, err := bad.Message(); err == nil {
			t.Errorf("%s: %+v", what, m)
		}
	}
}

func TestPlainLabel(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]string{
		"Notes":                        "Notes",
		"  Notes \u2028 of\u0085Maya ": "Notes of Maya",
		"Node 1.2 (v3.4)":              "Node 1.2 (v3.4)",
		"AC/DC: live":                  "AC/DC: live",
		"see https://evil.example":     "see",
		"HTTPS://EVIL":                 "",
		"mailto:a":                     "",
		"0://":                         "",
		"写://x at 10:30":               "at 10:30",
		"a@b":                          "",
		"go evil.example/path now":     "go now",
		"evil。example":                 "",
		"at 192.0.2.1":                 "at",
		"\u202egpj.\u202c":             "gpj.",
		"Ünïcödé 日記":                   "Ünïcödé 日記",
		"bad\xffbytes":                 "badbytes",
		strings.Repeat("é", 61):        strings.Repeat("é", 59) + "…",
		strings.Repeat("é", 60):        strings.Repeat("é", 60),
		"(https://evil.example)":       "",
		"Notes…more":                   "Notes…more",
	} {
		if got := safeLabel(label); got != want {
			t.Errorf("%q became %q, want %q", label, got, want)
		}
	}
}

func FuzzPlainLabel(f *testing.F) {
	f.Add("Notes")
	f.Add("0://")
	f.Add("x\r\nBcc: a@b.example https://evil.example \u202e")
	f.Fuzz(func(t *testing.T, label string) {
		got := safeLabel(label)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > maxLabel || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) ||
			strings.Contains(got, "://") || strings.Contains(got, "@") {
			t.Fatalf("%q became %q", label, got)
		}
	})
}
