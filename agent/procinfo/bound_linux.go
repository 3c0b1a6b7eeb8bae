package procinfo

import (
	"bytes"
	"os"
)

var listens = []byte(" " + stateListen + " ")

func allBound() (all []Bound) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(raw) {
			if !bytes.Contains(line, listens) {
				continue // of a busy computer most lines are connections
			}
			if r, ok := readRow(line); ok && r.state == stateListen {
				if address := tableAddress(r.local); address.IsValid() {
					all = append(all, Bound{address, described(r.socket)})
				}
			}
		}
	}
	return all
}
