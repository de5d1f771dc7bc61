package browser

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/htmlreport"
)

// standing is a clock that stands.
type standing struct{ time.Time }

func (c *standing) Now() time.Time                     { return c.Time }
func (*standing) After(time.Duration) <-chan time.Time { return nil }

// recordedDay is the journal of an engine with schedules of all policies: nothing
// runs from 03:00 to 05:30, imports fail from 08:00 to 10:00, a report hangs at
// 12:00, and the chat that reports are delivered to is down from 10:20 to 10:40 and
// has no such channel from 15:00 on.
func recordedDay(t testing.TB) []byte {
	ctx := t.Context()
	now := &standing{time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)}
	begin := now.Time
	var journal memengine.MemJournal
	e, _, err := memengine.Open(tickonce.Config{Clock: now, Seed: 1, Owner: "service"}, memengine.Durable{Journal: &journal})
	require.NoError(t, err)
	for _, s := range []struct {
		name, spec, queue string
		options           tickonce.ScheduleOptions
	}{
		{"crawl", "@every 10m", "crawls", tickonce.ScheduleOptions{Overlap: tickonce.OverlapBufferOne, CatchUp: tickonce.CatchUp{Window: 20 * time.Minute}, Breaker: -1}},
		{"digest", "@every 1h", "reports", tickonce.ScheduleOptions{CatchUp: tickonce.CatchUp{Count: 3, Newest: true}}},
		{"import", "@every 20m", "imports", tickonce.ScheduleOptions{MaxAttempts: 2, BaseBackoff: 10 * time.Second, CatchUp: tickonce.CatchUpLatest}},
		{"migrate", "@every 1h", "trades", tickonce.ScheduleOptions{RunOnce: true, Anchor: begin.Add(4 * time.Hour)}},
		{"report", "@every 30m", "reports", tickonce.ScheduleOptions{Overlap: tickonce.OverlapSkip, Timeout: 45 * time.Minute}},
		{"trade", "@every 15m", "trades", tickonce.ScheduleOptions{ActiveHours: tickonce.ActiveHours{From: "08:00", To: "17:30", Zone: "Europe/Berlin"}}},
	} {
		_, err := e.Schedule(ctx, s.name, s.spec, s.queue, []byte(s.name), s.options)
		require.NoError(t, err)
	}
	type run struct {
		worker *tickonce.Worker
		*tickonce.Run
		ends time.Time
		err  error
	}
	var workers []*tickonce.Worker
	for _, queue := range []string{"crawls", "imports", "reports", "trades"} {
		w, err := e.NewWorker(queue, tickonce.WorkerConfig{Concurrency: 2})
		require.NoError(t, err)
		workers = append(workers, w)
	}
	chat, err := e.Outbox("chat").NewWorker(tickonce.WorkerConfig{})
	require.NoError(t, err)
	workers = append(workers, chat)
	begun := func(w *tickonce.Worker, r *tickonce.Run) run {
		at, is := now.Sub(begin), run{w, r, now.Add(20 * time.Second), nil}
		between := func(from, to time.Duration) bool { return from <= at && at < to }
		switch job := r.Job; {
		case w == chat && between(10*time.Hour+20*time.Minute, 10*time.Hour+40*time.Minute):
			is.err = tickonce.Transient(errors.New("503 service unavailable"))
		case w == chat && at >= 15*time.Hour:
			is.err = errors.New("404 no such channel")
		case w == chat:
		case job.Schedule == "import" && between(8*time.Hour, 10*time.Hour):
			is.err = errors.New("no connection to the supplier")
		case job.Schedule == "report" && between(12*time.Hour, 12*time.Hour+time.Minute):
			is.ends = now.Add(24 * time.Hour)
		case job.Schedule == "crawl" && between(13*time.Hour, 14*time.Hour):
			is.ends = now.Add(50 * time.Minute)
		case job.Schedule == "report":
			require.NoError(t, job.Deliver("chat", fmt.Appendf(nil, "report of %s", job.Boundary)))
		}
		return is
	}
	var runs []run
	runner := e.NewRunner()
	for ; now.Sub(begin) < 24*time.Hour; now.Time = now.Add(5 * time.Second) {
		switch now.Sub(begin) {
		case 3 * time.Hour:
			now.Time = now.Add(150 * time.Minute)
		case 11 * time.Hour:
			_, err := e.Resume(ctx, "import", tickonce.ResumeOptions{})
			require.NoError(t, err)
		case 19*time.Hour + 5*time.Minute:
			_, err := e.Trigger(ctx, "digest")
			require.NoError(t, err)
		}
		for next := now.Time; !next.After(now.Time); {
			next, _, err = runner.Step(ctx)
			require.NoError(t, err)
		}
		runs = slices.DeleteFunc(runs, func(r run) bool {
			over := !r.ends.After(now.Time)
			if over {
				r.worker.Ended(r.Run, r.err)
			}
			return over
		})
		for _, w := range workers {
			for next := now.Time; !next.After(now.Time); {
				var report *tickonce.WorkerReport
				next, report, err = w.Step(ctx)
				require.NoError(t, err)
				for _, r := range report.Begun {
					runs = append(runs, begun(w, r))
				}
			}
		}
	}
	return journal.Bytes()
}

// recording writes the report of a recorded day.
func recording(t testing.TB, file string) {
	d := memengine.Durable{Log: recordedDay(t)}
	known, err := sim.WatchJournal(d, nil)
	require.NoError(t, err)
	recorder := htmlreport.NewRecorder(known.Scenario)
	result, err := sim.WatchJournal(d, recorder.Tell)
	require.NoError(t, err)
	require.Equal(t, sim.Pass, result.Verdict, "%+v", result.Failures)
	f, err := os.Create(filepath.Clean(file))
	require.NoError(t, err)
	require.NoError(t, recorder.Write(f, &result.Result, htmlreport.Source{File: "state", Recording: result}))
	require.NoError(t, f.Close())
}

// Of a job that ran well and was not delivered, both are told, apart from each other;
// the outbox has a lane.
func TestRunAndDeliveryAreToldApart(t *testing.T) {
	for _, width := range []int64{1440, 390} {
		p := open(t, reports(t)["recording"], width, 844, theme("light"))
		require.Contains(t, p.text(`document.getElementById('lede').textContent`), "report ran well, and was not delivered 19 times.")
		p.do(chromedp.Click(chromedp.CSS(".look")))
		panel := p.text(`document.getElementById('panel').innerText`)
		require.Contains(t, panel, "report ran well, and was not delivered")
		require.Regexp(t, `Its job\s+done\n`, panel)
		require.Regexp(t, `Delivery to chat\s+given up after 3 tries: 503 service unavailable\n`, panel)
		p.picture(fmt.Sprintf("delivery-%d", width), false)
		p.do(chromedp.KeyEvent(kb.Escape), chromedp.Focus(chromedp.CSS("#plot")))
		told := ""
		for _, key := range []string{kb.ArrowDown, kb.ArrowDown, kb.ArrowDown, kb.ArrowDown, kb.ArrowDown, kb.ArrowDown} {
			p.do(chromedp.KeyEvent(key))
			told += p.text(`document.getElementById('said').textContent`) + "\n"
		}
		require.Contains(t, told, "chat: ")
		require.Empty(t, p.axe(allButContrast))
		p.picture(fmt.Sprintf("recording-%d", width), true)
	}
}
