// Package pgengine is the engine over PostgreSQL, for more than one machine.
//
// [Migrate] makes the tables, [New] returns an engine on them: the same
// [tickonce.Engine] as in memory. Any number of processes may have one.
// [Engine.In] is one whose calls are part of a transaction of the caller's.
//
// Nothing is released yet. From the first release on [Migrate] brings the tables
// of every release to its own, with all that is in them.
//
// docs/POSTGRES.md is the manual of who operates it: the schema and its
// privileges, what to look at, repairs, backups, errors and limits.
//
// # How a call is made
//
// Most calls are one statement, in one round trip: reads, locks, heartbeats and,
// as long as the order of its elements makes no difference, a tick, a claim, a
// settle and an insert. So a process that freezes in the middle of one holds
// nothing.
//
// Where the order matters, the call is made as a step instead: a short
// transaction that locks what the call is about, judges it element by element
// by the rules of package store, and writes by arrays, in three to six round
// trips. Steps are every Commit of more than inserts, or with inserts that find
// their key or may find no room; a tick with a queue that may be too short for
// it; a claim that finds jobs to bury, lapsed claims, or several jobs of one
// schedule of which one has to be alone, and every one in a transaction of the
// caller's own; a settle that may change a breaker.
// Where the history is full, a tick and a settle drop its oldest entries in the
// same statement; a step is made there of several runs at once that push out
// one with a long error, and of a tick that would drop a range that takes in
// another. Who freezes in the middle of a step holds what it has locked for ten
// seconds, which is when the server ends it; ticks and claims pass over what
// somebody else has locked.
//
// Rows are locked in one order by all calls: the lease, schedules, jobs, totals
// of the history; a claim that buries locks jobs first, and waits for none of
// their schedules. What everybody writes to, the counters of queues and what the
// history weighs, nobody locks: each write adds a summand, and now and then one
// takes the place of several. So the length of a queue is judged by what was
// committed when the statement began, and several that insert at once may exceed
// a limit by what they insert. What is tried again within a step, a claim or an
// insert is what others have kept from being written: a deadlock, a serialization
// failure, two of one key or name, or two alone of one schedule. In a transaction
// of the caller's own it is a step that is tried again, from a savepoint.
//
// Statements are planned once for each connection, for indexes, whatever the
// settings of the server: to plan one takes longer than to execute it.
//
// # What can be kept
//
// Names and texts are UTF-8 without NUL, as the engine makes sure; a call of the
// store with another is an error, and writes nothing. Payloads are any bytes.
package pgengine
