package sim

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	const text = `simulate v1
# whatever stands here is read by people alone
engine   runners=2 lease=60s batch=10 on-time=2m standby=yes clock-repair=rearm ties=seeded seed=7  # so does this
start    2026-03-29T02:30:00+02:00
run      2h quiet-after=90m

queue    ops workers=3
schedule report  every=5m  queue=mail  handler=ok:1s..5s
	schedule "nightly #1 \"x=y\"" every=24h queue=ops catch-up=grace anchor=2026-03-29T00:00:00Z priority=-3 expires=1h visibility=30s attempts=5 backoff=10s payload="\x00\n" handler=fail:30%
at 10m        down for=4m runner=2
at 20m        crash runner=1
at 30m        crash restart=snapshot after=30s
at 40m        clock-jump by=+1h
during 50m..55m store error-burst p=0.3 applied=unknown
at 60m        handler slow schedule="nightly #1 \"x=y\"" takes=10m for=5m
at 60m        handler failing queue=mail for=5m p=50%
expect   no-double-fire  report.fires=24  sometimes:stale-write-refused verdict=pass
expect   "nightly #1 \"x=y\"".skipped=0 report.quarantined=1
----
as recorded
----
# no comment
`
	s, err := Parse("a.sim", text)
	require.NoError(t, err)
	night := `nightly #1 "x=y"`
	require.Equal(t, Scenario{
		Engine: Engine{
			Runners: 2, Lease: time.Minute, Batch: 10, OnTime: 2 * time.Minute, StandBy: true,
			ClockRepair: RepairRearm, Ties: TiesSeeded, Seed: 7,
		},
		Start: time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC),
		For:   2 * time.Hour, QuietAfter: 90 * time.Minute,
		Queues: []Queue{{Name: "ops", Workers: 3}},
		Schedules: []Schedule{
			{Name: "report", Spec: "@every 5m", Queue: "mail", Handler: Handler{Takes: Span{time.Second, 5 * time.Second}}},
			{
				Name: night, Spec: "@every 24h", Queue: "ops", CatchUp: CatchUpGrace,
				Anchor: time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), Priority: -3, Expires: time.Hour,
				Visibility: 30 * time.Second, MaxAttempts: 5, BaseBackoff: 10 * time.Second, Payload: []byte("\x00\n"),
				Handler: Handler{Kind: HandlerFails, Fails: 300_000},
			},
		},
		Faults: []Fault{
			{Kind: FaultDown, At: 10 * time.Minute, For: 4 * time.Minute, Runner: 2},
			{Kind: FaultCrash, At: 20 * time.Minute, Runner: 1},
			{Kind: FaultCrash, At: 30 * time.Minute, For: 30 * time.Second, Restart: FromSnapshot},
			{Kind: FaultClockJump, At: 40 * time.Minute, By: time.Hour},
			{Kind: FaultStoreErrors, At: 50 * time.Minute, For: 5 * time.Minute, Chance: 300_000, Applied: AppliedUnknown},
			{Kind: FaultHandlerSlow, At: time.Hour, For: 5 * time.Minute, Schedule: night, Takes: Span{10 * time.Minute, 10 * time.Minute}},
			{Kind: FaultHandlerFails, At: time.Hour, For: 5 * time.Minute, Queue: "mail", Chance: 500_000},
		},
		Expect: []Expect{
			{Kind: ExpectNoDoubleFire},
			{Kind: ExpectFires, Schedule: "report", Count: 24},
			{Kind: ExpectMark, Mark: "stale-write-refused"},
			{Kind: ExpectVerdict},
			{Kind: ExpectSkipped, Schedule: night},
			{Kind: ExpectQuarantined, Schedule: "report", Count: 1},
		},
		Outcome: "as recorded\n----\n# no comment\n",
	}, s)

	crlf, err := Parse("a.sim", strings.ReplaceAll(text[:strings.Index(text, "----")], "\n", "\r\n"))
	require.NoError(t, err)
	s.Outcome = ""
	require.Equal(t, s, crlf, "line ends of Windows")
}

// mistakesOf are the messages about a text, whose lines follow a good head.
func mistakesOf(t *testing.T, lines ...string) []string {
	t.Helper()
	text := "simulate v1\nrun 2h quiet-after=90m\nschedule report every=5m queue=mail\n" + strings.Join(lines, "\n")
	s, err := Parse("a.sim", text)
	if err == nil {
		return nil
	}
	require.Equal(t, Scenario{}, s)
	return strings.Split(err.Error(), "\n")
}

