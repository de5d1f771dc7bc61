package fileengine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/store"
)

// readings is a clock that shows what a store is to be shown.
type readings func() store.Instant

func (c readings) Now() time.Time                     { return time.UnixMilli(int64(c())) }
func (readings) After(time.Duration) <-chan time.Time { return nil }

// kept is the store of an engine on a simulated disk. Calls of the disk fail now
// and then; a call of the store that fails for that has changed nothing, and is
// made again. The simulator does not hear of it.
type kept struct {
	store.Store
	engine *Engine
	config tickonce.Config
	disk   *disk
	rng    *rand.Rand
	t      testing.TB
	rotate bool
	failed map[error]int
	falls  int
}

// open opens what is on the disk, which the machine falls at in the middle more
// often than not.
func (k *kept) open() {
	for {
		at := k.disk.calls + 1 + k.rng.IntN(60)
		k.disk.fails = func(call int) error {
			if call == at {
				return errFall
			}
			return nil
		}
		e, _, err := open(simulated{k.disk}, k.config, Options{RotateAt: 2000})
		k.disk.fails = k.trouble
		if err == nil && !k.disk.fell { // as it may while what is left over is removed
			e.journal.rotate = func() { k.rotate = true }
			k.engine, k.Store = e, e.Store()
			return
		}
		require.True(k.t, k.disk.fell, "%v", err)
		k.fall()
	}
}

func (k *kept) fall() {
	k.falls++
	if k.rng.IntN(3) == 0 {
		k.disk = k.disk.kill()
	} else {
		k.disk = k.disk.fall()
	}
}

// trouble has one of so many calls of the disk fail.
func (k *kept) trouble(int) error {
	if k.rng.IntN(40) > 0 {
		return nil
	}
	return [...]error{syscall.ENOSPC, syscall.EIO, syscall.EROFS}[k.rng.IntN(3)]
}

// write makes a call until its record is written.
func (k *kept) write(call func() error) error {
	for {
		before := stateOf(k.t, k.engine.Engine)
		err := call()
		if err != nil {
			require.Equal(k.t, before, stateOf(k.t, k.engine.Engine), "a call that fails changes nothing (D2)")
			for _, e := range []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS} {
				if errors.Is(err, e) {
					k.failed[e]++
				}
			}
		}
		if k.rotate {
			k.rotate = false
			_ = k.engine.Rotate()
		}
		if err == nil {
			return nil
		}
	}
}

func (k *kept) Advance(ctx context.Context, tick *store.Tick) (held bool, err error) {
	err = k.write(func() (err error) { held, err = k.Store.Advance(ctx, tick); return err })
	return held, err
}

func (k *kept) Claim(ctx context.Context, queue, worker string, dst []store.Job) (c store.Claim, err error) {
	err = k.write(func() (err error) { c, err = k.Store.Claim(ctx, queue, worker, dst); return err })
	return c, err
}

func (k *kept) Settle(ctx context.Context, s []store.Settle, out []bool) (now store.Instant, err error) {
	err = k.write(func() (err error) { now, err = k.Store.Settle(ctx, s, out); return err })
	return now, err
}

func (k *kept) Extend(ctx context.Context, e []store.Extend, out []store.Instant) (now store.Instant, err error) {
	err = k.write(func() (err error) { now, err = k.Store.Extend(ctx, e, out); return err })
	return now, err
}

func (k *kept) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (g store.Grant, err error) {
	err = k.write(func() (err error) { g, err = k.Store.Acquire(ctx, lock, owner, ttlMS); return err })
	return g, err
}

func (k *kept) Renew(ctx context.Context, l store.Lease, ttlMS int64) (g store.Grant, err error) {
	err = k.write(func() (err error) { g, err = k.Store.Renew(ctx, l, ttlMS); return err })
	return g, err
}

func (k *kept) Release(ctx context.Context, l store.Lease) (did bool, err error) {
	err = k.write(func() (err error) { did, err = k.Store.Release(ctx, l); return err })
	return did, err
}

func (k *kept) Commit(ctx context.Context, b *store.Batch) (c store.Committed, err error) {
	err = k.write(func() (err error) { c, err = k.Store.Commit(ctx, b); return err })
	return c, err
}

// The simulator runs whole programs of runners, workers and operators on an
// engine whose disk keeps no more than it has to: the machine falls whenever they
// restart, and while the directory is opened again. Each time the state is the one
// that was left, and nothing that the simulator checks is broken by it.
func TestD2D4TheSimulatorFindsItsStateOnABadDisk(t *testing.T) {
	s, err := sim.Parse("test.sim", `simulate v1
engine   standby=yes runners=2
run      1h
queue    q workers=2
outbox   o workers=1
schedule a every=1m  queue=q handler=fail:20% backoff=5s
schedule b every=20s queue=r catch-up=latest
schedule c every=5m  queue=q catch-up=grace outbox=o
swarm    faults=8..24 kinds=all,-tamper
`)
	require.NoError(t, err)
	seeds := uint64(20)
	if testing.Short() {
		seeds = 3
	}
	failed, falls, generations := map[error]int{}, 0, uint64(0)
	for seed := range seeds {
		drawn, err := s.Draw(seed)
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(seed, 4))
		for range 20 {
			crash, err := drawn.ParseFault(fmt.Sprintf("at %dms crash restart=journal after=1s", rng.IntN(40*60_000)))
			require.NoError(t, err)
			drawn.Faults = append(drawn.Faults, crash)
		}
		drawn.Store = func(now func() store.Instant, limits store.Limits) store.Store {
			k := &kept{
				t: t, rng: rng, disk: newDisk(seed), failed: failed,
				config: tickonce.Config{Clock: readings(now), Limits: tickonce.Limits{QueueLength: int(limits.QueueLength)}},
			}
			k.open()
			return k
		}
		drawn.Reopen = func(was store.Store) store.Store {
			k := *was.(*kept)
			k.fall()
			k.open()
			falls += k.falls
			generations = max(generations, k.engine.journal.generation)
			k.falls = 0
			return &k
		}
		r, err := sim.Run(drawn)
		require.NoError(t, err)
		require.Equal(t, sim.Pass, r.Verdict, "seed %d: %+v", seed, r.Failures)
	}
	require.Greater(t, generations, uint64(10))
	require.Greater(t, falls, int(seeds))
	for _, e := range []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS} {
		require.Greater(t, failed[e], int(seeds), "%v", e)
	}
	t.Log(failed, falls, generations)
}
