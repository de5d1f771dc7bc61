package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickonce/tickonce"
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
	i, fires := 0, int32(0)
	for told := range report.Passed() {
		if i == len(t.tick) {
			t.w.fail(trueReport, told.Schedule, "it was reported as moved, and was not")
			return
		}
		p := &t.tick[i]
		i++
		fires += p.fires
		skips := p.skips()
		if told.Schedule != p.schedule.row.Name || told.Fired != int(p.fires) || (told.Hold != nil) != p.held ||
			told.Next.UnixMilli() != int64(p.cursor) ||
			!slices.Equal(told.Skips, skips) {
			var f mismatches
			f.note("schedule", shown(told.Schedule), shown(p.schedule.row.Name))
			f.note("fires", told.Fired, int(p.fires))
			f.note("held", told.Hold != nil, p.held)
			f.note("next boundary", text(store.Instant(told.Next.UnixMilli())), text(p.cursor))
			f.note("skipped", skipsText(told.Skips), skipsText(skips))
			t.w.fail(trueReport, p.schedule.row.Name, "of a tick was reported: "+f.String())
		}
	}
	for fire := range report.Fires() {
		fires--
		if j := t.jobs[fire.Job]; j == nil || !j.wasFired(fire.Schedule, fire.Queue, fire.Boundary) {
			t.w.fail(trueReport, fire.Schedule, "of a fire was reported: "+j.unlike(fire.Job, fire.Schedule, fire.Queue, fire.Boundary))
		}
	}
	if i != len(t.tick) || fires != 0 {
		differ := missed(int64(fires), "fire", "fires")
		t.w.fail(trueReport, "", fmt.Sprintf("%d schedules of %d that moved were reported, and %s", i, len(t.tick), pick(fires == 0, "their fires", differ)))
	}
}

// skips are those of the schedule as they have to be reported.
func (p *passed) skips() (list []tickonce.Skip) {
	for _, skip := range p.fates.skips {
		if skip.Count > 0 {
			list = append(list, tickonce.Skip{Reason: skip.Reason.String(), First: timeOf(skip.First), Last: timeOf(skip.Last), Count: skip.Count})
		}
	}
	return list
}

func skipsText(skips []tickonce.Skip) string {
	var list []string
	for _, s := range skips {
		list = append(list, fmt.Sprintf("%d by %s, %s to %s", s.Count, s.Reason, s.First.Format(time.RFC3339Nano), s.Last.Format(time.RFC3339Nano)))
	}
	return "(" + strings.Join(list, "; ") + ")"
}

// missed says how many there are too few or, below 0, too many.
func missed(n int64, one, many string) string {
	if n < 0 {
		return counted(-n, one, many) + " too many"
	}
	return counted(n, one, many) + " too few"
}

// wasFired reports whether the job is of that schedule, queue and boundary.
func (j *trueJob) wasFired(schedule, queue string, boundary time.Time) bool {
	return j.schedule.scenario.Name == schedule && j.queue.row.Name == queue && timeOf(j.boundary) == boundary
}

// unlike says in which of them the job is not as it was told to be; a nil job is
// one that there is not.
func (j *trueJob) unlike(id store.JobID, schedule, queue string, boundary time.Time) string {
	if j == nil {
		return fmt.Sprintf("job %d, which there is not", id)
	}
	var f mismatches
	f.note("schedule", shown(schedule), shown(j.schedule.scenario.Name))
	f.note("queue", shown(queue), shown(j.queue.row.Name))
	f.note("boundary", text(store.Instant(boundary.UnixMilli())), text(j.boundary))
	return fmt.Sprintf("job %d of %s", id, f)
}
