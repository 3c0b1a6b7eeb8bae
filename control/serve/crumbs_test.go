package serve

import (
	"bytes"
	"crypto/tls"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"porchlight/control"
	"porchlight/test/programs"
)

// Weakness: a crumb of a cookie that is in HPACK's table comes in one byte, and crumbs are
// joined; with a window of 0 every page waits, and what was joined waited with it: a
// gigabyte for 347 KiB. Attack: 250 requests of crumbs beyond what may be, and just within.
// Checked: what the sign-in host keeps of them is little, and the streams are reset soon.
func TestCrumbsTakeNoMemory(t *testing.T) { // alone, for it measures the memory of all
	n, roots := runNode(t, Config{
		DataDir: t.TempDir(), Naming: control.Naming{Domain: "porch.test"}, Listen: []string{"127.0.0.1:0"}, Grace: time.Second,
	})
	addrs, _ := n.Addrs()
	const streams, crumb, most = 250, 4000, 6 << 20
	for what, crumbs := range map[string]int{"beyond what may be": 257, "within": 15} {
		t.Run(what, func(t *testing.T) {
			conn, err := tls.Dial("tcp", addrs[0], &tls.Config{RootCAs: roots, ServerName: n.authHost(), NextProtos: []string{"h2"}})
			programs.Must(t, err)
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			frames := http2.NewFramer(conn, conn)
			_, _ = io.WriteString(conn, http2.ClientPreface)
			_ = frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			before := inUse()

			var block bytes.Buffer
			encoder := hpack.NewEncoder(&block)
			for i := range streams {
				block.Reset()
				for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", n.authHost()}, {":path", "/signin"}} {
					_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
				}
				for range crumbs {
					_ = encoder.WriteField(hpack.HeaderField{Name: "cookie", Value: strings.Repeat("x", crumb)})
				}
				err := frames.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
				programs.Must(t, err)
			}
			measured := false
			for begun, ended := 0, 0; ended < streams; {
				f, err := frames.ReadFrame()
				if err != nil {
					t.Fatalf("%d answers began and %d streams were reset: %v", begun, ended, err)
				}
				switch f.(type) {
				case *http2.HeadersFrame:
					begun++
				case *http2.RSTStreamFrame:
					ended++
				}
				if ended == 1 && !measured { // what is read by then waits
					measured = begun > 0
					if kept := inUse() - before; kept > most {
						t.Errorf("%d requests keep %d KiB", streams, kept>>10)
					}
				}
			}
			if !measured {
				t.Error("no request was answered")
			}
		})
	}
}

func inUse() int64 {
	for range 3 { // what is in a pool goes with the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
