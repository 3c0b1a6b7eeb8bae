package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	wholePage = "a page with 200 resources in Chromium, 20 ms away"
	loadTime  = "ms until it is loaded"

	resources = 200
	oneWay    = 10 * time.Millisecond
	pageLoads = 12 // of each contender in a round
)

// servePage is a page, and what it loads: small scripts.
func servePage(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/r/") {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, "//"+strings.Repeat("x", 2<<10)) // a browser that has gone needs none
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	var page strings.Builder
	page.WriteString("<!doctype html><title>page</title>")
	for i := range resources {
		fmt.Fprintf(&page, "<script defer src=/r/%d></script>", i)
	}
	_, _ = io.WriteString(w, page.String())
}

// pageWork is the page as often as it is loaded in a round. Contenders take turns at each
// load, so that whatever else the browser does meets all of them.
func pageWork() []work {
	return slices.Repeat([]work{{"page", wholePage, []string{oursCookie, nginx}, pageLoad}}, pageLoads)
}

// pageLoad has Chromium load the page over a link that takes 20 ms there and back, with
// nothing kept from before. One browser loads it from everybody in a round, and the first
// load from each is not counted: the browser has only begun then. After a load that failed
// the round goes on without it.
func pageLoad(ctx context.Context, st *stage, c contender) (readings []reading, err error) {
	if st.tiny {
		return nil, nil // a browser takes longer than all the rest
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		leftOut()
		return nil, nil
	}
	if st.browser == nil {
		if err := st.openBrowser(ctx); err != nil {
			return nil, err
		}
	}
	if st.browser.ended {
		return nil, nil // its failure was told
	}
	defer func() {
		if err != nil {
			st.browser.end() // what it still does would slow others down
			st.browser.ended = true
			err = alone{err}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !st.browser.knows[c.name] {
		st.browser.knows[c.name] = true
		if _, err := st.browser.load(ctx, c); err != nil {
			return nil, err
		}
	}
	ms, err := st.browser.load(ctx, c)
	if err != nil {
		return nil, err
	}
	return []reading{{loadTime, ms}}, nil
}

var leftOut = sync.OnceFunc(func() {
	fmt.Fprintf(os.Stderr, "%s is left out: there is no chromium\n", wholePage)
})

// link is an address that leads to another, with oneWay between them.
type link struct {
	addr string
	to   atomic.Value // string: where new connections lead
}

func newLink(ctx context.Context) (*link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { ln.Close() })
	l := &link{addr: ln.Addr().String()}
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return // the round is over
			}
			go l.join(ctx, near)
		}
	}()
	return l, nil
}

func (l *link) join(ctx context.Context, near net.Conn) {
	time.Sleep(oneWay) // of the first packet
	far, err := net.Dial("tcp", l.to.Load().(string))
	if err != nil {
		near.Close()
		return
	}
	defer context.AfterFunc(ctx, func() { near.Close(); far.Close() })()
	go carry(far, near)
	carry(near, far)
}

// carry writes what it reads oneWay later.
func carry(to, from net.Conn) {
	type parcel struct {
		due   time.Time
		bytes []byte
	}
	road := make(chan parcel, 1024)
	go func() {
		defer close(road)
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			road <- parcel{time.Now().Add(oneWay), bytes.Clone(buf[:n])}
		}
	}()
	for p := range road {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			from.Close()
		}
	}
	to.Close()
}
