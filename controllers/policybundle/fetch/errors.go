// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"net/http"
)

// SourceError reports a source that is invalid.
type SourceError struct {
	Field string
	Err   error
}

func (e SourceError) Error() string { return e.Field + ": " + e.Err.Error() }
func (e SourceError) Unwrap() error { return e.Err }

// NotFoundError reports a source, or a secret that it names, that does not exist.
type NotFoundError struct{ What, Do string }

func (e NotFoundError) Error() string { return withAdvice(e.What+" is not there", e.Do) }

// UnauthorizedError reports a server that requires credentials, or other ones.
type UnauthorizedError struct{ What, Do string }

func (e UnauthorizedError) Error() string {
	return withAdvice(e.What+" cannot be read with these credentials (401)", e.Do)
}

// ForbiddenError reports something that the given credentials do not allow to read.
type ForbiddenError struct{ What, Do string }

func (e ForbiddenError) Error() string { return withAdvice(e.What+" may not be read", e.Do) }

// TooLargeError reports an archive that does not fit into an object of etcd, where it is stored.
type TooLargeError struct{ What string }

func (e TooLargeError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes packed, which is what a bundle has at most; take out what decides nothing (opa build leaves tests out), or make several bundles of it", e.What, MaxSize)
}

// ContentError reports a source that has no bundle.
type ContentError struct{ What, Why string }

func (e ContentError) Error() string { return e.What + " " + e.Why }

// HostError reports a host, or an address, that requests may not go to.
type HostError struct {
	Host string
	// Why is a sentence without its subject.
	Why string
}

func (e HostError) Error() string { return "the host " + e.Host + " " + e.Why }

// UnavailableError reports a source that cannot be read now.
type UnavailableError struct {
	What string
	Err  error
}

func (e UnavailableError) Error() string { return e.What + " cannot be read now: " + e.Err.Error() }
func (e UnavailableError) Unwrap() error { return e.Err }

// IsPermanent reports whether an error stays until a user changes the source, its
// contents, a secret or a role. A fetch with another error is worth a retry soon.
func IsPermanent(err error) bool {
	return errors.As(err, &SourceError{}) || errors.As(err, &NotFoundError{}) || errors.As(err, &UnauthorizedError{}) ||
		errors.As(err, &ForbiddenError{}) || errors.As(err, &TooLargeError{}) || errors.As(err, &ContentError{}) || errors.As(err, &HostError{})
}

func withAdvice(what, do string) string {
	if do == "" {
		return what
	}
	return what + ": " + do
}

// responseError is the error of a server's response. It has only the status code of the response:
// users who may read errors of bundles may not be allowed to read the rest.
func responseError(what string, status int) error {
	switch {
	case status == http.StatusUnauthorized:
		return UnauthorizedError{what, "name a secret of the source that has credentials, or look whether those in it are still good"}
	case status == http.StatusForbidden:
		return ForbiddenError{what + " (the server answered 403)", "let the user whose credentials are in the secret read it"}
	case status == http.StatusNotFound || status == http.StatusGone:
		return NotFoundError{what, fmt.Sprintf("the server answered %d; look whether it was published under this name", status)}
	case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500:
		return UnavailableError{what, fmt.Errorf("the server answered %d", status)}
	}
	return ContentError{what, fmt.Sprintf("was answered with %d, and a bundle comes with 200", status)}
}
