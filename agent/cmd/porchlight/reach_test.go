package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// reach listens nowhere but on this computer, whatever it is told.
func TestReachListensHereAlone(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"5432": "127.0.0.1:5432", "127.0.0.1:5432": "127.0.0.1:5432", "127.8.0.1:5432": "127.8.0.1:5432", "localhost:5432": "127.0.0.1:5432",
		"[::1]:5432": "[::1]:5432", "127.0.0.1:0": "127.0.0.1:0",
		"": "", ":5432": "", "0.0.0.0:5432": "", "[::]:5432": "", "192.168.1.2:5432": "", "maya.example:5432": "", "127.0.0.1": "", "70000": "", "127.0.0.1:http": "", "::1:5432": "",
	} {
		if got, err := loopback(listen); got != want || (err == nil) != (want != "") {
			t.Errorf("-L %q listens at %q, %v", listen, got, err)
		}
	}
	for _, line := range []string{"reach", "reach ssh", "reach ssh.maya.example -L 0.0.0.0:22", "reach ssh.maya.example -L 22 --stdio"} {
		if code := run(context.Background(), strings.Fields(line), newTerminal(io.Discard, io.Discard)); code != 2 {
			t.Errorf("%s ends with %d, want 2", line, code)
		}
	}
}

// Input and output are one connection of which each side ends by itself.
func TestReachOverInputAndOutput(t *testing.T) {
	t.Parallel()
	in, out := net.Pipe()
	t.Cleanup(func() { in.Close() })
	var closed bytes.Buffer
	conn := newStandard(strings.NewReader("hello"), struct {
		io.Writer
		io.Closer
	}{&closed, out})
	if got := programs.Got(io.ReadAll(conn))(t); string(got) != "hello" {
		t.Errorf("it reads %q", got)
	}
	_, err := conn.Write([]byte("world"))
	programs.Must(t, err, conn.CloseWrite())
	if closed.String() != "world" {
		t.Errorf("it writes %q", closed.String())
	}
	if _, err := out.Write([]byte("more")); err == nil {
		t.Error("its output is open")
	}
	programs.Must(t, conn.Close())
}
