package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// Every value of a kind has a word of its own, by which people and their
// programs know it, and no other number has one.
func TestKindsHaveWords(t *testing.T) {
	for kind, words := range map[string][]string{
		"State":      wordsOf[store.State](),
		"Execution":  wordsOf[store.Execution](),
		"Overlap":    wordsOf[store.Overlap](),
		"Pause":      wordsOf[store.Pause](),
		"Outcome":    wordsOf[store.Outcome](),
		"SkipReason": wordsOf[store.SkipReason](),
		"Why":        wordsOf[store.Why](),
		"Part":       wordsOf[store.Part](),
	} {
		require.Equal(t, map[string][]string{
			"State":      {"", "pending", "claimed", "dead", "done"},
			"Execution":  {"", "ok", "failed", "timed_out", "panicked", "cancelled", "lost"},
			"Overlap":    {"allow", "skip", "buffer_one"},
			"Pause":      {"active", "user", "breaker", "run_once"},
			"Outcome":    {"stale", "moved", "full"},
			"SkipReason": {"", "pause", "hours", "policy", "overlap", "cap", "missed", "before"},
			"Why":        {"", "conflict", "claim_lost", "not_found", "queue_full", "schedules_full"},
			"Part":       {"guards", "puts", "removes", "settles", "cancels", "requeues", "purges", "inserts"},
		}[kind], words, kind)
	}
	require.Equal(t, []string{"done", "lost", "buffer_one", "run_once", "full", "before", "schedules_full", "inserts"}, []string{
		store.Done.String(), store.Lost.String(), store.BufferOne.String(), store.PausedByRunOnce.String(),
		store.Full.String(), store.SkipBefore.String(), store.SchedulesFull.String(), store.Inserts.String(),
	})
}

// wordsOf are the words of the values that have one.
func wordsOf[E interface {
	~uint8
	fmt.Stringer
}]() (words []string) {
	for e := range 256 {
		if word := E(e).String(); word != "unknown" {
			words = append(words, word)
		}
	}
	return words
}
