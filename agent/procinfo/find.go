package procinfo

import (
	"sync"
	"sync/atomic"
	"time"
)

// Looking for the process that has a socket costs little in a process one thinks
// of, and much in all of them. So those are looked through by one goroutine at a
// time in the whole program, for a while only, and once for a socket.
const (
	maxHints  = 64
	hintFiles = 1024 // open files of a process that are looked at on the way of a request

	walkFor    = 2 * time.Second
	maxWaiting = 32 // goroutines that wait to walk; to more nothing is told
	maxPlaces  = 1024
)

// place is where a socket is: which process has it as which of its files. The
// zero place is nowhere.
type place struct{ pid, file int }

// finder remembers the places of sockets, by inode.
type finder struct {
	waiting atomic.Int32
	walking sync.Mutex

	mu     sync.Mutex
	places map[uint64]place // guarded by mu: nowhere for one that no process shows
	walks  int              // guarded by mu
}

var find finder

// Remembered is the process that has the socket, if it is one of those given or was
// found before. That costs little: it is fit for the way of a request. PID is 0
// otherwise; the user is told all the same.
func (s Socket) Remembered(pids ...int) Process {
	p := s.holder
	p.User, p.UserID = s.User, s.UserID
	if p.PID == 0 && s.Inode != 0 {
		p.PID = find.remembered(s, pids).pid
	}
	if p.PID != 0 && p.Program == "" {
		p.Program = program(p.PID)
	}
	p.Program = shown(p.Program)
	return p
}

// Find is Remembered, and where that names no process it looks through those of the
// socket's user. That can take seconds, so no request waits for it. Of a socket
// that several processes share it names one.
func (s Socket) Find(pids ...int) Process {
	p := s.Remembered(pids...)
	if p.PID != 0 || s.Inode == 0 || !find.walk(s) {
		return p
	}
	return s.Remembered()
}

// remembered looks where the socket was found before, and into the processes given.
func (f *finder) remembered(s Socket, pids []int) place {
	f.mu.Lock()
	found := f.places[s.Inode]
	f.mu.Unlock()
	if found != (place{}) && isAt(found, s) {
		return found
	}
	for _, pid := range pids[:min(len(pids), maxHints)] {
		if pid < 1 || pid > maxPID {
			continue
		}
		if found, _ := lookInto(pid, s, hintFiles, time.Time{}); found != (place{}) {
			f.remember(s, found)
			return found
		}
	}
	return place{}
}

// walk looks through the processes of the socket's user, unless that was done for
// this socket and found none, and says whether it found one.
func (f *finder) walk(s Socket) bool {
	if f.waiting.Add(1) > maxWaiting {
		f.waiting.Add(-1)
		return false
	}
	defer f.waiting.Add(-1)
	f.walking.Lock()
	defer f.walking.Unlock()
	f.mu.Lock()
	found, done := f.places[s.Inode]
	f.mu.Unlock()
	if done && (found == (place{}) || isAt(found, s)) {
		return found != (place{}) // by another goroutine, meanwhile
	}
	f.mu.Lock()
	f.walks++
	f.mu.Unlock()
	found, all := lookThrough(s, time.Now().Add(walkFor))
	if found != (place{}) || all {
		f.remember(s, found)
	}
	return found != (place{})
}

// remember forgets everything once it is full: looking again is all that costs.
func (f *finder) remember(s Socket, at place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.places == nil || len(f.places) >= maxPlaces {
		f.places = map[uint64]place{}
	}
	f.places[s.Inode] = at
}
