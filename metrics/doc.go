// Package metrics counts the events of an engine for Prometheus, and reads its
// queues when it is scraped:
//
//	m, err := metrics.New(metrics.Options{Schedules: []string{"backup"}})
//	eng, err := memengine.New(tickonce.Config{Observer: m.Observe})
//	m.Watch(eng)
//	prometheus.MustRegister(m)
//	http.Handle("/metrics", promhttp.Handler())
//
// It is a module of its own, so that the client's library stays out of the
// engine's go.mod. An observer is a func(tickonce.Event): one that is to log as
// well calls that of package eventlog and Observe. To count an event takes less
// than a microsecond, and no allocation.
//
// # The metrics
//
// The unit of a metric is what its name says: seconds, or a number of fires,
// jobs and so on. Behind its type stands what moves it: the kinds of
// [tickonce.Event], the fields of [tickonce.QueueInfo], or a method of the
// engine.
//
// Schedules:
//
//	tickonce_fires_total{queue}  counter  fired
//		Boundaries that fired.
//	tickonce_fire_lateness_seconds  histogram  fired
//		How long after its boundary a fire came.
//	tickonce_triggered_jobs_total{queue}  counter  triggered
//		Jobs of schedules that were fired by hand.
//	tickonce_skipped_boundaries_total{reason}  counter  skipped
//		Boundaries that were dropped unfired, by reason.
//	tickonce_quarantines_total{queue}  counter  quarantined
//		Times that a schedule was held, again each minute that it stays so.
//	tickonce_opened_breakers_total{queue}  counter  breaker_opened
//		Schedules that were paused, since their jobs failed.
//	tickonce_cursors_ahead_total  counter  cursor_ahead
//		Cursors found that a clock set which was ahead.
//	tickonce_rearmed_cursors_total  counter  rearmed
//		Cursors set anew, since they were ahead.
//	tickonce_schedule_changes_total{change}  counter  scheduled unscheduled paused resumed
//		Changes of schedules, by what was done.
//
// Runners and workers of this process:
//
//	tickonce_leading_runners  gauge  leading leadership_lost stand_by stopped
//		Runners of this process that lead, as far as they know.
//	tickonce_leadership_changes_total{change}  counter  leading lease_lapsed leadership_lost
//		Times that a runner of this process came to lead or ceased to.
//	tickonce_stand_bys_total{cause}  counter  stand_by
//		Times that a runner began to stand by, by cause.
//	tickonce_store_retries_total{phase}  counter  retrying
//		Store errors of runners, workers and listeners after which the call is made again, by phase.
//	tickonce_stops_total{role,outcome}  counter  stopped
//		Ends of runners and workers, by outcome.
//
// Jobs, and the entries of outboxes, which are deliveries. A delivery that fails
// leaves the execution before it as it was:
//
//	tickonce_executions_total{queue,outcome}  counter  done retried died claim_lost abandoned
//		Attempts at jobs that ended, by outcome; of outboxes see tickonce_deliveries_total.
//	tickonce_execution_duration_seconds  histogram  done retried died
//		From the claim of a job to the end of the attempt, if it was not lost.
//	tickonce_deliveries_total{queue,outcome}  counter  delivered delivery_retried delivery_failed claim_lost abandoned
//		Tries to deliver an entry of an outbox that ended, by outcome.
//	tickonce_delivery_duration_seconds  histogram  delivered delivery_retried delivery_failed
//		From the claim of an entry to the end of the try, if it was not lost.
//	tickonce_buried_jobs_total{queue}  counter  buried
//		Jobs that died unstarted: expired, or claimed for the last time and not settled.
//
// What the engine keeps in memory, at the scrape:
//
//	tickonce_dropped_details_total  counter  DroppedDetails
//		Details that were dropped before any loop over them; without one, all but the latest.
//
// Schedules named in Options.Schedules, and no others:
//
//	tickonce_schedule_fires_total{schedule}  counter  fired
//		Boundaries of a schedule that fired.
//	tickonce_schedule_skipped_boundaries_total{schedule,reason}  counter  skipped
//		Boundaries of a schedule that were dropped unfired, by reason.
//	tickonce_schedule_quarantines_total{schedule}  counter  quarantined
//		Times that a schedule was held, again each minute that it stays so.
//	tickonce_schedule_opened_breakers_total{schedule}  counter  breaker_opened
//		Times that a schedule was paused, since its jobs failed.
//	tickonce_schedule_executions_total{schedule,outcome}  counter  done retried died claim_lost abandoned
//		Attempts at a schedule's jobs that ended, by outcome.
//	tickonce_schedule_deliveries_total{schedule,outcome}  counter  delivered delivery_retried delivery_failed claim_lost abandoned
//		Tries to deliver what a schedule's jobs resulted in, by outcome.
//	tickonce_schedule_last_success_timestamp_seconds{schedule}  gauge  done
//		When a job of the schedule was last done by this process.
//
// Queues, as the store has them at the scrape:
//
//	tickonce_queue_jobs{queue,state}  gauge  Pending Claimed Dead
//		Jobs that the queue keeps, by state.
//	tickonce_queue_waiting_jobs{queue}  gauge  Waiting
//		Jobs that wait for the end of another job of their schedule.
//	tickonce_queue_enqueued_jobs_total{queue}  counter  Enqueued
//		Jobs ever put into the queue: enqueued, fired, requeued.
//	tickonce_queue_claims_total{queue}  counter  Claims
//		Attempts ever handed out.
//	tickonce_queue_retries_total{queue}  counter  Retried
//		Attempts that ended in another try.
//	tickonce_queue_deaths_total{queue}  counter  Died
//		Jobs ever moved to dead.
//	tickonce_queue_removed_jobs_total{queue,how}  counter  Done Cancelled Requeued Purged
//		Jobs that left the queue, by how.
//	tickonce_queue_next_claim_timestamp_seconds{queue}  gauge  NextClaimAt
//		When the queue has a job to claim: if past, since when one waits; absent: none waits.
//	tickonce_queue_reads_total{outcome}  counter  Queues
//		Readings of the queues at a scrape, by outcome; after one that failed the other tickonce_queue metrics are absent.
//
// # Processes
//
// What comes from events is of this process, and begins at zero with it: the
// sum over processes is the whole. At most one event tells of a thing, so what
// a lost reply of the store would have told is missing. The tickonce_queue
// metrics are the store's own counters, which miss nothing and outlast the
// process where the state does; processes that share a store show the same
// figures, of which one takes the greatest:
//
//	max by (queue, state) (tickonce_queue_jobs)
//
// Several engines in one process have a Metrics each, told apart by a label of
// prometheus.WrapRegistererWith.
//
// # Labels
//
// No label grows without bound, whatever an engine is asked to do: there are at
// most 30 series for each value of queue, 23 for each named schedule and 87
// besides.
//
//	queue     the queue's name; of an outbox "outbox:" and its name, with which a
//	          queue that is called so is counted, too
//	schedule  the schedule's name, of those in Options.Schedules
//	reason    pause, hours, policy, overlap, cap, missed
//	change    what was done: scheduled, unscheduled, paused, resumed; gained, lapsed, lost
//	outcome   of an execution: ok, failed, timed_out, panicked, cancelled (its
//	          worker stopped), lost (its claim lapsed, or its job was cancelled);
//	          of a delivery: delivered, transient, permanent, lost; of all else:
//	          ok, failed. Lost is what was not settled while its claim was live
//	cause     lost: another runner leads; store: it cannot be reached
//	phase     that of the call, as in tickonce.Phase
//	role      runner, worker
//	state     pending, claimed, dead
//	how       done, cancelled, requeued, purged
//
// The queues of Options.Queues and the first 100 others, or Options.MaxQueues,
// have a value of their own for as long as the process lives; the rest are
// "other", and so is whatever text is not in this list. There is no label for a
// schedule unless it is named, nor for an error, an owner or a job: those are
// in the log.
//
// # What to watch
//
//	sum(tickonce_leading_runners) < 1                                    nobody fires
//	increase(tickonce_skipped_boundaries_total{reason="cap"}[1h]) > 0    an outage was too long to be caught up
//	time() - tickonce_queue_next_claim_timestamp_seconds > 300           jobs have waited for five minutes
//	increase(tickonce_queue_deaths_total[1h]) > 0                        jobs are given up
//	time() - max by (schedule) (tickonce_schedule_last_success_timestamp_seconds) > 90000    a daily job is late
//	increase(tickonce_queue_reads_total{outcome="failed"}[5m]) > 0       the store does not answer
package metrics
