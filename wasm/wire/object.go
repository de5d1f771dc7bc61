package wire

import (
	"bytes"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object whose fields are read or written one by one, and so
// are those of the objects within it.
type object struct {
	writing bool
	out     []byte        // written so far
	in      []member      // read, and not yet visited; behind those of the objects around it
	from    int           // where its own begin
	err     *RequestError // the first fault
}

type member struct {
	name  []byte
	value jsontext.Value
}

// visitor visits the fields of a type.
type visitor[T any] func(*T, *object)

// objects are kept, so that a call leaves no more garbage than its values.
var objects = sync.Pool{New: func() any { return new(object) }}

// encode appends the JSON text of v.
func encode[T any](dst []byte, v *T, visit visitor[T]) []byte {
	o := objects.Get().(*object)
	o.writing, o.out = true, dst
	write(o, v, visit)
	dst = o.out
	o.writing, o.out = false, nil
	objects.Put(o)
	return dst
}

func write[T any](o *object, v *T, visit visitor[T]) {
	o.out = append(o.out, '{')
	visit(v, o)
	o.out = append(o.out, '}')
}

// decode reads a JSON object into v. What is no object of the type is a
// [*RequestError], and v then half read.
func decode[T any](text []byte, v *T, visit visitor[T]) error {
	// The whole is validated at once; its parts are only cut out of it.
	if value := jsontext.Value(text); value.Kind() != '{' || !value.IsValid() {
		return &RequestError{"", problem(text)}
	}
	o := objects.Get().(*object)
	read(o, text, v, visit)
	err := o.err
	o.err = nil
	objects.Put(o)
	if err != nil {
		return err
	}
	return nil
}

// problem is what keeps a text from being a JSON object.
func problem(text []byte) string {
	if len(text) == 0 {
		return "is empty, want an object"
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	kind := decoder.PeekKind()
	if _, err := decoder.ReadValue(); err != nil {
		return "is no JSON: " + err.Error()
	}
	if kind != '{' {
		return "is " + kindName(kind) + ", want an object"
	}
	return "goes on after the object"
}

// read reads an object that is valid JSON.
func read[T any](o *object, text []byte, v *T, visit visitor[T]) {
	around := o.from
	o.from = len(o.in)
	text = text[bytes.IndexByte(text, '{')+1:]
	for {
		var name, value []byte
		if name, text = cut(text); len(name) == 0 {
			break
		}
		value, text = cut(text)
		o.in = append(o.in, member{unquoted(name), value})
	}
	visit(v, o)
	if len(o.in) > o.from {
		o.fault("", "has "+quoted(string(o.in[o.from].name))+", which is not known")
	}
	clear(o.in[o.from:])
	o.in, o.from = o.in[:o.from], around
}

// cut takes the next name or value off what is left of an object or an array
// that is valid JSON. At its end there is none.
func cut(text []byte) (next, rest []byte) {
	for strings.IndexByte(",: \t\r\n", text[0]) >= 0 {
		text = text[1:]
	}
	depth, inString := 0, false
	for i := 0; ; i++ {
		switch c := text[i]; {
		case inString:
			switch c {
			case '\\':
				i++
				continue
			case '"':
				inString = false
			default:
				continue
			}
		case c == '"':
			inString = true
			continue
		case c == '{' || c == '[':
			depth++
			continue
		case c == '}' || c == ']':
			if depth--; depth < 0 { // of what is around it: a number or a word ends here
				return text[:i], text[i:]
			}
		case depth == 0 && strings.IndexByte(", \t\r\n", c) >= 0:
			return text[:i], text[i:]
		default:
			continue
		}
		if depth == 0 {
			return text[:i+1], text[i+1:]
		}
	}
}

// unquoted is the text of a JSON string that is valid.
func unquoted(s []byte) []byte {
	if bytes.IndexByte(s, '\\') < 0 {
		return s[1 : len(s)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, s)
	return text
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "a boolean"
	}
}

// quoted is a text of the request within an error.
func quoted(text string) string {
	const most = 40
	if len(text) > most {
		return strconv.Quote(text[:most]) + "…"
	}
	return strconv.Quote(text)
}

// fault keeps the first fault, of a field or, as "", of the object itself.
func (o *object) fault(name, problem string) {
	if o.err == nil {
		o.err = &RequestError{name, problem}
	}
}

// within says where a fault of an object or an array within is.
func (o *object) within(where string) {
	switch e := o.err; {
	case e == nil:
	case e.Where == "" || e.Where[0] == '[':
		e.Where = where + e.Where
	default:
		e.Where = where + "." + e.Where
	}
}

// take answers the member of that name, whose value is of one of the kinds, and
// false if there is none.
func (o *object) take(name, kinds, want string) (jsontext.Value, bool) {
	for i := o.from; i < len(o.in); i++ {
		if string(o.in[i].name) != name {
			continue
		}
		value := o.in[i].value
		o.in = slices.Delete(o.in, i, i+1)
		if found := value.Kind(); strings.IndexByte(kinds, byte(found)) < 0 {
			o.fault(name, "is "+kindName(found)+", want "+want)
			return nil, false
		}
		return value, o.err == nil
	}
	return nil, false
}

// put begins a member.
func (o *object) put(name string) {
	if o.out[len(o.out)-1] != '{' {
		o.out = append(o.out, ',')
	}
	o.out = append(append(append(o.out, '"'), name...), `":`...)
}

// quote appends a JSON string; what is no UTF-8 becomes U+FFFD.
func quote[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error says only that
	return dst
}

func (o *object) text(name string, v *string) {
	if o.writing {
		if *v != "" {
			o.put(name)
			o.out = quote(o.out, *v)
		}
	} else if value, ok := o.take(name, `"`, "a string"); ok {
		*v = string(unquoted(value))
	}
}

func (o *object) bytes(name string, v *[]byte) {
	if o.writing {
		if len(*v) > 0 {
			o.put(name)
			o.out = append(base64.StdEncoding.AppendEncode(append(o.out, '"'), *v), '"')
		}
	} else if value, ok := o.take(name, `"`, "base64"); ok {
		b, err := base64.StdEncoding.AppendDecode(nil, unquoted(value))
		if err != nil {
			o.fault(name, "is no base64 with padding")
		}
		*v = b
	}
}

func (o *object) flag(name string, v *bool) {
	if o.writing {
		if *v {
			o.put(name)
			o.out = append(o.out, "true"...)
		}
	} else if value, ok := o.take(name, "tf", "true or false"); ok {
		*v = value.Kind() == 't'
	}
}

// whole is an integer of any type, within the range of that.
func whole[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8](o *object, name string, v *T) {
	if o.writing {
		if *v != 0 {
			o.put(name)
			o.out = strconv.AppendInt(o.out, int64(*v), 10)
		}
		return
	}
	if n, ok := o.number(name, "a whole number"); ok {
		if *v = T(n); int64(*v) != n {
			least, most := limits[T]()
			o.fault(name, "is "+strconv.FormatInt(n, 10)+", want "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
		}
	}
}

// limits are the least and the largest value of a type.
func limits[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8]() (least, most int64) {
	for most = math.MaxInt64; int64(T(most)) != most; most >>= 1 {
	}
	if minusOne := int64(-1); int64(T(minusOne)) == minusOne {
		least = -most - 1
	}
	return least, most
}

// number reads an integer within ±(2^53 - 1), which all hosts can hold.
func (o *object) number(name, want string) (int64, bool) {
	value, ok := o.take(name, "0", want)
	if !ok {
		return 0, false
	}
	return o.integer(name, value, want)
}

func (o *object) integer(name string, value jsontext.Value, want string) (int64, bool) {
	const most = 1<<53 - 1
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < -most || n > most {
		o.fault(name, "is "+string(value[:min(len(value), 40)])+", want "+want+" within ±(2^53 - 1)")
		return 0, false
	}
	return n, true
}

// span is a duration. A negative one, which means no more than that it is, is
// rounded down; a fraction of a positive one is written, and refused there.
func (o *object) span(name string, v *time.Duration) {
	if o.writing {
		ms, rest := *v/time.Millisecond, *v%time.Millisecond
		switch {
		case *v == 0:
			return
		case rest < 0:
			ms--
		}
		o.put(name)
		if o.out = strconv.AppendInt(o.out, int64(ms), 10); rest > 0 {
			o.out = append(append(o.out, '.'), strconv.FormatInt(int64(time.Millisecond+rest), 10)[1:]...)
		}
		return
	}
	if ms, ok := o.number(name, "whole milliseconds"); ok {
		const most = int64(math.MaxInt64 / time.Millisecond)
		if *v = time.Duration(ms) * time.Millisecond; ms < -most || ms > most {
			o.fault(name, "is "+strconv.FormatInt(ms, 10)+" ms, want at most "+strconv.FormatInt(most, 10))
		}
	}
}

// window is the window of a policy: a duration, or -1 and -2 as the engine has
// them.
func (o *object) window(name string, v *time.Duration) {
	named := int64(*v)
	if o.writing && named < 0 {
		whole(o, name, &named)
		return
	}
	if o.span(name, v); !o.writing && *v < 0 {
		*v /= time.Millisecond
	}
}

// at is an instant, rounded up as the engine does; the zero time is left out.
func (o *object) at(name string, v *time.Time) {
	if o.writing {
		if !v.IsZero() {
			o.put(name)
			o.out = strconv.AppendInt(o.out, millis(*v), 10)
		}
	} else if ms, ok := o.number(name, "milliseconds since the epoch"); ok {
		*v = time.UnixMilli(ms).UTC()
	}
}

// millis is the instant in milliseconds. One that is so far away that they would
// wrap becomes one that is refused where it is read.
func millis(t time.Time) int64 {
	const beyond = 1 << 53
	switch s := t.Unix(); {
	case s > beyond/1000:
		return beyond
	case s < -beyond/1000-1:
		return -beyond
	}
	return t.Add(time.Millisecond - 1).UnixMilli()
}

// word is a kind whose words are those of its String, from 0 to last.
func word[E interface {
	~uint8
	String() string
}](o *object, name string, v *E, last E,
) {
	if o.writing {
		if *v != 0 {
			o.put(name)
			o.out = quote(o.out, (*v).String())
		}
		return
	}
	var found string
	if o.text(name, &found); found == "" {
		return
	}
	want := ""
	for e := range last + 1 {
		if e.String() == found {
			*v = e
			return
		}
		if e.String() != "" {
			want += ", " + e.String()
		}
	}
	o.fault(name, "is "+quoted(found)+", want one of"+want[1:])
}

// inner is an object within the object; one without fields is left out.
func inner[T any](o *object, name string, v *T, visit visitor[T]) {
	if o.writing {
		before := len(o.out)
		o.put(name)
		at := len(o.out)
		if write(o, v, visit); len(o.out) == at+len("{}") {
			o.out = o.out[:before]
		}
	} else if value, ok := o.take(name, "{", "an object"); ok {
		read(o, value, v, visit)
		o.within(name)
	}
}

// maybe is an object within the object that may be absent.
func maybe[T any](o *object, name string, v **T, visit visitor[T]) {
	if o.writing {
		if *v != nil {
			o.put(name)
			write(o, *v, visit)
		}
	} else if value, ok := o.take(name, "{", "an object"); ok {
		*v = new(T)
		read(o, value, *v, visit)
		o.within(name)
	}
}

// list is an array of objects; an empty one is left out.
func list[T any](o *object, name string, v *[]T, visit visitor[T]) {
	if o.writing {
		if len(*v) > 0 {
			o.put(name)
			for i := range *v {
				o.out = append(o.out, "[,"[min(i, 1)])
				write(o, &(*v)[i], visit)
			}
			o.out = append(o.out, ']')
		}
		return
	}
	o.elements(name, func(value jsontext.Value) {
		if value.Kind() != '{' {
			o.fault("", "is "+kindName(value.Kind())+", want an object")
			return
		}
		*v = append(*v, *new(T))
		read(o, value, &(*v)[len(*v)-1], visit)
	})
}

// elements reads an array.
func (o *object) elements(name string, read func(jsontext.Value)) {
	array, ok := o.take(name, "[", "an array")
	if !ok {
		return
	}
	rest := array[1:]
	for i := 0; ; i++ {
		var value []byte
		if value, rest = cut(rest); len(value) == 0 {
			return
		}
		if read(value); o.err != nil {
			o.within("[" + strconv.Itoa(i) + "]")
			o.within(name)
			return
		}
	}
}

// numbers is an array of integers; an empty one is left out.
func numbers[T ~int64](o *object, name string, v *[]T) {
	if o.writing {
		if len(*v) > 0 {
			o.put(name)
			for i, n := range *v {
				o.out = strconv.AppendInt(append(o.out, "[,"[min(i, 1)]), int64(n), 10)
			}
			o.out = append(o.out, ']')
		}
		return
	}
	o.elements(name, func(value jsontext.Value) {
		const want = "a whole number"
		if kind := value.Kind(); kind != '0' {
			o.fault("", "is "+kindName(kind)+", want "+want)
		} else if n, ok := o.integer("", value, want); ok {
			*v = append(*v, T(n))
		}
	})
}

// flags is an array of booleans; an empty one is left out.
func flags(o *object, name string, v *[]bool) {
	if o.writing {
		if len(*v) > 0 {
			o.put(name)
			for i, yes := range *v {
				o.out = strconv.AppendBool(append(o.out, "[,"[min(i, 1)]), yes)
			}
			o.out = append(o.out, ']')
		}
		return
	}
	o.elements(name, func(value jsontext.Value) {
		switch kind := value.Kind(); kind {
		case 't', 'f':
			*v = append(*v, kind == 't')
		default:
			o.fault("", "is "+kindName(kind)+", want true or false")
		}
	})
}
