package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// queueOfResult is what became of the queue, or the outbox.
func queueOfResult(t *testing.T, r *Result, name string) *QueueResult {
	t.Helper()
	for i := range r.Queues {
		if r.Queues[i].Name == name {
			return &r.Queues[i]
		}
	}
	require.Fail(t, "no queue "+name)
	return nil
}

// mails has a handler that puts a mail into an outbox each minute.
const mails = `simulate v1
engine   runners=2 standby=yes
run      2h50s
outbox   mail workers=1 deliver=ok:1s
schedule a every=1m queue=q handler=ok:1s outbox=mail backoff=1s attempts=99
`

// TestO1EachEntryIsDelivered: once, where nothing goes wrong, and with one ack.
func TestO1EachEntryIsDelivered(t *testing.T) {
	r := passes(t, mails)
	mail := queueOfResult(t, r, "mail")
	require.True(t, mail.Outbox)
	require.EqualValues(t, 120, mail.Delivered)
	require.EqualValues(t, 120, mail.Done)
	require.EqualValues(t, 120, mail.Claims)
	require.Zero(t, mail.DeliveredAgain)
	require.False(t, queueOfResult(t, r, "q").Outbox)
}

// TestO3TheFifthFailureIsTheLast: of deliveries that fail, and of those that panic,
// which are settled all the same (O2).
func TestO3TheFifthFailureIsTheLast(t *testing.T) {
	for _, deliver := range []string{"fail", "panic"} {
		r := passes(t, strings.Replace(mails, "ok:1s", deliver, 1))
		mail := queueOfResult(t, r, "mail")
		require.Positive(t, mail.Dead, deliver)
		require.Equal(t, map[string]int64{"failed": mail.Dead}, mail.DeadReasons)
		require.Zero(t, mail.Delivered)
	}
	for deliver, last := range map[string]int{"fail": 5, "panic": 5, "fail attempts=2": 2} {
		died := 0
		_, err := Watch(*parsed(t, strings.Replace(mails, "ok:1s", deliver, 1)), func(e *Event) {
			if e.Kind == EventJobDied {
				require.Equal(t, last, e.Attempt, deliver)
				died++
			}
		})
		require.NoError(t, err)
		require.Greater(t, died, 100)
	}
}

// handMails is mails with an outbox that is worked by RunOnce.
var handMails = strings.Replace(mails, "ok:1s", "ok:1s heartbeat=1h", 1)

// TestO4NothingExtendsADelivery: one by RunOnce that takes longer than its claim is made by
// another worker, too, and the first one comes too late (O5); but not if it beats.
func TestO4NothingExtendsADelivery(t *testing.T) {
	const rare = `simulate v1
run      2h
outbox   mail workers=2 deliver=ok:61s heartbeat=1h
schedule a every=10m queue=q outbox=mail
`
	r := passes(t, rare+"expect sometimes:late-delivery-refused sometimes:delivered-again sometimes:claim-reclaimed\n")
	mail := queueOfResult(t, r, "mail")
	require.EqualValues(t, 12, mail.Enqueued)
	require.Equal(t, mail.Delivered-mail.DeliveredAgain, mail.Enqueued-mail.Claimed)
	require.Zero(t, mail.Done, "nobody is ever in time")

	r = passes(t, strings.Replace(rare, "heartbeat=1h", "heartbeat=20s", 1))
	mail = queueOfResult(t, r, "mail")
	require.EqualValues(t, 11, mail.Done)
	require.EqualValues(t, 11, mail.Delivered)
	require.Zero(t, mail.DeliveredAgain)
}

