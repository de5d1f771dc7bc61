package sim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// results has a handler that delivers its result each minute.
const results = `simulate v1
engine   runners=2 standby=yes
run      1h30s
outbox   mail workers=1 deliver=ok:1s
schedule a every=1m queue=q handler=ok:1s deliver=mail backoff=1s attempts=99
`

// TestX2AResultIsThereWithItsAck: whatever befalls runs, calls and processes, each job
// that is done has put one entry, and no delivery fails.
func TestX2AResultIsThereWithItsAck(t *testing.T) {
	for _, fault := range []string{
		"",
		"during 5m..40m store error-burst applied=yes p=0.3",
		"during 5m..40m store error-burst applied=unknown p=0.3 op=commit",
		"during 5m..40m store slow takes=1s..20s op=commit",
		"during 5m..40m store journal-error p=0.3",
		"during 5m..40m store journal-error torn=yes p=0.05",
		"during 5m..40m handler failing p=0.5 queue=q",
		"during 5m..40m handler failing p=0.5 queue=q error=timeout",
		"during 5m..40m handler panicking p=0.5 queue=q",
		"during 5m..20m handler hanging p=0.3 queue=q",
		"during 5m..20m handler slow p=0.5 queue=q takes=5m..6m",
		"during 5m..40m queue duplicate-ack p=0.5 queue=q",
		"during 5m..40m queue late-ack p=0.5 queue=q takes=1s..10m",
		"during 5m..40m queue lost-ack p=0.5 queue=q",
		"at 12m1s crash restart=journal after=5s",
		"at 12m1s crash runner=1 after=2m",
		"at 12m500ms restart-storm times=9 after=700ms runner=2",
		"during 12m1s..20m pause runner=1",
		"at 12m1s down runner=1 for=5m",
	} {
		r := passes(t, results+fault+"\n")
		q, mail := queueOfResult(t, r, "q"), queueOfResult(t, r, "mail")
		require.Equal(t, q.Done, mail.Enqueued, fault)
		require.Equal(t, mail.Enqueued, mail.Done+mail.DeadReasons["lapsed"], "none fails, but claims of which nobody hears are tries, too: %s", fault)
		require.Greater(t, mail.Done, int64(50), fault)
	}
}

// TestX2AnotherAckStandsBesideIt: a result goes with the ack of a transaction as well.
func TestX2AnotherAckStandsBesideIt(t *testing.T) {
	r := passes(t, strings.Replace(results, "deliver=mail", "deliver=mail outbox=log", 1)+"outbox log workers=1\n")
	for _, outbox := range []string{"mail", "log"} {
		require.EqualValues(t, 60, queueOfResult(t, r, outbox).Done, outbox)
	}
}

