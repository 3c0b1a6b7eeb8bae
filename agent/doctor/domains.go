package doctor

import (
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/internal/words"
)

// Domains are findings about own domains, each with what to enter at the registrar.
func Domains(all []agentapi.OwnDomain) (found []Finding) {
	for _, d := range all {
		if d.State == agentapi.DomainProven {
			f := Said(d.Name, fine, words.Of("%[1]s leads to your app %[2]s.", d.Name, d.App), "")
			if len(d.Words) > 0 {
				f = Said(d.Name, wrong, d.Words[0], "")
			}
			found = append(found, f)
			continue
		}
		f := Said(d.Name, wrong, words.Of("The records of %s were found, and are not found any more.", d.Name), "")
		if d.State == agentapi.DomainWaiting {
			f = Said(d.Name, note, words.Of("The records of %s were not found yet.", d.Name), "")
		}
		if len(d.Words) > 0 {
			f.Text, f.Words = d.Problem, d.Words
		}
		enter := words.Of("Where the domain is registered, enter: %s", recordsOf(d))
		f.Next, f.Words = enter.String(), append(f.Words[:len(f.Words):len(f.Words)], enter)
		found = append(found, f)
	}
	return found
}

// recordsOf are the records of a domain as registrars name their parts.
func recordsOf(d agentapi.OwnDomain) string {
	var lines []string
	for _, r := range d.Records {
		lines = append(lines, r.Name+" "+r.Type+" "+r.Value)
	}
	return strings.Join(lines, "; ")
}
