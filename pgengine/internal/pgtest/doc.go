// Package pgtest gives tests a real PostgreSQL server.
//
// A package has one server for all its tests. It is started by the first test
// that asks for it, and stopped and removed when the process of the tests ends,
// however it ends:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		schema := pgtest.Schema(t) // a name of this test's own; nothing is made, all in it is dropped in the end
//		pool := pgtest.Pool(t)     // as a superuser; closed in the end
//		...
//	}
//
// A test that needs other settings, or that stops the server, starts one of its
// own by [Start], which takes a second:
//
//	server := pgtest.Start(t, "fsync = on", "max_connections = 5")
//	pool := server.Pool(t)
//	server.Kill(t)  // as if the machine had crashed
//	server.Run(t)   // it recovers
//
// Connections break where a test wants them to:
//
//	proxy := pgtest.Shared(t).Proxy(t)
//	pool := pgtest.Open(t, proxy.Config(t, pgtest.Superuser))
//	proxy.Lose(pgtest.LoseReply, "commit") // done, but nobody is told
//
// The server is the newest that is installed. Where there is none, the tests
// fail and say what to install; they are never skipped. It has no TCP port: its
// socket lies in a temporary folder, and whoever connects is who they say. It
// does not run as root: where the tests do, it runs as the user postgres, or
// nobody. Its settings are made for speed: only one that is started with
// "fsync = on" outlasts a crash of the machine, but all outlast a [Server.Kill].
package pgtest
