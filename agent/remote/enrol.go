package remote

import (
	"context"
	"errors"
	"time"

	"porchlight/control/controlapi"
)

// Bounds on the interval at which a control plane may have itself polled.
const (
	leastInterval = time.Second
	mostInterval  = time.Minute
	// slowerBy is how much seldomer an enrolment is asked about after slow_down
	// (RFC 8628, section 3.5).
	slowerBy = 5 * time.Second
	// mostEnrolTime bounds how long an enrolment can be waited for.
	mostEnrolTime = 30 * time.Minute
)

// ErrEnrolExpired is returned when nobody confirmed an enrolment in time.
var ErrEnrolExpired = errors.New("nobody confirmed it in time")

// ErrEnrolDenied is returned when its owner said no to an enrolment.
var ErrEnrolDenied = errors.New("it was declined in the browser")

// EnrolControl is the control plane as enrolling needs it; *controlapi.Client is
// one.
type EnrolControl interface {
	Enrol(ctx context.Context, r controlapi.EnrolRequest) (controlapi.EnrolStarted, error)
	PollEnrol(ctx context.Context, r controlapi.EnrolPoll) (controlapi.Enrolled, error)
}

// Enrolment is one that was begun and waits for its owner (RFC 8628).
type Enrolment struct {
	control EnrolControl
	code    string // device code
	every   time.Duration

	UserCode                string
	VerificationURL         string
	VerificationURLComplete string
	ExpiresAt               time.Time
}

// BeginEnrolment asks a control plane to take this computer.
func BeginEnrolment(ctx context.Context, control EnrolControl, r controlapi.EnrolRequest) (*Enrolment, error) {
	started, err := control.Enrol(ctx, r)
	if err != nil {
		return nil, err
	}
	lives := min(time.Duration(started.ExpiresIn)*time.Second, mostEnrolTime)
	return &Enrolment{
		control:                 control,
		code:                    started.DeviceCode,
		every:                   min(max(time.Duration(started.Interval)*time.Second, leastInterval), mostInterval),
		UserCode:                started.UserCode,
		VerificationURL:         started.VerificationURI,
		VerificationURLComplete: started.VerificationURIComplete,
		ExpiresAt:               time.Now().Add(lives),
	}, nil
}

// Wait asks until the enrolment was confirmed. It returns ErrEnrolDenied,
// ErrEnrolExpired, another refusal of the control plane, or ctx's error. An
// answer that does not come is waited for like one that says "not yet".
func (e *Enrolment) Wait(ctx context.Context) (controlapi.Enrolled, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, e.ExpiresAt, ErrEnrolExpired)
	defer cancel()
	every := e.every
	var err error
	for {
		wait, _ := controlapi.Obey(err, every)
		sleep(ctx, nil, wait)
		if ctx.Err() != nil {
			return controlapi.Enrolled{}, context.Cause(ctx)
		}
		var enrolled controlapi.Enrolled
		if enrolled, err = e.control.PollEnrol(ctx, controlapi.EnrolPoll{DeviceCode: e.code}); err == nil {
			return enrolled, nil
		}
		refusal, ok := errors.AsType[*controlapi.Error](err)
		if !ok {
			return controlapi.Enrolled{}, err
		}
		switch refusal.Code {
		case controlapi.CodeAuthorizationPending, controlapi.CodeUnavailable, controlapi.CodeInternal:
		case controlapi.CodeSlowDown, controlapi.CodeTooMany:
			every = min(max(every+slowerBy, refusal.RetryAfter), mostInterval)
		case controlapi.CodeExpiredToken:
			return controlapi.Enrolled{}, ErrEnrolExpired
		case controlapi.CodeAccessDenied:
			return controlapi.Enrolled{}, ErrEnrolDenied
		default:
			return controlapi.Enrolled{}, refusal
		}
	}
}
