//go:build !wasm

package host

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/wasm/conversation"
	"github.com/tickonce/tickonce/wasm/wire"
)

// hostile calls the exports of an instance with whatever it likes. Beside its own
// handle the instance has another one, with a state, which nothing may touch.
type hostile struct {
	testing.TB
	*instance
	victim uint64
	state  []byte
	own    uint64
	blocks []uint64 // of the latest call
}

const seeded = `{"seed":"7","journal":true,"events":true}`

func attack(t testing.TB) *hostile {
	i, err := compiled(t).start(t.Context())
	require.NoError(t, err)
	h := &hostile{TB: t, instance: i}
	require.NoError(t, i.open(t.Context(), 0, []byte(seeded), nil, nil))
	for _, c := range []struct{ op, request string }{
		{"schedule", `{"name":"report","spec":"@every 5s","queue":"mail","payload":"aGk="}`},
		{"enqueue", `{"queue":"mail","options":{"key":"k"}}`},
		{"claim", `{"queue":"mail","worker":"w"}`},
		{"start", `{}`},
		{"work", `{"queue":"mail"}`},
	} {
		op, _ := wire.ParseOp(c.op)
		_, err := i.call(t.Context(), 1000, op, []byte(c.request))
		require.NoError(t, err)
	}
	h.victim = i.handle
	h.state = h.snapshotOf(h.victim)
	require.NoError(t, i.open(t.Context(), 0, []byte(seeded), nil, nil))
	h.own = i.handle
	return h
}

func (h *hostile) snapshotOf(handle uint64) []byte {
	h.handle = handle
	b, err := h.snapshot(h.Context())
	require.NoError(h, err)
	return bytes.Clone(b)
}

// try calls an export, which must not trap.
func (h *hostile) try(f api.Function, arguments ...uint64) uint64 {
	result, err := h.do(h.Context(), f, arguments...)
	require.NoError(h, err, "a trap")
	return result
}

// refusedWith is the code of the last error, which has a message.
func (h *hostile) refusedWith() string {
	text, err := h.at(h.try(h.exported.err))
	require.NoError(h, err)
	refused, err := wire.ParseError(text)
	require.NoError(h, err)
	require.NotEmpty(h, refused.Message)
	require.NotEqual(h, wire.CodeInternal, refused.Code, refused.Message)
	return refused.Code
}

// unharmed demands that the other handle is as it was, and alive.
func (h *hostile) unharmed() {
	require.Equal(h, h.state, h.snapshotOf(h.victim))
	next, err := h.step(h.Context(), 1000, 0)
	require.NoError(h, err)
	require.EqualValues(h, 6000, next)
	h.discard()
}

// put is a block with the bytes.
func (h *hostile) put(b []byte) uint64 {
	at := h.try(h.exported.alloc, uint64(len(b)))
	require.NotZero(h, at)
	require.True(h, h.module.Memory().Write(uint32(at), b))
	return at
}

// What a call put out is not put out again by one that is refused as it comes in.
func TestD2ARequestTooLongPutsOutNothing(t *testing.T) {
	var journal memengine.MemJournal
	e := open(t, Config{Journal: &journal})
	_, err := e.Enqueue(t.Context(), "mail", nil, tickonce.EnqueueOptions{})
	require.NoError(t, err)
	stored := journal.Bytes()
	e.mu.Lock()
	defer e.unlock()
	_, err = e.do(t.Context(), func(i *instance) error {
		_, err := i.call(t.Context(), e.now(), wire.OpEnqueue, make([]byte, wire.MaxBlock+1))
		return err
	})
	require.EqualError(t, err, "invalid request: the request is longer than 2^30 bytes")
	require.Equal(t, stored, journal.Bytes())
}

