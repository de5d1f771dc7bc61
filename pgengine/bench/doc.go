// Package bench measures pgengine beside River and beside a loop that goes row
// by row, on one server, in turns. docs/POSTGRES.md says how to read it.
//
// It is a module of its own, so that nobody who uses pgengine depends on River.
package bench
