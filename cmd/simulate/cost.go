package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tickonce/tickonce/sim"
)

func (r *report) writeFaults(w *page) {
	if len(r.Faults) == 0 {
		return
	}
	var rows [][]string
	for i := range r.Faults {
		f := &r.Faults[i]
		name := printable(f.Text)
		for _, line := range r.effect(f) {
			rows = append(rows, []string{name, line})
			name = ""
		}
	}
	writeRows(w, []column{{"fault", cut}, {"effect", words}}, rows, nil)
	r.writeMeanings(w)
}

// effect says how often a fault took effect, and in what.
func (r *report) effect(f *sim.FaultResult) []string {
	if f.Effect == 0 {
		return []string{"none"}
	}
	switch f.Fault.Kind {
	case sim.FaultDown, sim.FaultCrash, sim.FaultRestartStorm, sim.FaultPause, sim.FaultThrottle:
		return []string{r.outage(&f.Cost)}
	case sim.FaultClockJump, sim.FaultClockDrift, sim.FaultClockFreeze, sim.FaultClockStrobe:
		return r.wrongClock(&f.Cost)
	default:
		return []string{struck(f)}
	}
}

// struck is what a fault did, and how often; "" of one whose effect is what became
// of the boundaries.
func struck(f *sim.FaultResult) string {
	words := effectWords[f.Fault.Kind]
	if words.one == "" {
		return ""
	}
	return count(f.Effect, words.one, words.many)
}

// effectWords say what faults of a kind do, one and several times.
var effectWords = map[sim.FaultKind]struct{ one, many string }{
	sim.FaultStoreErrors:   {"call failed", "calls failed"},
	sim.FaultStoreSlow:     {"call slowed", "calls slowed"},
	sim.FaultStoreFull:     {"call found no room", "calls found no room"},
	sim.FaultJournalErrors: {"record was refused", "records were refused"},
	sim.FaultSwizzle:       {"call failed", "calls failed"},
	sim.FaultStaleRead:     {"stale read", "stale reads"},
	sim.FaultRepeatedRow:   {"read repeated its rows", "reads repeated their rows"},
	sim.FaultLostRow:       {"row lost", "rows lost"},
	sim.FaultHandlerSlow:   {"handler slowed", "handlers slowed"},
	sim.FaultHandlerFails:  {"handler failed", "handlers failed"},
	sim.FaultHandlerPanics: {"handler panicked", "handlers panicked"},
	sim.FaultHandlerHangs:  {"handler hung", "handlers hung"},
	sim.FaultPoison:        {"handler failed", "handlers failed"},
	sim.FaultHandlerSpawns: {"handler made more jobs", "handlers made more jobs"},
	sim.FaultLateAck:       {"ack came late", "acks came late"},
	sim.FaultDuplicateAck:  {"ack came twice", "acks came twice"},
	sim.FaultLostAck:       {"ack lost", "acks lost"},
	sim.FaultOverload:      {"burst of jobs", "bursts of jobs"},
	sim.FaultEditAdd:       {"schedule registered", "schedules registered"},
	sim.FaultEditChange:    {"schedule changed", "schedules changed"},
	sim.FaultEditPause:     {"schedule paused", "schedules paused"},
	sim.FaultEditResume:    {"schedule resumed", "schedules resumed"},
	sim.FaultEditRemove:    {"schedule removed", "schedules removed"},
	sim.FaultEditRename:    {"schedule renamed", "schedules renamed"},
	sim.FaultEditPolicies:  {"schedule changed", "schedules changed"},
	sim.FaultEditTrigger:   {"fire by hand asked for", "fires by hand asked for"},
	sim.FaultTamper:        {"row spoilt", "rows spoilt"},
}

// outage says what became of the boundaries that came due in an outage.
func (r *report) outage(c *sim.Cost) string {
	text := "nothing due"
	if c.Due > 0 {
		text = number(c.Due) + " due: " + r.list(
			counted{c.OnTime, "on time"}, counted{c.Late, "late"}, counted{c.Skipped, "skipped"},
			counted{c.Forgotten, "forgotten"}, counted{c.Left, "left"})
	}
	if c.FiredAgain > 0 {
		text += "; " + r.list(counted{c.FiredAgain, "fired again"})
	}
	return text
}

