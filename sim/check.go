package sim

// Check is how often an invariant was checked in a run, or in a sweep of runs.
type Check struct {
	Invariant string // its number and name, as "1 fires once"
	About     string
	Count     int64
}

// occasion is when invariants are checked.
type occasion uint8

const (
	anEvent occasion = iota
	aDueRow
	aTick
	aRefusedTick
	aComparedState
	aTickSent
	aMove
	aCurrentMove
	aMadeMove
	aHold
	aPass
	aSkip
	aFire
	aReport
	anOperation
	aClaim
	aClaimedJob
	aJobReceived
	aSettlement
	anEnding
	aBreakerCount
	anExtension
	aSecondAck
	aDelivery
	aResult
	aTry
	anAcquisition
	aRenewal
	aRelease
	aCommit
	aRegistration
	aRepair
	aPause
	aResume
	anEdit
	aTrigger
	anAnswer
	aStop
	anEnd
	aFailedCall
	anOpening
	anAuditedSchedule
	anAuditedQueue
	anAuditedJob
	aWhy
	aScheduleLeft
	aRest

	occasions = iota
)

// checkedAt has the invariants that are checked on each occasion.
var checkedAt = [occasions][]invariant{
	anEvent:           {panicked},
	aDueRow:           {rightRows, fireOrder},
	aTick:             {fence, rightRows, budgetHeld},
	aRefusedTick:      {fence},
	aComparedState:    {failedWrite},
	aTickSent:         {renewsFirst},
	aMove:             {revGuard},
	aCurrentMove:      {rightRows, queueBound},
	aMadeMove:         {capHeld, holdsBad, liveness},
	aHold:             {holdsStill},
	aPass:             {movesOn, oneFate, runsOnce},
	aSkip:             {namedSkips},
	aFire:             {firesOnce, onGridOnly, notEarly, oneFate, fireOrder, oneState},
	aReport:           {trueReport},
	anOperation:       {trueEvents},
	aClaim:            {oneState, claimOrder},
	aClaimedJob:       {oneState, oneClaim, notEarly, attemptsHeld, rightJob, runsAlone, runsOnce, claimOrder, liveness},
	aJobReceived:      {rightJob},
	aSettlement:       {staleToken},
	anEnding:          {rightEnding, attemptsHeld},
	aBreakerCount:     {opensBreaker},
	anExtension:       {staleToken},
	aSecondAck:        {staleToken},
	aDelivery:         {oneDelivery},
	aResult:           {withItsAck},
	aTry:              {rightTries},
	anAcquisition:     {oneLease, termsRise, keepsLease},
	aRenewal:          {oneLease, keepsLease},
	aRelease:          {oneLease},
	aCommit:           {revGuard, staleToken, queueBound},
	aRegistration:     {keepsGrid, firstOfGrid, notEarly, onGridOnly, firesOnce, asAsked, rightPolicy, namedSkips},
	aRepair:           {repairs, keepsGrid, firstOfGrid, notEarly, onGridOnly, firesOnce},
	aPause:            {pauses},
	aResume:           {pauses, namedSkips},
	anEdit:            {asAsked},
	aTrigger:          {asAsked},
	anAnswer:          {noError},
	aStop:             {exits, releases},
	anEnd:             {exits},
	aFailedCall:       {noSpin},
	anOpening:         {durability},
	anAuditedSchedule: {rightRows},
	anAuditedQueue:    {conservation, oneState},
	anAuditedJob:      {oneState},
	aWhy:              {rightWhy},
	aScheduleLeft:     {liveness},
	aRest:             {keepsClaims, timesOut, stops},
}

// checks lists all invariants with the number of their checks.
func (w *world) checks() []Check {
	list := make([]Check, invariants)
	for i, rule := range rules {
		list[i].Invariant, list[i].About = rule.name, rule.about
	}
	for o, n := range w.checked {
		for _, i := range checkedAt[o] {
			list[i].Count += n
		}
	}
	return list
}
