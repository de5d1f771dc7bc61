package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOutcome(t *testing.T) {
	r := Result{
		Verdict: Safety, Digest: 0xabc,
		Schedules: []ScheduleResult{
			{Name: "report", Boundaries: 5, Fired: 5},
			{
				Name: "a name", Boundaries: 9, Fired: 3, Skipped: 6,
				SkipReasons: map[string]int64{"policy": 2, "cap": 3, "pause": 1}, Quarantined: 4,
				FiredAgain: 2, FiredByRepair: 1, Forgotten: 7, Left: 8, MaxLate: 90 * time.Second,
			},
		},
		Queues: []QueueResult{{Name: "mail", Enqueued: 8, Done: 4, Dead: 1, Pending: 2, Claimed: 1, DeadReasons: map[string]int64{"expired": 1}}, {Name: "ops", DoneForgotten: 2, Lost: 3}},
		Faults: []FaultResult{
			{Effect: 2},
			{Effect: 1, Cost: Cost{Due: 15, OnTime: 1, Late: 2, Skipped: 3, Forgotten: 4, Left: 5, FiredAgain: 6}},
			{Effect: 1, Cost: Cost{FiredEarly: 1, MaxEarly: time.Hour, Silence: time.Minute, Silent: "a name"}},
		},
		Failures: []Failure{{Invariant: "1 fires once", Schedule: "report", Detail: "again"}},
		Unmet:    []string{"expected this"},
		Excused:  []Excuse{{"stuck", "stuck\nhere"}},
	}
	r.Coverage.sometimes(capHit, true)
	r.Coverage.sometimes(skipped, false)
	require.Equal(t, `verdict  safety
schedule report boundaries=5 fires=5 skipped=0 max-late=0s
schedule "a name" boundaries=9 fires=3 skipped=6 pause=1 policy=2 cap=3 quarantined=4 fired-again=2 fired-by-repair=1 forgotten=7 left=8 max-late=1m30s
queue    mail enqueued=8 done=4 dead=1 pending=2 claimed=1 cancelled=0 expired=1
queue    ops enqueued=0 done=0 dead=0 pending=0 claimed=0 cancelled=0 done-forgotten=2 lost=3
fault    1 effect=2
fault    2 effect=1 due=15 on-time=1 late=2 skipped=3 forgotten=4 left=5 fired-again=6
fault    3 effect=1 fired-early=1 max-early=1h silence=1m silent="a name"
failure  "1 fires once" report again
note     "expected this"
note     "stuck\nhere"
mark     cap-hit=1
digest   0000000000000abc
`, r.Outcome())
}
