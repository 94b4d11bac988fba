package rules

// Unset fills in a field that is not there.
func Unset[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// Empty fills in a text that is empty.
func Empty[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
