package access

import "porchlight/agent/store"

// noteVisit has a member's visit be looked at with the next flush: whether it is their
// first of that app is on the disk, for which a request never waits.
func (a *Access) noteVisit(id Identity, email, appID, label string) {
	if owner, ok := a.Owner(); a.onFirstVisit == nil || id.GrantID != "" || !ok || owner.AccountID == id.AccountID {
		return
	}
	v := &a.activity
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.began) < maxUnwritten {
		v.began = append(v.began, store.Visited{AccountID: id.AccountID, AppID: appID, Email: email, Label: label})
	}
}

// tellFirstVisits tells of the first visits among those that began. activity.writing
// is held, and the lines of these visits are not written yet.
func (a *Access) tellFirstVisits() {
	v := &a.activity
	v.mu.Lock()
	began := v.began
	v.began = nil
	v.mu.Unlock()
	if len(began) == 0 {
		return
	}
	first, err := a.store.FirstVisits(began)
	if err != nil {
		a.log.Error("whether a visit was somebody's first could not be told", "err", err)
	}
	for _, visit := range first {
		a.onFirstVisit(visit)
	}
}