func TestHostileArguments(t *testing.T) {
	float := math.Float64bits
	i32 := func(v int32) uint64 { return uint64(uint32(v)) }
	h := attack(t)
	x := &h.exported
	for _, n := range []uint64{0, 1<<30 + 1, 1 << 31, 1<<32 - 1} {
		require.Zero(t, h.try(x.alloc, n), n)
	}
	for _, at := range []uint64{0, 1, 1<<32 - 1} {
		h.try(x.free, at)
	}
	request := h.put([]byte(`{"name":"report"}`))
	config := h.put([]byte(seeded))
	unpause := uint64(wire.OpResume)

	for name, call := range map[string]struct {
		handle, now, op, at, n uint64
		code                   string
	}{
		"no handle":                 {i32(0), float(0), unpause, request, 17, "closed"},
		"a negative handle":         {i32(-1), float(0), unpause, request, 17, "closed"},
		"a handle that never was":   {i32(99), float(0), unpause, request, 17, "closed"},
		"an op that is none":        {h.own, float(0), i32(-1), request, 17, "invalid_request"},
		"op 0":                      {h.own, float(0), 0, request, 17, "invalid_request"},
		"a length beyond the block": {h.own, float(0), unpause, request, 18, "invalid_request"},
		"a length beyond memory":    {h.own, float(0), unpause, request, 1<<32 - 1, "invalid_request"},
		"no block":                  {h.own, float(0), unpause, request + 8, 1, "invalid_request"},
		"a pointer into nowhere":    {h.own, float(0), unpause, 1<<32 - 8, 8, "invalid_request"},
		"no request":                {h.own, float(0), unpause, 0, 0, "invalid_request"},
		"half a request":            {h.own, float(0), unpause, request, 5, "invalid_request"},
		"another's schedule":        {h.own, float(0), uint64(wire.OpTrigger), request, 17, "not_found"},
		"now is no number":          {h.own, float(math.NaN()), unpause, request, 17, "invalid_request"},
		"now is endless":            {h.own, float(math.Inf(1)), unpause, request, 17, "invalid_request"},
		"now is beyond 2^53":        {h.own, float(-1 << 54), unpause, request, 17, "invalid_request"},
	} {
		require.Zero(t, h.try(x.call, call.handle, call.now, call.op, call.at, call.n), name)
		require.Equal(t, call.code, h.refusedWith(), name)
	}
	for name, c := range map[string]struct {
		handle, now uint64
		code        string
	}{
		"no handle": {i32(7), float(0), "closed"}, "no number": {h.own, float(math.NaN()), "invalid_request"},
		"the past without end": {h.own, float(math.Inf(-1)), "invalid_request"},
	} {
		next := math.Float64frombits(h.try(x.step, c.handle, c.now, i32(-5)))
		require.True(t, math.IsNaN(next), name)
		require.Equal(t, c.code, h.refusedWith(), name)
	}
	snapshot := h.put(h.state)
	size := uint64(len(h.state))
	for name, c := range map[string]struct {
		now, config, n, snapshot, m, log, k uint64
		code                                string
	}{
		"no config":                 {float(0), 0, 0, 0, 0, 0, 0, "invalid_request"},
		"a snapshot as the config":  {float(0), snapshot, size, 0, 0, 0, 0, "invalid_request"},
		"a config as the snapshot":  {float(0), config, uint64(len(seeded)), config, uint64(len(seeded)), 0, 0, "snapshot"},
		"a snapshot as the log":     {float(0), config, uint64(len(seeded)), 0, 0, snapshot, size, ""},
		"half a snapshot":           {float(0), config, uint64(len(seeded)), snapshot, size / 2, 0, 0, "snapshot"},
		"a snapshot beyond memory":  {float(0), config, uint64(len(seeded)), snapshot, 1<<32 - 1, 0, 0, "invalid_request"},
		"a log in nowhere":          {float(0), config, uint64(len(seeded)), 0, 0, 12, 12, "invalid_request"},
		"now is no number":          {float(math.NaN()), config, uint64(len(seeded)), 0, 0, 0, 0, "invalid_request"},
		"the config in three roles": {float(0), config, uint64(len(seeded)), config, 8, config, 9, "snapshot"},
	} {
		handle := int32(h.try(x.open, c.now, c.config, c.n, c.snapshot, c.m, c.log, c.k))
		if c.code == "" { // bytes without a record are a torn one
			require.Positive(t, handle, name)
			continue
		}
		require.EqualValues(t, -1, handle, name)
		require.Equal(t, c.code, h.refusedWith(), name)
	}
	require.Zero(t, h.try(x.out, i32(-9)))
	require.Zero(t, h.try(x.snapshot, i32(-9)))
	require.Equal(t, "closed", h.refusedWith())
	h.try(x.close, i32(-9))
	h.try(x.close, h.own)
	h.try(x.close, h.own)
	require.Zero(t, h.try(x.call, h.own, float(0), unpause, request, 17), "use after close")
	require.Equal(t, "closed", h.refusedWith())
	h.unharmed()
}

// script is a sequence of calls as bytes, read from the front. What is not there
// reads as 0.
type script []byte

func (s *script) byte() byte {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b
}

func (s *script) bytes() []byte {
	n := min(int(s.byte())|int(s.byte())<<8, len(*s))
	b := (*s)[:n]
	*s = (*s)[n:]
	return b
}

// now is the time of a call, one of few or any at all.
func (s *script) now() uint64 {
	times := [...]float64{0, 1000, 6000, 1e6, 1e9, 1 << 53, 1<<53 - 1, 1 - 1<<53, math.Inf(1), math.Inf(-1), math.NaN(), -0.5, 1e300}
	if i := int(s.byte()); i < len(times) {
		return math.Float64bits(times[i])
	}
	var b [8]byte
	for i := range b {
		b[i] = s.byte()
	}
	return binary.LittleEndian.Uint64(b[:])
}

// handle is the own one, or none; never that of the other.
func (s *script) handle(h *hostile) uint64 {
	b := s.byte()
	if other := uint64(uint32(int32(b) - 228)); b >= 200 && other != h.victim {
		return other
	}
	return h.own
}

