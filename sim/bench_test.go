package sim

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

func BenchmarkAllOutages(b *testing.B) {
	b.Run("as written", func(b *testing.B) { benchmark(b, allOutages(b)) })
	b.Run("drawn", func(b *testing.B) {
		s := allOutages(b).WithSwarm(Swarm{Min: 8, Max: 60, Kinds: "process,clock,store-error-burst,handler,queue"})
		events, seed := int64(0), uint64(0)
		for b.Loop() {
			seed++
			r, err := Sweep(s, Seeds{First: seed, Last: seed})
			if err != nil || r.Failed > 0 {
				b.Fatal(err, r.Failures)
			}
			events += r.Events
		}
		b.ReportMetric(float64(events)/float64(b.Elapsed().Microseconds()), "Mevents/s")
		b.ReportMetric(float64(seed)/b.Elapsed().Seconds(), "seeds/s")
	})
}

func allOutages(b *testing.B) Scenario {
	text, err := os.ReadFile("../examples/scenarios/all-outages.sim")
	require.NoError(b, err)
	s, err := Parse("all-outages.sim", string(text))
	require.NoError(b, err)
	return s
}

// light is a day of ten schedules with an outage.
func light() Scenario {
	s := month()
	s.For, s.Schedules = 24*time.Hour, s.Schedules[:10]
	s.Faults = []Fault{{Kind: FaultDown, At: 2 * time.Hour, For: 3 * time.Hour}}
	return s
}

func BenchmarkLight(b *testing.B) { benchmark(b, light()) }

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
