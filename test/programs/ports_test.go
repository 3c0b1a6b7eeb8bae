package programs

import (
	"net"
	"os/exec"
	"strconv"
	"sync"
	"testing"
)

// Between its fork and its start a program of ours holds whatever we hold: a port that was
// only tried stayed taken for so long.
func TestPortIsFreeWhileProgramsStart(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					if err := exec.Command("true").Run(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	defer starting.Wait()
	defer close(ended)
	taken := 0
	for range 2000 {
		port, giveBack, err := Port()
		Must(t, err)
		if ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
			taken++
		} else {
			Must(t, ln.Close())
		}
		giveBack()
	}
	if taken > 2 { // by programs beside these tests, which ask nobody
		t.Errorf("%d of 2,000 ports were taken", taken)
	}
}
