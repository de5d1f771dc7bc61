package browser

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// works opens an engine in a tab that shares its state and the lead with other
// tabs, and runs it. Its handler enters each run of a job into a ledger, a database
// of its own, which takes none twice. The first try of a job that says "hang" never
// ends.
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
	window.running = p.start(eng, { work: async job => {
		const { id, attempt, schedule, boundary } = job;
		await enter({ job: id, attempt, schedule, boundary }).catch(() => faults.push('job ' + id + ' was begun twice as attempt ' + attempt));
		window.begun++;
		window.enough?.();
		if (attempt === 1 && job.text() === 'hang') await new Promise(() => {});
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

// A tab is reloaded while its handler is at work: the job is tried again when its
// claim has lapsed, and done.
func TestTabReloadedInTheMiddleOfARunTriesAgain(t *testing.T) {
	p := visit(t, site(t))
	with[any](p, works+`await eng.enqueue('work', 'hang', { visibilityMS: 1000 }); await untilBegun(1)`)
	p.do(chromedp.Reload())
	require.Equal(t, []float64{1, 2}, with[[]float64](p, works+`
		await untilBegun(1);
		while ((await eng.queue('work')).done === 0) await new Promise(resolve => setTimeout(resolve, 20));
		return (await ledger()).map(run => run.attempt);`))
}

// The clock is set forward, back, and forward again: what was missed is caught up, and
// nothing fires twice.
func TestTabWhoseClockIsSetFiresNothingTwice(t *testing.T) {
	p := visit(t, site(t))
	with[any](p, `
		const real = Date.now;
		window.shift = 0;
		Date.now = () => real() + shift;`)
	at := with[[]float64](p, works+`
		const begin = Date.now(), hour = 3_600_000;
		await eng.schedule('s', '@every 1h', 'work', { anchor: begin + hour });
		shift = 5.5 * hour;
		await untilBegun(5);
		for (const hours of [2.5, 5.4, 1.5]) {
			shift = hours * hour;
			const before = begun;
			await eng.enqueue('work', '', { runAt: Date.now() });
			await untilBegun(before + 1);
		}
		shift = 6.5 * hour;
		await untilBegun(9);
		return (await ledger()).filter(run => run.schedule === 's').map(run => (run.boundary - begin) / hour);`)
	require.Equal(t, []float64{1, 2, 3, 4, 5, 6}, at)
	require.Empty(t, with[[]string](p, `return faults`))
}

// Without room in the origin nothing is promised and nothing begun; once there is
// room the engine goes on, and what it promised is there after a reload.
func TestTabWithoutRoomGoesOnWhenThereIs(t *testing.T) {
	origin := site(t)
	p := visit(t, origin)
	little := 300_000.
	p.do(quota(origin, &little))
	require.Equal(t, []any{"full", "full", 1.}, with[[]any](p, works+`
		await eng.enqueue('work', 'a');
		await untilBegun(1);
		const noise = new Uint8Array(50_000).map(() => 256 * Math.random()); // since the browser packs what it stores
		let fault = 'none';
		for (let n = 0; n < 20 && fault === 'none'; n++) fault = await code(eng.enqueue('other', noise));
		return [fault, await code(eng.enqueue('work', 'b')), begun];`))
	p.do(quota(origin, nil))
	with[any](p, `
		await eng.enqueue('work', 'c');
		window.promised = (await eng.queue('other')).pending;
		while ((await eng.queue('work')).pending > 0) await new Promise(resolve => setTimeout(resolve, 20));`)
	promised := with[float64](p, `return promised`)
	p.do(chromedp.Reload())
	require.Equal(t, promised, with[float64](p, works+`return (await eng.queue('other')).pending`))
}

// What keeps the module from being compiled is said together with what to do.
func TestLoadSaysWhatTheServerHasToDo(t *testing.T) {
	origin := site(t)
	why := `return p.load(%s).then(() => 'loaded', e => e.code + ': ' + e.message)`
	strict := visit(t, origin+"/strict")
	require.Contains(t, with[string](strict, fmt.Sprintf(why, "")), "load: ")
	require.Contains(t, with[string](strict, fmt.Sprintf(why, "")), "'wasm-unsafe-eval'")
	p := visit(t, origin)
	require.Contains(t, with[string](p, fmt.Sprintf(why, `{ wasmURL: '/page.wasm' }`)), "is a page, no module")
	require.Contains(t, with[string](p, fmt.Sprintf(why, `{ wasmURL: '/none.wasm' }`)), "404")
	require.Equal(t, "loaded", with[string](p, fmt.Sprintf(why, `{ wasmURL: '/bytes.wasm' }`)))
	require.Equal(t, "loaded", with[string](p, fmt.Sprintf(why, "")))
}

// Two tabs of the example share the schedules: what the one that follows asks for is
// done by the one that leads, and seen in both; the lead goes from one to the other
// when it is given up, and when the leader is killed.
func TestTabsExampleSharesItsSchedules(t *testing.T) {
	address := serve(t, "tabs")
	first := openPage(t, address, size(1440, 900), theme("light"))
	const schedules, role = `document.querySelectorAll('#schedules li').length`, `document.body?.dataset.role`
	first.until(schedules + ` === 2 && ` + role + ` === 'leads'`)
	second := openPage(t, address, size(1440, 900), theme("dark"))
	second.until(schedules + ` === 2 && ` + role + ` === 'follows'`)
	add := func(spec string) {
		t.Helper()
		ask[any](second, `document.querySelector('#add [name=spec]').value = '`+spec+`', document.querySelector('#add button').click()`)
	}
	add("@every 1s")
	for _, p := range []*tab{first, second} {
		p.until(schedules + ` === 3 && document.querySelector('#log .done')`)
	}
	add("* * * * *")
	const refused = `document.getElementById('refused').textContent`
	second.until(refused + `.includes('cron')`)
	second.do(chromedp.Click(chromedp.CSS("#schedules li:first-child .now")))
	second.until(`document.querySelector('#log .triggered')`)
	require.Contains(t, second.text(refused), "cron", "what was refused is said until it is done or dismissed")
	first.until(`!document.getElementById('resign').disabled && document.querySelectorAll('#who li').length === 2`)
	for _, p := range []*tab{first, second} {
		require.Empty(t, p.axe(everything))
	}
	first.picture("tabs-1440-light", true)
	second.picture("tabs-1440-dark", true)
	for _, p := range []*tab{first, second} {
		p.do(size(390, 844))
		require.False(t, ask[bool](p, `document.documentElement.scrollWidth > document.documentElement.clientWidth`))
	}
	first.picture("tabs-390-light", true)
	second.picture("tabs-390-dark", true)
	second.do(chromedp.Click(chromedp.CSS("#refused button")))
	require.Empty(t, second.text(refused))

	first.do(chromedp.Click(chromedp.CSS("#resign")))
	second.until(role + ` === 'leads'`)
	first.until(role + ` === 'follows'`)
	ask[any](first, `[...document.querySelectorAll('#schedules li')].find(li => li.dataset.name === 'water the plants').querySelector('.remove').click()`)
	second.until(schedules + ` === 2`)
	first.do(size(1440, 900), chromedp.Click(chromedp.CSS("#kill")))
	first.until(role + ` === 'leads' && document.querySelectorAll('#who li').length === 1`)
	second.until(`document.title === 'killed'`)
	require.Empty(t, second.axe(everything))
	second.picture("tabs-killed-390-dark", false)
	first.until(`document.querySelectorAll('.chart g').length >= 2`)
	first.picture("tabs-leads-again-1440-light", false)
	second.do(chromedp.Click(chromedp.CSS("a.button")))
	second.until(role + ` === 'follows' && ` + schedules + ` === 2`)
}

// Without the module the example says so, and offers to try again.
func TestTabsExampleSaysWhyThereIsNoEngine(t *testing.T) {
	p := newTab(t, func(*tab, any) {})
	p.do(size(390, 844), theme("light"), call(network.Enable, network.EnableParams{}),
		call(network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: "*://*:*/*.wasm", Block: true}}}))
	p.do(chromedp.Navigate(serve(t, "tabs")))
	p.until(`document.querySelector('[role=alert] h2')`)
	require.Contains(t, p.text(`document.querySelector('[role=alert]').textContent`), "tickonce.wasm cannot be fetched")
	require.Empty(t, p.axe(everything))
	p.picture("tabs-failed-390-light", false)
}
