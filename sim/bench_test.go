package sim

import (
	"fmt"
	"testing"
	"time"
)

// month is 30 days of 100 schedules, as a service has them: a few by the
// minute, more by the hour, most by the day.
func month() Scenario {
	s := Scenario{For: 30 * 24 * time.Hour, Engine: Engine{StandBy: true}}
	for i := range 100 {
		every := "@every 1d"
		switch {
		case i < 5:
			every = "@every 5m"
		case i < 30:
			every = "@every 1h"
		}
		s.Schedules = append(s.Schedules, Schedule{
			Name: fmt.Sprintf("schedule-%02d", i), Spec: every, Queue: fmt.Sprintf("queue-%d", i%10),
			Handler: Handler{Takes: Span{Min: time.Second, Max: 20 * time.Second}},
		})
	}
	return s
}

// busyHour fires 100 schedules each second.
func busyHour() Scenario {
	s := Scenario{For: time.Hour, Engine: Engine{StandBy: true}}
	for i := range 100 {
		s.Schedules = append(s.Schedules, Schedule{
			Name: fmt.Sprintf("schedule-%02d", i), Spec: "@every 1s", Queue: fmt.Sprintf("queue-%d", i%10),
		})
	}
	return s
}

func BenchmarkMonth(b *testing.B)    { benchmark(b, month()) }
func BenchmarkBusyHour(b *testing.B) { benchmark(b, busyHour()) }

func benchmark(b *testing.B, s Scenario) {
	b.ReportAllocs()
	events := int64(0)
	for b.Loop() {
		r, err := Run(s)
		if err != nil || r.Verdict != Pass {
			b.Fatal(err, r)
		}
		events += r.Events
	}
	b.ReportMetric(float64(events)/float64(b.Elapsed().Microseconds()), "Mevents/s")
}
