// Package devtools asks a Chromium by its DevTools protocol, over two pipes.
package devtools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
)

var errEnded = errors.New("the browser has ended")

// Client asks one browser. It lasts as long as the browser, which whoever started it ends.
type Client struct {
	commands chan []byte
	ended    chan struct{} // closed when nobody answers any more

	mu      sync.Mutex // guards what follows
	last    int
	waiting map[int]chan<- answer // by the command's number; each has room for its answer
	why     error                 // nobody answers any more
}

// command and answer are the protocol's; each ends with a zero byte on its pipe.
type command struct {
	ID      int            `json:"id"`
	Session string         `json:"sessionId,omitempty"`
	Method  string         `json:"method"`
	Params  map[string]any `json:"params,omitempty"`
}

type answer struct {
	ID     int // 0 for an event
	Result json.RawMessage
	Error  *struct{ Message string }
	failed error // there is no answer
}

// Start gives a Chromium its pipes and has start begin it.
func Start(cmd *exec.Cmd, start func() error) (c *Client, err error) {
	theirs, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	from, theirOwn, err := os.Pipe()
	if err != nil {
		to.Close()
		return nil, err
	}
	defer theirOwn.Close() // when only the browser has it, its end is seen
	defer func() {
		if c == nil { // start may leave by a test's FailNow, too
			to.Close()
			from.Close()
		}
	}()
	cmd.Args = append(cmd.Args, "--remote-debugging-pipe")
	cmd.ExtraFiles = []*os.File{theirs, theirOwn} // the 3 and 4 that Chromium expects
	if err := start(); err != nil {
		return nil, err
	}
	c = &Client{commands: make(chan []byte), ended: make(chan struct{}), waiting: map[int]chan<- answer{}}
	go c.listen(from)
	go c.tell(to)
	return c, nil
}

// Ask sends one command, to the browser itself where session is empty, and waits for its
// answer: into is what that is read into, or nil.
func (c *Client) Ask(ctx context.Context, session, method string, params map[string]any, into any) error {
	err := c.ask(ctx, command{Session: session, Method: method, Params: params}, into)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// Navigate has a page go to an address, and returns when what that leads to is there. A browser
// breaks off when the network of its computer changes, as each container changes it: then the
// page goes there again.
func (c *Client) Navigate(ctx context.Context, session, address string) error {
	for tries := 10; ; tries-- {
		var went struct{ ErrorText string }
		if err := c.Ask(ctx, session, "Page.navigate", map[string]any{"url": address}, &went); err != nil {
			return err
		}
		switch {
		case went.ErrorText == "":
			return nil
		case went.ErrorText != "net::ERR_NETWORK_CHANGED" || tries == 0:
			return errors.New(went.ErrorText)
		}
	}
}

func (c *Client) ask(ctx context.Context, q command, into any) error {
	got := make(chan answer, 1)
	var err error
	if q.ID, err = c.expect(got); err != nil {
		return err
	}
	defer c.forget(q.ID)
	raw, err := json.Marshal(q)
	if err != nil {
		return err
	}
	raw = append(raw, 0)
	for commands := c.commands; ; {
		select {
		case commands <- raw:
			commands = nil // it is sent once
		case a := <-got:
			return a.read(into)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a answer) read(into any) error {
	switch {
	case a.failed != nil:
		return a.failed
	case a.Error != nil:
		return errors.New(a.Error.Message)
	case into == nil:
		return nil
	}
	return json.Unmarshal(a.Result, into)
}

// expect gives out the number of a command.
func (c *Client) expect(got chan<- answer) (id int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return 0, c.why
	}
	c.last++
	c.waiting[c.last] = got
	return c.last, nil
}

func (c *Client) forget(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// tell writes the commands, so that whoever asks never waits for a pipe that is full.
func (c *Client) tell(to *os.File) {
	defer to.Close()
	for {
		select {
		case raw := <-c.commands:
			if _, err := to.Write(raw); err != nil {
				return // it has ended, which listen tells
			}
		case <-c.ended:
			return
		}
	}
}

// listen hands answers to those who asked, until the browser ends.
func (c *Client) listen(from *os.File) {
	defer from.Close()
	for r := bufio.NewReader(from); ; {
		raw, err := r.ReadBytes(0)
		if err != nil {
			c.end(errEnded)
			return
		}
		var a answer
		if err := json.Unmarshal(raw[:len(raw)-1], &a); err != nil {
			c.end(fmt.Errorf("the browser says what is no answer: %w", err))
			return
		}
		c.mu.Lock()
		if got, ok := c.waiting[a.ID]; ok {
			got <- a
			delete(c.waiting, a.ID)
		}
		c.mu.Unlock()
	}
}

// end tells all who wait, and all who will ask, that there is no answer.
func (c *Client) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = why
	for _, got := range c.waiting {
		got <- answer{failed: why}
	}
	clear(c.waiting)
	close(c.ended)
}
