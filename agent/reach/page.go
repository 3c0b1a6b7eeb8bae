package reach

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"strings"
)

// ErrPage is of a connection that a web page had this person's browser make: any page can have
// it send to any port of this computer, and some of that may mean something to a database.
var ErrPage = errors.New("a browser connected, which is not let through: a page could speak to the app. Publish a web app without --tcp")

// maxHead is how many bytes the head of a browser's request has at most.
const maxHead = 64 << 10

var (
	methods = []string{"GET /", "HEAD /", "POST /", "PUT /", "PATCH /", "DELETE /", "OPTIONS /"}
	// browsers say one of these in whatever a page has them send, and no page keeps them from it.
	browsers = []string{"\norigin:", "\nsec-fetch-", "\nsec-websocket-key:", "\nuser-agent: mozilla/"}
)

// NoPages is a connection of a program of this computer, which reads as ErrPage where a browser
// made it.
func NoPages(conn *net.TCPConn) *Program { return &Program{TCPConn: conn} }

// Program is what NoPages returns.
type Program struct {
	*net.TCPConn
	looked bool
	held   []byte // was read, and is still to be passed on
}

func (p *Program) Read(b []byte) (int, error) {
	for !p.looked {
		piece := make([]byte, 4<<10)
		n, err := p.TCPConn.Read(piece)
		p.held = append(p.held, piece[:n]...)
		head, http := headOf(p.held)
		switch {
		case err != nil || !http:
			p.looked = true
		case head == nil && len(p.held) < maxHead:
		case head == nil, slices.ContainsFunc(browsers, func(mark string) bool { return strings.Contains(strings.ToLower(string(head)), mark) }):
			return 0, ErrPage
		default:
			p.looked = true
		}
	}
	if len(p.held) > 0 {
		n := copy(b, p.held)
		p.held = p.held[n:]
		return n, nil
	}
	return p.TCPConn.Read(b)
}

// headOf is the head of what may be a request of HTTP, nil before its end.
func headOf(begins []byte) (head []byte, http bool) {
	http = slices.ContainsFunc(methods, func(method string) bool {
		n := min(len(method), len(begins))
		return string(begins[:n]) == method[:n]
	})
	for _, end := range []string{"\r\n\r\n", "\n\n"} {
		if i := bytes.Index(begins, []byte(end)); i >= 0 {
			return begins[:i], http
		}
	}
	return nil, http
}
