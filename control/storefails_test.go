package control

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"porchlight/control/kv"
)

// breaking is a store of which one call within a transaction fails, and all others go
// well: what is done in spite of it would be kept.
type breaking struct {
	kv.Store
	at, calls int    // the call that fails, from 1, and those there were
	again     bool   // a transaction that it made fail is run again, as one that collided is
	broke     bool   // it has failed
	wrong     string // what must not be after that
}

var errBroken = errors.New("the store broke")

// set has the nth call from now on fail.
func (s *breaking) set(n int) { s.at, s.calls, s.broke, s.wrong = n, 0, false, "" }

func (s *breaking) View(ctx context.Context, fn func(kv.Tx) error) error {
	return s.Store.View(ctx, s.within(fn))
}

func (s *breaking) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	return s.Store.ViewOf(ctx, rows, s.within(fn))
}

func (s *breaking) Update(ctx context.Context, fn func(kv.Tx) error) error {
	err := s.Store.Update(ctx, s.within(fn))
	if err == errBroken && s.again {
		err = s.Store.Update(ctx, s.within(fn))
	}
	return err
}

func (s *breaking) within(fn func(kv.Tx) error) func(kv.Tx) error {
	return func(tx kv.Tx) error {
		broken := false
		err := fn(askedTx{tx, func(string, ...string) error {
			if broken {
				s.wrong = "the store is asked more"
			}
			if s.calls++; s.calls != s.at {
				return nil
			}
			broken, s.broke = true, true
			return errBroken
		}})
		if broken && err != errBroken {
			s.wrong = fmt.Sprintf("the transaction ends with %v", err)
		}
		return err
	}
}

// done notes what is done outside of the store.
func (s *breaking) done(what string) {
	if s.broke && !s.again {
		s.wrong = what
	}
}

// unless is err but for the refusal that is right.
func unless(err error, code string) error {
	if IsRefusal(err, code) {
		return nil
	}
	return err
}

// Weakness: within a transaction nobody looks whether the store failed, so that what is
// decided afterwards is decided on rows that seem not to be there. Checked: wherever the
// store fails, the transaction ends with its error, unchanged, asks it nothing more,
// nothing is answered, and nothing is done outside of the store.
func TestNothingComesOfAStoreThatFails(t *testing.T) {
	t.Parallel()
	for what, call := range calls {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newLived(t)
			for n := 1; ; n++ {
				clear(l.core.pace.windows)
				l.store.set(n)
				out, err := call(l, t.Context())
				if !l.store.broke {
					if err != nil || n == 1 {
						t.Fatalf("with %d calls that go well: %v", n-1, err)
					}
					return
				}
				if l.store.wrong != "" || !errors.Is(err, errBroken) || out != nil && !reflect.ValueOf(out).IsZero() {
					t.Errorf("the %dth call failed: %s, answered is %+v, %v", n, l.store.wrong, out, err)
				}
			}
		})
	}
}

// A transaction that the store runs again, because it collided with another, is whole.
func TestWhatIsRunAgainIsWhole(t *testing.T) {
	t.Parallel()
	l := newLived(t)
	l.store.again = true
	for n, broke := 1, true; broke; n++ {
		name := fmt.Sprint("nest", n)
		l.store.set(n)
		e, err := l.Computers.Ensure(t.Context(), name+"@example.com", name)
		if broke = l.store.broke; err != nil || l.store.wrong != "" {
			t.Fatalf("the %dth call collided: %s, %v", n, l.store.wrong, err)
		}
		l.store.set(0)
		if c, err := l.Agents.Authenticate(t.Context(), e.Credential); err != nil || c.Name != name {
			t.Errorf("the %dth call collided: %+v, %v", n, c, err)
		}
	}
}
