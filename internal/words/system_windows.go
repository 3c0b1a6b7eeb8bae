package words

import "golang.org/x/sys/windows"

// locales are those of the display, best first; variables come before them, as in
// other programs that were written for Unix too.
func locales() []string {
	chosen, err := windows.GetUserPreferredUILanguages(windows.MUI_LANGUAGE_NAME)
	if err != nil {
		return environment()
	}
	return append(environment(), chosen...)
}