func TestC19WhatIsUnknownIsAMistake(t *testing.T) {
	faults := "one of " + strings.Join(faultWords, ", ")
	const (
		directives = "one of engine, start, run, queue, outbox, schedule, at, during, swarm, expect"
		keys       = "one of every=, queue=, catch-up=, anchor=, handler=, heartbeat=, deliver=, outbox=, priority=, expires=, visibility=, attempts=, backoff=, payload=, overlap=, hours=, run-once=, breaker=, timeout="
		expects    = "one of no-double-fire, NAME.fires=N, NAME.skipped=N, NAME.quarantined=N, verdict=WORD, sometimes:MARK, sometimes:all,-MARK"
	)
	for line, want := range map[string]string{
		"schedul x every=5m queue=mail": `1: found "schedul", want ` + directives + `; did you mean "schedule"?`,
		"frobnicate":                    `1: found "frobnicate", want ` + directives,
		"run 3h":                        `1: found a second run line, want one, which is line 2`,

		"swarm":                                     `6: found the end of the line, want faults=`,
		"swarm faults=1\nat 5m down for=1m":         `1: found a swarm beside lines at and during, want a swarm or concrete faults`,
		"swarm faults=3..2":                         `14: found "3..2", want a range whose end is not before its beginning`,
		"swarm faults=3 kinds=all,-rain":            `26: found "rain", want ` + oneOf(kindNames()),
		"engine runners=17":                         `16: found "17", want a whole number from 1 to 16`,
		"engine runners=0":                          `16: found "0", want a whole number from 1 to 16`,
		"engine lease=0s":                           `14: found "0s", want a duration of at least 1ms`,
		"schedule x every=1m queue=m backoff=61m":   `37: found "61m", want at most 1h`,
		"engine standby=true":                       `16: found "true", want one of yes, no`,
		"engine 2":                                  `8: found "2", want one of runners=, lease=, batch=, on-time=, standby=, clock-repair=, queue-limit=, snapshot-every=, ties=, seed=`,
		"engine clock-repair=x":                     `21: found "x", want one of hold, rearm`,
		"start":                                     `6: found the end of the line, want ` + instantForm,
		"start x=y":                                 `7: found "x=y", want ` + instantForm,
		"start 9999-12-31T23:59:59.999-23:59":       `7: found "9999-12-31T23:59:59.999-23:59", want a time in whole milliseconds such as 2026-03-29T00:30:00Z, in the years 0000 to 9999 in UTC`,
		"start 2026-03-29T00:30:00Z later":          `28: found "later", want none`,
		"queue":                                     `6: found the end of the line, want the name of a queue`,
		"queue mial workers=1":                      `7: found "mial", want the queue of a schedule: mail; did you mean "mail"?`,
		"queue mail":                                `11: found the end of the line, want workers=`,
		"queue mail workers=1001":                   `20: found "1001", want a whole number from 0 to 1000`,
		"schedule x queue=mail":                     `22: found the end of the line, want every=`,
		"schedule x every=5m":                       `20: found the end of the line, want queue=`,
		"schedule x evry=5m queue=mail":             `12: found "evry=", want ` + keys + `; did you mean "every="?`,
		"schedule x every=5m queue=a queue=b":       `29: found "queue=b", want queue= only once in a line`,
		"schedule report every=1h queue=mail":       `10: found a second schedule "report", want one line for a schedule`,
		"schedule every=1h queue=mail":              `10: found "every=1h", want the name of a schedule`,
		`schedule "" every=1h queue=mail`:           `10: found "", want a schedule name: this one is empty, want 1 to 128 bytes`,
		`schedule __alkstore_x every=1h queue=mail`: `10: found "__alkstore_x", want a schedule name: this one begins with __alkstore_, which belongs to the engine`,
		`schedule "a\nb" every=1h queue=mail`:       `10: found "a\nb", want a schedule name: this one has a control character at byte 1`,
		`schedule x every=1h queue=" m"`:            `27: found " m", want a queue name: this one begins with a space`,
		`schedule x every="1h 2" queue=m`:           `18: found " ", want the end after one number and one unit`,
		`schedule x every=1h30m queue=m`:            `20: found "3", want the end after one number and one unit; write every="90m"`,
		`schedule x every=1h queue=m catch-up=last`: `38: found "last", want one of all, latest, grace, none; did you mean "latest"?`,

		`schedule x every=1h queue=m overlap=buffer`:                 `37: found "buffer", want one of allow, skip, buffer-one; did you mean "buffer-one"?`,
		`schedule x every=1h queue=m hours=9-17`:                     `35: found "9", want a time of day from 00:00 to 23:59`,
		`schedule x every=1h queue=m hours=08:00-24:00`:              `41: found "24:00", want a time of day from 00:00 to 23:59`,
		`schedule x every=1h queue=m hours=08:00-8:30`:               `41: found "8:30", want a time of day from 00:00 to 23:59`,
		`schedule x every=1h queue=m hours=08:00`:                    `35: found "08:00", want ` + hoursForm,
		`schedule x every=1h queue=m hours=08:00-08:00`:              `35: found "08:00-08:00", want ` + hoursForm + `, of which the second is another than the first`,
		`schedule x every=1h queue=m hours=08:00-17:30@Europe/Berli`: `47: found "Europe/Berli", want a time zone of the IANA database such as UTC or Europe/Berlin; did you mean "Europe/Berlin"?`,
		`schedule x every=1h queue=m hours=08:00-17:30@`:             `47: found "", want a time zone of the IANA database such as UTC or Europe/Berlin`,
		`schedule x every=1h queue=m run-once`:                       `29: found "run-once", want ` + keys + `; did you mean "run-once="?`,
		`schedule x every=1h queue=m breaker=0`:                      `37: found "0", want a whole number from 1 to 255, or off`,
		`schedule x every=1h queue=m breaker=of`:                     `37: found "of", want a whole number from 1 to 255, or off`,
		`schedule x every=1h queue=m timeout=0s`:                     `37: found "0s", want a duration of at least 1ms`,
		`schedule x every=1h queue=m run-once=yes attempts=2`:        `51: found "2", want 1, or no attempts=, with run-once=yes`,
		`at 5m edit policies schedule=report hours=08:00-17:30@X`:    `55: found "X", want a time zone of the IANA database such as UTC or Europe/Berlin`,
		`at 5m edit trigger schedule=reprot`:                         `29: found "reprot", want a schedule: report; did you mean "report"?`,
		`at 5m edit triger schedule=report`:                          `7: found "edit triger", want ` + faults + `; did you mean "edit trigger"?`,

		`schedule "x every=1h`:    `10: found "\"x every=1h", want a quoted text as Go writes it, closed by "`,
		`schedule x"y" every=1h`:  `11: found "\"y\"", want a quote only at the beginning of a text`,
		`schedule "x"y every=1h`:  `13: found "y", want a blank after the closing quote`,
		"schedule x\x00 every=1h": `11: found the character "\x00", want printable characters; others only escaped in quotes`,
		"schedule x\u00a0y":       `11: found the character "\u00a0", want printable characters; others only escaped in quotes`,
		"schedule x\xffy":         `11: found the byte "\xff", want valid UTF-8`,
		"schedule =x":             `10: found "=x", want a key before the =`,

		"at":                                             `3: found the end of the line, want ` + durationForm,
		"at 5 crash restart=empty":                       `5: found the end of "5", want ` + durationOrder,
		"at 5m":                                          `7: found no fault, want ` + faults,
		"at 5m for=3m":                                   `7: found no fault, want ` + faults,
		"at 5m clok-jump by=+1h":                         `7: found "clok-jump", want ` + faults + `; did you mean "clock-jump"?`,
		"at 5m store eror-burst":                         `7: found "store eror-burst", want ` + faults + `; did you mean "store error-burst"?`,
		"at 5m down":                                     `11: found the end of the line, want for=`,
		"at 5m down for=1m runner=2":                     `26: found "2", want a runner from 1 to 1 (engine runners=)`,
		"at 5m down for=1m by=+1h":                       `19: found "by=", want one of runner=, point=, for=`,
		"at 5m crash":                                    `1: found neither restart= nor runner=, want restart=, where the store goes too, or runner=, one process over a store that stays`,
		"at 5m crash restart=empty runner=1":             `1: found both restart= and runner=, want restart=, where the store goes too, or runner=, one process over a store that stays`,
		"at 5m crash restart=empty for=1m":               `27: found "for=", want one of runner=, point=, restart=, after=; did you mean "after="?`,
		"during 5m..6m crash restart=empty":              `1: found "during", want at TIME crash`,
		"during 5m down":                                 `8: found "5m", want a time from one duration to a later one, such as 50m..55m`,
		"during 5m..4m down":                             `8: found "5m..4m", want a range whose end is not before its beginning`,
		"during 5m..6m down for=1m":                      `20: found "for=", want runner=`,
		"during 5m..6m store error-burst":                `32: found the end of the line, want applied=`,
		"at 5m store error-burst applied=yes":            `36: found the end of the line, want for=`,
		"during 5m..6m store error-burst applied=no p=2": `46: found "2", want ` + chanceForm,
		"at 5m clock-jump by=1h":                         `21: found "1h", want an offset with its sign, such as +8h or -90s`,
		"at 5m handler slow for=1m schedule=reprt":       `36: found "reprt", want a schedule: report; did you mean "report"?`,
		"at 5m handler slow for=1m queue=report":         `33: found "report", want the queue of a schedule: mail`,
		"at 90m clock-jump by=+1h for=1ms":               `4: found a fault from 1h30m for 1ms, want one that ends by quiet-after=1h30m`,
		"at 5m edit add":                                 `15: found the end of the line, want schedule=`,
		"at 5m edit rnme schedule=report":                `7: found "edit rnme", want ` + faults + `; did you mean "edit rename"?`,
		"at 5m edit pause schedule=reprt":                `27: found "reprt", want a schedule: report; did you mean "report"?`,
		"at 5m edit change schedule=report":              `34: found the end of the line, want every=, queue= or catch-up=`,
		"at 5m tamper schedule=report":                   `29: found the end of the line, want either row= or every=`,
		"at 5m tamper schedule=report row=bad":           `34: found "bad", want one of bad-spec, cut-spec, reserved-queue, no-catch-up, cursor-off-grid, cursor-ahead, cursor-at-end`,
		"at 5m queue late-ack for=1m":                    `28: found the end of the line, want takes=`,
		"at 106751d down for=106751d":                    `4: found a fault from 106751d for 106751d, want one that ends by quiet-after=1h30m`,

		"expect":                            `7: found the end of the line, want ` + expects,
		"expect no-double-fires":            `8: found "no-double-fires", want ` + expects + `; did you mean "no-double-fire"?`,
		"expect report.fire=24":             `15: found "fire", want one of fires, skipped, quarantined; did you mean "fires"?`,
		"expect reprt.fires=24":             `8: found "reprt", want a schedule: report; did you mean "report"?`,
		"expect report.fires=-1":            `21: found "-1", want a whole number from 0 to 9223372036854775807`,
		"expect .fires=1":                   `8: found ".fires=1", want NAME.fires=N`,
		`expect "".fires=1`:                 `8: found "\"\".fires=1", want NAME.fires=N`,
		"expect verdict=safe":               `16: found "safe", want one of pass, bad-input, safety, liveness, nondeterministic, vacuous, budget, handler-crash; did you mean "safety"?`,
		"expect sometimes:lease-lapse":      `18: found "lease-lapse", want a coverage mark: ` + oneOf(markIDs()) + `; did you mean "lease-lapsed"?`,
		"expect sometimes:all,-lease-lapse": `18: found "lease-lapse", want a coverage mark: ` + oneOf(markIDs()) + `; did you mean "lease-lapsed"?`,
		"expect sometimes:all,skipped":      `18: found "skipped", want -MARK behind all,`,
		"expect sometimes:all,":             `18: found "", want -MARK behind all,`,
		`expect "sometimes:cap-hit"`:        `8: found "\"sometimes:cap-hit\"", want ` + expects,
		"expect no-double-fire report.x":    `23: found "report.x", want ` + expects,
	} {
		require.Equal(t, []string{"a.sim:4:" + want}, mistakesOf(t, line), "%q", line)
	}
	require.Nil(t, mistakesOf(t, "schedule x every=5m queue=mail overlap=skip hours=22:00-06:00@Asia/Kolkata run-once=yes attempts=1 breaker=off timeout=1ms"))
	require.Nil(t, mistakesOf(t, "at 90m clock-jump by=+1h"), "a fault at the very edge")
	require.Nil(t, mistakesOf(t, "at 89m down for=1m"), "one that ends at the edge")
	require.Nil(t, mistakesOf(t, "queue other workers=2", "at 5m edit change schedule=report queue=other"), "a queue of a change")
}

