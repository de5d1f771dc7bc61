package sim

import (
	"fmt"
	"slices"
)

// Verdict is what a run, or a sweep of runs, came to.
type Verdict uint8

// The verdicts. Their numbers are the exit codes of the command simulate, but
// that of Unmet, which has the one of Safety.
const (
	Pass             Verdict = iota
	BadInput                 // the scenario could not be run
	Safety                   // an invariant was broken
	Liveness                 // what was due did not happen in time
	Nondeterministic         // the same scenario and seed gave another digest
	Vacuous                  // a coverage mark that was asked for was never reached
	Budget                   // the run took more events or memory, or a handler more steps, than it may
	HandlerCrash             // a handler panicked that was not meant to
	Unmet                    // an expectation was not met, and nothing graver happened that was not expected
)

var verdictWords = []string{
	Pass:             "pass",
	BadInput:         "bad-input",
	Safety:           "safety",
	Liveness:         "liveness",
	Nondeterministic: "nondeterministic",
	Vacuous:          "vacuous",
	Budget:           "budget",
	HandlerCrash:     "handler-crash",
	Unmet:            "unmet",
}

// String is the verdict's word in scenario files and JSON.
func (v Verdict) String() string {
	if int(v) < len(verdictWords) {
		return verdictWords[v]
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// ExitCode is the verdict as the exit code of a command.
func (v Verdict) ExitCode() int {
	if v == Unmet {
		return int(Safety)
	}
	return int(v)
}

// MarshalText makes the verdict its word in JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the verdict's word.
func (v *Verdict) UnmarshalText(text []byte) error {
	i := slices.Index(verdictWords, string(text))
	if i < 0 {
		return fmt.Errorf("found the verdict %s, want %s", shown(string(text)), oneOf(verdictWords))
	}
	*v = Verdict(i)
	return nil
}
