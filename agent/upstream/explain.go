package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"porchlight/agent/agentapi"
)

// Failure is why an app gave no answer, or not a whole one.
type Failure struct {
	State agentapi.Health
	// Reason is a clause that begins with a small letter and holds nothing the app
	// said, so that any visitor may read it.
	Reason string
	// Detail is a sentence for the owner, with what the app said where that helps.
	Detail string
}

// Sentence is the reason as one, for what is kept and logged of a visitor's request.
func (f Failure) Sentence() string { return sentence(f.Reason) + "." }

// sentence is a clause with a capital letter.
func sentence(clause string) string { return strings.ToUpper(clause[:1]) + clause[1:] }

// Broken is an answer of an app that cannot be used, found by us: the reason of a
// Failure.
type Broken struct {
	State  agentapi.Health
	Reason string
	said   string // by the app; empty for what needs no proof
}

func (b *Broken) Error() string { return "the app's answer cannot be used: " + b.Reason }

// What Sniff and the proxy find wrong themselves.
var (
	errSpeaksTLS   = &Broken{State: agentapi.HealthHTTPS, Reason: "it answered with TLS, and was spoken to without"}
	errSpeaksHTTP2 = &Broken{State: agentapi.HealthH2C, Reason: "it answered with HTTP/2, and was spoken to in HTTP/1.1"}
	errSpeaksHTTP1 = &Broken{State: agentapi.HealthWrong, Reason: onlyHTTP1}
	ErrLongHead    = &Broken{State: agentapi.HealthWrong, Reason: longHead}
	ErrUnasked101  = &Broken{State: agentapi.HealthWrong, Reason: unasked101}
	ErrStatus      = &Broken{State: agentapi.HealthWrong, Reason: noStatus}
	ErrName        = &Broken{State: agentapi.HealthWrong, Reason: badLine}
)

// Reasons that are found in more ways than one.
const (
	closedBefore = "it closed the connection before it answered"
	brokeOff     = "it broke off in the middle of its answer"
	onlyHTTP1    = "it answered with HTTP/1.1, and was spoken to in HTTP/2"
	longHead     = "the head of its answer was longer than 256 KiB"
	unasked101   = "it switched protocols without being asked"
	noStatus     = "it answered with a status that is no number from 100 to 999"
	notHTTP      = "its answer does not begin as HTTP does"
	badLine      = "a header line of its answer is malformed"
	badLength    = "it answered with a length that is no number"
	badEncoding  = "it answered in a transfer encoding that is not known"
	badTrailer   = "it sent a trailer that may not be one"
	oddTrailers  = "its trailers were too long, or not whole"
	badChunk     = "it sent a chunk that is malformed"
)

// Sniff looks at the first bytes an app said on a connection on which HTTP/1.1 was
// spoken to it. It returns an error where they begin no answer of that.
func Sniff(first []byte) error {
	const (
		alert, handshake = 0x15, 0x16 // TLS records
		settings, goAway = 4, 7       // frames of HTTP/2, whose length is less than 64 KiB
	)
	switch {
	case len(first) == 0:
	case (first[0] == alert || first[0] == handshake) && (len(first) == 1 || first[1] == 3):
		return errSpeaksTLS
	case len(first) > 3 && first[0] == 0 && (first[3] == settings || first[3] == goAway):
		return errSpeaksHTTP2
	case !strings.HasPrefix(http1, string(first[:min(len(first), len(http1))])):
		return &Broken{agentapi.HealthWrong, notHTTP, firstLine(first)}
	}
	return nil
}

// SniffHTTP2 is Sniff for a connection on which HTTP/2 was spoken.
func SniffHTTP2(first []byte) error {
	switch err := Sniff(first); {
	case err == nil && len(first) > 0: // HTTP/1
		return errSpeaksHTTP1
	case errors.Is(err, errSpeaksTLS):
		return err
	}
	return nil
}

// MaxLine is how much is told of what is no HTTP, in bytes.
const MaxLine = 60

// firstLine is what there is up to a line's end, where anything is before that.
func firstLine(first []byte) string {
	first = first[:min(len(first), MaxLine)]
	if end := bytes.IndexAny(first, "\r\n"); end > 0 {
		first = first[:end]
	}
	return string(first)
}

// http1 is what every answer of HTTP/1 begins with.
const http1 = "HTTP/"