func TestMistakesOfTheWhole(t *testing.T) {
	for text, want := range map[string]string{
		"":                                               `a.sim:1:1: found an empty line, want "simulate v1" as the first line`,
		"simulate v2\nnonsense":                          `a.sim:1:1: found "simulate v2", want "simulate v1" as the first line`,
		"\nsimulate v1\nrun 1h":                          `a.sim:1:1: found an empty line, want "simulate v1" as the first line`,
		"# a night\nsimulate v1\nrun 1h":                 `a.sim:1:1: found "# a night", want "simulate v1" as the first line`,
		"\ufeffsimulate v1\nrun 1h":                      `a.sim:1:1: found the character "\ufeff", want printable characters; others only escaped in quotes`,
		"simulate v1":                                    `a.sim:1:1: found the end of the scenario, want a line: run DURATION`,
		"simulate v1\n----\nrun 1h":                      `a.sim:2:1: found the end of the scenario, want a line: run DURATION`,
		"simulate v1\nrun 1h":                            `a.sim:2:1: found the end of the scenario, want a line: schedule NAME every=SPEC queue=NAME`,
		"simulate v1\nrun 1h\nrun":                       `a.sim:3:1: found a second run line, want one, which is line 2`,
		"simulate v1\nrun 1h q=1":                        `a.sim:2:8: found "q=", want quiet-after=`,
		"simulate v1\nrun":                               `a.sim:2:4: found the end of the line, want ` + durationForm,
		"simulate v1\nrun x":                             `a.sim:2:5: found "x", want ` + durationForm,
		"simulate v1\nrun 0s":                            `a.sim:2:5: found "0s", want a duration of at least 1ms`,
		"simulate v1\nat 1h down for=1s\nrun 1h":         `a.sim:2:4: found a fault from 1h for 1s, want one that ends by the run's 1h`,
		"simulate v1\nat 1h crash restart=empty\nrun 1h": `a.sim:2:4: found a fault from 1h for 0s, want one that ends by the run's 1h`,
		"simulate v1\nrun 1h quiet-after=61m":            `a.sim:2:20: found "61m", want at most the run's 1h`,
		"simulate v1\nrun 1h\nschedule a every=1m queue=q\nqueue q workers=1\nqueue q workers=2": `a.sim:5:7: found a second line for queue "q", want one line for a queue`,
	} {
		_, err := Parse("a.sim", text)
		require.EqualError(t, err, want, "%q", text)
	}
}