// TestO7AnEntryIsThereWithItsAck: whatever calls are lost, slow or refused
// meanwhile, each job that is done has put one entry, and each entry is delivered.
func TestO7AnEntryIsThereWithItsAck(t *testing.T) {
	for _, fault := range []string{
		"during 5m..50m store error-burst applied=yes p=0.3",
		"during 5m..50m store error-burst applied=no p=0.2", // more often, and an entry dies whose acks are all lost
		"during 5m..50m store slow takes=1s..70s",
		"during 5m..50m store journal-error p=0.3",
		"during 5m..50m store journal-error torn=yes p=0.05",
		"during 5m..50m handler failing p=0.3 schedule=a",
		"during 5m..50m handler panicking p=0.3 queue=q",
		"during 5m..20m handler hanging p=0.3",
		"during 5m..50m edit pause schedule=a",
		"at 12m1s500ms crash restart=journal after=5s",
		"at 12m2s500ms crash runner=1 after=2m",
		"at 12m2s500ms restart-storm times=9 after=700ms runner=2",
		"during 12m2s500ms..20m pause runner=1",
		"during 12m..20m clock-drift ppm=+900000",
		"at 12m2s500ms clock-jump by=+1h for=5m",
	} {
		fault = strings.Replace(fault, "during 5m..50m edit", "at 5m edit", 1)
		r := passes(t, mails+fault+"\n")
		q, mail := queueOfResult(t, r, "q"), queueOfResult(t, r, "mail")
		require.Equal(t, q.Done, mail.Enqueued, fault)
		require.Equal(t, mail.Enqueued, mail.Done, fault)
		require.Equal(t, mail.Enqueued, mail.Delivered-mail.DeliveredAgain, fault)
	}
}

// TestO7WhatIsRolledBackIsNeverDelivered: the handler fails when it has put its entry.
func TestO7WhatIsRolledBackIsNeverDelivered(t *testing.T) {
	r := passes(t, strings.Replace(mails, "handler=ok:1s", "handler=fail", 1)+"expect sometimes:entry-rolled-back\n")
	require.Zero(t, queueOfResult(t, r, "mail").Enqueued)
}

// TestAcceptedButLost: what came through, and was answered with an error, is
// delivered again.
func TestAcceptedButLost(t *testing.T) {
	const lost = mails + "during 10m30s..20m30s handler failing queue=mail p=0.3"
	r := passes(t, lost+" applied=yes\n")
	mail := queueOfResult(t, r, "mail")
	require.Positive(t, mail.Retried)
	require.Equal(t, mail.Retried, mail.DeliveredAgain)
	require.Equal(t, mail.Enqueued, mail.Done)

	for _, applied := range []string{"", " applied=no"} {
		mail = queueOfResult(t, passes(t, lost+applied+"\n"), "mail")
		require.Positive(t, mail.Retried)
		require.Zero(t, mail.DeliveredAgain)
	}
}

// TestARestartDeliversAgain: what it has forgotten, entries that came through as
// well.
func TestARestartDeliversAgain(t *testing.T) {
	const text = `simulate v1
engine   snapshot-every=10m1s500ms
run      1h
outbox   mail workers=1 deliver=ok:1s
schedule a every=1m queue=q handler=ok:1s outbox=mail
at 15m crash restart=snapshot after=1s
`
	mail := queueOfResult(t, passes(t, text), "mail")
	require.EqualValues(t, 1, mail.DeliveredAgain, "the one that was on its way at the snapshot")
	require.EqualValues(t, 4, mail.DoneForgotten+mail.Lost, "the others are put there anew, with ids of their own")

	mail = queueOfResult(t, passes(t, strings.Replace(text, "snapshot after", "empty after", 1)), "mail")
	require.Zero(t, mail.DeliveredAgain, "an id that is given again is another entry's")
}

// TestN5AnOutboxIsCalledAsItIsCalled: nobody is shown the name of its queue.
func TestN5AnOutboxIsCalledAsItIsCalled(t *testing.T) {
	queues := map[string]bool{}
	s := parsed(t, strings.Replace(mails, "ok:1s", "panic:30%:1s..2m", 1)+"at 20m queue overload queue=mail jobs=10\n")
	r, err := Watch(*s, func(e *Event) { queues[e.Queue] = true })
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.Equal(t, map[string]bool{"": true, "q": true, "mail": true}, queues)
	require.EqualValues(t, 130, queueOfResult(t, r, "mail").Enqueued)
}

