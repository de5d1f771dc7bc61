// Package fileengine is the engine in memory with its state kept in a directory.
//
//	eng, found, err := fileengine.Open("state", tickonce.Config{}, fileengine.Options{})
//	if err != nil {
//		return err
//	}
//	defer eng.Close()
//
// The directory is made by the first Open. Each later one goes on as if nothing
// had happened in between (D4), whether the process before it was closed, killed,
// or fell with its machine. One engine at a time has a directory.
//
// # What is kept
//
// Every write is recorded in a log before anything of it can be seen (D2), and
// is synced before its call returns unless [Options.SyncEvery] says otherwise. So
// a write waits for the disk, and all others for it. What writes much does so in
// few calls: a tick of the runner is one write, whatever number of boundaries
// fires, and so are ClaimBatch, AckAll and Tx.
//
// What has been acknowledged is lost
//
//   - when the process ends or is killed: never.
//   - when the machine falls: never, if every write is synced; with a SyncEvery
//     more than 0, what is younger than that and the sync itself take; with one
//     less than 0, what the system had not written yet, back to the last rotation
//     at most.
//
// What is left is always the state as it was at some instant, with everything
// before it. A write whose call failed, or had not returned, may be in it.
//
// # Rotation
//
// When the log has grown to [Options.RotateAt], and beyond the length of the last
// snapshot, a new log begins, a snapshot of the state is written beside, and the
// logs before it are deleted once it is on disk. The directory holds
//
//	log-00000007       what has been written since
//	snapshot-00000007  the state when the log of this number began, or later
//	lock
//
// and nothing is missing at any instant of a rotation. The snapshot is in memory
// while it is written, and so are all files while they are opened. To copy the directory,
// close the engine, or keep what [memengine.Engine.Snapshot] returns instead.
//
// # When the disk fails
//
// A write that cannot be recorded, as on a full disk, fails and changes nothing;
// the next one is tried again. After a sync has failed, though, or after what a
// failed write left could not be cut off, as on a disk that has become read-only,
// nobody can know what is on disk: every write fails until a snapshot has taken
// the place of the log, which each of them starts in the background. What could be
// read goes on to be readable. A rotation that fails leaves the logs that there
// are, and is tried again when they have grown.
//
// The errors name the file and wrap what the system said, such as syscall.ENOSPC;
// they say what has become of the state, and what to do. When the disk takes
// writes again the engine goes on by itself, and so do workers; a runner that has
// ended meanwhile, as one without [tickonce.Config.StandBy] does, is to be begun
// anew.
//
// # When a file is damaged
//
// A log may end in what is no whole record, after a crash: it is cut off and
// reported as [Recovery.Dropped]. Each record says how much of the log was on
// disk when it was written; where bytes before that are bad, or a file is
// missing, of another store, or of a later version, Open answers a [*DamageError]
// that names file and byte, and changes nothing. It never guesses. Damage within
// the last record cannot be told from a crash, and counts as one.
//
// # Platforms
//
// The lock is that of the operating system for whole files (flock, LockFileEx),
// and ends with the process; a file system of a network may not keep it between
// machines. On js and wasip1 there is none: see to it that one engine has the
// directory. On Windows and wasip1 a directory cannot be synced, so what holds
// of a fall of the machine is what the file system makes of renames.
//
// A sync is what the system calls one: a disk that answers before it has written
// breaks the promise.
package fileengine
