package browser

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// works opens an engine in a tab that shares its state and the lead with other
// tabs, and runs it. Its handler enters each run of a job into a ledger, a database
// of its own, which takes none twice.
const works = `
	const opened = indexedDB.open('ledger');
	opened.onupgradeneeded = () => opened.result.createObjectStore('runs', { keyPath: ['job', 'attempt'] });
	const db = await new Promise((resolve, reject) => Object.assign(opened, { onsuccess: () => resolve(opened.result), onerror: reject }));
	const enter = run => new Promise((resolve, reject) => Object.assign(db.transaction('runs', 'readwrite').objectStore('runs').add(run), { onsuccess: resolve, onerror: reject }));
	window.ledger = () => new Promise((resolve, reject) => {
		const all = db.transaction('runs').objectStore('runs').getAll();
		Object.assign(all, { onsuccess: () => resolve(all.result), onerror: reject });
	});
	window.faults = [];
	window.begun = 0;
	window.leadership = p.webLocks('app');
	window.eng = (await p.load()).open({ store: p.indexedDBStore('state'), leadership });
	window.running = p.start(eng, { work: async ({ id, attempt, schedule, boundary }) => {
		await enter({ job: id, attempt, schedule, boundary }).catch(() => faults.push('job ' + id + ' was begun twice as attempt ' + attempt));
		window.begun++;
		window.enough?.();
	} }, { concurrency: 20, onError: e => faults.push(String(e)) });
	window.untilBegun = n => new Promise(resolve => { window.enough = () => { if (begun >= n) resolve() }; enough() });
`

// Leaders are killed at random points, fifty in all. Every boundary has fired once
// or was skipped with a reason, no attempt was begun twice, and every job was done.
func TestTabsLoseAndDoubleNothingWhenTheirLeaderIsKilled(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 5
	}
	const schedules = 20
	random := rand.New(rand.NewPCG(1, 2))
	origin := site(t)
	work := func() *tab {
		p := visit(t, origin)
		with[any](p, works)
		return p
	}
	leader := work()
	begin := with[int64](leader, fmt.Sprintf(`
		await eng.lead();
		const now = Date.now();
		for (let i = 0; i < %d; i++) {
			await eng.schedule('s' + i, '@every 1s', 'work', { anchor: now + 1000 + i * 50, visibilityMS: 1000, maxAttempts: 1000, breaker: -1 });
		}
		return now + 1000;`, schedules))
	next := work()
	for range kills {
		with[any](leader, fmt.Sprintf(`await eng.lead(); await untilBegun(%d)`, 1+random.IntN(10)))
		require.Empty(t, with[[]string](leader, `return faults`))
		if random.IntN(2) == 0 {
			leader.crash()
		} else {
			leader.shut()
		}
		leader, next = next, work()
	}

	type outcome struct {
		Missing, Doubled, Faults []string
		Fired, Skipped, Runs     int
		Done, Dead               int
	}
	o := with[outcome](leader, fmt.Sprintf(`
		await eng.lead();
		const ends = {};
		for (let i = 0; i < %d; i++) {
			await eng.pause('s' + i);
			ends['s' + i] = (await eng.lookup('s' + i)).next;
		}
		let queue;
		while ((queue = await eng.queue('work')).pending + queue.claimed > 0) await new Promise(resolve => setTimeout(resolve, 20));
		const runs = await ledger(), jobs = new Map(), missing = [], doubled = [];
		for (const { job, schedule, boundary } of runs) {
			const of = schedule + ' at ' + boundary;
			if ((jobs.get(of) ?? job) !== job) doubled.push(of);
			jobs.set(of, job);
		}
		let skipped = 0;
		for (let i = 0; i < %[1]d; i++) {
			const skips = await Array.fromAsync(eng.skips('s' + i));
			for (let at = %[2]d + i * 50; at < ends['s' + i]; at += 1000) {
				if (jobs.has('s' + i + ' at ' + at)) continue;
				if (skips.some(s => s.first <= at && at <= s.last)) skipped++;
				else missing.push('s' + i + ' at ' + at);
			}
		}
		return { missing, doubled, faults, fired: jobs.size, skipped, runs: runs.length, done: queue.done, dead: queue.dead };`, schedules, begin))
	t.Logf("%d fired, %d skipped, %d runs", o.Fired, o.Skipped, o.Runs)
	require.Empty(t, o.Faults)
	require.Empty(t, o.Missing)
	require.Empty(t, o.Doubled)
	require.Equal(t, o.Fired, o.Done)
	require.Zero(t, o.Dead)
	require.GreaterOrEqual(t, o.Fired, kills)
}

// Two tabs of the example share the schedules: what the one that follows asks for is
// done by the one that leads, and seen in both; the lead goes from one to the other.
func TestTabsExampleSharesItsSchedules(t *testing.T) {
	address := serve(t, "tabs")
	first := openPage(t, address, size(1440, 900), theme("light"))
	until := func(p *tab, condition string) {
		t.Helper()
		run(p, chromedp.Poll[any](`!!(`+condition+`)`, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0)))
	}
	until(first, `document.querySelectorAll('#schedules li').length === 2 && document.getElementById('role').textContent.endsWith('leads')`)
	second := openPage(t, address, size(1440, 900), theme("dark"))
	until(second, `document.querySelectorAll('#schedules li').length === 2 && document.getElementById('role').textContent.endsWith('follows')`)
	ask[any](second, `document.querySelector('#add [name=spec]').value = '@every 1s', document.querySelector('#add button').click()`)
	for _, p := range []*tab{first, second} {
		until(p, `document.querySelectorAll('#schedules li').length === 3 && document.querySelector('#log .done')`)
	}
	ask[any](second, `document.querySelector('#add [name=spec]').value = '* * * * *', document.querySelector('#add button').click()`)
	until(second, `document.getElementById('refused').textContent.includes('cron')`)
	until(first, `!document.getElementById('resign').disabled && document.querySelectorAll('#who li').length === 2`)
	for _, p := range []*tab{first, second} {
		require.Empty(t, p.axe(everything))
	}
	first.picture("tabs-light", false)
	second.picture("tabs-dark", false)
	for _, p := range []*tab{first, second} {
		p.do(size(390, 844))
		require.False(t, ask[bool](p, `document.documentElement.scrollWidth > document.documentElement.clientWidth`))
	}
	first.picture("tabs-390-light", true)
	second.picture("tabs-390-dark", true)
	first.do(chromedp.Click(chromedp.CSS("#resign")))
	until(second, `document.getElementById('role').textContent.endsWith('leads')`)
	until(first, `document.getElementById('role').textContent.endsWith('follows')`)
	ask[any](first, `[...document.querySelectorAll('#schedules li')].find(li => li.dataset.name === 'water the plants').querySelector('.remove').click()`)
	until(second, `document.querySelectorAll('#schedules li').length === 2`)
}
