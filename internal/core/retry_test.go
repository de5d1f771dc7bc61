package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// The first outputs of splitmix64 from the states 0 and 1234567, as published
// with its reference implementation.
func TestQU6Mix64IsSplitmix64(t *testing.T) {
	const gamma = 0x9e3779b97f4a7c15
	for seed, want := range map[uint64][]uint64{
		0:         {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f},
		1_234_567: {6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821},
	} {
		for i, w := range want {
			require.Equal(t, w, core.Mix64(seed+uint64(i)*gamma), "output %d of state %d", i, seed)
		}
	}
}

// A delay is a pure function of seed, job and attempt that no release may
// change: it is in recorded runs.
func TestQU6BackoffGoldenVectors(t *testing.T) {
	for _, c := range []struct {
		seed    uint64
		job     store.JobID
		attempt int32
		base    int64
		want    int64
	}{
		{0, 1, 1, 5000, 2765},
		{1, 1, 1, 5000, 4081},
		{1, 1, 2, 5000, 8640},
		{1, 2, 1, 5000, 2986},
		{1, 1, 1, 60000, 45186},
		{1, 1, 20, 60000, 2541218},
		{18446744073709551615, 9007199254740991, 3, 60000, 159478},
		{42, 1000, 5, 1, 15},
	} {
		require.Equal(t, c.want, core.BackoffMS(c.seed, c.job, c.attempt, c.base), "%+v", c)
	}
}

func TestQU6BackoffIsWithinItsBounds(t *testing.T) {
	for _, c := range []struct {
		attempt         int32
		base, low, most int64
	}{
		{1, 5000, 2500, 5000},
		{2, 5000, 5000, 10_000},
		{3, 5000, 10_000, 20_000},
		{4, 5000, 20_000, 40_000},
		{10, 5000, 1_280_000, 2_560_000},
		{11, 5000, 1_800_000, 3_600_000}, // capped
		{1 << 30, 5000, 1_800_000, 3_600_000},
		{1<<31 - 1, 1, 1_800_000, 3_600_000},
		{1, 1, 1, 1},
		{2, 1, 1, 2},
		{1, 3, 2, 3},
		{1, 3_600_000, 1_800_000, 3_600_000},
		{2, 3_600_000, 1_800_000, 3_600_000},
	} {
		least, most := c.most+1, int64(-1)
		for job := range store.JobID(2000) {
			d := core.BackoffMS(7, job+1, c.attempt, c.base)
			least, most = min(least, d), max(most, d)
		}
		require.GreaterOrEqual(t, least, c.low, "%+v", c)
		require.LessOrEqual(t, most, c.most, "%+v", c)
		slack := (c.most - c.low) / 100
		require.LessOrEqual(t, least, c.low+slack, "the draws reach the lower end: %+v", c)
		require.GreaterOrEqual(t, most, c.most-slack, "the draws reach the upper end: %+v", c)
	}
}

// The mean of a uniform draw from [2500, 5000] is 3750; of 20,000 draws it
// lies within five standard errors, 26, unless the draw is not uniform.
func TestQU6BackoffIsUniform(t *testing.T) {
	const draws = 20_000
	var sum int64
	for job := range store.JobID(draws) {
		sum += core.BackoffMS(1, job+1, 1, 5000)
	}
	require.InDelta(t, 3750, float64(sum)/draws, 26)
}

func TestQU6BackoffDependsOnSeedJobAndAttempt(t *testing.T) {
	of := core.BackoffMS(1, 1, 12, 60_000)
	require.Equal(t, of, core.BackoffMS(1, 1, 12, 60_000))
	require.NotEqual(t, of, core.BackoffMS(2, 1, 12, 60_000))
	require.NotEqual(t, of, core.BackoffMS(1, 2, 12, 60_000))
	require.NotEqual(t, of, core.BackoffMS(1, 1, 13, 60_000))
}

func TestQU6PlanRetry(t *testing.T) {
	stamps := store.Stamps{VisibilityMS: 1000, BaseBackoffMS: 5000, MaxAttempts: 3}
	curve := core.BackoffMS(1, 9, 2, 5000)
	for _, c := range []struct {
		name    string
		attempt int32
		delay   int64
		want    store.Settle
	}{
		{"after the curve", 2, -1, store.Settle{Job: 9, Attempt: 2, To: store.Pending, DelayMS: curve, Error: "e"}},
		{"at once", 2, 0, store.Settle{Job: 9, Attempt: 2, To: store.Pending, Error: "e"}},
		{"after a delay", 2, 7, store.Settle{Job: 9, Attempt: 2, To: store.Pending, DelayMS: 7, Error: "e"}},
		{"the last attempt", 3, -1, store.Settle{Job: 9, Attempt: 3, To: store.Dead, Error: "e"}},
		{"the last attempt with a delay", 3, 7, store.Settle{Job: 9, Attempt: 3, To: store.Dead, Error: "e"}},
		{"past the last attempt", 4, -1, store.Settle{Job: 9, Attempt: 4, To: store.Dead, Error: "e"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, core.PlanRetry(1, 9, c.attempt, stamps, c.delay, "e"))
		})
	}
}

func TestQU6BackoffBoundsHoldForAnyRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(1, core.MaxBackoffMS).Draw(t, "base")
		attempt := rapid.Int32Range(1, 64).Draw(t, "attempt")
		d := core.BackoffMS(rapid.Uint64().Draw(t, "seed"), store.JobID(rapid.Int64().Draw(t, "job")), attempt, base)
		top := int64(core.MaxBackoffMS)
		if attempt < 32 {
			top = min(top, base<<(attempt-1))
		}
		require.GreaterOrEqual(t, 2*d, top)
		require.LessOrEqual(t, d, top)
	})
}
