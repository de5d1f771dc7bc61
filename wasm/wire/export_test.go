package wire

// Codes are all codes of errors.
func Codes() []string {
	all := []string{CodeRequest, CodeClosed, CodeInternal, CodeAbandoned, CodeOther}
	for _, c := range codes {
		all = append(all, c.code)
	}
	return all
}
