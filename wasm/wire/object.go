package wire

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object whose fields are read or written one by one.
type object struct {
	writing bool
	out     []byte   // written so far, with the opening brace
	in      []member // read, and not yet visited
	path    string   // where it is within the request, with a dot behind it
	err     error    // the first fault
}

type member struct {
	name  string
	value jsontext.Value
}

// visitor visits the fields of a type.
type visitor[T any] func(*T, *object)

// encode appends the JSON text of v.
func encode[T any](dst []byte, v *T, visit visitor[T]) []byte {
	o := object{writing: true, out: append(dst, '{')}
	visit(v, &o)
	return append(o.out, '}')
}

// decode reads a JSON object into v. What is no object of the type is a
// [*RequestError], and v then half read.
func decode[T any](text []byte, path string, v *T, visit visitor[T]) error {
	o := object{path: path}
	if o.read(text); o.err != nil {
		return o.err
	}
	visit(v, &o)
	if o.err == nil && len(o.in) > 0 {
		o.fault("", "has "+quoted(o.in[0].name)+", which is not known")
	}
	return o.err
}

// read takes the members apart.
func (o *object) read(text []byte) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	if len(text) == 0 {
		o.fault("", "is empty, want an object")
		return
	}
	if kind := decoder.PeekKind(); kind != '{' {
		problem := "is " + kindName(kind) + ", want an object"
		if _, err := decoder.ReadValue(); err != nil {
			problem = "is no JSON: " + err.Error()
		}
		o.fault("", problem)
		return
	}
	_, err := decoder.ReadToken()
	for err == nil && decoder.PeekKind() != '}' {
		var name jsontext.Token
		if name, err = decoder.ReadToken(); err != nil {
			break
		}
		key := name.String()
		var value jsontext.Value
		if value, err = decoder.ReadValue(); err == nil {
			end := decoder.InputOffset()
			o.in = append(o.in, member{key, text[end-int64(len(value)) : end]})
		}
	}
	if err == nil {
		_, err = decoder.ReadToken()
	}
	if err == nil {
		if rest := bytes.TrimLeft(text[decoder.InputOffset():], " \t\r\n"); len(rest) > 0 {
			o.fault("", "goes on after the object")
			return
		}
	}
	if err != nil {
		o.fault("", "is no JSON: "+err.Error())
	}
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

// fault keeps the first fault.
func (o *object) fault(name, problem string) {
	if o.err == nil {
		where := o.path + name
		if n := len(where); name == "" && n > 0 {
			where = where[:n-1]
		}
		o.err = &RequestError{where, problem}
	}
}

// take answers the member of that name, whose value is of one of the kinds, and
// false if there is none.
func (o *object) take(name, kinds, want string) (jsontext.Value, bool) {
	for i := range o.in {
		if o.in[i].name != name {
			continue
		}
		value := o.in[i].value
		o.in = append(o.in[:i], o.in[i+1:]...)
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
	o.out = quote(o.out, name)
	o.out = append(o.out, ':')
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
		b, _ := jsontext.AppendUnquote(nil, value) // read without an error
		*v = string(b)
	}
}

func (o *object) bytes(name string, v *[]byte) {
	if o.writing {
		if len(*v) > 0 {
			o.put(name)
			o.out = append(base64.StdEncoding.AppendEncode(append(o.out, '"'), *v), '"')
		}
	} else if value, ok := o.take(name, `"`, "base64"); ok {
		text, _ := jsontext.AppendUnquote(nil, value) // read without an error
		b, err := base64.StdEncoding.AppendDecode(nil, text)
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
			o.fault(name, "is "+strconv.FormatInt(n, 10)+", which is out of range")
		}
	}
}

// number reads an integer within ±(2^53 - 1), which all hosts can hold.
func (o *object) number(name, want string) (int64, bool) {
	value, ok := o.take(name, "0", want)
	if !ok {
		return 0, false
	}
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
			o.out = strconv.AppendInt(o.out, v.Add(time.Millisecond-1).UnixMilli(), 10)
		}
	} else if ms, ok := o.number(name, "milliseconds since the epoch"); ok {
		*v = time.UnixMilli(ms).UTC()
	}
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
		if o.out = encode(o.out, v, visit); len(o.out) == at+len("{}") {
			o.out = o.out[:before]
		}
	} else if value, ok := o.take(name, "{", "an object"); ok {
		if err := decode(value, o.path+name+".", v, visit); err != nil {
			o.err = err
		}
	}
}

// maybe is an object within the object that may be absent.
func maybe[T any](o *object, name string, v **T, visit visitor[T]) {
	if o.writing {
		if *v != nil {
			o.put(name)
			o.out = encode(o.out, *v, visit)
		}
	} else if value, ok := o.take(name, "{", "an object"); ok {
		*v = new(T)
		if err := decode(value, o.path+name+".", *v, visit); err != nil {
			o.err = err
		}
	}
}

// list is an array of objects; an empty one is left out.
func list[T any](o *object, name string, v *[]T, visit visitor[T]) {
	if o.writing {
		if len(*v) > 0 {
			o.put(name)
			for i := range *v {
				o.out = encode(append(o.out, "[,"[min(i, 1)]), &(*v)[i], visit)
			}
			o.out = append(o.out, ']')
		}
		return
	}
	o.elements(name, func(path string, value jsontext.Value) error {
		*v = append(*v, *new(T))
		return decode(value, path, &(*v)[len(*v)-1], visit)
	})
}

// elements reads an array.
func (o *object) elements(name string, read func(path string, value jsontext.Value) error) {
	value, ok := o.take(name, "[", "an array")
	if !ok {
		return
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(value))
	decoder.ReadToken() // the bracket; the whole was read without an error
	for i := 0; decoder.PeekKind() != ']'; i++ {
		element, err := decoder.ReadValue()
		if err == nil {
			err = read(o.path+name+"["+strconv.Itoa(i)+"].", element)
		}
		if err != nil {
			o.err = err
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
	o.elements(name, func(path string, value jsontext.Value) error {
		element := object{path: path, in: []member{{"", value}}}
		n, _ := element.number("", "a whole number")
		*v = append(*v, T(n))
		return element.err
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
	o.elements(name, func(path string, value jsontext.Value) error {
		if kind := value.Kind(); kind != 't' && kind != 'f' {
			return &RequestError{path[:len(path)-1], "is " + kindName(kind) + ", want true or false"}
		}
		*v = append(*v, value.Kind() == 't')
		return nil
	})
}
