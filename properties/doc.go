// Package properties holds the properties of the engine: what must hold for
// every input, not for the examples that the other tests are about. It has
// tests only, and they use the public packages as a user's program would.
//
//   - Models: random calls, each answer compared with something that is seen to
//     be right by reading it.
//   - Twins: the same history in two worlds that differ in what must not matter
//     (way_test.go): the size of a tick, the number of runners, restarts, the
//     store, the epoch, hosts' clocks, lost calls, edits and pauses in between.
//   - Fuzz targets for all that is read from outside: specs, snapshots,
//     journals, scenario files; with their corpora in testdata/fuzz.
//
// A property that fails prints the shortest history that was found, one line
// for each draw, and the flag that repeats it. To look longer:
//
//	go test ./properties -run T3T4 -rapid.checks=10000 -rapid.steps=100
//
// A world (world_test.go) is a store, engines and runners under one clock that
// only operations move (operations_test.go), so a history is a list of plain
// values and can be played in several worlds.
package properties
