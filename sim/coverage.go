package sim

import (
	"slices"
	"strings"
)

// mark is a coverage mark: a state of affairs that a run is good for nothing
// without ever reaching, if all runs are like it. The constants are the
// catalogue, so that a mark that is never evaluated shows, too.
type mark uint8

const (
	capHit mark = iota
	capExceeded
	skipped
	skipOnGrid
	quarantined
	rowHealed
	queueFull
	budgetFull
	staleMove
	editMidTick
	editConflict
	pauseSkipped
	skippedByHours
	skippedByPolicy
	skippedByOverlap
	missedItsTurn
	missedByEdit
	beforeItsGrid
	triggerRefused
	triggerEnds
	ranOnce
	breakerReset
	breakerOpened
	leaderChanged
	twoLeaders
	leaseLapsed
	leaseAhead
	retriesExhausted
	staleWriteRefused
	pausedLeaderRefused
	renewalLostYetKept
	lateRenewalRefused
	claimReclaimed
	ackRefused
	duplicateAckRefused
	heartbeatRefused
	handlerPanicked
	runFailed
	runTimedOut
	runCancelled
	deadLetter
	jobExpired
	lastClaimLapsed
	unknownApplied
	unknownNotApplied
	crashMidTick
	crashMidRequest
	crashMidReply
	crashMidJob
	orphanApplied
	pauseOutlastsClaim
	throttleOutlastsClaim
	staleReadCaught
	storeFull
	journalFailed
	tornTail
	enqueueRefused
	entryRolledBack
	deliveredAgain
	resultDelivered
	resultRetried
	resultPermanent
	resultExhausted
	resultTimedOut
	resultRefused
	deliveryPanicked
	lateDeliveryRefused
	clockBackOverBoundary
	rearmed
	restoreLostTail

	marks = iota
)

// catalogue has the id and the meaning of each mark.
var catalogue = [marks]struct{ id, about string }{
	capHit:                {"cap-hit", "a tick fired exactly 64 boundaries of a schedule and skipped none"},
	capExceeded:           {"cap-exceeded", "a tick skipped boundaries beyond the 64th"},
	skipped:               {"skipped", "a boundary was skipped"},
	skipOnGrid:            {"skip-on-grid", "boundaries were skipped by a tick that ran exactly at a boundary"},
	quarantined:           {"quarantined", "a row was held"},
	rowHealed:             {"row-healed", "a row that was held fired, or went on, again"},
	queueFull:             {"queue-full", "a tick found no room in a queue"},
	budgetFull:            {"budget-full", "a tick left due schedules to the next one, to stay within its budget"},
	staleMove:             {"stale-move", "a row was left alone because it had changed since its tick had read it"},
	editMidTick:           {"edit-mid-tick", "a schedule was edited between the read and the write of a tick"},
	editConflict:          {"edit-conflict", "an edit was refused because its row had changed since it had read it"},
	pauseSkipped:          {"pause-skipped", "a resume skipped what came due in the pause"},
	skippedByHours:        {"skipped-by-hours", "a tick outside active hours skipped boundaries"},
	skippedByPolicy:       {"skipped-by-policy", "a tick skipped boundaries by their schedule's catch-up policy"},
	skippedByOverlap:      {"skipped-by-overlap", "a tick skipped boundaries since a job of their schedule was live"},
	missedItsTurn:         {"missed-its-turn", "a run-once came too late to fire"},
	missedByEdit:          {"missed-by-edit", "a new grid began while boundaries of the old one were due"},
	beforeItsGrid:         {"before-its-grid", "a new grid began behind some of its boundaries"},
	triggerRefused:        {"trigger-refused", "a fire by hand was refused, by a pause or a job that was live"},
	triggerEnds:           {"trigger-ends", "a fire by hand was the only turn of a run-once"},
	ranOnce:               {"ran-once", "a run-once fired, which ended its schedule"},
	breakerReset:          {"breaker-reset", "a job that is done ended a row of failures"},
	breakerOpened:         {"breaker-opened", "a breaker paused its schedule"},
	leaderChanged:         {"leader-changed", "another runner than the last one took the lead"},
	twoLeaders:            {"two-leaders", "two runners believed to lead at once"},
	leaseLapsed:           {"lease-lapsed", "a leader found its lease lapsed and took it anew"},
	leaseAhead:            {"lease-ahead", "a lease was taken over that a clock which was ahead had granted"},
	retriesExhausted:      {"retries-exhausted", "a leader's calls failed four times in a row"},
	staleWriteRefused:     {"stale-write-refused", "the write of a tick was refused because its lease was not live"},
	pausedLeaderRefused:   {"paused-leader-refused", "the same, and its leader was paused since it had read"},
	renewalLostYetKept:    {"renewal-lost-yet-kept", "a renewal failed and the lease was kept"},
	lateRenewalRefused:    {"late-renewal-refused", "a renewal was refused that was long on its way"},
	claimReclaimed:        {"claim-reclaimed", "a lapsed claim was handed out again"},
	ackRefused:            {"ack-refused", "a late worker's ack was refused"},
	duplicateAckRefused:   {"duplicate-ack-refused", "a second ack was refused, and nothing changed"},
	heartbeatRefused:      {"heartbeat-refused", "a heartbeat was refused because its claim was lost"},
	handlerPanicked:       {"handler-panicked", "a handler panicked"},
	runFailed:             {"run-failed", "a handler returned an error"},
	runTimedOut:           {"run-timed-out", "a run did not end by its deadline"},
	runCancelled:          {"run-cancelled", "a run was cut short by the stop of its worker"},
	deadLetter:            {"dead-letter", "a job died"},
	jobExpired:            {"job-expired", "a job died because it had expired"},
	lastClaimLapsed:       {"last-claim-lapsed", "a job died because the claim of its last attempt lapsed"},
	unknownApplied:        {"unknown-applied", "a call failed although the store had done it"},
	unknownNotApplied:     {"unknown-not-applied", "a call failed and the store had not done it"},
	crashMidTick:          {"crash-mid-tick", "a process crashed between the read and the write of a tick"},
	crashMidRequest:       {"crash-mid-request", "a process crashed while a request of it was on its way"},
	crashMidReply:         {"crash-mid-reply", "a process crashed while a reply to it was on its way"},
	crashMidJob:           {"crash-mid-job", "a process crashed while a handler of it was at work"},
	orphanApplied:         {"orphan-applied", "the store did a call whose process had crashed"},
	pauseOutlastsClaim:    {"pause-outlasts-claim", "a process was paused for longer than a claim of it lasted"},
	throttleOutlastsClaim: {"throttle-outlasts-claim", "a process was throttled for longer than a claim of it lasted"},
	staleReadCaught:       {"stale-read-caught", "a row was left alone because its tick rested on a stale read"},
	storeFull:             {"store-full", "a call failed because the store had no room for its record"},
	journalFailed:         {"journal-failed", "a call failed because its record could not be kept"},
	tornTail:              {"torn-tail", "the store opened without a record that was torn at the end of its journal"},
	enqueueRefused:        {"enqueue-refused", "a queue had no room for jobs of no schedule"},
	entryRolledBack:       {"entry-rolled-back", "an entry of an outbox was not written, since its transaction was refused or rolled back"},
	deliveredAgain:        {"delivered-again", "an entry of an outbox came through a second time, since it was not settled the first time"},
	resultDelivered:       {"result-delivered", "the result of a job was delivered"},
	resultRetried:         {"result-retried", "the delivery of a result failed, and was tried again"},
	resultPermanent:       {"result-permanent", "the delivery of a result failed for good"},
	resultExhausted:       {"result-exhausted", "the last try to deliver a result failed"},
	resultTimedOut:        {"result-timed-out", "a try to deliver a result did not end within 30 s"},
	resultRefused:         {"result-refused", "a run failed since the outbox had no room for its result"},
	deliveryPanicked:      {"delivery-panicked", "a delivery panicked, and its outbox settled the entry as failed"},
	lateDeliveryRefused:   {"late-delivery-refused", "an outbox's call could not settle the entry that it had delivered, since the claim was lost"},
	clockBackOverBoundary: {"clock-back-over-boundary", "the clock stepped back over a fired boundary"},
	rearmed:               {"rearmed", "a schedule began anew because a wrong clock had set its cursor"},
	restoreLostTail:       {"restore-lost-tail", "a restart forgot fires that had happened"},
}

