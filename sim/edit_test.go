package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEditsAndTampering has an hour of a schedule "a" that fires every minute,
// and of "b", which nobody touches, and says what an edit or a spoilt row makes
// of them. Both are registered at 0 m, so their boundaries are the whole minutes
// from 1 m to 60 m.
func TestEditsAndTampering(t *testing.T) {
	for _, c := range []struct {
		name, text                string
		fired, paused, held, left int64
		again                     int64
		mark                      string
		effect                    int64 // of the first fault
	}{
		{
			name:  "S7 a pause ends in one recorded skip, of 11 m to 20 m",
			text:  "at 10m30s edit pause schedule=a\nat 20m30s edit resume schedule=a",
			fired: 50, paused: 10, effect: 1, mark: "skipped",
		},
		{
			name:  "S7 a boundary at the resume is skipped, too",
			text:  "at 10m30s edit pause schedule=a\nat 20m edit resume schedule=a",
			fired: 50, paused: 10, effect: 1,
		},
		{
			name:  "S7 a pause that was nothing skips nothing",
			text:  "at 10m30s edit pause schedule=a\nat 10m31s edit resume schedule=a",
			fired: 60, effect: 1,
		},
		{
			name:  "T3 a pause between read and write keeps 10 m from firing",
			text:  "at 9m30s edit pause schedule=a point=between-read-and-write\nat 20m30s edit resume schedule=a",
			fired: 49, paused: 11, effect: 1, mark: "stale-move",
		},
		{
			name:  "S6 removed and added again it begins anew, from 21 m 15 s to 59 m 15 s",
			text:  "at 10m30s edit remove schedule=a\nat 20m15s edit add schedule=a",
			fired: 10 + 39, effect: 1,
		},
		{
			name:  "T3 S6 removed between read and write, 10 m never fires",
			text:  "at 9m30s edit remove schedule=a point=between-read-and-write\nat 20m15s edit add schedule=a",
			fired: 9 + 39, effect: 1, mark: "stale-move",
		},
		{
			name:  "S6 what is removed stays away",
			text:  "at 10m30s edit remove schedule=a\nat 20m edit pause schedule=a\nat 30m edit resume schedule=a",
			fired: 10, effect: 1,
		},
		{
			name:  "C25 added again while it is there, nothing changes",
			text:  "at 10m edit add schedule=a\nat 10m30s edit add schedule=a",
			fired: 60, effect: 1,
		},
		{
			name:  "S5 another interval begins a grid of its own, from 12 m 30 s to 58 m 30 s",
			text:  "at 10m30s edit change schedule=a every=2m",
			fired: 10 + 24, effect: 1,
		},
		{
			name:  "T3 S5 and so it does between read and write, from 12 m to 60 m",
			text:  "at 9m30s edit change schedule=a every=2m point=between-read-and-write",
			fired: 9 + 25, effect: 1, mark: "stale-move",
		},
		{
			name:  "S5 the same interval keeps grid and cursor, whatever else is changed",
			text:  "at 10m30s edit change schedule=a queue=other catch-up=latest",
			fired: 60, effect: 1,
		},
		{
			name:  "T3 and between read and write, too",
			text:  "at 9m30s edit change schedule=a queue=other catch-up=latest point=between-read-and-write",
			fired: 60, effect: 1, mark: "stale-move",
		},
		{
			name:  "S1 a start registers the schedule as the file has it, from 22 m 45 s to 59 m 45 s",
			text:  "at 10m30s edit change schedule=a every=2m\nat 20m45s down for=1m",
			fired: 10 + 5 + 38, effect: 1,
		},
		{
			name:  "S5 a start does not resume what was paused",
			text:  "at 10m30s edit pause schedule=a\nat 20m30s down for=1m",
			fired: 10, left: 50, effect: 1,
		},
		{
			name:  "D4 an edit after the snapshot is forgotten, and 15 m to 20 m fire again",
			text:  "at 20m30s edit remove schedule=a\nat 25m30s crash restart=snapshot after=30s",
			fired: 20 + 46, again: 6, effect: 1, mark: "restore-lost-tail",
		},
		{
			name:  "R1 an edit whose calls fail is made again after 5 s",
			text:  "at 20m30s edit pause schedule=a\nduring 20m29s..20m44s store error-burst applied=no",
			fired: 20, left: 40, effect: 1,
		},
		{
			name:  "R1 and one that was made, for all that",
			text:  "at 20m30s edit remove schedule=a\nduring 20m29s..20m31s store error-burst applied=yes",
			fired: 20, effect: 1,
		},
		{
			name:  "S7 one edit waits for the other, so that the resume comes last",
			text:  "at 20m30s edit pause schedule=a\nat 20m33s edit resume schedule=a\nduring 20m29s..20m31s store error-burst applied=no",
			fired: 60, effect: 1,
		},
		{
			name:  "Q1 Q3 Q5 a bad spec is held from 11 m to 15 m, and caught up at 16 m",
			text:  "during 10m30s..15m30s tamper schedule=a row=bad-spec",
			fired: 60, held: 5, effect: 1, mark: "row-healed",
		},
		{
			name:  "Q1 a spec that was cut is a bad one",
			text:  "during 10m30s..15m30s tamper schedule=a row=cut-spec",
			fired: 60, held: 5, effect: 1, mark: "row-healed",
		},
		{
			name:  "Q6 a queue of the engine's own is held",
			text:  "during 10m30s..15m30s tamper schedule=a row=reserved-queue",
			fired: 60, held: 5, effect: 1, mark: "row-healed",
		},
		{
			name:  "Q6 a policy that allows no fire is held",
			text:  "during 10m30s..15m30s tamper schedule=a row=no-catch-up",
			fired: 60, held: 5, effect: 1, mark: "row-healed",
		},
		{
			name:  "Q6 G6 a cursor at the end of time is held",
			text:  "during 10m30s..15m30s tamper schedule=a row=cursor-at-end",
			fired: 60, held: 5, effect: 1, mark: "row-healed",
		},
		{
			name:  "Q5 a cursor off the grid stands for the boundary after it",
			text:  "at 10m30s tamper schedule=a row=cursor-off-grid",
			fired: 60, effect: 1,
		},
		{
			name:  "T8 a cursor far ahead is left there, and what was missed is caught up once it is mended",
			text:  "during 10m30s..15m30s tamper schedule=a row=cursor-ahead",
			fired: 60, effect: 1,
		},
		{
			name:  "Q5 with another interval it goes on at the first boundary of that grid, 14 m, to 56 m",
			text:  "at 10m30s tamper schedule=a every=7m",
			fired: 10 + 7, effect: 1,
		},
		{
			name:  "T3 a row spoilt between read and write is held from 10 m to 14 m",
			text:  "at 9m30s tamper schedule=a row=bad-spec for=5m point=between-read-and-write",
			fired: 60, held: 5, effect: 1, mark: "stale-move",
		},
		{
			name:  "Q5 a row that nobody mends is left",
			text:  "at 10m30s tamper schedule=a row=bad-spec",
			fired: 10, held: 50, left: 50, effect: 1,
		},
		{
			name:  "Q5 D1 a start restores it, held, and heals it at 13 m",
			text:  "at 10m30s tamper schedule=a row=no-catch-up\nat 12m30s crash restart=journal after=30s",
			fired: 60, held: 2, effect: 1, mark: "row-healed",
		},
		{
			name:  "a row that is spoilt again by a restart is mended again",
			text:  "during 14m30s..16m30s tamper schedule=a row=bad-spec\nat 20m30s crash restart=snapshot after=30s",
			fired: 60 + 6, again: 6, held: 2, effect: 1, mark: "row-healed",
		},
		{
			name:  "there is nothing to spoil of what was removed",
			text:  "at 10m20s tamper schedule=a row=bad-spec\nat 10m10s edit remove schedule=a",
			fired: 10,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parsed(t, `simulate v1
engine standby=yes snapshot-every=15m
run 1h
schedule a every=1m queue=q
schedule b every=1m queue=q
`+c.text+"\n")
			r, err := Run(*s)
			require.NoError(t, err)
			require.Equal(t, Pass, r.Verdict, r.Failures)
			a, b := r.Schedules[0], r.Schedules[1]
			require.Equal(t, []int64{c.fired, c.paused, c.held, c.left, c.again},
				[]int64{a.Fired, a.SkipReasons["pause"], a.Quarantined, a.Left, a.FiredAgain}, "%+v", a)
			require.Equal(t, c.paused, a.Skipped)
			require.Equal(t, int64(60), b.Fired-b.FiredAgain)
			require.Equal(t, c.effect, r.Faults[0].Effect)
			if c.mark != "" {
				m, ok := markOf(c.mark)
				require.True(t, ok)
				require.True(t, r.Coverage.reached(m), c.mark)
			}
		})
	}
}

