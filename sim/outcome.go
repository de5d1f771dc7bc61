package sim

import (
	"fmt"
	"strings"

	"github.com/tickonce/tickonce/store"
)

// Outcome is the result as a text to record in a scenario file, below the line
// "----": line by line what a person would look at, and the digest of all the
// rest. Equal runs have equal outcomes.
func (r *Result) Outcome() string {
	var b strings.Builder
	write := func(what string, words ...string) {
		fmt.Fprintf(&b, "%-8s %s\n", what, strings.Join(words, " "))
	}
	write("verdict", r.Verdict.String())
	for i := range r.Schedules {
		s := &r.Schedules[i]
		words := []string{
			quote(s.Name), fmt.Sprintf("boundaries=%d fires=%d skipped=%d", s.Boundaries, s.Fired, s.Skipped),
		}
		for _, reason := range reasonWords {
			if n := s.SkipReasons[reason]; n > 0 {
				words = append(words, fmt.Sprintf("%s=%d", reason, n))
			}
		}
		words = append(words, counts(
			tally{"quarantined", s.Quarantined}, tally{"fired-again", s.FiredAgain}, tally{"fired-by-repair", s.FiredByRepair},
			tally{"forgotten", s.Forgotten}, tally{"left", s.Left})...)
		words = append(words, "max-late="+formatDuration(s.MaxLate))
		write("schedule", words...)
	}
	for i := range r.Queues {
		q := &r.Queues[i]
		words := []string{quote(q.Name), fmt.Sprintf("enqueued=%d done=%d dead=%d pending=%d claimed=%d cancelled=%d",
			q.Enqueued, q.Done, q.Dead, q.Pending, q.Claimed, q.Cancelled)}
		for _, cause := range deathWords {
			words = append(words, counts(tally{cause, q.DeadReasons[cause]})...)
		}
		what := "queue"
		if q.Outbox {
			what = "outbox"
			words = append(words, fmt.Sprintf("delivered=%d", q.Delivered))
			words = append(words, counts(tally{"delivered-again", q.DeliveredAgain}, tally{"retried", q.Retried})...)
		}
		write(what, append(words, counts(tally{"done-forgotten", q.DoneForgotten}, tally{"lost", q.Lost})...)...)
	}
	for i := range r.Faults {
		c := &r.Faults[i].Cost
		words := []string{fmt.Sprintf("%d effect=%d", i+1, r.Faults[i].Effect)}
		words = append(words, counts(
			tally{"due", c.Due}, tally{"on-time", c.OnTime}, tally{"late", c.Late}, tally{"skipped", c.Skipped},
			tally{"forgotten", c.Forgotten}, tally{"left", c.Left},
			tally{"fired-again", c.FiredAgain}, tally{"fired-early", c.FiredEarly})...)
		if c.FiredEarly > 0 {
			words = append(words, "max-early="+formatDuration(c.MaxEarly))
		}
		if c.Silence > 0 {
			words = append(words, "silence="+formatDuration(c.Silence), "silent="+quote(c.Silent))
		}
		write("fault", words...)
	}
	for _, f := range r.Failures {
		write("failure", quote(f.Invariant), quote(f.Schedule), quote(f.Detail))
	}
	for _, text := range r.Unmet {
		write("note", quote(text))
	}
	for _, e := range r.Excused {
		write("note", quote(e.Text))
	}
	for _, m := range r.Coverage.Marks() {
		if m.Reached > 0 {
			write("mark", fmt.Sprintf("%s=%d", m.ID, m.Reached))
		}
	}
	write("digest", r.Digest.String())
	return b.String()
}

// tally is a count and its word.
type tally struct {
	word string
	n    int64
}

// counts are the words of those tallies that are not 0.
func counts(tallies ...tally) (words []string) {
	for _, t := range tallies {
		if t.n > 0 {
			words = append(words, fmt.Sprintf("%s=%d", t.word, t.n))
		}
	}
	return words
}

// reasonWords are the reasons for a skip.
var reasonWords = []string{
	store.SkipPause.String(), store.SkipHours.String(), store.SkipPolicy.String(), store.SkipOverlap.String(),
	store.SkipCap.String(), store.SkipMissed.String(),
}
