package tickonce_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

func TestConfigDefaults(t *testing.T) {
	e, err := tickonce.New(openNaive(t, tickonce.Config{Clock: &clock{}}), tickonce.Config{})
	require.NoError(t, err)
	c := e.Config()
	require.NotNil(t, c.Clock)
	synctest.Test(t, func(t *testing.T) { require.Equal(t, time.Now(), c.Clock.Now()) })
	require.NotZero(t, c.Seed)
	require.NotEmpty(t, c.Owner)
	c.Clock, c.Seed, c.Owner = nil, 0, ""
	require.Equal(t, tickonce.Config{
		Batch: 1000, LeaseTTL: time.Minute, Poll: time.Second, OnTime: 10 * time.Second, Details: 1024,
		Limits: tickonce.Limits{Payload: 1 << 20, QueueLength: 1_000_000, Schedules: 1 << 20, LastError: 1 << 10, Runs: 64, Skips: 64, History: 1_000_000},
	}, c)
}

func TestConfigDrawsSeedAndOwnerOnce(t *testing.T) {
	seeds, owners := map[uint64]bool{}, map[string]bool{}
	for range 100 {
		c, err := tickonce.Config{}.WithDefaults()
		require.NoError(t, err)
		seeds[c.Seed], owners[c.Owner] = true, true
		again, err := c.WithDefaults()
		require.NoError(t, err)
		require.Equal(t, c, again)
	}
	require.Len(t, seeds, 100)
	require.Len(t, owners, 100)
}

func TestConfigBounds(t *testing.T) {
	for _, c := range []struct {
		name   string
		config tickonce.Config
		option string // at fault, or ""
	}{
		{"the least batch", tickonce.Config{Batch: 1}, ""},
		{"the most", tickonce.Config{Batch: 100_000}, ""},
		{"over it", tickonce.Config{Batch: 100_001}, "Batch"},
		{"a negative batch", tickonce.Config{Batch: -1}, "Batch"},
		{"the least TTL", tickonce.Config{LeaseTTL: time.Second}, ""},
		{"under it", tickonce.Config{LeaseTTL: time.Second - time.Millisecond}, "LeaseTTL"},
		{"the most", tickonce.Config{LeaseTTL: time.Hour}, ""},
		{"over it", tickonce.Config{LeaseTTL: time.Hour + time.Millisecond}, "LeaseTTL"},
		{"a fraction of a millisecond", tickonce.Config{LeaseTTL: time.Minute + time.Microsecond}, "LeaseTTL"},
		{"no poll", tickonce.Config{Poll: -1}, ""},
		{"the least poll", tickonce.Config{Poll: 10 * time.Millisecond}, ""},
		{"under it", tickonce.Config{Poll: 9 * time.Millisecond}, "Poll"},
		{"the most", tickonce.Config{Poll: 24 * time.Hour}, ""},
		{"over it", tickonce.Config{Poll: 24*time.Hour + time.Second}, "Poll"},
		{"on-time window of a day", tickonce.Config{OnTime: 24 * time.Hour}, ""},
		{"over it", tickonce.Config{OnTime: 25 * time.Hour}, "OnTime"},
		{"a negative one", tickonce.Config{OnTime: -time.Second}, "OnTime"},
		{"rearm", tickonce.Config{ClockRepair: tickonce.RepairRearm}, ""},
		{"an unknown repair", tickonce.Config{ClockRepair: 2}, "ClockRepair"},
		{"the longest owner", tickonce.Config{Owner: strings.Repeat("o", 128)}, ""},
		{"over it", tickonce.Config{Owner: strings.Repeat("o", 129)}, "Owner"},
		{"the largest payload", tickonce.Config{Limits: tickonce.Limits{Payload: 1 << 30}}, ""},
		{"over it", tickonce.Config{Limits: tickonce.Limits{Payload: 1<<30 + 1}}, "Limits.Payload"},
		{"a negative payload", tickonce.Config{Limits: tickonce.Limits{Payload: -1}}, "Limits.Payload"},
		{"a negative queue length", tickonce.Config{Limits: tickonce.Limits{QueueLength: -1}}, "Limits.QueueLength"},
		{"negative schedules", tickonce.Config{Limits: tickonce.Limits{Schedules: -1}}, "Limits.Schedules"},
		{"one detail", tickonce.Config{Details: 1}, ""},
		{"the most details", tickonce.Config{Details: 100_000}, ""},
		{"over it", tickonce.Config{Details: 100_001}, "Details"},
		{"less than one", tickonce.Config{Details: -1}, "Details"},
		{"the longest error", tickonce.Config{Limits: tickonce.Limits{LastError: 1 << 16}}, ""},
		{"over it", tickonce.Config{Limits: tickonce.Limits{LastError: 1<<16 + 1}}, "Limits.LastError"},
	} {
		t.Run(c.name+" "+c.option, func(t *testing.T) {
			e, err := tickonce.New(nil, c.config)
			if c.option == "" {
				require.NoError(t, err)
				return
			}
			require.Nil(t, e)
			require.ErrorIs(t, err, tickonce.ErrInvalidOption)
			var option *tickonce.OptionError
			require.True(t, errors.As(err, &option))
			require.Equal(t, c.option, option.Option)
		})
	}
}

