package sim

// What a run may take; the verdict of one that would take more is [Budget].
const (
	maxEvents = 100_000_000
	maxMemory = 256 << 20 // bytes, as [world.memory] counts them
)

// The sizes of what a run may have very many of, about, with the places in
// indexes and in the model.
const (
	jobBytes       = 512 // without the payload
	eventBytes     = 48
	turnBytes      = 32
	deliveredBytes = 32 // of an entry that came through
)

// memory is about how many bytes the run keeps: of jobs, which pile up where
// nobody takes them, or die; of the disk; of what is to happen; and of clocks. It
// is counted, not measured, so that every platform comes to the same verdict.
func (w *world) memory() int64 {
	return w.truth.memory + w.sentMemory + int64(len(w.disk.base)+len(w.disk.log)) + int64(w.queue.len())*eventBytes + w.turns*turnBytes
}

// jobMemory is about how many bytes a job with the payload takes.
func jobMemory(payload []byte) int64 { return jobBytes + int64(len(payload)) }

// exceeded is what the run has taken more of than it may, "" without anything.
func (w *world) exceeded() string {
	switch {
	case w.events >= w.rig.budget:
		return "events"
	case w.memory() > w.rig.memory:
		return "memory"
	default:
		return ""
	}
}
