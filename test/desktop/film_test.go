//go:build rig

package desktop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"porchlight/test/programs"
)

// filmed says whether this desktop's story becomes the film of the documentation: stills of
// the screen with a line below each, which a busy machine cannot make jerk.
func (s *session) filmed() bool { return forDocuments() != "" && !s.opts.dark }

// still adds what the screen shows, and with a phone what the friend sees, held before it.
func (s *session) still(line string, phone *tab) {
	s.t.Helper()
	if !s.filmed() {
		return
	}
	all, _ := filepath.Glob(filepath.Join(s.dir, "still-*.png"))
	file := filepath.Join(s.dir, fmt.Sprintf("still-%02d.png", len(all)))
	s.mustTool("import", "-window", "root", file)
	if phone != nil {
		held := filepath.Join(s.dir, "phone.png")
		phone.saves(held)
		s.mustTool("convert", file, "-fill", "black", "-colorize", "45%", "(", held, "-resize", "300x", "-bordercolor", "#1b1916", "-border", "7", ")",
			"-gravity", "east", "-geometry", "+90+16", "-composite", file)
	}
	s.mustTool("convert", file, "-background", "#1b1916", "-gravity", "south", "-splice", "0x56",
		"-font", "Inter-Medium", "-pointsize", "21", "-fill", "#f6f2ec", "-annotate", "+0+15", line, file)
}

// film makes it of the stills.
func (s *session) film() {
	s.t.Helper()
	if !s.filmed() {
		return
	}
	const seconds, most = 20.0, 3 << 20
	all, _ := filepath.Glob(filepath.Join(s.dir, "still-*.png"))
	var list strings.Builder
	for _, file := range append(all, all[len(all)-1]) { // the last one twice: it has no length otherwise
		fmt.Fprintf(&list, "file '%s'\nduration %.3f\n", file, seconds/float64(len(all)))
	}
	stills, film := filepath.Join(s.dir, "stills"), filepath.Join(forDocuments(), "story.webm")
	s.write(stills, list.String())
	// Each goes over into the next within its last fifth.
	s.mustTool("ffmpeg", "-v", "error", "-y", "-f", "concat", "-safe", "0", "-i", stills, "-t", fmt.Sprint(seconds),
		"-vf", "framerate=fps=20:interp_start=205:interp_end=255:scene=100,format=yuv420p", "-c:v", "libvpx-vp9", "-b:v", "0", "-crf", "32", "-an", film)
	if info := programs.Got(os.Stat(film))(s.t); info.Size() > most {
		s.t.Errorf("%s is %d KiB", film, info.Size()>>10)
	}
}
