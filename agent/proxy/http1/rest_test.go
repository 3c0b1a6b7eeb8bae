package http1

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// sized remembers how much each read had room for.
type sized struct {
	faulty
	rooms []int
}

func (s *sized) Read(p []byte) (int, error) {
	s.rooms = append(s.rooms, len(p))
	return s.faulty.Read(p)
}

// Requests of each length around firstSize are answered as they come, two after another
// on a connection, and a connection at rest waits for each without a buffer.
func TestRestWithoutABuffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, restWithoutABuffer) // or a slow machine has the clock read beside a request
}

func restWithoutABuffer(t *testing.T) {
	s := New(Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Path", r.URL.Path)
	})})
	for size := len(plainGet); size <= 3*firstSize; size++ {
		path := "/" + strings.Repeat("x", size-len(plainGet))
		ours, theirs := net.Pipe()
		conn := &sized{faulty: faulty{Conn: ours}}
		ended := make(chan bool)
		go func() {
			_, handed := s.Serve(t.Context(), conn)
			ended <- handed
		}()
		answers := bufio.NewReader(theirs)
		for range 2 {
			_, err := theirs.Write([]byte(strings.Replace(plainGet, "/", path, 1)))
			if err != nil {
				t.Fatal(size, err)
			}
			res, err := http.ReadResponse(answers, nil)
			if err != nil || res.Header.Get("X-Path") != path {
				t.Fatal(size, err, res)
			}
		}
		theirs.Close()
		if <-ended {
			t.Errorf("%d bytes: given to net/http", size)
		}
		reads := 1
		if size > firstSize {
			reads = 2
		}
		if len(conn.rooms) != 2*reads+1 || conn.rooms[0] > firstSize || conn.rooms[reads] > firstSize || conn.rooms[2*reads] > firstSize {
			t.Errorf("%d bytes: read into rooms of %v", size, conn.rooms)
		}
	}
}

// What has just begun when the visitor goes is net/http's to judge, as ever.
func TestEndInsideAHead(t *testing.T) {
	t.Parallel()
	for size := firstSize - 1; size <= firstSize+1; size++ {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Write([]byte("GET /" + strings.Repeat("x", size-len("GET /"))))
			theirs.Close()
		}()
		rest, handed := New(Config{}).Serve(t.Context(), &faulty{Conn: ours})
		if !handed || len(rest) != size {
			t.Errorf("%d bytes of a head: %v, %q", size, handed, rest)
		}
	}
}
