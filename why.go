package tickonce

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// WhyKind says what became of a boundary.
type WhyKind uint8

// What becomes of a boundary (X12), each with the fields of [Why] that it sets
// beside Runs.
const (
	WhyNoBoundary WhyKind = iota + 1 // the schedule has none there
	WhyNotYet                        // Paused, Hold: it has neither fired nor been skipped
	WhyFired                         // Job, State, Late, Lateness: it fired, and its job has not ended; Since alone, if not even that is known
	WhyRan                           // Job, State, Late, Lateness: it fired, and its job ran
	WhySkipped                       // Skip
	WhyMissed                        // Skip: it was due when its grid ended, or a run-once's that came too late
	WhyBefore                        // the schedule was not yet on this grid
	WhyForgotten                     // Since
)

var whyNames = [...]string{"", "no_boundary", "not_yet", "fired", "ran", "skipped", "missed", "before", "forgotten"}

func (k WhyKind) String() string {
	if int(k) < len(whyNames) {
		return whyNames[k]
	}
	return "unknown"
}

// Lateness says how a boundary fired.
type Lateness uint8

// The kinds of lateness.
const (
	FiredOnTime   Lateness = iota // within [Config.OnTime]
	FiredLate                     // later
	FiredCaughtUp                 // so late that the next boundary had come as well
)

var latenesses = [...]string{"on_time", "late", "caught_up"}

func (l Lateness) String() string {
	if int(l) < len(latenesses) {
		return latenesses[l]
	}
	return "unknown"
}

// Why is what became of a boundary.
type Why struct {
	Schedule string
	Boundary time.Time
	Kind     WhyKind

	Runs []PastRun // those that are kept of the boundary, the oldest first

	Job      JobID    // the latest that it fired; 0: not known, or of no kept run and not kept itself
	State    JobState // of it; 0: cancelled, or died and was removed
	Late     time.Duration
	Lateness Lateness

	Skip *PastSkip

	Paused Pause
	Hold   *Hold

	// Since is the instant from which on the history knows everything: an
	// earlier boundary may have been skipped, may have run, or may have been one
	// of an earlier grid, without that it would know. The zero time otherwise.
	Since time.Time
}

// Why tells what became of a boundary of a schedule (X12). A boundary that the
// schedule's present grid has is answered for that grid, as it stands; any other
// for the grids that it had before, as far as the history goes back. A time
// that cannot be told from what is kept is [WhyForgotten], never a guess; so is
// one of a range that is [SkippedAsBefore], unless no grid before can have had it.
//
// It looks for the job of a boundary that fired in all queues, unless the
// history says how it ended, so it takes as long as they are. [ErrNotFound]: no
// such schedule. [ErrConflict]: it was changed all the while. A boundary beyond
// the range of instants is [ErrInvalidOption].
func (e *Engine) Why(ctx context.Context, schedule string, boundary time.Time) (Why, error) {
	if err := core.CheckName("schedule name", schedule); err != nil {
		return Why{}, err
	}
	if year := boundary.Year(); year < -280_000 || year > 280_000 {
		return Why{}, &OptionError{Option: "boundary", Problem: "is in the year " + strconv.Itoa(year) + ", want -280000 to 280000"}
	}
	at := instantOf(boundary)
	if boundary.Nanosecond()%int(time.Millisecond) != 0 {
		return Why{Schedule: schedule, Boundary: boundary, Kind: WhyNoBoundary}, nil
	}
	for range conflictTries {
		known, again, err := e.recall(ctx, schedule, at)
		if err != nil {
			return Why{}, opError("why", schedule, err)
		}
		if !again {
			return known.why(e, at), nil
		}
	}
	return Why{}, opError("why", schedule, ErrConflict)
}

// known is what is known of one boundary.
type known struct {
	row   store.Schedule
	on    bool  // the present grid has the boundary
	every int64 // its interval; 0: the row cannot be decided

	runs         []store.Run       // of the boundary, oldest first
	skips        []store.SkipRange // that have the boundary, newest first
	job          *store.Job        // of the boundary, or nil
	ranSince     store.Instant
	skippedSince store.Instant
	earlier      store.Instant
}

// recall reads what is known of a boundary. It says again if the schedule has
// begun another incarnation meanwhile. What has passed by the first read is in
// what the later ones read.
func (e *Engine) recall(ctx context.Context, schedule string, at store.Instant) (known, bool, error) {
	row, _, err := e.read(ctx, schedule)
	if err != nil || row == nil {
		if err == nil {
			err = ErrNotFound
		}
		return known{}, false, err
	}
	k := known{row: *row}
	k.on, k.every = core.OnGrid(row, at)
	if err := k.readSkips(ctx, e.store, at); err != nil {
		return known{}, false, err
	}
	if err := k.readRuns(ctx, e.store, at); err != nil {
		return known{}, false, err
	}
	if !k.ended(at) {
		if k.job, err = e.jobOfBoundary(ctx, &k, at); err == nil {
			err = k.readRuns(ctx, e.store, at) // the job may have ended before it was looked for
		}
		if err != nil {
			return known{}, false, err
		}
	}
	now, _, err := e.read(ctx, schedule)
	return k, now == nil || now.ID != row.ID, err
}

