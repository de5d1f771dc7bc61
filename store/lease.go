package store

// SchedulerLock is the name of the lock for which runners contend (L2). Its
// lease dies with the store's process and is no part of a snapshot (D6).
const SchedulerLock = "__alkstore_scheduler"

// Term numbers acquisitions. Terms come from one rising sequence for all locks
// of a store (LK6), so every acquisition has a larger one than any before.
type Term int64

// LeaseSlackMS is how much longer than its TTL a lease may seem to last before
// it is judged to be the work of a clock that was ahead (K2).
const LeaseSlackMS = 1000

// Lease is the row of one lock.
type Lease struct {
	Lock      string
	Owner     string
	Term      Term
	TTLMS     int64 // as last acquired or renewed
	ExpiresAt Instant
}

// Live reports whether the lease holds at now: it has not expired
// (LK1: at ExpiresAt it has), and does not last longer than its TTL and one
// second, as it would after the clock stepped back (K2).
func (l *Lease) Live(now Instant) bool {
	return now < l.ExpiresAt && l.ExpiresAt <= now.Add(l.TTLMS+LeaseSlackMS)
}

// Grant is the answer of [Store.Acquire] and [Store.Renew].
type Grant struct {
	OK    bool
	Lease Lease   // the caller's if OK, else the live lease in the way, or zero
	Now   Instant // the store's reading
}
