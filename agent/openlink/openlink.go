// Package openlink opens one of the owner's one-time links in the owner's
// browser without showing it to the other programs of this computer.
//
// A command line can be read by every process of the machine, so the link does
// not travel in one: it goes into a page only the owner can read (0600, in a
// 0700 directory), which sends the browser on, and what is opened is that page's
// path. The page is removed after lifetime. A browser packaged as a snap or
// flatpak cannot read such a file; that one gets the link itself.
package openlink

import (
	"context"
	"crypto/rand"
	"html/template"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"porchlight/internal/private"
	"porchlight/internal/words"
)

// lifetime of the page. The link in it works once, and no longer than that.
const lifetime = 60 * time.Second

// Opened is a link that was handed to the browser.
type Opened struct {
	page  string // empty when the link was handed over directly
	timer *time.Timer
	gone  chan struct{}
}

// Open hands link to the owner's browser and returns; the page is removed after
// lifetime by itself, or by Close. ctx bounds the start of the browser only.
// Only http and https links are taken. The errors are sentences.
func Open(ctx context.Context, link string) (*Opened, error) {
	u, err := url.Parse(link)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, words.Errorf("This is not an address a browser can open.")
	}
	if direct(ctx) {
		if err := browse(ctx, link); err != nil {
			return nil, err
		}
		return &Opened{}, nil
	}
	page, err := write(pageDir(), u)
	if err != nil {
		return nil, words.Errorf("The page for your browser could not be written: %w", err)
	}
	if err := browse(ctx, page); err != nil {
		_ = os.Remove(page)
		return nil, err
	}
	o := &Opened{page: page, gone: make(chan struct{})}
	o.timer = time.AfterFunc(lifetime, o.remove)
	return o, nil
}

// Wait returns when the page is gone or ctx ends, whichever is first; then it is
// gone in any case. A command that would exit at once calls it, so that the
// browser has time to read the page.
func (o *Opened) Wait(ctx context.Context) {
	if o.page == "" {
		return
	}
	select {
	case <-ctx.Done():
	case <-o.gone:
	}
	o.Close()
}

// Close removes the page now.
func (o *Opened) Close() {
	if o.page != "" && o.timer.Stop() {
		o.remove()
	}
}

func (o *Opened) remove() {
	_ = os.Remove(o.page)
	close(o.gone)
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={{.}}"><title>Opening…</title></head>
<body><p><a href="{{.}}">Continue</a></p></body></html>
`))

// pageDir is where pages lie: a directory that ends with the session where there
// is one.
func pageDir() string {
	parent := os.Getenv("XDG_RUNTIME_DIR")
	if parent == "" {
		var err error
		if parent, err = os.UserCacheDir(); err != nil {
			parent = os.TempDir()
		}
	}
	return filepath.Join(parent, "porchlight-open")
}

// write makes the page, and removes what earlier ones a killed process left.
func write(dir string, link *url.URL) (string, error) {
	if err := private.Dir(dir); err != nil {
		return "", err
	}
	// Only the owner of a directory may change its mode, so this also refuses
	// one that somebody else made there.
	if err := os.Chmod(dir, 0o700); err != nil {
		return "", err
	}
	sweep(dir, time.Now().Add(-lifetime))
	name := filepath.Join(dir, "open-"+strings.ToLower(rand.Text())+".html")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	err = page.Execute(f, link.String())
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(name)
		return "", err
	}
	return name, nil
}

func sweep(dir string, before time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), "open-") && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