// TestMistakesAreInOrder: what is found in the second pass stands where its
// line is, and a line that the first pass refused is not looked at again.
func TestMistakesAreInOrder(t *testing.T) {
	require.Equal(t, []string{
		`a.sim:4:7: found "mial", want the queue of a schedule: mail; did you mean "mail"?`,
		`a.sim:5:17: found the end of "5", want one of the units d, h, m, s, ms, in this order, each once`,
		`a.sim:6:8: found "repor", want a schedule: report; did you mean "report"?`,
		`a.sim:7:1: found "nonsense", want one of engine, start, run, queue, outbox, schedule, at, during, swarm, expect`,
		`a.sim:8:4: found a fault from 3h for 1s, want one that ends by quiet-after=1h30m`,
	}, mistakesOf(t, "queue mial workers=1", "at 3h down for=5", "expect repor.fires=3", "nonsense", "at 3h down for=1s"))
}

func TestMistakesAreCounted(t *testing.T) {
	lines := make([]string, 0, 60)
	for i := range 30 {
		lines = append(lines, "nonsense", fmt.Sprintf("expect x%d.fires=1", i))
	}
	messages := mistakesOf(t, lines...)
	require.Len(t, messages, MaxMistakes+1)
	require.Contains(t, messages[19], `a.sim:23:8: found "x9", want a schedule: report`)
	require.Equal(t, "and 40 more", messages[20])
}

