package wire_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/wasm/conversation"
	"github.com/tickonce/tickonce/wasm/wire"
)

// each calls fn for every step of the conversations.
func each(f *testing.F, fn func(step conversation.Step)) {
	for _, file := range conversation.Files(&testing.T{}, conversations) {
		for _, step := range conversation.Read(&testing.T{}, file) {
			if step.Text != nil {
				step.Request = json.RawMessage(*step.Text)
			}
			fn(step)
		}
	}
}

// FuzzRequest reads requests beside encoding/json. What is accepted is the JSON
// that encoding/json reads, without the fields of zero value; what is refused
// is no JSON, has a field twice, or one that is not known or of another kind,
// or says what is wrong with its value.
func FuzzRequest(f *testing.F) {
	each(f, func(step conversation.Step) {
		if op, known := wire.ParseOp(step.Call); known {
			f.Add(int32(op), []byte(step.Request))
		}
	})
	samples := map[wire.Op]any{}
	for op := wire.Op(1); op.String() != "unknown"; op++ {
		var sample any
		require.NoError(f, json.Unmarshal(requestOf(op).Encode(op), &sample))
		samples[op] = sample
	}
	f.Fuzz(func(t *testing.T, number int32, text []byte) {
		op := wire.Op(number)
		read, err := wire.ParseRequest(op, text)
		if err != nil {
			var refused *wire.RequestError
			require.ErrorAs(t, err, &refused)
			require.True(t, utf8.ValidString(refused.Error()))
			require.Less(t, len(refused.Error()), len(text)+1000)
			if sample, known := samples[op]; known && op != wire.OpTx && !ofItsValue.MatchString(refused.Problem) {
				value, plain := plainJSON(text)
				require.False(t, plain && conforms(value, sample), "%s refuses %s", refused, text)
			}
			return
		}
		value, plain := plainJSON(text)
		require.True(t, plain, "accepted: %q", text)
		encoded := read.Encode(op)
		again, err := wire.ParseRequest(op, encoded)
		require.NoError(t, err, "%s", encoded)
		require.Equal(t, read, again)
		require.Equal(t, encoded, again.Encode(op))
		whole, plain := plainJSON(encoded)
		require.True(t, plain)
		require.Equal(t, pruned("", value), pruned("", whole))
	})
}

// ofItsValue are the problems that a value has though it is of the kind wanted.
var ofItsValue = regexp.MustCompile(`out of range|want -?\d+ to \d+|within ±|want at most|base64|want one of|one at most|is none of|want one$|want milliseconds`)

// plainJSON is the value of an object as encoding/json reads it, and false
// for what is no JSON, no object, has a name twice, or bytes or escapes that
// are no UTF-8.
func plainJSON(text []byte) (map[string]any, bool) {
	var value map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if !utf8.Valid(text) || halves.Match(text) || decoder.Decode(&value) != nil || value == nil {
		return nil, false
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, false
	}
	return value, !twice(json.NewDecoder(bytes.NewReader(text)))
}

// halves are escapes of surrogates, of which encoding/json takes lone ones.
var halves = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

// twice reports whether an object of the text has a name twice.
func twice(decoder *json.Decoder) bool {
	type level struct {
		names map[string]bool // nil of an array
		value bool            // a value is next
	}
	var levels []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		if d, ok := token.(json.Delim); ok && (d == '}' || d == ']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels); n > 0 && levels[n-1].names != nil {
			top := &levels[n-1]
			if !top.value {
				name := token.(string)
				if top.names[name] {
					return true
				}
				top.names[name], top.value = true, true
				continue
			}
			top.value = false
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{names: map[string]bool{}})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}

// conforms reports whether the value has only what the sample has, of the same
// kinds.
func conforms(value, sample any) bool {
	switch sample := sample.(type) {
	case map[string]any:
		object, ok := value.(map[string]any)
		for name, v := range object {
			s, known := sample[name]
			if !known || !conforms(v, s) {
				return false
			}
		}
		return ok
	case []any:
		list, ok := value.([]any)
		for _, v := range list {
			if !conforms(v, sample[0]) {
				return false
			}
		}
		return ok
	case float64:
		_, ok := value.(json.Number)
		return ok
	default:
		return reflect.TypeOf(value) == reflect.TypeOf(sample)
	}
}

// pruned is a value without what may be left out on the wire, and instants of
// 0, its bytes in one form.
func pruned(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, v := range v {
			if v := pruned(name, v); v != nil {
				kept[name] = v
			}
		}
		if len(kept) == 0 && name != "error" && name != "retryAfter" && name != "seen" && !strings.HasSuffix(name, "[]") {
			return nil
		}
		return kept
	case []any:
		var kept []any
		for _, v := range v {
			kept = append(kept, pruned(name+"[]", v))
		}
		if kept == nil {
			return nil
		}
		return kept
	case json.Number:
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return v
		}
		if n == 0 && !strings.HasSuffix(name, "[]") {
			return nil
		}
		return n
	case string:
		if name == "payload" {
			b, err := base64.StdEncoding.DecodeString(v)
			if err != nil || len(b) == 0 {
				return nil
			}
			return b
		}
		if v == "" || name == "overlap" && v == "allow" {
			return nil
		}
		return v
	case bool:
		if !v {
			return nil
		}
		return v
	default:
		return v
	}
}

