// Command hostdriven runs schedules in a host that has one thread and one
// timer, as a browser's tab or a plugin's host: no goroutine, nothing that
// sleeps. The host is simulated, so that hours pass in no time.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/tickonce/tickonce"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	h := &host{now: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC), out: w}

	fmt.Fprintln(w, "== The tab opens, and is in front for half an hour.")
	if err := h.open(ctx, "tab-1", nil); err != nil {
		return err
	}
	if err := h.schedule(ctx, "sync", "@every 15m", tickonce.CatchUpAll); err != nil {
		return err
	}
	if err := h.schedule(ctx, "digest", "@every 20m", tickonce.CatchUpLatest); err != nil {
		return err
	}
	if err := h.pass(ctx, 30*time.Minute); err != nil {
		return err
	}

	fmt.Fprintln(w, "== It is frozen for an hour; then its timer goes off, late.")
	h.now = h.now.Add(time.Hour)
	if err := h.pass(ctx, 0); err != nil {
		return err
	}

	fmt.Fprintln(w, "== A schedule that is due sooner moves the timer, and so does a retry.")
	if err := h.schedule(ctx, "ping", "@every 2m", tickonce.CatchUpNone); err != nil {
		return err
	}
	if err := h.pass(ctx, 3*time.Minute); err != nil {
		return err
	}

	fmt.Fprintln(w, "== It is closed for 40 minutes, and goes on from its snapshot.")
	saved, err := h.eng.Snapshot()
	if err != nil {
		return err
	}
	h.now = h.now.Add(40 * time.Minute)
	if err := h.open(ctx, "tab-2", saved); err != nil {
		return err
	}
	return h.pass(ctx, 2*time.Minute)
}
