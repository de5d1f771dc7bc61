// Package store is the seam between the engine and whatever keeps its rows:
// the row types, the [Store] interface and the few rules of a row that every
// store has to judge alike.
//
// A store never decides. The engine reads rows, decides with pure functions
// and writes once under a guard; the store compares guards, writes what it
// was given, or nothing, and answers. It owns the time: each call reads the
// store's clock exactly once, inside its atomic step, and answers that
// reading. No call takes a now; what goes down are durations, and instants
// that a row already carried.
//
// # Rules for every method
//
//   - One call is one atomic step: wholly done or not at all, and no other
//     call sees half of it.
//   - An error means that the outcome is unknown: the step may or may not
//     have happened. Every guarded write is safe to ask for again; an insert
//     is with a key (QU12), a claim costs one attempt. One that matches
//     [ErrPermanent] says that asking again is of no use. A refused guard is
//     never an error but an answer, one for each element.
//   - A context that has ended before the call is an error, with nothing done.
//   - Order is total: by name bytes, by id, or as the method says.
//   - Strings arrive checked by the engine. Byte slices, and the [Hold] and the
//     [Rare] behind a pointer, are shared and never changed by either side, once
//     handed over.
//     Slices of anything else, read or filled, are the caller's own again
//     after the call.
//   - A read fills dst up to its length and answers how many rows it wrote.
//     An empty payload and a nil one are the same; stores answer nil.
//   - A method may be called from several goroutines at once.
//
// Package storetest holds the conformance suite that checks these rules.
package store
