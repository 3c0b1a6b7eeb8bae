package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"time"
)

// visitWait bounds a visit that gets no answer.
const visitWait = 10 * time.Second

// visit goes to a computer's app by a node and has it say one word.
func visit(ctx context.Context, node, name string) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, visitWait)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", node)
	if err != nil {
		return nil, err
	}
	// What matters is who answers, and that is not a stranger here.
	conn := tls.Client(raw, &tls.Config{ServerName: app.Name + "." + name + "." + domain, InsecureSkipVerify: true})
	_ = conn.SetDeadline(time.Now().Add(visitWait)) // of an open connection
	if err := ask(conn, 1); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, conn.SetDeadline(time.Time{})
}

// ask has the app give so many bytes, and takes them.
func ask(conn net.Conn, n uint64) error {
	if _, err := conn.Write(binary.BigEndian.AppendUint64(nil, n)); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, conn, int64(n))
	return err
}
