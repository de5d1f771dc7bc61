package main

import (
	"slices"
	"time"
)

// sample is what repetitions of one measurement took, each in nanoseconds per
// operation.
type sample []float64

func (s *sample) add(d time.Duration, operations int) {
	*s = append(*s, float64(d)/float64(operations))
}

func (s sample) median() float64 { return s.quantile(0.5) }

// spread is half the distance of the quartiles, as a part of the median.
func (s sample) spread() float64 {
	return (s.quantile(0.75) - s.quantile(0.25)) / 2 / s.median()
}

// over is the median of the ratios of s to t, repetition by repetition, so
// that what slows the machine down for a while slows both. There may be more
// repetitions of t.
func (s sample) over(t sample) float64 {
	ratios := make(sample, len(s))
	for i := range s {
		ratios[i] = s[i] / t[i]
	}
	return ratios.median()
}

func (s sample) quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 == len(sorted) {
		return sorted[low]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}
