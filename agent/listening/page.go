package listening

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// userAgent says to the program who asks.
const userAgent = "Porchlight-look"

// answer is what was read of one.
type answer struct {
	status int
	header http.Header
	body   []byte
	cut    bool // there was more than is read
}

// says tells whether an answer is one of a server that has pages.
func (a answer) says() bool {
	return a.status < 400 || a.status == http.StatusUnauthorized || a.status == http.StatusForbidden
}

// host is what the listener is told it is called.
func (one listener) host() string { return "localhost:" + strconv.Itoa(one.port) }

// get asks for a path on a connection of its own. It follows nothing, and what is
// compressed is not read: a few bytes could become as many as there is memory.
func (one listener) get(ctx context.Context, within time.Duration, path, accept string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := one.target().Dial(ctx, one.checks())
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	until, _ := ctx.Deadline()
	_ = conn.SetDeadline(until) // of a connection that is gone, reading tells
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+one.host()+path, nil)
	if err != nil {
		return answer{}, err
	}
	req.Header = http.Header{"User-Agent": {userAgent}, "Accept": {accept}, "Accept-Encoding": {"identity"}}
	req.Close = true
	if err := req.Write(conn); err != nil {
		return answer{}, err
	}
	return read(conn, req)
}

var errNoAnswer = errors.New("no answer that is read")

// read takes one answer, and no more than maxRead bytes in all.
func read(conn net.Conn, req *http.Request) (answer, error) {
	all := &io.LimitedReader{R: conn, N: maxRead}
	res, err := http.ReadResponse(bufio.NewReader(all), req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	if coding := res.Header.Get("Content-Encoding"); res.StatusCode < 200 || coding != "" && !strings.EqualFold(coding, "identity") {
		return answer{}, errNoAnswer
	}
	body, err := io.ReadAll(res.Body)
	// A page whose end is late or too far has its title in the beginning all the same.
	return answer{status: res.StatusCode, header: res.Header, body: body, cut: err != nil}, nil
}

// readPage is the title of a page, and the path of the icon of that origin it names;
// empty for none.
func readPage(page answer, host string) (title, icon string) {
	kind, _, err := mime.ParseMediaType(page.header.Get("Content-Type"))
	if err != nil || kind != "text/html" && kind != "application/xhtml+xml" {
		return "", ""
	}
	z := html.NewTokenizer(bytes.NewReader(page.body))
	for titled := false; ; {
		switch z.Next() {
		case html.ErrorToken:
			return shown(title), icon
		case html.StartTagToken, html.SelfClosingTagToken:
			switch t := z.Token(); t.DataAtom {
			case atom.Title:
				if !titled && z.Next() == html.TextToken {
					title, titled = z.Token().Data, true
				}
			case atom.Link:
				if icon == "" {
					icon = iconOf(t, host)
				}
			case atom.Body, atom.Svg:
				return shown(title), icon
			}
		}
	}
}

// iconOf is the path of the icon that a link names, where it is of the page's own
// origin and none that is drawn by a program, as SVG is.
func iconOf(link html.Token, host string) string {
	rel, href, kind := "", "", ""
	for _, a := range link.Attr {
		switch a.Key {
		case "rel":
			rel = a.Val
		case "href":
			href = a.Val
		case "type":
			kind = a.Val
		}
	}
	if !iconic(rel) || strings.Contains(kind, "svg") || href == "" {
		return ""
	}
	base := &url.URL{Scheme: "http", Host: host, Path: "/"}
	to, err := base.Parse(strings.TrimSpace(href))
	if err != nil || to.Scheme != base.Scheme || to.Host != base.Host || to.User != nil || strings.HasSuffix(to.Path, ".svg") {
		return ""
	}
	return to.RequestURI()
}

func iconic(rel string) bool {
	for word := range strings.FieldsSeq(strings.ToLower(rel)) {
		if word == "icon" || word == "apple-touch-icon" {
			return true
		}
	}
	return false
}

// untitled begin the titles of pages that say nothing of the app.
var untitled = []string{"directory listing for", "index of", "listing directory", "untitled", "document", "error"}

// shown is a title as text in one line, without what steers or hides text, and cut
// where it is long; empty for one that says nothing.
func shown(title string) string {
	var out []rune
	for word := range strings.FieldsFuncSeq(strings.ToValidUTF8(title, ""), unicode.IsSpace) {
		if len(out) > 0 {
			out = append(out, ' ')
		}
		for _, r := range word {
			if unicode.IsGraphic(r) && !unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Co) {
				out = append(out, r)
			}
		}
		if len(out) > maxTitle {
			out = append(out[:maxTitle-1], '…')
			break
		}
	}
	text := strings.TrimSpace(string(out))
	for _, nothing := range untitled {
		if lower := strings.ToLower(text); lower == nothing || strings.HasPrefix(lower, nothing+" ") {
			return ""
		}
	}
	return text
}
