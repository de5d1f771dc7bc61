package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/wire"
)

// vector is the bytes of records beside what they say, or are refused as.
type vector struct {
	Say     string            `json:"say"`
	Bytes   string            `json:"bytes"`
	Records []json.RawMessage `json:"records,omitempty"`
	Refused bool              `json:"refused,omitempty"`
}

func bytesOf(records ...wire.Record) (b []byte) {
	for i := range records {
		b = records[i].Append(b)
	}
	return b
}

func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// told are the records of the vectors.
func told() (all []vector) {
	add := func(say string, b []byte) { all = append(all, vector{Say: say, Bytes: hex.EncodeToString(b)}) }
	fired := wire.Record{Kind: wire.RecordFired, Job: 1, Boundary: at(5000), Schedule: "report", Queue: "mail"}
	begun := wire.Record{
		Kind: wire.RecordBegun, Run: 3, Job: 1<<53 - 1, Boundary: at(-1), Origin: 2, Enqueued: at(0), RunAt: at(1), Deadline: at(1<<53 - 1),
		Worker: math.MaxInt32, Attempt: 2, MaxAttempts: 3, Priority: math.MinInt16, Queue: "очередь", Schedule: "s", LastError: "boom", Payload: []byte{0, 255},
	}
	add("nothing", nil)
	add("a boundary fired", bytesOf(fired))
	add("a job of a schedule, with everything", bytesOf(begun))
	add("a job that was enqueued and claimed by a call: no run, no boundary", bytesOf(wire.Record{
		Kind: wire.RecordBegun, Job: 7, Enqueued: at(1), RunAt: at(1), Deadline: at(2), Attempt: 1, MaxAttempts: 1, Queue: "q",
	}))
	add("the context of a run has ended", bytesOf(wire.Record{Kind: wire.RecordEnded, Run: 3, Err: &wire.Error{Code: wire.CodeTimeout, Message: "late"}}))
	add("the runner has ended", bytesOf(wire.Record{Kind: wire.RecordStopped}))
	add("a worker has ended, and left jobs behind", bytesOf(wire.Record{Kind: wire.RecordStopped, Worker: 2, Err: &wire.Error{Code: wire.CodeAbandoned, Message: "left"}}))
	add("a record of the journal", bytesOf(wire.Record{Kind: wire.RecordJournal, Data: []byte("record")}))
	add("an event", bytesOf(wire.Record{Kind: wire.RecordEvent, Event: &wire.Event{
		Event: tickonce.Event{Kind: tickonce.EventStopped, At: at(9), Owner: "w"}, Error: "left",
	}}))
	add("several, of all lengths of padding", bytesOf(
		wire.Record{Kind: wire.RecordJournal, Data: []byte("1234")}, wire.Record{Kind: wire.RecordJournal, Data: []byte("12345")},
		wire.Record{Kind: wire.RecordJournal}, fired,
	))
	unknown := []byte{99, 0, 0, 0, 16, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}
	add("a kind of a later version is passed over", append(unknown, bytesOf(fired)...))
	add("a record without fields, of a later version", []byte{99, 0, 0, 0, 8, 0, 0, 0})

	whole := bytesOf(fired)
	resized := func(size byte) []byte {
		b := bytes.Clone(whole)
		b[4] = size
		return b
	}
	add("cut within the header", whole[:7])
	add("cut within the fields", whole[:len(whole)-8])
	add("a size that is less than the header's", resized(0))
	add("a size that is no multiple of 8", resized(whole[4]-1))
	add("a size beyond the end", resized(whole[4]+8))
	add("a size that leaves texts out", resized(whole[4]-8))
	beyond := bytes.Clone(whole)
	beyond[24] = 255
	add("a text that is longer than the record", beyond)
	fraction := bytes.Clone(whole)
	fraction[8] = 1
	add("a job that is no whole number", fraction)
	return all
}

func TestRecordsAreTheVectors(t *testing.T) {
	const file = "../testdata/records.json"
	found := told()
	for i := range found {
		v := &found[i]
		b, err := hex.DecodeString(v.Bytes)
		require.NoError(t, err)
		records, err := wire.ParseRecords(b)
		if v.Refused = err != nil; v.Refused {
			continue
		}
		for _, record := range records {
			v.Records = append(v.Records, record.Text())
		}
	}
	agree(t, file, found)
}

// refusal is an error beside its text.
type refusal struct {
	Text    string `json:"text"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func TestErrorsAreTheVectors(t *testing.T) {
	var found []refusal
	messages := []string{"plain", "", "a \"quote\", a \\ and a /", "\x00 \x1b \n \u2028 \U0001f570 \u202e", "no UTF-8: \xff\xc0"}
	for i, code := range wire.Codes() {
		e := wire.Error{Code: code, Message: messages[i%len(messages)]}
		read, err := wire.ParseError(e.Text())
		require.NoError(t, err)
		found = append(found, refusal{string(e.Text()), read.Code, read.Message})
	}
	agree(t, "../testdata/errors.json", found)
}

// agree demands that the file holds what was found, or writes it there.
func agree(t *testing.T, file string, found any) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	require.NoError(t, encoder.Encode(found))
	if *rewrite {
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o666))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(text), b.String())
}