// TestSpawnsGoAnywhere: into another queue, or an outbox, in a transaction or
// without one.
func TestSpawnsGoAnywhere(t *testing.T) {
	for _, into := range []string{"mail", "other"} {
		for _, tx := range []string{"yes", "no"} {
			for _, jobs := range []string{"1", "2"} {
				text := `simulate v1
run      1h30s
outbox   mail workers=1
schedule a every=1m queue=q handler=ok:1s backoff=1s attempts=99
schedule b every=20m queue=other
during 10m..20m handler spawning schedule=a into=` + into + " tx=" + tx + " jobs=" + jobs + "\n"
				r := passes(t, text)
				want := 10 * int64(jobs[0]-'0')
				if into == "other" {
					want += 3
				}
				require.Equal(t, want, queueOfResult(t, r, into).Enqueued, text)
				require.EqualValues(t, 60, queueOfResult(t, r, "q").Enqueued, text)
			}
		}
	}
}

// TestAFullOutbox: takes no entry, so that the handlers are tried again.
func TestAFullOutbox(t *testing.T) {
	r := passes(t, strings.Replace(strings.Replace(mails, "standby=yes", "standby=yes queue-limit=5", 1), "ok:1s", "ok:30s..100s", 1)+
		"during 20m..40m handler hanging queue=mail\nexpect sometimes:enqueue-refused sometimes:entry-rolled-back\n")
	q, mail := queueOfResult(t, r, "q"), queueOfResult(t, r, "mail")
	require.Equal(t, q.Done, mail.Enqueued)
}

// TestEnqueueOutbox: a handler in Go puts an entry into an outbox of the scenario.
func TestEnqueueOutbox(t *testing.T) {
	s := parsed(t, strings.ReplaceAll(strings.Replace(mails, " outbox=mail", "", 1), "handler=ok:1s ", ""))
	s.Handlers = Handlers{"a": func(c *Call) error {
		c.Sleep(time.Second)
		_, err := c.EnqueueOutbox("mail", c.Job.Payload, tickonce.OutboxOptions{MaxAttempts: 7, Key: "k"})
		return err
	}}
	r, err := Run(*s)
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%+v", r.Failures)
	require.EqualValues(t, 120, queueOfResult(t, r, "mail").Done)

	s.Handlers["a"] = func(c *Call) error {
		_, err := c.EnqueueOutbox("q", nil, tickonce.OutboxOptions{})
		return err
	}
	r, err = Run(*s)
	require.NoError(t, err)
	require.Equal(t, HandlerCrash, r.Verdict)
	require.Contains(t, r.Failures[0].Detail, `an entry for "q", want an outbox of the scenario`)
}

func TestEventsOfAnEntrySayWhichAndWhere(t *testing.T) {
	var lines []string
	_, err := Watch(*parsed(t, `simulate v1
run 3m
outbox "the \"mail" workers=1 deliver=fail attempts=2
schedule a every=2m queue=q outbox="the \"mail"
`), func(e *Event) {
		if e.Job == 2 {
			lines = append(lines, e.Text())
		}
	})
	require.NoError(t, err)
	require.Equal(t, "job 2 is put into \"the \\\"mail\"", lines[0])
	require.Contains(t, lines, "job 2: the handler fails")
	require.Contains(t, lines, "job 2 (attempt 2): the handler fails")
	require.Contains(t, lines, `job 2 (attempt 2) dies after a failed attempt, with no other to come: "the handler failed, as the scenario says"`)
}

func TestOutboxMistakes(t *testing.T) {
	const box = "outbox out workers=1"
	for line, want := range map[string]string{
		"outbox":                                           `4:7: found the end of the line, want the name of an outbox`,
		"outbox __alkstore_x workers=1":                    `4:8: found "__alkstore_x", want an outbox name: this one begins with __alkstore_, which belongs to the engine`,
		"outbox out":                                       `4:11: found the end of the line, want workers=`,
		"outbox out workers=1 visibility=1m":               `4:22: found "visibility=", want one of workers=, concurrency=, deliver=, heartbeat=, attempts=`,
		"outbox out workers=1 deliver=sent":                `4:30: found "sent", want ` + handlerForm,
		"outbox mail workers=1":                            `4:8: found "mail", want a name that is not that of a queue`,
		box + "\n" + box:                                   `5:8: found a second outbox "out", want one line for an outbox`,
		"schedule b every=1m queue=mail outbox=out":        `4:39: found "out", want an outbox, which needs a line: outbox NAME workers=N`,
		box + "\nschedule b every=1m queue=mail outbox=ou": `5:39: found "ou", want an outbox: out; did you mean "out"?`,
		box + "\nqueue out workers=1":                      `5:7: found "out", want the queue of a schedule: mail`,
		box + "\nat 1m handler slow for=1m queue=ou":       `5:33: found "ou", want the queue of a schedule, or an outbox: one of mail, out; did you mean "out"?`,
		box + "\nat 1m queue lost-ack for=1m queue=out":    `5:35: found "out", want the queue of a schedule: mail`,
		"at 1m handler spawning for=1m into=out":           `4:36: found "out", want the queue of a schedule: mail`,
		"engine runners=16\noutbox out workers=1000\nqueue mail workers=1000\n" + strings.Repeat("outbox o workers=1000\n", 1): ``,
	} {
		got := mistakesOf(t, line)
		if want == "" {
			require.Empty(t, got, line)
			continue
		}
		require.Equal(t, []string{"a.sim:" + want}, got, "%q", line)
	}
}

