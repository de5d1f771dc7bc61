import { isolated as called, visible } from './dom.js';
import { MINUTE, clock, duration, exact, number, plural, span, when } from './format.js';
import { MARKS } from './marks.js';
import { waited } from './model.js';

const MISSED = { all: 'all that was missed, at most 64', latest: 'the latest only', grace: 'what is within grace', none: 'nothing' };
export const REASONS = {
  cap: ['beyond the 64 that one tick may catch up', 'T5, T6'],
  policy: ['dropped by its catch-up policy', 'T14'],
  pause: ['missed while the schedule was paused', 'S7'],
  hours: ['outside its active hours', 'X10'],
  overlap: ['a job of the schedule was not done yet', 'X9'],
  missed: ['too late for the only turn of a run-once', 'X8'],
};

const policies = s => s.rules.map(r => `${r.text} (${r.rule})`).join('; ') || 'none';
const missed = s => MISSED[s.missed] ?? s.missed;
const tried = (n, text) => (n > 1 ? `${text}, at try ${n}` : text);

// outcome tells of the job of a boundary, and apart from that of what it delivered.
function outcome(s, boundary) {
  const told = s.outcomes.get(boundary);
  if (!told && s.untold) return [];
  const job = told ?? { how: 'done', tries: 1, deliveries: s.outboxes.map(outbox => ({ outbox, how: 'delivered', tries: 1 })) };
  const why = job.why ? `: ${job.why}` : '';
  const ran = { done: tried(job.tries, 'done') + (job.tries > 1 && job.why ? `; before that${why}` : ''), dead: `dead after ${plural(job.tries, 'try', 'tries')}${why}`, open: `not done by the end${why}` };
  const came = d => {
    const reason = d.why ? `: ${d.why}` : '';
    return { delivered: tried(d.tries, 'delivered'), undelivered: `given up after ${plural(d.tries, 'try', 'tries')}${reason}`, open: `not delivered by the end${reason}` }[d.how];
  };
  return [['Its job', ran[job.how]], ...job.deliveries.map(d => [`Delivery to ${visible(d.outbox)}`, came(d)])];
}

