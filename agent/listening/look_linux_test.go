package listening_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// look asks a program of ours what it is called.
func look(t *testing.T, handler http.HandlerFunc) (agentapi.Looked, int32) {
	t.Helper()
	port, asked := serve(t, handler)
	got, err := newRig().Look(t.Context(), agentapi.Look{Port: port})
	if err != nil || got.Port != port {
		t.Fatalf("%+v, %v", got, err)
	}
	return got, asked.Load()
}

func page(html string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, html)
	}
}

// withIcon is a page that names no icon, beside the favicon that browsers ask for.
func withIcon(html string, kind string, icon []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			page(html)(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Write(icon)
	}
}

// iconOf is the picture in an answer; nil for none.
func iconOf(t *testing.T, l agentapi.Looked) image.Image {
	t.Helper()
	if l.Icon == "" {
		return nil
	}
	raw := programs.Got(base64.StdEncoding.DecodeString(l.Icon))(t)
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil || picture.Bounds().Dx() != 64 || picture.Bounds().Dy() != 64 {
		t.Fatalf("%v, %v", picture, err)
	}
	return picture
}

var red = color.NRGBA{200, 10, 20, 255}

func square(side int) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	for i := range side * side {
		m.Set(i%side, i/side, red)
	}
	return m
}

func pngOf(m image.Image) []byte {
	var out bytes.Buffer
	png.Encode(&out, m)
	return out.Bytes()
}

func isRed(c color.Color) bool {
	r, g, b, a := c.RGBA()
	near := func(is uint32, want uint8) bool { return max(is>>8, uint32(want))-min(is>>8, uint32(want)) < 12 }
	return near(r, 200) && near(g, 10) && near(b, 20) && a == 0xffff
}

// The whole of what a program is sent: two requests without a cookie or an identity.
func TestLookAsksTwice(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heads []string
	got, asked := look(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		heads = append(heads, fmt.Sprint(r.Method, " ", r.URL, " ", r.Host[:10], " ", r.Header))
		mu.Unlock()
		if r.URL.Path == "/a/icon.png" {
			w.Write(pngOf(square(180)))
			return
		}
		w.Header().Set("Set-Cookie", "id=1")
		page(`<!doctype html><link rel="icon" type="image/svg+xml" href="/a.svg"><link rel="shortcut icon" href="a/icon.png?v=2"><title>Notes &amp; more</title>`)(w, r)
	})
	if got.Title != "Notes & more" || got.Label != "Notes & more" || asked != 2 || !isRed(iconOf(t, got).At(32, 32)) {
		t.Errorf("%+v, asked %d times", got, asked)
	}
	want := []string{
		"GET / localhost: map[Accept:[text/html] Accept-Encoding:[identity] Connection:[close] User-Agent:[Porchlight-look]]",
		"GET /a/icon.png?v=2 localhost: map[Accept:[image/png, image/x-icon, image/jpeg] Accept-Encoding:[identity] Connection:[close] User-Agent:[Porchlight-look]]",
	}
	if fmt.Sprint(heads) != fmt.Sprint(want) {
		t.Errorf("asked %q", heads)
	}
}

// What a page may hold, and what is made of it.
func TestLookAtBadPages(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other, _ := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	for what, tt := range map[string]struct {
		handler http.HandlerFunc
		title   string
		asked   int32
	}{
		"markup in the title":  {page(`<title><script>alert(1)</script></title>`), "<script>alert(1)</script>", 2},
		"no title":             {page(`<h1>Notes</h1>`), "", 2},
		"a title of a drawing": {page(`<svg><title>Drawing</title></svg>`), "", 2},
		"not a page": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `"<title>x</title>"`)
		}, "", 2},
		"10 MB of title": {func(w http.ResponseWriter, r *http.Request) {
			page("<title>")(w, r)
			for range 160 {
				if _, err := w.Write(bytes.Repeat([]byte("ab "), 22000)); err != nil {
					return
				}
			}
		}, strings.Repeat("ab ", 26) + "a…", 2},
		"10 MB before the title": {func(w http.ResponseWriter, r *http.Request) {
			page("<!--")(w, r)
			for range 160 {
				if _, err := w.Write(bytes.Repeat([]byte("a"), 64<<10)); err != nil {
					return
				}
			}
			io.WriteString(w, "--><title>late</title>")
		}, "", 2},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, fmt.Sprintf("http://localhost:%d/", other), http.StatusFound)
		}, "", 2},
		"a gzip bomb nobody asked for": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/html")
			z := gzip.NewWriter(w)
			z.Write(bytes.Repeat([]byte("<title>x</title>"), 1<<20))
			z.Close()
		}, "", 1},
		"an error": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "<title>404</title>")
		}, "", 1},
		"an icon elsewhere": {page(fmt.Sprintf(`<link rel=icon href="http://localhost:%d/x.png"><link rel=icon href="//127.0.0.1:%d/x.png"><title>Notes</title>`, other, other)), "Notes", 2},
		"another protocol": {func(w http.ResponseWriter, r *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(conn, "SSH-2.0-OpenSSH_9.2\r\n")
			conn.Close()
		}, "", 1},
		"a head without an end": {func(w http.ResponseWriter, r *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			for {
				if _, err := io.WriteString(conn, "X: "+strings.Repeat("y", 1000)+"\r\n"); err != nil {
					return
				}
			}
		}, "", 1},
		"a new protocol": {func(w http.ResponseWriter, r *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
			conn.Close()
		}, "", 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if got, asked := look(t, tt.handler); got.Title != tt.title || asked != tt.asked || got.Icon != "" {
				t.Errorf("%+v, asked %d times", got, asked)
			}
		})
	}
	t.Cleanup(func() {
		if elsewhere.Load() != 0 {
			t.Errorf("another origin was asked %d times", elsewhere.Load())
		}
	})
}

