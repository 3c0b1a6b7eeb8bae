package kv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// The crash tests run this test binary again, as one of these roles on the
// store named by pathVariable.
const (
	roleVariable = "PORCHLIGHT_TEST_ROLE"
	pathVariable = "PORCHLIGHT_TEST_PATH"
)

// roles by name; a system adds its own.
var roles = map[string]func(path string) error{"writer": writer}

func runRole(name string) {
	role, ok := roles[name]
	if !ok {
		role = func(string) error { return fmt.Errorf("there is no role %q", name) }
	}
	if err := role(os.Getenv(pathVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func inRole(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	self := programs.Got(os.Executable())(t)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, pathVariable+"="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

const writers = 8

// pair are the two keys that one update of the writer puts; a transaction torn
// in two would leave one of them.
func pair(run string, w, i int) (a, b string) {
	return fmt.Sprintf("a/%s/%d/%d", run, w, i), fmt.Sprintf("b/%s/%d/%d", run, w, i)
}

// writer puts pairs for ever and prints each once it is acknowledged.
func writer(path string) error {
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		return err
	}
	run := fmt.Sprint(os.Getpid())
	errs := make(chan error)
	for w := range writers {
		go func() {
			for i := 0; ; i++ {
				a, b := pair(run, w, i)
				err := s.Update(context.Background(), func(tx Tx) error {
					return errors.Join(tx.Put(a, []byte(a), 0), tx.Put(b, []byte(b), 0))
				})
				if err == nil {
					// One write, short enough to be whole in the pipe.
					_, err = os.Stdout.WriteString(a + "\n")
				}
				if err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	return <-errs
}

// After kill -9 at any moment every acknowledged update is there, and no half
// of one that was not.
func TestAcknowledgedUpdatesSurviveAKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	for round := range 12 {
		cmd := inRole(t, "writer", path)
		out, err := cmd.StdoutPipe()
		programs.Must(t, err)
		programs.Must(t, cmd.Start())
		killAt := 20 + rand.IntN(400)
		var acknowledged []string
		lines := bufio.NewScanner(out)
		for lines.Scan() { // on after the kill: what was printed was acknowledged
			acknowledged = append(acknowledged, lines.Text())
			if len(acknowledged) == killAt {
				programs.Must(t, cmd.Process.Kill())
			}
		}
		err = cmd.Wait()
		if len(acknowledged) < killAt {
			t.Fatalf("the writer ended by itself: %v", err)
		}

		s, err := Open(context.Background(), path, Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		err = s.View(context.Background(), func(tx Tx) error {
			for _, a := range acknowledged {
				for _, k := range []string{a, "b" + strings.TrimPrefix(a, "a")} {
					if v, err := tx.Get(k); err != nil || string(v) != k {
						return fmt.Errorf("%s was acknowledged and reads %q: %w", k, v, err)
					}
				}
			}
			as, err := tx.Scan("a/", "", 1<<20)
			if err != nil {
				return err
			}
			bs, err := tx.Scan("b/", "", 1<<20)
			if err != nil {
				return err
			}
			if len(as) != len(bs) {
				return fmt.Errorf("%d halves and %d other halves", len(as), len(bs))
			}
			for i := range as {
				if as[i].Key[1:] != bs[i].Key[1:] {
					return fmt.Errorf("%s without its other half", as[i].Key)
				}
			}
			return nil
		})
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}