// readSkips reads the ranges that have the boundary.
func (k *known) readSkips(ctx context.Context, s store.Store, at store.Instant) error {
	return readHistory(ctx, store.Page{Schedule: k.row.Name}, s.Skips, skipID, func(h store.History, skips []store.SkipRange) bool {
		k.skippedSince, k.earlier = h.Since, h.Earlier
		for _, r := range skips {
			if r.First <= at && at <= r.Last && int64(at-r.First)%r.EveryMS == 0 {
				k.skips = append(k.skips, r)
			}
		}
		return true
	})
}

// readRuns reads the runs of the boundary.
func (k *known) readRuns(ctx context.Context, s store.Store, at store.Instant) error {
	k.runs = nil
	err := readHistory(ctx, store.Page{Schedule: k.row.Name}, s.Runs, runID, func(h store.History, runs []store.Run) bool {
		k.ranSince = h.Since
		for _, r := range runs {
			if r.FireAt == at {
				k.runs = append(k.runs, r)
			}
		}
		return true
	})
	slices.Reverse(k.runs)
	return err
}

// ended reports whether there is no job to look for: none can have been fired
// yet, or its end is known.
func (k *known) ended(at store.Instant) bool {
	own, skip := k.own(at)
	switch ran := k.lastRun(own); {
	case own && at >= k.row.Cursor:
		return true
	case ran != nil:
		return ran.To == store.Done || ran.To == 0
	case own:
		return skip != nil
	default:
		return k.every > 0 && at >= k.earlier
	}
}

// own reports whether the boundary is one of the present incarnation, and not
// one before it began (S2), and answers the newest range that has it of what it
// is a boundary of.
func (k *known) own(at store.Instant) (own bool, skip *store.SkipRange) {
	own = k.on && (at != k.row.Anchor || k.row.AtAnchor)
	for i := range k.skips {
		if r := &k.skips[i]; r.Reason == store.SkipBefore && r.ScheduleID == k.row.ID {
			own = false
		}
	}
	for i := range k.skips {
		if r := &k.skips[i]; r.Reason != store.SkipBefore && (!own || r.ScheduleID == k.row.ID) {
			return own, r
		}
	}
	return own, nil
}

// jobOfBoundary looks for the latest job of the boundary, first where the
// schedule fires into now.
func (e *Engine) jobOfBoundary(ctx context.Context, k *known, at store.Instant) (*store.Job, error) {
	row := &k.row
	own, _ := k.own(at)
	is := func(j *store.Job) bool {
		return j.Schedule == row.Name && j.FireAt == at && j.Counts() && (!own || j.ScheduleID == row.ID)
	}
	if j, err := e.latestJob(ctx, row.Queue, is); j != nil || err != nil {
		return j, err
	}
	for q, err := range e.Queues(ctx) {
		if err != nil {
			return nil, err
		}
		if q.Name == row.Queue || q.Pending+q.Claimed+q.Dead == 0 {
			continue
		}
		if j, err := e.latestJob(ctx, q.Name, is); j != nil || err != nil {
			return j, err
		}
	}
	return nil, nil
}

// latestJob answers the last job of the queue that is looked for, or nil.
func (e *Engine) latestJob(ctx context.Context, queue string, is func(*store.Job) bool) (found *store.Job, err error) {
	filter := store.Filter{Queue: queue}
	page := make([]store.Job, readPage)
	for {
		n, _, err := e.store.Jobs(ctx, filter, page)
		if err != nil {
			return nil, err
		}
		for i := range page[:n] {
			if is(&page[i]) {
				latest := page[i]
				found = &latest
			}
		}
		if n < len(page) {
			return found, nil
		}
		filter.From = page[n-1].ID + 1
	}
}