// TestX6X7TriesOfAResult: what became of each try, and when the next one came, by
// what its failure said.
func TestX6X7TriesOfAResult(t *testing.T) {
	const transient, permanent = tickonce.DeliveryTransient, tickonce.DeliveryPermanent
	for fault, want := range map[string]struct {
		waits    []time.Duration
		delivery []tickonce.Delivery
		dies     bool
	}{
		"during 5m..6m handler failing queue=mail":                               {nil, []tickonce.Delivery{permanent}, true},
		"during 5m..6m handler failing queue=mail error=plain":                   {nil, []tickonce.Delivery{permanent}, true},
		"during 5m..6m handler failing queue=mail error=permanent":               {nil, []tickonce.Delivery{permanent}, true},
		"during 5m..6m handler panicking queue=mail":                             {nil, []tickonce.Delivery{permanent}, true},
		"during 5m..6m handler failing queue=mail error=transient":               {[]time.Duration{time.Second, 2 * time.Second}, []tickonce.Delivery{transient, transient, transient}, true},
		"during 5m..6m handler failing queue=mail error=timeout":                 {[]time.Duration{time.Second, 2 * time.Second}, []tickonce.Delivery{transient, transient, transient}, true},
		"during 5m..6m handler poisoned queue=mail error=timeout":                {[]time.Duration{time.Second, 2 * time.Second}, []tickonce.Delivery{transient, transient, transient}, true},
		"during 5m..6m handler failing queue=mail error=retry-after:7s":          {[]time.Duration{7 * time.Second, 7 * time.Second}, []tickonce.Delivery{transient, transient, transient}, true},
		"during 5m..5m2s500ms handler failing queue=mail error=transient":        {[]time.Duration{time.Second}, []tickonce.Delivery{transient, tickonce.Delivered}, false},
		"during 5m..7m handler slow queue=mail":                                  {[]time.Duration{time.Second, 2 * time.Second}, []tickonce.Delivery{transient, transient, transient}, true},
		"during 5m..5m30s handler slow queue=mail takes=30001ms applied=yes":     {[]time.Duration{time.Second}, []tickonce.Delivery{transient, tickonce.Delivered}, false},
		"during 5m..5m30s handler slow queue=mail takes=29999ms":                 {nil, []tickonce.Delivery{tickonce.Delivered}, false},
		"during 5m..5m31s500ms handler hanging queue=mail":                       {[]time.Duration{time.Second}, []tickonce.Delivery{transient, tickonce.Delivered}, false},
		"during 5m..5m45s handler failing queue=mail error=transient schedule=a": {[]time.Duration{time.Second, 2 * time.Second}, []tickonce.Delivery{transient, transient, transient}, true},
	} {
		fault = strings.Replace(fault, "30001ms", "30s1ms", 1)
		fault = strings.Replace(fault, "29999ms", "29s999ms", 1)
		text := strings.Replace(results, "every=1m", "every=5m", 1)
		var waits []time.Duration
		var tries []tickonce.Delivery
		entry, dies := int64(0), false
		r, err := Watch(*parsed(t, text+fault+"\n"), func(e *Event) {
			if entry == 0 && e.Kind == EventEnqueued && e.Origin != 0 {
				entry = e.Job
			}
			if e.Job != entry || entry == 0 {
				require.False(t, e.Origin == 0 && e.Delivery != 0, "a delivery of a run")
				return
			}
			require.Zero(t, e.Execution, "an execution of a delivery")
			require.Equal(t, "a", e.Schedule)
			switch e.Kind {
			case EventJobRetried:
				waits = append(waits, e.Until.Sub(e.Shown))
				tries = append(tries, e.Delivery)
			case EventJobDied, EventJobDone:
				require.Len(t, tries, e.Attempt-1)
				tries, dies = append(tries, e.Delivery), e.Kind == EventJobDied
			}
		})
		require.NoError(t, err)
		require.Equal(t, Pass, r.Verdict, "%s: %+v", fault, r.Failures)
		require.Equal(t, want.waits, waits, fault)
		require.Equal(t, want.delivery, tries, fault)
		require.Equal(t, want.dies, dies, fault)
		require.Equal(t, queueOfResult(t, r, "mail").Enqueued, queueOfResult(t, r, "q").Done, "whatever became of the delivery: %s", fault)
	}
}

// TestX7WhatWasAcceptedComesTwice: a receiver that takes a result, and whose answer takes
// longer than the try, gets it again.
func TestX7WhatWasAcceptedComesTwice(t *testing.T) {
	for _, fault := range []string{"handler slow queue=mail applied=yes", "handler hanging queue=mail applied=yes", "handler failing error=timeout applied=yes queue=mail"} {
		var again []int64
		r, err := Watch(*parsed(t, results+"during 5m..5m32s "+fault+"\n"), func(e *Event) {
			if e.Again {
				require.Equal(t, tickonce.Delivered, e.Delivery)
				again = append(again, e.Origin)
			}
		})
		require.NoError(t, err)
		require.Equal(t, Pass, r.Verdict, r.Failures)
		require.NotEmpty(t, again, fault)
		require.EqualValues(t, len(again), queueOfResult(t, r, "mail").DeliveredAgain, fault)
		require.NotZero(t, again[0])
	}
}

// TestX4DeliveriesOpenNoBreaker: however many fail, by whatever schedule.
func TestX4DeliveriesOpenNoBreaker(t *testing.T) {
	r := passes(t, strings.Replace(results, "attempts=99", "attempts=1 breaker=1", 1)+"during 5m..50m handler failing queue=mail\n")
	require.Greater(t, queueOfResult(t, r, "mail").Dead, int64(40))
	require.EqualValues(t, 60, queueOfResult(t, r, "q").Done)
}

