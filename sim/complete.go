package sim

import (
	"slices"
	"strings"
)

// CompleteFault lists what the fault may be, written as [Scenario.ParseFault] reads it,
// whose text has been typed as far as this; the names are those of the scenario.
// Each begins with the text; one that ends in = wants a value that cannot be
// listed.
func (s Scenario) CompleteFault(text string) []string {
	head := ""
	if words := strings.SplitAfterN(text, " ", 3); len(words) == 3 && (words[0] == "at " || words[0] == "during ") {
		head = words[0] + words[1]
	}
	var list []string
	for i, words := range faultWords {
		if strings.HasPrefix(text, head+words+" ") {
			list := s.completeKeys(text, FaultDown+FaultKind(i))
			if begun, _ := lastWord(text); head == "" && !strings.Contains(begun, " at=") && !strings.Contains(begun, " during=") {
				list = append(list, beginning([]string{begun + "at=", begun + "during="}, text)...)
			}
			return list
		}
		list = append(list, head+words)
	}
	return beginning(list, text)
}

// CompleteSwarm does so for a swarm, as [ParseSwarm] reads it.
func CompleteSwarm(text string) []string {
	begun, last := lastWord(text)
	var list []string
	if kinds, ok := strings.CutPrefix(last, "kinds="); ok {
		more, word := kinds[:strings.LastIndex(kinds, ",")+1], kinds[strings.LastIndex(kinds, ",")+1:]
		off := word[:len(word)-len(strings.TrimPrefix(word, "-"))]
		for _, name := range kindNames() {
			list = append(list, begun+"kinds="+more+off+name)
		}
		return beginning(list, text)
	}
	if begun == "" {
		list = append(list, modeWords[ModePortfolio:]...)
	}
	for _, k := range swarmKeys {
		if !strings.Contains(begun, k.name+"=") {
			list = append(list, begun+k.name+"=")
		}
	}
	return beginning(list, text)
}

// CompleteExpect does so for what is expected, as [ParseExpect] reads it.
func (s Scenario) CompleteExpect(text string) []string {
	begun, _ := lastWord(text)
	list := []string{begun + noDoubleFire}
	for i := range s.Schedules {
		for _, word := range countWords {
			list = append(list, begun+quote(s.Schedules[i].Name)+"."+word+"=")
		}
	}
	for _, word := range verdictWords {
		list = append(list, begun+verdictKey+"="+word)
	}
	for _, id := range markIDs() {
		list = append(list, begun+markPrefix+id)
	}
	return beginning(list, text)
}

// completeKeys completes a last word that is a key, or a key with its value.
func (s Scenario) completeKeys(text string, kind FaultKind) []string {
	begun, last := lastWord(text)
	name, _, valued := strings.Cut(last, "=")
	var list []string
	for _, k := range keysOf(kind) {
		switch {
		case !valued && !strings.Contains(begun, " "+k.name+"="):
			list = append(list, begun+k.name+"=")
		case valued && name == k.name:
			for _, choice := range s.choices(kind, k) {
				list = append(list, begun+k.name+"="+choice)
			}
		}
	}
	return beginning(list, text)
}

// choices lists what the key of a fault may have, if that can be listed.
func (s Scenario) choices(kind FaultKind, k key[Fault]) (list []string) {
	switch k.name {
	case "schedule":
		list = s.names(scheduleOf)
	case "queue", "into":
		list = s.names(queueOf)
		if kind.meetsOutboxes() {
			list = append(list, s.outboxNames()...)
		}
	default:
		if v, ok := k.of(&Fault{}).(interface{ choices() []string }); ok {
			return v.choices()
		}
	}
	for i := range list {
		list[i] = quote(list[i])
	}
	return list
}

// lastWord cuts a text before its last word, which may be empty.
func lastWord(text string) (begun, last string) {
	at := strings.LastIndex(text, " ") + 1
	return text[:at], text[at:]
}

// beginning keeps those that begin with the text, each once.
func beginning(list []string, text string) []string {
	var kept []string
	for _, s := range list {
		if strings.HasPrefix(s, text) && s != text && !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}