// TestQ3AFullQueueHoldsItsSchedules: five jobs fit, and nobody takes one.
func TestQ3AFullQueueHoldsItsSchedules(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
engine queue-limit=5
run 1h
queue full workers=0
schedule a every=1m queue=full
schedule b every=1m queue=other
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, r.Failures)
	a, b := r.Schedules[0], r.Schedules[1]
	require.Equal(t, []int64{5, 0, 55, 55}, []int64{a.Fired, a.Skipped, a.Quarantined, a.Left}, "from 6 m to 60 m")
	require.Equal(t, []int64{60, 0, 0, 0}, []int64{b.Fired, b.Skipped, b.Quarantined, b.Left})
	require.True(t, r.Coverage.reached(queueFull))
}

// TestS4AChangeOfTheQueueHoldsForFutureFires: ten jobs were in the old one.
func TestS4AChangeOfTheQueueHoldsForFutureFires(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
run 1h
schedule a every=1m queue=q
at 10m30s edit change schedule=a queue=other
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, r.Failures)
	require.Equal(t, []int64{50, 10}, []int64{r.Queues[0].Done, r.Queues[1].Done})
}

// TestT11APausedScheduleIsRepairedToo: paused by a clock that is 8 h ahead, and
// resumed when it is right again, it is not silent for those 8 h. Skipped by the
// pause are 31 m to 40 m; 41 m to 120 m fire.
func TestT11APausedScheduleIsRepairedToo(t *testing.T) {
	r, err := Run(*parsed(t, `simulate v1
engine clock-repair=rearm
run 2h
schedule a every=1m queue=q
at 10m30s clock-jump by=+8h for=20m
at 19m30s edit pause schedule=a
at 40m edit resume schedule=a
`))
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, r.Failures)
	a := r.Schedules[0]
	require.Equal(t, []int64{10 + 64 + 9 + 80, 416, 10}, []int64{a.Fired, a.SkipReasons["cap"], a.SkipReasons["pause"]})
}
