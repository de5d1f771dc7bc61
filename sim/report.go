package sim

import (
	"fmt"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// passed is what a tick made of one schedule, as the truth has it.
type passed struct {
	schedule *trueSchedule
	fates    fates
	fires    int32
	cursor   store.Instant
	held     bool
}

// checkReport compares what a runner reports of its tick with the truth (T12):
// each schedule that moved, with its fires and with its skips for each reason,
// and the job of each fire.
func (t *truth) checkReport(report *tickonce.Report) {
	t.w.checked[aReport]++
	broken := func(p *passed, told any) {
		t.w.fail(trueReport, p.schedule.row.Name, fmt.Sprintf("%+v was reported, it was %+v", told, p.fates))
	}
	i, fires := 0, int32(0)
	for told := range report.Passed() {
		if i == len(t.tick) {
			t.w.fail(trueReport, told.Schedule, "it was reported as moved, and was not")
			return
		}
		p := &t.tick[i]
		i++
		fires += p.fires
		var reported fates
		for _, skip := range told.Skips {
			span := skip.Last.UnixMilli() - skip.First.UnixMilli() // which a time.Duration may be too short for
			switch skip.Reason {
			case core.SkipPolicy.String():
				reported.policySkips += skip.Count
			case core.SkipCap.String():
				reported.capSkips += skip.Count
			}
			if skip.Count != span/p.schedule.interval+1 || skip.Last.UnixMilli() >= int64(p.cursor) {
				broken(p, skip)
			}
		}
		if told.Schedule != p.schedule.row.Name || told.Fired != int(p.fires) || (told.Hold != nil) != p.held ||
			told.Next.UnixMilli() != int64(p.cursor) ||
			reported.policySkips != p.fates.policySkips || reported.capSkips != p.fates.capSkips {
			broken(p, told)
		}
	}
	for fire := range report.Fires() {
		fires--
		j := t.jobs[fire.Job]
		if j == nil || j.schedule.scenario.Name != fire.Schedule || j.queue.row.Name != fire.Queue || timeOf(j.boundary) != fire.Boundary {
			t.w.fail(trueReport, fire.Schedule, fmt.Sprintf("%+v was reported, and is not so", fire))
		}
	}
	if i != len(t.tick) || fires != 0 {
		t.w.fail(trueReport, "", fmt.Sprintf("%d schedules of %d that moved were reported, and %d fires too few", i, len(t.tick), fires))
	}
}
