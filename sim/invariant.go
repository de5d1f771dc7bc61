package sim

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// invariant is what must hold at every event. The constants are the catalogue, so
// that one that was never checked shows, too.
type invariant uint8

const (
	firesOnce invariant = iota
	onGridOnly
	notEarly
	capHeld
	movesOn
	oneFate
	oneState
	attemptsHeld
	conservation
	oneClaim
	rightJob
	staleToken
	oneLease
	termsRise
	fence
	failedWrite
	exits
	noSpin
	opensBreaker
	runsOnce
	durability
	liveness
	asAsked
	firstOfGrid
	keepsGrid
	pauses
	rightRows
	revGuard
	fireOrder
	trueReport
	trueEvents
	repairs
	rightPolicy
	namedSkips
	budgetHeld
	holdsBad
	queueBound
	holdsStill
	renewsFirst
	releases
	keepsLease
	claimOrder
	rightEnding
	runsAlone
	rightWhy
	oneDelivery
	withItsAck
	rightTries
	keepsClaims
	timesOut
	stops
	noError
	panicked

	invariants = iota
)

// rules has the name of each invariant, by the number of the list of invariants
// or by the rule, and what it says.
var rules = [invariants]struct{ name, about string }{
	firesOnce:    {"1 fires once", "no boundary fires twice, and none that was skipped fires"},
	onGridOnly:   {"1 on the grid", "only boundaries of a schedule's grid fire"},
	notEarly:     {"1 not early", "no boundary fires, and no job is handed out, before its time"},
	capHeld:      {"2 cap", "a tick fires at most 64 boundaries of a schedule"},
	movesOn:      {"2 moves on", "after a tick the cursor is the first boundary after now"},
	oneFate:      {"3 one fate", "each boundary that a cursor passes fires or is skipped, as the policy says"},
	oneState:     {"4 one state", "each job is in one state, the one that the calls come to"},
	attemptsHeld: {"4 attempts", "each claim is one attempt, and none is beyond the most"},
	conservation: {"4 conservation", "a queue's counters add up to the jobs that it was given"},
	oneClaim:     {"5 one claim", "no job is handed out while its claim holds"},
	rightJob:     {"T2 right job", "a job has what its schedule put into it, at the worker as in the store"},
	staleToken:   {"5 stale token", "the live token ends or extends a claim, and a stale one changes nothing"},
	oneLease:     {"6 one lease", "at most one runner holds the lease, for as long as was asked for"},
	termsRise:    {"6 terms rise", "each new lease has a larger term"},
	fence:        {"6 fence", "a tick is written if its lease is live, and only then"},
	failedWrite:  {"7 failed write", "a write that was refused changes nothing"},
	exits:        {"8 exits", "a runner ends by a stop, by another's lead or by exhausted retries, and not otherwise"},
	noSpin:       {"9 no spin", "while the store fails each loop calls it every 5 s at most"},
	opensBreaker: {"10 breaker", "a breaker opens after so many jobs in a row that failed, and only then"},
	runsOnce:     {"10 run-once", "a run-once schedule fires once, and its job starts at most once"},
	durability:   {"11 durable", "a restart finds the state that was kept"},
	liveness:     {"13 liveness", "what is due comes in time, once no fault is to blame"},
	asAsked:      {"S1 as asked", "an operation that answers no error is done as it was asked for"},
	firstOfGrid:  {"S2 first boundary", "a new grid begins with its first boundary after now"},
	keepsGrid:    {"S5 keeps its grid", "a registration begins anew if interval or anchor change, and only then"},
	pauses:       {"S7 pause", "a pause changes nothing else, a resume skips what was missed and no more"},
	rightRows:    {"T1 right rows", "rows are read as they were written, and those that are due alone"},
	revGuard:     {"T3 guard", "a row is written if it is as it was read, and only then"},
	fireOrder:    {"T10 order", "schedules are read, and their boundaries fire, by time and then by name"},
	trueReport:   {"T12 report", "a runner reports what its tick did"},
	trueEvents:   {"true events", "an observer is told once of each thing that an operation did, if its outcome is known"},
	repairs:      {"T11 repair", "a repair mends what a clock that was ahead did, and nothing else"},
	rightPolicy:  {"T14 policy", "a schedule is stored with the policy that was asked for"},
	namedSkips:   {"T14 named skips", "what a write passes over is named with its reason"},
	budgetHeld:   {"T15 budget", "a tick stays within its budget, or fires one schedule alone"},
	holdsBad:     {"Q1 holds bad rows", "a row that cannot be decided is held, and no other"},
	queueBound:   {"Q6 queue bound", "a queue takes jobs up to its limit, and no more"},
	holdsStill:   {"Q3 hold", "a row that is held fires nothing, and keeps its cursor, for a minute"},
	renewsFirst:  {"R3 renews first", "a tick is written once, after a renewal and a look of its own"},
	releases:     {"L5 releases", "a clean stop releases the lease"},
	keepsLease:   {"L7 keeps its lease", "a runner with no fault to blame renews its lease before half of it is over"},
	claimOrder:   {"QU1 order", "of the jobs that are ready, the one with the highest priority and then the earliest is handed out"},
	rightEnding:  {"QU6 right ending", "a job ends as its handler did, or is tried again within its curve"},
	runsAlone:    {"X9 alone", "no two jobs are claimed at once of a schedule whose runs may not overlap"},
	rightWhy:     {"X12 why", "the engine can tell what became of any boundary, or from when on it knows"},
	oneDelivery:  {"O1 one delivery", "an outbox's call delivers one entry, settles it once, extends no claim by itself, and answers what became of it"},
	withItsAck:   {"X2 with its ack", "what a run delivers is written together with its ack, once and as it was staged, and that of a run that failed never is"},
	rightTries:   {"X7 right tries", "a result is delivered in three tries, 1 s and 2 s after the one before or as asked for, and of one that fails for good there is no other"},
	keepsClaims:  {"W4 keeps claims", "a worker renews the claim of each of its runs before half of it is over, or ends the run"},
	timesOut:     {"X5 times out", "a run that has ended is settled at once, and one that times out as a failure at its deadline"},
	stops:        {"W6 stops", "a worker that stops claims nothing more, and ends in time"},
	noError:      {"no error", "no call fails but those that a fault loses"},
	panicked:     {"no panic", "nothing panics"},
}

func (i invariant) String() string { return rules[i].name }

// panickedIn names the functions under which a recovered panic began, the
// innermost first, without paths and addresses. The deferred function calls it.
func panickedIn() string {
	const most = 8
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	var names []string
	for more := true; more && len(names) < most; {
		var f runtime.Frame
		f, more = frames.Next()
		name := path.Base(f.Function)
		switch {
		case strings.HasPrefix(name, "runtime."):
			names = names[:0] // the panic's own frames, and those of its recovery before
		case name == "sim.(*world).next" || strings.HasPrefix(name, "sim.newCall") || strings.HasPrefix(name, "iter."):
			more = false
		default:
			names = append(names, fmt.Sprintf("%s (%s:%d)", name, path.Base(f.File), f.Line))
		}
	}
	return strings.Join(names, " < ")
}
