package upstream

import (
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

// Broken is an answer of an app that cannot be used, found by us: the reason of a
// Failure.
type Broken struct {
	State  agentapi.Health
	Reason string
}

func (b *Broken) Error() string { return "the app's answer cannot be used: " + b.Reason }

// What Sniff and the proxy find wrong themselves.
var (
	ErrSpeaksTLS   = &Broken{agentapi.HealthHTTPS, "it answered with TLS, and was spoken to without"}
	ErrSpeaksHTTP2 = &Broken{agentapi.HealthH2C, "it answered with HTTP/2, and was spoken to in HTTP/1.1"}
	ErrLongHead    = &Broken{agentapi.HealthWrong, "the head of its answer was longer than 256 KiB"}
	ErrUnasked101  = &Broken{agentapi.HealthWrong, "it switched protocols without being asked"}
	ErrStatus      = &Broken{agentapi.HealthWrong, "it answered with a status that is no number from 100 to 999"}
)

// Sniff looks at the first bytes an app said on a connection on which HTTP/1.1 was
// spoken to it. It returns an error where they begin another protocol that is known.
func Sniff(first []byte) error {
	const (
		alert, handshake = 0x15, 0x16 // TLS records
		settings, goAway = 4, 7       // frames of HTTP/2, whose length is less than 64 KiB
	)
	switch {
	case len(first) == 0:
	case (first[0] == alert || first[0] == handshake) && (len(first) == 1 || first[1] == 3):
		return ErrSpeaksTLS
	case len(first) > 3 && first[0] == 0 && (first[3] == settings || first[3] == goAway):
		return ErrSpeaksHTTP2
	}
	return nil
}

// saying are parts of what net/http, httputil and their kin say of answers, and the
// reasons these are. They have no types for them; a test goes through all.
var saying = []struct{ part, reason string }{
	{"multiple Content-Length headers", "it answered with two lengths"},
	{"bad Content-Length", "it answered with a length that is no number"},
	{"invalid empty Content-Length", "it answered with a length that is no number"},
	{"unsupported transfer encoding", "it answered in a transfer encoding that is not known"},
	{"too many transfer encodings", "it answered in a transfer encoding that is not known"},
	{"invalid Trailer key", "it announced a trailer that may not be one"},
	{"malformed HTTP status code", "it answered with a status that is no number from 100 to 999"},
	{"malformed HTTP version", "its first line does not begin with a version of HTTP"},
	{"malformed HTTP response", "its first line is none of HTTP"},
	{"malformed MIME header", "a header line of its answer is malformed"},
	{"message too large", "the head of its answer was longer than 256 KiB"},
	{"response headers exceeded", "the head of its answer was longer than 256 KiB"},
	{"1xx informational responses", "it sent more interim answers than can be read"},
	{"switch protocol", "it switched protocols without being asked"},
	{"looked like an HTTP/1.1 header", "it answered with HTTP/1.1, and was spoken to in HTTP/2"},
	{"missing status pseudo header", "it answered without a status"},
	{"malformed non-numeric status", "it answered with a status that is no number from 100 to 999"},
	{"reading trailer", "it ended in the middle of its trailers"},
	{"long trailer", "its trailers were too long"},
	{"bad trailer key", "it sent a trailer that may not be one"},
	{"too much non-data", "it sent chunks that are almost all framing"},
	{"chunk", "it sent a chunk that is malformed"},
	{"header line too long", "it sent a chunk that is malformed"},
	{"server closed idle connection", closedBefore},
	{"GOAWAY", closedBefore},
}

const (
	closedBefore = "it closed the connection before it answered"
	brokeOff     = "it broke off in the middle of its answer"
)

// Explain says what was wrong, by the error of dialling an app, of TLS with it, of
// sending it a request, or of reading its answer.
func Explain(err error) Failure {
	if broken, ok := errors.AsType[*Broken](err); ok {
		return failure(broken.State, broken.Reason, "")
	}
	op, network := errors.AsType[*net.OpError](err)
	switch {
	case network && op.Op == "dial":
		return explainDial(err)
	case isTLS(err):
		return failure(agentapi.HealthWrong, "it did not answer with TLS as it should", err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return failure(agentapi.HealthSilent, "it did not answer in time", "")
	}
	text := err.Error()
	for _, s := range saying {
		if strings.Contains(text, s.part) {
			return failure(agentapi.HealthWrong, s.reason, text)
		}
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return failure(agentapi.HealthWrong, brokeOff, "")
	case errors.Is(err, io.EOF):
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
	return record || alert || strings.Contains(err.Error(), "tls: ")
}

// failure makes a sentence of a reason. text is what the owner is told besides.
func failure(state agentapi.Health, reason, text string) Failure {
	detail := strings.ToUpper(reason[:1]) + reason[1:]
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
