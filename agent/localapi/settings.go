package localapi

import (
	"net/http"

	"porchlight/agent/agentapi"
)

func (a *API) settings(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, http.StatusOK, a.cfg.Settings.Get())
}

// setSettings replaces the settings. Every field has to be there: one that was
// forgotten would quietly become its default. Who is trusted stays as it is when
// it is not named.
func (a *API) setSettings(w http.ResponseWriter, r *http.Request) error {
	f, err := readFields(r, "failStaticHours", "askAgain", "trustEverybody", "quiet")
	if err != nil {
		return err
	}
	var s agentapi.Settings
	if s.FailStaticHours, err = f.integer("failStaticHours"); err != nil {
		return err
	}
	if s.AskAgain, err = f.truth("askAgain"); err != nil {
		return err
	}
	s.TrustEverybody = a.cfg.Settings.TrustEverybody()
	if f["trustEverybody"] != nil {
		if s.TrustEverybody, err = f.truth("trustEverybody"); err != nil {
			return err
		}
	}
	if s.Quiet, err = f.texts("quiet"); err != nil {
		return err
	}
	if s, err = a.cfg.Settings.Set(s); err != nil {
		return err
	}
	return answer(w, http.StatusOK, s)
}
