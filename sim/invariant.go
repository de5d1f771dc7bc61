package sim

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// invariant names what must hold at every event, by the number of the list of
// invariants or by the rule.
type invariant string

const (
	firesOnce    invariant = "1 fires once"
	onGridOnly   invariant = "1 on the grid"
	notEarly     invariant = "1 not early"
	capHeld      invariant = "2 cap"
	movesOn      invariant = "2 moves on"
	oneFate      invariant = "3 one fate"
	oneState     invariant = "4 one state"
	attemptsHeld invariant = "4 attempts"
	conservation invariant = "4 conservation"
	oneClaim     invariant = "5 one claim"
	rightJob     invariant = "T2 right job"
	staleToken   invariant = "5 stale token"
	oneLease     invariant = "6 one lease"
	termsRise    invariant = "6 terms rise"
	fence        invariant = "6 fence"
	failedWrite  invariant = "7 failed write"
	exits        invariant = "8 exits"
	noSpin       invariant = "9 no spin"
	durability   invariant = "11 durable"
	liveness     invariant = "13 liveness"
	asAsked      invariant = "S1 as asked"
	firstOfGrid  invariant = "S2 first boundary"
	keepsGrid    invariant = "S5 keeps its grid"
	pauses       invariant = "S7 pause"
	rightRows    invariant = "T1 right rows"
	revGuard     invariant = "T3 guard"
	fireOrder    invariant = "T10 order"
	trueReport   invariant = "T12 report"
	repairs      invariant = "T11 repair"
	rightPolicy  invariant = "T14 policy"
	budgetHeld   invariant = "T15 budget"
	holdsBad     invariant = "Q1 holds bad rows"
	queueBound   invariant = "Q6 queue bound"
	holdsStill   invariant = "Q3 hold"
	renewsFirst  invariant = "R3 renews first"
	releases     invariant = "L5 releases"
	keepsLease   invariant = "L7 keeps its lease"
	rightEnding  invariant = "QU6 right ending"
	noError      invariant = "no error" // but those of lost calls
	panicked     invariant = "no panic"
)

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
		case name == "sim.(*world).next" || strings.HasPrefix(name, "iter."):
			more = false
		default:
			names = append(names, fmt.Sprintf("%s (%s:%d)", name, path.Base(f.File), f.Line))
		}
	}
	return strings.Join(names, " < ")
}