// A page whose end does not come has its title all the same, and one that does not
// begin has none; neither holds anybody up.
func TestLookAtSlowPages(t *testing.T) {
	t.Parallel()
	for title, begin := range map[string]string{"Notes": "<title>Notes</title>", "": ""} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			port, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					page(begin)(w, r)
					if begin != "" {
						w.(http.Flusher).Flush()
					}
				}
				<-r.Context().Done()
			}))
			r := newRig()
			r.AskFor(3 * time.Second) // in which what comes of the page comes
			if got, err := r.Look(t.Context(), agentapi.Look{Port: port}); err != nil || got.Title != title {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestLookEndsWithWhoAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	port, _ := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() }))
	if got, err := newRig().Look(ctx, agentapi.Look{Port: port}); err != nil && !errors.Is(err, context.Canceled) || got.Title != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// At most four are asked at a time.
func TestFourAtATime(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	full, release := make(chan struct{}, 100), make(chan struct{})
	r := newRig()
	var looks sync.WaitGroup
	for range 12 {
		port, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
			}
			full <- struct{}{}
			<-release
		}))
		looks.Go(func() { r.Look(t.Context(), agentapi.Look{Port: port}) })
	}
	for range 4 {
		<-full
	}
	close(release)
	looks.Wait()
	if most.Load() != 4 {
		t.Errorf("%d at a time", most.Load())
	}
}

