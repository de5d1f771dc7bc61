package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickonce/tickonce/internal/core"
)

// value is one setting of a scenario as text and back. The text of a value
// that may be left out, and is zero, is "". What parse refuses in a text it
// refuses as well in the text of a value set in Go, so each limit stands once.
type value interface {
	parse(text string) *refusal
	text() string

	// simpler lists what makes the value a simpler one, the simplest first. Whether
	// a scenario may have it then is not asked.
	simpler() []func()
}

type durationUnit struct {
	name string
	unit time.Duration
}

var durationUnits = [...]durationUnit{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
}

const (
	durationForm  = "a duration such as 250ms, 70s, 1h30m or 14d"
	durationOrder = "one of the units d, h, m, s, ms, in this order, each once"
)

// foundIn quotes what was found in text, which may be nothing.
func foundIn(text, found string) string {
	if found == "" {
		return "the end of " + shown(text)
	}
	return shown(found)
}

// parseDuration reads numbers with units from d, h, m, s, ms, the larger unit
// first, each at most once and at least 1; and 0s. The sum is at most 106751d.
func parseDuration(text string) (time.Duration, *refusal) {
	if text == "0s" {
		return 0, nil
	}
	var sum time.Duration
	units := durationUnits[:]
	for rest := text; rest != "" || sum == 0; {
		at := len(text) - len(rest)
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		letters := len(rest) - len(strings.TrimLeft(rest[digits:], "dhms"))
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if digits == 0 || rest[0] == '0' {
			return 0, &refusal{at: at, found: foundIn(text, rest), allowed: durationForm, hint: durationHint(text)}
		}
		named := func(u durationUnit) bool { return u.name == rest[digits:letters] }
		i := slices.IndexFunc(units, named)
		if i < 0 {
			r := &refusal{at: at + digits, found: foundIn(text, rest[digits:]), allowed: durationOrder, hint: durationHint(text)}
			if before := slices.IndexFunc(durationUnits[:], named); before >= 0 && before < len(durationUnits)-len(units)-1 {
				r.hint = "put the larger unit first: " + r.hint
			}
			return 0, r
		}
		if err != nil || n > int64((math.MaxInt64-sum)/units[i].unit) {
			return 0, &refusal{found: shown(text), allowed: "at most 106751d"}
		}
		sum += time.Duration(n) * units[i].unit
		rest, units = rest[letters:], units[i+1:]
	}
	return sum, nil
}

// durationHint reads a duration as other programs write it, and says how to
// write it here; "" if it cannot be read.
func durationHint(text string) string {
	ms, ok := core.LooseMS(text)
	if !ok {
		return ""
	}
	return "write " + formatDuration(time.Duration(ms)*time.Millisecond)
}

// formatDuration is a text that parseDuration reads as d; of a duration that
// has none it is d's text in Go.
func formatDuration(d time.Duration) string {
	if d < 0 || d%time.Millisecond != 0 {
		return d.String()
	}
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range durationUnits {
		if n := d / u.unit; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			d -= n * u.unit
		}
	}
	return b.String()
}

// durationValue is a duration; zero stands for one that is left out.
type durationValue struct {
	d      *time.Duration
	orZero bool          // zero may be written
	most   time.Duration // 0: no limit of its own
}

func (v durationValue) parse(text string) *refusal {
	d, r := parseDuration(text)
	switch {
	case r != nil:
		return r
	case d == 0 && !v.orZero:
		return refuse(text, "a duration of at least 1ms")
	case d > v.most && v.most > 0:
		return refuse(text, "at most "+formatDuration(v.most))
	}
	*v.d = d
	return nil
}

func (v durationValue) text() string {
	if *v.d == 0 {
		return ""
	}
	return formatDuration(*v.d)
}

// offsetValue is a duration with a sign.
type offsetValue struct{ d *time.Duration }

func (v offsetValue) parse(text string) *refusal {
	if text == "" || text[0] != '+' && text[0] != '-' {
		return refuse(text, "an offset with its sign, such as +8h or -90s")
	}
	r := durationValue{d: v.d}.parse(text[1:])
	if r != nil {
		r.at++
	} else if text[0] == '-' {
		*v.d = -*v.d
	}
	return r
}

func (v offsetValue) text() string {
	switch d := *v.d; {
	case d == 0:
		return ""
	case d < 0 && d != math.MinInt64:
		return "-" + formatDuration(-d)
	default:
		return "+" + formatDuration(d)
	}
}

