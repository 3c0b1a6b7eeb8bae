package connect

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// browsersMixHosts: browsers ask for a host on a connection that they have to another one of the
// same certificate and address. They are answered 421, and open another by themselves: whoever
// looks sees a page, and nothing of this.
func (w *world) browsersMixHosts(t *testing.T, roots string) {
	t.Run("Chromium", func(t *testing.T) {
		log := filepath.Join(t.TempDir(), "net.json")
		c := startChromium(t, []string{"--disable-quic", "--log-net-log=" + log}, roots)
		w.opensBoth(&tab{t, c})
		_ = c.client.Ask(t.Context(), "", "Browser.close", nil, nil) // it may end before it answers
		c.process.Wait()
		wrote421(t, log)
	})
	t.Run("Firefox", func(t *testing.T) {
		log := filepath.Join(t.TempDir(), "http")
		f := startFirefox(t, []string{"MOZ_LOG=nsHttp:4", "MOZ_LOG_FILE=" + log}, roots)
		w.opensBoth(&tab{t, f})
		_ = f.command("browser.close", map[string]any{}, nil)
		f.process.Wait()
		wrote421(t, log)
	})
}

// opensBoth opens one app as the owner and then the other.
func (w *world) opensBoth(b *tab) {
	for _, app := range []string{"notes", "wiki"} {
		b.open(strings.TrimSpace(w.porchlight("open", app, "--print")))
		b.says(`location.host.split(".")[0] + ": " + document.body.innerText`, app+": notes of "+owner)
	}
}

var answered421 = regexp.MustCompile(`:status: 421|HTTP/2(\.0)? 421`)

// wrote421 says that a browser that has ended was answered so, by what it wrote down itself.
func wrote421(t *testing.T, file string) {
	t.Helper()
	files, _ := filepath.Glob(file + "*") // Firefox adds endings
	for _, file := range files {
		if answered421.Match(programs.Got(os.ReadFile(file))(t)) {
			return
		}
	}
	t.Errorf("it was never answered 421: it has a connection for each host anyway")
}