// The calls of a script.
const (
	doCall = iota
	doStep
	doOpen
	doRaw
	doReopen
	doClose
	doings
)

// play makes the calls of a script.
func (h *hostile) play(s script) {
	for n := 0; len(s) > 0 && n < 64; n++ {
		for _, at := range h.blocks {
			h.try(h.exported.free, at)
		}
		h.blocks = h.blocks[:0]
		switch s.byte() % doings {
		case doCall:
			handle, now, op := s.handle(h), s.now(), uint64(s.byte())
			h.answered(handle, h.with(s.bytes(), func(at, n uint64) uint64 {
				return h.try(h.exported.call, handle, now, op, at, n)
			}))
		case doStep:
			handle, now, most := s.handle(h), s.now(), uint64(s.byte())
			if next := math.Float64frombits(h.try(h.exported.step, handle, now, most)); math.IsNaN(next) {
				h.refusedWith()
			} else {
				h.records(handle)
			}
		case doOpen:
			h.open(s.now(), s.bytes(), s.bytes(), s.bytes())
		case doReopen: // with a bit turned, and a sum that says that it was not
			state := h.snapshotOf(h.own)
			at := (int(s.byte()) | int(s.byte())<<8) % len(state)
			state[at] ^= s.byte()
			body := state[:len(state)-4]
			binary.LittleEndian.PutUint32(state[len(body):], crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
			h.open(s.now(), []byte(seeded), state, s.bytes())
		case doRaw: // with places of no block
			handle, now, op, at, n := s.handle(h), s.now(), uint64(s.byte()), uint64(s.byte())<<24, uint64(s.byte())<<s.byte()%32
			if place := h.try(h.exported.call, handle, now, op, at, uint64(uint32(n))); place == 0 {
				h.refusedWith()
			}
		case doClose:
			h.try(h.exported.close, s.handle(h))
			h.open(0, []byte(seeded), nil, nil)
		}
	}
}

// with makes a call with an argument in a block.
func (h *hostile) with(b []byte, call func(at, n uint64) uint64) uint64 {
	if len(b) == 0 {
		return call(0, 0)
	}
	at := h.put(b)
	h.blocks = append(h.blocks, at)
	return call(at, uint64(len(b)))
}

// open opens a handle in the place of the own one, unless it is refused.
func (h *hostile) open(now uint64, config, snapshot, log []byte) {
	handle := h.with(config, func(a, k uint64) uint64 {
		return h.with(snapshot, func(b, l uint64) uint64 {
			return h.with(log, func(c, m uint64) uint64 { return h.try(h.exported.open, now, a, k, b, l, c, m) })
		})
	})
	if int32(handle) < 0 {
		h.refusedWith()
		return
	}
	h.try(h.exported.close, h.own)
	h.own = handle
}

// answered demands a reply or an error at the place.
func (h *hostile) answered(handle, place uint64) {
	if place == 0 {
		h.refusedWith()
		return
	}
	text, err := h.at(place)
	require.NoError(h, err)
	_, err = wire.ParseReply(text)
	require.NoError(h, err)
	h.records(handle)
}

func (h *hostile) records(handle uint64) {
	b, err := h.at(h.try(h.exported.out, handle))
	require.NoError(h, err)
	_, err = wire.ParseRecords(b)
	require.NoError(h, err)
}

// FuzzExports calls the exports with whatever the fuzzer thinks of: nothing traps,
// an error has a code and a message, a reply and records can be read, and another
// handle of the instance stays as it was.
func FuzzExports(f *testing.F) {
	text := func(b []byte) []byte { return append([]byte{byte(len(b)), byte(len(b) >> 8)}, b...) }
	for _, file := range conversation.Files(&testing.T{}, conversations) {
		var s []byte
		for _, step := range conversation.Read(&testing.T{}, file) {
			at := binary.LittleEndian.AppendUint64([]byte{255}, math.Float64bits(step.At))
			op, _ := wire.ParseOp(step.Call)
			switch request := []byte(step.Request); {
			case step.Call != "":
				if step.Text != nil {
					request = []byte(*step.Text)
				}
				var short bytes.Buffer
				if json.Compact(&short, request) == nil {
					request = short.Bytes()
				}
				s = append(append(append(append(s, doCall, 0), at...), byte(op)), text(request)...)
			case step.Step != nil:
				s = append(append(append(s, doStep, 0), at...), byte(*step.Step))
			case step.Snapshot:
				s = append(append(append(s, doReopen, 20, 0, 1), at...), 0, 0)
			}
		}
		f.Add(s)
	}
	f.Add([]byte{doStep, 0, 6, 0, doStep, 0, 7, 0, doClose, 250, doRaw, 0, 0, 4, 255, 255, 31})
	compiled(f)
	f.Fuzz(func(t *testing.T, s []byte) {
		h := attack(t)
		h.play(s)
		h.unharmed()
	})
}
