package desktop

import (
	"porchlight/desktop/language"
	"porchlight/desktop/ui"
)

// deskInWords is the desktop as the window has it: its errors are in the window's language.
type deskInWords struct{ ui.Desktop }

func (s deskInWords) Welcomed() error     { return language.ErrorInWords(s.Desktop.Welcomed()) }
func (s deskInWords) TrustOffered() error { return language.ErrorInWords(s.Desktop.TrustOffered()) }
func (s deskInWords) StartAtLogin(on bool) error {
	return language.ErrorInWords(s.Desktop.StartAtLogin(on))
}
func (s deskInWords) Appearance(appearance string) error {
	return language.ErrorInWords(s.Desktop.Appearance(appearance))
}
func (s deskInWords) Panel(panel string) error { return language.ErrorInWords(s.Desktop.Panel(panel)) }
func (s deskInWords) Trust(trusted bool) error {
	return language.ErrorInWords(s.Desktop.Trust(trusted))
}
func (s deskInWords) KeepInFile() error     { return language.ErrorInWords(s.Desktop.KeepInFile()) }
func (s deskInWords) ShowData() error       { return language.ErrorInWords(s.Desktop.ShowData()) }
func (s deskInWords) Open(app string) error { return language.ErrorInWords(s.Desktop.Open(app)) }

func (s deskInWords) Export() (saved string, err error) {
	saved, err = s.Desktop.Export()
	return saved, language.ErrorInWords(err)
}
