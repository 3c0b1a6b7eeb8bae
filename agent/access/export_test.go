package access

// Remembered is how many tokens b holds.
func Remembered(b *Bearer) int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.cache)
}
