package access

// Remembered is how many tokens b holds.
func Remembered(b *Bearer) int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.cache)
}

// Visits is how many visits under way a remembers.
func Visits(a *Access) int {
	a.activity.mu.Lock()
	defer a.activity.mu.Unlock()
	return len(a.activity.visits)
}