// describer answers for a reference what it is: title, when and sub in words; t
// and span, where it is; facts; causes, the chain that led to it, oldest first;
// lane, where it is drawn. Brief is for a tip.
export function describer(run) {
  const at = t => run.at(t);
  const between = (a, b) => span(at(a), at(b));
  const around = (a, b, least = 2 * MINUTE) => {
    const margin = Math.max((b - a) * 0.35, least);
    return [a - margin, b + margin];
  };
  const off = waits => `${duration(waits)} ${waits < 0 ? 'before' : 'after'}`;
  const by = fire => `${run.processes[fire.process]?.name ?? 'A process'}${fire.term ? `, term ${fire.term}` : ''}`;

  // chain are the causes that end with the entry of the log.
  function chain(index) {
    const links = [];
    for (let i = index ?? -1; i >= 0; i = run.log[i].cause) links.unshift(run.log[i]);
    return links;
  }

  const words = {
    fault({ fault }) {
      return {
        t: fault.at, lane: 'faults', badge: fault.badge, title: fault.say, when: between(fault.at, fault.end),
        sub: fault.text, span: around(fault.at, fault.end),
        facts: [['Written as', fault.text], ['Lasted', duration(fault.end - fault.at)], ['It came to', fault.effect]],
        causes: fault.causes.map(i => run.log[i]), chain: 'What followed',
        story: run.stories[fault.index] || [],
      };
    },
    faults({ faults }) {
      const to = Math.max(...faults.map(f => f.end));
      return {
        t: faults[0].at, lane: 'faults', title: `${plural(faults.length, 'fault')} in one place`, when: between(faults[0].at, to),
        sub: faults.map(f => f.badge).join(', '), span: around(faults[0].at, to), facts: faults.map(f => [f.badge, f.say]), causes: [],
        note: 'Too close to tell apart here. Zoom in to see each one.',
      };
    },
    lease({ process, lease }) {
      return {
        t: lease.from, kind: 'lease', lane: process.id, title: `${process.name} led, term ${lease.term}`, when: between(lease.from, lease.to),
        sub: `${duration(lease.to - lease.from)}; ${lease.end}`, span: [lease.from - 5 * MINUTE, Math.min(lease.to, lease.from + 40 * MINUTE)],
        facts: [['For', duration(lease.to - lease.from)], ['Ended', lease.end]], causes: chain(lease.cause),
      };
    },
    leases({ process, leases }) {
      const [first, last] = [leases[0], leases.at(-1)], longest = Math.max(...leases.map(l => l.to - l.from));
      return {
        t: first.from, kind: 'lease', lane: process.id, title: `${process.name} led ${number(leases.length)} times, terms ${number(first.term)} to ${number(last.term)}`, when: between(first.from, last.to),
        sub: `none for longer than ${duration(longest)}`, span: around(first.from, last.to), facts: [['Longest', duration(longest)]], causes: chain(first.cause), chain: 'Why the first',
        note: 'Too close to tell apart here. Zoom in to see each one.',
      };
    },
    away({ process, away }) {
      const what = { pause: 'stood still', down: 'was down', crash: 'crashed and was down' }[away.kind];
      return {
        t: away.from, lane: process.id, title: `${process.name} ${what} for ${duration(away.to - away.from)}`, when: between(away.from, away.to),
        span: around(away.from, away.to), facts: [['Afterwards', away.after]].filter(f => f[1]), causes: chain(away.cause),
      };
    },
    bound({ process, bound }) {
      const fault = run.faults[bound.fault];
      return {
        t: bound.from, lane: process.id, badge: fault.badge, title: `${process.name} was ${bound.kind} for ${duration(bound.to - bound.from)}`, when: between(bound.from, bound.to),
        sub: fault.say, span: around(bound.from, bound.to), facts: [['Written as', fault.text]], causes: [],
      };
    },
    strays({ from, to, n }) {
      return {
        t: from, kind: 'stray', lane: 'depth', title: `${plural(n, 'job')} of no schedule came in`, when: between(from, to),
        span: around(from, to), facts: [], causes: [], sub: 'enqueued by a handler, or by others',
      };
    },
    mark({ process, mark }) {
      return {
        t: mark.t, kind: mark.kind, lane: process.id, title: mark.text, when: when(at(mark.t)), span: around(mark.t, mark.t),
        facts: [['Process', process.name], ...(mark.rule ? [['Rule', mark.rule]] : [])], causes: chain(mark.cause),
      };
    },
    'on-time'({ schedule, run: fires, boundary }) {
      const { least, most } = fires;
      const lag = least === most ? (most ? `${off(most)} its boundary` : 'at its boundary')
        : `${least < 0 && most >= 0 ? off(least) : duration(least)} to ${off(most)} its boundary`;
      return {
        t: boundary, kind: 'fired', lane: schedule.id, title: `${called(schedule.name)} fired on time`, when: when(at(boundary)),
        sub: lag, span: around(boundary - schedule.every, boundary + schedule.every),
        facts: [['Boundary', when(at(boundary))], ['Queue', visible(schedule.queue)], ...outcome(schedule, boundary)], causes: [],
      };
    },
    runs({ schedule, runs }) {
      const [first, last] = [runs[0].first, runs.at(-1).last], count = runs.reduce((n, r) => n + r.count, 0);
      return {
        t: first, kind: 'fired', lane: schedule.id, title: `${called(schedule.name)}: ${number(count)} on time`, when: between(first, last),
        sub: `within ${duration(Math.max(...runs.flatMap(r => [-r.least, r.most])))} of the boundary`, span: [first, last],
        facts: [['Every', schedule.spec.replace('@every ', '')], ['On time', number(count)], ['If missed', missed(schedule)], ['Policies', policies(schedule)]], causes: [],
        note: 'Nothing out of the ordinary. Zoom in to see each fire.',
      };
    },
    fire({ schedule, fire }) {
      const late = waited(fire), count = fire.count, name = called(schedule.name);
      const many = {
        late: `${name}: ${number(count)} late, one by one`, early: `${name}: ${number(count)} early, one by one`,
        caught: `${name} caught up ${number(count)} at once`, burst: `${name} fired ${number(count)} early at once`, again: `${name} fired ${number(count)} again`,
      };
      const one = {
        late: `${name} fired ${duration(late)} late`, early: `${name} fired ${duration(late)} early`, again: `${name} fired ${clock(at(fire.first))} again`,
      };
      const title = (count > 1 ? many : one)[fire.kind];
      const least = fire.t - fire.last, delay = duration(late) === duration(least) ? duration(late) : `${duration(least)} to ${duration(late)}`;
      return {
        t: fire.t, kind: fire.kind, lane: schedule.id, title, when: between(fire.since, fire.t),
        sub: count > 1 ? `were due ${between(fire.first, fire.last)}` : `was due ${when(at(fire.first))}`,
        span: around(Math.min(fire.first, fire.t), Math.max(fire.last, fire.t), schedule.every * 2),
        facts: [
          [count > 1 ? 'Were due' : 'Was due', between(fire.first, fire.last)], [late < 0 ? 'Early by' : 'Late by', delay],
          ...(run.recording ? [] : [['Fired by', by(fire)]]), ['If missed', missed(schedule)], ...(count === 1 ? outcome(schedule, fire.first) : []),
        ],
        causes: [...chain(fire.cause), { t: fire.t, kind: fire.kind, lane: schedule.id, text: title, rule: count > 1 ? 'T5' : 'T2' }],
      };
    },
    gap({ schedule, gap, boundary }) {
      const one = boundary !== undefined, name = called(schedule.name);
      const [reason, rule] = REASONS[gap.reason];
      const title = one ? `${name}: ${clock(at(boundary))} was ${gap.kind}` : `${name}: ${number(gap.count)} ${gap.kind}`;
      return {
        t: gap.first, kind: gap.kind, lane: schedule.id, title,
        when: one ? when(at(boundary)) : between(gap.first, gap.last), sub: reason, span: around(gap.first, Math.max(gap.last, gap.t), schedule.every * 2),
        facts: [
          ['Why', reason], ['Decided', when(at(gap.t))],
          ['Of a run of', number(gap.count)], ['If missed', missed(schedule)], ['Policies', policies(schedule)],
        ],
        causes: [...chain(gap.cause), { t: gap.t, kind: gap.kind, lane: schedule.id, text: `${number(gap.count)} ${gap.kind}: ${reason}`, rule }],
      };
    },
    ghost({ schedule, ghost }) {
      const other = run.against.calm ? 'the calm run' : 'the run as it is', name = called(schedule.name);
      return {
        t: ghost.first, kind: 'ghost', lane: schedule.id, title: ghost.count > 1 ? `${name}: ${number(ghost.count)} fired here in ${other}` : `${name} fired here in ${other}`,
        when: between(ghost.first, ghost.last), sub: 'in this one at another time, or never',
        span: around(ghost.first, ghost.last, schedule.every * 2), facts: [], causes: [],
      };
    },
    hold({ schedule, hold }) {
      return {
        t: hold.t, kind: 'held', lane: schedule.id, title: `${called(schedule.name)}: its row was held`, when: when(at(hold.t)), sub: hold.reason,
        span: around(hold.t, hold.t), facts: [['Why', hold.reason], ['Rule', 'Q1, Q3']], causes: chain(hold.cause),
      };
    },
    tries({ schedule, tries }) {
      const counted = kind => tries.reduce((n, q) => n + (q.kind === kind ? q.count : 0), 0);
      const dead = counted('dead'), failed = counted('failed'), undelivered = counted('undelivered'), name = called(schedule.name), [q] = tries;
      const several = [failed && `${plural(failed, 'try', 'tries')} failed`, dead && `${plural(dead, 'job')} dead`, undelivered && `${number(undelivered)} not delivered`].filter(Boolean).join(', ');
      const one = dead + failed + undelivered === 1;
      const title = !one ? `${name}: ${several}` : dead ? `${name}: a job died` : failed ? `${name}: try ${q.attempt} failed` : `${name} ran well, and was not delivered`;
      const boundary = q.boundary === null ? 'none: fired by hand' : when(at(q.boundary));
      return {
        t: q.t, kind: dead ? 'dead' : undelivered ? 'undelivered' : 'failed', lane: schedule.id, title, when: between(q.t, tries.at(-1).t), span: around(q.t, tries.at(-1).t),
        sub: q.why, facts: [[one ? 'Boundary' : 'First boundary', boundary], ...(q.why && !(one && undelivered && q.boundary !== null) ? [[one ? 'Why' : 'Why the first', q.why]] : []), ...(one && q.boundary !== null ? outcome(schedule, q.boundary) : []), ['Rule', dead + failed ? 'QU5, QU6' : 'X3, X6']], causes: [],
      };
    },
    turn({ schedule, turn }) {
      return {
        t: turn.t, kind: turn.kind, lane: schedule.id, title: turn.text, when: when(at(turn.t)), span: around(turn.t, turn.t, schedule.every * 2),
        facts: [['Policies', policies(schedule)], ...(turn.rule ? [['Rule', turn.rule]] : [])], causes: chain(turn.cause),
      };
    },
    deliveries({ outbox, tries }) {
      const counted = kind => tries.reduce((n, q) => n + (q.kind === kind ? q.count : 0), 0), name = called(outbox.name);
      const [delivered, retried, undelivered] = ['delivered', 'retried', 'undelivered'].map(counted);
      const q = tries.find(t => t.kind === 'undelivered') ?? tries.find(t => t.kind === 'retried') ?? tries[0], one = tries.length === 1 && q.count === 1;
      const what = q.schedule ? `${called(q.schedule)}${q.boundary === null ? '' : ` of ${clock(at(q.boundary))}`}` : 'an entry';
      const did = { delivered: tried(q.attempt, 'delivered'), retried: `try ${q.attempt} failed, and is made again`, undelivered: `given up at try ${q.attempt}` }[q.kind];
      return {
        t: q.t, kind: q.kind, lane: outbox.id, when: between(tries[0].t, tries.at(-1).t), span: around(tries[0].t, tries.at(-1).t),
        title: one ? `${name}: ${what} ${did}` : `${name}: ${[delivered && `${number(delivered)} delivered`, retried && `${plural(retried, 'try', 'tries')} failed`, undelivered && `${number(undelivered)} given up`].filter(Boolean).join(', ')}`,
        sub: q.why, causes: [],
        facts: [...(q.boundary !== null ? [['Boundary', when(at(q.boundary))]] : []), ...(q.why ? [[one ? 'Why' : 'Why the first', q.why]] : []), ...(q.kind === 'delivered' ? [] : [['Its run', 'went well: only the delivery failed'], ['Rule', 'X1, X6']])],
      };
    },
    several({ schedule, marks }) {
      const counts = new Map();
      for (const m of marks) counts.set(m.kind, (counts.get(m.kind) || 0) + m.count);
      const total = [...counts.values()].reduce((a, b) => a + b, 0), list = [...counts].map(([kind, n]) => `${number(n)} ${MARKS[kind].say}`);
      const ends = marks.flatMap(m => (m.fire ? [m.fire.first, m.fire.t] : m.gap ? [m.boundary] : [m.hold.t]));
      const [from, to] = [Math.min(...ends), Math.max(...ends)];
      return {
        t: from, kind: marks[0].kind, lane: schedule.id, title: `${called(schedule.name)}: ${number(total)} marks in one place`, when: between(from, to), sub: list.join(', '),
        span: around(from, to, schedule.every), facts: [...counts].map(([kind, n]) => [MARKS[kind].say, number(n)]), causes: [],
        note: 'Too close to tell apart here. Zoom in to see each one.',
      };
    },
    depth({ t, n }) {
      const waiting = run.queues.map(q => [visible(q.name), q.depth.filter(step => step[0] <= t).at(-1)?.[1] ?? 0]).filter(q => q[1]);
      return {
        t, lane: 'depth', title: `${plural(n, 'job')} waiting`, when: when(at(t)), sub: 'the most in view', span: around(t, t, 40 * MINUTE),
        facts: waiting.map(([queue, count]) => [queue, number(count)]), causes: [],
      };
    },
    depths() {
      return { t: 0, lane: 'depth', title: 'Jobs waiting', when: 'ready, and not yet claimed; all queues', span: [0, run.end], facts: [], causes: [] };
    },
    failure({ failure }) {
      return {
        t: failure.t, kind: 'violation', lane: failure.lane, title: failure.title, when: when(at(failure.t)), sub: failure.detail,
        span: around(failure.t, failure.t, MINUTE),
        facts: [['Check', failure.invariant], ['It says', failure.says], ...(failure.schedule ? [['Schedule', visible(failure.schedule)]] : []), ['Found', exact(at(failure.t))], ['What', failure.detail]],
        causes: chain(failure.cause),
      };
    },
  };
  return ref => words[ref.type](ref);
}