// A configuration tells all its faults at once, each with what it is and what
// is allowed.
func TestConfigJoinsItsFaults(t *testing.T) {
	_, err := tickonce.New(nil, tickonce.Config{Batch: -5, LeaseTTL: time.Millisecond, Poll: time.Millisecond, ClockRepair: 9})
	require.EqualError(t, err, strings.Join([]string{
		"invalid option: Batch is -5, want 1 to 100000",
		"invalid option: LeaseTTL is 1ms, want whole milliseconds from 1s to 1h0m0s",
		"invalid option: Poll is 1ms, want whole milliseconds from 10ms to 24h0m0s",
		"invalid option: ClockRepair is 9, want RepairHold or RepairRearm",
	}, "\n"))
}

// Each limit is kept, at its edge, and its error says which it is, its value
// and what came.
func TestLimits(t *testing.T) {
	limits := tickonce.Limits{Payload: 10, QueueLength: 2, Schedules: 2}
	for _, c := range []struct {
		name string
		call func(r *rig, n int) error // the n-th or with n
		most int
		want tickonce.LimitError
		text string
	}{
		{"payload of a job", func(r *rig, n int) error {
			_, err := r.Enqueue(r.ctx, "q", make([]byte, n), tickonce.EnqueueOptions{})
			return err
		}, 10, tickonce.LimitError{Limit: "Payload", Max: 10, Got: 11}, "limit exceeded: Payload is 10, this would make 11"},
		{"payload of an entry", func(r *rig, n int) error {
			_, err := r.Outbox("o").Enqueue(r.ctx, make([]byte, n), tickonce.OutboxOptions{})
			return err
		}, 10, tickonce.LimitError{Limit: "Payload", Max: 10, Got: 11}, "limit exceeded: Payload is 10, this would make 11"},
		{"payload of a schedule", func(r *rig, n int) error {
			_, err := r.Schedule(r.ctx, "s", "@every 1s", "q", make([]byte, n), tickonce.ScheduleOptions{})
			return err
		}, 10, tickonce.LimitError{Limit: "Payload", Max: 10, Got: 11}, "limit exceeded: Payload is 10, this would make 11"},
		{"jobs of a queue", func(r *rig, n int) error {
			var err error
			for range n {
				_, err = r.Enqueue(r.ctx, "q", nil, tickonce.EnqueueOptions{})
			}
			return err
		}, 2, tickonce.LimitError{Limit: "QueueLength", Max: 2, Got: 3, Where: "q"}, `enqueue: queue "q": limit exceeded: QueueLength is 2, this would make 3 in "q"`},
		{"schedules", func(r *rig, n int) error {
			var err error
			for i := range n {
				_, err = r.Schedule(r.ctx, strings.Repeat("s", i+1), "@every 1s", "q", nil, tickonce.ScheduleOptions{})
			}
			return err
		}, 2, tickonce.LimitError{Limit: "Schedules", Max: 2, Got: 3}, `schedule: schedule "sss": limit exceeded: Schedules is 2, this would make 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachStore(t, tickonce.Config{Limits: limits}, func(t *testing.T, r *rig) {
				require.NoError(t, c.call(r, c.most))
			})
			onEachStore(t, tickonce.Config{Limits: limits}, func(t *testing.T, r *rig) {
				err := c.call(r, c.most+1)
				require.ErrorIs(t, err, tickonce.ErrLimit)
				var limit *tickonce.LimitError
				require.True(t, errors.As(err, &limit))
				require.Equal(t, c.want, *limit)
				require.EqualError(t, err, c.text)
				require.LessOrEqual(t, len(r.jobs("q")), 2)
				require.LessOrEqual(t, len(r.contents().Schedules), 2)
			})
		})
	}
}

// Dead jobs count against the length of their queue until they are purged.
func TestLimitsCountDeadJobs(t *testing.T) {
	onEachStore(t, tickonce.Config{Limits: tickonce.Limits{QueueLength: 2}}, func(t *testing.T, r *rig) {
		id := r.fail("d")
		r.enqueue("p", tickonce.EnqueueOptions{})
		_, err := r.Enqueue(r.ctx, "q", nil, tickonce.EnqueueOptions{})
		require.ErrorIs(t, err, tickonce.ErrLimit)
		_, err = r.Requeue(r.ctx, "q", id)
		require.NoError(t, err, "it takes the dead one's place")
		r.claim()
		_, err = r.Cancel(r.ctx, "q", 2)
		require.NoError(t, err)
		r.enqueue("p", tickonce.EnqueueOptions{})
	})
}

func TestLimitsAsTheStoreHasThem(t *testing.T) {
	require.Equal(t, store.Limits{QueueLength: 1_000_000, Schedules: 1 << 20, Runs: 64, Skips: 64, History: 1_000_000}, tickonce.Limits{}.Store())
	require.Equal(t,
		store.Limits{QueueLength: 5, Schedules: 7, Runs: 8, Skips: 9, History: 10},
		tickonce.Limits{QueueLength: 5, Schedules: 7, Runs: 8, Skips: 9, History: 10}.Store())
}

// Details ride the chain and match their sentinel (N7).
func TestN7DetailsMatchTheirSentinels(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		err    error
		target error
		text   string
	}{
		{&tickonce.OptionError{Option: "Delay", Problem: "is bad"}, tickonce.ErrInvalidOption, "invalid option: Delay is bad"},
		{&tickonce.LimitError{Limit: "Payload", Max: 1, Got: 2}, tickonce.ErrLimit, "limit exceeded: Payload is 1, this would make 2"},
		{&tickonce.OpError{Op: "claim", Queue: "q", Err: cause}, cause, `claim: queue "q": cause`},
		{
			&tickonce.OpError{Op: "run schedules", Phase: tickonce.PhaseAdvance, Schedule: "s", Rows: 1, Err: cause}, cause,
			`run schedules: advance: schedule "s": cause`,
		},
		{
			&tickonce.OpError{Op: "run schedules", Phase: tickonce.PhaseAdvance, Schedule: "s", Rows: 12, Err: cause}, cause,
			`run schedules: advance: schedule "s" and 11 more: cause`,
		},
	} {
		require.ErrorIs(t, c.err, c.target)
		require.EqualError(t, c.err, c.text)
		for _, other := range []error{tickonce.ErrNotFound, tickonce.ErrConflict} {
			require.NotErrorIs(t, c.err, other)
		}
	}
}
