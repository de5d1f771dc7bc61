// Package sim runs the engine in virtual time, with faults, and judges what it
// did. A run is a pure function of its [Scenario]: equal scenarios give equal
// digests on every platform. Nothing here reads a clock, starts a goroutine or
// uses a float.
//
// The engine that runs is the product's own: its step functions are called at
// virtual instants, each with at most one store call, and between any two of
// them something else may happen. Every call is checked right at the store,
// against a model that shares no rule with the engine.
//
// # In your own tests
//
// Describe your schedules and what may go wrong, and demand a verdict:
//
//	func TestSchedulesSurviveTheNight(t *testing.T) {
//		r, err := sim.Run(sim.Scenario{
//			For:       24 * time.Hour,
//			Schedules: []sim.Schedule{{Name: "report", Spec: "@every 1h", Queue: "mail"}},
//			Faults:    []sim.Fault{{Kind: sim.FaultDown, At: 2 * time.Hour, For: 8 * time.Hour}},
//		})
//		if err != nil {
//			t.Fatal(err) // the scenario has a mistake
//		}
//		if r.Verdict != sim.Pass {
//			t.Fatal(r.Verdict, r.Failures, r.Unmet)
//		}
//	}
//
// [Sweep] does so with many seeds, and faults that each of them draws:
//
//	r, err := sim.Sweep(sim.Scenario{
//		For:       24 * time.Hour,
//		Schedules: []sim.Schedule{{Name: "report", Spec: "@every 1h", Queue: "mail"}},
//		Swarm:     sim.Swarm{Min: 1, Max: 12},
//	}, sim.Seeds{First: 1, Last: 200})
//	if err != nil {
//		t.Fatal(err)
//	}
//	r.Require(t) // names the seeds that failed, and how to run one again
//
// How is a scenario file and a command, which a module can run that has the line
// "tool github.com/tickonce/tickonce/cmd/simulate" in its go.mod.
//
// The verdict is about the engine: every invariant held, each as often as
// [Result.Checks] says. What you want of your schedules, say in
// [Scenario.Expect], or read from the [Result]: how many boundaries fired, which
// were skipped and why, how late they were. A failed run is repeated by the same
// scenario; its text, [Scenario.String], is what to keep.
//
// With [Scenario.Store] all of it runs on a store of yours, which is judged with the
// engine; package storetest, the suite of calls that it has to pass first, says more
// clearly what is wrong with a single one. [Scenario.Reopen] has each restart open it
// anew.
//
// [WatchJournal] holds what a journal of an engine has recorded against the same
// invariants, as far as rows can tell of them.
//
// [Watch] runs a scenario and tells what happens in it, event by event, each with
// the one that led to it: from a boundary that fired late back to the fault that
// delayed it. [Compare] runs two scenarios, such as the calm one and the one in
// which something goes wrong, and tells what is different in the second, and by
// which rule.
//
// [Shrink] makes a scenario that fails as small as it can while it fails in the
// same way, or one that reaches a coverage mark while it reaches it.
//
// [Record] keeps a run as a [Tape]: its random choices, and what happened. [Play]
// plays it on another machine or in a later version, and says where it differs.
//
// # Handlers in Go
//
// What runs a schedule's jobs can be code of your own, a [Steps], instead of the
// few words that [Schedule.Handler] has for it:
//
//	Handlers: sim.Handlers{"report": func(c *sim.Call) error {
//		if !online(c.Job.Payload, c.Now()) {
//			return errors.New("offline") // and is tried again
//		}
//		c.Sleep(3 * time.Second) // of virtual time
//		return nil
//	}},
//
// It runs as a coroutine: one handler at a time, from one sleep to the next, with
// the clock of its process, and with randomness of the run's seed. Crashes, pauses
// and lost claims come to it in its sleeps. A panic that [Call.Panic] does not make
// is the verdict handler-crash, with its place. [Call.Enqueue] puts more work into a
// queue, [Call.EnqueueOutbox] an entry into an outbox, and [Call.Deliver] delivers a result.
//
// Package sim/guest has whole programs as handlers, compiled to WebAssembly, as has
// the command with simulate run --guest report=report.wasm.
//
// # Scenario files
//
// A scenario is one text file. It can be written by hand, and is what a failed
// sweep prints and a regression test keeps:
//
//	simulate v1
//	# the store fails for a while, and nothing may fire twice
//	engine   runners=2 lease=60s standby=yes
//	start    2026-03-29T00:30:00Z
//	run      2h quiet-after=90m
//	queue    ops workers=3
//	schedule report  every=5m queue=mail handler=ok:1s..5s
//	schedule cleanup every=1h queue=ops  catch-up=latest
//	at 40m        clock-jump by=+1h for=20m
//	during 50m..55m store error-burst p=0.3 applied=unknown
//	expect   no-double-fire report.fires=24 sometimes:unknown-applied
//	----
//	the recorded outcome
//
// The first line is the version. Each other line is a directive with words and
// key=value words behind it, in any order of the keys, each once. A word that
// begins with # starts a comment. A text with other characters than letters,
// digits and -_.,:/+%@ is quoted as in Go: payload="a \"b\"". Whatever is not
// known is a mistake, and [Parse] reports all of them, with line and column.
//
// The lines engine, start, run, once each; run must be there:
//
//	engine    runners=1..16 lease=D batch=N on-time=D standby=yes|no
//	          clock-repair=hold|rearm queue-limit=N snapshot-every=D ties=fifo|seeded seed=N
//	start     T
//	run       D quiet-after=D
//
// The lines of what runs:
//
//	queue     NAME workers=N concurrency=N timeout=D
//	outbox    NAME workers=N concurrency=N deliver=H attempts=N heartbeat=D
//	schedule  NAME every=SPEC queue=NAME catch-up=all|latest|grace|none
//	          anchor=T handler=H priority=N expires=D visibility=D attempts=N
//	          backoff=D heartbeat=D payload=TEXT deliver=NAME outbox=NAME
//	          overlap=allow|skip|buffer-one hours=TIME-TIME@ZONE run-once=yes|no
//	          breaker=N|off timeout=D
//
// where every=5m stands for the spec "@every 5m", and H is ok, ok:D, ok:D..D,
// fail, fail:P, fail:P:D..D, panic, panic:P, panic:P:D..D or slow, which takes
// twice the claim's visibility.
//
// The jobs of a queue are worked by the engine's own workers, which renew the claims
// of what they have in hand, up to concurrency= jobs each, and end the contexts of
// handlers whose claim is lost, whose timeout= is over, or whose process stops;
// handlers then return at once, unless they hang. A process that is down by its
// runner= lets handlers run for 10 s first; whatever else ends a process cuts them off.
// Workers poll every 30 s where others may put jobs into their queue: other
// processes, or an overload.
//
// Some queues are worked by hand instead, each worker one job after the other, by a
// program that calls Claim, Ack, Retry and Heartbeat: those of a schedule with
// heartbeat=, which says how often the program extends a claim, and those that a
// late-ack, duplicate-ack or lost-ack of the scenario concerns, for the whole run.
// When a handler panics there, its worker goes on and nobody settles the claim. Such
// workers have no concurrency= and no timeout=, and that of a schedule does not bind them.
//
// Of a schedule's line, the keys from overlap= on are its policies. With overlap=skip
// a boundary is skipped while a job of the schedule is pending or claimed, with
// buffer-one while one is pending; and with both no second one is handed out while one
// is claimed. Outside of hours=08:00-17:30 all boundaries are skipped; they may go over
// midnight, and are of UTC without a zone of the IANA database. The zones are part of
// the simulator, each with the rule that holds there now in all years, so that they are
// the same on every platform. A schedule with run-once=yes fires once, and its job
// starts at most once. A schedule is paused after so many jobs in a row that died, by
// breaker=, until it is resumed. A handler that takes longer than timeout= fails.
//
// An outbox has entries, which its workers deliver, as its deliver= says: the engine's
// own, of which none extends a claim, or with heartbeat= programs that call RunOnce and
// extend it by themselves. An outbox is not called like a queue.
//
// A handler of a schedule with deliver= delivers its result there before it returns,
// whatever it then returns: the entry is written with the ack of its job, and never if
// the run fails. There are three tries of 30 s each, 1 s and 2 s after the one before,
// and of a failure that is not transient there is no other. The job is done whatever
// becomes of its delivery. A handler of a schedule with outbox= that succeeds puts an entry
// there, in one transaction with its ack and a look at its schedule: both are written,
// or neither. One that fails rolls its transaction back. Such an entry is tried again
// when its delivery fails or panics.
//
// So is one of which nobody could note that it came through, as it took too long, the
// process crashed, or the call failed: the entry is then delivered again, which the
// result counts.
//
// What is left out has its default: one process, which does not stand by; a start
// at 2026-01-01T00:00:00Z; one worker in each process for each queue of a schedule;
// a handler that succeeds at once; catch-up=all; and the engine's own, such as a
// lease of 60s, visibility=5m, attempts=3 and backoff=1m, and of an outbox attempts=5;
// but breaker=off.
//
// The lines of what goes wrong. D is counted from the start; a fault that has
// a key for= may be written during D..D instead:
//
//	at D      down for=D runner=N point=POINT
//	at D      crash restart=journal|snapshot|empty after=D point=POINT
//	at D      crash runner=N after=D point=POINT
//	at D      restart-storm times=N after=D runner=N|restart=journal|snapshot|empty
//	          point=POINT
//	at D      pause for=D runner=N point=POINT
//	at D      throttle profile=hidden-tab|laptop|low-power for=D runner=N
//	at D      clock-jump by=+D for=D runner=N point=POINT
//	at D      clock-drift ppm=+N for=D runner=N
//	at D      clock-freeze for=D runner=N
//	at D      clock-strobe by=+D for=D runner=N
//	at D      store error-burst applied=yes|no|unknown for=D p=P runner=N op=OP
//	at D      store slow takes=D..D late=either|request|reply for=D p=P runner=N op=OP
//	at D      store full for=D
//	at D      store journal-error torn=yes|no for=D p=P
//	at D      store swizzle applied=yes|no|unknown for=D
//	at D      store stale-read for=D p=P runner=N
//	at D      store repeated-row for=D p=P runner=N
//	at D      store lost-row schedule=NAME for=D point=POINT
//	at D      handler slow for=D takes=D..D applied=yes|no|unknown p=P schedule=NAME
//	          queue=NAME
//	at D      handler failing error=CLASS applied=yes|no|unknown for=D p=P
//	          schedule=NAME queue=NAME
//	at D      handler panicking for=D p=P schedule=NAME queue=NAME
//	at D      handler hanging applied=yes|no|unknown for=D p=P schedule=NAME queue=NAME
//	at D      handler poisoned error=CLASS for=D p=P schedule=NAME queue=NAME
//	at D      handler spawning jobs=N into=NAME tx=yes|no for=D p=P schedule=NAME
//	          queue=NAME
//	at D      queue late-ack for=D takes=D..D p=P schedule=NAME queue=NAME
//	at D      queue duplicate-ack for=D takes=D..D p=P schedule=NAME queue=NAME
//	at D      queue lost-ack for=D p=P schedule=NAME queue=NAME
//	at D      queue overload queue=NAME jobs=N point=POINT
//	at D      edit add|pause|resume|remove schedule=NAME point=POINT
//	at D      edit change schedule=NAME every=SPEC queue=NAME catch-up=POLICY
//	          point=POINT
//	at D      edit rename schedule=NAME to=NAME point=POINT
//	at D      edit policies schedule=NAME overlap=POLICY hours=TIME-TIME@ZONE
//	          run-once=yes|no breaker=N|off timeout=D point=POINT
//	at D      edit trigger schedule=NAME point=POINT
//	at D      tamper schedule=NAME every=SPEC|row=ROW for=D point=POINT
//
// An edit is made by somebody outside the processes, whose calls fail like those
// of others and are made again: add registers the schedule as its line has it,
// change with other keys; rename removes the schedule and registers what it was
// under the name of another one, both or neither; policies registers it with those
// policies and without those of its line that are left out; trigger has it fire at
// once, whatever its hours, unless it is paused or its overlap forbids it. queue
// overload puts jobs of no schedule into a queue, or entries into an outbox, all or
// none, and once, even if the reply is lost. tamper writes another spec, or a row that is spoilt, behind the
// engine's back, and with for= mends it afterwards; ROW is bad-spec, cut-spec,
// reserved-queue, no-catch-up, cursor-off-grid, cursor-ahead or cursor-at-end. store
// lost-row takes the row away.
//
// A restart-storm is so many crashes, with after= away and after= alive in turn. A
// host that throttles a process lets it take steps at some instants only:
//
//	hidden-tab   each second, after 5 min each minute, after an hour not any more
//	laptop       in the last 10 s of each hour
//	low-power    every 10 s
//
// A handler that is hanging does not return, or beat by hand, before the fault is over. One
// that is poisoned fails for some jobs, drawn by p= for each job, as often as these
// are tried; one that is spawning puts jobs of no schedule into its queue, or into=
// another one or an outbox, before its ack, or with tx=yes in one transaction with
// its ack and a look at its schedule. Each of those jobs takes a second. The faults
// of handlers are those of deliveries, too: without schedule= of all of them, with it of
// those of its results, and with the outbox as queue= of its alone. With applied=yes a
// delivery that fails or takes too long has come through, and the answer to it was lost.
// A CLASS is what the error says of another try: transient, permanent, timeout or
// retry-after:D. One that says nothing is plain; for the delivery of a result that is as
// good as permanent, for all others as transient.
//
// An ack stands for a retry, too. A late one is sent so much later, while the
// worker goes on; a duplicate is sent a second time, so much later; a lost one is
// not sent, and the worker does not know. Late ones that overtake each other come
// in another order.
//
// Without runner=, a fault of a process is one of all of them. A POINT is
// anywhere, which is the default, or what a process that the fault names must be
// in the middle of: between-read-and-write of a tick; or mid-request or mid-reply,
// while a call of it is on its way to the store, or back. From its time on the
// fault waits for that. It strikes once, or of a storm each crash, and never if it
// would then last beyond quiet-after; such a fault is not written with during.
//
// Without runner=, a fault of a clock is one of the store's, by which everything is
// decided; a process sleeps by its own, which a single process shares with the
// store. A clock that drifted or stood keeps the difference. Workers by hand sleep by
// the store's clock.
//
// The store's faults are of the calls of one process or all, and of all kinds or
// of one: an OP is acquire, renew, release, due, advance, claim, settle, extend,
// commit, schedules, jobs or queues. The first fault that meets a call has it.
// What is on its way when a slowness ends arrives then. So a process that is cut
// off from the store is an error-burst of its runner=; swizzle cuts off one
// process after the other, and lets them come back in another order. A store that
// is full fails the calls that write, but for renewals and releases of the lease. A
// journal-error fails those whose record the journal of the store cannot keep; with
// torn=yes a part of it stays behind, nothing can be written until the processes
// start again, and at the end of the fault they crash and do. A flaky handler is
// failing with p=, and what a crash loses of the log's end is what came after the
// snapshot that restart=snapshot begins from. A lease's renewal is
//
//	lost                     error-burst op=renew applied=no
//	done, and nobody told    error-burst op=renew applied=yes
//	late, or too late        slow op=renew late=request takes=50s
//	done, and told late      slow op=renew late=reply takes=50s
//
// With stale-read and repeated-row a store breaks its contract: due rows are read as
// they were before their last write, or twice. Every invariant has to hold all the
// same: a boundary may fire late by them, but not twice, and none is lost. A row
// that was lost fires no more, until it is put back or somebody registers it.
//
// Instead of these lines, one that has faults drawn from the seed:
//
//	swarm     faults=N..N kinds=KIND,GROUP,-KIND
//	swarm     MODE faults=N..N kinds=KIND,GROUP,-KIND
//
// A kind is written with - for its blanks, as store-error-burst; the groups are
// process, clock, store, handler, queue and edit; all is all, and the default. A
// MODE says how the faults are drawn, and does without the other words:
//
//	portfolio   by one of the next seven, for each seed by its number
//	calm        no faults
//	lite        few, and short ones
//	some        of each kind by even chance
//	all-on      of all kinds
//	unmasked    of the kinds that do not keep others from showing
//	pairs       of two kinds, close to each other
//	exhaustive  one or two, and after enough seeds everywhere beside the first
//	            boundaries and the edges of the first leases
//
// All faults are over by quiet-after, which is two thirds of the run if it is
// not given.
//
// The lines of what must come of it:
//
//	expect    no-double-fire NAME.fires=N NAME.skipped=N NAME.quarantined=N
//	          verdict=WORD sometimes:MARK sometimes:all,-MARK
//
// no-double-fire is of one timeline: a boundary that fires again because a
// restart began from an older state, or because clock-repair=rearm took back
// what a wrong clock had done, is no double fire. The result counts both
// ([ScheduleResult]).
//
// A duration D is a sum of whole numbers with units, the larger unit first:
// 250ms, 70s, 1h30m, 14d; at most 106751d. A time T is RFC 3339 in whole
// milliseconds. A probability P is 0.3 or 30%, down to one in a million.
//
// The constants from [MaxFile] on are the limits.
//
// # Verdicts
//
// A run comes to one [Verdict]; of several that fit, to the gravest. The command
// simulate prints its word and ends with its exit code:
//
//	pass              0  every invariant held, and what is expected came
//	bad-input         1  the scenario could not be run
//	safety            2  an invariant was broken
//	liveness          3  what was due did not happen in time, with no fault to blame
//	nondeterministic  4  the same scenario and seed gave another digest
//	vacuous           5  a coverage mark that was asked for was never reached
//	budget            6  the run took more events or memory, or a handler more steps, than it may
//	handler-crash     7  a handler panicked that was not meant to
//	unmet             2  what is expected did not come, whether or not an invariant was broken
//
// No single run comes to nondeterministic or vacuous, and only one with handlers
// in Go to handler-crash. Words but unmet may be expected: a run whose verdict is the
// expected one passes.
//
// # Coverage marks
//
// A coverage mark is a state of affairs that a test is worth little without ever
// reaching: sometimes:MARK expects it, the table and the recorded outcome of a run
// count it, as does "coverage" in the JSON of simulate. A sweep is expected to reach
// it in one of its runs, or else it is vacuous. sometimes:all expects the whole list,
// and sometimes:all,-MARK,-MARK all but those, of a sweep of [EnoughSeeds] or more;
// for fewer runs it is not judged.
//
//	cap-hit                   a tick fired exactly 64 boundaries of a schedule and skipped none
//	cap-exceeded              a tick skipped boundaries beyond the 64th
//	skipped                   a boundary was skipped
//	skip-on-grid              boundaries were skipped by a tick that ran exactly at a boundary
//	quarantined               a row was held
//	row-healed                a row that was held fired, or went on, again
//	queue-full                a tick found no room in a queue
//	budget-full               a tick left due schedules to the next one, to stay within its budget
//	stale-move                a row was left alone because it had changed since its tick had read it
//	edit-mid-tick             a schedule was edited between the read and the write of a tick
//	edit-conflict             an edit was refused because its row had changed since it had read it
//	pause-skipped             a resume skipped what came due in the pause
//	skipped-by-hours          a tick outside active hours skipped boundaries
//	skipped-by-policy         a tick skipped boundaries by their schedule's catch-up policy
//	skipped-by-overlap        a tick skipped boundaries since a job of their schedule was live
//	missed-its-turn           a run-once came too late to fire
//	missed-by-edit            a new grid began while boundaries of the old one were due
//	before-its-grid           a new grid began behind some of its boundaries
//	trigger-refused           a fire by hand was refused, by a pause or a job that was live
//	trigger-ends              a fire by hand was the only turn of a run-once
//	ran-once                  a run-once fired, which ended its schedule
//	breaker-reset             a job that is done ended a row of failures
//	breaker-opened            a breaker paused its schedule
//	leader-changed            another runner than the last one took the lead
//	two-leaders               two runners believed to lead at once
//	lease-lapsed              a leader found its lease lapsed and took it anew
//	lease-ahead               a lease was taken over that a clock which was ahead had granted
//	retries-exhausted         a leader's calls failed four times in a row
//	stale-write-refused       the write of a tick was refused because its lease was not live
//	paused-leader-refused     the same, and its leader was paused since it had read
//	renewal-lost-yet-kept     a renewal failed and the lease was kept
//	late-renewal-refused      a renewal was refused that was long on its way
//	claim-reclaimed           a lapsed claim was handed out again
//	ack-refused               a late worker's ack was refused
//	duplicate-ack-refused     a second ack was refused, and nothing changed
//	heartbeat-refused         a heartbeat was refused because its claim was lost
//	handler-panicked          a handler panicked
//	run-failed                a handler returned an error
//	run-timed-out             a run did not end by its deadline
//	run-cancelled             a run was cut short by the stop of its worker
//	dead-letter               a job died
//	job-expired               a job died because it had expired
//	last-claim-lapsed         a job died because the claim of its last attempt lapsed
//	unknown-applied           a call failed although the store had done it
//	unknown-not-applied       a call failed and the store had not done it
//	crash-mid-tick            a process crashed between the read and the write of a tick
//	crash-mid-request         a process crashed while a request of it was on its way
//	crash-mid-reply           a process crashed while a reply to it was on its way
//	crash-mid-job             a process crashed while a handler of it was at work
//	orphan-applied            the store did a call whose process had crashed
//	pause-outlasts-claim      a process was paused for longer than a claim of it lasted
//	throttle-outlasts-claim   a process was throttled for longer than a claim of it lasted
//	stale-read-caught         a row was left alone because its tick rested on a stale read
//	store-full                a call failed because the store had no room for its record
//	journal-failed            a call failed because its record could not be kept
//	torn-tail                 the store opened without a record that was torn at the end of its journal
//	enqueue-refused           a queue had no room for jobs of no schedule
//	entry-rolled-back         an entry of an outbox was not written, since its transaction was refused or rolled back
//	delivered-again           an entry of an outbox came through a second time, since it was not settled the first time
//	result-delivered          the result of a job was delivered
//	result-retried            the delivery of a result failed, and was tried again
//	result-permanent          the delivery of a result failed for good
//	result-exhausted          the last try to deliver a result failed
//	result-timed-out          a try to deliver a result did not end within 30 s
//	result-refused            a run failed since the outbox had no room for its result
//	delivery-panicked         a delivery panicked, and its outbox settled the entry as failed
//	late-delivery-refused     an outbox's call could not settle the entry that it had delivered, since the claim was lost
//	clock-back-over-boundary  the clock stepped back over a fired boundary
//	rearmed                   a schedule began anew because a wrong clock had set its cursor
//	restore-lost-tail         a restart forgot fires that had happened
package sim
