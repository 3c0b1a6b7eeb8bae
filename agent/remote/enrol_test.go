package remote

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// enroller answers polls with what it is told, the last answer again and again.
type enroller struct {
	started controlapi.EnrolStarted
	answers []error
	polls   []time.Time
}

func (e *enroller) Enrol(context.Context, controlapi.EnrolRequest) (controlapi.EnrolStarted, error) {
	return e.started, nil
}

func (e *enroller) PollEnrol(_ context.Context, p controlapi.EnrolPoll) (controlapi.Enrolled, error) {
	if p.DeviceCode != "device-code" {
		return controlapi.Enrolled{}, &controlapi.Error{Code: controlapi.CodeInvalid, Message: "Another code."}
	}
	answer := e.answers[min(len(e.polls), len(e.answers)-1)]
	e.polls = append(e.polls, time.Now())
	if answer != nil {
		return controlapi.Enrolled{}, answer
	}
	return controlapi.Enrolled{Credential: "credential"}, nil
}

func coded(code string) error { return &controlapi.Error{Code: code, Message: "Said " + code + "."} }

func TestEnrolmentIsWaitedFor(t *testing.T) {
	t.Parallel()
	pending, slow := coded(controlapi.CodeAuthorizationPending), coded(controlapi.CodeSlowDown)
	for name, c := range map[string]struct {
		answers []error
		every   []time.Duration // between the polls, from the beginning on
		want    error
	}{
		"confirmed":          {[]error{pending, pending, nil}, []time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second}, nil},
		"slowed down":        {[]error{slow, slow, nil}, []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second}, nil},
		"away for a while":   {[]error{coded(controlapi.CodeUnavailable), nil}, []time.Duration{5 * time.Second, 5 * time.Second}, nil},
		"declined":           {[]error{coded(controlapi.CodeAccessDenied)}, []time.Duration{5 * time.Second}, ErrEnrolDenied},
		"expired there":      {[]error{coded(controlapi.CodeExpiredToken)}, []time.Duration{5 * time.Second}, ErrEnrolExpired},
		"refused in another": {[]error{coded(controlapi.CodeInvalid)}, []time.Duration{5 * time.Second}, coded(controlapi.CodeInvalid)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				control := &enroller{
					started: controlapi.EnrolStarted{DeviceCode: "device-code", UserCode: "BCDF-GHJK", ExpiresIn: 600, Interval: 5},
					answers: c.answers,
				}
				last := time.Now()
				e, err := BeginEnrolment(t.Context(), control, controlapi.EnrolRequest{})
				if err != nil || e.UserCode != "BCDF-GHJK" || !e.ExpiresAt.Equal(last.Add(10*time.Minute)) {
					t.Fatalf("%+v, %v", e, err)
				}
				enrolled, err := e.Wait(t.Context())
				switch {
				case c.want == nil && (err != nil || enrolled.Credential != "credential"):
					t.Errorf("%+v, %v", enrolled, err)
				case c.want != nil && (err == nil || err.Error() != c.want.Error()):
					t.Errorf("err = %v, want %v", err, c.want)
				}
				if len(control.polls) != len(c.every) {
					t.Fatalf("it polled %d times", len(control.polls))
				}
				for i, at := range control.polls {
					if at.Sub(last) != c.every[i] {
						t.Errorf("poll %d came after %v, want %v", i, at.Sub(last), c.every[i])
					}
					last = at
				}
			})
		})
	}
}

func TestEnrolmentEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		control := &enroller{
			// What is asked of the computer is bounded, whoever asks.
			started: controlapi.EnrolStarted{DeviceCode: "device-code", ExpiresIn: 1 << 30, Interval: -1},
			answers: []error{coded(controlapi.CodeAuthorizationPending)},
		}
		e := programs.Got(BeginEnrolment(t.Context(), control, controlapi.EnrolRequest{}))(t)
		began := time.Now()
		if _, err := e.Wait(t.Context()); !errors.Is(err, ErrEnrolExpired) {
			t.Errorf("err = %v", err)
		}
		if took := time.Since(began); took != mostEnrolTime || len(control.polls) > int(mostEnrolTime/leastInterval) {
			t.Errorf("it took %v and %d polls", took, len(control.polls))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := e.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("given up, err = %v", err)
		}
	})
}
