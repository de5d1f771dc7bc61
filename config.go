package tickonce

import (
	"errors"
	"strconv"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Config configures an engine. Its zero value works.
type Config struct {
	// Clock is the host's clock: it arms the timers of the loops and, in
	// memory, is the clock of the store, by which everything is judged.
	// Default: the system's.
	Clock Clock

	// Seed keys the jitter of retries. 0: drawn once from the platform's
	// randomness.
	Seed uint64

	// Owner begins the owner tokens of this engine's runners; it must differ
	// between engines that share a store, and between runs of a process on a
	// store that outlives it (L10). A name of 1 to 128 bytes. Default: 128
	// random bits.
	Owner string

	// StandBy makes a runner that does not lead, or cannot reach its store,
	// contend again every 5 s instead of ending (L3).
	StandBy bool

	// Batch is how many fires one tick plans at most, and how many schedules
	// it reads; a schedule is never split (T15). Default 1,000; 1 to 100,000.
	Batch int

	// LeaseTTL is how long leadership lasts without a renewal; it is renewed
	// after a third of it, which wakes a host that is otherwise idle. Default
	// 60 s; 1 s to 1 h.
	LeaseTTL time.Duration

	// Poll is how often a leading runner looks for schedules, and a worker
	// with nothing to do for jobs unless [WorkerConfig.Poll] says otherwise,
	// that others wrote to a shared store (L7).
	// Default 1 s; at least 10 ms. Negative: never, for a store that only this
	// engine writes.
	Poll time.Duration

	// ClockRepair says what becomes of a schedule whose cursor was set by a
	// clock that was ahead (T11). A runner looks for such ones at its start,
	// when it leads again after others, and when it sees the clock go back: not
	// for what others write afterwards, under a clock that it never sees so.
	// Default: [RepairHold].
	ClockRepair ClockRepair

	// OnTime is the window of [CatchUpNone]: how late a boundary may be met
	// and still fire. Default 10 s; a host whose timers are throttled sets
	// 2 min. At most 24 h.
	OnTime time.Duration

	// Details is how many of [Engine.Details] are kept in memory. Default
	// 1,024; 1 to 100,000.
	Details int

	// Limits bound what is stored.
	Limits Limits

	// Zones finds the zones of active hours by name (X10). It is asked once for
	// each, on any goroutine, and must answer the same on all engines of a
	// store; "" and "UTC" it is not asked for. Default: [time.LoadLocation],
	// which reads the host's data. Where there are none, as under WebAssembly,
	// a program imports time/tzdata, which is 450 kB, or gives
	// [time.LoadLocationFromTZData] the few zones it needs.
	Zones func(name string) (*time.Location, error)

	// Observer is told what happened: after the write, outside any lock, on
	// the goroutine of the caller and in order for each of them, so it must be
	// safe for concurrent use where the engine is used so. It may call the
	// engine. Its panic is contained. Package eventlog has one that writes to
	// log/slog.
	Observer func(Event)
}

// ClockRepair is a policy for cursors that a clock set which was ahead (T11).
type ClockRepair uint8

const (
	// RepairHold leaves the cursor: what was fired or skipped stays so.
	RepairHold ClockRepair = iota
	// RepairRearm begins a new incarnation on the same grid from now on, so
	// that an instant which the wrong clock already used can fire again.
	RepairRearm
)

var clockRepairs = [...]string{"hold", "rearm"}

func (r ClockRepair) String() string {
	if int(r) < len(clockRepairs) {
		return clockRepairs[r]
	}
	return "unknown"
}

// Limits bound what is stored. A zero field is its default.
type Limits struct {
	Payload     int // bytes of one payload; default 1 MiB, at most 1 GiB
	QueueLength int // jobs that one queue keeps, dead ones included; default 1,000,000
	Schedules   int // default 1,048,576
	LastError   int // bytes of an error's text; default 1 KiB, at most 64 KiB

	// Of the history: runs, and ranges of skipped boundaries, that are kept of
	// one schedule, and of all, of each of the two; a run counts one more there
	// for each 256 bytes of its error. Defaults 64, 64 and 1,000,000.
	Runs, Skips int
	History     int
}

// Store returns the limits that a store enforces.
func (l Limits) Store() store.Limits {
	return store.Limits{
		QueueLength: int64(l.QueueLength), Schedules: int64(l.Schedules),
		Runs: int64(l.Runs), Skips: int64(l.Skips), History: int64(l.History),
	}.WithDefaults()
}

// The runner's times.
const (
	sliceTime       = time.Second     // the loop's longest sleep
	standByTime     = 5 * time.Second // between two attempts of a stand-by runner (L3)
	firstRetryTime  = 100 * time.Millisecond
	retries         = 3
	defaultLeaseTTL = 60 * time.Second
)

// WithDefaults returns c with every default filled in, or all its faults,
// joined. [New] calls it.
func (c Config) WithDefaults() (Config, error) {
	var f faults
	f.within("Batch", &c.Batch, 1000, 1, 100_000)
	f.within("Details", &c.Details, 1024, 1, 100_000)
	f.within("Limits.Payload", &c.Limits.Payload, 1<<20, 1, store.BatchPayload)
	f.within("Limits.QueueLength", &c.Limits.QueueLength, store.DefaultQueueLength, 1, 1<<31-1)
	f.within("Limits.Schedules", &c.Limits.Schedules, store.DefaultSchedules, 1, 1<<31-1)
	f.within("Limits.LastError", &c.Limits.LastError, 1<<10, 1, 1<<16)
	f.within("Limits.Runs", &c.Limits.Runs, store.DefaultRuns, 1, 1<<31-1)
	f.within("Limits.Skips", &c.Limits.Skips, store.DefaultSkips, 1, 1<<31-1)
	f.within("Limits.History", &c.Limits.History, store.DefaultHistory, 1, 1<<31-1)
	f.between("LeaseTTL", &c.LeaseTTL, defaultLeaseTTL, time.Second, time.Hour)
	f.between("OnTime", &c.OnTime, 10*time.Second, time.Millisecond, 24*time.Hour)
	f.poll(&c.Poll, time.Second)
	if c.ClockRepair > RepairRearm {
		f.add("ClockRepair", "is "+strconv.Itoa(int(c.ClockRepair))+", want RepairHold or RepairRearm")
	}
	if c.Owner != "" {
		if err := core.CheckName("owner", c.Owner); err != nil {
			f.add("Owner", "is refused: "+err.Error())
		}
	}
	if len(f) > 0 {
		return Config{}, errors.Join(f...)
	}
	if c.Clock == nil {
		c.Clock = systemClock{}
	}
	if c.Seed == 0 {
		c.Seed = drawSeed()
	}
	if c.Owner == "" {
		c.Owner = drawOwner()
	}
	return c, nil
}

// faults are the options that a configuration is refused for.
type faults []error

func (f *faults) add(option, problem string) {
	*f = append(*f, &OptionError{Option: option, Problem: problem})
}

// within fills in the default of a number, or adds a fault.
func (f *faults) within(option string, value *int, byDefault, least, most int) {
	if *value == 0 {
		*value = byDefault
	}
	if *value < least || *value > most {
		f.add(option, "is "+strconv.Itoa(*value)+", want "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
	}
}

// between fills in the default of a duration, or adds a fault.
func (f *faults) between(option string, value *time.Duration, byDefault, least, most time.Duration) {
	if *value == 0 {
		*value = byDefault
	}
	if *value < least || *value > most || *value%time.Millisecond != 0 {
		f.add(option, "is "+value.String()+", want whole milliseconds from "+least.String()+" to "+most.String())
	}
}

// poll is between for a time that a negative one turns off.
func (f *faults) poll(value *time.Duration, byDefault time.Duration) {
	if *value == 0 {
		*value = byDefault
	}
	if *value >= 0 {
		f.between("Poll", value, byDefault, 10*time.Millisecond, 24*time.Hour)
	}
}
