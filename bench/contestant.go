package main

// contestant is one way to run schedules in virtual time.
type contestant struct {
	name string
	open func(w *workload) (run, error)
}

// contestants take part in the measurement of fires. The first is what the
// others are compared with.
var contestants = []contestant{
	{"bare heap", openHeap},
	{"tickonce", openEngine},
}

// run is a contestant with the schedules of a workload, at epoch.
type run interface {
	// fire sets the clock and fires whatever is due. It is what is timed.
	fire(nowMS int64) error

	// drain removes what the fires since the last drain left behind, and
	// answers how many fires there were.
	drain() (fires int, err error)

	// payloadBytes is what of a schedule's memory its payload takes. Names,
	// specs and queues are the workload's, and not copied.
	payloadBytes() int
}
