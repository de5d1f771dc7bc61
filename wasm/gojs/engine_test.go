//go:build js

package gojs

import (
	"context"
	"syscall/js"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

// TestMain gives Node the targets of a page's events.
func TestMain(m *testing.M) {
	for _, name := range []string{"document", "window"} {
		if !js.Global().Get(name).Truthy() {
			js.Global().Set(name, js.Global().Get("EventTarget").New())
		}
	}
	m.Run()
}

// page is an engine, and scripts that see it as tickonce.
type page struct {
	*Engine
	t *testing.T
}

func open(t *testing.T, c tickonce.Config) page {
	e, _, err := Open(c, memengine.Durable{})
	require.NoError(t, err)
	t.Cleanup(e.Release)
	return page{e, t}
}

// begin begins an async script, and answers the promise of what it returns.
func (p page) begin(script string) js.Value {
	return js.Global().Get("Function").New("tickonce", "return (async () => {"+script+"})()").Invoke(p.Object())
}

// run answers what the script returns, as JSON.
func (p page) run(script string) string {
	p.t.Helper()
	v, err := awaited(p.begin(script))
	require.NoError(p.t, err)
	return js.Global().Get("JSON").Call("stringify", v).String()
}

func TestCallsTakeAndAnswerObjects(t *testing.T) {
	p := open(t, tickonce.Config{})
	require.JSONEq(t, `["mail", "number", {"done":true}, {}]`, p.run(`
		const { schedule } = await tickonce.call('schedule', { name: 'ü', spec: '@every 5m', queue: 'mail', payload: btoa('x') });
		return [schedule.queue, typeof schedule.next,
			await tickonce.call('unschedule', { name: 'ü' }), await tickonce.call('lookup', { name: 'ü' })];`))
	require.JSONEq(t, `["begun", "a", 1, [true], [false]]`, p.run(`
		await tickonce.call('enqueue', { queue: 'a' });
		const { records: [job] } = await tickonce.call('claim', { queue: 'a', worker: 'page' });
		const claims = [{ job: job.job, attempt: job.attempt }];
		return [job.kind, job.queue, job.attempt, (await tickonce.call('ack', { claims })).acked, (await tickonce.call('ack', { claims })).acked];`))
	require.JSONEq(t, `{}`, p.run(`return await tickonce.call('schedules');`))
}

// Whatever a page asks for is refused by an error with a code, and the engine
// answers afterwards as before.
func TestRefusalsAreErrorsWithCodes(t *testing.T) {
	p := open(t, tickonce.Config{})
	for script, code := range map[string]string{
		`tickonce.call()`:                       "invalid_request",
		`tickonce.call(7)`:                      "invalid_request",
		`tickonce.call('nothing')`:              "invalid_request",
		`tickonce.call('lookup', () => 1)`:      "invalid_request",
		`tickonce.call('lookup', null)`:         "invalid_request",
		`tickonce.call('lookup', [])`:           "invalid_request",
		`tickonce.call('lookup', { nam: 'a' })`: "invalid_request",
		`tickonce.call('lookup', { name: 1 })`:  "invalid_request",
		`tickonce.call('start')`:                "invalid_request",
		`tickonce.call('recovery')`:             "invalid_request",
		`tickonce.call('schedule', { name: 'a', spec: 'often', queue: 'q' })`: "invalid_spec",
		`tickonce.call('trigger', { name: 'a' })`:                             "not_found",
		`tickonce.work()`:                                                       "invalid_request",
		`tickonce.work({ queue: 'a' }, 'handler')`:                              "invalid_request",
		`tickonce.work({ queue: 'a' }, () => {}, {})`:                           "invalid_request",
		`tickonce.work({ queue: '' }, () => {})`:                                "invalid_name",
		`tickonce.work({ queue: 'a', options: { concurrency: -1 } }, () => {})`: "invalid_option",
		`tickonce.listen({})`:                                                   "invalid_request",
		`tickonce.listen(() => {}, 1)`:                                          "invalid_request",
	} {
		require.JSONEq(t, `["Error", "`+code+`", true]`, p.run(`
			try { await `+script+`; return 'no error'; } catch (e) { return [e.constructor.name, e.code, e.message !== '']; }`), script)
	}
	require.JSONEq(t, `["cyclic", "of a getter"]`, p.run(`
		const o = {}; o.o = o;
		const said = [];
		try { await tickonce.call('lookup', o); } catch (e) { said.push(e instanceof TypeError ? 'cyclic' : e.message); }
		try { await tickonce.call('lookup', { get name() { throw new Error('of a getter'); } }); } catch (e) { said.push(e.message); }
		return said;`), "what JavaScript throws goes back as it is")
	require.JSONEq(t, `{}`, p.run(`return await tickonce.call('schedules');`))
}

// A page's handler ends a run as a handler of Go does: well, with a failure and
// its marks, or by what is no error at all.
func TestHandlersOfThePageSettleTheirJobs(t *testing.T) {
	p := open(t, tickonce.Config{})
	require.JSONEq(t, `{"dead":["7","forbidden","no such host","null","undefined"],"done":1,"retried":1,"later":true}`, p.run(`
		const stop = new AbortController();
		const options = { maxAttempts: 1 };
		for (const payload of ['well', 'permanent', 'rejects', 'null', 'nothing', '7']) {
			await tickonce.call('enqueue', { queue: 'q', payload: btoa(payload), options: payload === 'permanent' ? { maxAttempts: 5 } : options });
		}
		await tickonce.call('enqueue', { queue: 'q', payload: btoa('later'), options: { maxAttempts: 2 } });
		await tickonce.work({ queue: 'q' }, (job, signal) => {
			if (!(signal instanceof AbortSignal) || signal.aborted) throw new Error('no signal');
			switch (atob(job.payload)) {
			case 'well': return { then(done) { done(1); } };
			case 'permanent': throw Object.assign(new Error('forbidden'), { permanent: true });
			case 'rejects': return Promise.reject(new Error('no such host'));
			case 'null': return Promise.reject(null);
			case 'nothing': return Promise.reject();
			case '7': throw 7;
			case 'later': stop.abort(); throw Object.assign(new Error('busy'), { retryAfter: { forMS: 3600000 } });
			}
		}, stop.signal);
		const { queue } = await tickonce.call('queue', { queue: 'q' });
		const { dead } = await tickonce.call('dead', { queue: 'q' });
		const later = queue.nextClaimAt - Date.now() > 1800000; // an hour, not a backoff
		return { dead: dead.map((job) => job.lastError).sort(), done: queue.done, retried: queue.retried, later };`))
}

// A delay that no clock can wait is a long one, and what is no number is none:
// the job is tried again by its retry curve, and the error is the handler's.
func TestDelaysOfThePageMayBeAnything(t *testing.T) {
	p := open(t, tickonce.Config{})
	require.JSONEq(t, `[["later", true], ["dead", "busy"], ["dead", "busy"], ["dead", "busy"]]`, p.run(`
		const said = [];
		for (const [i, forMS] of [1e300, NaN, 'soon', undefined].entries()) {
			const stop = new AbortController();
			const queue = 'q' + i, options = { maxAttempts: i === 0 ? 2 : 1 };
			await tickonce.call('enqueue', { queue, options });
			await tickonce.work({ queue }, () => {
				stop.abort();
				throw Object.assign(new Error('busy'), { retryAfter: { forMS } });
			}, stop.signal);
			const { dead } = await tickonce.call('dead', { queue });
			if (dead) said.push(['dead', dead[0].lastError]);
			else said.push(['later', (await tickonce.call('queue', { queue })).queue.nextClaimAt - Date.now() > 1e12]);
		}
		return said;`))
}

// What a handler stages and says of its run is written with its end, and behind
// that it has nothing to say.
func TestX1X2HandlersOfThePageDeliverAndSummarize(t *testing.T) {
	p := open(t, tickonce.Config{})
	require.JSONEq(t, `{"delivered":["hi",1],"summary":"sent 3","late":["claim_lost","claim_lost"],"done":1}`, p.run(`
		const stop = new AbortController(), said = { late: [] };
		await tickonce.call('enqueue', { queue: 'q' });
		let claim;
		await tickonce.work({ queue: 'q' }, async (job) => {
			claim = { job: job.job, attempt: job.attempt };
			stop.abort();
			await tickonce.call('deliver', { claim, outbox: 'webhook', payload: btoa('hi') });
			await tickonce.call('summarize', { claim, text: 'sent 3' });
		}, stop.signal);
		if (!(await tickonce.call('queue', { outbox: 'webhook' })).queue.pending) return 'nothing is delivered';
		for (const [op, rest] of [['deliver', { outbox: 'webhook' }], ['summarize', { text: 'more' }]]) {
			await tickonce.call(op, { claim, ...rest }).catch((e) => said.late.push(e.code));
		}
		const delivered = new AbortController();
		await tickonce.work({ outbox: 'webhook' }, (job) => {
			said.delivered = [atob(job.payload), job.origin];
			delivered.abort();
		}, delivered.signal);
		said.summary = (await tickonce.call('details')).details[0].summary;
		said.done = (await tickonce.call('queue', { queue: 'q' })).queue.done;
		return said;`))
}

// Which failures of a delivery may pass is read from the error: the first mark
// along its causes counts, and a timeout needs none.
func TestX6FailedDeliveriesOfThePage(t *testing.T) {
	p := open(t, tickonce.Config{})
	for thrown, want := range map[string]string{
		`new Error('refused')`:                                                                                              "permanent refused",
		`new DOMException('too late', 'TimeoutError')`:                                                                      "transient too late",
		`new Error('in vain', { cause: new DOMException('', 'TimeoutError') })`:                                             "transient in vain",
		`Object.assign(new Error('busy'), { transient: true })`:                                                             "transient busy",
		`new Error('busy', { cause: Object.assign(new Error(), { transient: true }) })`:                                     "transient busy",
		`Object.assign(new DOMException('gone', 'TimeoutError'), { permanent: true })`:                                      "permanent gone",
		`Object.assign(new Error('gone', { cause: Object.assign(new Error(), { transient: true }) }), { permanent: true })`: "permanent gone",
		`Object.assign(new Error('soon'), { retryAfter: { forMS: 60000 } })`:                                                "transient soon",
		`Object.assign(new Error('soon'), { retryAfter: { forMS: 'a minute' } })`:                                           "permanent soon",
		`(() => { const e = new Error('round'); e.cause = e; return e; })()`:                                                "permanent round",
		`new TypeError()`: "permanent TypeError",
		`'no object'`:     "permanent no object",
	} {
		require.JSONEq(t, `"`+want+`"`, p.run(`
			const working = new AbortController(), delivering = new AbortController();
			const outbox = String(Math.random());
			await tickonce.call('enqueue', { queue: 'q' });
			await tickonce.work({ queue: 'q' }, async (job) => {
				working.abort();
				await tickonce.call('deliver', { claim: { job: job.job, attempt: job.attempt }, outbox });
			}, working.signal);
			if (!(await tickonce.call('queue', { outbox })).queue.pending) return 'nothing is delivered';
			await tickonce.work({ outbox }, () => { delivering.abort(); throw `+thrown+`; }, delivering.signal);
			const { details } = await tickonce.call('details');
			const { delivery, error } = details.at(-1);
			return delivery + ' ' + error;`), thrown)
	}
}

// The signal of a run is aborted when its worker stops for good, with a reason
// that has a code; the handler may settle then.
func TestRunsAreAbortedWhenTheWorkerStops(t *testing.T) {
	p := open(t, tickonce.Config{})
	require.JSONEq(t, `["stopped", true]`, p.run(`
		const stop = new AbortController();
		await tickonce.call('enqueue', { queue: 'q' });
		let reason;
		await tickonce.work({ queue: 'q', options: { stopTimeoutMS: 1 } }, (job, signal) => new Promise((done) => {
			signal.addEventListener('abort', () => { reason = signal.reason; done(); });
			stop.abort();
		}), stop.signal);
		const aborted = AbortSignal.abort();
		await tickonce.work({ queue: 'q' }, () => { throw new Error('no job is handed out'); }, aborted);
		return [reason.code, (await tickonce.call('queue', { queue: 'q' })).queue.done === 1];`))
}

func TestListenersHearEventsUntilTheirSignal(t *testing.T) {
	var before int
	p := open(t, tickonce.Config{Observer: func(tickonce.Event) { before++ }})
	require.JSONEq(t, `{"heard":["scheduled a","scheduled b"],"other":3}`, p.run(`
		const stop = new AbortController(), heard = [];
		let other = 0;
		const error = console.error;
		console.error = () => {};
		await tickonce.listen(() => { throw new Error('a fault of the page'); });
		await tickonce.listen((event) => { heard.push(event.kind + ' ' + event.schedule); if (heard.length === 2) stop.abort(); }, stop.signal);
		await tickonce.listen(async () => { other++; await tickonce.call('schedules'); });
		for (const name of ['a', 'b', 'c']) await tickonce.call('schedule', { name, spec: '@every 5m', queue: 'q' });
		console.error = error;
		return { heard, other };`))
	require.Equal(t, 3, before, "the program's own observer")
}

// Nothing listens whose signal could never end it.
func TestListenerWithAMalformedSignalIsRefused(t *testing.T) {
	p := open(t, tickonce.Config{})
	require.JSONEq(t, `{"refused":["no AbortSignal","no AbortSignal","no AbortSignal"],"heard":0}`, p.run(`
		let heard = 0;
		const refused = [];
		for (const signal of [5, { aborted: false }, { aborted: false, addEventListener() {} }]) {
			await tickonce.listen(() => { heard++; }, signal).catch((error) => refused.push(error.message.match(/no AbortSignal$/)?.[0]));
		}
		await tickonce.call('schedule', { name: 'a', spec: '@every 5m', queue: 'q' });
		return { refused, heard };`))
}

func TestReleasedObjectHasNoFunctions(t *testing.T) {
	e, _, err := Open(tickonce.Config{}, memengine.Durable{})
	require.NoError(t, err)
	p := page{e, t}
	p.run(`globalThis.heard = 0; await tickonce.listen(() => { globalThis.heard++; });`)
	e.Release()
	require.JSONEq(t, `[]`, p.run(`return Object.keys(tickonce);`))
	_, err = e.Enqueue(context.Background(), "q", nil, tickonce.EnqueueOptions{})
	require.NoError(t, err, "the engine goes on")
	require.Equal(t, 0, js.Global().Get("heard").Int(), "the listener is forgotten")
}

// What is due fires as soon as the page is seen again: the loop's wait of a
// second is over early.
func TestWaitsAreOverWhenThePageIsSeenAgain(t *testing.T) {
	c := Clock()
	require.Same(t, c, Clock())
	for _, of := range [...]struct{ target, event string }{
		{"document", "visibilitychange"}, {"document", "resume"}, {"window", "pageshow"}, {"window", "online"},
	} {
		one, two := c.After(time.Hour), c.After(2*time.Hour)
		js.Global().Get(of.target).Call("dispatchEvent", js.Global().Get("Event").New(of.event))
		<-one
		<-two
	}
	require.Empty(t, c.(*clock).waiting, "none is kept")
	<-c.After(time.Millisecond)
	require.Empty(t, c.(*clock).waiting)
}
