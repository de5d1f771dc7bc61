// Package peers puts other libraries that run jobs on schedules, and this one,
// behind one interface, lets them run in virtual time, and tells what each did.
//
// Virtual time is a bubble of testing/synctest ([Bubble]): the libraries run
// as they are, on their own goroutines and on the timers of package time, and
// the hours between two fires take no time at all.
package peers

import (
	"time"
)

// Peer is a library.
type Peer struct {
	Name    string
	Module  string
	License string

	// Clocked is whether it can be given a clock. One that cannot reads the
	// system's, which a bubble does not let step.
	Clocked bool

	// Open makes a scheduler, inside a bubble. Without a clock it reads the
	// bubble's.
	Open func(*Clock) (Scheduler, error)

	// reopen makes a scheduler of what the library can keep of a stopped one,
	// share another instance beside one that runs, and repair one that was told
	// to mend what a wrong clock did. Nil: the library has no such thing.
	reopen func(*Clock, Scheduler) (Scheduler, error)
	share  func(*Clock, Scheduler) (Scheduler, error)
	repair func(*Clock) (Scheduler, error)
}

// Others are the libraries that this one is compared with.
var Others = []*Peer{netresearch, goCron, robfig, goQuartz}

// All are this one and the others.
var All = append([]*Peer{tickOnce}, Others...)

// Scheduler is an instance of a library. Its methods are called from one
// goroutine, but remove functions from jobs too.
type Scheduler interface {
	// Every registers a job as the library's users would.
	Every(name string, interval time.Duration, run func()) (remove func() error, err error)

	// On registers a job on a grid. The first boundary is in the future.
	On(name string, g Grid, run func()) (remove func() error, err error)

	Start()

	// Stop ends all goroutines, so that a bubble can end.
	Stop()

	// Note says what the library told beside running the jobs. It empties what
	// it has told.
	Note() string
}

// Grid has its boundaries at First and every interval after it.
type Grid struct {
	First    time.Time
	Interval time.Duration
}

// Next is the first boundary after t.
func (g *Grid) Next(t time.Time) time.Time {
	late := t.Sub(g.First)
	if late < 0 {
		return g.First
	}
	return t.Add(g.Interval - late%g.Interval)
}
