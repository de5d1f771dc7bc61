// Package conversation is the corpus that every way to the engine has to speak:
// natively, through the guest, and through the packages around it. A
// conversation is a file of ../testdata/conversations, an array of steps, each
// with what was asked and what was answered. Hosts in other languages run the
// same files.
package conversation

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/wasm/wire"
)

// Peer opens handles.
type Peer interface {
	Open(now float64, config, snapshot, log []byte) (Handle, error)
}

// Handle is what is spoken to.
type Handle interface {
	Call(now float64, op wire.Op, request []byte) ([]byte, error)
	Step(now float64, most int32) (float64, error)
	Out() []byte
	Snapshot() ([]byte, error)
	Close() error
}

// Step is a step of a conversation. It is the first of these that it has:
//
//	open      a handle is opened, in the place of the one before unless it is
//	          refused, with the configuration and, if it says so, with the state
//	          of that one; the log is that of its journal, behind that which it
//	          was opened with
//	call      a call, with its request; a name that no op has is that of an op
//	          which no guest has
//	step      the runner and the workers are stepped, until so many have fired
//	snapshot  the state is taken; its bytes are in no conversation, since they
//	          may change with the version
type Step struct {
	Say string  `json:"say,omitempty"` // what it shows
	At  float64 `json:"at"`

	Open     json.RawMessage `json:"open,omitempty"`
	From     string          `json:"from,omitempty"` // of open: "snapshot", "log" or "both"
	Cut      int             `json:"cut,omitempty"`  // of open: so many bytes are missing at the end of the log
	Flip     int             `json:"flip,omitempty"` // of open: the bits of this byte of the snapshot are turned
	Snapshot bool            `json:"snapshot,omitempty"`
	Call     string          `json:"call,omitempty"`
	Request  json.RawMessage `json:"request,omitempty"`
	Text     *string         `json:"text,omitempty"` // the request, of what is no JSON
	Step     *int32          `json:"step,omitempty"`

	Reply json.RawMessage   `json:"reply,omitempty"`
	Next  *float64          `json:"next,omitempty"` // of a step; none: there is nothing to wait for
	Out   []json.RawMessage `json:"out,omitempty"`  // also behind an error; without the records of the journal
	Error *Refusal          `json:"error,omitempty"`
}

// Refusal is an error as conversations have it.
type Refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Files are the conversations of the folder.
func Files(t *testing.T, folder string) []string {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// Read reads a conversation.
func Read(t *testing.T, file string) (steps []Step) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&steps), file)
	return steps
}

// Run holds every conversation of the folder with the peer. With rewrite it
// writes what the peer answers into the files.
func Run(t *testing.T, folder string, peer Peer, rewrite bool) {
	for _, file := range Files(t, folder) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			steps := Read(t, file)
			found := answers(t, peer, steps)
			if rewrite {
				require.NoError(t, os.WriteFile(file, write(t, found), 0o666))
				return
			}
			for i := range steps {
				require.JSONEq(t, string(write(t, steps[i:i+1])), string(write(t, found[i:i+1])), "step %d, %s", i, steps[i].Say)
			}
		})
	}
}

// write is the text of steps, one line for each field that is long.
func write(t *testing.T, steps []Step) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	require.NoError(t, encoder.Encode(steps))
	return b.Bytes()
}

// answers are the steps with what the peer answers to each.
func answers(t *testing.T, peer Peer, asked []Step) []Step {
	var handle Handle
	var snapshot, log []byte
	found := make([]Step, len(asked))
	for i, step := range asked {
		step.Reply, step.Next, step.Out, step.Error = nil, nil, nil, nil
		var err error
		switch {
		case step.Open != nil:
			var from, behind []byte
			if step.From == "snapshot" || step.From == "both" {
				from = snapshot
			}
			if step.Flip != 0 {
				from = bytes.Clone(from)
				from[step.Flip] ^= 0xff
			}
			if step.From == "log" || step.From == "both" {
				behind = log[:len(log)-step.Cut]
			}
			var opened Handle
			if opened, err = peer.Open(step.At, step.Open, from, behind); err == nil {
				if handle != nil {
					require.NoError(t, handle.Close())
				}
				handle, log = opened, bytes.Clone(behind)
			}
		case step.Call != "":
			require.NotNil(t, handle, "step %d: nothing is open", i)
			op, known := wire.ParseOp(step.Call)
			if !known {
				op = math.MaxInt32
			}
			var reply []byte
			request := []byte(step.Request)
			if step.Text != nil {
				request = []byte(*step.Text)
			}
			if reply, err = handle.Call(step.At, op, request); err == nil {
				step.Reply = bytes.Clone(reply) // the next call may write over it
			}
		case step.Step != nil:
			var next float64
			if next, err = handle.Step(step.At, *step.Step); err == nil && !math.IsInf(next, 1) {
				step.Next = &next
			}
		case step.Snapshot:
			snapshot, err = handle.Snapshot()
		default:
			require.Fail(t, "a step that asks nothing", "step %d", i)
		}
		if err != nil {
			var refused *wire.Error
			require.ErrorAs(t, err, &refused, "step %d", i)
			step.Error = &Refusal{refused.Code, refused.Message}
		}
		if step.Call != "" || step.Step != nil {
			records, err := wire.ParseRecords(handle.Out())
			require.NoError(t, err, "step %d", i)
			for _, record := range records {
				if record.Kind == wire.RecordJournal {
					log = append(log, record.Data...)
					continue
				}
				step.Out = append(step.Out, record.Text())
			}
		}
		found[i] = step
	}
	return found
}
