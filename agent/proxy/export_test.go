package proxy

// IdleDirect is how many connections to apps the direct way of p keeps for the
// next request.
func IdleDirect(p *Proxy) int {
	p.direct.mu.Lock()
	defer p.direct.mu.Unlock()
	return p.direct.count
}