// TestX1AFullOutboxFailsTheRun: which is tried again, by a worker of the engine's and by
// hand.
func TestX1AFullOutboxFailsTheRun(t *testing.T) {
	for _, byHand := range []string{"", " heartbeat=1h"} {
		r := passes(t, strings.Replace(strings.Replace(results, "standby=yes", "standby=yes queue-limit=2", 1), "attempts=99", "attempts=99"+byHand, 1)+
			"during 10m..14m handler hanging queue=mail\nexpect sometimes:"+pick(byHand == "", "result-refused", "result-delivered")+"\n")
		q, mail := queueOfResult(t, r, "q"), queueOfResult(t, r, "mail")
		require.Equal(t, q.Done, mail.Enqueued)
		require.Positive(t, q.Retried)
	}
}

// TestCallDeliver: a handler in Go delivers as much as it likes, until its run is over;
// what it does with the bytes afterwards is its own affair.
func TestCallDeliver(t *testing.T) {
	s := parsed(t, strings.Replace(strings.Replace(results, "handler=ok:1s deliver=mail", "timeout=30s", 1), "attempts=99", "attempts=1", 1))
	late := 0
	s.Handlers = Handlers{"a": func(c *Call) error {
		payload := []byte("one")
		for range 2 {
			if err := c.Deliver("mail", payload); err != nil {
				return err
			}
			copy(payload, "two")
		}
		if c.Job.Boundary.Minute()%2 == 0 {
			return errors.New("no paper")
		}
		return nil
	}}
	r, err := Run(*s)
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.EqualValues(t, 30, queueOfResult(t, r, "q").Done)
	require.EqualValues(t, 60, queueOfResult(t, r, "mail").Done)

	s = parsed(t, strings.Replace(results, "handler=ok:1s deliver=mail", "timeout=30s", 1)+"during 5m..50m handler hanging queue=q p=0.2\n")
	s.Handlers = Handlers{"a": func(c *Call) error {
		err := c.Deliver("mail", nil)
		if errors.Is(err, tickonce.ErrClaimLost) {
			late++
		}
		return err
	}}
	r, err = Run(*s)
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.Positive(t, late, "nothing was delivered after the run was over")

	s.Handlers = Handlers{"a": func(c *Call) error { return c.Deliver("q", nil) }}
	r, err = Run(*s)
	require.NoError(t, err)
	require.Equal(t, HandlerCrash, r.Verdict)
	require.Contains(t, r.Failures[0].Detail, `a result for "q", want an outbox of the scenario without a heartbeat`)
}

func TestResultMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"schedule b every=1m queue=mail deliver=out":                                          `4:40: found "out", want an outbox, which needs a line: outbox NAME workers=N`,
		"outbox out workers=1\nschedule b every=1m queue=mail deliver=ou":                     `5:40: found "ou", want an outbox: out; did you mean "out"?`,
		"outbox out workers=1 heartbeat=20s\nschedule b every=1m queue=mail deliver=out":      `5:40: found "out", want an outbox without heartbeat=`,
		"outbox out workers=1 concurrency=0":                                                  `4:34: found "0", want a whole number from 1 to 1000`,
		"outbox out workers=1\nat 1m handler failing for=1m queue=out error=bad":              `5:46: found "bad", want ` + classForm,
		"outbox out workers=1\nat 1m handler failing for=1m queue=out error=transient:1s":     `5:46: found "transient:1s", want ` + classForm,
		"outbox out workers=1\nat 1m handler failing for=1m queue=out error=retry-after":      `5:46: found "retry-after", want ` + classForm,
		"outbox out workers=1\nat 1m handler failing for=1m queue=out error=retry-after:soon": `5:58: found "soon", want ` + durationForm,
		"at 1m handler panicking for=1m error=transient":                                      `4:32: found "error=", want one of p=, schedule=, queue=, for=`,
	} {
		require.Equal(t, []string{"a.sim:" + want}, mistakesOf(t, line), "%q", line)
	}
}

const (
	transientResults = results + "during 5m..50m handler failing queue=mail error=transient p=0.5\n"
	permanentResults = results + "during 5m..50m handler failing queue=mail error=permanent p=0.5\n"
	slowResults      = results + "during 5m..50m handler slow queue=mail p=0.2\n"
	failingRuns      = results + "during 5m..50m handler failing queue=q p=0.5\n"
)

// batch is a liar that changes what is written with a result.
func batch(change func(*store.Batch)) liar {
	return liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
		if len(b.Inserts) > 0 && isResult(b.Inserts[0]) {
			change(b)
		}
		return s.Commit(ctx, b)
	}}
}

