package core

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// explainSpec says where text leaves the grammar, what is allowed there and,
// where that can be guessed, what to write instead (G4).
func explainSpec(text string) *SpecError {
	_, fault := scanSpec(text)
	e := &SpecError{Text: text, Offset: fault - 1}
	e.Found, e.Allowed = found(text, e.Offset), "a spec like \"@every 5m\": a whole number and one of s, m, h, d"
	switch {
	case strings.HasPrefix(text, specPrefix):
		explainInterval(e, text[len(specPrefix):])
	case strings.HasPrefix(text, "@every"):
		e.Allowed = "one space after @every"
		if rest := strings.TrimSpace(text[len("@every"):]); rest != "" {
			e.Hint = suggest(rest)
		}
	case text != strings.TrimSpace(text):
		e.Hint = "blanks around a spec are not allowed"
		if inner := strings.TrimSpace(text); valid(inner) {
			e.Hint += ": write " + strconv.Quote(inner)
		}
	case strings.HasPrefix(text, "@"):
		e.Hint = descriptorHint(text)
	case looksLikeCron(text):
		e.Hint = cronHint(text)
	case text != "":
		e.Hint = suggest(text)
	}
	return e
}

// explainInterval explains a fault behind "@every ".
func explainInterval(e *SpecError, interval string) {
	at := e.Offset - len(specPrefix)
	digits := len(interval) - len(strings.TrimLeft(interval, "0123456789"))
	switch {
	case at == 0 && strings.HasPrefix(interval, "0") && strings.Trim(interval[:digits], "0") == "" && digits == len(interval)-1:
		e.Allowed = "a number from 1 on"
		e.Hint = "the shortest interval is 1s"
	case at == 0 && strings.HasPrefix(interval, "0"):
		e.Allowed = "a digit from 1 to 9 first"
		e.Hint = suggest(interval)
	case at == 0 && digits > 0:
		e.Found = interval
		e.Allowed = "an interval of at most 106751d, 2562047h, 153722867m or 9223372036s"
	case at == 0:
		e.Allowed = "a whole number from 1 on, without a sign"
		e.Hint = suggest(strings.TrimLeft(interval, " \t+"))
	case at == digits:
		e.Allowed = "one of s, m, h, d"
		e.Hint = suggest(interval)
	default:
		e.Allowed = "the end after one number and one unit"
		e.Hint = suggest(interval)
	}
}

// found is the character of text at the offset, or "" at its end.
func found(text string, at int) string {
	if at >= len(text) {
		return ""
	}
	_, size := utf8.DecodeRuneInString(text[at:])
	return text[at : at+size]
}

func valid(text string) bool {
	_, fault := scanSpec(text)
	return fault == 0
}

// suggest reads an interval as other programs write it, and says how to write
// it here, or "" if it cannot be read.
func suggest(interval string) string {
	ms, ok := LooseMS(interval)
	if !ok {
		return ""
	}
	if ms > 0 && ms < 1000 {
		return "the shortest interval is 1s"
	}
	if ms <= 0 || ms%1000 != 0 {
		return "an interval is a whole number of seconds, from 1s on"
	}
	spec, ok := Every(ms)
	if !ok {
		return ""
	}
	return "write " + strconv.Quote(spec.String())
}

// looseUnits are units as other programs write them, in milliseconds. The
// longest come first, since a unit is matched by its prefix.
var looseUnits = [...]struct {
	word string
	ms   int64
}{
	{"seconds", 1000},
	{"minutes", 60_000},
	{"second", 1000},
	{"minute", 60_000},
	{"hours", 3_600_000},
	{"weeks", 604_800_000},
	{"hour", 3_600_000},
	{"days", 86_400_000},
	{"week", 604_800_000},
	{"mins", 60_000},
	{"secs", 1000},
	{"min", 60_000},
	{"sec", 1000},
	{"day", 86_400_000},
	{"ms", 1},
	{"w", 604_800_000},
	{"d", 86_400_000},
	{"h", 3_600_000},
	{"m", 60_000},
	{"s", 1000},
}

