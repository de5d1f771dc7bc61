package htmlreport

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/sim"
)

// The tries of an outbox are those that its figures count.
func TestTheLaneOfAnOutboxHasItsTries(t *testing.T) {
	text, err := os.ReadFile("../../examples/scenarios/outbox.sim")
	require.NoError(t, err)
	s, err := sim.Parse("outbox.sim", string(text))
	require.NoError(t, err)
	r := NewRecorder(s)
	result, err := sim.Watch(s, r.Tell)
	require.NoError(t, err)
	d, err := r.run(result, Source{File: "outbox.sim", Text: string(text)})
	require.NoError(t, err)
	require.NotEmpty(t, d.Outboxes)
	for _, o := range d.Outboxes {
		counted := map[string]int64{}
		for _, q := range o.Tries {
			counted[q.kind] += q.count
		}
		require.Equal(t, map[string]int64{"delivered": o.Delivered, "retried": o.Retried, "undelivered": o.Dead}, map[string]int64{
			"delivered": counted["delivered"], "retried": counted["retried"], "undelivered": counted["undelivered"],
		})
		for _, q := range result.Queues {
			if q.Name == o.Name {
				require.Equal(t, []int64{q.Done, q.Retried, q.Dead}, []int64{o.Delivered, o.Retried, o.Dead})
			}
		}
	}
}

// A job and its delivery are told of apart, where either was not done at the first
// try; a failure of the one is none of the other.
func TestX1OfAJobAndItsDeliveryEachOutcomeIsTold(t *testing.T) {
	boundary := func(minute int) time.Time { return sim.DefaultStart.Add(time.Duration(minute) * time.Minute) }
	of := func(minute int, job int64, kind sim.EventKind) sim.Event {
		return sim.Event{Kind: kind, Schedule: "a", Queue: "q", Boundary: boundary(minute), Job: job, Attempt: 1}
	}
	to := func(e sim.Event, origin int64, attempt int, reason string) sim.Event {
		e.Queue, e.Origin, e.Attempt, e.Reason = "chat", origin, attempt, reason
		return e
	}
	second := func(e sim.Event, failed string) sim.Event {
		e.Attempt, e.Error = 2, failed
		return e
	}
	cut := of(2, 3, sim.EventHandlerCut)
	cut.Reason = "timeout"
	died := to(of(1, 2, sim.EventJobDied), 1, 3, "failed")
	died.Error = "no such channel"
	for _, c := range []struct {
		what   string
		events []sim.Event
		want   string
	}{
		{"both done at the first try", []sim.Event{
			of(1, 1, sim.EventFired), of(1, 1, sim.EventJobDone), to(of(1, 2, sim.EventEnqueued), 1, 0, ""), to(of(1, 2, sim.EventJobDone), 1, 1, ""),
		}, `[]`},
		{"ran well, not delivered", []sim.Event{
			of(1, 1, sim.EventFired), of(1, 1, sim.EventJobDone), to(of(1, 2, sim.EventEnqueued), 1, 0, ""), died,
		}, `[[60000,1,"done","",[["chat",3,"undelivered","no such channel"]]]]`},
		{"the entry is told of before its job is done", []sim.Event{
			of(1, 1, sim.EventFired), to(of(1, 2, sim.EventEnqueued), 1, 0, ""), of(1, 1, sim.EventJobDone),
		}, `[[60000,1,"done","",[["chat",0,"open",""]]]]`},
		{"timed out, and dead at the second try", []sim.Event{
			of(2, 3, sim.EventFired), cut, of(2, 3, sim.EventJobRetried), second(of(2, 3, sim.EventJobDied), "no paper"),
		}, `[[120000,2,"dead","no paper",[]]]`},
		{"timed out, and done at the second try", []sim.Event{
			of(2, 3, sim.EventFired), cut, of(2, 3, sim.EventJobRetried), second(of(2, 3, sim.EventJobDone), ""),
		}, `[[120000,2,"done","timed out",[]]]`},
		{"by hand, and nobody took it", []sim.Event{
			{Kind: sim.EventTriggered, Schedule: "a", Queue: "q", Job: 4},
		}, `[[null,0,"open","",[]]]`},
	} {
		o, s := newOutcomes(sim.Scenario{Outboxes: []sim.Outbox{{Name: "chat"}}}), &schedule{}
		for _, e := range c.events {
			at := int64(noBoundary)
			if !e.Boundary.IsZero() {
				at = e.Boundary.Sub(sim.DefaultStart).Milliseconds()
			}
			o.tell(&e, 0, at, s)
		}
		o.close(1)
		list, err := json.Marshal(notNil(s.Outcomes))
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(list), c.what)
		if c.what == "ran well, not delivered" {
			require.Equal(t, []int64{0, 0, 1}, []int64{s.Failed, s.Dead, s.Undelivered})
		}
	}
}

// A page is the same each time: jobs are in the order of their boundaries and of
// their ids, those that were fired by hand first.
func TestX1OutcomesAreInOneOrder(t *testing.T) {
	o, s := newOutcomes(sim.Scenario{}), &schedule{}
	var want []string
	for job := int64(60); job > 0; job-- {
		e, at := sim.Event{Kind: sim.EventTriggered, Job: job}, int64(noBoundary)
		if job > 20 {
			e.Kind, at = sim.EventFired, job/2
		}
		o.tell(&e, 0, at, s)
		e.Kind, e.Error = sim.EventJobDied, fmt.Sprint(job)
		o.tell(&e, 0, at, s)
		want = append(want, e.Error)
	}
	o.close(1)
	slices.Reverse(want)
	var got []string
	for _, job := range s.Outcomes {
		got = append(got, job.why)
	}
	require.Equal(t, want, got)
}

func TestT14WhatIsMissedIsSaid(t *testing.T) {
	for want, policy := range map[string]tickonce.CatchUp{
		"all": {Count: 64}, "latest": {Count: 1, Newest: true}, "newest 3": {Count: 3, Newest: true}, "oldest 1": {Count: 1},
		"all, ≤ 20\u00a0min late": {Count: 64, Window: 20 * time.Minute},
	} {
		require.Equal(t, want, missed(policy))
	}
}
