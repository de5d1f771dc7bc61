package main

import (
	"fmt"
	"time"
)

// queueName is the queue that every schedule fires into.
const queueName = "jobs"

// payload is what every schedule and every job carries.
var payload = []byte("sixteen bytes...")

// epoch is the time at which the contestants begin, in Unix milliseconds.
const epoch = 1_767_225_600_000 // 2026-01-01

// batch is how many fires a tick is meant to have.
const batch = 1000

// minutes are the intervals of the schedules, in equal parts.
var minutes = [...]int64{10, 15, 20, 30, 60}

// workload is a set of schedules and the steps in which time goes by. The
// boundaries of a schedule lie on a grid of whole intervals that begins at a
// random instant of its first interval, so that due instants are spread evenly
// and some of them are equal.
type workload struct {
	schedules []timetable
	stepMS    int64
}

type timetable struct {
	name       string
	intervalMS int64
	firstMS    int64 // the first boundary, after epoch
}

// newWorkload returns n schedules, the same for the same n.
func newWorkload(n int) *workload {
	w := &workload{schedules: make([]timetable, n)}
	random := uint64(n)
	perMS := 0.0
	for i := range w.schedules {
		interval := minutes[i%len(minutes)] * time.Minute.Milliseconds()
		w.schedules[i] = timetable{
			name:       fmt.Sprintf("schedule-%07d", i),
			intervalMS: interval,
			firstMS:    epoch + 1 + int64(splitmix(&random)%uint64(interval)),
		}
		perMS += 1 / float64(interval)
	}
	w.stepMS = int64(float64(min(batch, n/4)) / perMS)
	return w
}

// newHerd is newWorkload with due instants so far apart that each has nearly as
// many fires as a tick is meant to have, and steps from one to the next.
func newHerd(n int) *workload {
	w := newWorkload(n)
	second := time.Second.Milliseconds()
	apart := max(1, batch*1000/int64(n)) // seconds
	for 5*60%apart != 0 {                // all intervals are multiples of 5 minutes
		apart--
	}
	w.stepMS = apart * second
	for i := range w.schedules {
		s := &w.schedules[i]
		s.firstMS = epoch + (s.firstMS-epoch+w.stepMS-1)/w.stepMS*w.stepMS
	}
	return w
}

// perStep is how many fires a step has on average.
func (w *workload) perStep() float64 {
	fires := 0.0
	for _, s := range w.schedules {
		fires += float64(w.stepMS) / float64(s.intervalMS)
	}
	return fires
}

// boundaries is how many there are from epoch to now.
func (w *workload) boundaries(nowMS int64) int {
	sum := int64(0)
	for _, s := range w.schedules {
		if nowMS >= s.firstMS {
			sum += 1 + (nowMS-s.firstMS)/s.intervalMS
		}
	}
	return int(sum)
}

// rounds is how many steps have about as many fires as there are schedules.
func (w *workload) rounds() int { return max(len(w.schedules)/batch, 4) }

// splitmix is the next number of the splitmix64 sequence.
func splitmix(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// clock says what it was set to. Nothing waits on it.
type clock struct{ ms int64 }

func (c *clock) Now() time.Time                       { return time.UnixMilli(c.ms) }
func (c *clock) After(time.Duration) <-chan time.Time { return nil }
