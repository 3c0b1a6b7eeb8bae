//go:build rig

package desktop

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// What Orca says of a request's card while Tab walks through it, with N for numbers, is
// testdata/orca-request.txt. Its voice is speech-dispatcher's silent one.
func TestOrcaReadsARequest(t *testing.T) {
	t.Parallel()
	if os.Getenv("PORCHLIGHT_PANELS") == "" {
		t.Skip("it needs Orca: make test-panels installs and runs it")
	}
	for _, program := range []string{"orca", "speech-dispatcher"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("this test needs the package %s", program)
		}
	}
	s := newSession(t, desk{screenReader: true})
	p := s.launchDriven()
	p.publish("paperless", "Paperless", webApp(t, "paperless"))
	p.trayShows("Paperless wants an address", true)
	p.openWindow()
	p.named("button", "Approve")
	p.namesEvery("Approve")

	voice := filepath.Join(s.dir, "voice")
	programs.Must(t, os.Mkdir(voice, 0o700))
	s.write(filepath.Join(voice, "speechd.conf"), "AddModule \"dummy\" \"sd_dummy\" \"\"\nDefaultModule dummy\nAudioOutputMethod \"libao\"\n")
	s.spawn("speech-dispatcher", "--run-single", "--config-dir", voice, "--log-dir", voice, "--timeout", "0")
	s.eventually("the voice listens", func() error {
		_, err := os.Stat(filepath.Join(s.dir, "run/speech-dispatcher/speechd.sock"))
		return err
	})
	log := filepath.Join(s.dir, "orca.log")
	s.spawn("orca", "--debug", "--debug-file", log, "--replace")

	// said is all that Orca has said, without the keys that it says: those come at any time.
	said := func() (all []string) {
		b, _ := os.ReadFile(log) // there is none at first
		for _, m := range speech.FindAllStringSubmatch(string(b), -1) {
			if words := strings.Join(strings.Fields(m[1]), " "); words != "tab" {
				all = append(all, figures.ReplaceAllString(words, "N"))
			}
		}
		return all
	}
	s.eventually("Orca speaks", func() error {
		if len(said()) == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	// Under load it passes over a button now and then: Tab goes round until it was heard whole.
	golden := string(programs.Got(os.ReadFile("testdata/orca-request.txt"))(t))
	for range 90 {
		p.keys("Tab")
		time.Sleep(1200 * time.Millisecond) // as a person: what has the focus for a moment only is not said
		if strings.Contains(strings.Join(said(), "\n")+"\n", golden) {
			return
		}
	}
	t.Errorf("Orca does not say\n%s\nbut\n%s", golden, strings.Join(said(), "\n"))
}

var (
	speech  = regexp.MustCompile(`(?m) - SPEECH OUTPUT: '(.*)' ?\{`)
	figures = regexp.MustCompile(`\d+`)
)