// LooseMS reads an interval as other programs write it, such as 1h30m, 1.5h,
// 0.5s, 5S, 2w, 5 minutes, in milliseconds; false if it cannot be read.
func LooseMS(s string) (ms int64, ok bool) {
	const most = MaxIntervalMS / 604_800_000 // no product below overflows
	s = strings.ToLower(s)
	for s = strings.TrimLeft(s, " "); s != ""; s = strings.TrimLeft(s, " ") {
		number := s[:len(s)-len(strings.TrimLeft(s, "0123456789."))]
		whole, fraction, _ := strings.Cut(number, ".")
		s = strings.TrimLeft(s[len(number):], " ")
		n, err := strconv.ParseInt("0"+whole, 10, 64)
		if number == "" || whole+fraction == "" || err != nil || n > most {
			return 0, false
		}
		unit := int64(0)
		for _, u := range looseUnits {
			if strings.HasPrefix(s, u.word) {
				s, unit = s[len(u.word):], u.ms
				break
			}
		}
		if unit == 0 || len(fraction) > 6 {
			return 0, false
		}
		part := n * unit
		scale := int64(1)
		for _, digit := range fraction {
			if digit < '0' || digit > '9' {
				return 0, false
			}
			scale *= 10
			part += unit * int64(digit-'0') / scale
		}
		if ms += part; ms > MaxIntervalMS {
			return 0, false
		}
	}
	return ms, ms > 0
}

// What to write for a period of cron's.
const (
	keepsHour  = ", which keeps the period but not the hour; an anchor keeps the hour in UTC"
	leaves     = " is near, but leaves the calendar"
	forHour    = "write \"@every 1h\"; an anchor keeps the minute"
	forDay     = "write \"@every 1d\"" + keepsHour
	forWeek    = "write \"@every 7d\"" + keepsHour
	forMonth   = "\"@every 30d\"" + leaves
	forYear    = "\"@every 365d\"" + leaves
	notGrammar = " is cron, which is not in this grammar: "
)

func descriptorHint(text string) string {
	switch strings.ToLower(text) {
	case "@daily", "@midnight":
		return text + notGrammar + forDay
	case "@hourly":
		return text + notGrammar + forHour
	case "@weekly":
		return text + notGrammar + forWeek
	case "@monthly":
		return text + notGrammar + forMonth
	case "@yearly", "@annually":
		return text + notGrammar + forYear
	case "@reboot", "@once":
		return text + " is not a schedule: enqueue a job when the program starts"
	}
	if strings.EqualFold(text[:min(len(text), len("@every"))], "@every") {
		return "@every is written in lower case"
	}
	return ""
}

// looksLikeCron reports whether text has five to seven fields of cron's
// characters, a time zone among them.
func looksLikeCron(text string) bool {
	fields := strings.Fields(text)
	if len(fields) < 5 || len(fields) > 7 {
		return false
	}
	for _, field := range fields {
		if strings.Trim(strings.ToUpper(field), "0123456789*/,-?#=_ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return false
		}
	}
	return true
}

// cronHint names the interval that plain fields amount to: numbers, then a
// star or a step that divides its unit, then stars. Other fields have no even
// period.
func cronHint(text string) string {
	const cron = "cron expressions are not in this grammar"
	fields := strings.Fields(text)
	if strings.Contains(fields[0], "=") {
		fields = fields[1:]
	}
	if len(fields) < 5 || len(fields) > 6 {
		return cron + ": only \"@every <n><unit>\" is"
	}
	if hint := calendarHint(fields[len(fields)-5:]); hint != "" {
		return cron + ": " + hint
	}
	steps := [...]struct {
		unit string
		of   int // units in the next larger one
	}{{"s", 60}, {"m", 60}, {"h", 24}, {"d", 1}}
	for i, step := range steps[6-len(fields):] {
		if strings.Trim(fields[i], "0123456789") == "" {
			continue
		}
		n := 1
		if number, ok := strings.CutPrefix(fields[i], "*/"); ok {
			n, _ = strconv.Atoi(number)
		} else if strings.Trim(fields[i], "*?") != "" {
			n = 0
		}
		if n < 1 || step.of%n != 0 || strings.Trim(strings.Join(fields[i+1:], ""), "*?") != "" {
			break
		}
		return cron + ": write \"" + specPrefix + strconv.Itoa(n) + step.unit + "\"; an anchor sets its offset, in UTC"
	}
	return cron + ": write its period, as in \"@every 1d\"; an anchor sets the time of day, in UTC"
}

// calendarHint is the hint for five fields that come once in a week, a month or
// a year; "" for others.
func calendarHint(fields []string) string {
	digits := func(field string) bool { return strings.Trim(field, "0123456789") == "" }
	any := func(field string) bool { return field == "*" || field == "?" }
	day, month, weekday := fields[2], fields[3], fields[4]
	once := func(field string) bool {
		return digits(field) || len(field) == 3 && strings.Trim(strings.ToUpper(field), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	}
	switch {
	case !digits(fields[0]) || !digits(fields[1]):
		return ""
	case any(day) && any(month) && once(weekday):
		return forWeek
	case digits(day) && any(month) && any(weekday):
		return forMonth
	case digits(day) && once(month) && any(weekday):
		return forYear
	}
	return ""
}
