package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"porchlight/control/kv"
	"porchlight/internal/durable"
)

// Head is the end of a chain, or with a checkpoint where it begins: its last row then.
type Head struct {
	Node      string    `json:"node"`
	Seq       uint64    `json:"seq"`
	Hash      string    `json:"hash"`
	At        time.Time `json:"at"`
	Key       []byte    `json:"key,omitempty"`       // public, Ed25519
	Signature []byte    `json:"signature,omitempty"` // of the fields before
}

func (h Head) message() []byte {
	h.Key, h.Signature = nil, nil
	b, err := json.Marshal(h)
	if err != nil {
		panic(err) // it is made of strings, a number and a time
	}
	return append([]byte("porchlight audit head 1\n"), b...)
}

func (h Head) signed(key ed25519.PrivateKey) Head {
	h.Key, h.Signature = key.Public().(ed25519.PublicKey), ed25519.Sign(key, h.message())
	return h
}

// good says whether its own key signed it.
func (h Head) good() bool {
	return len(h.Key) == ed25519.PublicKeySize && ed25519.Verify(h.Key, h.message(), h.Signature)
}

// tellHeads tells the signed ends of all chains as they are stored: those of nodes that are
// gone, and of commands that opened the store, have nobody else to tell them.
func (l *Log) tellHeads(ctx context.Context) (err error) {
	if l.cfg.Head == nil || l.cfg.Key == nil {
		return nil
	}
	defer func() { l.noteTold(err) }()
	return each(ctx, l.cfg.Store, keyEnds, func(_ string, value []byte) error {
		end, err := kv.ParseJSON[Head](value)
		if err != nil {
			return err
		}
		end.At = l.cfg.Now().UTC()
		if err := l.cfg.Head(ctx, end.signed(l.cfg.Key)); err != nil {
			return fmt.Errorf("telling the heads of the audit log: %w", err)
		}
		return nil
	})
}

// ReadHeads reads heads as a file has them, one JSON object a line. Of lines of syslog what
// stands before the object is left out.
func ReadHeads(r io.Reader) (heads []Head, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Bytes()
		if i := bytes.IndexByte(line, '{'); i >= 0 {
			var h Head
			if err := json.Unmarshal(line[i:], &h); err != nil {
				return nil, fmt.Errorf("a line is no head: %w", err)
			}
			heads = append(heads, h)
		}
	}
	return heads, lines.Err()
}

// headWait bounds the telling of one head.
const headWait = 10 * time.Second

// Sink is where heads are told: "syslog", an https:// address that each is posted to, or the
// path of a file that each is appended to.
func Sink(to string) (func(context.Context, Head) error, error) {
	write := func(ctx context.Context, line []byte) error {
		f, err := os.OpenFile(to, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(append(line, '\n'))
		if err == nil {
			err = f.Sync()
		}
		if closed := f.Close(); err == nil {
			err = closed
		}
		return err
	}
	switch u, err := url.Parse(to); {
	case to == "syslog":
		write = func(ctx context.Context, line []byte) error {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, "unixgram", "/dev/log")
			if err != nil {
				return err
			}
			defer conn.Close()
			const authprivNotice = 10<<3 | 5 // RFC 5424, 6.2.1
			_, err = fmt.Fprintf(conn, "<%d>porchlight-control: %s", authprivNotice, line)
			return err
		}
	case err == nil && u.Scheme == "https" && u.Host != "":
		write = func(ctx context.Context, line []byte) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(line))
			if err != nil {
				return err
			}
			r.Header.Set("Content-Type", "application/json")
			client := *http.DefaultClient
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // it would be asked for with nothing posted
			answer, err := client.Do(r)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			if answer.StatusCode/100 != 2 {
				return fmt.Errorf("it was answered with HTTP %s", answer.Status)
			}
			return nil
		}
	case strings.Contains(to, "://"):
		return nil, fmt.Errorf("%q is neither syslog, nor an https:// address, nor a file", to)
	}
	return func(ctx context.Context, h Head) error {
		ctx, cancel := context.WithTimeout(ctx, headWait)
		defer cancel()
		line, err := json.Marshal(h)
		if err != nil {
			return err
		}
		return write(ctx, line)
	}, nil
}

// Key reads the key that signs heads, and makes it, with its directory, where there is none.
// A process that was stopped has left the whole of it or nothing, and of two that make it at
// once both have the same.
func Key(path string) (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		if err := makeKey(path); err != nil {
			return nil, err
		}
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s holds no key", path)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func makeKey(path string) error {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { // beside a database, nothing has made it
		return err
	}
	own := path + "." + rand.Text()
	defer os.Remove(own)
	if err := durable.Replace(own, []byte(base64.StdEncoding.EncodeToString(key.Seed())+"\n")); err != nil {
		return err
	}
	if err := os.Link(own, path); err != nil && !os.IsExist(err) {
		if err := os.Rename(own, path); err != nil { // a file system without links
			return err
		}
	}
	return durable.SyncDir(filepath.Dir(path))
}