// TestShrinkLeavesOutOutboxes: and what names them.
func TestShrinkLeavesOutOutboxes(t *testing.T) {
	s := parsed(t, mails+`outbox other workers=3 deliver=slow
during 10m..20m handler spawning into=other
during 10m..20m handler panicking queue=mail
at 30m queue overload queue=other jobs=3
expect sometimes:delivery-panicked
`)
	shrunk, err := Shrink(*s, Shrinking{Keep: s.Expect})
	require.NoError(t, err)
	require.Len(t, shrunk.Scenario.Outboxes, 1)
	require.Len(t, shrunk.Scenario.Faults, 1)
	require.Equal(t, "mail", shrunk.Scenario.Outboxes[0].Name)
}

// TestCompareWithAnOutbox: entries belong to no schedule, and what becomes of them
// is told all the same.
func TestCompareWithAnOutbox(t *testing.T) {
	calm := parsed(t, mails)
	failing := parsed(t, mails+"during 10m..70m handler failing queue=mail\n")
	c, err := Compare(*calm, *failing)
	require.NoError(t, err)
	require.Positive(t, queueOfResult(t, c.Second, "mail").Dead)
	require.NotEmpty(t, c.Effects)
}

// outboxLies are those about outboxes and their transactions.
var outboxLies = []lie{
	{
		lie: "an outbox settles an entry twice", fails: oneDelivery, text: handMails,
		above: liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
			if now, err := s.Settle(ctx, settles, out); err != nil {
				return now, err
			}
			return s.Settle(ctx, settles, out)
		}},
	},
	{
		lie: "an outbox does not settle an entry", fails: oneDelivery, text: handMails,
		above: liar{settle: func(s store.Store, _ []store.Settle, out []bool) (store.Instant, error) {
			out[0] = true
			return shownBy(s), nil
		}},
	},
	{
		lie: "an outbox takes a lost claim for a held one", fails: oneDelivery,
		text: strings.Replace(handMails, "deliver=ok:1s", "deliver=slow", 1),
		above: liar{settle: func(s store.Store, settles []store.Settle, out []bool) (store.Instant, error) {
			now, err := s.Settle(ctx, settles, out)
			out[0] = true
			return now, err
		}},
	},
	{
		lie: "an outbox extends a claim by itself", fails: oneDelivery, text: handMails,
		above: liar{claim: func(s store.Store, queue string, dst []store.Job) (store.Claim, error) {
			c, err := s.Claim(ctx, queue, "liar", dst)
			if c.N > 0 {
				var until [1]store.Instant
				_, err = s.Extend(ctx, []store.Extend{{Job: dst[0].ID, Attempt: dst[0].Attempts, ForMS: 60_000}}, until[:])
			}
			return c, err
		}},
	},
	{
		lie: "an entry is there without its ack", fails: asAsked, text: mails,
		above: liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			b.Settles = nil
			return s.Commit(ctx, b)
		}},
	},
}

// inserted is a liar that changes what is put into an outbox.
func inserted(change func(*store.Insert)) liar {
	return liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
		for i := range b.Inserts {
			change(&b.Inserts[i])
		}
		return s.Commit(ctx, b)
	}}
}
