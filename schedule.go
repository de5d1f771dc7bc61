package tickonce

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// ScheduleOptions say how the boundaries of a schedule fire. A zero field is
// its default.
type ScheduleOptions struct {
	// Visibility, MaxAttempts and BaseBackoff are stamped onto every job that
	// the schedule fires (S3, S4): how long a worker has for it without a
	// heartbeat, how often it is tried, and the base of the retry curve.
	// Defaults: 5 min, 3, 1 min.
	Visibility  time.Duration
	MaxAttempts int
	BaseBackoff time.Duration // at most 1 h

	Priority int16         // higher is claimed sooner
	Expires  time.Duration // a fired job not started after this long dies; 0: never

	// Anchor puts the boundaries on Anchor + k·interval, in the past or in
	// the future (S2). The zero time keeps the anchor of a schedule that is
	// there with the same interval (S5), or is the instant of registration: a
	// program that keeps no snapshot sets one, or its grid begins anew at each
	// start. A fraction of a millisecond is rounded up.
	Anchor time.Time

	// CatchUp says which of several missed boundaries fire (T14).
	CatchUp CatchUp

	// Overlap says whether a boundary fires while jobs of the schedule are live
	// (X9).
	Overlap Overlap

	// ActiveHours are the hours of the day in which boundaries fire (X10).
	ActiveHours ActiveHours

	// RunOnce pauses the schedule for good when it fires first: its one job is
	// tried once, so that it starts at most once, ever (X8). MaxAttempts is 1
	// then. Of several missed boundaries one fires; are all later than the
	// window of CatchUp, none does, and the schedule has had its turn as well.
	// It begins anew with another interval or anchor, or ResetCursor.
	RunOnce bool

	// Breaker is how many jobs in a row have to fail to pause the schedule
	// (X4): die by their handlers' word, or with their attempts exhausted. One
	// that is done begins the count anew, and so does [Engine.Resume]. Default
	// 3; at most 255; -1: never.
	Breaker int

	// Timeout is how long a run of its jobs may take, from its claim on (X5),
	// where [WorkerConfig.Timeout] is not less. 0: no bound of its own.
	Timeout time.Duration

	// ResetCursor begins a new grid from now even if nothing else changed
	// (S5).
	ResetCursor bool
}

// CatchUp says which of several boundaries that are due at once fire (T14):
// those not later than the window, of these at most Count, the oldest or the
// newest. The others are skipped. The zero value is [CatchUpAll].
type CatchUp struct {
	Window time.Duration // 0: none; or [GraceWindow], [OnTimeWindow]
	Count  int           // 1 to 64, and to Limits.QueueLength; 0: as many as that
	Newest bool
}

// Windows that are resolved when a schedule is registered.
const (
	GraceWindow  time.Duration = -1 // half the interval, within 2 min and 2 h
	OnTimeWindow time.Duration = -2 // [Config.OnTime]
)

// The catch-up policies.
var (
	CatchUpAll    = CatchUp{}                                             // the 64 oldest
	CatchUpLatest = CatchUp{Count: 1, Newest: true}                       // the newest
	CatchUpGrace  = CatchUp{Window: GraceWindow}                          // the 64 oldest within the grace window
	CatchUpNone   = CatchUp{Window: OnTimeWindow, Count: 1, Newest: true} // only one that is on time
)

// Schedule is a schedule as it was read or written, with its options resolved.
type Schedule struct {
	Name    string
	Spec    string // as stored; a row from elsewhere may hold what does not parse (Q1)
	Queue   string
	Payload []byte // a copy
	Options ScheduleOptions

	Next time.Time // the next boundary that has neither fired nor been skipped
	Due  time.Time // when the runner looks at it; zero while paused

	Paused   Pause
	Failures int   // jobs in a row that failed, as far as its breaker counts
	Hold     *Hold // why it is quarantined, or nil (Q4)
}

// Pause says whether a schedule is paused, and by what (S7).
type Pause = store.Pause

