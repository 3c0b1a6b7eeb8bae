package health

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
	"porchlight/internal/words"
)

// What the owner reads of each state, and the change of options that helps.

// ailments are what keeps visitors from an app, in a few words.
var ailments = map[agentapi.Health]string{
	agentapi.HealthNothing: "not answering",
	agentapi.HealthRefuses: "refuses its address",
	agentapi.HealthHTTPS:   "speaks HTTPS",
	agentapi.HealthH2C:     "speaks HTTP/2",
	agentapi.HealthSilent:  "not answering",
	agentapi.HealthWrong:   "answers wrongly",
}

// optionPublicAddress is the option that tells an app its public address.
const optionPublicAddress = "publicAddress"

var (
	publicAddress = map[string]any{optionPublicAddress: true}
	localhostHost = map[string]any{"localhostHost": true}
)

// unaware is told of an app that redirects to http://, writes it into its pages, or
// redirects to the https:// address it was asked at.
const unaware = "It answers, and does not know that its address begins with https://: the option to tell it its address helps."

// where is the place an app was approved at, in a sentence.
func where(t upstream.Target) words.Sentence {
	switch {
	case t.Socket != "":
		return words.Of("at its socket")
	case t.Address == upstream.IPv6:
		return words.Of("on port %s of ::1", strconv.Itoa(t.Port))
	}
	return words.Of("on port %s", strconv.Itoa(t.Port))
}

// saying is a verdict in one sentence.
func saying(state agentapi.Health, s words.Sentence) verdict {
	return verdict{state: state, detail: s.String(), said: words.Text{s}}
}

// answers is told of any answer; status is of one that is an error, or 0. Where every
// visitor meets that error the owner is told so; that an app has a sign-in of its own, or
// no first page, is said and as it should be.
func answers(app asked, status int) verdict {
	v := saying(agentapi.HealthAnswers, words.Of("It answers %s.", where(app.Target())))
	switch place, code := where(app.Target()), strconv.Itoa(status); {
	case status == http.StatusUnauthorized:
		v = saying(v.state, words.Of("It answers %[1]s, and asks for a sign-in of its own (status %[2]s).", place, code))
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		v = saying(v.state, words.Of("It answers %[1]s, and has no first page (status %[2]s).", place, code))
	case unwanted(status), status >= 500:
		v = saying(v.state, words.Of("It answers %[1]s, and visitors get an error as its first page (status %[2]s).", place, code))
		v.note = true
	case status >= 400:
		v = saying(v.state, words.Of("It answers %[1]s, its first page with status %[2]s.", place, code))
	}
	if status >= 400 {
		v.status = status
	}
	return v
}

// answersRPC is told of an app that speaks HTTP/2 alone over TLS, in which gRPC reaches it.
func answersRPC(app asked) verdict {
	return saying(agentapi.HealthAnswers, words.Of("It answers gRPC %s. Browsers get no page, for it speaks HTTP/2 alone.", where(app.Target())))
}

// answersMCP is told of an app that is said to speak MCP at a path, by what it answered
// there.
func answersMCP(path string, got page) verdict {
	at, code, s := words.Plain(path), strconv.Itoa(got.status), got.mcp
	v := verdict{}
	switch version := words.Plain(s.version); {
	case s.former:
		v = saying(agentapi.HealthAnswers, words.Of("It speaks MCP at %s by the former protocol alone, HTTP with SSE, which newer assistants may not know.", at))
	case s.version != "" && s.name != "":
		v = saying(agentapi.HealthAnswers, words.Of("It speaks MCP at %[1]s (version %[2]s) and calls itself “%[3]s”.", at, version, words.Plain(s.name)))
	case s.version != "":
		v = saying(agentapi.HealthAnswers, words.Of("It speaks MCP at %[1]s (version %[2]s).", at, version))
	case got.status == http.StatusUnauthorized:
		v = saying(agentapi.HealthAnswers, words.Of("It answers at %[1]s, and asks for a sign-in of its own (status %[2]s).", at, code))
	default:
		v = saying(agentapi.HealthAnswers, words.Of("It answers at %[1]s, and does not speak MCP there (status %[2]s): its documentation says at which path it does.", at, code))
		v.note = true
	}
	if got.status == http.StatusUnauthorized || got.status >= 500 {
		v.status = got.status
	}
	v.mcp = true
	return v
}

func nothing(app asked) verdict {
	v := saying(agentapi.HealthNothing, words.Of("It does not answer %s: nothing listens there.", where(app.Target())))
	v.unseen = app.Target().Socket != "" // its file outlives who listened
	return v
}

// refuses is told of an app that does otherwise with what is sent to localhost.
func refuses(app asked, status int, does string) verdict {
	v := saying(agentapi.HealthRefuses, words.Of("It refuses what is sent to %[1]s (status %[2]s) and %[3]s what is sent to localhost: the option to call it localhost helps.",
		app.host, strconv.Itoa(status), words.Plain(does)))
	v.option = localhostHost
	return v
}

// speaks is the verdict on an app that is asked in one protocol and answers in another.
func speaks(app asked, scheme string) verdict {
	// %[1]s is the protocol of its answers, %[2]s where it listens, %[3]s the one it is asked in.
	said := []any{words.Plain(nameOf(scheme)), where(app.Target()), words.Plain(nameOf(app.Target().Scheme))}
	state := agentapi.HealthWrong
	switch scheme {
	case agentapi.UpstreamHTTPS:
		state = agentapi.HealthHTTPS
	case agentapi.UpstreamH2C:
		state = agentapi.HealthH2C
	}
	if app.Target().Pin && app.Target().Key != "" {
		// Who has the key no longer answers: turning that off is not for one click.
		return saying(state, words.Of("It speaks %[1]s %[2]s, and is asked in %[3]s, with a key that is kept: see which program listens before you no longer keep it.", said...))
	}
	option := speaking(app, scheme)
	if option == nil {
		return saying(state, words.Of("It speaks %[1]s %[2]s, and is asked in %[3]s, which a socket needs: have it speak that, or listen on a port.", said...))
	}
	// In words that a flag and a button both fit.
	v := saying(state, words.Of("It speaks %[1]s %[2]s, and is asked in %[3]s: the option to reach it over %[1]s helps.", said...))
	if scheme == agentapi.UpstreamH2C {
		v = saying(state, words.Of("It speaks %[1]s %[2]s, and is asked in %[3]s: the option to speak HTTP/2 to it helps.", said...))
	}
	v.option = option
	return v
}

// speaking is the change of options after which an app is asked in a protocol; nil
// where there is none.
func speaking(app asked, scheme string) map[string]any {
	if app.Target().Socket != "" {
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
func silent(app asked) verdict {
	return saying(agentapi.HealthSilent, words.Of("It takes connections %[1]s and does not answer a request within %[2]s seconds: it may be starting, or hang.",
		where(app.Target()), strconv.Itoa(int(askFor.Seconds()))))
}

// failed is what is told by the words of upstream.Explain.
func failed(app asked, state agentapi.Health, detail string) verdict {
	switch state {
	case agentapi.HealthNothing:
		return nothing(app)
	case agentapi.HealthSilent:
		name, _, _ := strings.Cut(app.host, ".")
		return saying(state, app.Options.WaitLonger(name))
	case agentapi.HealthHTTPS:
		return speaks(app, agentapi.UpstreamHTTPS)
	case agentapi.HealthH2C:
		return speaks(app, agentapi.UpstreamH2C)
	}
	if !strings.HasSuffix(detail, ".") {
		detail += "."
	}
	return saying(state, words.Plain(detail))
}
