package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
)

// lengthBody is the body of an answer that said its length.
type lengthBody struct {
	r    *bufio.Reader
	left int64
}

func (b *lengthBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case b.left == 0:
		return n, io.EOF
	case errors.Is(err, io.EOF):
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *lengthBody) Close() error { return nil }

// writeHere writes what is left, all of which has come.
func (b *lengthBody) writeHere(w io.Writer) error {
	n := int(b.left)
	here, err := b.r.Peek(n)
	if err != nil {
		return brokenAnswer{err}
	}
	_, err = w.Write(here)
	b.r.Discard(n) // what was peeked at
	b.left = 0
	return err
}

// chunkedBody is the body of an answer in chunks, with the trailers that nothing
// announced.
type chunkedBody struct {
	io.Reader
	r     *bufio.Reader
	res   *http.Response
	ended error // what every later Read gets
}

func (b *chunkedBody) Read(p []byte) (int, error) {
	if b.ended != nil {
		return 0, b.ended
	}
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		if err = b.readTrailer(); err == nil {
			err = io.EOF
		}
	}
	b.ended = err
	return n, err
}

func (b *chunkedBody) Close() error { return nil }

// Errors of trailers, with net/http's words, which upstream.Explain knows.
var (
	errTrailerEOF  = errors.New("http: unexpected EOF reading trailer")
	errTrailerLong = errors.New("http: suspiciously long trailer after chunked body")
)

// readTrailer reads what follows the last chunk, as net/http does.
func (b *chunkedBody) readTrailer() error {
	next, err := b.r.Peek(2)
	if bytes.Equal(next, []byte("\r\n")) {
		b.r.Discard(2)
		return nil
	}
	if len(next) < 2 {
		return errTrailerEOF
	}
	if err != nil {
		return err
	}
	if !endsHere(b.r) {
		return errTrailerLong
	}
	h, err := textproto.NewReader(b.r).ReadMIMEHeader()
	if errors.Is(err, io.EOF) {
		return errTrailerEOF
	}
	b.res.Trailer = http.Header(h)
	return err
}

// endsHere says whether an empty line comes within what the buffer can hold.
func endsHere(r *bufio.Reader) bool {
	for n := 4; ; n++ {
		here, err := r.Peek(n)
		if bytes.HasSuffix(here, []byte("\r\n\r\n")) {
			return true
		}
		if err != nil {
			return false
		}
	}
}
