package reach

import (
	"errors"
	"io"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// Weakness: any page that somebody visits can have their browser send to a port of this
// computer, and databases have taken requests of HTTP for commands.
// Attack: a form, a fetch, a WebSocket, a name that is bound anew, and a head of many bytes.
// Checked: nothing of it is passed on; what programs say is, byte for byte.
func TestPagesAreNotLetThrough(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		sent string
		page bool
	}{
		"a form":            {"POST / HTTP/1.1\r\nHost: 127.0.0.1:5432\r\nOrigin: https://evil.example\r\nContent-Length: 9\r\n\r\nFLUSHALL\n", true},
		"a picture":         {"GET /x.png HTTP/1.1\r\nHost: localhost:5432\r\nSec-Fetch-Site: cross-site\r\n\r\n", true},
		"a preflight":       {"OPTIONS / HTTP/1.1\r\nAccess-Control-Request-Method: QUIT\r\nOrigin: null\r\n\r\n", true},
		"a WebSocket":       {"GET / HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n", true},
		"a name bound anew": {"GET / HTTP/1.1\r\nHost: evil.example:5432\r\nUser-Agent: Mozilla/5.0 (X11)\r\nAccept: */*\r\n\r\n", true},
		"a long address":    {"GET /" + strings.Repeat("a", 2*maxHead) + " HTTP/1.1\r\nOrigin: https://evil.example\r\n\r\n", true},
		"ssh":               {"SSH-2.0-OpenSSH_9.2p1\r\n", false},
		"nothing":           {"", false},
		"one byte":          {"P", false},
		"no address":        {"GET key\r\n", false},
		"curl":              {"GET /a?Origin: HTTP/1.1\r\nHost: 127.0.0.1:9200\r\nUser-Agent: curl/7.88.1\r\n\r\nOrigin: in the body", false},
		"by hand":           {"GET / HTTP/1.0\n\n", false},
		"cut":               {"GET / HTTP/1.0\r\n", false},
		"zeros":             {strings.Repeat("\x00", 100<<10), false},
		"a head of another": {"GETTY /\r\nOrigin: x\r\n\r\n", false},
	} {
		ours, theirs := programs.Connected(t)
		go func() {
			_, _ = io.WriteString(theirs, c.sent)
			_ = theirs.CloseWrite()
		}()
		got, err := io.ReadAll(NoPages(ours))
		if c.page && (!errors.Is(err, ErrPage) || len(got) > 0) || !c.page && (err != nil || string(got) != c.sent) {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
		ours.Close()
	}
}
