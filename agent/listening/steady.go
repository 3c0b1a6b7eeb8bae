package listening

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// steadyAfter is how long something has listened that is no passing helper. What was there
// when Porchlight looked first counts as having listened so long.
const steadyAfter = time.Minute

// handedOut says whether a port is of those that the system hands out to whoever asks for
// any: a program that people open mostly chose one of its own.
func handedOut(port int) bool {
	r := handed()
	return port >= r[0] && port <= r[1]
}

// handed is the range of those ports: as Linux tells it, else that of macOS and Windows
// (RFC 6335, section 6).
var handed = sync.OnceValue(func() [2]int {
	var first, last int
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if _, scanned := fmt.Sscan(string(raw), &first, &last); err != nil || scanned != nil {
		return [2]int{49152, 65535}
	}
	return [2]int{first, last}
})
