package crashtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	kills   = flag.Int("kills", 2, "how many runners TestCampaign kills in each variant")
	crashes = flag.Int("crashes", 1, "how often the server crashes meanwhile")
	seed    = flag.Uint64("campaignseed", 1, "who is killed, and after how many of its calls")
)

const runners, workers = 3, 2

// Under load runners are killed again and again, some are frozen for longer than
// their lease, workers and an application are killed, too, and the server
// crashes. The clocks of some machines are an hour wrong. In the end each boundary
// has fired once, or was skipped and that is recorded, and each job and each order
// is accounted for.
//
// The unique index of boundaries is dropped: the lease and the cursor's guard
// hold this, and the cursor's alone. Without either the same load fires twice,
// and that is seen.
func TestCampaign(t *testing.T) {
	t.Parallel()
	for i, variant := range []struct {
		name   string
		runner part
		faulty bool
	}{
		{name: "lease and cursor guarded"},
		{name: "cursor guarded", runner: part{Leads: true}},
		{name: "unguarded", runner: part{Leads: true, Careless: true}, faulty: true},
	} {
		t.Run(variant.name, func(t *testing.T) {
			t.Parallel()
			w := alone(t)
			w.exec("drop index " + quoted(w.base.Schema, "job_fire"))
			w.register(load)
			c := &campaign{world: w, runner: variant.runner, rng: rand.New(rand.NewPCG(*seed, uint64(i)))}
			c.run()
			a, v := w.judged()
			c.judge(a, &v)
			fires := 0
			for _, g := range a.schedules {
				for _, n := range g.fired {
					fires += n
				}
			}
			t.Logf("%d runners killed, %d frozen, %d other processes killed, %d crashes of the server: "+
				"%d boundaries fired, %d jobs, %d orders, %d double fires, %d gaps, all faults %v",
				c.killed, c.frozen, c.others, c.crashed, fires, len(a.jobs), len(a.orders), v.faults[doubleFire], v.faults[gap], v.faults)
			if variant.faulty {
				require.NotZero(t, v.faults[doubleFire]+v.faults[gap], "the load shows no fault even where nothing guards")
				return
			}
			require.Empty(t, v.faults, strings.Join(v.told, "\n"))
			require.NotZero(t, fires)
			require.NotZero(t, len(a.orders))
		})
	}
}

// campaign kills and freezes.
type campaign struct {
	*world
	runner  part
	rng     *rand.Rand
	crew    [runners]*process // who runs the schedules
	workers [workers]*process
	app     *process
	stopped *process
	thaw    int // how many lines of others until it goes on

	killed, frozen, others, crashed int

	done, ordered []int64 // what was answered
}

func (c *campaign) run() {
	for i := range c.crew {
		c.crew[i] = c.beginRunner()
	}
	for i := range c.workers {
		c.workers[i] = c.beginWorker()
	}
	c.app = c.beginApp()
	for c.killed < *kills {
		if c.crashed < *crashes*(c.killed+1) / *kills {
			c.crash()
		}
		c.strike()
	}
	c.goOn()
	c.dismiss(c.hear)
}

func (c *campaign) beginRunner() *process {
	p := c.runner
	p.Runs, p.Register = true, c.rng.IntN(4)
	return c.beginPart("runner", p)
}

func (c *campaign) beginWorker() *process { return c.beginPart("worker", part{Works: true}) }
func (c *campaign) beginApp() *process    { return c.beginPart("app", part{Orders: true}) }

// beginPart starts a process on a machine whose clock is right, or an hour wrong.
func (c *campaign) beginPart(role string, p part) *process {
	c.started++
	p.Name = fmt.Sprint(role, "-", c.started)
	p.Skew = time.Duration(c.rng.IntN(3)-1) * time.Hour
	return c.begin(p)
}

// strike freezes a runner, or kills one, at some instant after some of its
// lines, and others with it.
func (c *campaign) strike() {
	i := c.rng.IntN(runners)
	victim := c.crew[i]
	if victim == c.stopped {
		return
	}
	for n := 1 + c.rng.IntN(20); n > 0; {
		if l := c.listen(); l.by == victim {
			n--
		}
	}
	for n := c.rng.IntN(1 << 20); n > 0; n-- { // to an instant between two lines
		_ = n
	}
	if c.stopped == nil && c.rng.IntN(5) == 0 {
		c.signal(victim, syscall.SIGSTOP)
		c.stopped, c.thaw = victim, 100+c.rng.IntN(200)
		c.frozen++
		return
	}
	c.kill(victim)
	c.killed++
	c.crew[i] = c.beginRunner()
	if c.rng.IntN(4) == 0 {
		i := c.rng.IntN(workers)
		c.kill(c.workers[i])
		c.others++
		c.workers[i] = c.beginWorker()
	}
	if c.rng.IntN(4) == 0 {
		c.kill(c.app)
		c.others++
		c.app = c.beginApp()
	}
}

// kill kills a process, and hears what it has said before.
func (c *campaign) kill(p *process) {
	c.t.Helper()
	c.signal(p, syscall.SIGKILL)
	for c.alive[p] {
		c.listen()
	}
}

// crash has the server crash, and run again when some have noticed.
func (c *campaign) crash() {
	c.server.Kill(c.t)
	c.crashed++
	for n := c.rng.IntN(10); n > 0; {
		if l := c.listen(); l.what == "lost" || l.what == "retrying" {
			n--
		}
	}
	c.server.Run(c.t)
	c.admin.Reset()
}

// listen hears the next line, and continues who is frozen when it is time.
func (c *campaign) listen() line {
	c.t.Helper()
	l := c.next()
	c.hear(l)
	if c.stopped != nil && l.by != c.stopped {
		if c.thaw--; c.thaw == 0 {
			c.signal(c.stopped, syscall.SIGCONT)
			c.stopped = nil
		}
	}
	return l
}

// hear takes note of what was answered to a process.
func (c *campaign) hear(l line) {
	switch l.what {
	case "done", "ordered":
		n, err := strconv.ParseInt(l.more, 10, 64)
		require.NoError(c.t, err, l)
		if l.what == "done" {
			c.done = append(c.done, n)
		} else {
			c.ordered = append(c.ordered, n)
		}
	}
}

// goOn returns when all schedules have gone on after the last of it.
func (c *campaign) goOn() {
	for now := c.now(); c.behind(now) > 0; {
		c.listen()
	}
}

// judge looks for what was answered and did not last.
func (c *campaign) judge(a *account, v *verdict) {
	told := map[int64]bool{}
	for _, id := range c.done {
		j := a.jobs[id]
		if told[id] || j == nil || j.kept != 0 {
			v.fault(lostAnswer, "job %d is done", id)
		}
		told[id] = true
	}
	for _, n := range c.ordered {
		if !a.orders[n] {
			v.fault(lostAnswer, "order %d", n)
		}
	}
}
