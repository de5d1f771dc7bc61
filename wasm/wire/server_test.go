package wire_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

func open(t *testing.T) *wire.Server {
	s, err := wire.Open(0, []byte(`{"seed":"7","journal":true}`), nil, nil)
	require.NoError(t, err)
	return s
}

// ask calls the server, and demands that it answers.
func ask(t *testing.T, s *wire.Server, now float64, op wire.Op, r wire.Request) *wire.Reply {
	text, err := s.Call(now, op, r.Encode(op))
	require.NoError(t, err)
	reply, err := wire.ParseReply(text)
	require.NoError(t, err)
	return reply
}

func TestSnapshotLeavesTheRecords(t *testing.T) {
	s := open(t)
	ask(t, s, 0, wire.OpEnqueue, wire.Request{Queue: "q"})
	out := string(s.Out())
	require.NotEmpty(t, out)
	_, err := s.Snapshot()
	require.NoError(t, err)
	require.Equal(t, out, string(s.Out()))
	ask(t, s, 0, wire.OpQueue, wire.Request{Queue: "q"})
	require.Empty(t, s.Out(), "the next call's are none")
}

// What was written is in the journal before anything tells of it.
func TestTheJournalComesFirst(t *testing.T) {
	s, err := wire.Open(0, []byte(`{"seed":"7","journal":true,"events":true}`), nil, nil)
	require.NoError(t, err)
	ask(t, s, 0, wire.OpStart, wire.Request{})
	ask(t, s, 0, wire.OpWork, wire.Request{Queue: "q"})
	ask(t, s, 0, wire.OpSchedule, wire.Request{Name: "s", Spec: "@every 1s", Queue: "q"})
	_, err = s.Step(1000, 0)
	require.NoError(t, err)
	records, err := wire.ParseRecords(s.Out())
	require.NoError(t, err)
	var kinds []string
	for _, r := range records {
		kinds = append(kinds, r.Kind.String())
	}
	require.Equal(t, []string{"journal", "event", "journal", "event", "fired", "journal", "event", "begun"}, kinds, "leading, fired, claimed")
}

func TestD6WhatAnotherHandleGaveIsLost(t *testing.T) {
	s := open(t)
	ask(t, s, 0, wire.OpEnqueue, wire.Request{Queue: "q"})
	ask(t, s, 0, wire.OpClaim, wire.Request{Queue: "q", Worker: "w"})
	ask(t, s, 0, wire.OpLock, wire.Request{Name: "l", Owner: "o", For: 1e9})
	snapshot, err := s.Snapshot()
	require.NoError(t, err)

	s, err = wire.Open(0, []byte(`{"seed":"7"}`), snapshot, nil)
	require.NoError(t, err)
	_, err = s.Call(0, wire.OpFail, []byte(`{"claim":{"job":1,"attempt":1}}`))
	require.ErrorIs(t, err, tickonce.ErrClaimLost)
	require.False(t, ask(t, s, 0, wire.OpReleaseLock, wire.Request{Term: 1}).Done)
	require.EqualValues(t, 1, ask(t, s, 0, wire.OpQueue, wire.Request{Queue: "q"}).Queue.Claimed)
}

// Claims that have lapsed are forgotten once there are many, and live ones
// never.
func TestClaimsThatHaveLapsedAreForgotten(t *testing.T) {
	s := open(t)
	claim := func(now float64, n int, short bool) (claims []wire.Claim) {
		var r wire.Request
		if r.Queue = "q"; short {
			r.Enqueue.Visibility = 1e6
		}
		for range n {
			ask(t, s, now, wire.OpEnqueue, r)
		}
		ask(t, s, now, wire.OpClaim, wire.Request{Queue: "q", Worker: "w", Max: n})
		records, err := wire.ParseRecords(s.Out())
		require.NoError(t, err)
		for _, r := range records {
			if r.Kind == wire.RecordBegun {
				claims = append(claims, wire.Claim{Job: r.Job, Attempt: r.Attempt})
			}
		}
		require.Len(t, claims, n)
		return claims
	}
	live := claim(0, 1000, false)
	claim(0, 20, true)
	require.Equal(t, 1020, s.Held())
	ask(t, s, 10, wire.OpPurge, wire.Request{Queue: "q"})
	ask(t, s, 10, wire.OpEnqueue, wire.Request{Queue: "r"})
	for range 5 {
		ask(t, s, 10, wire.OpEnqueue, wire.Request{Queue: "r"})
	}
	ask(t, s, 10, wire.OpClaim, wire.Request{Queue: "r", Worker: "w", Max: 6})
	require.Equal(t, 1006, s.Held(), "the live ones, and those that came after")
	for _, acked := range ask(t, s, 10, wire.OpAck, wire.Request{Claims: live}).Acked {
		require.True(t, acked)
	}
	require.Equal(t, 6, s.Held())
}

// A page of the dead costs what it has, not what lies before it.
func TestQU11APageOfTheDeadBeginsWhereItIsAsked(t *testing.T) {
	s := open(t)
	const all = 3000
	for range all {
		ask(t, s, 0, wire.OpEnqueue, wire.Request{Queue: "q", Payload: []byte("p"), Enqueue: tickonce.EnqueueOptions{Expires: time.Millisecond}})
	}
	for ask(t, s, 10, wire.OpSweep, wire.Request{Queue: "q"}).Count > 0 {
	}
	var ids []tickonce.JobID
	for from := int64(0); ; from = int64(ids[len(ids)-1]) + 1 {
		dead := ask(t, s, 10, wire.OpDead, wire.Request{Queue: "q", From: from, Max: 700}).Dead
		if len(dead) == 0 {
			break
		}
		for _, job := range dead {
			require.Equal(t, "p", string(job.Payload))
			ids = append(ids, job.ID)
		}
	}
	require.Len(t, ids, all)
	page := func(from int64) float64 {
		r := wire.Request{Queue: "q", From: from, Max: 2}
		return testing.AllocsPerRun(5, func() { require.Len(t, ask(t, s, 10, wire.OpDead, r).Dead, 2) })
	}
	require.InDelta(t, page(1), page(all-1), 100, "allocations: one for each that it passes over would be thousands")
}

// After a panic nothing is known of the state any more.
func TestABrokenHandleIsOfNoMoreUse(t *testing.T) {
	undo := wire.Faulty(wire.OpTotals)
	defer undo()
	s := open(t)
	internal := func(err error) {
		var refused *wire.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, wire.CodeInternal, refused.Code)
	}
	_, err := s.Call(0, wire.OpTotals, []byte(`{"name":"s"}`))
	internal(err)
	require.ErrorContains(t, err, "boom")
	undo()
	_, err = s.Call(0, wire.OpTotals, []byte(`{"name":"s"}`))
	internal(err)
	next, err := s.Step(0, 0)
	internal(err)
	require.True(t, math.IsNaN(next))
	_, err = s.Snapshot()
	internal(err)
}
