package wire

// Codes are all codes of errors.
func Codes() []string {
	all := []string{CodeRequest, CodeClosed, CodeInternal, CodeAbandoned, CodeOther}
	for _, c := range codes {
		all = append(all, c.code)
	}
	return all
}

// Held is how many claims the server keeps.
func (s *Server) Held() int { return len(s.claims.of) }

// Faulty makes a call panic until undo is called.
func Faulty(op Op) (undo func()) {
	call := ops[op].call
	ops[op].call = func(*Server, *Request, *Reply) error { panic("boom") }
	return func() { ops[op].call = call }
}
