// Package host is the engine as a WebAssembly module within a Go program, over
// wazero. It has the methods of a native engine, and the same code on every
// platform, in memory of its own, to which it is bound.
//
// The module is built from a checkout:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o tickonce.wasm ./wasm/guest
//
// It is compiled once, and instantiated for each engine:
//
//	module, err := host.Compile(ctx, wasm, host.Options{CacheDir: dir})
//	eng, _, err := module.Open(ctx, host.Config{})
//	_, err = eng.Schedule(ctx, "report", "@every 5m", "mail", payload, tickonce.ScheduleOptions{})
//	go eng.RunSchedules(ctx)
//	err = eng.RunWorker(ctx, "mail", func(ctx context.Context, job *host.Job) error {
//		return send(ctx, job.Payload)
//	}, tickonce.WorkerConfig{Concurrency: 4})
//
// # What is different
//
// Options, rows and errors are those of package tickonce; [Job], [Handler], [Tx],
// [Outbox], [Lock] and [Totals] are their likes here, since the ones there hold
// the engine itself. Steps are not offered, nor Outbox.RunOnce. One call at a time
// is in the guest, and costs several times a native one; see [Tx] for transactions.
//
// # Keeping the state
//
// The state ends with the instance unless it is kept, as with package memengine,
// whose snapshots and logs are the same bytes: [Engine.Snapshot] returns it, and a
// [Config.Journal] gets a record of every write before anything comes of it. An
// instance that dies, of a bound in [Options] or a fault of its own, loses nothing
// that anybody was told, if there is a journal: with [Config.Reopen] the engine
// goes on by itself in another one, without the claims and locks of the first.
package host
