package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkProxiedRequest is one small request with a session, over TLS, to a
// real app and back, noted for the owner: HTTP/1.1 and HTTP/2, client and app in the same process.
func BenchmarkProxiedRequest(b *testing.B) {
	answer := []byte(strings.Repeat("x", 100))
	for name, http2 := range map[string]bool{"h1": false, "h2": true} {
		b.Run(name, func(b *testing.B) {
			r, _ := noted(b)
			r.app("notes", func(w http.ResponseWriter, _ *http.Request) { w.Write(answer) })
			in := r.signedIn("notes", bobID, http2)
			in.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
			session := in.cookies[cookie]
			b.ReportAllocs()
			b.SetParallelism(24)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					req, err := http.NewRequest("GET", origin+"/", nil)
					if err != nil {
						b.Error(err)
						return
					}
					req.Header.Set("Cookie", cookie+"="+session)
					res, err := in.client.Do(req)
					if err != nil {
						b.Error(err)
						return
					}
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
					if res.StatusCode != 200 {
						b.Error(res.Status)
						return
					}
				}
			})
		})
	}
}
