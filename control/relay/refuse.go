package relay

import (
	"io"
	"net"
	"time"
)

// TLS alerts (RFC 8446, 6.2) the relay sends in clear text, as no keys exist yet.
const (
	alertDecodeError      = 50
	alertInternalError    = 80
	alertUnrecognizedName = 112
)

func alertRecord(alert byte) []byte {
	const recordAlert, fatal = 21, 2
	return []byte{recordAlert, 3, 3, 0, 2, fatal, alert}
}

// refuseAtOnce is refuse for somebody of whom nothing was read and for whom there
// is no file to wait with: the answer may be lost.
func refuseAtOnce(conn net.Conn) {
	if conn.SetWriteDeadline(time.Now().Add(time.Millisecond)) == nil {
		_, _ = conn.Write(alertRecord(alertInternalError))
	}
	_ = conn.Close()
}

// refuse writes an answer and closes so that the answer arrives: closing with
// bytes unread would send a reset, which discards what the other side has not
// read yet.
func refuse(conn net.Conn, answer []byte) {
	defer conn.Close()
	const linger, most = time.Second, 64 << 10
	if err := conn.SetDeadline(time.Now().Add(linger)); err != nil {
		return
	}
	if _, err := conn.Write(answer); err != nil {
		return
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		if half.CloseWrite() != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, conn, most)
	}
}