// The states of a schedule.
const (
	Active          = store.Active
	PausedByUser    = store.PausedByUser
	PausedByBreaker = store.PausedByBreaker
	PausedByRunOnce = store.PausedByRunOnce
)

// Hold is a quarantine mark (Q4).
type Hold struct {
	Reason string
	Since  time.Time // of the first of the consecutive holds
	Times  int
}

func scheduleOf(row *store.Schedule) Schedule {
	s := Schedule{
		Name: row.Name, Spec: row.Spec, Queue: row.Queue, Payload: cloneBytes(row.Payload),
		Options: ScheduleOptions{
			Visibility:  durationOf(row.Stamps.VisibilityMS),
			MaxAttempts: int(row.Stamps.MaxAttempts),
			BaseBackoff: durationOf(int64(row.Stamps.BaseBackoffMS)),
			Priority:    row.Priority,
			Expires:     durationOf(row.ExpiresMS),
			Anchor:      timeOf(row.Anchor),
			CatchUp: CatchUp{
				Window: durationOf(row.CatchUp.WindowMS), Count: int(row.CatchUp.Max), Newest: row.CatchUp.Newest,
			},
			Overlap: row.Overlap,
			RunOnce: row.RunOnce,
			Breaker: int(row.Breaker),
		},
		Next: timeOf(row.Cursor), Due: timeOf(row.DueAt), Paused: row.Paused, Failures: int(row.Failures),
	}
	if row.Breaker == 0 {
		s.Options.Breaker = -1
	}
	if row.Rare != nil {
		s.Options.ActiveHours = activeHoursOf(row.Rare.Hours)
		s.Options.Timeout = durationOf(row.Rare.TimeoutMS)
	}
	s.Hold = holdOf(row.Hold)
	return s
}

func holdOf(h *store.Hold) *Hold {
	if h == nil {
		return nil
	}
	return &Hold{Reason: h.Reason, Since: timeOf(h.Since), Times: int(h.Times)}
}

// Schedule registers a schedule, or changes the one of that name (S1), and
// returns it as it stands then. Registering never fires: the first boundary is
// the first of the grid strictly after now (S2). Registering the same interval
// and anchor again keeps the cursor, so that it can be done at each start
// (S5); a change of queue, payload or options holds for future fires (S4).
//
// Faults are found in the order name, queue, spec, payload, options, and
// change nothing (N1, N3): [ErrInvalidName], [ErrReservedName],
// [ErrInvalidSpec], [ErrLimit], [ErrInvalidOption]. [ErrConflict]: others
// changed the schedule all the while.
func (e *Engine) Schedule(ctx context.Context, name, spec, queue string, payload []byte, o ScheduleOptions) (Schedule, error) {
	reg, err := e.registration(name, spec, queue, payload, o)
	if err != nil {
		return Schedule{}, err
	}
	var row store.Schedule
	if _, _, err := e.update(ctx, "schedule", name, planSchedule(reg, &row)); err != nil {
		return Schedule{}, err
	}
	return scheduleOf(&row), nil
}

// Unschedule removes a schedule and reports whether there was one (N4). What
// it fired stays (S6).
func (e *Engine) Unschedule(ctx context.Context, name string) (bool, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return false, err
	}
	for range conflictTries {
		old, _, err := e.read(ctx, name)
		if err != nil || old == nil {
			return false, opError("unschedule", name, err)
		}
		batch := &store.Batch{Removes: []store.Guard{guardOf(name, old)}}
		done, err := e.commit(ctx, "unschedule", batch)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return false, err
		}
		e.emit(Event{Kind: EventUnscheduled, At: timeOf(done.Now), Schedule: name})
		return true, nil
	}
	return false, opError("unschedule", name, ErrConflict)
}

// Pause stops a schedule from firing, at once (S7), and reports whether that
// changed anything: an absent or a paused schedule is (false, nil).
func (e *Engine) Pause(ctx context.Context, name string) (bool, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return false, err
	}
	changed, _, err := e.update(ctx, "pause", name, planPause)
	return changed, err
}

