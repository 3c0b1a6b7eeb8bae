package relay_test

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The benchmarks run relay, agent and haproxy as processes of their own, so that
// the relay's share of time and memory can be told. Everything shares the
// machine: only figures of one run compare, and haproxy, which dials no tunnel,
// is measured in the same run for that.
//
//	go test ./control/relay -run xxx -bench . -benchtime 3x

const (
	roleEnv   = "PORCHLIGHT_BENCH_ROLE"
	dirEnv    = "PORCHLIGHT_BENCH_DIR"
	relayEnv  = "PORCHLIGHT_BENCH_RELAY"
	benchAuth = "control.localhost"
	benchHost = "maya.localhost"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "relay":
		playRelay()
	case "agent":
		playAgent()
	default:
		goleak.VerifyTestMain(m)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return v
}

// tally collects figures by peer and unit and reports medians, and the relay's
// as multiples of haproxy's.
type tally map[string][]float64

func (t tally) add(p peer, unit string, value float64) {
	t[p.name+" "+unit] = append(t[p.name+" "+unit], value)
}

func (t tally) median(name, unit string) float64 {
	values := slices.Sorted(slices.Values(t[name+" "+unit]))
	if len(values) == 0 {
		return 0
	}
	return values[len(values)/2]
}

func (t tally) report(b *testing.B, peers []peer, units ...string) {
	b.ReportMetric(0, "ns/op") // an operation is a round of all peers: no figure of interest
	for _, unit := range units {
		for _, p := range peers {
			if v := t.median(p.name, unit); v > 0 {
				b.ReportMetric(v, p.name+"-"+unit)
			}
		}
		if h := t.median("haproxy", unit); h > 0 {
			b.ReportMetric(t.median("relay", unit)/h, "×haproxy-"+unit)
		}
	}
}

func (p peer) enterAll(n int) []net.Conn {
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = must(p.enter(i))
	}
	return conns
}

// echo is one request and its answer.
func echo(conn net.Conn, buf []byte) error {
	if _, err := conn.Write(buf); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, buf)
	return err
}

func BenchmarkRelayBulk(b *testing.B) {
	for _, connections := range []int{1, 8} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			peers, t := stage(b), tally{}
			const mib = 2048
			for b.Loop() {
				for _, p := range peers {
					conns := p.enterAll(connections)
					cpu, began := p.cpu(), time.Now()
					var wg sync.WaitGroup
					for _, conn := range conns {
						wg.Go(func() {
							defer conn.Close()
							share := mib / connections
							_, _ = fmt.Fprintf(conn, "b%d", share)
							buf := make([]byte, 256<<10)
							for left := share << 20; left > 0; {
								n, err := conn.Read(buf)
								if left -= n; err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					wg.Wait()
					gb := float64(mib<<20) / 1e9
					t.add(p, "GB/s", gb/time.Since(began).Seconds())
					t.add(p, "cpu-s/GB", (p.cpu()-cpu)/gb)
				}
			}
			t.report(b, peers, "GB/s", "cpu-s/GB")
		})
	}
}

func BenchmarkRelayConnections(b *testing.B) {
	peers, t := stage(b), tally{}
	const visits, workers = 16_000, 64
	for b.Loop() {
		for _, p := range peers {
			cpu, began := p.cpu(), time.Now()
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for range visits / workers {
						conn, err := p.enter(w)
						if err != nil {
							b.Error(p.name, err)
							return
						}
						_ = conn.Close()
					}
				})
			}
			wg.Wait()
			t.add(p, "conn/s", visits/time.Since(began).Seconds())
			t.add(p, "cpu-µs/conn", (p.cpu()-cpu)*1e6/visits)
		}
	}
	t.report(b, peers, "conn/s", "cpu-µs/conn")
}

func BenchmarkRelayRequests(b *testing.B) {
	peers, t := stage(b), tally{}
	const connections, requests = 64, 2000
	for b.Loop() {
		for _, p := range peers {
			conns := p.enterAll(connections)
			began := time.Now()
			var wg sync.WaitGroup
			for _, conn := range conns {
				wg.Go(func() {
					defer conn.Close()
					var buf [100]byte
					for range requests {
						if err := echo(conn, buf[:]); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			t.add(p, "req/s", connections*requests/time.Since(began).Seconds())
		}
	}
	t.report(b, peers, "req/s")
}

// BenchmarkRelayLatency sends 2,000 requests a second and reports the median time
// of one.
func BenchmarkRelayLatency(b *testing.B) {
	peers, t := stage(b), tally{}
	const connections, each = 8, 500
	const every = time.Second * connections / 2000
	for b.Loop() {
		for _, p := range peers {
			took := make([][]time.Duration, connections)
			var wg sync.WaitGroup
			for i := range connections {
				wg.Go(func() {
					conn := must(p.enter(i))
					defer conn.Close()
					var buf [100]byte
					pace := time.NewTicker(every)
					defer pace.Stop()
					for range each {
						<-pace.C
						began := time.Now()
						if err := echo(conn, buf[:]); err != nil {
							b.Error(err)
							return
						}
						took[i] = append(took[i], time.Since(began))
					}
				})
			}
			wg.Wait()
			all := slices.Concat(took...)
			slices.SortFunc(all, cmp.Compare)
			if len(all) > 0 {
				t.add(p, "p50-µs", float64(all[len(all)/2])/1e3)
				t.add(p, "p99-µs", float64(all[len(all)*99/100])/1e3)
			}
		}
	}
	t.report(b, peers, "p50-µs", "p99-µs")
}

func BenchmarkRelayIdleMemory(b *testing.B) {
	t := tally{}
	for b.Loop() {
		peers := stage(b) // anew: memory that was once taken would count for nothing
		const visits = 2000
		for _, p := range peers {
			if p.pid == 0 {
				continue
			}
			for i := range 100 { // the program itself gets into memory
				_ = must(p.enter(i)).Close()
			}
			before := p.resident()
			conns := make([]net.Conn, visits)
			var wg sync.WaitGroup
			for w := range 20 {
				wg.Go(func() {
					var buf [100]byte
					for i := w; i < visits; i += 20 {
						conns[i] = must(p.enter(i))
						_ = echo(conns[i], buf[:])
					}
				})
			}
			wg.Wait()
			t.add(p, "MiB/1000-idle", (p.resident()-before)/(1<<20)/(visits/1000))
			for _, conn := range conns {
				_ = conn.Close()
			}
		}
		t.report(b, peers, "MiB/1000-idle")
	}
}
