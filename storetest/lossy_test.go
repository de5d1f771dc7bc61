package storetest

import (
	"bytes"
	"context"
	"testing"

	"github.com/tickonce/tickonce/store"
)

// lossy is a naive store that keeps less of its rows than it was given.
type lossy struct {
	*Naive
	lose func(now store.Instant, before, after *table)
}

// write makes a call, then loses something of what it wrote.
func (s lossy) write(call func()) {
	before := s.rows.clone()
	call()
	s.lose(s.now(), &before, &s.rows)
}

func (s lossy) Commit(ctx context.Context, b *store.Batch) (c store.Committed, err error) {
	s.write(func() { c, err = s.Naive.Commit(ctx, b) })
	return c, err
}

func (s lossy) Advance(ctx context.Context, t *store.Tick) (held bool, err error) {
	s.write(func() { held, err = s.Naive.Advance(ctx, t) })
	return held, err
}

func (s lossy) Claim(ctx context.Context, queue, worker string, dst []store.Job) (c store.Claim, err error) {
	s.write(func() { c, err = s.Naive.Claim(ctx, queue, worker, dst) })
	return c, err
}

func (s lossy) Settle(ctx context.Context, e []store.Settle, out []bool) (now store.Instant, err error) {
	s.write(func() { now, err = s.Naive.Settle(ctx, e, out) })
	return now, err
}

func (s lossy) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (g store.Grant, err error) {
	s.write(func() { g, err = s.Naive.Acquire(ctx, lock, owner, ttlMS) })
	return g, err
}

func cut(text string, n int) string { return text[:min(len(text), n)] }

// ofJobs loses something of every job, ofSchedules of every schedule.
func ofJobs(lose func(j *store.Job)) func(store.Instant, *table, *table) {
	return func(_ store.Instant, _, after *table) {
		for i := range after.jobs {
			lose(&after.jobs[i])
		}
	}
}

func ofSchedules(lose func(s *store.Schedule)) func(store.Instant, *table, *table) {
	return func(_ store.Instant, _, after *table) {
		for i := range after.schedules {
			lose(&after.schedules[i])
		}
	}
}

func TestComparisonFindsWhatIsLost(t *testing.T) {
	for name, lose := range map[string]func(now store.Instant, before, after *table){
		"set-at of a change is now": func(now store.Instant, before, after *table) {
			for i := range after.schedules {
				row := &after.schedules[i]
				if old := before.scheduleByID(row.ID); old != nil && old.Rev < row.Rev {
					row.SetAt = now
				}
			}
		},
		"payload ends at a zero byte": ofJobs(func(j *store.Job) {
			j.Payload, _, _ = bytes.Cut(j.Payload, []byte{0})
		}),
		"a job's priority in 8 bits":       ofJobs(func(j *store.Job) { j.Priority = int16(int8(j.Priority)) }),
		"a schedule's priority in 8 bits":  ofSchedules(func(s *store.Schedule) { s.Priority = int16(int8(s.Priority)) }),
		"at most 32,767 attempts":          ofJobs(func(j *store.Job) { j.Stamps.MaxAttempts = min(j.Stamps.MaxAttempts, 32_767) }),
		"at most 32,767 attempts of fires": ofSchedules(func(s *store.Schedule) { s.Stamps.MaxAttempts = min(s.Stamps.MaxAttempts, 32_767) }),
		"100 bytes of a key":               ofJobs(func(j *store.Job) { j.Key = cut(j.Key, 100) }),
		"100 bytes of a worker":            ofJobs(func(j *store.Job) { j.Worker = cut(j.Worker, 100) }),
		"255 bytes of an error":            ofJobs(func(j *store.Job) { j.LastError = cut(j.LastError, 255) }),
		"100 bytes of an owner": func(_ store.Instant, _, after *table) {
			for i := range after.leases {
				after.leases[i].Owner = cut(after.leases[i].Owner, 100)
			}
		},
		"at most 127 holds": ofSchedules(func(s *store.Schedule) {
			if s.Hold != nil && s.Hold.Times > 127 {
				s.Hold = &store.Hold{Reason: s.Hold.Reason, Since: s.Hold.Since, Times: 127}
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			found(t, func(s *Naive) store.Store { return lossy{s, lose} })
		})
	}
}
