package tunnel

const AbortedMost = abortedMost

// Come is what a relay's frame of that name does.
func Come(t *Tunnel, address string) { t.come(address) }