// resultLies are those about results of runs and their deliveries.
var resultLies = []lie{
	{lie: "a result is written without its ack", fails: withItsAck, text: results, above: batch(func(b *store.Batch) { b.Settles = nil })},
	{lie: "a run is acked without its result", fails: withItsAck, text: results, above: batch(func(b *store.Batch) { b.Inserts = nil })},
	{
		lie: "a run is acked, and its result forgotten", fails: withItsAck, says: "without what its handler had delivered", text: results,
		above: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			if len(b.Inserts) == 0 || !isResult(b.Inserts[0]) {
				return s.Commit(ctx, b)
			}
			held := make([]bool, len(b.Settles))
			now, err := s.Settle(ctx, b.Settles, held)
			return store.Committed{Now: now, Inserts: make([]store.Inserted, len(b.Inserts))}, err
		}},
	},
	{lie: "a result is written twice", fails: withItsAck, text: results, above: batch(func(b *store.Batch) { b.Inserts = append(b.Inserts, b.Inserts[0]) })},
	{lie: "another result is written", fails: withItsAck, text: results, above: batch(func(b *store.Batch) { b.Inserts[0].Payload = []byte("another") })},
	{lie: "a result has five tries", fails: withItsAck, text: results, above: batch(func(b *store.Batch) { b.Inserts[0].Stamps.MaxAttempts = 5 })},
	{lie: "a try has a minute", fails: withItsAck, text: results, above: batch(func(b *store.Batch) { b.Inserts[0].From.TimeoutMS = 60_000 })},
	{
		lie: "a failed run delivers", fails: withItsAck, says: "that no run has staged which ended well", text: failingRuns,
		above: liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
			if settles[0].To != store.Pending {
				return s.Settle(ctx, settles, out)
			}
			failed := result{outbox: &trueQueue{row: store.Queue{Name: "__alkstore_outbox:mail"}}}
			of := trueJob{id: settles[0].Job, schedule: &trueSchedule{scenario: &Schedule{Name: "a"}}}
			done, err := s.Commit(ctx, &store.Batch{Settles: settles, Inserts: []store.Insert{failed.insert(&of)}})
			out[0] = done.Refusal.Why == store.NotRefused
			return done.Now, err
		}},
	},
	{
		lie: "a worker believes that a try has a minute", fails: timesOut, text: slowResults,
		above: claim(func(j *store.Job) {
			if j.Origin != 0 {
				j.TimeoutMS = 60_000
			}
		}),
	},
	{
		lie: "a delivery is told of as another job's", fails: rightJob, text: results,
		above: claim(func(j *store.Job) {
			if j.Origin != 0 {
				j.Origin++
			}
		}),
	},
	{
		lie: "the next try comes later", fails: rightTries, text: transientResults,
		above: settle(func(s *store.Settle) {
			if s.To == store.Pending {
				s.DelayMS++
			}
		}),
	},
	{
		lie: "what failed for good is tried again", fails: rightTries, text: permanentResults,
		above: settle(func(s *store.Settle) {
			if s.To == store.Dead {
				s.To, s.DelayMS = store.Pending, 1000
			}
		}),
	},
	{
		lie: "what failed for now is given up", fails: rightTries, text: transientResults,
		above: settle(func(s *store.Settle) {
			if s.To == store.Pending {
				s.To, s.DelayMS = store.Dead, 0
			}
		}),
	},
	{
		lie: "a failed delivery is taken for one that came through", fails: rightTries, text: transientResults,
		above: settle(func(s *store.Settle) {
			if s.To == store.Pending {
				s.To, s.DelayMS = store.Done, 0
			}
		}),
	},
	{
		lie: "a failed run is recorded as one that timed out", fails: rightEnding, text: failingRuns,
		above: settle(func(s *store.Settle) {
			if s.To == store.Pending {
				s.Ended = store.TimedOut
			}
		}),
	},
	{
		lie: "a failed delivery opens a breaker", fails: opensBreaker, text: strings.Replace(permanentResults, "attempts=99", "breaker=1", 1),
		below: liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
			now, err := s.Settle(ctx, settles, out)
			for i := range settles {
				if settles[i].To == store.Dead {
					settles[i].Tripped = 1
				}
			}
			return now, err
		}},
	},
}
