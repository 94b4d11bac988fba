// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"time"
)

const (
	// streamInterval is the least time between two messages about changes.
	streamInterval = 250 * time.Millisecond
	// keepAlive is the time after which an idle stream sends a comment, so that a browser that went away is noticed.
	keepAlive = 15 * time.Second
	// writeTimeout is how long a browser may take to accept a message.
	writeTimeout = 30 * time.Second
	// maxRows is how many rows a message has: a browser draws the first ones while it receives the rest.
	maxRows = 500
)

// A row is a part of a page that changes as a whole.
type row struct {
	// ID is unique on the page.
	ID string
	// Data is written as JSON.
	Data any
}

// page is what a stream sends. Its methods are called by one goroutine.
type page interface {
	// collectRows returns all rows of the page as they are now.
	collectRows() []row
	// isStale is true if the page has to be opened again, such as for another object of the same name.
	isStale() bool
	// changeSignal receives a value after rows have changed.
	changeSignal() <-chan struct{}
	// closePage releases what only this page uses.
	closePage()
}

// pageError is why there is no such page. To try again does not help.
type pageError struct{ error }

func (e pageError) Unwrap() error { return e.error }

// message is what a stream sends at once: rows that are new or have changed, and the IDs of those that are gone.
type message struct {
	Set    map[string]json.RawMessage `json:"set,omitempty"`
	Remove []string                   `json:"remove,omitempty"`
	// Complete is true once the browser has all rows.
	Complete bool `json:"complete,omitempty"`
}

// streamPage returns a handler that sends the rows of a page as server-sent events, first all of them and then what changes.
func (s *server) streamPage(open func(*http.Request) (page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.streams <- struct{}{}:
			defer func() { <-s.streams }()
		default:
			http.Error(w, fmt.Sprintf("%d pages are open; close one of them.", maxStreams), http.StatusServiceUnavailable)
			return
		}
		p, err := open(r)
		if err != nil {
			status := http.StatusBadGateway // the browser tries again
			if errors.As(err, &pageError{}) {
				status = http.StatusNotFound
			}
			http.Error(w, err.Error(), status)
			return
		}
		defer p.closePage()
		w.Header().Set("Content-Type", "text/event-stream")
		stream := &rowStream{to: w, control: http.NewResponseController(w), sent: map[string]uint64{}, seed: maphash.MakeSeed()}
		_ = stream.sendUntilDone(r, p) // a browser that went away is told nothing
	}
}

// rowStream sends differences between what a browser has and what it should have.
type rowStream struct {
	to      http.ResponseWriter
	control *http.ResponseController
	// sent has the hash of each row that the browser has.
	sent map[string]uint64
	seed maphash.Seed
}

func (s *rowStream) sendUntilDone(r *http.Request, p page) error {
	for {
		if err := s.sendRows(p.collectRows()); err != nil || p.isStale() {
			return err // the browser opens the page again
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-time.After(streamInterval):
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-p.changeSignal():
		case <-time.After(keepAlive):
			if err := s.writeText(": the stream is open\n\n"); err != nil {
				return err
			}
		}
	}
}

// sendRows sends how rows differ from those that were sent. The first call always sends a message.
func (s *rowStream) sendRows(rows []row) error {
	next, m := map[string]json.RawMessage{}, message{}
	first := len(s.sent) == 0
	current := make(map[string]bool, len(rows))
	for _, one := range rows {
		current[one.ID] = true
		raw, err := json.Marshal(one.Data)
		if err != nil {
			return fmt.Errorf("writing row %s: %w", one.ID, err)
		}
		sum := maphash.Bytes(s.seed, raw)
		if before, ok := s.sent[one.ID]; ok && before == sum {
			continue
		}
		s.sent[one.ID] = sum
		if next[one.ID] = raw; len(next) == maxRows {
			if err := s.writeMessage(message{Set: next}); err != nil {
				return err
			}
			next = map[string]json.RawMessage{}
		}
	}
	for id := range s.sent {
		if !current[id] {
			m.Remove = append(m.Remove, id)
			delete(s.sent, id)
		}
	}
	if m.Set = next; len(next)+len(m.Remove) == 0 && !first {
		return nil
	}
	m.Complete = true
	return s.writeMessage(m)
}

func (s *rowStream) writeMessage(m message) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return s.writeText("data: " + string(raw) + "\n\n")
}

func (s *rowStream) writeText(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.to.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
