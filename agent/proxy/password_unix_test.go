//go:build unix

package proxy_test

import (
	"syscall"
	"testing"
	"time"

	"porchlight/test/programs"
)

// BenchmarkWrongPassword is a wrong password over a connection that is kept. It prints
// the CPU seconds of 10,000 of them, those of client and agent together, for both are
// this process; the agent's are to stay below one.
func BenchmarkWrongPassword(b *testing.B) {
	cpu := func() time.Duration {
		var used syscall.Rusage
		programs.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
		return time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	for name, http2 := range map[string]bool{"h1": false, "h2": true} {
		b.Run(name, func(b *testing.B) {
			r := passwordRig(b)
			visitor := r.browser(http2)
			b.ReportAllocs()
			before := cpu()
			for b.Loop() {
				if res, _ := visitor.fetch("GET", origin+"/", basic(bobsMail, "plp_x")...); res.StatusCode != 401 && res.StatusCode != 429 {
					b.Fatal(res.Status)
				}
			}
			b.ReportMetric((cpu()-before).Seconds()/float64(b.N)*10_000, "cpu-s/10000")
		})
	}
}
