package store

// Batch is a set of writes of which all or none happen (O7). Every guard is
// judged against the rows as they are before the batch; then the parts are
// written in the order of the fields, each in its own order. Room and keys are
// judged as they are written: what settles, cancels and purges free is there
// for inserts, but a remove frees no room for a put. A schedule that two
// elements write, or a job that two elements touch, is refused as if the second
// had come too late.
type Batch struct {
	Guards   []Guard  // schedules that were read and must still be so
	Puts     []Put    // schedules to create, change or replace
	Removes  []Guard  // schedules to remove, each with an ID
	Settles  []Settle // claims to end
	Cancels  []JobRef // pending or claimed jobs to remove (QU7)
	Requeues []JobRef // dead jobs to insert anew, see [Requeued] (QU11)
	Purges   []JobRef // dead jobs to remove
	Inserts  []Insert
}

// BatchPayload is how many bytes the payloads of the puts and inserts of one
// batch have together at most: a store has to take as many, and who has more to
// write cuts it.
const BatchPayload = 1 << 30

// Guard is what a schedule must be for a batch to be written: the incarnation
// ID at the revision Rev or, with ID 0, absent. Live are the live jobs that it
// must have as well; nil: any.
type Guard struct {
	Name string
	ID   ScheduleID
	Rev  Rev
	Live *Live
}

// Put writes a schedule row, guarded.
type Put struct {
	Guard Guard
	// Row has the guard's name. Its ID is the guard's, which changes the row
	// and raises its rev by one, or 0, which makes a new incarnation with an
	// id of the store's and rev 1 in the place of the guard's. Its Rev is not
	// read.
	Row Schedule

	// Skips are of boundaries that this write passes over, for the history: of
	// the row as it was or, where the reason is [SkipBefore], as it will be.
	Skips []Skip
}

// JobRef names a job and the queue it must be in.
type JobRef struct {
	Queue string
	Job   JobID
}

// Committed is the answer of [Store.Commit].
type Committed struct {
	Now     Instant
	Refusal Refusal // zero if the batch was written

	// Of a written batch, one for each element of the part.
	Puts     []Schedule // the rows as written
	Requeues []JobID    // the new ids
	Inserts  []Inserted
}

// Inserted is what became of an insert.
type Inserted struct {
	Job      JobID
	Existing bool // the queue had a live job with the key; nothing was written (QU12)
}

// Refusal says which element kept a batch from being written: the first one
// in the order of the batch's fields.
type Refusal struct {
	Why   Why
	Part  Part
	Index int // within the part
}

// Why says why an element was refused.
type Why uint8

// The reasons of a refusal.
const (
	NotRefused    Why = iota
	Conflict          // the guard of a schedule does not hold
	ClaimLost         // the claim is not the live one
	NotFound          // no such job in the queue, in a state that allows it
	QueueFull         // the queue keeps as many jobs as its limit allows
	SchedulesFull     // the store keeps as many schedules as its limit allows
)

// Part names a field of [Batch].
type Part uint8

// The parts of a batch, in their order.
const (
	Guards Part = iota
	Puts
	Removes
	Settles
	Cancels
	Requeues
	Purges
	Inserts
)

// Requeued is the pending job that takes the place of the dead job j: a new
// id, no attempts, ready at once, without expiry, key or worker. What it keeps
// is what it is about: queue, payload, schedule, boundary, stamps, priority
// and last error.
func Requeued(j Job, id JobID, now Instant) Job {
	j.ID = id
	j.Key = ""
	j.EnqueuedAt, j.RunAt, j.ExpiresAt = now, now, None
	j.Attempts = 0
	j.State = Pending
	j.Worker, j.Deadline = "", None
	j.Since = None
	return j
}
