// Package pgengine is the engine over PostgreSQL, for more than one machine.
//
// [Migrate] makes the tables, [New] returns an engine on them: the same
// [tickonce.Engine] as in memory. Any number of processes may have one.
//
// # How a call is made
//
// Reads, and the calls for locks and heartbeats, are one statement each. The
// other calls are short transactions that lock the rows they are about, judge
// them by the rules of package store, and write by arrays: a few statements in
// three to five round trips, with no call of anyone's code in between.
//
// Rows are locked in one order by all calls. What everybody writes to, the
// counters of queues and what the history weighs, nobody locks: each write adds
// a summand, and now and then one takes the place of several. So the length of a
// queue is judged by what was committed when the call began, and several that
// insert at once may exceed the limit by what they insert.
//
// Names and texts have to be UTF-8 without NUL, as the engine makes sure; a call
// with another is an error, and writes nothing. Payloads are any bytes.
package pgengine
