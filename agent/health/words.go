package health

import (
	"cmp"
	"fmt"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
)

// What the owner reads of each state, and the change of options that helps.

// optionPublicAddress is the option that tells an app its public address.
const optionPublicAddress = "publicAddress"

var publicAddress = map[string]any{optionPublicAddress: true}

// unaware is told of an app that redirects to http://, writes it into its pages, or
// redirects to the https:// address it was asked at.
const unaware = "It answers, and does not know that its address begins with https://: the option to tell it its address helps."

// where is the place an app was approved at, in a sentence.
func where(t upstream.Target) string {
	switch {
	case t.Socket != "":
		return "at its socket"
	case t.Address == upstream.IPv6:
		return fmt.Sprintf("on port %d of ::1", t.Port)
	}
	return fmt.Sprintf("on port %d", t.Port)
}

// answers is told of any answer; status is of one that is an error, or 0.
func answers(app App, status int) verdict {
	detail := "It answers " + where(app.Target)
	if status >= 400 {
		detail += fmt.Sprintf(", its first page with status %d", status)
	}
	return verdict{state: agentapi.HealthAnswers, detail: detail + "."}
}

// answersRPC is told of an app that speaks HTTP/2 alone over TLS, in which gRPC reaches it.
func answersRPC(app App) verdict {
	return verdict{
		state:  agentapi.HealthAnswers,
		detail: "It answers gRPC " + where(app.Target) + ". Browsers get no page, for it speaks HTTP/2 alone.",
	}
}

func nothing(app App) verdict {
	return verdict{
		state:  agentapi.HealthNothing,
		detail: "It does not answer " + where(app.Target) + ": nothing listens there.",
	}
}

// refuses is told of an app that does otherwise with what is sent to localhost.
func refuses(app App, status int, does string) verdict {
	return verdict{
		state: agentapi.HealthRefuses,
		detail: fmt.Sprintf("It refuses what is sent to %s (status %d) and %s what is sent to localhost: the option to call it localhost helps.",
			app.Host, status, does),
		option: map[string]any{"localhostHost": true},
	}
}

// speaks is told of an app that speaks another protocol than it is asked in.
func speaks(app App, scheme string) verdict {
	said, asked := nameOf(scheme), nameOf(app.Target.Scheme)
	v := verdict{detail: fmt.Sprintf("It speaks %s %s, and is asked in %s", said, where(app.Target), asked)}
	switch scheme {
	case agentapi.UpstreamHTTPS:
		v.state = agentapi.HealthHTTPS
	case agentapi.UpstreamH2C:
		v.state = agentapi.HealthH2C
	default:
		v.state = agentapi.HealthWrong
	}
	if app.Target.Pin && app.Target.Key != "" {
		// Who has the key no longer answers: turning that off is not for one click.
		v.detail += ", with a key that is kept: see which program listens before you no longer keep it."
		return v
	}
	if v.option = speaking(app, scheme); v.option == nil {
		v.detail += ", which a socket needs: have it speak that, or listen on a port."
		return v
	}
	// In words that a flag and a button both fit.
	helps := "to reach it over " + said
	if scheme == agentapi.UpstreamH2C {
		helps = "to speak HTTP/2 to it"
	}
	v.detail += ": the option " + helps + " helps."
	return v
}

// speaking is the change of options after which an app is asked in a protocol; nil
// where there is none.
func speaking(app App, scheme string) map[string]any {
	if app.Target.Socket != "" {
		if scheme == agentapi.UpstreamHTTPS {
			return nil
		}
		return map[string]any{"h2c": scheme == agentapi.UpstreamH2C}
	}
	change := map[string]any{"upstream": cmp.Or(scheme, agentapi.UpstreamHTTP)}
	if app.Options.H2C && scheme != agentapi.UpstreamH2C {
		change["h2c"] = false
	}
	if app.Options.Pin && scheme != agentapi.UpstreamHTTPS {
		change["pin"] = false
	}
	return change
}

func nameOf(scheme string) string {
	switch scheme {
	case agentapi.UpstreamHTTPS:
		return "HTTPS"
	case agentapi.UpstreamH2C:
		return "HTTP/2 without TLS"
	}
	return "HTTP"
}

// silent is told of an app that took the connection of a probe and said nothing.
func silent(app App) verdict {
	return verdict{
		state:  agentapi.HealthSilent,
		detail: fmt.Sprintf("It takes connections %s and does not answer a request within %d seconds: it may be starting, or hang.", where(app.Target), int(askFor.Seconds())),
	}
}

// failed is what is told by the words of upstream.Explain.
func failed(app App, state agentapi.Health, detail string) verdict {
	switch state {
	case agentapi.HealthNothing:
		return nothing(app)
	case agentapi.HealthHTTPS:
		return speaks(app, agentapi.UpstreamHTTPS)
	case agentapi.HealthH2C:
		return speaks(app, agentapi.UpstreamH2C)
	}
	if !strings.HasSuffix(detail, ".") {
		detail += "."
	}
	return verdict{state: state, detail: detail}
}
