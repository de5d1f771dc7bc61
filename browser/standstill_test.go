package browser

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// freeze hides a tab and has its timers stand still, as Chromium does with one that
// nobody has looked at for long; thaw has them go on, while it stays hidden.
func (p *tab) freeze() { p.life(page.SetWebLifecycleStateStateFrozen) }
func (p *tab) thaw()   { p.life(page.SetWebLifecycleStateStateActive) }

func (p *tab) life(state page.SetWebLifecycleStateState) {
	p.t.Helper()
	p.do(call(page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: state}))
}

// everySecond registers a schedule, whose runs come into the ledger.
const everySecond = `await eng.schedule('s', '@every 1s', 'work', { breaker: -1 });`

// once is what there is to say against the ledger and the schedule s: boundaries that
// fired twice, or that neither fired nor were skipped. It pauses the schedule.
const once = `
	await eng.pause('s');
	let queue;
	while ((queue = await eng.queue('work')).pending + queue.claimed > 0) await new Promise(resolve => setTimeout(resolve, 20));
	const wrong = [...faults], runs = new Map(), { next, anchor } = await eng.lookup('s');
	for (const { job, boundary } of await ledger()) {
		if ((runs.get(boundary) ?? job) !== job) wrong.push(boundary + ' fired twice');
		runs.set(boundary, job);
	}
	const skips = await Array.fromAsync(eng.skips('s'));
	for (let at = anchor + 1000; at < next; at += 1000) {
		if (!runs.has(at) && !skips.some(s => s.first <= at && at <= s.last)) wrong.push(at + ' is missing');
	}
	return wrong;`

// A tab that leads is frozen: another one leads then, and does what is due. The one
// that was frozen follows when it goes on.
func TestTabThatIsFrozenGivesUpTheLead(t *testing.T) {
	origin := site(t)
	frozen := visit(t, origin)
	with[any](frozen, works+everySecond+`await untilBegun(1)`)
	other := visit(t, origin)
	with[any](other, works)
	frozen.freeze()
	with[any](other, `await eng.lead(); await untilBegun(2)`)
	frozen.thaw()
	with[any](frozen, `await eng.trigger('s')`)
	require.Equal(t, []bool{false, true}, []bool{with[bool](frozen, `return eng.leading`), with[bool](other, `return eng.leading`)})
	require.Empty(t, with[[]string](other, once))
	require.Empty(t, with[[]string](frozen, `return faults`))
}

// A tab is frozen while it waits in line: the lead goes to the one behind it.
func TestTabThatIsFrozenInLineIsPassedOver(t *testing.T) {
	origin := site(t)
	var tabs [3]*tab
	for i := range tabs {
		tabs[i] = visit(t, origin)
		with[any](tabs[i], works)
		tabs[i].until(fmt.Sprintf(`leadership.leads || (await navigator.locks.query()).pending.length === %d`, i))
	}
	tabs[1].freeze()
	with[any](tabs[0], `await eng.lead(); leadership.resign()`)
	with[any](tabs[2], `await eng.lead()`)
	tabs[1].thaw()
	require.False(t, with[bool](tabs[1], `return leadership.leads`))
}

// A tab that leads answers nothing any more, as one that stands still without having
// been told that it will: one that can be seen takes the lead, and the first one
// follows.
func TestTabThatAnswersNothingIsOvertaken(t *testing.T) {
	origin := site(t)
	mute, other := visit(t, origin), visit(t, origin)
	with[any](mute, works+everySecond+`
		await untilBegun(1);
		window.say = BroadcastChannel.prototype.postMessage;
		BroadcastChannel.prototype.postMessage = () => {};`)
	with[any](other, `const { setInterval } = window; window.setInterval = (call, ms) => setInterval(call, ms / 40)`)
	with[any](other, works+`await eng.lead(); await untilBegun(2)`)
	with[any](mute, `BroadcastChannel.prototype.postMessage = say; await eng.trigger('s')`)
	require.Equal(t, []bool{false, true}, []bool{with[bool](mute, `return eng.leading`), with[bool](other, `return eng.leading`)})
	require.Empty(t, with[[]string](other, once))
	require.Empty(t, with[[]string](mute, `return faults`))
}