// driftValue is how much too fast a clock is, in parts per million.
type driftValue struct{ ppm *int64 }

func (v driftValue) parse(text string) *refusal {
	form := fmt.Sprintf("parts per million with their sign, up to %d, such as +50 or -200", million)
	ppm, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ppm == 0 || ppm < -million || ppm > million || fmt.Sprintf("%+d", ppm) != text {
		return refuse(text, form)
	}
	*v.ppm = ppm
	return nil
}

func (v driftValue) text() string {
	if *v.ppm == 0 {
		return ""
	}
	return fmt.Sprintf("%+d", *v.ppm)
}

// instantValue is a time.
type instantValue struct{ t *time.Time }

const instantForm = "a time in whole milliseconds such as 2026-03-29T00:30:00Z"

func (v instantValue) parse(text string) *refusal {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Nanosecond()%int(time.Millisecond) != 0 || t.IsZero() || strings.Contains(text, ",") {
		return refuse(text, instantForm)
	}
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 { // what RFC 3339 can write
		return refuse(text, instantForm+", in the years 0000 to 9999 in UTC")
	}
	*v.t = t
	return nil
}

func (v instantValue) text() string {
	if v.t.IsZero() {
		return ""
	}
	return v.t.UTC().Format(time.RFC3339Nano)
}

// numberValue is a whole number within limits; zero may be left out if it is not
// always shown.
type numberValue[T ~int | ~int16 | ~int64 | ~uint64] struct {
	n           *T
	least, most T
	always      bool
}

func (v numberValue[T]) parse(text string) *refusal {
	allowed := fmt.Sprintf("a whole number from %d to %d", v.least, v.most)
	n, err := strconv.ParseInt(text, 10, 64)
	if u, bad := strconv.ParseUint(text, 10, 64); bad == nil {
		n, err = int64(u), nil
	}
	// One that T does not hold, or that is not written plainly, reads differently.
	if x := T(n); err == nil && fmt.Sprint(x) == text && v.least <= x && x <= v.most {
		*v.n = x
		return nil
	}
	return refuse(text, allowed)
}

func (v numberValue[T]) text() string {
	if *v.n == 0 && !v.always {
		return ""
	}
	return fmt.Sprint(*v.n)
}

// wordValue is one of some words; the word of a value that may be left out is
// words[0], of one that may not it is "".
type wordValue[T ~uint8] struct {
	v     *T
	words []string
}

func (c wordValue[T]) parse(text string) *refusal {
	for i, w := range c.words {
		if w == text && w != "" {
			*c.v = T(i)
			return nil
		}
	}
	return unknown(text, c.choices())
}

func (c wordValue[T]) text() string {
	switch {
	case *c.v == 0:
		return ""
	case int(*c.v) < len(c.words):
		return c.words[*c.v]
	default:
		return strconv.Itoa(int(*c.v))
	}
}

// choices are the words, but that of what is left out.
func (c wordValue[T]) choices() []string {
	return slices.DeleteFunc(slices.Clone(c.words), func(w string) bool { return w == "" })
}

// yesValue is a switch that is off unless it says yes.
type yesValue struct{ b *bool }

func (v yesValue) parse(text string) *refusal {
	if text != "yes" && text != "no" {
		return unknown(text, []string{"yes", "no"})
	}
	*v.b = text == "yes"
	return nil
}

func (v yesValue) text() string {
	if *v.b {
		return "yes"
	}
	return ""
}

// chanceValue is a probability: 0.3 or 30%.
type chanceValue struct{ p *PPM }

const chanceForm = "a probability of at least 0.000001 and at most 1, such as 0.3 or 30%"

func (v chanceValue) parse(text string) *refusal {
	digits, percent := strings.CutSuffix(text, "%")
	scale, places := Always, 6
	if percent {
		scale, places = Always/100, 4
	}
	whole, fraction, point := strings.Cut(digits, ".")
	n, err := strconv.ParseUint(whole, 10, 16)
	m, ferr := strconv.ParseUint((fraction + "000000")[:max(places, len(fraction))], 10, 32)
	p := PPM(n)*scale + PPM(m)
	if err != nil || ferr != nil || whole != strconv.Itoa(int(n)) || len(fraction) > places ||
		point && fraction == "" || n > 100 || p < 1 || p > Always {
		return refuse(text, chanceForm)
	}
	*v.p = p
	return nil
}

