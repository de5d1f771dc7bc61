package wire_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/conversation"
	"github.com/tickonce/tickonce/wasm/wire"
)

// fields are the fields of objects, by what these are fields of themselves:
// "request schedule", "request schedule options", "reply runs".
type fields map[string]map[string]bool

// in adds the fields of a JSON text.
func (f fields) in(of string, text []byte) {
	var v any
	if json.Unmarshal(text, &v) == nil {
		f.walk(of, v)
	}
}

// alike are the fields whose objects are those of others.
var alike = map[string]string{
	"results": "reply", "seen": "reply", "schedules": "reply schedule", "queues": "reply queue", "deliveries": "reply details",
	"event": "event", "claim": "token", "claims": "token",
}

func (f fields) walk(of string, v any) {
	switch v := v.(type) {
	case []any:
		for _, v := range v {
			f.walk(of, v)
		}
	case map[string]any:
		if f[of] == nil {
			f[of] = map[string]bool{}
		}
		for name, v := range v {
			f[of][name] = true
			within, _, _ := strings.Cut(of, " ")
			switch {
			case of == "reply totals": // numbers by their words
			case name == "ops":
				for _, op := range v.([]any) {
					f.walk("request tx "+op.(map[string]any)["op"].(string), op)
				}
			case name == "options" || name == "error":
				f.walk(strings.Replace(of, "request tx ", "request ", 1)+" "+name, v)
			default:
				f.walk(cmp.Or(alike[name], within+" "+name), v)
			}
		}
	}
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// known are the fields of everything on the wire.
func known(t *testing.T) fields {
	f := fields{}
	f.in("config", whole[wire.Config]().Encode())
	f.in("reply", whole[wire.Reply]().Encode())
	f["reply"]["results"] = true
	for op := wire.Op(1); op.String() != "unknown"; op++ {
		f.in("request "+op.String(), requestOf(op).Encode(op))
		staged := wire.Request{Ops: []wire.TxOp{{Op: op, Request: *requestOf(op), Seen: &wire.Reply{}}}}
		text := staged.Encode(wire.OpTx)
		if _, err := wire.ParseRequest(wire.OpTx, text); err == nil {
			f.in("request tx", text)
		}
	}
	for kind := wire.RecordKind(1); kind.String() != "unknown"; kind++ {
		r := whole[wire.Record]()
		r.Kind = kind
		records, err := wire.ParseRecords(r.Append(nil))
		require.NoError(t, err)
		require.Len(t, records, 1)
		f.in("record "+kind.String(), records[0].Text())
	}
	return f
}

// requestOf is a request with every field that the op has.
func requestOf(op wire.Op) *wire.Request {
	r := whole[wire.Request]()
	switch op {
	case wire.OpFail:
		r.Error = &wire.Failure{Message: "x"}
	case wire.OpRetry:
		r.Error = &wire.Failure{Message: "x", RetryAfter: &wire.RetryAfter{For: time.Millisecond}}
	}
	return r
}

// spoken are the fields, and the words, in the conversations.
func spoken(t *testing.T) (f fields, words map[string]map[string]bool, replies map[string]map[string]bool) {
	f, words, replies = fields{}, map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, file := range conversation.Files(t, conversations) {
		for _, step := range conversation.Read(t, file) {
			request := step.Request
			if step.Text != nil {
				request = json.RawMessage(*step.Text)
			}
			if step.Error == nil {
				f.in("config", step.Open)
				f.in("request "+step.Call, request)
			} else {
				put(words, "code", step.Error.Code)
			}
			f.in("reply", step.Reply)
			var reply map[string]json.RawMessage
			if step.Reply != nil {
				require.NoError(t, json.Unmarshal(step.Reply, &reply))
			}
			for name := range reply {
				put(replies, step.Call, name)
			}
			texts := append([]json.RawMessage{step.Request, step.Reply, step.Open}, step.Out...)
			for _, text := range step.Out {
				var record struct{ Kind string }
				require.NoError(t, json.Unmarshal(text, &record))
				f.in("record "+record.Kind, text)
			}
			for _, text := range texts {
				var v any
				if json.Unmarshal(text, &v) == nil {
					wordsIn(words, "", v)
				}
			}
		}
	}
	return f, words, replies
}

func put(set map[string]map[string]bool, key, value string) {
	if set[key] == nil {
		set[key] = map[string]bool{}
	}
	set[key][value] = true
}

// wordsIn finds the values of fields that are texts: of a kind beside the
// object that it is the kind of.
func wordsIn(words map[string]map[string]bool, of string, v any) {
	switch v := v.(type) {
	case []any:
		for _, v := range v {
			wordsIn(words, of, v)
		}
	case map[string]any:
		for name, v := range v {
			if text, ok := v.(string); ok {
				put(words, name, text)
				put(words, of+" "+name, text)
			}
			wordsIn(words, name, v)
		}
	}
}

// Every field of every request, reply, record and event is in a conversation.
func TestConversationsHaveEveryField(t *testing.T) {
	found, _, _ := spoken(t)
	var missing []string
	for of, names := range known(t) {
		for name := range names {
			switch of + " " + name {
			case "record journal data", "record journal kind": // left out of the conversations
			case "event phase": // of a store's error, which memory has none of
			case "reply schedule options resetCursor": // is asked, and not kept
			case "reply recovery invalid": // of a row that breaks a rule of its own
			default:
				if !found[of][name] {
					missing = append(missing, of+" "+name)
				}
			}
		}
	}
	require.Empty(t, missing)
}

// kinds are the words of each kind.
var kinds = map[string][]string{
	"event kind":  wordsOf(tickonce.EventScheduled, tickonce.EventDeliveryFailed),
	"why kind":    wordsOf(tickonce.WhyNoBoundary, tickonce.WhyForgotten),
	"execution":   wordsOf(tickonce.ExecutionOK, tickonce.ExecutionLost),
	"delivery":    wordsOf(tickonce.DeliveryNone, tickonce.DeliveryPermanent),
	"then":        wordsOf(tickonce.JobPending, tickonce.JobDone),
	"state":       wordsOf(tickonce.JobPending, tickonce.JobDone),
	"paused":      wordsOf(tickonce.Active, tickonce.PausedByRunOnce),
	"overlap":     wordsOf(tickonce.OverlapAllow, tickonce.OverlapBufferOne),
	"lateness":    wordsOf(tickonce.FiredOnTime, tickonce.FiredCaughtUp),
	"reason":      wordsOf(tickonce.SkippedByPause, tickonce.SkippedAsBefore),
	"clockRepair": wordsOf(tickonce.RepairHold, tickonce.RepairRearm),
}

func wordsOf[E interface {
	~uint8
	String() string
}](from, to E,
) (words []string) {
	for e := from; e <= to; e++ {
		words = append(words, e.String())
	}
	return words
}

// Every word and code is in a conversation, but for those that cannot be.
func TestConversationsHaveEveryWord(t *testing.T) {
	_, found, _ := spoken(t)
	cannot := map[string]bool{
		"event kind leadership_lost": true, "event kind stand_by": true, "event kind retrying": true, // one runner, and no store that fails
		"delivery none": true, "paused active": true, "lateness on_time": true, // zero values
		"code leadership_lost": true, "code tx_done": true, // the same, and no function of a transaction
		"code closed": true, "code internal": true, "code error": true, // those of a handle that is gone, and of a fault
	}
	all := maps.Clone(kinds)
	all["code"] = wire.Codes()
	var missing []string
	for kind, words := range all {
		for _, word := range words {
			if !cannot[kind+" "+word] && !found[kind][word] {
				missing = append(missing, kind+" "+word)
			}
		}
	}
	require.Empty(t, missing)
}

func TestConversationsHaveEveryCall(t *testing.T) {
	called := map[string]bool{}
	for _, file := range conversation.Files(t, conversations) {
		for i, step := range conversation.Read(t, file) {
			if step.Error == nil {
				called[step.Call] = true
			}
			if i == 0 {
				require.NotEmpty(t, step.Say, file)
			}
		}
	}
	for op := wire.Op(1); op.String() != "unknown"; op++ {
		require.Contains(t, called, op.String())
	}
}

// table is the rows of a table of the ABI, below a heading, by their first
// cell.
func table(t *testing.T, heading string) (rows [][]string) {
	text, err := os.ReadFile("../ABI.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.TrimSpace(line), "|"); strings.HasPrefix(line, "|") {
			rows = append(rows, cells[1:len(cells)-1])
		}
	}
	return rows[2:]
}

