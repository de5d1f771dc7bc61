package htmlreport

import (
	"cmp"
	"slices"
	"time"
)

// mostRows is how many rows the page has before some are merged.
const mostRows = 20_000

// merge merges rows of the schedules until there are no more than most: first
// attempts of a minute, then fires of ten minutes, of an hour, of a day. The first and
// the worst fire of each kind and schedule stay as they are. It answers what it
// did, nil for nothing.
func merge(schedules []schedule, most int) *merged {
	rows := func() (n int) {
		for i := range schedules {
			n += len(schedules[i].Fires) + len(schedules[i].Tries) + len(schedules[i].Holds)
		}
		return n
	}
	of := rows()
	if of <= most {
		return nil
	}
	for i := range schedules {
		schedules[i].Tries = mergeTries(schedules[i].Tries, time.Minute)
	}
	for _, d := range []time.Duration{10 * time.Minute, time.Hour, 24 * time.Hour} {
		for i := 0; i < len(schedules) && rows() > most; i++ {
			schedules[i].Fires = mergeFires(schedules[i].Fires, d)
		}
	}
	return &merged{Rows: rows(), Of: of}
}

func mergeTries(tries []attempt, within time.Duration) []attempt {
	var list []attempt
	last := map[string]int{} // of each kind, the place in the list
	for _, a := range tries {
		if i, ok := last[a.kind]; ok && a.at/within.Milliseconds() == list[i].at/within.Milliseconds() {
			list[i].count += a.count
			list[i].why = ""
			continue
		}
		last[a.kind] = len(list)
		list = append(list, a)
	}
	return notNil(list)
}

func mergeFires(fires []fire, within time.Duration) []fire {
	keep := map[int]bool{}
	worst := map[string]int{}
	for i, f := range fires {
		if w, ok := worst[f.kind]; !ok {
			worst[f.kind], keep[i] = i, true
		} else if distance(f) > distance(fires[w]) {
			worst[f.kind] = i
		}
	}
	for _, i := range worst {
		keep[i] = true
	}
	var list []fire
	last := map[string]int{}
	for i, f := range fires {
		at, ok := last[f.kind]
		if keep[i] || !ok || f.at/within.Milliseconds() != list[at].at/within.Milliseconds() {
			if !keep[i] {
				last[f.kind] = len(list)
			}
			list = append(list, f)
			continue
		}
		m := &list[at]
		if !m.spread {
			m.spread, m.since = true, m.at
		}
		end := max(m.last(), f.last())
		m.first, m.at, m.count = min(m.first, f.first), f.at, m.count+f.count
		m.step = (end - m.first) / max(m.count-1, 1)
	}
	slices.SortStableFunc(list, func(a, b fire) int { return cmp.Compare(a.at, b.at) })
	return notNil(list)
}

func (f fire) last() int64 { return f.first + f.step*(f.count-1) }

// wait is how long the first boundary waited; less than 0, if it fired early.
func (f fire) wait() int64 {
	if f.spread {
		return f.since - f.first
	}
	return f.at - f.first
}

func distance(f fire) int64 { return max(f.wait(), f.last()-f.at) }
