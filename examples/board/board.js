// A board of the schedules of an engine: what fires when, what they can be told to
// do, and what happened.

const lines = 60; // of the log
const kept = 5 * 60e3; // how far back the picture can go
const lateMS = 1500;
const ends = ['done', 'retried', 'died'];

const parts = `
	<section class="card chart" id="picture" aria-labelledby="when">
		<h2 class="unseen" id="when">What fires when</h2>
		<svg id="chart" role="img"></svg>
		<ul class="legend" aria-label="Legend">
			<li>${sign('<circle cx="8" cy="7" r="4" class="m-done"/>')}fired, and done</li>
			<li>${sign('<circle cx="8" cy="7" r="4" class="m-hand"/>')}in hand</li>
			<li>${sign('<path d="M5 3l7 4-7 4z" class="m-late"/>')}late</li>
			<li>${sign('<path d="M8 2l5 5-5 5-5-5z" class="m-done"/>')}run by hand</li>
			<li>${sign('<rect x="1" y="3" width="14" height="8" rx="4" class="m-skipped"/>')}skipped</li>
			<li>${sign('<path d="M5 4l6 6m0-6l-6 6" class="m-bad"/>')}failed</li>
			<li>${sign('<path d="M8 3v8" class="m-due"/>')}due</li>
		</ul>
	</section>
	<div class="two">
		<section aria-labelledby="running">
			<div class="heading"><h2 id="running" tabindex="-1">Schedules</h2></div>
			<div class="card">
				<p class="waiting" id="waiting">Waiting for the engine …</p>
				<p class="empty" id="none" hidden>Nothing is scheduled. Add something below.</p>
				<ul id="schedules"></ul>
				<form id="add">
					<h3>Add a schedule</h3>
					<label>Name <input name="name" required maxlength="128" value="water the plants" autocomplete="off"></label>
					<label>When <input name="spec" required value="@every 10s" autocomplete="off" spellcheck="false" aria-describedby="specs"></label>
					<button class="main">Add</button>
					<p class="unseen" id="specs">Such as @every 10s, @every 5m, @every 2h.</p>
					<div class="refused" id="refused" role="alert"></div>
				</form>
			</div>
		</section>
		<section aria-labelledby="happened">
			<div class="heading"><h2 id="happened">What happened</h2><p>the newest first</p></div>
			<div class="card">
				<p class="empty" id="nothing">Nothing yet.</p>
				<ol id="log" tabindex="0" aria-labelledby="happened"></ol>
			</div>
		</section>
	</div>
	<p id="said" class="unseen" role="status"></p>`;

function sign(mark) {
	return `<svg width="16" height="14" aria-hidden="true">${mark}</svg>`;
}

const byId = (id) => document.getElementById(id);
const make = (tag, className, text) => Object.assign(document.createElement(tag), { className, textContent: text ?? '' });

function draws(tag, attributes, ...children) {
	const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
	for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
	element.append(...children);
	return element;
}

export const clock = (at) => new Date(at).toTimeString().slice(0, 8);

const periodOf = (spec) => {
	const [, n, unit] = /^@every (\d+)([smhd])$/.exec(spec) ?? [0, 1, 'h'];
	return n * { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3 }[unit];
};

const reasons = { policy: 'only the newest is wanted', cap: 'more than 64 at once', paused: 'it was paused', overlap: 'the last one was still in hand' };

// What an event says, of those that are shown: a word, and more.
const says = {
	leads: () => ['leads'],
	fired: (e) => ['fired', `for ${clock(e.boundary)}` + (e.at - e.boundary > lateMS ? `, ${Math.round((e.at - e.boundary) / 1000)} s late` : '')],
	skipped: (e) => ['skipped', `${e.count} missed: ${reasons[e.reason] ?? e.reason}`],
	triggered: () => ['run by hand'],
	done: (e) => ['done', e.summary || (e.boundary ? `for ${clock(e.boundary)}` : '')],
	retried: (e) => ['will be tried again', e.error ?? e.reason ?? ''],
	died: (e) => ['given up', e.error ?? e.reason ?? ''],
	paused: () => ['paused'],
	resumed: () => ['resumed'],
	scheduled: () => ['scheduled'],
	unscheduled: () => ['removed'],
	fault: (e) => ['fault', e.reason],
};

