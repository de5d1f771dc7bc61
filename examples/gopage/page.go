//go:build js

package main

import (
	"context"
	"strconv"
	"syscall/js"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/wasm/gojs"
)

// The page's own code sees the engine as window.tickonce, and is told by the
// event "tickonce" that it is there.
func main() {
	ctx := context.Background()
	engine, _, err := gojs.Open(tickonce.Config{OnTime: 2 * time.Minute}, memengine.Durable{})
	if err != nil {
		panic(err)
	}
	for _, s := range []struct{ name, spec string }{{"primes", "@every 5s"}, {"digest", "@every 20s"}} {
		if _, err := engine.Schedule(ctx, s.name, s.spec, s.name, nil, tickonce.ScheduleOptions{
			Anchor:  time.Unix(0, 0), // at :00, :05, …, whenever the page was opened
			CatchUp: tickonce.CatchUpLatest,
		}); err != nil {
			panic(err)
		}
	}
	go engine.RunWorker(ctx, "primes", countPrimes, tickonce.WorkerConfig{})
	js.Global().Set("tickonce", engine.Object())
	js.Global().Call("dispatchEvent", js.Global().Get("Event").New("tickonce"))
	panic(engine.RunSchedules(ctx)) // it ends with the page
}

// countPrimes is work that is done in Go: how many primes there are below a
// number that grows with each run.
func countPrimes(_ context.Context, job *tickonce.Job) error {
	most := 10_000 * int(job.ID%10+1)
	composite := make([]bool, most)
	count := 0
	for n := 2; n < most; n++ {
		if composite[n] {
			continue
		}
		count++
		for m := n * n; m < most; m += n {
			composite[m] = true
		}
	}
	job.Summarize(strconv.Itoa(count) + " primes below " + strconv.Itoa(most))
	return nil
}