// ResumeOptions say what a resume does with the boundaries missed meanwhile.
type ResumeOptions struct {
	// CatchUp leaves them to the catch-up policy of the schedule. Otherwise
	// they are one recorded skip.
	CatchUp bool
}

// Resume ends a pause (S7), also one of the breaker's, whose count begins anew
// (X4), and reports whether that changed anything: a schedule that is absent,
// active, or a run-once that had its turn (X8) is (false, nil).
func (e *Engine) Resume(ctx context.Context, name string, o ResumeOptions) (bool, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return false, err
	}
	changed, _, err := e.update(ctx, "resume", name, planResume(o))
	return changed, err
}

// Lookup returns the schedule of that name, and whether there is one.
func (e *Engine) Lookup(ctx context.Context, name string) (Schedule, bool, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return Schedule{}, false, err
	}
	row, _, err := e.read(ctx, name)
	if err != nil || row == nil {
		return Schedule{}, false, opError("lookup", name, err)
	}
	return scheduleOf(row), true, nil
}

// Schedules returns all schedules in the order of their names, read page by
// page: what changes meanwhile is seen or not. An error ends the sequence.
func (e *Engine) Schedules(ctx context.Context) iter.Seq2[Schedule, error] {
	return func(yield func(Schedule, error) bool) {
		page := make([]store.Schedule, readPage)
		for from, more := "", true; more; {
			n, _, err := e.store.Schedules(ctx, from, page)
			if err != nil {
				yield(Schedule{}, opError("schedules", "", err))
				return
			}
			for i := range page[:n] {
				if !yield(scheduleOf(&page[i]), nil) {
					return
				}
			}
			if more = n == len(page); more {
				from = after(page[n-1].Name)
			}
		}
	}
}

const (
	readPage      = 256
	conflictTries = 16
)

// after is the first string that sorts after name.
func after(name string) string { return name + "\x00" }

// read reads one schedule: nil if there is none.
func (e *Engine) read(ctx context.Context, name string) (*store.Schedule, store.Instant, error) {
	var row [1]store.Schedule
	n, now, err := e.store.Schedules(ctx, name, row[:])
	if err != nil || n == 0 || row[0].Name != name {
		return nil, now, err
	}
	return &row[0], now, nil
}

// change is what becomes of a schedule.
type change struct {
	row    *store.Schedule // to be written, or nil: nothing changes
	anew   bool            // it is on a grid that begins with it
	skips  []store.Skip    // boundaries that the write passes over
	fire   *store.Insert   // a job of the schedule that is inserted with it, or nil
	events []Event
}

// overlaps reports whether the change rests on the jobs that are live (X9).
func (c *change) overlaps() bool { return c.fire != nil && c.fire.From.Alone }

// planner decides what becomes of a schedule, nil without one, at now.
type planner func(old *store.Schedule, now store.Instant) (change, error)

// update reads, plans and writes under the guard of what was read, again as
// long as others come in between. It reports whether there was a change, and
// which job was inserted.
func (e *Engine) update(ctx context.Context, op, name string, plan planner) (changed bool, job JobID, err error) {
	s := takeScratch()
	defer s.drop()
	for range conflictTries {
		old, now, err := e.read(ctx, name)
		if err != nil {
			return false, 0, opError(op, name, err)
		}
		ch, err := plan(old, now)
		if err != nil || ch.row == nil {
			return false, 0, err
		}
		guard := guardOf(name, old)
		if ch.overlaps() {
			guard.Live = &old.Live
		}
		s.put[0] = store.Put{Guard: guard, Row: *ch.row, Skips: ch.skips}
		s.batch = store.Batch{Puts: s.put[:]}
		if ch.fire != nil {
			s.insert[0] = *ch.fire
			s.batch.Inserts = s.insert[:]
		}
		done, err := e.commit(ctx, op, &s.batch)
		if ch.fire != nil {
			e.queues.raise(ch.fire.Queue) // after an error, too: it may be done
		}
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return false, 0, err
		}
		if ch.fire != nil {
			job = done.Inserts[0].Job
			ch.events = append(ch.events, enqueuedEvent(ch.fire, job))
		}
		e.announce(done.Now, ch.events)
		return true, job, nil
	}
	return false, 0, opError(op, name, ErrConflict)
}

