package local

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"porchlight/agent/procinfo"
	"porchlight/internal/durable"
	"porchlight/internal/socket"
	"porchlight/internal/words"
)

// portFile keeps the port of the local relay: it is part of every address, so it
// must not move from one start to the next.
const portFile = "https-port"

// listen opens the local relay's listeners: addr, and the other loopback
// address with the same port where this computer has one. Port 0 means the port
// of the last time, or a free one that is then kept.
func listen(dataDir, addr string) ([]net.Listener, int, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, 0, words.Errorf("%q is not an address of the form 127.0.0.1:8443", addr)
	}
	ip := net.ParseIP(host)
	if ip == nil || !ip.IsLoopback() {
		return nil, 0, words.Errorf("local mode serves this computer alone, so it listens on 127.0.0.1 or [::1] and not on %q", host)
	}
	kept := 0
	if portText == "0" {
		if kept, err = readPort(dataDir); err != nil {
			return nil, 0, err
		}
		portText = strconv.Itoa(kept)
	}
	listeners, err := listenBoth(net.Listen, host, portText)
	if err != nil {
		return nil, 0, err
	}
	port := listeners[0].Addr().(*net.TCPAddr).Port
	// A port of which somebody has the other half is not to be kept.
	if addr == net.JoinHostPort(host, "0") && kept == 0 {
		if err := writePort(dataDir, port); err != nil {
			closeAll(listeners)
			return nil, 0, err
		}
	}
	return listeners, port, nil
}

// mostPorts is how many free ports are tried: somebody may have the other half of one.
const mostPorts = 8

// opener is net.Listen.
type opener func(network, address string) (net.Listener, error)

// listenBoth listens on a port of one loopback address, and on the same of the other
// where this computer has one. Port 0 is any of which nobody has a half.
func listenBoth(open opener, host, port string) (listeners []net.Listener, err error) {
	for range mostPorts {
		if listeners, err = listenOnce(open, host, port); err == nil || port != "0" {
			break
		}
	}
	return listeners, err
}

func listenOnce(open opener, host, port string) ([]net.Listener, error) {
	address := net.JoinHostPort(host, port)
	first, err := open("tcp", address)
	if err != nil {
		return nil, procinfo.CannotListen(err, address, "--https")
	}
	other := "::1"
	if net.ParseIP(host).To4() == nil {
		other = "127.0.0.1"
	}
	address = net.JoinHostPort(other, strconv.Itoa(first.Addr().(*net.TCPAddr).Port))
	second, err := open("tcp", address)
	switch {
	case err == nil:
		return []net.Listener{first, second}, nil
	case socket.InUse(err):
		// Browsers try both, so half of it would be somebody else's page.
		first.Close()
		return nil, procinfo.CannotListen(err, address, "--https")
	}
	return []net.Listener{first}, nil
}

// mayListen has a port that is taken refused before anything is made in a new
// data directory. In one that was used before there is nothing to spare, and that
// another Porchlight holds it is to be said first.
func mayListen(dataDir, addr string) error {
	if _, port, err := net.SplitHostPort(addr); err == nil && port == "0" {
		return nil
	}
	if _, err := os.Stat(storePath(dataDir)); err == nil {
		return nil
	}
	listeners, _, err := listen(dataDir, addr)
	closeAll(listeners)
	return err
}

func readPort(dataDir string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(dataDir, portFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, words.Errorf("cannot read the port kept in the data directory: %w", err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || port < 1 || port > 65535 {
		return 0, nil // damaged: choose anew
	}
	return port, nil
}

func writePort(dataDir string, port int) error {
	if err := durable.Replace(filepath.Join(dataDir, portFile), []byte(strconv.Itoa(port)+"\n")); err != nil {
		return words.Errorf("cannot keep the port in the data directory: %w", err)
	}
	return nil
}