func markIDs() []string {
	ids := make([]string, marks)
	for m := range catalogue {
		ids[m] = catalogue[m].id
	}
	return ids
}

// markOf is the mark with the id.
func markOf(id string) (mark, bool) {
	i := slices.Index(markIDs(), id)
	return mark(max(i, 0)), i >= 0
}

// allMarks stands for the whole catalogue, and -ID behind it for all but that.
const allMarks = "all"

// marksOf reads a list of marks: one, or all, or all but some.
func marksOf(text string) ([]mark, *refusal) {
	if m, ok := markOf(text); ok {
		return []mark{m}, nil
	}
	words := strings.Split(text, ",")
	if words[0] != allMarks {
		r := unknown(text, markIDs())
		r.allowed = "a coverage mark: " + r.allowed
		return nil, r
	}
	var without [marks]bool
	for _, word := range words[1:] {
		id, minus := strings.CutPrefix(word, "-")
		m, ok := markOf(id)
		switch {
		case !minus:
			return nil, refuse(word, "-MARK behind "+allMarks+",")
		case !ok:
			r := unknown(id, markIDs())
			r.allowed = "a coverage mark: " + r.allowed
			return nil, r
		}
		without[m] = true
	}
	var list []mark
	for m := range mark(marks) {
		if !without[m] {
			list = append(list, m)
		}
	}
	return list, nil
}

// Coverage counts, for every mark of the catalogue, how often a run or a sweep
// of runs looked at it and how often it was reached.
type Coverage struct {
	counts [marks]struct{ evaluated, reached int64 }
}

// Reach is the count of one mark.
type Reach struct {
	ID        string
	About     string
	Evaluated int64
	Reached   int64
}

// sometimes notes that the mark was looked at, and whether it was reached.
func (c *Coverage) sometimes(m mark, reached bool) {
	c.counts[m].evaluated++
	if reached {
		c.counts[m].reached++
	}
}

// reached reports whether the mark was ever reached.
func (c *Coverage) reached(m mark) bool { return c.counts[m].reached > 0 }

// Add adds the counts of other; the order of additions makes no difference.
func (c *Coverage) Add(other *Coverage) {
	for m := range c.counts {
		c.counts[m].evaluated += other.counts[m].evaluated
		c.counts[m].reached += other.counts[m].reached
	}
}

// Marks lists the whole catalogue with its counts, in its own order.
func (c *Coverage) Marks() []Reach {
	list := make([]Reach, marks)
	for m, count := range c.counts {
		list[m] = Reach{
			ID: catalogue[m].id, About: catalogue[m].about,
			Evaluated: count.evaluated, Reached: count.reached,
		}
	}
	return list
}