// commit writes a batch; a refusal is an error.
func (e *Engine) commit(ctx context.Context, op string, b *store.Batch) (store.Committed, error) {
	done, err := e.store.Commit(ctx, b)
	if len(b.Puts) > 0 && done.Refusal.Why == store.NotRefused {
		e.woken.raise() // after an error, too: it may be done
	}
	if err != nil {
		opErr := &OpError{Op: op, Err: err}
		switch {
		case len(b.Puts) > 0:
			opErr.Schedule, opErr.Rows = b.Puts[0].Guard.Name, len(b.Puts)
		case len(b.Removes) > 0:
			opErr.Schedule, opErr.Rows = b.Removes[0].Name, len(b.Removes)
		case len(b.Inserts) > 0:
			opErr.Queue = b.Inserts[0].Queue
		}
		return done, opErr
	}
	if done.Refusal.Why != store.NotRefused {
		return done, e.refused(op, b, done.Refusal)
	}
	return done, nil
}

// announce emits the events of a change, which happened at now.
func (e *Engine) announce(now store.Instant, events []Event) {
	for _, event := range events {
		event.At = timeOf(now)
		e.emit(event)
	}
}

func guardOf(name string, old *store.Schedule) store.Guard {
	if old == nil {
		return store.Guard{Name: name}
	}
	return store.Guard{Name: name, ID: old.ID, Rev: old.Rev}
}

func opError(op, schedule string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Schedule: schedule, Err: err}
}

// planSchedule plans a registration, and sets row to what then stands (S1,
// S5). What is so already is no change (C25).
func planSchedule(reg *core.Registration, row *store.Schedule) planner {
	return func(old *store.Schedule, now store.Instant) (change, error) {
		planned, skips, ok := core.PlanPut(old, reg, now)
		if !ok {
			return change{}, &OptionError{Option: "Anchor", Problem: "puts the first boundary past the last instant"}
		}
		*row = planned
		if old != nil && core.SameRow(old, &planned) {
			return change{}, nil
		}
		anew := old == nil || !core.KeepsGrid(old, reg)
		ch := change{row: &planned, anew: anew, skips: skips, events: []Event{{
			Kind: EventScheduled, Schedule: planned.Name, Queue: planned.Queue, Boundary: timeOf(planned.Cursor),
		}}}
		for _, skip := range skips {
			if skip.Reason != store.SkipBefore {
				ch.events = append(ch.events, skipEvent(now, planned.Name, skip))
			}
		}
		return ch, nil
	}
}

func planPause(old *store.Schedule, _ store.Instant) (change, error) {
	if old == nil || old.Paused != store.Active {
		return change{}, nil
	}
	row := core.PlanPause(*old)
	return change{row: &row, events: []Event{{Kind: EventPaused, Schedule: old.Name}}}, nil
}

func planResume(o ResumeOptions) planner {
	return func(old *store.Schedule, now store.Instant) (change, error) {
		if old == nil || old.Paused == store.Active || old.Paused == store.PausedByRunOnce {
			return change{}, nil
		}
		row, skip := core.PlanResume(*old, now, o.CatchUp)
		ch := change{row: &row, events: []Event{{Kind: EventResumed, Schedule: old.Name, Boundary: timeOf(row.Cursor)}}}
		if skip.Count > 0 {
			ch.skips = []store.Skip{skip}
			ch.events = append(ch.events, skipEvent(now, old.Name, skip))
		}
		return ch, nil
	}
}

