// Package tickonce is a schedule and work-queue engine that fires every
// boundary of a schedule once, on any host and under any clock.
//
// A schedule is a spec like "@every 5m", a queue and a payload. Each boundary
// of its grid becomes one ordinary job of that queue, which workers claim and
// settle. An [Engine] runs on a [store.Store]; package memengine has the one
// in memory:
//
//	eng, err := memengine.New(tickonce.Config{})
//	_, err = eng.Schedule(ctx, "report", "@every 5m", "mail", payload, tickonce.ScheduleOptions{})
//	go eng.RunSchedules(ctx) // one runner leads, and fires
//	err = eng.RunWorker(ctx, "mail", func(ctx context.Context, job *tickonce.Job) error {
//		return send(ctx, job.Payload)
//	}, tickonce.WorkerConfig{Concurrency: 4})
//
// Without a worker, [Engine.Claim] hands out a job, and its methods settle it.
//
// What a run has to tell the outside it hands to [Job.Deliver]. That is written
// with the end of the run, and delivered by a worker over the outbox, with
// tries, deadlines and classes of failures of its own:
//
//	err = eng.Outbox("chat").Run(ctx, func(ctx context.Context, entry *tickonce.Job) error {
//		return post(ctx, entry.Payload) // tickonce.Transient(err): try again
//	}, tickonce.WorkerConfig{})
//
// How a run ended and what became of its deliveries are two facts (X1): a
// failed delivery fails no run, and counts for no breaker.
//
// # Policies and history
//
// [ScheduleOptions] say which missed boundaries fire (T14), whether one fires
// while a job of the schedule is live (X9), in which hours of a zone (X10), once
// only (X8), and after how many failed jobs in a row no more (X4).
// [Engine.Trigger] fires one by hand. What came of it is kept by the store, within
// [Limits]: [Engine.History] has the runs, [Engine.Skips] the boundaries that did
// not fire, and [Engine.Why] says of any boundary what became of it, and why.
//
// # What holds
//
// A boundary fires once: firing it and moving past it are one atomic, guarded
// write (T3). After an outage what was missed is caught up, oldest first, at
// most 64 boundaries of a schedule at a time; the cursor then skips forward on
// its grid, and what was skipped is reported with its reason (T5, T6). One bad
// row stops nothing: it is quarantined and named (Q1). A runner that lost its
// lease writes nothing (L6). A handler may run twice, as when it outlives its
// claim; its job's attempt number tells which claim is the live one (QU4).
//
// # Time
//
// The store tells the time; an engine's clock only arms its timers. Instants
// are whole milliseconds since the Unix epoch within ±(2^53 − 1), in UTC;
// durations are whole milliseconds, and a fraction is refused.
//
// # Driving it
//
// [Engine.RunSchedules] and [Engine.RunWorker] are loops for a goroutine. A host
// without goroutines, or a simulator, calls [Runner.Step] and [Worker.Step]
// itself: each step makes at most one store call and says when to be called
// next.
//
// In tests, set a clock and step, as the example of [Runner.Step] does:
//
//	mock.Set(t)
//	for {
//		next, _, err := runner.Step(ctx)
//		if err != nil || next.IsZero() || next.After(mock.Now()) {
//			break // it failed, was stopped, or rests
//		}
//	}
//
// Beside a running loop a mock clock that is moved by a day outruns the loop,
// and the cap of 64 skips what the test meant to see.
//
// # Errors
//
// Refused input matches one of the sentinels with errors.Is and changes
// nothing. An [*OpError] without a sentinel behind it comes from the store,
// and its outcome is unknown: every write but an enqueue without a key is safe
// to ask for again.
//
// The ids in parentheses are those of the contract, docs/CONTRACT.md, which
// names the test of each.
package tickonce