func TestMistakeDetails(t *testing.T) {
	_, err := Parse("a.sim", "simulate v1\nrun 1h\nengin seed=1")
	var m *Mistakes
	require.True(t, errors.As(err, &m))
	require.Equal(t, &Mistakes{List: []Mistake{{
		File: "a.sim", Line: 3, Column: 1, Source: "engin seed=1",
		Found: `"engin"`, Allowed: "one of engine, start, run, queue, outbox, schedule, at, during, swarm, expect", Hint: `did you mean "engine"?`,
	}}}, m)
}

// TestMistakesOfTheEngine: what the engine refuses is refused here, at its key.
func TestMistakesOfTheEngine(t *testing.T) {
	require.Equal(t, []string{
		`a.sim:4:14: found "2h", want the engine's LeaseTTL: this one is 2h0m0s, want whole milliseconds from 1s to 1h0m0s`,
		`a.sim:4:23: found "1000000", want the engine's Batch: this one is 1000000, want 1 to 100000`,
		`a.sim:4:39: found "25h", want the engine's OnTime: this one is 25h0m0s, want whole milliseconds from 1ms to 24h0m0s`,
	}, mistakesOf(t, "engine lease=2h batch=1000000 on-time=25h"))
}

func TestLimits(t *testing.T) {
	const head = "simulate v1\nrun 1h\n"
	const report = "schedule report every=5m queue=q\n"
	parse := func(text string) error {
		_, err := Parse("a.sim", text)
		return err
	}
	line := "#" + strings.Repeat("x", MaxLine-1)
	require.NoError(t, parse(head+report+line))
	require.EqualError(t, parse(head+line+"x"), "a.sim:3:1: found a line of 4097 bytes, want at most 4096 bytes in a line")

	file := head + report + "----\n"
	file += strings.Repeat("x", MaxFile-len(file))
	require.NoError(t, parse(file), "the recorded outcome has no limit of its lines")
	require.EqualError(t, parse(file+"x"), "a.sim:1:1: found 1048577 bytes, want at most 1048576 bytes in a scenario")

	many := func(n int, line string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			fmt.Fprintf(&b, line, i+1)
		}
		return b.String()
	}
	schedule := "schedule %d every=1s queue=q\n"
	require.NoError(t, parse(many(MaxSchedules, schedule)))
	require.EqualError(t, parse(many(MaxSchedules+1, schedule)),
		"a.sim:10003:1: found number 10001 of the schedules, want at most 10000 schedules in a scenario")
	fault := "at %dms crash restart=empty\n"
	require.NoError(t, parse(many(MaxFaults, fault)+report))
	require.EqualError(t, parse(many(MaxFaults+1, fault)),
		"a.sim:10003:1: found number 10001 of the faults, want at most 10000 faults in a scenario")
	queue := "schedule %[1]d every=1s queue=%[1]d\nqueue %[1]d workers=1\n"
	require.NoError(t, parse(many(MaxQueues, queue)))
	require.ErrorContains(t, parse(many(MaxQueues+1, queue)),
		"a.sim:20004:1: found number 10001 of the queues, want at most 10000 queues in a scenario")

	crowd := func(workers string) error {
		return parse(many(10, "schedule %[1]d every=1s queue=%[1]d\nqueue %[1]d workers="+workers+"\n") + "engine runners=16\n")
	}
	require.NoError(t, crowd("625"))
	require.EqualError(t, crowd("626"),
		"a.sim:22:1: found with this queue's 626 in each of 16 processes 100160 workers, want at most 100000 in a scenario")

	const seconds = "simulate v1\nrun %ds\nschedule a every=1s queue=q\n"
	require.NoError(t, parse(fmt.Sprintf(seconds, maxEvents)))
	require.EqualError(t, parse(fmt.Sprintf(seconds, maxEvents+1)), "a.sim:2:1: found a run of 1157d9h46m41s with 100000001 boundaries, "+
		"want at most 100000000, each of which takes an event; make the run shorter, or the schedules fewer or rarer")
}

// TestFoundIsCutBetweenCharacters: a long text is cut, and no character in two.
func TestFoundIsCutBetweenCharacters(t *testing.T) {
	require.Equal(t, `"`+strings.Repeat("x", 80)+`"`, shown(strings.Repeat("x", 80)))
	require.Equal(t, `"`+strings.Repeat("x", 80)+`"…`, shown(strings.Repeat("x", 81)))
	require.Equal(t, `"x`+strings.Repeat("日", 26)+`"…`, shown("x"+strings.Repeat("日", 30)))
}