// registration checks a request in the order of N1 and resolves its options
// over the defaults of the queue (S3).
func (e *Engine) registration(name, spec, queue string, payload []byte, o ScheduleOptions) (*core.Registration, error) {
	if err := core.CheckName("schedule name", name); err != nil {
		return nil, err
	}
	if err := core.CheckName("queue", queue); err != nil {
		return nil, err
	}
	interval, err := core.ParseSpec(spec)
	if err != nil {
		return nil, err
	}
	if err := e.checkPayload(payload); err != nil {
		return nil, err
	}
	reg := &core.Registration{Interval: interval, ResetCursor: o.ResetCursor, Row: store.Schedule{
		Name: name, Spec: spec, Queue: queue, Payload: cloneBytes(payload), Priority: o.Priority,
	}}
	stamps := stampOptions{o.Visibility, o.MaxAttempts, o.BaseBackoff}
	if reg.Row.Stamps, err = stamps.over(core.PlainStamps); err != nil {
		return nil, err
	}
	if reg.Row.ExpiresMS, err = optionMS("Expires", o.Expires); err != nil {
		return nil, err
	}
	if reg.Anchor, err = optionInstant("Anchor", o.Anchor); err != nil {
		return nil, err
	}
	if reg.Row.CatchUp, err = e.resolve(o.CatchUp, interval); err != nil {
		return nil, err
	}
	if err := e.resolvePolicies(&reg.Row, o); err != nil {
		return nil, err
	}
	if problem := core.CheckPolicy(&reg.Row); problem != "" {
		return nil, &OptionError{Option: "ScheduleOptions", Problem: problem}
	}
	return reg, nil
}

func (e *Engine) resolve(c CatchUp, interval core.Spec) (store.CatchUp, error) {
	switch c.Window {
	case GraceWindow:
		c.Window = durationOf(core.GraceWindowMS(interval.IntervalMS()))
	case OnTimeWindow:
		c.Window = e.config.OnTime
	}
	if c.Window < 0 {
		return store.CatchUp{}, &OptionError{Option: "CatchUp.Window", Problem: "is " + c.Window.String() + ", want 0 or more, GraceWindow or OnTimeWindow"}
	}
	window, err := optionMS("CatchUp.Window", c.Window)
	if err != nil {
		return store.CatchUp{}, err
	}
	// More fires than the queue keeps jobs could never be written.
	most := min(core.CatchUpCap, e.config.Limits.QueueLength)
	if c.Count < 0 || c.Count > most {
		return store.CatchUp{}, &OptionError{Option: "CatchUp.Count", Problem: "is " + strconv.Itoa(c.Count) + ", want 0 to " + strconv.Itoa(most)}
	}
	if c.Count == 0 {
		c.Count = most
	}
	return store.CatchUp{WindowMS: window, Max: int32(c.Count), Newest: c.Newest}, nil
}

// stampOptions are the three options that become stamps.
type stampOptions struct {
	visibility  time.Duration
	maxAttempts int
	baseBackoff time.Duration
}

// over resolves the options over defaults.
func (o stampOptions) over(stamps store.Stamps) (store.Stamps, error) {
	visibility, err := optionMS("Visibility", o.visibility)
	if err != nil {
		return stamps, err
	}
	backoff, err := optionMS("BaseBackoff", o.baseBackoff)
	if err != nil {
		return stamps, err
	}
	switch {
	case o.maxAttempts < 0 || o.maxAttempts > 1<<31-1:
		return stamps, &OptionError{Option: "MaxAttempts", Problem: "is " + strconv.Itoa(o.maxAttempts) + ", want 0 to 2147483647"}
	case backoff > core.MaxBackoffMS:
		return stamps, &OptionError{Option: "BaseBackoff", Problem: "is " + o.baseBackoff.String() + ", want at most 1h0m0s"}
	}
	if visibility > 0 {
		stamps.VisibilityMS = visibility
	}
	if o.maxAttempts > 0 {
		stamps.MaxAttempts = int32(o.maxAttempts)
	}
	if backoff > 0 {
		stamps.BaseBackoffMS = int32(backoff)
	}
	return stamps, nil
}
