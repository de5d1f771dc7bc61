package fileengine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

// clock stands where a test sets it.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time                     { return c.now }
func (*clock) After(time.Duration) <-chan time.Time { return nil }

// script is a sequence of calls, each with one write, and the states that it
// leads to when nothing fails.
type script struct {
	clock  clock
	states []string
}

func newScript(t testing.TB, calls int) *script {
	s := new(script)
	eng, _, err := memengine.Open(s.config(), memengine.Durable{Journal: new(memengine.MemJournal)})
	require.NoError(t, err)
	s.states = []string{stateOf(t, eng)}
	for i := range calls {
		require.NoError(t, s.call(eng, i))
		s.states = append(s.states, stateOf(t, eng))
	}
	return s
}

func (s *script) config() tickonce.Config {
	return tickonce.Config{Clock: &s.clock, Seed: 1, Owner: "owner"}
}

func stateOf(t testing.TB, eng *memengine.Engine) string {
	b, err := eng.Snapshot()
	require.NoError(t, err)
	return string(b)
}

// call makes the call i, which changes nothing if it fails.
func (s *script) call(eng *memengine.Engine, i int) (err error) {
	s.clock.now = time.UnixMilli(int64(i) * 1000)
	ctx := context.Background()
	switch i % 5 {
	case 0, 1:
		payload := slices.Repeat([]byte{byte(i)}, i*7%90)
		_, err = eng.Enqueue(ctx, "q", payload, tickonce.EnqueueOptions{})
	case 2:
		_, err = eng.Claim(ctx, "q", "w")
	case 3:
		name := fmt.Sprint("s", i%3)
		_, err = eng.Schedule(ctx, name, fmt.Sprintf("@every %ds", i+1), "q", nil, tickonce.ScheduleOptions{})
	case 4:
		_, err = eng.Lock(ctx, fmt.Sprint("l", i), "w", time.Hour)
	}
	return err
}

// at answers how many calls led to the state.
func (s *script) at(t testing.TB, eng *memengine.Engine) int {
	i := slices.Index(s.states, stateOf(t, eng))
	require.GreaterOrEqual(t, i, 0, "the state is none that the calls led to")
	return i
}

// life is the engine on a simulated disk, from its opening on.
type life struct {
	*Engine
	t      testing.TB
	script *script
	disk   *disk
	rng    *rand.Rand
	rotate bool // one is to begin
	calls  int  // that were answered with success
	sure   int  // of these, how many cannot be lost
	errors []error
}

// open opens the engine, which has to be at least where the life before says.
// It answers false if the disk failed.
func (l *life) open(o Options) bool {
	before := l.disk.calls
	e, _, err := open(simulated{l.disk}, l.script.config(), o)
	var damaged *DamageError
	require.False(l.t, errors.As(err, &damaged), "%v", err)
	if l.Engine = e; err != nil {
		require.Greater(l.t, l.disk.calls, before)
		require.NotNil(l.t, l.disk.fails, "%v", err)
		return false
	}
	e.journal.rotate = func() { l.rotate = true }
	e.journal.after = func(time.Duration) {}
	at := l.script.at(l.t, e.Engine)
	require.GreaterOrEqual(l.t, at, l.sure)
	require.LessOrEqual(l.t, at, l.calls+1) // the last call may have happened
	l.calls = at
	l.settle()
	return true
}

// settle notes what cannot be lost any more.
func (l *life) settle() {
	if j := l.journal; j.distrusted == nil && j.synced == j.end {
		l.sure = l.calls
	}
}

// live makes the calls that are left, and what goes on in the background, until
// the machine falls or one has failed too often.
func (l *life) live() {
	failures := 0
	for l.calls < len(l.script.states)-1 && !l.disk.fell && failures < 20 {
		before := stateOf(l.t, l.Engine.Engine)
		if err := l.script.call(l.Engine.Engine, l.calls); err == nil {
			l.calls++
			failures = 0
		} else {
			require.Equal(l.t, before, stateOf(l.t, l.Engine.Engine), "a call that fails changes nothing (D2)")
			l.errors = append(l.errors, err)
			failures++
		}
		if l.journal.syncEvery == 0 && failures == 0 {
			l.sure = l.calls // not by its word: by its promise
		}
		if l.journal.timed && l.rng.IntN(4) == 0 {
			_ = l.journal.syncNow()
		}
		if l.rotate {
			l.rotate = false
			if err := l.Rotate(); err != nil {
				l.errors = append(l.errors, err)
			}
		}
		l.settle()
	}
}