// A page goes to the browser's back/forward cache: another tab leads meanwhile, and
// the page follows when it comes back, as it was.
func TestPageInTheBackForwardCacheDoesNotLead(t *testing.T) {
	origin := site(t)
	cached, other := visit(t, origin), visit(t, origin)
	with[any](cached, works+everySecond+`await untilBegun(1)`)
	with[any](other, works)
	cached.do(chromedp.Navigate(origin + "/strict"))
	with[any](other, `await eng.lead(); await untilBegun(2)`)
	cached.back()
	require.True(t, with[bool](cached, `await eng.trigger('s'); return leadership.leads === false && begun >= 1`))
	require.Empty(t, with[[]string](other, once))
	require.Empty(t, with[[]string](cached, `return faults`))
}

// back goes back to a page that the browser has kept as it was.
func (p *tab) back() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	restored := make(chan page.NavigationType, 1)
	require.NoError(p.t, chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*page.EventFrameNavigated); ok {
			restored <- e.Type
		}
	}))
	ask[any](p, `setTimeout(() => history.back()), 0`)
	select {
	case how := <-restored:
		require.Equal(p.t, page.NavigationTypeBackForwardCacheRestore, how)
	case <-ctx.Done():
		require.NoError(p.t, ctx.Err())
	}
}

// A hidden tab is frozen, and the machine sleeps for twenty days: what was missed is
// caught up within its bound, the oldest first, and the rest is skipped with the
// reason.
func TestTabThatWasFrozenForDaysCatchesUpWithinBounds(t *testing.T) {
	p := visit(t, site(t))
	with[any](p, `
		const { now } = Date;
		window.shift = 0;
		Date.now = () => now() + shift;
		window.hour = 3600_000`)
	begin := with[float64](p, works+`
		const anchor = Date.now() - 1000;
		await eng.schedule('s', '@every 1h', 'work', { anchor });
		await eng.enqueue('work');
		await untilBegun(1);
		return anchor`)
	p.freeze()
	with[any](p, `shift = 480 * hour`)
	p.thaw()
	at := with[[]float64](p, fmt.Sprintf(`
		await untilBegun(65);
		await eng.pause('s');
		return (await ledger()).filter(run => run.schedule === 's').map(run => (run.boundary - %f) / hour)`, begin))
	require.Len(t, at, 64)
	for i, boundary := range at {
		require.EqualValues(t, i+1, boundary, "the oldest ones, in order, once")
	}
	require.Equal(t, []any{65., 480., 416., "cap", "hidden"}, with[[]any](p, fmt.Sprintf(`
		const skips = await Array.fromAsync(eng.skips('s'));
		const [{ first, last, count, reason }] = skips;
		return [(first - %[1]f) / hour, (last - %[1]f) / hour, count, reason, document.visibilityState];`, begin)))
	require.Empty(t, with[[]string](p, `return faults`))
}

// The timers of a hidden tab fire once a minute. A schedule of five seconds fires each
// of its boundaries all the same, each once, and in order.
func TestTabWhoseTimersFireOnceAMinuteFiresEveryBoundary(t *testing.T) {
	p := visit(t, site(t))
	with[any](p, `
		const { now } = Date;
		window.shift = 0;
		Date.now = () => now() + shift;
		const { setTimeout } = window, held = new Map();
		let last = 0;
		window.setTimeout = call => held.set(++last, call) && last;
		window.clearTimeout = timer => held.delete(timer);
		window.minute = async () => {
			while (held.size === 0) await new Promise(resolve => setTimeout(resolve, 5));
			shift += 60_000;
			const due = [...held.values()];
			held.clear();
			for (const call of due) call();
		};
		window.fired = [];
		const enough = {};
		window.untilFired = n => new Promise(resolve => Object.assign(enough, { n, resolve }));
		window.faults = [];
		window.eng = (await p.load()).open({ onEvent: e => {
			if (e.kind === 'fired') fired.push(e.boundary);
			if (e.kind === 'skipped') faults.push(e);
			if (fired.length >= enough.n) enough.resolve();
		} });
		window.anchor = Date.now() - 2500;
		p.start(eng, {}, { onError: e => faults.push(String(e)) });
		await eng.schedule('s', '@every 5s', 'work', { anchor })`)
	require.Equal(t, []any{true, 0.}, with[[]any](p, `
		for (let i = 1; i <= 10; i++) {
			const enough = untilFired(12 * i);
			await minute();
			await enough;
		}
		await eng.pause('s');
		return [fired.every((boundary, i) => boundary === anchor + 5000 * (i + 1)), faults.length]`))
}
