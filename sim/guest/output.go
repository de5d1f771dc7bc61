package guest

import (
	"fmt"
	"strings"
)

// output is what a program printed: its beginning and its end, of what is long.
type output struct {
	instance   *instance
	head, tail []byte
	cut        int // bytes between them
}

// keptOutput is how many bytes of the beginning are kept, and how many of the end.
const keptOutput = 256

func (o *output) Write(p []byte) (int, error) {
	o.instance.count()
	n := len(p)
	fits := min(n, keptOutput-len(o.head))
	o.head, p = append(o.head, p[:fits]...), p[fits:]
	if over := len(p) - keptOutput; over > 0 {
		o.cut += len(o.tail) + over
		o.tail, p = o.tail[:0], p[over:]
	}
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - keptOutput; over > 0 {
		o.cut += over
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	return n, nil
}

func (o *output) String() string {
	if o.cut == 0 {
		return strings.TrimSpace(string(o.head) + string(o.tail))
	}
	return strings.TrimSpace(fmt.Sprintf("%s … %d bytes … %s", o.head, o.cut, o.tail))
}
