// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// Decisions selects records of decisions; an empty field selects all.
type Decisions struct {
	// Since is how old the oldest decision may be.
	Since time.Duration
	Point decision.Name
	// Kind, Namespace and Name are those of the subject of the decision.
	Kind, Namespace, Name string
	// Limit is how many of its latest records each manager returns: 1,000 by default, 10,000 at most.
	Limit int
}

func (d Decisions) queryValues() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"point": string(d.Point), "kind": d.Kind, "namespace": d.Namespace, "name": d.Name} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if d.Since > 0 {
		q.Set("since", d.Since.String())
	}
	if d.Limit > 0 {
		q.Set("limit", strconv.Itoa(d.Limit))
	}
	return q
}

// download is how long the answer may take if the configuration sets no timeout: it may be large.
const download = 2 * time.Minute

// FetchDecisions asks for the decisions that the managers remember, and returns them in the order they
// were made: by time, process and number. Secrets in them are masked. Warnings are about managers that
// did not answer while others did, and about managers that remember more than they sent.
func (a *Asker) FetchDecisions(ctx context.Context, d Decisions) (records []decision.Record, warnings []error, err error) {
	patience := download
	if a.config.Timeout > 0 {
		patience = a.config.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked, err := a.resolveReplicas(ctx)
	if err != nil {
		return nil, nil, err
	}
	type sent struct {
		records  []decision.Record
		warnings []error
	}
	replies, errs := replicas.GatherReplies(asked, func(r replicas.Replica) (out sent, err error) {
		var lines io.ReadCloser
		if lines, out.warnings, err = r.StreamRecords(ctx, d.queryValues()); err != nil {
			return out, err
		}
		defer lines.Close()
		if out.records, err = record.Read(io.LimitReader(lines, largest)); err != nil {
			return out, fmt.Errorf("reading the answer: %w", err)
		}
		return out, nil
	})
	said := a.classifyErrors(asked, errs, explain.Decisions)
	for _, r := range replies {
		records, warnings = append(records, r.records...), append(warnings, r.warnings...)
	}
	switch {
	case said.answered > 0:
		warnings = append(append(warnings, said.failed...), said.refused...)
	case len(said.refused) > 0:
		return nil, append(warnings, said.failed...), said.refused[0] // the others say the same
	case len(said.failed) > 0:
		return nil, warnings, errors.Join(said.failed...)
	default:
		return nil, warnings, fmt.Errorf("asking for decisions: %s answers nothing", asked[0].Name)
	}
	slices.SortFunc(records, func(a, b decision.Record) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.ID, b.ID))
	})
	// A manager may be asked twice, by two endpoints.
	records = slices.CompactFunc(records, func(a, b decision.Record) bool {
		return a.ID == b.ID && a.Origin == b.Origin && a.Time.Equal(b.Time)
	})
	return records, warnings, nil
}
