package localapi

import (
	"net/http"

	"porchlight/agent/agentapi"
)

// knocks lists who asks to be let in.
func (a *API) knocks(*http.Request) (any, error) { return a.cfg.People.Knocks(), nil }

// answerKnock is the owner's answer. A no takes nothing but a question away, so it
// needs no owner secret; a yes does.
func (a *API) answerKnock(r *http.Request, body agentapi.KnockAnswer) (any, error) {
	answer := body.Answer
	if answer != agentapi.KnockNo && answer != agentapi.KnockNever {
		if err := a.isOwner(r); err != nil {
			return nil, err
		}
	}
	return a.cfg.People.AnswerKnock(r.Context(), r.PathValue("id"), answer)
}
