package wire_test

import (
	"math"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

// whole is a value of the type none of whose fields is zero, as far as they can
// be set, and no two alike, as far as they have room for it.
func whole[T any]() *T {
	v := new(T)
	fill(reflect.ValueOf(v).Elem(), new(int64))
	return v
}

func fill(v reflect.Value, n *int64) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(*n).UTC()))
		return
	case time.Duration:
		v.SetInt(*n * int64(time.Millisecond))
		return
	case []wire.TxOp, error: // those of a transaction are seen one by one
		return
	case wire.Op:
		v.SetInt(int64(wire.OpLookup))
		return
	case *wire.Totals:
		reply, err := wire.ParseReply([]byte(`{"totals":{"runs":{"ok":1},"skipped":{"cap":1}}}`))
		if err != nil {
			panic(err)
		}
		v.Set(reflect.ValueOf(reply.Totals))
		return
	case []wire.Reply: // are replies
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.String:
		v.SetString("text " + strconv.FormatInt(*n, 10))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(*n)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	}
}

// Everything that is written is read as it was.
func TestEverythingIsReadAsItWasWritten(t *testing.T) {
	reply := whole[wire.Reply]()
	reply.Results = []wire.Reply{*whole[wire.Reply](), {}}
	read, err := wire.ParseReply(reply.Encode())
	require.NoError(t, err)
	require.Equal(t, reply, read)

	for op := wire.Op(1); op.String() != "unknown"; op++ {
		r := requestOf(op)
		switch op {
		case wire.OpEnd:
			r.Error = &wire.Failure{Message: "x", Permanent: true}
		case wire.OpDeliver:
		default:
			r.Outbox = "" // in the place of a queue
		}
		text := r.Encode(op)
		read, err := wire.ParseRequest(op, text)
		require.NoError(t, err, "%s", text)
		require.Equal(t, string(text), string(read.Encode(op)))
	}

	for kind := wire.RecordKind(1); kind.String() != "unknown"; kind++ {
		r := whole[wire.Record]()
		r.Kind = kind
		read, err := wire.ParseRecords(append(r.Append(nil), r.Append(nil)...))
		require.NoError(t, err)
		require.Len(t, read, 2)
		require.Equal(t, r.Append(nil), read[1].Append(nil))
		require.Equal(t, read[0], read[1])
	}
}

// A number that is too large for its field is refused with what the field takes.
func TestNumbersOutOfRangeAreRefusedWithIt(t *testing.T) {
	for n, problem := range map[string]string{
		"2147483647": "", "-2147483648": "",
		"2147483648":        "is 2147483648, want -2147483648 to 2147483647",
		"-2147483649":       "is -2147483649, want -2147483648 to 2147483647",
		"9007199254740992":  "is 9007199254740992, want a whole number within ±(2^53 - 1)",
		"-9007199254740991": "is -9007199254740991, want -2147483648 to 2147483647",
	} {
		_, err := wire.ParseRequest(wire.OpStopWork, []byte(`{"worker":`+n+`}`))
		if problem == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, "invalid request: worker "+problem)
		}
	}
}

// Fields of different sizes, at their edges.
func TestDurationsAndInstantsOnTheWire(t *testing.T) {
	span := func(d time.Duration) string {
		return string((&wire.Request{For: d}).Encode(wire.OpHeartbeat))
	}
	require.Equal(t, `{}`, span(0))
	require.Equal(t, `{"forMS":1}`, span(time.Millisecond))
	require.Equal(t, `{"forMS":-1}`, span(-time.Millisecond))
	require.Equal(t, `{"forMS":-1}`, span(-1), "what is below zero stays there")
	require.Equal(t, `{"forMS":1.500000}`, span(1500*time.Microsecond), "a fraction is written, and refused where it is read")
	require.Equal(t, `{"forMS":0.000001}`, span(1))
	_, err := wire.ParseRequest(wire.OpHeartbeat, []byte(span(1)))
	require.ErrorContains(t, err, "want whole milliseconds")
	for _, d := range []time.Duration{time.Duration(math.MaxInt64).Truncate(time.Millisecond), time.Duration(math.MinInt64).Truncate(time.Millisecond), -time.Millisecond} {
		read, err := wire.ParseRequest(wire.OpHeartbeat, []byte(span(d)))
		require.NoError(t, err)
		require.Equal(t, d, read.For)
	}

	policy := func(window time.Duration) *wire.Request {
		return &wire.Request{Schedule: tickonce.ScheduleOptions{CatchUp: tickonce.CatchUp{Window: window}}}
	}
	for window, want := range map[time.Duration]string{
		tickonce.GraceWindow: `{"options":{"catchUp":{"windowMS":-1}}}`, tickonce.OnTimeWindow: `{"options":{"catchUp":{"windowMS":-2}}}`,
		time.Second: `{"options":{"catchUp":{"windowMS":1000}}}`, 0: `{}`,
	} {
		text := policy(window).Encode(wire.OpSchedule)
		require.Equal(t, want, string(text))
		read, err := wire.ParseRequest(wire.OpSchedule, text)
		require.NoError(t, err)
		require.Equal(t, window, read.Schedule.CatchUp.Window)
	}

	boundary := func(b time.Time) string { return string((&wire.Request{Boundary: b}).Encode(wire.OpWhy)) }
	require.Equal(t, `{}`, boundary(time.Time{}))
	require.Equal(t, `{"boundary":0}`, boundary(time.UnixMilli(0)))
	require.Equal(t, `{"boundary":1}`, boundary(time.Unix(0, 1)), "a fraction is rounded up")
	require.Equal(t, `{"boundary":0}`, boundary(time.Unix(0, -1)))
	for _, at := range []time.Time{
		time.Unix(1<<62, 0), time.Unix(-1<<62, 0), time.UnixMilli(1 << 53), time.UnixMilli(-1 << 53),
	} { // whose milliseconds wrap to 0, and the least that are refused
		_, err := wire.ParseRequest(wire.OpWhy, []byte(boundary(at)))
		require.ErrorContains(t, err, "want milliseconds since the epoch within", at.Unix())
	}
	for _, at := range []time.Time{time.UnixMilli(1<<53 - 1), time.UnixMilli(1 - 1<<53)} {
		read, err := wire.ParseRequest(wire.OpWhy, []byte(boundary(at)))
		require.NoError(t, err)
		require.True(t, at.Equal(read.Boundary))
	}
}
