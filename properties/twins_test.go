package properties_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce/store"
)

// twins play one history, the one plainly and the other in the way that is
// drawn, and must fire the same. In each round the clock moves, schedules are
// edited, and the runners come to rest, however they get there.
func twins(t *testing.T, drawWay func(*rapid.T) way) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		other := drawWay(t)
		plain, twin := newPlayer(t, way{}), newPlayer(t, other)
		t.Repeat(map[string]func(*rapid.T){
			"round": func(t *rapid.T) {
				r := drawRound(t)
				plain.round(r)
				twin.round(r)
				require.Equal(t, plain.plainRows(), twin.plainRows())
				want, got := plain.plainSkips(), twin.plainSkips()
				if !other.Losses { // with which the event is lost as well
					require.Equal(t, want, got)
				}
			},
		})
		require.Equal(t, plain.plainFires(), twin.plainFires())
	})
}

func drawRound(t *rapid.T) round {
	var r round
	if choose(t, "the clock moves", true, true, false) {
		r.Move = draw(t, either(drawForward, drawForward, drawBack)).(move)
	}
	for range choose(t, "edits", 0, 1, 1, 2, 3) {
		r.Edits = append(r.Edits, draw(t, drawEdit))
	}
	return r
}

func TestT15SplitTicksFireTheSame(t *testing.T) {
	twins(t, func(t *rapid.T) way { return way{Batch: drawBatch(t)} })
}

func TestT3L2ThreeRunnersFireLikeOne(t *testing.T) {
	twins(t, func(*rapid.T) way { return way{Runners: 3} })
}

// A runner stands still between its read and its write, loses the lead to
// another, which fires, and then writes.
func TestT3L6APausedRunnerFiresNothingOfItsOwn(t *testing.T) {
	twins(t, func(*rapid.T) way { return way{Runners: 3, Pauses: true} })
}

func TestT3EditsBetweenReadAndWriteFireTheSame(t *testing.T) {
	twins(t, func(*rapid.T) way { return way{Late: true} })
}

// At each step of a tick the engine may be gone, and begin again from what is
// durable: what fires is what would have fired anyway.
func TestD4T3RestartAnywhereFiresTheSame(t *testing.T) {
	twins(t, func(t *rapid.T) way { return way{Restart: choose(t, "restart", cleanly, fromJournal, fromSnapshot)} })
}

func TestR1R5LostCallsFireTheSame(t *testing.T) {
	twins(t, func(*rapid.T) way { return way{Losses: true} })
}

// No instant is special: neither the epoch, before which instants are negative,
// nor the first one of year 1, which is the zero time.
func TestG6AShiftedEpochFiresTheSame(t *testing.T) {
	twins(t, func(t *rapid.T) way { return way{ShiftMS: drawShift(t)} })
}

func TestK5HostsWithWrongClocksFireTheSame(t *testing.T) {
	twins(t, func(t *rapid.T) way { return way{Skew: drawSkew(t)} })
}

func TestT3AllOfItTogetherFiresTheSame(t *testing.T) {
	twins(t, func(t *rapid.T) way {
		w := way{
			Batch: drawBatch(t), Runners: choose(t, "runners", 1, 3), Store: choose(t, "store", memory, naive),
			ShiftMS: drawShift(t), Skew: drawSkew(t),
			Losses: rapid.Bool().Draw(t, "losses"), Late: rapid.Bool().Draw(t, "late edits"), Pauses: rapid.Bool().Draw(t, "pauses"),
		}
		if w.Restart = choose(t, "restart", "", cleanly, fromJournal, fromSnapshot); w.Store == naive && w.Restart != "" {
			w.Restart = cleanly // the only way it has
		}
		return w
	})
}

func drawBatch(t *rapid.T) int { return choose(t, "batch", 1, 2, 65) }

func drawSkew(t *rapid.T) span {
	return span(choose(t, "skew", 0, time.Millisecond, -time.Second, 10*time.Hour, -400*day))
}

func drawShift(t *rapid.T) int64 {
	const most = 1 << 52
	return rapid.OneOf(
		rapid.SampledFrom([]int64{-most, -start.UnixMilli(), -start.UnixMilli() - 1, -start.UnixMilli() - 1000, time.Time{}.UnixMilli() - start.UnixMilli(), most}),
		rapid.Int64Range(-most, most),
	).Draw(t, "shift, ms")
}

// Near the last instant a twin of an earlier history fires the same as long as
// the next boundary is an instant. From then on the schedule is held, where its
// twin goes on (Q3), and a new one is refused (G6).
func TestG6Q3AtTheEndOfTimeATwinIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := choose(t, "left", moves...) + time.Duration(rapid.Int64Range(0, 120_000).Draw(t, "and ms"))*time.Millisecond
		end := start.Add(left)
		plain := newPlayer(t, way{})
		twin := newPlayer(t, way{ShiftMS: int64(store.MaxInstant) - end.UnixMilli()})
		type past struct {
			row   store.Schedule
			fires []store.Job
		}
		last := map[string]past{} // what both had of a schedule when they were the same
		judge := func() {
			fires, twins := bySchedule(plain.plainFires()), bySchedule(twin.plainFires())
			rows := map[string]store.Schedule{}
			for _, row := range twin.plainRows() {
				rows[row.Name] = row
			}
			for _, row := range plain.plainRows() {
				if int64(row.Cursor) <= end.UnixMilli() {
					require.Equal(t, row, rows[row.Name])
					require.Equal(t, fires[row.Name], twins[row.Name])
					last[row.Name] = past{row, fires[row.Name]}
					continue
				}
				was, registered := last[row.Name]
				has, found := rows[row.Name]
				require.Equal(t, registered, found, row.Name)
				require.Equal(t, was.fires, twins[row.Name], row.Name)
				require.Equal(t, was.row.Cursor, has.Cursor, row.Name)
				if found && twin.clock.read() < store.MaxInstant { // when no lease lasts
					require.NotNil(t, has.Hold, row.Name)
					require.Equal(t, "the next boundary is past the last instant", has.Hold.Reason)
				}
			}
		}
		for _, name := range scheduleNames {
			o := schedule{Name: name, Every: choose(t, "every", intervals...), Queue: "q", CatchUp: choose(t, "catch-up", "all", "latest")}
			o.play(plain.world)
			o.play(twin.world)
		}
		judge()
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			r := round{Move: draw(t, drawForward).(move)}
			plain.round(r)
			twin.round(r)
			judge()
		}
	})
}

// At the first instants, where no clock reads less and no anchor before them can
// be named, a twin fires the same.
func TestG6AtTheBeginningOfTimeATwinFiresTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := int64(store.MinInstant) + choose[int64](t, "after the first instant, ms", 0, 1, 1000)
		plain, twin := newPlayer(t, way{}), newPlayer(t, way{ShiftMS: first - start.UnixMilli()})
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			r := round{Move: draw(t, drawForward).(move)}
			for range choose(t, "edits", 1, 2, 3) {
				edit := draw(t, drawEdit)
				if s, ok := edit.(schedule); ok {
					s.Anchor = 0
					edit = s
				}
				r.Edits = append(r.Edits, edit)
			}
			plain.round(r)
			twin.round(r)
			require.Equal(t, plain.plainRows(), twin.plainRows())
		}
		require.Equal(t, plain.plainFires(), twin.plainFires())
	})
}

func bySchedule(jobs []store.Job) map[string][]store.Job {
	by := map[string][]store.Job{}
	for _, j := range jobs {
		by[j.Schedule] = append(by[j.Schedule], j)
	}
	return by
}