/**
 * Makes a board in an element. The engine answers `schedules()`, rows with name,
 * spec, next and paused, and `past(name)`, runs with job, boundary, at and state, and
 * does `pause`, `resume`, `trigger`, `remove` of a name, and `add(name, spec)`. `lane`
 * names what `state` tells of.
 */
export function board(place, engine, lane) {
	place.innerHTML = parts;
	const rows = [], fires = new Map(), skips = [], states = [];

	/** Shows an event of the engine; who saw to it, if there is a choice. */
	function happened(event, by) {
		const fire = fires.get(event.job);
		if (event.kind === 'fired') fires.set(event.job, { ...event, state: 'hand' });
		else if (event.kind === 'triggered') fires.set(event.job, { ...event, boundary: undefined, state: 'hand' });
		else if (event.kind === 'skipped') skips.push(event);
		else if (fire && ends.includes(event.kind)) fire.state = event.kind;
		else if (event.schedule && ends.includes(event.kind)) fires.set(event.job, { ...event, at: event.boundary ?? event.at, state: event.kind }); // begun before this page was there
		if (says[event.kind]) log(event, by);
		if (!ends.includes(event.kind)) void refresh();
	}

	function log(event, by) {
		const [word, more = ''] = says[event.kind](event);
		const line = make('li', event.kind + (event.at - event.boundary > lateMS && event.kind === 'fired' ? ' late' : ''));
		const what = make('span');
		what.append(make('bdi', '', event.schedule ?? event.who ?? event.queue), ' ', make('b', '', word), ' ', more);
		line.append(make('time', '', clock(event.at)), what);
		if (by) line.append(make('small', '', by));
		byId('log').prepend(line);
		byId('nothing').hidden = true;
		if (byId('log').children.length > lines) byId('log').lastElementChild.remove();
	}

	/** Reads the schedules; what cannot be read now is read after the next event. */
	async function refresh() {
		const found = await engine.schedules().catch(() => undefined);
		if (!found) return;
		rows.splice(0, rows.length, ...found);
		byId('waiting').hidden = true;
		byId('none').hidden = rows.length > 0;
		const known = new Map([...byId('schedules').children].map((li) => [li.dataset.name, li]));
		for (const [name, li] of known) {
			if (!rows.some((row) => row.name === name)) li.remove();
		}
		for (const [i, row] of rows.entries()) {
			const li = known.get(row.name) ?? item(row.name);
			if (!li.isConnected) byId('schedules').insertBefore(li, byId('schedules').children[i] ?? null);
			li.classList.toggle('paused', row.paused);
			const pause = li.querySelector('.pause');
			pause.textContent = row.paused ? 'Resume' : 'Pause';
			pause.ariaLabel = `${pause.textContent} ${row.name}`;
			li.querySelector('.spec').textContent = row.spec;
		}
		draw();
	}

	function item(name) {
		const li = make('li'), row = make('div', 'row'), bar = make('div', 'bar'), acts = make('div', 'actions'), refused = make('div', 'refused');
		li.dataset.name = name;
		refused.role = 'alert';
		row.append(make('bdi', 'name', name), make('span', 'spec'), make('span', 'next'));
		bar.append(make('i'));
		const does = {
			now: ['Run now', () => engine.trigger(name)],
			pause: ['Pause', () => (rows.find((row) => row.name === name)?.paused ? engine.resume(name) : engine.pause(name))],
			remove: ['Remove', () => engine.remove(name)],
		};
		for (const [key, [text, operation]] of Object.entries(does)) {
			const button = make('button', key, text);
			button.type = 'button';
			button.ariaLabel = `${text} ${name}`;
			button.onclick = () => act(button, refused, operation);
			acts.append(button);
		}
		li.append(row, bar, acts, refused);
		return li;
	}

	/** Does what a button says. What is refused is said beside it until it is done or dismissed. */
	async function act(button, refused, operation) {
		if (button.ariaBusy === 'true') return;
		button.ariaBusy = 'true'; // and not disabled, which would lose the focus
		const next = button.closest('li')?.nextElementSibling?.querySelector('.' + button.className) ?? byId('running');
		try {
			await operation();
			refused.replaceChildren();
		} catch (error) {
			const dismiss = make('button', '', 'Dismiss');
			dismiss.type = 'button';
			dismiss.onclick = () => {
				refused.replaceChildren();
				button.focus();
			};
			refused.replaceChildren(make('span', '', error.message), dismiss);
		} finally {
			button.ariaBusy = null;
		}
		const focused = document.activeElement === button;
		await refresh();
		if (focused && !button.isConnected) next.focus();
	}

	byId('add').onsubmit = (submitted) => {
		submitted.preventDefault();
		const { name, spec } = Object.fromEntries(new FormData(byId('add')));
		void act(byId('add').querySelector('button'), byId('refused'), () => engine.add(name, spec));
	};

	/** What the first lane of the picture shows from now on. */
	function state(text, kind = '', at = Date.now()) {
		const last = states.at(-1);
		if (last?.text === text) return;
		if (last) last.to = at;
		states.push({ text, kind, from: at });
		draw();
	}

	function forget(now) {
		while (states.length > 1 && states[0].to < now - kept) states.shift();
		while (skips.length > 0 && skips[0].at < now - kept) skips.shift();
		for (const [job, { at, state }] of fires) {
			if (at < now - kept && state !== 'hand') fires.delete(job);
		}
	}

	function draw() {
		const now = Date.now();
		forget(now);
		for (const row of rows) {
			const li = [...byId('schedules').children].find((li) => li.dataset.name === row.name);
			const left = Math.max(0, row.next - now);
			li.querySelector('.next').textContent = row.paused ? 'paused' : left < 90e3 ? `in ${Math.ceil(left / 1000)} s` : `in ${Math.ceil(left / 60e3)} min`;
			li.querySelector('i').style.transform = `scaleX(${row.paused ? 0 : 1 - Math.min(1, left / periodOf(row.spec))})`;
		}
		if (document.visibilityState === 'visible') chart(now);
	}

	function chart(now) {
		const svg = byId('chart'), width = svg.clientWidth, narrow = width < 600;
		const gutter = narrow ? 12 : 184, top = 26, high = narrow ? 44 : 32, head = narrow ? 50 : 42;
		const [past, ahead] = narrow ? [40e3, 10e3] : [100e3, 20e3];
		const scale = (width - gutter) / (past + ahead), from = now - past, until = now + ahead;
		const x = (at) => gutter + (at - from) * scale;
		const height = top + head + Math.max(1, rows.length) * high + 6;
		svg.setAttribute('height', height);
		svg.setAttribute('aria-label', `${states.at(-1)?.text ?? ''}. ${rows.map((row) => `${row.name}: ${[...fires.values()].filter((f) => f.schedule === row.name && f.at >= from).length} fired`).join('; ')} in the last ${past / 1000} seconds.`);
		const plot = draws('svg', { x: gutter, width: width - gutter, height, viewBox: `${gutter} 0 ${width - gutter} ${height}` });
		const names = [], add = (...marks) => plot.append(...marks);
		const label = (text, y, size) => {
			const most = narrow ? 40 : 24;
			names.push(draws('text', { x: narrow ? 12 : 18, y: narrow ? y - size / 2 + 14 : y + 4 }, text.length > most ? text.slice(0, most - 1) + '…' : text));
		};

		add(draws('rect', { class: 'ahead', x: x(now), y: 0, width: Math.max(0, width - x(now)), height }));
		const step = narrow ? 10e3 : 20e3;
		for (let at = Math.ceil(from / step) * step; at <= until; at += step) {
			add(draws('line', { class: 'grid', x1: x(at), x2: x(at), y1: top - 4, y2: height }));
			if (x(at) + 54 < width) add(draws('text', { class: 'axis', x: x(at) + 4, y: 17 }, clock(at)));
		}

		const middle = top + head / 2 + (narrow ? 8 : 0);
		label(lane, top + head / 2, head);
		for (const { text, kind, from: begun, to = now } of states.filter((s) => !(s.to < from))) {
			const [left, right] = [Math.max(x(begun), gutter - 4), x(to)], wide = Math.max(2, right - left);
			const bar = draws('g', { class: kind }, draws('title', {}, `${text}, from ${clock(begun)}`), draws('rect', { class: 'state', x: left, y: middle - 9, width: wide, height: 18, rx: 2 }));
			if (kind !== 'nobody') bar.append(draws('rect', { class: 'state-edge', x: left, y: middle - 9, width: 2.5, height: 18 }));
			if (wide > text.length * 6.6 + 14) bar.append(draws('text', { class: 'state-text', x: Math.max(left, gutter) + 9, y: middle + 4 }, text));
			add(bar);
		}

		rows.forEach((row, i) => {
			const begins = top + head + i * high, y = begins + high / 2 + (narrow ? 8 : 0);
			label(row.name, begins + high / 2, high);
			add(draws('line', { class: 'lane', x1: gutter, x2: width, y1: y, y2: y }));
			const every = periodOf(row.spec);
			for (let at = row.next; !row.paused && at <= until; at += every) add(draws('path', { class: 'm-due', d: `M${x(at)} ${y - 5}v10` }));
			for (const skip of skips.filter((s) => s.schedule === row.name && s.last >= from)) {
				const [left, right] = [Math.max(gutter - 8, x(skip.first) - 5), x(skip.last) + 5];
				add(draws('rect', { class: 'm-skipped', x: left, y: y - 5, width: right - left, height: 10, rx: 5 }, draws('title', {}, `${skip.count} skipped: ${reasons[skip.reason] ?? skip.reason}`)));
			}
			for (const fire of fires.values()) {
				if (fire.schedule === row.name && fire.at >= from - 2000) add(...mark(fire, x, y));
			}
		});
		add(draws('line', { class: 'now', x1: x(now), x2: x(now), y1: 0, y2: height }));
		svg.replaceChildren(...(narrow ? [plot, ...names] : [...names, plot]));
	}

	function mark({ schedule, boundary, at, state }, x, y) {
		const open = state === 'hand', at0 = x(at), late = boundary !== undefined && at - boundary > lateMS;
		const what = draws('title', {}, `${schedule} ${boundary === undefined ? 'by hand' : 'for ' + clock(boundary)}, at ${clock(at)}: ${open ? 'in hand' : state === 'retried' ? 'will be tried again' : state === 'died' ? 'given up' : 'done'}`);
		const marks = [];
		if (late) marks.push(draws('path', { class: 'm-bracket', d: `M${x(boundary)} ${y + 4}v4H${at0}v-4` }));
		if (late) marks.push(draws('path', { class: 'm-late' + (open ? ' m-open' : ''), d: `M${at0 - 3} ${y - 4.5}l7.5 4.5-7.5 4.5z` }, what));
		else if (boundary === undefined) marks.push(draws('path', { class: open ? 'm-hand' : 'm-done', d: `M${at0} ${y - 4.5}l4.5 4.5-4.5 4.5-4.5-4.5z` }, what));
		else marks.push(draws('circle', { class: open ? 'm-hand' : 'm-done', cx: at0, cy: y, r: 3.5 }, what));
		if (state === 'retried' || state === 'died') marks.push(draws('path', { class: 'm-bad', d: `M${at0 - 3} ${y + 7}l6 6m0-6l-6 6` }));
		return marks;
	}

	/** Reads the schedules, and what is known of their past. */
	async function begin() {
		await refresh();
		for (const { name } of rows) {
			for (const run of await engine.past(name).catch(() => [])) {
				if (!fires.has(run.job) && run.at > Date.now() - kept) fires.set(run.job, { schedule: name, ...run });
			}
		}
		draw();
		setInterval(draw, matchMedia('(prefers-reduced-motion: reduce)').matches ? 1000 : 200);
		addEventListener('resize', draw);
		document.addEventListener('visibilitychange', draw);
	}

	return { begin, happened, state, say: (text) => { byId('said').textContent = text; } };
}

/** Says in an element why there is no engine, and what can be done. */
export function failed(place, error) {
	const card = make('section', 'card failed'), again = make('button', 'main', 'Try again');
	card.role = 'alert';
	again.onclick = () => location.reload();
	card.append(make('h2', '', 'The engine could not be loaded'), make('p', '', error.message), again);
	place.replaceChildren(card);
}
