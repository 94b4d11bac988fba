// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// Decisions selects records of decisions; what is empty selects all.
type Decisions struct {
	// Since is how long ago the first one may have been.
	Since time.Duration
	Point decision.Name
	// Kind, Namespace and Name are of what was decided about.
	Kind, Namespace, Name string
	// Limit is how many are asked of each replica: the latest ones. The manager
	// has a default of 1,000 and takes up to 10,000.
	Limit int
}

func (d Decisions) query() url.Values {
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

// download is how long a replica may take where the configuration does not say:
// there may be much to send.
const download = 2 * time.Minute

// Decisions asks all replicas at once for the decisions that they remember, and
// gives them in the order they were made: by time, process and number. Secrets
// in them are masked. Warnings are of replicas that did not answer while others
// did, and of those that remember more than they sent.
func (a *Asker) Decisions(ctx context.Context, d Decisions) (records []decision.Record, warnings []error, err error) {
	patience := download
	if a.config.Timeout > 0 {
		patience = a.config.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked, err := a.replicas(ctx)
	if err != nil {
		return nil, nil, err
	}
	replies, errs := each(asked, func(r *replica) (sent, error) { return r.decisions(ctx, d) })
	said := a.sort(asked, errs)
	warnings = append(said.failed, said.refused...)
	switch {
	case said.answered > 0:
	case len(said.refused) > 0:
		return nil, said.failed, said.refused[0] // the others say the same
	case len(said.failed) > 0:
		return nil, nil, errors.Join(said.failed...)
	default:
		return nil, nil, fmt.Errorf("asking for decisions: none of %d managers knows %s", said.silent, explain.DecisionsPath)
	}
	for i, r := range replies {
		records = append(records, r.records...)
		if r.omitted > 0 {
			warnings = append(warnings, fmt.Errorf("%s remembers %d older decisions that it did not send: ask for less time, one point or one object, or raise the limit", asked[i].name, r.omitted))
		}
	}
	slices.SortFunc(records, func(a, b decision.Record) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.ID, b.ID))
	})
	// A replica may be asked twice, by two endpoints.
	records = slices.CompactFunc(records, func(a, b decision.Record) bool {
		return a.ID == b.ID && a.Origin == b.Origin && a.Time.Equal(b.Time)
	})
	return records, warnings, nil
}

// sent is what one replica sent.
type sent struct {
	records []decision.Record
	omitted int
}

func (r *replica) decisions(ctx context.Context, d Decisions) (out sent, err error) {
	err = r.get(ctx, explain.DecisionsPath, d.query(), func(res *http.Response) (err error) {
		out.omitted, _ = strconv.Atoi(res.Header.Get(explain.OmittedHeader)) // a proxy may have dropped it
		out.records, err = record.Read(io.LimitReader(res.Body, largest))
		return err
	})
	return out, err
}
