package store

// The kinds and states of rows in words, as docs and scenarios have them. What
// has no word is "unknown"; the zero value of a kind that begins at one is "".
var (
	states      = [...]string{"", "pending", "claimed", "dead", "done"}
	executions  = [...]string{"", "ok", "failed", "timed_out", "panicked", "cancelled", "lost"}
	overlaps    = [...]string{"allow", "skip", "buffer_one"}
	pauses      = [...]string{"active", "user", "breaker", "run_once"}
	outcomes    = [...]string{"stale", "moved", "full"}
	skipReasons = [...]string{"", "pause", "hours", "policy", "overlap", "cap", "missed", "before"}
	whys        = [...]string{"", "conflict", "claim_lost", "not_found", "queue_full", "schedules_full"}
	parts       = [...]string{"guards", "puts", "removes", "settles", "cancels", "requeues", "purges", "inserts"}
)

func (s State) String() string      { return word(states[:], s) }
func (x Execution) String() string  { return word(executions[:], x) }
func (o Overlap) String() string    { return word(overlaps[:], o) }
func (p Pause) String() string      { return word(pauses[:], p) }
func (o Outcome) String() string    { return word(outcomes[:], o) }
func (r SkipReason) String() string { return word(skipReasons[:], r) }
func (w Why) String() string        { return word(whys[:], w) }
func (p Part) String() string       { return word(parts[:], p) }

func word[E ~uint8](words []string, e E) string {
	if int(e) < len(words) {
		return words[e]
	}
	return "unknown"
}