func TestLookAtPictures(t *testing.T) {
	t.Parallel()
	var jpegOf bytes.Buffer
	jpeg.Encode(&jpegOf, square(100), nil)
	wide := image.NewNRGBA(image.Rect(0, 0, 40, 20))
	for i := range 800 {
		wide.Set(i%40, i/40, red)
	}
	small := ico(t, part{side: 16, raw: bitmapOf(16, 32)}, part{side: 32, raw: bitmapOf(32, 32)})
	for what, tt := range map[string]struct {
		icon  []byte
		drawn bool
	}{
		"a PNG":                       {pngOf(square(16)), true},
		"a JPEG":                      {jpegOf.Bytes(), true},
		"one that is not square":      {pngOf(wide), true},
		"an ICO of bitmaps":           {small, true},
		"an ICO of 24 bits":           {ico(t, part{side: 48, raw: bitmapOf(48, 24)}), true},
		"an ICO of 8 bits":            {ico(t, part{side: 16, raw: bitmapOf(16, 8)}), true},
		"an ICO of 4 bits":            {ico(t, part{side: 16, raw: bitmapOf(16, 4)}), true},
		"an ICO of 1 bit":             {ico(t, part{side: 16, raw: bitmapOf(16, 1)}), true},
		"an ICO with a PNG":           {ico(t, part{side: 0, raw: pngOf(square(256))}), true},
		"an ICO that says less":       {ico(t, part{side: 8, raw: bitmapOf(32, 32)}), true},
		"SVG":                         {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9"/></svg>`), false},
		"a GIF":                       {[]byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"), false},
		"nothing":                     {nil, false},
		"a PNG that breaks off":       {pngOf(square(300))[:100], false},
		"a PNG too large to read":     {pngHead(60000, 60000), false},
		"a PNG of no size":            {pngHead(0, 0), false},
		"a PNG longer than is read":   {append(pngOf(square(16)), make([]byte, 100<<10)...), false},
		"an ICO without pictures":     {ico(t), false},
		"an ICO that points nowhere":  {ico(t, part{side: 32, raw: bitmapOf(32, 32), offset: 1 << 31}), false},
		"an ICO that points too far":  {ico(t, part{side: 32, raw: bitmapOf(32, 32), length: 1 << 30}), false},
		"an ICO with a size of lies":  {ico(t, part{side: 32, raw: bitmapHead(40000, 80000, 32)}), false},
		"an ICO with negative sizes":  {ico(t, part{side: 32, raw: bitmapHead(-32, -64, 32)}), false},
		"an ICO with many colours":    {ico(t, part{side: 32, raw: bitmapColours(32, 64, 8, 1<<31)}), false},
		"an ICO with an odd depth":    {ico(t, part{side: 32, raw: bitmapHead(32, 64, 17)}), false},
		"an ICO of a huge PNG":        {ico(t, part{side: 32, raw: pngHead(50000, 50000)}), false},
		"an ICO cut off":              {small[:20], false},
		"an ICO that says 65535 more": {append([]byte{0, 0, 1, 0, 255, 255}, make([]byte, 40)...), false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got, _ := look(t, withIcon("<title>x</title>", "image/png", tt.icon))
			switch picture := iconOf(t, got); {
			case (picture != nil) != tt.drawn:
				t.Errorf("drawn: %v", picture != nil)
			case tt.drawn && !isRed(picture.At(32, 32)):
				t.Errorf("drawn with %v", picture.At(32, 32))
			}
		})
	}
}

// Nothing that was in a file beside its pixels is in what is drawn.
func TestPicturesAreDrawnAnew(t *testing.T) {
	t.Parallel()
	plain := pngOf(square(64))
	secret := []byte("hidden in a chunk")
	chunk := append([]byte("tEXt"), secret...)
	with := append([]byte{}, plain[:33]...) // signature and IHDR
	with = binary.BigEndian.AppendUint32(with, uint32(len(secret)))
	with = append(with, chunk...)
	with = binary.BigEndian.AppendUint32(with, crc32.ChecksumIEEE(chunk))
	with = append(with, plain[33:]...)
	got, _ := look(t, withIcon("<title>x</title>", "image/png", with))
	raw, err := base64.StdEncoding.DecodeString(got.Icon)
	if err != nil || len(raw) == 0 || bytes.Contains(raw, secret) {
		t.Errorf("%q, %v", raw, err)
	}
}

// part is one picture of an ICO.
type part struct {
	side           int
	raw            []byte
	offset, length uint32 // lies; 0: as it is
}

func ico(t *testing.T, parts ...part) []byte {
	t.Helper()
	out := []byte{0, 0, 1, 0, byte(len(parts)), 0}
	at := uint32(6 + 16*len(parts))
	for _, p := range parts {
		out = append(out, byte(p.side), byte(p.side), 0, 0, 1, 0, 32, 0)
		length, offset := uint32(len(p.raw)), at
		if p.length != 0 {
			length = p.length
		}
		if p.offset != 0 {
			offset = p.offset
		}
		out = binary.LittleEndian.AppendUint32(out, length)
		out = binary.LittleEndian.AppendUint32(out, offset)
		at += uint32(len(p.raw))
	}
	for _, p := range parts {
		out = append(out, p.raw...)
	}
	return out
}

func bitmapColours(width, height, bits int, colours uint32) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 40)
	out = binary.LittleEndian.AppendUint32(out, uint32(int32(width)))
	out = binary.LittleEndian.AppendUint32(out, uint32(int32(height)))
	out = append(out, 1, 0, byte(bits), 0)
	out = append(out, make([]byte, 16)...)
	out = binary.LittleEndian.AppendUint32(out, colours)
	return append(out, 0, 0, 0, 0)
}

func bitmapHead(width, height, bits int) []byte { return bitmapColours(width, height, bits, 0) }

// bitmapOf is a red square of so many bits a pixel, with its mask.
func bitmapOf(side, bits int) []byte {
	out := bitmapHead(side, 2*side, bits)
	if bits <= 8 {
		for range 1 << bits {
			out = append(out, red.B, red.G, red.R, 0)
		}
	}
	for range side {
		line := []byte{}
		for range side * bits / 8 {
			line = append(line, 0)
		}
		for x := range side {
			if bits >= 24 {
				copy(line[x*bits/8:], []byte{red.B, red.G, red.R, 255}[:bits/8])
			}
		}
		for len(line)%4 != 0 {
			line = append(line, 0)
		}
		out = append(out, line...)
	}
	return append(out, make([]byte, (side+31)/32*4*side)...)
}

// pngHead is a PNG that says how large it is, and no more.
func pngHead(width, height uint32) []byte {
	ihdr := append([]byte("IHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)...)
	ihdr = append(ihdr, 8, 6, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	out = append(out, ihdr...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(ihdr))
}
