package sim

import (
	"cmp"
	"slices"
	"time"
)

// simplerThan reports whether a is the simpler duration: its text is shorter, or
// as long and a is.
func simplerThan(a, b time.Duration) bool {
	return cmp.Or(cmp.Compare(len(formatDuration(a)), len(formatDuration(b))), cmp.Compare(a, b)) < 0
}

// simplerDurations lists durations that are simpler than d, the shortest first:
// some round ones that are shorter, and d rounded.
func simplerDurations(d time.Duration) []time.Duration {
	const day = 24 * time.Hour
	list := rounded(d)
	for _, round := range []time.Duration{
		time.Second, 10 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 7 * day,
	} {
		if round < d && simplerThan(round, d) {
			list = append(list, round)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// rounded lists the simpler durations that are d rounded to a unit, down and up;
// not up to a unit of which d is not even half.
func rounded(d time.Duration) (list []time.Duration) {
	for _, u := range durationUnits {
		down := d.Truncate(u.unit)
		if down > 0 && simplerThan(down, d) {
			list = append(list, down)
		}
		if up := down + u.unit; up <= longest && d >= u.unit/2 && simplerThan(up, d) {
			list = append(list, up)
		}
	}
	return list
}

// set lists a value's zero, which leaves it out, and others behind it.
func set[T any](v *T, others ...T) []func() {
	var zero T
	list := []func(){func() { *v = zero }}
	for _, other := range others {
		list = append(list, func() { *v = other })
	}
	return list
}

func (v durationValue) simpler() []func() { return set(v.d, simplerDurations(*v.d)...) }

func (v offsetValue) simpler() []func() {
	sign := time.Duration(1)
	if *v.d < 0 {
		sign = -1
	}
	list := simplerDurations(sign * *v.d)
	for i := range list {
		list[i] *= sign
	}
	return set(v.d, list...)
}

func (v driftValue) simpler() []func() { return set(v.ppm) }

func (v instantValue) simpler() []func() { return set(v.t) }

func (v numberValue[T]) simpler() []func() {
	var list []T
	for _, n := range []T{1, 2, 3, *v.n / 2} {
		if n < *v.n && n > 0 {
			list = append(list, n)
		}
	}
	return set(v.n, list...)
}

func (c wordValue[T]) simpler() []func() { return set(c.v) }

func (v yesValue) simpler() []func() { return set(v.b) }

func (v chanceValue) simpler() []func() { return set(v.p) }

// Of a span one length is simpler, then shorter ones.
func (v spanValue) simpler() []func() {
	s := *v.s
	list := []Span{{s.Min, s.Min}, {s.Max, s.Max}}
	for _, d := range simplerDurations(s.Max) {
		list = append(list, Span{min(s.Min, d), d})
	}
	for _, d := range simplerDurations(s.Min) {
		list = append(list, Span{d, max(s.Max, d)})
	}
	return set(v.s, list...)
}

func (v handlerValue) simpler() []func() {
	list := set(v.h)
	list = append(list, chanceValue{&v.h.Fails}.simpler()...)
	return append(list, spanValue{s: &v.h.Takes}.simpler()...)
}

// Of an interval only a rounded one is simpler: a shorter one makes more of a run.
func (v everyValue) simpler() []func() {
	var list []string
	for _, d := range rounded(time.Duration(intervalOf(*v.spec)) * time.Millisecond) {
		list = append(list, specPrefix+formatDuration(d))
	}
	return set(v.spec, list...)
}

// Of hours UTC is simpler.
func (v hoursValue) simpler() []func() {
	return set(v.h, Hours{Start: v.h.Start, End: v.h.End})
}

func (v breakerValue) simpler() []func() { return set(v.n) }

func (v classValue) simpler() []func() {
	var list []Class
	for _, d := range simplerDurations(v.c.After) {
		list = append(list, Class{v.c.Kind, d})
	}
	return set(v.c, list...)
}

func (v nameValue) simpler() []func() { return set(v.s) }

func (v bytesValue) simpler() []func() { return set(v.b) }

// A swarm is drawn before anything is simplified.
func (kindsValue) simpler() []func() { return nil }
func (rangeValue) simpler() []func() { return nil }
