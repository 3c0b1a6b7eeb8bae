package activity

// Visits is how many visits under way l remembers.
func Visits(l *Log) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.visits)
}