// saying are parts of what net/http, httputil and their kin say of answers, and the
// reasons these are. They have no types for them; a test goes through all.
var saying = []struct{ part, reason string }{
	{"multiple Content-Length headers", "it answered with two lengths"},
	{"bad Content-Length", badLength},
	{"invalid empty Content-Length", badLength},
	{"unsupported transfer encoding", badEncoding},
	{"too many transfer encodings", badEncoding},
	{"invalid Trailer key", badTrailer},
	{"malformed HTTP status code", noStatus},
	{"malformed HTTP version", notHTTP},
	{"malformed HTTP response", notHTTP},
	{"malformed MIME header", badLine},
	{"message too large", longHead},
	{"response headers exceeded", longHead},
	{"1xx informational responses", "it sent more interim answers than can be read"},
	{"switch protocol", unasked101},
	{"switch to invalid protocol", unasked101},
	{"looked like an HTTP/1.1 header", onlyHTTP1},
	{"status pseudo header", noStatus},
	{"reading trailer", oddTrailers},
	{"long trailer", oddTrailers},
	{"bad trailer key", badTrailer},
	{"too much non-data", "it sent chunks that are almost all framing"},
	{"chunk", badChunk},
	{"header line too long", badChunk},
	{"server closed idle connection", closedBefore},
	{"GOAWAY", closedBefore},
}

// Explain says what was wrong, by the error of dialling an app, of TLS with it, of
// sending it a request, or of reading its answer.
func Explain(err error) Failure {
	if broken, ok := errors.AsType[*Broken](err); ok {
		return failure(broken.State, broken.Reason, broken.said)
	}
	if socket, ok := errors.AsType[SocketError](err); ok {
		return Failure{agentapi.HealthNothing, "its socket cannot be used", socket.Error()}
	}
	op, network := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, ErrStranger):
		return failure(agentapi.HealthNothing, "another user's program listens where it should be, or nothing does any more", "")
	case errors.Is(err, ErrKey):
		return failure(agentapi.HealthWrong, "it shows another key than the owner approved", "")
	case errors.Is(err, ErrNoHTTP2):
		return failure(agentapi.HealthWrong, "it speaks no HTTP/2 over TLS, which gRPC needs", "")
	case network && op.Op == "dial":
		return explainDial(err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return failure(agentapi.HealthSilent, "it did not answer in time", "")
	case isTLS(err):
		return failure(agentapi.HealthWrong, "it did not answer with TLS, and was spoken to with", err.Error())
	}
	text := err.Error()
	for _, s := range saying {
		if strings.Contains(text, s.part) {
			if s.reason == badLine {
				text = "" // it is the line, which may be a cookie
			}
			return failure(agentapi.HealthWrong, s.reason, text)
		}
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return failure(agentapi.HealthWrong, brokeOff, "")
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed): // by our end, which read before that the app's was closed
		return failure(agentapi.HealthWrong, closedBefore, "")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failure(agentapi.HealthWrong, "it reset the connection", "")
	}
	return failure(agentapi.HealthWrong, "its answer could not be read", text)
}

func explainDial(err error) Failure {
	switch timeout, is := errors.AsType[net.Error](err); {
	case errors.Is(err, fs.ErrNotExist):
		return failure(agentapi.HealthNothing, "its socket is not there", "")
	case errors.Is(err, fs.ErrPermission):
		return failure(agentapi.HealthNothing, "its socket may not be opened", "")
	case is && timeout.Timeout():
		return failure(agentapi.HealthSilent, "it takes no connections", "")
	}
	return failure(agentapi.HealthNothing, "nothing listens there", "")
}

func isTLS(err error) bool {
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return record || alert || strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "agree on TLS: ")
}

// failure makes a sentence of a reason. text is what the owner is told besides.
func failure(state agentapi.Health, reason, text string) Failure {
	detail := sentence(reason)
	if text != "" {
		detail += " (" + printable(text) + ")"
	}
	return Failure{state, reason, detail + "."}
}

// printable is an error's text with what a terminal or a page could obey written
// out, and no longer than a line or two.
func printable(text string) string {
	const most = 200
	var b strings.Builder
	for _, r := range text {
		if b.Len() > most {
			b.WriteString("…")
			break
		}
		if unicode.IsGraphic(r) && r != unicode.ReplacementChar {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
