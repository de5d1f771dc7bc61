// Package memengine is the engine in memory: package tickonce on a store that
// keeps its rows in this process, and what only memory can do.
//
//	eng, err := memengine.New(tickonce.Config{})
//
// # Keeping the state
//
// The state ends with the process unless it is kept. Package fileengine keeps it
// in a directory. To keep it elsewhere:
//
//   - [Engine.Snapshot] returns it as bytes, and [Restore] makes an engine of
//     them. What came after the snapshot is forgotten: jobs and schedules are
//     gone, and boundaries that fired then fire again (D4).
//   - A [Journal] gets a record of every write before it is visible (D2), and
//     [Open] makes an engine of a snapshot and the records behind it. Nothing is
//     forgotten.
//
// Opening goes the same way each time, also the first, when both are empty:
//
//	eng, found, err := memengine.Open(config, memengine.Durable{Snapshot: snapshot, Log: log, Journal: journal})
//	if err != nil {
//		return err // a *SnapshotError says what is damaged, and at which byte
//	}
//	if found.Torn != "" {
//		// a crash cut the last record: cut the log at found.Offset before anything is written
//	}
//
// A log grows until a snapshot takes its place: begin a new log, take a
// snapshot, keep it, and then delete the old log. Until then the two are opened
// as one, the old one first; records that the snapshot contains are passed over.
// Records are numbered, so that a gap is found. Whose they are is not in them:
// keep a snapshot and the logs behind it together.
//
// # One process
//
// Engines of one process may share the rows: [NewStore] makes a store, and
// [tickonce.New] an engine on it, as often as wanted. Of their runners one leads.
//
// A schedule takes about 256 bytes beyond those of its texts and payload. A call
// holds the store's one lock for as long as it takes to read or change its rows,
// and to append their record.
package memengine
