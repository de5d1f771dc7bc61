//go:build unix

package sim

import (
	"fmt"
	"os"
	"syscall"
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
	b.Run("as written", func(b *testing.B) { benchmark(b, example(b, "all-outages.sim")) })
	b.Run("drawn", func(b *testing.B) {
		benchmarkSweep(b, example(b, "all-outages.sim").WithSwarm(Swarm{Min: 8, Max: 60, Kinds: "process,clock,store-error-burst,handler,queue"}))
	})
}

// BenchmarkLight is a run so short that what comes before its first event counts.
func BenchmarkLight(b *testing.B) {
	b.Run("as written", func(b *testing.B) { benchmark(b, light()) })
	b.Run("portfolio", func(b *testing.B) { benchmarkSweep(b, example(b, "portfolio.sim")) })
}

// light is a day of ten schedules with an outage.
func light() Scenario {
	s := month()
	s.For, s.Schedules = 24*time.Hour, s.Schedules[:10]
	s.Faults = []Fault{{Kind: FaultDown, At: 2 * time.Hour, For: 3 * time.Hour}}
	return s
}

func example(b *testing.B, file string) Scenario {
	text, err := os.ReadFile("../examples/scenarios/" + file)
	require.NoError(b, err)
	s, err := Parse(file, string(text))
	require.NoError(b, err)
	return s
}

func benchmark(b *testing.B, s Scenario) {
	measure(b, func(uint64) int64 {
		r, err := Run(s)
		if err != nil || r.Verdict != Pass {
			b.Fatal(err, r)
		}
		return r.Events
	})
}

// benchmarkSweep runs seed after seed, and one in twenty twice. They differ in
// length: only the same number of them, by -benchtime 100x, can be compared.
func benchmarkSweep(b *testing.B, s Scenario) {
	measure(b, func(seed uint64) int64 {
		r, err := Sweep(s, Seeds{First: seed, Last: seed})
		if err != nil || r.Failed > 0 {
			b.Fatal(err, r)
		}
		return r.Events
	})
}

// measure reports what a run takes of the processors, and how many events one of
// them has happen in a second.
func measure(b *testing.B, run func(seed uint64) (events int64)) {
	b.ReportAllocs()
	events, seed, began := int64(0), uint64(0), cpuTime()
	for b.Loop() {
		seed++
		events += run(seed)
	}
	took := cpuTime() - began
	b.ReportMetric(float64(took.Nanoseconds())/float64(seed), "cpu-ns/op")
	b.ReportMetric(float64(took.Nanoseconds())/float64(events), "cpu-ns/event")
	b.ReportMetric(float64(events)/float64(took.Microseconds()), "Mevents/cpu-s")
}

// cpuTime is what the process has used of its processors, the collector's part
// included. It stands still while other processes have them.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic("getrusage: " + err.Error())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
