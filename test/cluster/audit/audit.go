// SPDX-License-Identifier: Apache-2.0

// Package audit counts what was written to a cluster, from the audit log of its
// API server: who wrote which resource how often.
package audit

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// An Event is what the log says about one request, as far as it matters here.
type Event struct {
	Verb string    `json:"verb"`
	Time time.Time `json:"requestReceivedTimestamp"`
	// Done is when the response was complete.
	Done  time.Time `json:"stageTimestamp"`
	Agent string    `json:"userAgent"`
	URI   string    `json:"requestURI"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// A Filter chooses events. Empty fields choose all.
type Filter struct {
	User      string
	Namespace string
	Resource  string
	Since     time.Time
	Until     time.Time
}

func (f Filter) matches(event Event) bool {
	return (f.User == "" || f.User == event.User.Username) &&
		(f.Namespace == "" || f.Namespace == event.Object.Namespace) &&
		(f.Resource == "" || f.Resource == event.Object.Resource) &&
		!event.Time.Before(f.Since) && (f.Until.IsZero() || event.Time.Before(f.Until))
}

// A Count is how often one user wrote one kind of thing in one way.
type Count struct {
	User     string `json:"user"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"` // with its subresource: pods/status
	Writes   int    `json:"writes"`
	// Failed are those, among Writes, that the server refused: a conflict is
	// work for it, too. Dry runs are none of them, whatever became of them.
	Failed int `json:"failed"`
	// DryRuns are those, among Writes, that were asked about and not stored.
	DryRuns int `json:"dryRuns,omitempty"`
}

// Counts reads the log at path and counts the writes that filter chooses, the
// most frequent first.
func Counts(path string, filter Filter) ([]Count, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	counts, err := count(file, filter)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return counts, nil
}

// Each reads the log at path and hands over every event that filter chooses.
func Each(path string, filter Filter, f func(Event)) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	if err := each(file, filter, f); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	return nil
}

func each(log io.Reader, filter Filter, f func(Event)) error {
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // a line without an end is being written just now
		}
		if err != nil {
			return err
		}
		var event Event
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		if filter.matches(event) {
			f(event)
		}
	}
}

func count(log io.Reader, filter Filter) ([]Count, error) {
	totals := map[Count]*Count{}
	err := each(log, filter, func(event Event) {
		key := Count{User: event.User.Username, Verb: event.Verb, Resource: event.Object.Resource}
		if event.Object.Subresource != "" {
			key.Resource += "/" + event.Object.Subresource
		}
		if totals[key] == nil {
			totals[key] = &Count{User: key.User, Verb: key.Verb, Resource: key.Resource}
		}
		totals[key].Writes++
		switch {
		case strings.Contains(event.URI, "dryRun=All"):
			totals[key].DryRuns++
		case event.Response.Code >= 400:
			totals[key].Failed++
		}
	})
	if err != nil {
		return nil, err
	}
	sorted := make([]Count, 0, len(totals))
	for _, total := range totals {
		sorted = append(sorted, *total)
	}
	slices.SortFunc(sorted, func(a, b Count) int {
		return cmp.Or(-cmp.Compare(a.Writes, b.Writes), cmp.Compare(a.User, b.User),
			cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return sorted, nil
}

// Total adds up the writes of counts.
func Total(counts []Count) int {
	sum := 0
	for _, one := range counts {
		sum += one.Writes
	}
	return sum
}

// Failed adds up those, among the writes of counts, that the server refused.
func Failed(counts []Count) int {
	sum := 0
	for _, one := range counts {
		sum += one.Failed
	}
	return sum
}