func (v chanceValue) text() string {
	switch p := *v.p; {
	case p == 0:
		return ""
	case p == Always:
		return "1"
	case p < 0 || p > Always:
		return strconv.Itoa(int(p)) + "ppm"
	default:
		return "0." + strings.TrimRight(fmt.Sprintf("%06d", p), "0")
	}
}

// spanValue is a duration, or two with .. between.
type spanValue struct {
	s     *Span
	least time.Duration // of the longer one
}

const spanForm = "a duration or two with .. between, such as 1s..5s"

func (v spanValue) parse(text string) *refusal {
	first, last, two := strings.Cut(text, "..")
	if first == "" || two && last == "" {
		return refuse(text, spanForm)
	}
	low, r := parseDuration(first)
	if r != nil {
		return r
	}
	high := low
	if two {
		if high, r = parseDuration(last); r != nil {
			r.at += len(first) + len("..")
			return r
		}
	}
	switch {
	case high < low:
		return refuse(text, "a range whose end is not before its beginning")
	case high < v.least:
		return refuse(text, "at least "+formatDuration(v.least))
	}
	*v.s = Span{low, high}
	return nil
}

func (v spanValue) text() string {
	switch {
	case *v.s == Span{}:
		return ""
	case v.s.Min == v.s.Max:
		return formatDuration(v.s.Min)
	default:
		return formatDuration(v.s.Min) + ".." + formatDuration(v.s.Max)
	}
}

// handlerValue is a kind and what it needs, with colons between.
type handlerValue struct{ h *Handler }

var handlerWords = []string{HandlerSucceeds: "ok", HandlerFails: "fail", HandlerOverruns: "slow", HandlerPanics: "panic"}

// handlerInGo stands for a handler in Go where a scenario is shown.
const handlerInGo = "go"

const handlerForm = "ok, ok:2s, ok:1s..5s, fail, fail:30%, fail:30%:1s..5s, slow or panic, with what fail may have"

func (v handlerValue) parse(text string) *refusal {
	kind, rest, more := strings.Cut(text, ":")
	*v.h = Handler{}
	if r := (wordValue[HandlerKind]{&v.h.Kind, handlerWords}).parse(kind); r != nil {
		r.allowed = handlerForm
		if kind == handlerInGo {
			r.hint = "a handler in Go is no part of a scenario file: run the program that has it"
		}
		return r
	}
	if more && (v.h.Kind == HandlerFails || v.h.Kind == HandlerPanics) {
		first, after, both := strings.Cut(rest, ":")
		r := chanceValue{&v.h.Fails}.parse(first)
		switch {
		case r == nil:
			rest, more = after, both
		case both:
			r.at += len(kind) + len(":")
			return r
		}
	}
	if !more {
		return nil
	}
	r := spanValue{s: &v.h.Takes}.parse(rest)
	if r != nil || v.h.Kind == HandlerOverruns {
		return &refusal{at: len(text) - len(rest), found: shown(rest), allowed: "a handler such as " + handlerForm}
	}
	return nil
}

func (v handlerValue) text() string {
	if *v.h == (Handler{}) {
		return ""
	}
	word := strconv.Itoa(int(v.h.Kind))
	if int(v.h.Kind) < len(handlerWords) {
		word = handlerWords[v.h.Kind]
	}
	for _, part := range []string{chanceValue{&v.h.Fails}.text(), spanValue{s: &v.h.Takes}.text()} {
		if part != "" {
			word += ":" + part
		}
	}
	return word
}

// hoursValue is from when to when in a zone, which may be left out.
type hoursValue struct{ h *Hours }

const hoursForm = "times of day such as 08:00-17:30 or 22:00-06:00@Europe/Berlin"

func (v hoursValue) parse(text string) *refusal {
	times, zoned, hasZone := strings.Cut(text, "@")
	start, end, two := strings.Cut(times, "-")
	if !two {
		return refuse(text, hoursForm)
	}
	var h Hours
	for _, part := range []struct {
		of *time.Duration
		at int
		is string
	}{{&h.Start, 0, start}, {&h.End, len(start) + 1, end}} {
		t, err := time.Parse("15:04", part.is)
		if err != nil || len(part.is) != len("15:04") {
			return &refusal{at: part.at, found: shown(part.is), allowed: "a time of day from 00:00 to 23:59"}
		}
		*part.of = time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
	}
	switch {
	case h.Start == h.End:
		return refuse(text, hoursForm+", of which the second is another than the first")
	case hasZone:
		if _, err := zone(zoned); err != nil {
			r := unknown(zoned, zoneNames())
			r.at, r.allowed = len(times)+1, "a time zone of the IANA database such as UTC or Europe/Berlin"
			return r
		}
		h.Zone = zoned
	}
	*v.h = h
	return nil
}

