// Command mailserver is the mail server of the end-to-end tests. It prints
// one JSON document that says how to reach it, and then one for each mail it
// took, parsed from the bytes that arrived.
//
//	mailserver --ca FILE --user USER --password PASSWORD
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"

	"porchlight/test/mailserver"

	"github.com/emersion/go-message/mail"
)

func main() {
	ca := flag.String("ca", "", "file that gets the certificate to trust (PEM)")
	user := flag.String("user", "porchlight", "who may send")
	password := flag.String("password", "", "with which password")
	flag.Parse()
	if err := serve(*ca, *user, *password); err != nil {
		fmt.Fprintln(os.Stderr, "mailserver:", err)
		os.Exit(1)
	}
	select {} // until it is killed
}

func serve(caFile, user, password string) error {
	s := mailserver.New()
	s.User, s.Password = user, password
	if err := os.WriteFile(caFile, s.Root, 0o600); err != nil {
		return err
	}
	var mu sync.Mutex // protects out
	out := json.NewEncoder(os.Stdout)
	s.OnMail = func(came mailserver.Mail) error {
		m, err := parse(bytes.NewReader(came.Data))
		if err != nil {
			return err
		}
		m.Rcpt = came.To
		mu.Lock()
		defer mu.Unlock()
		return out.Encode(m)
	}
	if err := s.Start(false); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	return out.Encode(map[string]string{"address": s.Address})
}

// received is a mail as it arrived.
type received struct {
	Rcpt    []string `json:"rcpt"`
	From    string   `json:"from"`
	To      string   `json:"to"`
	ReplyTo string   `json:"replyTo"`
	Subject string   `json:"subject"`
	Text    string   `json:"text"`
	HTML    string   `json:"html"`
}

// parse reads a mail of one text and one HTML part.
func parse(r io.Reader) (m received, err error) {
	reader, err := mail.CreateReader(r)
	if err != nil {
		return m, err
	}
	address := func(field string) string {
		list, listErr := reader.Header.AddressList(field)
		if err = errors.Join(err, listErr); listErr != nil || len(list) == 0 {
			return ""
		}
		return list[0].Address
	}
	m.From, m.To, m.ReplyTo = address("From"), address("To"), address("Reply-To")
	if err != nil {
		return m, err
	}
	if m.Subject, err = reader.Header.Subject(); err != nil {
		return m, err
	}
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		body, err := io.ReadAll(part.Body)
		if err != nil {
			return m, err
		}
		header, ok := part.Header.(*mail.InlineHeader)
		if !ok {
			return m, errors.New("a mail with an attachment")
		}
		switch kind, _, err := header.ContentType(); {
		case err != nil:
			return m, err
		case kind == "text/plain":
			m.Text = string(body)
		case kind == "text/html":
			m.HTML = string(body)
		default:
			return m, fmt.Errorf("a part of type %s", kind)
		}
	}
}