// FuzzServer speaks lines with a server, "at name request": nothing panics,
// what is refused changes nothing, and what is put out and answered can be
// read.
func FuzzServer(f *testing.F) {
	for _, file := range conversation.Files(&testing.T{}, conversations) {
		var lines strings.Builder
		for _, step := range conversation.Read(&testing.T{}, file) {
			switch {
			case step.Step != nil:
				fmt.Fprintf(&lines, "%v step %d\n", step.At, *step.Step)
			case step.Call != "" && step.Text == nil:
				fmt.Fprintf(&lines, "%v %s %s\n", step.At, step.Call, step.Request)
			}
		}
		f.Add(strings.ReplaceAll(lines.String(), "\t", ""))
	}
	f.Fuzz(func(t *testing.T, lines string) {
		s, err := wire.Open(0, []byte(`{"seed":"7","journal":true,"events":true,"details":2,"limits":{"queueLength":50,"schedules":5,"payload":100}}`), nil, nil)
		require.NoError(t, err)
		for line := range strings.Lines(lines) {
			when, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			name, request, _ := strings.Cut(rest, " ")
			now, _ := strconv.ParseFloat(when, 64)
			before, err := s.Snapshot()
			require.NoError(t, err)
			var reply []byte
			if name == "step" {
				most, _ := strconv.ParseInt(request, 10, 32)
				var next float64
				next, err = s.Step(now, int32(most))
				require.Equal(t, err != nil, math.IsNaN(next))
			} else {
				op, _ := wire.ParseOp(name)
				if reply, err = s.Call(now, op, []byte(request)); err == nil {
					_, err := wire.ParseReply(reply)
					require.NoError(t, err, "%s", reply)
				}
			}
			records, unread := wire.ParseRecords(s.Out())
			require.NoError(t, unread)
			if err == nil {
				continue
			}
			var refused *wire.Error
			require.ErrorAs(t, err, &refused)
			require.NotEqual(t, wire.CodeInternal, refused.Code, "%s: %s", line, refused)
			after, err := s.Snapshot()
			require.NoError(t, err)
			require.Equal(t, before, after, "%s: %s", line, refused)
			for _, record := range records {
				require.NotEqual(t, wire.RecordJournal, record.Kind, "%s: %s", line, refused)
			}
		}
	})
}

// FuzzOpen opens handles: nothing panics, and what is opened has a state that
// can be taken.
func FuzzOpen(f *testing.F) {
	each(f, func(step conversation.Step) {
		if step.Open != nil {
			f.Add(step.At, []byte(step.Open), []byte(nil), []byte(nil))
		}
	})
	s, err := wire.Open(0, []byte(`{"seed":"7","journal":true}`), nil, nil)
	require.NoError(f, err)
	var log []byte
	for _, request := range []string{`{"name":"s","spec":"@every 5s","queue":"q","payload":"aGk="}`, `{"name":"t","spec":"@every 1m","queue":"q"}`} {
		_, err := s.Call(0, wire.OpSchedule, []byte(request))
		require.NoError(f, err)
		records, err := wire.ParseRecords(s.Out())
		require.NoError(f, err)
		log = append(log, records[0].Data...)
	}
	snapshot, err := s.Snapshot()
	require.NoError(f, err)
	f.Add(1.0, []byte(`{"seed":"7"}`), snapshot, []byte(nil))
	f.Add(1.0, []byte(`{"seed":"7"}`), []byte(nil), log)
	f.Add(1.0, []byte(`{"seed":"7","zones":[{"name":"Z","data":"VFppZg=="}]}`), snapshot, log)
	f.Fuzz(func(t *testing.T, now float64, config, snapshot, log []byte) {
		s, err := wire.Open(now, config, snapshot, log)
		if err != nil {
			require.Contains(t, []string{wire.CodeRequest, "invalid_option", "snapshot"}, wire.ErrorOf(err).Code, err)
			return
		}
		_, err = s.Snapshot()
		require.NoError(t, err)
	})
}

// FuzzRecords reads bytes as records: what is read and written again says the
// same.
func FuzzRecords(f *testing.F) {
	for _, v := range told() {
		b, err := hex.DecodeString(v.Bytes)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := wire.ParseRecords(b)
		if err != nil {
			return
		}
		again, err := wire.ParseRecords(bytesOf(records...))
		require.NoError(t, err)
		require.Equal(t, records, again)
	})
}