var quoted = regexp.MustCompile("`([A-Za-z_]+)`")

// names are the names in a cell that are quoted.
func names(cell string) (found []string) {
	for _, name := range quoted.FindAllStringSubmatch(cell, -1) {
		found = append(found, name[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestABIHasTheCallsAndTheirFields(t *testing.T) {
	known := known(t)
	_, _, answered := spoken(t)
	rows := table(t, "Calls")
	for i, row := range rows {
		op := wire.Op(i + 1)
		name := names(row[1])[0]
		require.Equal(t, op.String(), name)
		fields := maps.Clone(known["request "+name])
		if fields["queue"] {
			delete(fields, "outbox")
		}
		if op == wire.OpTx {
			fields = map[string]bool{"ops": true, "plan": true}
		}
		require.ElementsMatch(t, sorted(fields), names(row[2]), name)
		if op == wire.OpClaim {
			continue // answers records
		}
		require.ElementsMatch(t, sorted(answered[name]), names(row[3]), "the reply of %s", name)
	}
	require.Equal(t, "unknown", wire.Op(len(rows)+1).String())
}

func TestABIHasTheRestOfTheWire(t *testing.T) {
	known := known(t)
	var config, codes []string
	for _, row := range table(t, "Config") {
		config = append(config, names(row[0])...)
	}
	slices.Sort(config)
	require.Equal(t, sorted(known["config"]), config)

	for i, row := range table(t, "Records") {
		require.Equal(t, wire.RecordKind(i+1).String(), strings.TrimSpace(row[1]))
	}
	require.Equal(t, "unknown", wire.RecordKind(len(table(t, "Records"))+1).String())

	for _, row := range table(t, "Errors") {
		codes = append(codes, names(row[0])...)
	}
	require.ElementsMatch(t, wire.Codes(), codes)

	told := map[string][]string{}
	for _, row := range table(t, "Objects") {
		told[strings.ReplaceAll(strings.TrimSpace(row[0]), "`", "")] = names(row[1])
	}
	for name, of := range map[string]string{
		"options of schedule": "request schedule options", "options of enqueue": "request enqueue options",
		"options of work": "request work options", "catchUp": "request catchUp", "activeHours": "request activeHours",
		"limits": "config limits", "schedule": "reply schedule", "hold": "reply hold", "dead": "reply dead", "queue": "reply queue",
		"runs": "reply runs", "details": "reply details", "skips": "reply skips", "why": "reply why", "totals": "reply totals",
		"recovery": "reply recovery", "event": "event",
	} {
		require.Equal(t, sorted(known[of]), told[name], name)
	}

	told = map[string][]string{}
	for _, row := range table(t, "Words") {
		for kind := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(row[0]), "`", ""), ", ") {
			told[strings.TrimSuffix(kind, " of a skip")] = names(row[1])
		}
	}
	for kind, words := range kinds {
		require.ElementsMatch(t, words, told[kind], kind)
	}
}