func (v hoursValue) text() string {
	h := *v.h
	if h == (Hours{}) {
		return ""
	}
	clock := func(d time.Duration) string {
		if d < 0 || d >= 24*time.Hour || d%time.Minute != 0 {
			return d.String()
		}
		return clockOf(d)
	}
	text := clock(h.Start) + "-" + clock(h.End)
	if h.Zone != "" {
		text += "@" + h.Zone
	}
	return text
}

// breakerValue is a number of jobs, or off.
type breakerValue struct{ n *int }

const breakerOff = "off"

func (v breakerValue) parse(text string) *refusal {
	if text == breakerOff {
		*v.n = NoBreaker
		return nil
	}
	r := numberValue[int]{n: v.n, least: 1, most: math.MaxUint8}.parse(text)
	if r != nil {
		r.allowed += ", or " + breakerOff
	}
	return r
}

func (v breakerValue) text() string {
	if *v.n == NoBreaker {
		return breakerOff
	}
	return numberValue[int]{n: v.n}.text()
}

func (v breakerValue) choices() []string { return []string{breakerOff} }

// classValue is what an error says of another attempt.
type classValue struct{ c *Class }

var classWords = []string{
	ClassPlain: "plain", ClassTransient: "transient", ClassPermanent: "permanent", ClassTimeout: "timeout", ClassRetryAfter: "retry-after",
}

const classForm = "plain, transient, permanent, timeout or retry-after:10s"

func (v classValue) parse(text string) *refusal {
	kind, after, has := strings.Cut(text, ":")
	*v.c = Class{}
	if r := (wordValue[ClassKind]{&v.c.Kind, classWords}).parse(kind); r != nil {
		r.allowed = classForm
		return r
	}
	if has != (v.c.Kind == ClassRetryAfter) {
		return refuse(text, classForm)
	}
	if !has {
		return nil
	}
	r := durationValue{d: &v.c.After}.parse(after)
	if r != nil {
		r.at += len(kind) + len(":")
	}
	return r
}

func (v classValue) text() string {
	word := wordValue[ClassKind]{&v.c.Kind, classWords}.text()
	if v.c.Kind == ClassRetryAfter {
		word += ":" + formatDuration(v.c.After)
	}
	return word
}

func (v classValue) choices() []string {
	return append(slices.Clone(classWords[:ClassRetryAfter]), classWords[ClassRetryAfter]+":")
}

// everyValue is a spec without the words before its interval.
type everyValue struct{ spec *string }

const specPrefix = "@every "

func (v everyValue) parse(text string) *refusal {
	_, err := core.ParseSpec(specPrefix + text)
	bad := (*core.SpecError)(nil)
	if !errors.As(err, &bad) {
		*v.spec = specPrefix + text
		return nil
	}
	r := &refusal{at: max(bad.Offset-len(specPrefix), 0), found: foundIn(text, bad.Found), allowed: bad.Allowed, hint: bad.Hint}
	switch _, err := core.ParseSpec(text); {
	case err == nil:
		r.hint = "leave out " + strings.TrimSpace(specPrefix)
	case r.hint == "" && errors.As(err, &bad):
		r.hint = bad.Hint
	}
	r.hint = strings.ReplaceAll(r.hint, `"`+specPrefix, `every="`)
	return r
}

func (v everyValue) text() string {
	interval, ok := strings.CutPrefix(*v.spec, specPrefix)
	if _, err := core.ParseSpec(specPrefix + interval); !ok && err == nil { // it would be read
		return "(no @every) " + *v.spec
	}
	return interval
}

// nameValue is the name of a schedule, a queue or an outbox.
type nameValue struct {
	what string // with its article
	s    *string
}

func (v nameValue) parse(text string) *refusal {
	*v.s = text
	if bad := (*core.NameError)(nil); errors.As(core.CheckName(v.what, text), &bad) {
		return refuse(text, fmt.Sprintf("%s: this one %s", v.what, bad.Problem))
	}
	return nil
}

func (v nameValue) text() string { return *v.s }

// bytesValue is a payload.
type bytesValue struct{ b *[]byte }

func (v bytesValue) parse(text string) *refusal {
	if *v.b = nil; text != "" {
		*v.b = []byte(text)
	}
	return nil
}

func (v bytesValue) text() string { return string(*v.b) }