// policies are those of Options.SyncEvery, with so small logs that they rotate
// all the time.
var policies = map[string]Options{
	"each write": {RotateAt: 300},
	"later":      {SyncEvery: time.Second, RotateAt: 300},
	"never":      {SyncEvery: -1, RotateAt: 300},
}

// The machine falls, or the process is killed, at every call of the disk in
// turn. What the next process finds is what some of the calls led to, and holds
// all those that had to last.
func TestD3D4WhateverCallTheMachineFallsAtTheStateIsWhole(t *testing.T) {
	script, seeds := newScript(t, 40), uint64(6)
	if testing.Short() {
		script, seeds = newScript(t, 16), 3
	}
	for name, options := range policies {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds {
				for fallAt := 1; ; fallAt++ {
					l := &life{t: t, script: script, disk: newDisk(seed), rng: rand.New(rand.NewPCG(seed, 2))}
					l.disk.fails = func(call int) error {
						if call == fallAt {
							return errFall
						}
						return nil
					}
					if l.open(options) {
						l.live()
					}
					if !l.disk.fell {
						break
					}
					if seed == 0 {
						l.sure = l.calls // a killed process loses nothing
						l.disk = l.disk.kill()
					} else {
						l.disk = l.disk.fall()
					}
					require.True(t, l.open(options))
					l.live()
					require.Equal(t, len(script.states)-1, l.calls)
					require.NoError(t, l.Close())
				}
			}
		})
	}
}

// Each call of the disk fails in turn, in each way. The engine goes on once the
// disk does, and its directory holds the state.
func TestD2D3WhateverCallFailsTheEngineGoesOn(t *testing.T) {
	script := newScript(t, 40)
	if testing.Short() {
		script = newScript(t, 16)
	}
	for name, options := range policies {
		t.Run(name, func(t *testing.T) {
			for _, failure := range []error{syscall.ENOSPC, syscall.EIO} {
				for failAt := 1; ; failAt++ {
					l := &life{t: t, script: script, disk: newDisk(uint64(failAt)), rng: rand.New(rand.NewPCG(1, 2))}
					failed := false
					l.disk.fails = func(call int) error {
						if call == failAt {
							failed = true
							return failure
						}
						return nil
					}
					if !l.open(options) {
						require.True(t, failed)
						require.True(t, l.open(options))
					}
					l.live()
					if !failed {
						break
					}
					require.Equal(t, len(script.states)-1, l.calls, "fails at %d", failAt)
					_ = l.Close()
					if options.SyncEvery == 0 {
						l.disk = l.disk.fall()
					}
					require.True(t, l.open(options))
					require.Equal(t, len(script.states)-1, l.calls)
				}
			}
		})
	}
}

// Calls fail and machines fall at random, through many lives of one directory.
func TestD2D3D4ManyLivesOnABadDisk(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 40
	}
	script := newScript(t, 60)
	falls := 0
	for name, options := range policies {
		for seed := range seeds {
			rng := rand.New(rand.NewPCG(seed, 3))
			l := &life{t: t, script: script, disk: newDisk(seed), rng: rng}
			for l.calls < len(script.states)-1 {
				bad := 1 + rng.IntN(30)
				l.disk.fails = func(int) error {
					switch {
					case rng.IntN(60) == 0:
						return errFall
					case rng.IntN(bad) == 0 && rng.IntN(2) == 0:
						return [...]error{syscall.ENOSPC, syscall.EIO}[rng.IntN(2)]
					default:
						return nil
					}
				}
				if l.open(options) {
					l.live()
				}
				falls++
				if l.disk.fell && rng.IntN(3) == 0 {
					l.disk = l.disk.kill()
				} else {
					l.disk = l.disk.fall()
				}
			}
			require.True(t, l.open(options), "%s, seed %d", name, seed)
		}
	}
	require.Greater(t, falls, int(seeds))
}