// wrongClock says what became of boundaries under a wrong clock.
func (r *report) wrongClock(c *sim.Cost) []string {
	lines := []string{"nothing fired early"}
	if c.FiredEarly > 0 {
		lines[0] = number(c.FiredEarly) + " fired early, by up to " + span(c.MaxEarly)
	}
	if c.FiredAgain > 0 {
		lines = append(lines, r.list(counted{c.FiredAgain, "fired again"}))
	}
	if c.Silence > 0 {
		const most = 30
		lines = append(lines, snip(printable(c.Silent), most)+" silent for "+span(c.Silence))
	}
	return lines
}

// counted is a count and its word.
type counted struct {
	n    int64
	word string
}

// list says what there is of each, and notes that the words were used.
func (r *report) list(counts ...counted) string {
	var list []string
	for _, t := range counts {
		if t.n > 0 {
			r.used(t.word)
			list = append(list, number(t.n)+" "+t.word)
		}
	}
	return strings.Join(list, ", ")
}

// used notes that a table has a word whose meaning people may want to know.
func (r *report) used(word string) {
	if r.words == nil {
		r.words = map[string]bool{}
	}
	r.words[word] = true
}

// writeMeanings writes what the words mean that were used since.
func (r *report) writeMeanings(w *page) {
	var some bool
	for _, m := range meanings {
		if !r.words[m.word] || r.told[m.word] {
			continue
		}
		if r.told == nil {
			r.told = map[string]bool{}
		}
		r.told[m.word] = true
		about := m.about
		if m.rule != "" {
			about += " (" + m.rule + ")"
			if !slices.Contains(r.rules, m.rule) {
				r.rules = append(r.rules, m.rule)
			}
		}
		w.hang(m.word+": ", about)
		some = true
	}
	if some {
		fmt.Fprintln(w)
	}
}

// doneForgotten is the word for jobs that were done and then forgotten.
const doneForgotten = "done and forgotten"

// meanings are those of the words in the tables, and the rules they rest on.
var meanings = []struct{ word, about, rule string }{
	{"pause", "the schedule was paused", "S7"},
	{"hours", "outside the active hours of hours= nothing fires", "X10"},
	{"overlap", "a job of the schedule was not done yet, and its overlap= lets none run beside it", "X9"},
	{"missed", "a run-once came too late by its catch-up policy, and has had its only turn", "X8"},
	{"policy", "of several due at once, not all fire under the schedule's catch-up policy, and only one of a run-once", "T14"},
	{"latest", "of several due at once, only the newest fires under catch-up=latest", "T14"},
	{"grace", "under catch-up=grace only what is not later than the grace window fires", "T14"},
	{"none", "under catch-up=none nothing fires that is not on time", "T14"},
	{"cap", "more than 64 were due at once: the oldest 64 fired, the others were dropped for good", "T6"},
	{"held", "the schedule could not be run and was set aside for a minute, its boundaries kept", "Q3"},
	{"fired again", "they had fired, and a restart forgot it or clock-repair=rearm took it back", ""},
	{"left", "due when the run ended, and neither fired nor skipped by then", ""},
	{"forgotten", "came due while the store was away, and unknown to a restart that began from an older state", ""},
	{doneForgotten, "enqueued before a restart that began from an older state, and done by then", ""},
	{"lost", "enqueued before a restart that began from an older state, and not done by then", ""},
	{"delivered again", "what came through, but nobody could note that, was delivered once more: an outbox delivers at least once", "O5"},
	{"on time", "another process fired them, or they came due as the outage ended", ""},
	{"failed", "the last of the attempts failed, or one after which another would be in vain", "QU6"},
	{"lapsed", "the claim of the job's last attempt lapsed before the handler was done", "QU5"},
	{"expired", "the job was not done by its expiry", "QU9"},
}
