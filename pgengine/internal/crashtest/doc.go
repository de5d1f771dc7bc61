// Package crashtest holds tests of the engine over PostgreSQL with several
// processes of the operating system, which are killed and frozen, and a server
// that crashes.
//
// The processes are this test binary again, see [part]. What they did is judged
// by what triggers on the engine's tables have written down, in tables that the
// processes' role cannot change; see [account].
//
//	go test -run Campaign . -kills 100 -crashes 10 -v
package crashtest