// why judges what is known.
func (k *known) why(e *Engine, at store.Instant) Why {
	row := &k.row
	w := Why{Schedule: row.Name, Boundary: timeOf(at)}
	for i := range k.runs {
		w.Runs = append(w.Runs, e.pastRun(&k.runs[i]))
	}
	own, skip := k.own(at)
	ran, job := k.lastRun(own), k.job
	switch {
	case at >= row.Cursor && (own || k.every == 0):
		w.Kind, w.Paused, w.Hold = WhyNotYet, row.Paused, holdOf(row.Hold)
	case job != nil && job.State != store.Dead, job != nil && ran == nil:
		w.Kind, w.Job, w.State = WhyFired, job.ID, job.State
		w.late(e, k, job.EnqueuedAt, at)
	case ran != nil:
		w.Kind, w.Job = WhyRan, ran.Job
		switch {
		case job != nil:
			w.State = job.State
		case ran.To == store.Done:
			w.State = store.Done
		}
		w.late(e, k, ran.FiredAt, at)
	case skip != nil:
		w.Kind = WhySkipped
		if skip.Reason == store.SkipMissed {
			w.Kind = WhyMissed
		}
		past := pastSkip(skip)
		w.Skip = &past
	case own && at < k.skippedSince:
		w.Kind, w.Since = WhyForgotten, timeOf(k.skippedSince)
	case own:
		w.Kind = WhyFired
		if at < k.ranSince {
			w.Since = timeOf(k.ranSince)
		}
	case k.every == 0:
		w.Kind, w.Since = WhyForgotten, timeOf(row.Cursor)
	case at < k.earlier:
		w.Kind, w.Since = WhyForgotten, timeOf(k.earlier)
	case k.on:
		w.Kind = WhyBefore
	default:
		w.Kind = WhyNoBoundary
	}
	return w
}

// lastRun answers the newest run of the boundary, or nil: of the present
// incarnation if the boundary is its own.
func (k *known) lastRun(own bool) *store.Run {
	for i := len(k.runs) - 1; i >= 0; i-- {
		if r := &k.runs[i]; !own || r.ScheduleID == k.row.ID {
			return r
		}
	}
	return nil
}

func (w *Why) late(e *Engine, k *known, fired, at store.Instant) {
	w.Late = durationOf(max(int64(fired-at), 0))
	switch {
	case w.Late <= e.config.OnTime:
	case k.every > 0 && w.Late >= durationOf(k.every):
		w.Lateness = FiredCaughtUp
	default:
		w.Lateness = FiredLate
	}
}

// String says it to people, in one line.
func (w Why) String() string {
	switch w.Kind {
	case WhyNotYet:
		text := "not yet: it has neither fired nor been skipped"
		if w.Paused != Active {
			text += "; the schedule is paused"
		}
		switch w.Paused {
		case PausedByBreaker:
			text += " by its breaker"
		case PausedByRunOnce:
			text += " for good, since it had its turn"
		}
		if w.Hold != nil {
			text += "; the schedule is held since " + timeText(w.Hold.Since) + ": " + w.Hold.Reason
		}
		return text
	case WhyFired, WhyRan:
		return w.fired()
	case WhySkipped, WhyMissed:
		text := "skipped"
		if w.Kind == WhyMissed {
			text = "missed"
		}
		reasons := [...]string{
			SkippedByPause: " by the end of a pause", SkippedByHours: " outside the active hours",
			SkippedByPolicy: " by the catch-up policy", SkippedByOverlap: ", since a job of the schedule was live",
			SkippedByCap: ", as more than 64 were due", SkippedAsMissed: "", SkippedAsBefore: "",
		}
		text += reasons[w.Skip.Reason]
		if w.Skip.Count > 1 {
			text += ", one of " + strconv.FormatInt(w.Skip.Count, 10) + " from " + timeText(w.Skip.First) + " to " + timeText(w.Skip.Last)
		}
		if w.Skip.From.Equal(w.Skip.Until) {
			return text + ", at " + timeText(w.Skip.Until)
		}
		return text + ", between " + timeText(w.Skip.From) + " and " + timeText(w.Skip.Until)
	case WhyBefore:
		return "never due: the schedule was not yet on this grid"
	case WhyForgotten:
		return "forgotten: the history goes back to " + timeText(w.Since)
	default:
		return "not a boundary of the schedule"
	}
}

func (w *Why) fired() string {
	text := "fired"
	if w.Lateness != FiredOnTime {
		text += " late, by " + w.Late.String()
	}
	if w.Lateness == FiredCaughtUp {
		text += ", to catch up"
	}
	for _, run := range w.Runs {
		text += "; attempt " + strconv.Itoa(run.Attempt) + " of job " + strconv.FormatInt(int64(run.Job), 10) + ": " +
			run.Execution.String() + ", at " + timeText(run.Finished)
		if run.Error != "" {
			text += ": " + strconv.Quote(run.Error)
		}
	}
	switch {
	case w.Job != 0:
		return text + "; job " + strconv.FormatInt(int64(w.Job), 10) + " is " + cmp.Or(w.State.String(), "gone")
	case !w.Since.IsZero():
		return text + "; how it ended is forgotten: runs are known from " + timeText(w.Since) + " on"
	default:
		return text + "; its job was removed before it ran"
	}
}

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }
